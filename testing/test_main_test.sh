#!/bin/bash
# A test binary that runs nothing must fail, unless the caller chose an empty part of it.
# Writes its cases to $XML_OUTPUT_FILE as GoogleTest does, so that they are counted one by one.
set -u
no_tests=$1 no_tests_systemc=$2 no_main_systemc=$3 disabled_tests=$4 smoke_test=$5
xml_file=${XML_OUTPUT_FILE:-/dev/null}
unset XML_OUTPUT_FILE GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX GTEST_SHARD_STATUS_FILE GTEST_FILTER
cases='' failures=0 count=0

# expect NAME zero|nonzero TEXT COMMAND...: the exit status, and a text the output must contain.
expect() {
  local name=$1 want=$2 text=$3 output status ok=1
  shift 3
  output=$("$@" 2>&1)
  status=$?
  case $want in
    zero) [[ $status -eq 0 ]] || ok=0 ;;
    nonzero) [[ $status -ne 0 ]] || ok=0 ;;
  esac
  [[ $output == *"$text"* ]] || ok=0
  count=$((count + 1))
  if [[ $ok -eq 1 ]]; then
    cases+="    <testcase name=\"$name\" status=\"run\" classname=\"TestMain\" />"$'\n'
    return
  fi
  failures=$((failures + 1))
  cases+="    <testcase name=\"$name\" status=\"run\" classname=\"TestMain\"><failure message=\"exit status $status\"></failure></testcase>"$'\n'
  echo "$name: expected exit status $want and the text '$text'; got $status and:"
  echo "$output"
}

expect NoTestsFails nonzero 'contains no test' "./$no_tests"
expect NoTestsFailsBesideSystemC nonzero 'contains no test' "./$no_tests_systemc"
expect SystemCsOwnMainFails nonzero 'nothing was run' "./$no_main_systemc"
expect DisabledTestsFail nonzero 'are disabled' "./$disabled_tests"
expect DisabledTestsRunOnDemand zero '1 test' "./$disabled_tests" --gtest_also_run_disabled_tests
expect TestsRunBesideSystemC zero 'PASSED' "./$smoke_test"
expect EmptyFilterPasses zero '0 tests' "./$smoke_test" --gtest_filter=No.Such
expect EmptyShardPasses zero '0 tests' \
  env GTEST_TOTAL_SHARDS=100 GTEST_SHARD_INDEX=99 "./$smoke_test"
expect ListingPasses zero 'SmokeTest' "./$smoke_test" --gtest_list_tests

cat > "$xml_file" <<EOF
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="$count" failures="$failures" disabled="0" errors="0" name="AllTests">
  <testsuite name="TestMain" tests="$count" failures="$failures" disabled="0" errors="0">
$cases  </testsuite>
</testsuites>
EOF
[[ $failures -eq 0 ]]
