#!/usr/bin/env bash
# A training under Slurm that goes on after its time limit, after a preemption and after a node has failed:
#   sbatch --nodes=2 tools/cluster/slurm.sh -solver SOLVER.prototxt -run runs/NAME -gpu all
# All that follows the script's name are flags of `crema train`, to which -snapshot auto is added.
#SBATCH --job-name=crema
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=12
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
set -uo pipefail

# Two minutes before the time is over Slurm sends SIGTERM to this script, which has it sent to the ranks (srun would kill them): the
# training ends with a snapshot, and the job goes back into the queue. Preempted jobs, and those of a lost node, get there anyway.
again=
trap 'again=yes; scancel --signal=TERM "$SLURM_JOB_ID.0"' TERM
# The secret by which the ranks know each other; srun passes it on.
CREMA_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export CREMA_TOKEN
srun build/tools/crema train "$@" -snapshot auto &
training=$!
wait "$training"
code=$?
if [ "$again" ]; then
  wait "$training"  # the signal has ended the first one
  code=$?
  [ $code -ne 0 ] || scontrol requeue "$SLURM_JOB_ID"
fi
exit $code
