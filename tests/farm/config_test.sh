#!/bin/sh
# HAProxy takes the configuration that `sfumato serve` prints.
#   config_test.sh SFUMATO
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
for balance in leastconn random; do
  "$1" serve --print-haproxy 3 --port 7860 --balance "$balance" >"$place/haproxy.cfg"
  haproxy -c -f "$place/haproxy.cfg" >"$place/said" 2>&1 || { cat "$place/said"; exit 1; }
  if grep -q WARNING "$place/said"; then cat "$place/said"; exit 1; fi
  grep -q 'return status 429 .*Retry-After.* if draws { queue(draw) ge 48 }' "$place/haproxy.cfg"
  grep -q 'bind 127.0.0.1:7960' "$place/haproxy.cfg"
  [ "$(grep -c 'maxconn 1$' "$place/haproxy.cfg")" -eq 3 ]
  [ "$(grep -c "balance $balance" "$place/haproxy.cfg")" -ge 1 ]
  grep -q 'use-server s3 if { path_beg /api/jobs/s3- }' "$place/haproxy.cfg"
  grep -q '127.0.0.1:7863 check agent-check agent-port 7963' "$place/haproxy.cfg"
done
