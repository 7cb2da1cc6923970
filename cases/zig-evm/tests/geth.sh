#!/bin/sh
# Prints the path of geth's `evm`, or with `vectors` that of its test vectors, building it if it is not there: six minutes of CPU time, once.
# Its sources, with the test vectors, come through the Go module proxy.
set -eu
version=v1.17.10
home=${XDG_CACHE_HOME:-$HOME/.cache}/deadweight-cases/geth-${version#v}
if [ ! -x "$home/evm" ]; then
    echo "building geth's evm $version into $home" >&2
    GOBIN=$home nice -n 15 go install -p 1 "github.com/ethereum/go-ethereum/cmd/evm@$version" >&2
fi
case ${1:-evm} in
evm) echo "$home/evm" ;;
vectors) echo "$(go env GOMODCACHE)/github.com/ethereum/go-ethereum@$version/core/vm/testdata" ;;
esac
