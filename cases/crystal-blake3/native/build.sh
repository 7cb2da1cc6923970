#!/bin/sh
# Builds OUT/libblake3.a of the official C and assembly files, which ship in the package blake3 of
# crates.io: cargo fetches it and checks its checksum (native/Cargo.lock).
set -eu

here=$(dirname "$0")
cat "$here/Cargo.lock" "$0" | cmp -s - "$OUT/libblake3.from" && [ -e "$OUT/libblake3.a" ] && exit 0
cargo vendor --quiet --locked --manifest-path "$here/Cargo.toml" "$OUT/vendor" >"$OUT/vendor.log" 2>&1 ||
    { echo "build: no package blake3, see $OUT/vendor.log" >&2; exit 1; }

source=$OUT/vendor/blake3/c
files="blake3 blake3_dispatch blake3_portable"
case $(uname -m) in
    x86_64)
        for set in sse2 sse41 avx2 avx512; do files="$files blake3_${set}_x86-64_unix"; done ;;
    aarch64) files="$files blake3_neon" ;;
esac
rm -f "$OUT/libblake3.a"
for file in $files; do
    input=$source/$file.c
    [ -e "$input" ] || input=$source/$file.S
    # Not more: from -O2 on, GCC 12 lets wide loads wait for the narrow stores of what they load, which
    # takes a tenth of a short hash. What works on long messages is assembly.
    cc -O1 -g -DNDEBUG -c "$input" -o "$OUT/$file.o"
    ar rcs "$OUT/libblake3.a" "$OUT/$file.o"
done
cat "$here/Cargo.lock" "$0" >"$OUT/libblake3.from"
