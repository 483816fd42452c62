#!/bin/bash
# deploy/slurm/batch.sh: a task whose time is up is queued again, one that is done or broken is not.
#   slurm_test.sh SOURCE_DIR
set -eu
script_file=$1/deploy/slurm/batch.sh
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export PATH=$place:$PATH CALLS=$place/calls
export SLURM_JOB_ID=12 SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=3 SLURM_CPUS_PER_TASK=5
printf '#!/bin/sh\necho "$@" >>"$CALLS"\n' >"$place/scontrol"

# run CODE SECONDS: a program that takes SECONDS and ends with CODE, or with 130 a little after SIGTERM.
run() {
  cat >"$place/sfumato" <<END
#!/bin/bash
echo "sfumato \$*" >>"\$CALLS"
trap 'sleep 0.3; exit 130' TERM
touch "$place/begun"
for ((i = 0; i < $2 * 20; ++i)); do sleep 0.05; done
exit $1
END
  chmod +x "$place/sfumato" "$place/scontrol"
  rm -f "$CALLS" "$place/begun"
  bash "$script_file" manifest.jsonl -o out &
  script=$!
}
expect() { # CODE CALLS
  code=0
  wait "$script" || code=$?
  [ "$code" -eq "$1" ] || { echo "exit code $code, not $1"; exit 1; }
  [ "$(cat "$CALLS")" = "$2" ] || { echo "called: $(cat "$CALLS")"; exit 1; }
}
begun="sfumato batch manifest.jsonl -o out --threads 5"

run 0 0
expect 0 "$begun"
run 3 0
expect 3 "$begun"
run 0 60
while [ ! -e "$place/begun" ]; do sleep 0.05; done
kill -TERM "$script"
expect 130 "$begun"$'\n'"requeue 7_3"
unset SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID
run 130 0
expect 130 "$begun"$'\n'"requeue 12"
