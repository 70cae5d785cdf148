#!/bin/sh
# Measures ag-ui-stream, its Rust peers and the TypeScript reference on the same
# workloads, prints the tables as Markdown and draws the plot.
#
#     benches/peers/run.sh [PLOT.svg]
#
# Wants cargo, and node with npm. Takes five minutes or so, after building. Keep
# the machine quiet meanwhile.
set -eu

# Relative to where the script was called from, before leaving there.
plot=${1:-}
case $plot in
'' | /*) ;;
*) plot=$PWD/$plot ;;
esac
cd "$(dirname "$0")"

# On Zen 3 and 4 processors, glibc before 2.40 copies more than a few kilobytes
# with an instruction that can be ten times slower than the memory, depending on
# where the two buffers happen to lie (its bug 30994). That hits the peers which
# copy a message to give a snapshot of it. It is no fault of theirs, and makes
# the measurement depend on chance: have it copy the plain way everywhere.
# COPY=libc leaves it as it is.
if [ "${COPY:-plain}" = plain ]; then
    GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=0x40000000
    export GLIBC_TUNABLES
fi

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

cargo build --release --quiet
(cd reference && npm ci --no-audit --no-fund --silent)
peers() { cargo run --release --quiet -- "$@"; }

peers events "$results"
peers measure >"$results/rust.records"
node reference/run.mjs "$results" >"$results/node.records"
if [ -n "$plot" ]; then
    peers report --svg "$plot" "$results/rust.records" "$results/node.records"
else
    peers report "$results/rust.records" "$results/node.records"
fi
