#!/usr/bin/env bash
# Checks the cost of an event: the ratio of instructions of the full pipeline to those of the floor, counted
# by callgrind, so that neither the load nor the kind of the machine matters. A ratio more than a tenth above
# the one noted here fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Workload, and its ratio in hundredths when it was last noted. Lower them with what makes it faster.
noted="W1 67
W3 99
W5 78
W6 128
W7 298"

cargo bench --locked --quiet --no-run --bench instructions
program=$(cargo bench --locked --quiet --no-run --bench instructions --message-format json |
    sed -n 's/.*"name":"instructions".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)

count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
        --toggle-collect='instructions::measured*' "$program" "$1" "$2" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
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
exit "$failed"
