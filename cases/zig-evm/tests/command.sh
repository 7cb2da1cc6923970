#!/bin/sh
# What the command says and how it exits, good input and bad: tests/command.sh EVM.
set -eu
evm=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# expect CODE TEXT ARGUMENTS...: exit code, and what output or errors contain; code on standard input.
expect() {
    code=$1 text=$2
    shift 2
    got=0
    "$evm" "$@" >"$dir/out" 2>&1 || got=$?
    if [ "$got" != "$code" ] || ! grep -qF -- "$text" "$dir/out"; then
        echo "evm $*: exit code $got, wanted $code and \"$text\":" >&2
        cat "$dir/out" >&2
        return 1
    fi
}

echo 5f | expect 0 'gas     2'
echo 0x6001600201 | expect 0 'gas     9' --trace
echo 0x6001600201 | expect 0 ' 0      4 ADD' --trace
printf '\140\001' | expect 0 'gas     3'
printf '' | expect 0 'gas     0'
echo 6001 | expect 1 'out of gas' --gas 2
echo fe | expect 1 'invalid instruction'
echo 5f5ffd | expect 1 'reverted'
echo 600 | expect 2 'odd number of digits'
echo 60zz | expect 2 'not all hex digits' --hex
echo 00 | expect 2 'too many' a b
echo 00 | expect 2 '`--gas` has a value' --gas plenty
echo 00 | expect 2 'FileNotFound' "$dir/none"
echo 00 | expect 2 'IsDir' "$dir"
echo 00 | expect 2 '--prestate' --value 1
# RIPEMD-160, the curve bn254, KZG: no answer is better than a wrong one.
for address in 03 06 07 08 0a; do
    echo "5f5f5f5f5f60${address}62fffffff1" | expect 2 'precompile that is not built in'
done
# The others answer, and the first address behind them is an account like any.
for address in 01 02 04 05 09 0b; do
    echo "5f5f5f5f5f60${address}62fffffff1" | expect 0 'status  success'
done
echo 6001600160016001 | expect 2 'bytes of --fixed-memory' --fixed-memory 100
echo 5f | expect 0 'run' --time
echo 5f | expect 0 'median' --repeat 3
echo 5f | expect 0 'Exit code' --help

echo '{' >"$dir/bad.json"
echo 00 | expect 2 'not JSON' --prestate "$dir/bad.json"
# Calls the account aa, which returns 7, and returns that.
cat >"$dir/two.json" <<'JSON'
{"alloc": {"0x00000000000000000000000000000000000000aa": {"balance": "0x1", "code": "0x60075f5260205ff3"}}}
JSON
echo 60205f5f5f5f60aa5af160205ff3 | expect 0 '0000000007' --prestate "$dir/two.json"
