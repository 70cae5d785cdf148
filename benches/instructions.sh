#!/usr/bin/env bash
# Checks the cost of an event: the ratio of instructions of the full pipeline to those of the floor, counted
# by callgrind, so that neither the load nor the kind of the machine matters. A ratio more than a tenth above
# the one noted here fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Workload, and its ratio in hundredths when it was last noted. Lower them with what makes it faster.
noted="W1 71
W3 106
W5 81
W6 132
W7 289"

# The same for ways that begin with bytes, in pieces of 1 460: instructions over those of the byte floor.
noted_bytes="sse W1 95
sse W3 118
sse W6 137
json-lines W1 91
protobuf W1 146
protobuf W3 171
protobuf W6 250
gateway W1 110
gateway W3 124
gateway W6 134"

cargo bench --locked --quiet --all-features --no-run --bench instructions
program=$(cargo bench --locked --quiet --all-features --no-run --bench instructions --message-format json |
    sed -n 's/.*"name":"instructions".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)

count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
        --toggle-collect='instructions::measured*' "$program" "$@" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

failed=0
while read -r workload limit; do
    floor=$(count floor "$workload")
    ours=$(count ours "$workload")
    ratio=$((ours * 100 / floor))
    echo "$workload: floor $floor, full pipeline $ours instructions: ratio 0.01 x $ratio, noted $limit"
    if [ "$ratio" -gt $((limit * 11 / 10)) ]; then
        echo "$workload costs more than a tenth above what was noted"
        failed=1
    fi
done <<<"$noted"
while read -r way workload limit; do
    floor=$(count byte-floor "$workload" 1460)
    ours=$(count "$way" "$workload" 1460)
    ratio=$((ours * 100 / floor))
    echo "$way $workload: byte floor $floor, ours $ours instructions: ratio 0.01 x $ratio, noted $limit"
    if [ "$ratio" -gt $((limit * 11 / 10)) ]; then
        echo "$way $workload costs more than a tenth above what was noted"
        failed=1
    fi
done <<<"$noted_bytes"
exit "$failed"
