#!/bin/sh
# Bulk generation by a Slurm array; each task draws its part, and a task that is sent again goes on where it was.
#   sbatch --array=0-63 deploy/slurm/batch.sh /shared/manifest.jsonl /shared/out -m /shared/models/sdxl --steps 20
#SBATCH --job-name=sfumato
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=14G
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@300
set -eu
manifest=$1 out=$2
shift 2
# Five minutes before the end Slurm sends SIGTERM to this script: it goes on to sfumato, which finishes its picture.
sfumato batch "$manifest" -o "$out" --threads "${SLURM_CPUS_PER_TASK:-1}" "$@" &
pid=$!
trap 'kill -TERM $pid' TERM
wait $pid || { code=$?; [ $code -gt 128 ] && wait $pid; exit $?; }
