# For tests written in Bash: counts cases and writes them to $XML_OUTPUT_FILE as GoogleTest does.
#
#   source tools/test_lib.sh SUITE
#   expect NAME pass|fail TEXT COMMAND...   runs the command; its exit status, and a text its output contains
#   finish                                  last line of the test

test_suite=$1
test_xml=${XML_OUTPUT_FILE:-/dev/null}
test_cases='' test_count=0 test_failures=0
# Programs under test must not write to this test's own files.
unset XML_OUTPUT_FILE GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX GTEST_SHARD_STATUS_FILE GTEST_FILTER

expect() {
  local name=$1 want=$2 text=$3 output status outcome=fail
  shift 3
  output=$("$@" 2>&1 </dev/null)
  status=$?
  [[ $status -ne 0 ]] || outcome=pass
  test_count=$((test_count + 1))
  if [[ $outcome == "$want" && $output == *"$text"* ]]; then
    test_cases+="    <testcase name=\"$name\" status=\"run\" classname=\"$test_suite\" />"$'\n'
    return
  fi
  test_failures=$((test_failures + 1))
  test_cases+="    <testcase name=\"$name\" status=\"run\" classname=\"$test_suite\">"
  test_cases+="<failure message=\"exit status $status\"></failure></testcase>"$'\n'
  printf '%s: expected %s and the text "%s"; got exit status %d and:\n%s\n' "$name" "$want" "$text" "$status" "$output"
}

finish() {
  cat >"$test_xml" <<EOF
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="$test_count" failures="$test_failures" disabled="0" errors="0" name="AllTests">
  <testsuite name="$test_suite" tests="$test_count" failures="$test_failures" disabled="0" errors="0">
$test_cases  </testsuite>
</testsuites>
EOF
  [[ $test_count -gt 0 && $test_failures -eq 0 ]]
}
