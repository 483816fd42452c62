#!/bin/sh
# Installs the Debian packages of tools/debian-packages.txt that are missing, and says which.
#   tools/install-packages.sh [check]      with "check": those that only the tests need, too
set -eu
here=$(dirname "$0")
wanted=$(sed 's/#.*//' "$here/debian-packages.txt" | awk -v check="${1:-}" 'NF == 1 || (NF == 2 && $2 == check) { print $1 }')
missing=
for package in $wanted; do
  case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true) in
    "install ok installed") ;;
    *) missing="$missing $package" ;;
  esac
done
[ -z "$missing" ] && exit 0
echo "Installing Debian packages:$missing" >&2
if [ "$(id -u)" -eq 0 ]; then sudo=; elif command -v sudo >/dev/null; then sudo=sudo; else
  echo "sfumato: please install these packages as root: apt-get install$missing" >&2
  exit 1
fi
$sudo apt-get update -qq >&2
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >&2
