#!/bin/sh
# slurm_cluster.sh - a Slurm cluster of several nodes on this machine's loopback, for a person who wants
# to see ranks and packaging/slurm/run.sh under a real srun. No test runs it.
#
#   slurm_cluster.sh NODES COMMAND [WORD...]     runs COMMAND while the cluster is there, then ends it
#
# COMMAND finds srun, sbatch and scontrol in its PATH, and the nodes n1, n2, ... It needs root, and what
# Debian calls munge, slurmctld, slurmd and slurm-client; SLURM_ROOT names a folder that they were
# unpacked into. Names of nodes are known to COMMAND and the daemons alone: they have an /etc/hosts of
# their own. What the daemons say is in $SLURM_CLUSTER/*.log.
set -eu

if [ $# -lt 2 ]; then
    sed -n 's/^# \{0,1\}//; 2,5p' "$0" >&2
    exit 3
fi
if [ -z "${SLURM_CLUSTER:-}" ]; then
    # Once more, where a file can lie over /etc/hosts for us alone.
    SLURM_CLUSTER=$(mktemp -d)
    export SLURM_CLUSTER
    chmod 755 "$SLURM_CLUSTER"
    { cat /etc/hosts; seq -f '127.0.0.1 n%g' "$1"; } >"$SLURM_CLUSTER/hosts"
    set +e
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount sh -c 'mount --bind "$SLURM_CLUSTER/hosts" /etc/hosts && exec "$@"' sh "$0" "$@"
    code=$?
    rm -rf "$SLURM_CLUSTER"
    exit "$code"
fi

nodes=$1
shift
root=${SLURM_ROOT:-}
here=$SLURM_CLUSTER
lib=$root/usr/lib/$(uname -m)-linux-gnu
PATH=$root/usr/sbin:$root/usr/bin:$PATH
LD_LIBRARY_PATH=$lib:$lib/slurm-wlm${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
SLURM_CONF=$here/slurm.conf
export PATH LD_LIBRARY_PATH SLURM_CONF
daemons=
chosen() { # Debian's names have -wlm behind them, under which alternatives lie
    command -v "$1" || command -v "$1-wlm" || { say "there is no $1: install it"; exit 2; }
}

say() {
    echo "slurm_cluster.sh: $*" >&2
}

# start NAME WORD...: a daemon that stays in front, so that its process is ours to end.
start() {
    name=$1
    shift
    "$@" >"$here/$name.log" 2>&1 &
    daemons="$daemons $!"
}

finish() {
    code=$?
    for daemon in $daemons; do
        kill "$daemon" 2>/dev/null || true
    done
    for daemon in $daemons; do
        wait "$daemon" 2>/dev/null || true
    done
    exit "$code"
}
trap finish EXIT
trap 'exit 143' TERM INT

head -c 1024 /dev/urandom >"$here/munge.key"
chmod 600 "$here/munge.key"
mkdir "$here/state"
cat >"$SLURM_CONF" <<CONF
ClusterName=loopback
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=${SLURM_PORT:-16817}
SlurmctldPidFile=$here/slurmctld.pid
SlurmdPidFile=$here/slurmd.%n.pid
SlurmdSpoolDir=$here/spool.%n
StateSaveLocation=$here/state
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$here/munge.socket
PluginDir=$lib/slurm-wlm
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=20
InactiveLimit=0
KillWait=5
SlurmdParameters=config_overrides
NodeName=n[1-$nodes] NodeAddr=127.0.0.1 Port=$((${SLURM_PORT:-16817} + 1))-$((${SLURM_PORT:-16817} + nodes)) CPUs=4
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE
CONF

start munged munged --foreground --force --key-file="$here/munge.key" --socket="$here/munge.socket" \
    --pid-file="$here/munge.pid" --log-file="$here/munge.log" --seed-file="$here/munge.seed" --num-threads=2
tries=100
while [ ! -S "$here/munge.socket" ] && [ "$tries" -gt 0 ]; do
    tries=$((tries - 1))
    sleep 0.1
done
start slurmctld "$(chosen slurmctld)" -D -c
for node in $(seq "$nodes"); do
    mkdir "$here/spool.n$node"
    start "slurmd.n$node" "$(chosen slurmd)" -D -N "n$node" -d "$(chosen slurmstepd)"
done
tries=60
while [ "$(sinfo -h -t idle -o %D 2>/dev/null)" != "$nodes" ]; do
    tries=$((tries - 1))
    if [ "$tries" -le 0 ]; then
        say "the nodes do not come"
        tail -n 5 "$here"/*.log >&2
        exit 2
    fi
    sleep 0.5
done
say "$nodes nodes are there"
"$@"
