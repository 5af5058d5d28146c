#!/bin/bash
# The study of two instruction tables: four programs by each, the added row in the one that it serves.
set -euo pipefail
cd "$TEST_SRCDIR/$TEST_WORKSPACE/examples"
[[ $(wc -l <rows_study.csv) == 9 ]] || { echo "expected 8 rows in rows_study.csv"; exit 1; }
cycles() { # cycles TABLE PROGRAM
  tr -d '\r' <rows_study.csv | awk -F, -v table="$1" -v program="$2" '$1 == table && $2 == program { print $3 }'
}
[[ $(cycles fma add_relu) -lt $(cycles no_rows add_relu) ]] || { echo "the row of add_relu is not taken"; exit 1; }
[[ $(cycles fma stage1) == "$(cycles no_rows stage1)" ]] || { echo "a convolution has other cycles"; exit 1; }
grep -q '<h2>Instruction tables</h2>' rows_study.html || { echo "rows_study.html compares nothing"; exit 1; }
