#!/usr/bin/env bash
# Everything that the plain tests leave out: real logs, a browser, Slurm, evalys, documentation.
# What cannot be installed here is skipped with a message. MOLDSIM_DATA names the real logs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$PWD/.venv/bin/python
export OMP_NUM_THREADS=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

echo "== programs"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    chromium chromium-driver slurmctld slurmd slurm-client munge) >"$scratch/apt.log" 2>&1 ||
    echo "skipped: Chromium and Slurm could not be installed"
fi
"$python" -m pip install -q hydra-submitit-launcher mkdocs plotly selenium axe-core-python ||
  echo "skipped: some of hydra-submitit-launcher, mkdocs, plotly, selenium, axe-core-python could not be installed"
python3 -m venv "$scratch/evalys" && "$scratch/evalys/bin/pip" install -q evalys ||
  echo "skipped: evalys could not be installed"

echo "== tests, with real logs"
if [ -d "${MOLDSIM_DATA:-}" ]; then
  "$python" -m pytest -ra
else
  echo "skipped: MOLDSIM_DATA names no folder with traces/ and scaling/"
fi

echo "== no runtime shows before the job has ended: every preset with every predictor"
MOLDSIM_ALL_PAIRS=1 "$python" -m pytest -q tests/contract/test_no_leak.py

echo "== an edit of the rule of each preset changes every run"
MOLDSIM_WHOLE=1 "$python" -m pytest -q tests/contract/test_one_place.py

echo "== wrong variants of the source, each noticed by its test"
"$python" -m scripts.check_mutants

echo "== pages in a browser: 48 runs, a schedule of 200,000 jobs, the tutorial's sweep"
"$python" -m pytest -q -rs tests/contract/test_page_in_browser.py tests/contract/test_explorer.py
if [ -d "${MOLDSIM_DATA:-}" ]; then
  gzip -dc "$MOLDSIM_DATA/traces/slurm-micro-sacct-2021.txt.gz" >"$scratch/jobs.txt"
  "$python" -m sim -m workload=sacct workload.path="$scratch/jobs.txt" cluster.processors=120 \
    policy=easy,sa,efficiency predictor=amdahl,user_estimate,oracle given=recorded \
    moldability.share=0.5 seed=1,2,3 hydra.sweep.dir="$scratch/study" >"$scratch/study.out"
  "$python" -m sim.compare "$scratch/study" >"$scratch/compare.out"
  "$python" scripts/check_page.py "$scratch/study/comparison.html"
fi

echo "== a schedule in evalys"
"$python" -m sim workload.jobs=60 baseline=null "export=[csv]" hydra.run.dir="$scratch/run" >/dev/null
"$scratch/evalys/bin/python" scripts/check_evalys.py "$scratch/run/jobs.csv" "$scratch/evalys.png"

echo "== extras, each in an environment of its own, from the checkout"
for extra in joblib:hydra_plugins.hydra_joblib_launcher slurm:hydra_plugins.hydra_submitit_launcher \
  ray:hydra_plugins.hydra_ray_launcher docs:mkdocs explorer:plotly optuna:hydra_plugins.hydra_optuna_sweeper; do
  python3 -m venv "$scratch/${extra%%:*}"
  if "$scratch/${extra%%:*}/bin/pip" install -q ".[${extra%%:*}]"; then
    (cd "$scratch" && "${extra%%:*}/bin/python" -c "import ${extra##*:}" &&
      "${extra%%:*}/bin/moldsim" run workload.jobs=20 hydra.run.dir="run-${extra%%:*}" >/dev/null)
    rm -rf "${scratch:?}/${extra%%:*}"
  else
    echo "skipped: the extra ${extra%%:*} could not be installed"
  fi
done

echo "== Slurm"
scripts/check_slurm.sh "$python"

echo "== an installation that cannot be written"
scripts/check_read_only.sh "$python"

echo "== twenty kinds of interruption"
"$python" -m tests.soak.interrupts

echo "== a sweep that is killed and started again"
"$python" scripts/check_restart.py 20 40

echo "== documentation"
MOLDSIM_WHOLE=1 "$python" -m pytest -q -n 0 tests/docs/test_commands.py
if "$python" -c 'import mkdocs' 2>/dev/null; then "$python" -m mkdocs build; fi
echo "== all extra checks done"
