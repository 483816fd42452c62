#!/bin/sh
# N servers behind HAProxy on this machine, until Ctrl-C:  deploy/haproxy/farm.sh N [options of sfumato serve]
# SFUMATO names the program, PORT the balancer's port.
set -eu
servers=${1:?how many servers?}
shift
sfumato=${SFUMATO:-sfumato} port=${PORT:-7860}
place=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null; wait; rm -rf "$place"' EXIT
trap 'exit 0' INT TERM
"$sfumato" serve --print-haproxy "$servers" --port "$port" >"$place/haproxy.cfg"
i=1
while [ $i -le "$servers" ]; do
  "$sfumato" serve --port $((port + i)) --agent-port $((port + 100 + i)) --id-prefix "s$i-" "$@" &
  pids="$pids $!"
  i=$((i + 1))
done
haproxy -f "$place/haproxy.cfg" &
pids="$pids $!"
wait
