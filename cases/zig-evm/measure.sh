#!/bin/sh
# The benchmark script that the story's author asked for: measure.sh DEADWEIGHT EVM PROGRAMS ARCHIVE.
#
# Run by CI for each commit. It keeps the figures of the commit in an archive, so that the history says which commit changed
# them, and which row of the ledger. It prepares the input before it measures: a program that is timed inside of a pipeline
# waits for the others. And it fails if a figure is none of the program: if the report says that the timer measured
# another program, or if waiting is more than a tenth.
set -eu
deadweight=$1 evm=$2 programs=$3 archive=$4
report=$(mktemp)
trap 'rm -f "$report"' EXIT
for code in count-to-1000 count-to-16000; do
    "$deadweight" -q -r 20 --keep="evm $code" --archive "$archive" --export-json "$report" -- "$evm" "$programs/$code.hex" > /dev/null
    mv "$report" "$report.json"
    if "$deadweight" gate -q run="$report.json" 'run.hazard = "timed-the-producer"'; then
        echo "$code: the time is that of the program before it in a pipe" >&2
        exit 1
    fi
    "$deadweight" gate -q run="$report.json" 'run.wait-input < 10 %' || { echo "$code: it waits for its input" >&2; exit 1; }
    rm -f "$report.json"
done
"$deadweight" history "evm count-to-16000" --archive "$archive"
