#!/bin/bash
# When ./nao takes its driver for stale: has_newer_source of it, in a checkout of git and in a folder that is none.
set -u
source tools/test_lib.sh NewerSource
source /dev/stdin <<<"$(sed -n '/^has_newer_source()/,/^}/p' nao)"
stamp=$TEST_TMPDIR/stamp
old='2020-01-01' new='2030-01-01'

# checkout NAME: a folder with one source, older than the stamp.
checkout() {
  root=$TEST_TMPDIR/$1
  mkdir -p "$root/nao-demo"
  touch -d "$old" "$root/a source.cc" "$root/nao-demo" "$root"
  touch "$stamp"
}
kinds='git plain'
if ! command -v git >/dev/null; then
  echo "SKIPPED: a checkout of git needs git"
  kinds=plain
fi
for kind in $kinds; do
  checkout $kind
  if [[ $kind == git ]]; then
    git -C "$root" init -q && git -C "$root" add -A
  fi
  expect "${kind}_unchanged" fail "" has_newer_source "$stamp"
  touch -d "$new" "$root/nao-demo/trace.json"
  touch -d "$old" "$root"
  expect "${kind}_output_of_the_demo" fail "" has_newer_source "$stamp"
  touch -d "$new" "$root/a source.cc"
  expect "${kind}_changed" pass "" has_newer_source "$stamp"
done
if [[ $kinds == git* ]]; then
  root=$TEST_TMPDIR/git
  touch -d "$old" "$root/a source.cc"
  touch -d "$new" "$root/result.json"
  expect "what_a_command_wrote" fail "" has_newer_source "$stamp"
  rm "$root/a source.cc"
  expect "removed" pass "" has_newer_source "$stamp"
fi
finish
