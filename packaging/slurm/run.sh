#!/bin/sh
# run.sh - trains a job on several machines, and goes on with those that are left when one is lost.
#
#   sbatch --no-kill --nodes 4 run.sh JOB BUNDLE [OPTION...]         under Slurm
#   HOSTS="node1 node2" run.sh JOB BUNDLE [OPTION...]                by mpirun
#
#SBATCH --job-name=lockstep
#SBATCH --ntasks-per-node=1
#SBATCH --requeue
#SBATCH --open-mode=append
#
# JOB, BUNDLE and the data lie where all machines see them. OPTION goes to 'lockstep prover run' and
# 'resume': --data FILE, --threads N, --cross-check K. A run that has begun is resumed from its last
# whole checkpoint; its roots are the same for every number of ranks. A batch script that Slurm puts
# back into its queue does so too.
#
# RANKS_PER_NODE (1)   ranks of one machine, such as its GPUs with --device cuda
# RANKS_PORT (7590)    under Slurm, where rank 0 listens; later tries take the ports behind it
# RANKS_TRIES (3)      tries in a row that make no step, after which it gives up
# RANKS_PAUSE (10)     seconds before a new try
# LOCKSTEP (lockstep)  the program
# MPIRUN (mpirun)      and its options
# MPI_HOSTS (--host)   mpirun's option that takes the machines: MPICH's is -hosts
# PROBE (ssh -o BatchMode=yes -o ConnectTimeout=5 HOST true)   succeeds where HOST is there
set -u

if [ $# -lt 2 ]; then
    echo "usage: run.sh JOB BUNDLE [OPTION...]" >&2
    exit 3
fi
job=$1
bundle=$2
shift 2
lockstep=${LOCKSTEP:-lockstep}
per_node=${RANKS_PER_NODE:-1}
port=${RANKS_PORT:-7590}
tries=${RANKS_TRIES:-3}
child=
stopped=

say() {
    echo "run.sh: $*" >&2
}

# ---- machines ----

hosts_of_all() {
    if [ -n "${SLURM_JOB_ID:-}" ]; then
        scontrol show hostnames "$SLURM_JOB_NODELIST"
    else
        echo "${HOSTS:-}" | sed 's/[ ,][ ,]*/\n/g' | sed '/^$/d'
    fi
}

# An asterisk behind a state says that the node does not answer.
is_there() {
    if [ -n "${SLURM_JOB_ID:-}" ]; then
        state=$(scontrol show node "$1" -o | sed -n 's/.* State=\([^ ]*\).*/\1/p')
        case $state in
        '' | *DOWN* | *FAIL* | *NOT_RESPONDING* | *UNKNOWN* | *'*'*) return 1 ;;
        esac
        return 0
    fi
    if [ -n "${PROBE:-}" ]; then
        $PROBE "$1" >/dev/null 2>&1
    else
        ssh -o BatchMode=yes -o ConnectTimeout=5 "$1" true >/dev/null 2>&1
    fi
}

# Those that are there, one a line.
hosts_left() {
    hosts_of_all | while read -r host; do
        ! is_there "$host" </dev/null || echo "$host"
    done
}

# ---- a try ----

# Ranks without a group hold shards; a job without groups has one rank.
fitting_ranks() {
    fitting=$1
    while [ "$fitting" -gt 1 ] &&
        ! "$lockstep" job show "$job" --ranks "$fitting" >/dev/null 2>&1; do
        fitting=$((fitting - 1))
    done
    echo "$fitting"
}

steps_made() {
    made=$("$lockstep" bundle steps "$bundle" --count 1 --json 2>/dev/null |
        sed -n 's/.*"step_count":\([0-9]*\).*/\1/p')
    echo "${made:-0}"
}

# launch HOSTS RANKS WORD...: HOSTS with commas between.
launch() {
    hosts=$1
    ranks=$2
    shift 2
    if [ -z "${SLURM_JOB_ID:-}" ]; then
        slots=$(echo "$hosts" | sed "s/,/:$per_node,/g; s/\$/:$per_node/")
        # shellcheck disable=SC2086 # MPIRUN has words
        ${MPIRUN:-mpirun} "${MPI_HOSTS:---host}" "$slots" -n "$ranks" "$@" </dev/null &
    elif [ "$ranks" = 1 ]; then
        srun --nodes 1 --ntasks 1 --nodelist "${hosts%%,*}" "$@" </dev/null &
    else
        nodes=$(((ranks + per_node - 1) / per_node))
        srun --nodes "$nodes" --ntasks "$ranks" --kill-on-bad-exit=1 \
            --nodelist "$(echo "$hosts" | cut -d, -f "1-$nodes")" "$@" --ranks slurm \
            --ranks-at "${hosts%%,*}:$port" </dev/null &
    fi
    child=$!
    wait "$child"
    code=$?
    if [ -n "$stopped" ]; then
        wait "$child"
        exit $?
    fi
    child=
    return "$code"
}

stop_all() {
    stopped=1
    [ -z "$child" ] || kill -TERM "$child"
}
trap stop_all TERM INT

if [ -n "${SLURM_JOB_ID:-}" ] && [ -z "${LOCKSTEP_RANKS_SECRET:-}" ]; then
    LOCKSTEP_RANKS_SECRET=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
    export LOCKSTEP_RANKS_SECRET
fi

vain=0
while :; do
    left=$(hosts_left)
    if [ -z "$left" ]; then
        say "no machine is there"
        exit 5
    fi
    count=$(echo "$left" | wc -l)
    ranks=$(fitting_ranks $((count * per_node)))
    before=$(steps_made)
    say "$ranks ranks on $count machines, from step $before"
    if [ -e "$bundle/job" ]; then
        launch "$(echo "$left" | paste -sd, -)" "$ranks" \
            "$lockstep" prover resume "$bundle" "$@"
    else
        launch "$(echo "$left" | paste -sd, -)" "$ranks" \
            "$lockstep" prover run "$job" --bundle "$bundle" "$@"
    fi
    code=$?
    case $code in
    0) exit 0 ;;
    1 | 3 | 4) # refused, a wrong option, diverged: unless a machine went, none of it passes by itself
        if [ "$(hosts_left | wc -l)" = "$count" ]; then
            exit "$code"
        fi
        ;;
    esac
    vain=$((vain + 1))
    [ "$(steps_made)" = "$before" ] || vain=0
    if [ "$vain" -ge "$tries" ]; then
        say "$tries tries made no step: exit code $code"
        exit "$code"
    fi
    say "exit code $code after step $(steps_made): another try"
    port=$((port + 1))
    sleep "${RANKS_PAUSE:-10}"
done
