#!/bin/bash
# `nao list targets` says the same of targets as rules/targets.bzl: each argument is a name and what is written.
set -u
source tools/test_lib.sh RuleTargets
listed=$(tools/nao list targets)
for row in "$@"; do
  name=${row%% *}
  text=$(grep -A1 "^$name " <<<"$listed" | tail -1)
  expect "WritesOf_$name" pass "writes ${row#* }." echo "$text."
done
finish
