#!/bin/sh
# Four ranks under mpirun, one of them killed midway, started again: the same files, bit for bit, as one rank alone.
#   ranks_test.sh SFUMATO MODEL [PICTURES]
set -eu
sfumato=$1 model=$2 pictures=${3:-100}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export OMP_WAIT_POLICY=passive OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

i=0
while [ $i -lt $((pictures / 2)) ]; do
  echo "{\"prompt\": \"a red apple $i\", \"batch_count\": 2}"
  i=$((i + 1))
done >"$place/manifest.jsonl"
draw() { # OUT [LAUNCHER...]
  out=$1 && shift
  "$@" "$sfumato" batch "$place/manifest.jsonl" -o "$out" -m "$model" --steps 4 -t 1 --quiet
}

draw "$place/alone"
# -TERM to the launcher would drain; -9 to a rank is a machine that died, and takes mpirun with it.
draw "$place/ranks" mpirun --oversubscribe -q -n 4 >"$place/first.log" 2>&1 &
launcher=$!
until [ -n "$(find "$place/ranks" -name '*.png' 2>/dev/null | head -n 1)" ]; do sleep 0.02; done
kill -9 "$(pgrep -P "$(pgrep -P $launcher -x mpirun || echo $launcher)" -x sfumato | head -n 1)"
wait $launcher && { echo "expected mpirun to fail with its rank"; exit 1; }
done_before=$(find "$place/ranks" -name '*.png' | wc -l)
[ "$done_before" -lt "$pictures" ] || { echo "the rank died too late: nothing was left to do"; exit 1; }
draw "$place/ranks" mpirun --oversubscribe -q -n 4

[ "$(find "$place/alone" -name '*.png' | wc -l)" -eq "$pictures" ]
(cd "$place/alone" && find . -name '*.png' -exec sha256sum {} + | sort) >"$place/alone.sums"
(cd "$place/ranks" && find . -type f ! -name 'metadata-*' -exec sha256sum {} + | sort) >"$place/ranks.sums"
cmp "$place/alone.sums" "$place/ranks.sums"
cat "$place"/ranks/metadata-*-of-00004.jsonl | sort >"$place/ranks.jsonl"
sort "$place"/alone/metadata-00000-of-00001.jsonl | cmp - "$place/ranks.jsonl"
echo "$pictures pictures, $done_before of them before the kill: equal"
