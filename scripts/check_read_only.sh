#!/usr/bin/env bash
# A run where neither the installation nor the home can be written: compiled code finds a place.
# Usage: scripts/check_read_only.sh PYTHON   (as root, or where users may make name spaces)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export python=$1 top=$PWD
work=$(mktemp -d)
export work
trap 'rm -rf "$work"' EXIT
if ! unshare --mount --map-root-user true 2>/dev/null; then
  echo "skipped: no name space of mounts can be made here"
  exit 0
fi
# shellcheck disable=SC2016
unshare --mount --map-root-user bash -c '
  mount --bind "$top" "$top" && mount -o remount,bind,ro "$top"
  if touch "$top/sim/here" 2>/dev/null; then echo "the installation can be written"; exit 1; fi
  export HOME=/proc/nowhere XDG_CACHE_HOME=/proc/nowhere TMPDIR=$work PYTHONPATH=$top
  mkdir "$work/run" && cd "$work/run"
  "$python" -m sim workload.jobs=20 policy=fcfs baseline=null hydra.run.dir=run >/dev/null
  test -s run/summary.json
  ls -d "$work"/moldsim-kernels-*'
echo "a run on a read-only mount ended, its compiled code is in a private folder"
