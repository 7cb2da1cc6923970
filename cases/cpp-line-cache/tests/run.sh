#!/bin/sh
# Runs all builds of the tests: `run.sh STORE OUT`.
set -eu
store=$1 out=$2
here=$(dirname "$0")

# The faulty store ends with its input.
rm -f "$out/faults.in" "$out/faults.port"
mkfifo "$out/faults.in"
python3 "$here/faults.py" <"$out/faults.in" >"$out/faults.port" &
exec 3>"$out/faults.in"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -s "$out/faults.port" ] && break
    sleep 0.1
done
faults=http://127.0.0.1:$(cat "$out/faults.port")

for build in value constructor overwrite asan tsan; do
    "$out/test-$build" "$store" "$faults" "$out/credentials"
done

# The query's own errors: one sentence and an exit code.
printf 'nobody:nothing\n' >"$out/wrong"
query="$out/query-overwrite --bucket lines"
told() {
    wanted=$1
    shift
    if "$@" >"$out/said" 2>&1; then
        echo "no error from: $*" >&2
        exit 1
    fi
    grep -q "$wanted" "$out/said" || { cat "$out/said" >&2; exit 1; }
}
told "query: forbidden" $query --endpoint "$store" --credentials "$out/wrong"
told "query: missing" $query --endpoint "$store" --credentials "$out/credentials" --table none
told "query: unreachable" $query --endpoint http://127.0.0.1:1
told "usage: query" $query --endpoint "$store" --threads none
echo "query: passed"
