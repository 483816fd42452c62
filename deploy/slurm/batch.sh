#!/bin/bash
# Bulk generation by a Slurm array; each task draws its share (docs/batch.md).
#   sbatch --array=0-63 deploy/slurm/batch.sh /shared/manifest.jsonl -o /shared/out -m /shared/models/sdxl --steps 20
# A task whose time is up finishes the picture at hand and is queued again; what is drawn is not drawn twice.
#SBATCH --job-name=sfumato
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=14G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@300
set -u
readonly interrupted=130 # the exit code of a batch that stopped because it was told to

# Not exec: the shell has to live on to queue the task again. It gets the signal, five minutes before the end.
sfumato batch "$@" --threads "${SLURM_CPUS_PER_TASK:-0}" &
sfumato=$!
trap 'kill -TERM "$sfumato" 2>/dev/null' TERM
wait "$sfumato"
code=$?
while kill -0 "$sfumato" 2>/dev/null; do # `wait` returned because of the signal
  wait "$sfumato"
  code=$?
done

if [ "$code" -eq "$interrupted" ]; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
