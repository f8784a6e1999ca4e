#!/bin/bash
# One rank of a Gangway cluster: every rank is a worker; rank 0 also starts the controller and, once all have joined, runs
# the command. The cluster ends with the command; without one it serves until it is told to end.
#
#   srun --ntasks-per-node=1 deploy/rank.sh python train.py        (see deploy/slurm/gangway.sbatch)
#   mpirun -np 4 deploy/rank.sh python train.py
#
# GANGWAY_HOST   rank 0's host as the others reach it (default 127.0.0.1)
# GANGWAY_PORT   for workers (default 7001); clients on rank 0's host connect to the port below it
# GANGWAY_NODE   what tells this host from others in its workers' names (default: hostname)
# Everything else is settings: GANGWAY_WORKER_DEVICES=4, GANGWAY_CONTROLLER_TLS_CA=..., or a file, GANGWAY_CONFIG=...
set -euo pipefail

rank=${SLURM_PROCID:-${OMPI_COMM_WORLD_RANK:?start me with srun or mpirun}}
ranks=${SLURM_NTASKS:-${OMPI_COMM_WORLD_SIZE:-}}
host=${GANGWAY_HOST:-127.0.0.1}
port=${GANGWAY_PORT:-7001}
clients=127.0.0.1:$((port - 1))

export GANGWAY_WORKER_DEVICES=${GANGWAY_WORKER_DEVICES:-1}
worker=(gangway worker "--controller=$host:$port" "--name=${GANGWAY_NODE:-$(hostname)}-$rank" "--rank=$rank" --reconnect=0)

if [ "$rank" != 0 ]; then
  # It ends with its controller, or is told to where a launcher ends all once rank 0 has failed: whether that was as it
  # should be, rank 0 says.
  trap 'kill $(jobs -p) 2>/dev/null || true' TERM INT
  "${worker[@]}" &
  wait || true
  wait || true
  exit 0
fi

trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
trap 'exit 143' TERM INT
coproc ready { exec gangway controller "--listen=$clients" "--listen-workers=$host:$port" \
  "--expect-devices=$((ranks * GANGWAY_WORKER_DEVICES))" --announce-fd=1; }
exec {announced}<&"${ready[0]}"
"${worker[@]}" &
while read -r line <&"$announced" && [ "$line" != ready ]; do
  case $line in error:*) echo "rank.sh: controller: ${line#error: }" >&2; exit 1 ;; esac
done
[ "${line:-}" = ready ] || { echo "rank.sh: the controller ended before all had joined" >&2; exit 1; }
if [ $# -gt 0 ]; then
  gangway run "--connect=$clients" -- "$@" &
  wait $!
else
  echo "rank.sh: clients: $clients"
  wait %1
fi
