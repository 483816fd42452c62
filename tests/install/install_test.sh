#!/bin/sh
# Installs into a temporary folder, builds examples/ against it as a stranger would, and draws.
#   install_test.sh BUILD SOURCE [CXX_FLAGS]
set -eu
build=$1 source=$2 flags=${3:-}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
tiny=$source/tests/golden/pipelines/sd1

cmake --install "$build" --prefix "$place/root" >"$place/install.log"
cmake -S "$source/examples" -B "$place/examples" -DCMAKE_PREFIX_PATH="$place/root" -DCMAKE_CXX_FLAGS="$flags" \
  >"$place/configure.log"
cmake --build "$place/examples"

"$place/examples/draw" "a red apple" "$place/library.png" "$tiny"
"$place/root/bin/sfumato" "a red apple" -s 42 -m "$tiny" -o "$place/program.png"
cmp "$place/library.png" "$place/program.png"

[ -e "$source/models/emoji/model_index.json" ] || exit 0 # the embedded model is not trained yet
"$place/root/bin/sfumato" "a red apple" -s 42 --steps 1 -o "$place/embedded.png"
test -s "$place/embedded.png"
