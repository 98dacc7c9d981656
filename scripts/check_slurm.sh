#!/usr/bin/env bash
# Multiruns through a real slurmctld and slurmd, compared byte for byte with a serial one.
#
#   scripts/check_slurm.sh PYTHON [RUNS]
#
# See with_slurm.sh for what that wants.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$(command -v "${1:-python3}")
runs=${2:-12}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" scripts/measure_sweep.py serial "$folder/serial" --runs "$runs"
scripts/with_slurm.sh "$python" "$python" scripts/measure_sweep.py slurm "$folder/alone" \
  --runs "$runs" --like "$folder/serial"
scripts/with_slurm.sh "$python" "$python" scripts/measure_sweep.py slurm "$folder/packed" \
  --runs "$runs" --like "$folder/serial" --runs-per-job 5
