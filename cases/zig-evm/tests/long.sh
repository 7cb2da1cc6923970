#!/bin/sh
# The long check, against go-ethereum: tests/long.sh EVM [COUNT]. Vectors one instruction at a time,
# then so many generated programs (10000) in both: a few minutes, and six of CPU time the first time.
set -eu
here=$(dirname "$0")
geth=$(sh "$here/geth.sh")
python3 "$here/vectors.py" "$1" "$(sh "$here/geth.sh" vectors)"
python3 "$here/differential.py" "$1" "$geth" "${2:-10000}"
