"""Run the commands of the pages below docs/, page by page, each in an empty folder.

Commands are the lines of ```console blocks that begin with "$ ". The tutorial's dump is the
slurm-micro log in MOLDSIM_DATA; without it that page is left out. Pages named as arguments
are run alone.
"""

import gzip
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DUMP = "traces/slurm-micro-sacct-2021.txt.gz"


def commands(page):
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def run(page, folder):
    for command in commands(page):
        words = shlex.split(command)
        assert words[0] == "python", command
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        ended = subprocess.run(
            [sys.executable, *words[1:]], cwd=folder, env={**os.environ, "PYTHONPATH": path},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if ended.returncode:
            sys.exit(f"{page.name}: {command}\n{ended.stdout}{ended.stderr}")
        print(f"{page.name}: {command}", flush=True)


def main():
    data = os.environ.get("MOLDSIM_DATA")
    pages = sorted((ROOT / "docs").rglob("*.md"))
    if asked := sys.argv[1:]:
        pages = [page for page in pages if page.name in asked]
    for page in pages:
        with tempfile.TemporaryDirectory() as scratch:
            if page.name == "tutorial.md":
                if not data or not Path(data, DUMP).is_file():
                    print("tutorial.md: skipped, MOLDSIM_DATA has no slurm-micro")
                    continue
                Path(scratch, "jobs.txt").write_bytes(
                    gzip.decompress(Path(data, DUMP).read_bytes())
                )
            run(page, scratch)


if __name__ == "__main__":
    main()
