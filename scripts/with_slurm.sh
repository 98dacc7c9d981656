#!/usr/bin/env bash
# Carries out a command while a real slurmctld and slurmd run on this machine.
#
#   scripts/with_slurm.sh PYTHON COMMAND…
#
# Wants Debian's slurmctld, slurmd, slurm-client and munge, root, and hydra-submitit-launcher
# in PYTHON's environment; without them it says so and ends with status 0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$(command -v "$1")
shift
for program in munged slurmctld slurmd sbatch; do
  if ! PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null; then
    echo "skipped: $program is not installed (apt-get install slurmctld slurmd slurm-client munge)"
    exit 0
  fi
done
if [ "$(id -u)" != 0 ]; then echo "skipped: starting Slurm's daemons here takes root"; exit 0; fi
if ! "$python" -c 'import hydra_plugins.hydra_submitit_launcher' 2>/dev/null; then
  echo "skipped: hydra-submitit-launcher is not installed (pip install '.[slurm]')"
  exit 0
fi

export PATH="$PATH:/usr/sbin" OMP_NUM_THREADS=1
folder=$(mktemp -d /tmp/moldsim-slurm.XXXXXX)
chmod 755 "$folder"
mkdir "$folder/state" "$folder/spool"
stop() {
  for name in slurmd slurmctld munged; do
    if [ -s "$folder/$name.pid" ]; then kill "$(cat "$folder/$name.pid")" 2>/dev/null || true; fi
  done
  sleep 1
  [ "${KEEP:-}" ] || rm -rf "$folder"
}
trap stop EXIT
head -c 1024 /dev/urandom > "$folder/munge.key"
chmod 400 "$folder/munge.key"
munged --force --num-threads=2 --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
  --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
port=$((20000 + RANDOM % 20000))
sed -e "s|@FOLDER@|$folder|; s|@HOST@|$(hostname -s)|; s|@CPUS@|$(nproc --all)|" \
  -e "s|@PORT1@|$port|; s|@PORT2@|$((port + 1))|; s|@ARRAY@|${ARRAY:-1001}|" \
  scripts/slurm.conf.in > "$folder/slurm.conf"
export SLURM_CONF="$folder/slurm.conf"
slurmctld -f "$SLURM_CONF"
slurmd -f "$SLURM_CONF" -N "$(hostname -s)"
for _ in $(seq 60); do
  if sinfo --noheader -o %T 2>/dev/null | grep -q idle; then break; fi
  sleep 1
done
sinfo

"$@"
