"""Load jobs.csv with evalys and draw its Gantt chart: python check_evalys.py jobs.csv [PNG].

evalys wants an environment of its own (pip install evalys); nothing of moldsim is imported.
"""

import sys


def main():
    try:
        import matplotlib

        matplotlib.use("Agg")
        from evalys.jobset import JobSet
    except ImportError:
        print("skipped: evalys is not installed (pip install evalys)")
        return 0
    import matplotlib.pyplot as pyplot

    jobs = JobSet.from_csv(sys.argv[1])
    assert len(jobs.df) > 0
    jobs.gantt()
    pyplot.savefig(sys.argv[2] if len(sys.argv) > 2 else "evalys.png")
    print(f"{sys.argv[1]}: {len(jobs.df)} rows on {jobs.MaxProcs} processors, drawn by evalys")
    return 0


if __name__ == "__main__":
    sys.exit(main())
