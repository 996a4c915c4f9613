#!/bin/sh
# slurm_play.sh - plays ranks under a real Slurm, for a person: slurm_cluster.sh 3 slurm_play.sh FOLDER
#
# Trains one small job three times, in a new FOLDER: on one rank; on four ranks by srun and
# `--ranks slurm`; and by sbatch and packaging/slurm/run.sh, where one rank is killed on the way. The
# three must have the same roots. It runs in the root of the source, after make.
set -eu

where=$1
lockstep=$PWD/build/lockstep
data=$PWD/fixtures/text/village.u8
mkdir "$where"
where=$(cd "$where" && pwd)
export LOCKSTEP="$lockstep" RANKS_PAUSE=1 RANKS_PORT=7700
LOCKSTEP_RANKS_SECRET=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export LOCKSTEP_RANKS_SECRET

steps_of() {
    "$lockstep" bundle steps "$where/$1" --count 1 --json 2>/dev/null | sed -n 's/.*"step_count":\([0-9]*\).*/\1/p'
}

roots_of() {
    "$lockstep" bundle steps "$where/$1" --count 100000 --json | grep -o '"state_root":"[^"]*"'
}

# The process of rank 2 of the batch.
rank_2() {
    for process in /proc/[0-9]*; do
        if tr '\0' ' ' <"$process/cmdline" | grep -q "^$lockstep prover.*$where/batch" &&
            tr '\0' '\n' <"$process/environ" | grep -qx 'SLURM_PROCID=2'; then
            basename "$process"
            return
        fi
    done 2>/dev/null
}

"$lockstep" job new --data "$data" --layers 1 --heads 1 --width 16 --length 8 --batch 1 --vocabulary 128 \
    --accumulate 4 --accumulate-group 1 --steps 400 --segment-steps 20 --out "$where/a.job"
"$lockstep" prover run "$where/a.job" --data "$data" --bundle "$where/one" --threads 1
srun --nodes 3 --ntasks 4 --overcommit "$lockstep" prover run "$where/a.job" --data "$data" \
    --bundle "$where/four" --threads 1 --ranks slurm --ranks-at n1:7690
sbatch --no-kill --nodes 3 --output "$where/batch.log" packaging/slurm/run.sh "$where/a.job" "$where/batch" \
    --data "$data" --threads 1
while [ "$(steps_of batch)" = "" ] || [ "$(steps_of batch)" -lt 60 ]; do
    sleep 0.2
done
kill -9 "$(rank_2)"
while squeue -h | grep -q .; do
    sleep 0.5
done
cat "$where/batch.log"
grep -q 'another try' "$where/batch.log"
roots_of one >"$where/roots"
roots_of four | cmp - "$where/roots"
roots_of batch | cmp - "$where/roots"
echo "the roots of all three are the same"
