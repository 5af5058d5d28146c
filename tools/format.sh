#!/bin/bash
# Formats all C++ files with clang-format 19 and all BUILD files with format_build.awk.
#   tools/format.sh           rewrites them
#   tools/format.sh --check   changes nothing; names the files that would change and fails if there are any
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
check=${1:-}

# files PATTERN...: tracked and new files, as Git sees them, or all files where this is no Git checkout.
files() {
  if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard -- "$@" | while IFS= read -rd '' file; do
      [[ -f $file && ! -L $file ]] && printf '%s\0' "$file"
    done
  else
    local names=() pattern
    for pattern in "$@"; do names+=(-o -name "${pattern##*/}"); done
    find . \( -path ./.git -o -path './bazel-*' \) -prune -o -type f \( "${names[@]:1}" \) -print0
  fi
}

status=0
if [[ $check == --check ]]; then
  files '*.h' '*.cc' '*.cu' '*.cuh' | xargs -0 -r -P "$(nproc)" -n 16 \
    clang-format-19 --dry-run -Werror --ferror-limit=1 || status=1
else
  files '*.h' '*.cc' '*.cu' '*.cuh' | xargs -0 -r -P "$(nproc)" -n 16 clang-format-19 -i || status=1
fi

formatted=$(mktemp) || exit 1
trap 'rm -f "$formatted"' EXIT
while IFS= read -rd '' file; do
  awk -f tools/format_build.awk "$file" >"$formatted" || exit 1
  cmp -s "$formatted" "$file" && continue
  if [[ $check == --check ]]; then
    diff -u --label "$file" --label "$file, formatted" "$file" "$formatted"
    status=1
  else
    cat "$formatted" >"$file"
  fi
done < <(files BUILD '*/BUILD' WORKSPACE '*.bzl')

[[ $status -eq 0 || $check != --check ]] || echo "Run './nao format'."
exit "$status"
