#!/bin/bash
# A test binary that runs nothing must fail, unless the caller chose an empty part of it.
set -u
source tools/test_lib.sh TestMain
no_tests=$1 no_tests_systemc=$2 no_main_systemc=$3 disabled_tests=$4 smoke_test=$5

expect NoTestsFails fail 'contains no test' "$no_tests"
expect NoTestsFailsBesideSystemC fail 'contains no test' "$no_tests_systemc"
expect SystemCsOwnMainFails fail 'nothing was run' "$no_main_systemc"
expect DisabledTestsFail fail 'are disabled' "$disabled_tests"
expect DisabledTestsRunOnDemand pass '1 test' "$disabled_tests" --gtest_also_run_disabled_tests
expect TestsRunBesideSystemC pass 'PASSED' "$smoke_test"
expect EmptyFilterPasses pass '0 tests' "$smoke_test" --gtest_filter=No.Such
expect EmptyShardPasses pass '0 tests' \
  env GTEST_TOTAL_SHARDS=100 GTEST_SHARD_INDEX=99 "$smoke_test"
expect ListingPasses pass 'SmokeTest' "$smoke_test" --gtest_list_tests
finish
