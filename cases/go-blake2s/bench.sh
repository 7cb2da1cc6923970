#!/bin/sh
# The stages beside each other (`bench.sh stage`), or the package beside golang.org/x/crypto
# (`bench.sh by`), as benchstat's table. Ten alternating rounds, so that a slow moment of the machine
# affects all. Built in $OUT, with vectors where the compiler has them.
set -eu
benchstat=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

if GOEXPERIMENT=simd go list std >/dev/null 2>&1; then export GOEXPERIMENT=simd; fi
[ "$1" = stage ] || cd bench
go test -c -o "$OUT/$1.test" .
for round in 1 2 3 4 5 6 7 8 9 10; do
    "$OUT/$1.test" -test.run '^$' -test.bench . -test.cpu 1 -test.benchtime 20ms
done >"$OUT/$1.txt"
unset GOEXPERIMENT
go run "$benchstat" -col "/$1" "$OUT/$1.txt" | awk '
    /sec\/op|allocs\/op/ { print before; shown = 1 }
    shown { print }
    /^$/ { shown = 0 }
    { before = $0 }'
