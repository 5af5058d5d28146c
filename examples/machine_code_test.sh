#!/bin/bash
# A bundle has PTX and machine code for a GPU. Usage: machine_code_test.sh BUNDLE ARCH
set -u
bundle=$1 arch=$2
failed=0
expect() {
  if ! grep -qa -- "$2" "$bundle/$1"; then
    echo "$1: expected '$2'"
    failed=1
  fi
}
expect kernel.ptx "^\.target $arch\$"
expect kernel.ptx "\.entry relu_kernel"
expect kernel.cubin "^.ELF"
expect bundle.json "\"arch\": \"$arch\""
expect bundle.json '"registers": [1-9]'
exit $failed
