#!/bin/bash
# The study has all its points, in all three files.
set -euo pipefail
points=$1
cd "$TEST_SRCDIR/$TEST_WORKSPACE/examples"
file=$(ls ./*study.csv)
study=${file%.csv}
rows=$(($(wc -l < "$study.csv") - 1))
[[ $rows == $((3 * points)) ]] || { echo "expected $((3 * points)) rows in $study.csv, found $rows"; exit 1; }
[[ $(grep -c '"point"' "$study.json") == "$rows" ]] || { echo "$study.json has other rows"; exit 1; }
grep -q '<script type="application/json" id="data">' "$study.html" || { echo "$study.html has no data"; exit 1; }
# The smallest NMEM is infeasible or slower, and says so: no row is empty.
if grep -vq '[0-9"]' <(tail -n +2 "$study.csv"); then echo "an empty row"; exit 1; fi
