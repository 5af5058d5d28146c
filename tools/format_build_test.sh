#!/bin/bash
set -u
source tools/test_lib.sh FormatBuild

# formats NAME BEFORE AFTER: and formatting the result again changes nothing.
same() { diff <(printf '%b' "$2") <(awk -f tools/format_build.awk <(printf '%b' "$1")); }
formats() {
  expect "$1" pass '' same "$2" "$3"
  expect "$1Twice" pass '' same "$3" "$3"
}

formats Sorts 'deps = [\n    "@c//:c",\n    "//b/a",\n    ":z",\n    "//b:z"\n],\n' \
  'deps = [\n    ":z",\n    "//b:z",\n    "//b/a",\n    "@c//:c",\n],\n'
formats Duplicates 'srcs = [\n    "a.cc",\n    "a.cc",\n],\n' 'srcs = [\n    "a.cc",\n],\n'
formats KeepsArguments 'args = [\n    "b",\n    "a"\n],\n' 'args = [\n    "b",\n    "a",\n],\n'
formats KeepsCommented 'deps = [\n    "//b",\n    # Reason.\n    "//a",\n],\n' \
  'deps = [\n    "//b",\n    # Reason.\n    "//a",\n],\n'
formats Blanks 'a = 1  \n\n\n\nb = 2\n\n' 'a = 1\n\nb = 2\n'
finish
