#!/bin/sh
# A worker holds none of the server's sockets: a server that was killed leaves its port free for the next one.
#   sockets_test.sh SFUMATO
set -eu
place=$(mktemp -d)
server=
trap 'kill -9 $server 2>/dev/null || true; rm -rf "$place"' EXIT
export OMP_WAIT_POLICY=passive

start() { # waits until a worker is ready
  "$1" serve --port "$2" -t 1 2>"$place/log" &
  server=$!
  for _ in $(seq 600); do
    grep -qs '"worker ready"' "$place/log" && return
    kill -0 $server || break
    sleep 0.1
  done
  cat "$place/log"
  exit 1
}

start "$1" 0
port=$(sed -n 's/.*"port":\([0-9]*\).*/\1/p' "$place/log")
worker=$(pgrep -P $server)
[ "$(find "/proc/$worker/fd" -lname 'socket:*' | wc -l)" -eq 1 ] || { ls -l "/proc/$worker/fd"; exit 1; }
kill -9 $server
start "$1" "$port"
