#!/bin/bash
# tools/count_tests.awk on small build event files.
set -u
source tools/test_lib.sh CountTests
folder=$TEST_TMPDIR
events=$folder/events

count() { awk -v bazel_status="$1" -f tools/count_tests.awk "$events"; }
configured() { printf '{"id":{"targetConfigured":{"label":"%s"}},"configured":{"testSize":"SMALL"}}\n' "$1"; }
# result LABEL RUN SHARD XML
result() {
  printf '{"id":{"testResult":{"label":"%s","run":%d,"shard":%d,"attempt":1}},"testResult":{"testActionOutput":[{"name":"test.log","uri":"file:///x"},{"name":"test.xml","uri":"file://%s"}]}}\n' "$@"
}
summary() { printf '{"id":{"testSummary":{"label":"%s"}},"testSummary":{"overallStatus":"%s"}}\n' "$1" "$2"; }

cat >"$folder/good file.xml" <<'EOF'
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="0"><testsuite name="S" tests="4" failures="0">
    <testcase name="A" status="run" result="completed" classname="S" />
    <testcase name="B" status="run" result="skipped" classname="S">
      <skipped message="no &lt;GPU&gt;"><![CDATA[no GPU]]></skipped>
    </testcase>
    <testcase name="C" status="run" result="completed" classname="S" />
    <testcase name="D" status="notrun" result="suppressed" classname="S" />
</testsuite></testsuites>
EOF
cat >"$folder/bad.xml" <<'EOF'
<testsuites tests="2" failures="1">
    <testcase name="A" status="run" result="completed" classname="T" />
    <testcase name="B" status="run" result="completed" classname="T">
      <failure message="one" type=""><![CDATA[one]]></failure>
      <failure message="two" type=""><![CDATA[two]]></failure>
    </testcase>
</testsuites>
EOF

good=${folder}/good%20file.xml
{ configured //a:a; result //a:a 1 1 "$good"; summary //a:a PASSED; } >"$events"
expect CountsCases pass '2 0 1 1' count 0
{ configured //a:a; result //a:a 1 1 "$folder/bad.xml"; summary //a:a FAILED; } >"$events"
expect NamesFailedCase pass $'FAILED: //a:a T.B\n1 1 0 1' count 3
{ configured //a:a; result //a:a 1 1 "$good"; summary //a:a FAILED; } >"$events"
expect CrashAfterTests pass $'FAILED: //a:a (FAILED)\n2 1 1 1' count 3
{ configured //a:a; result //a:a 1 1 "$folder/none.xml"; summary //a:a TIMEOUT; } >"$events"
expect Timeout pass $'FAILED: //a:a (TIMEOUT)\n0 1 0 1' count 3
{ configured //a:a; configured //b:b; result //b:b 1 1 "$good"; summary //b:b PASSED; } >"$events"
expect NotBuilt pass $'FAILED: //a:a was not built\n2 1 1 2' count 1
skipped() { printf '{"id":{"targetCompleted":{"label":"%s"}},"aborted":{"reason":"SKIPPED","description":"Target %s build was skipped."}}\n' "$1" "$1"; }
{ configured //a:a; skipped //a:a; configured //b:b; result //b:b 1 1 "$good"; summary //b:b PASSED; } >"$events"
expect Incompatible pass $'2 0 2 2' count 0
{ configured //a:a; result //a:a 1 1 "$folder/bad.xml"; result //a:a 1 1 "$good"; summary //a:a FLAKY; } >"$events"
expect LastAttemptCounts pass '2 0 1 1' count 0
{ configured //a:a; result //a:a 1 1 "$good"; result //a:a 1 2 "$good"; summary //a:a PASSED; } >"$events"
expect ShardsAdd pass '4 0 2 1' count 0
: >"$events"
expect BazelFailedAlone pass $'FAILED: bazel test, with status 1\n0 1 0 0' count 1
expect NoTestsInTargets pass '0 0 0 0' count 4
finish
