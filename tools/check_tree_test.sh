#!/bin/bash
# Each rule of tools/check_tree, broken once in a small tree that is otherwise in order.
set -u
source tools/test_lib.sh CheckTree
check_tree=$PWD/tools/check_tree
tree=$TEST_TMPDIR/tree

# A tree without faults, in which each case then makes one.
fresh_tree() {
  rm -rf "$tree"
  mkdir -p "$tree/compiler/ir" "$tree/simulator"
  printf 'cc_library(\n    name = "a",\n    srcs = ["a.cc"],\n    hdrs = ["a.h"],\n)\n\ncc_test(\n    srcs = ["a_test.cc"],\n)\n' \
    >"$tree/compiler/ir/BUILD"
  printf '#ifndef COMPILER_IR_A_H_\n#define COMPILER_IR_A_H_\n#endif  // COMPILER_IR_A_H_\n' >"$tree/compiler/ir/a.h"
  printf '#include "compiler/ir/a.h"\n' | tee "$tree/compiler/ir/a.cc" >"$tree/compiler/ir/a_test.cc"
  printf 'namespace polynao::ir {\nstruct A {};\nnamespace {\nclass B {};\n}  // namespace\n}  // namespace polynao::ir\n' \
    >>"$tree/compiler/ir/a.cc"
  printf 'cc_library(\n    srcs = ["core.cc"],\n)\n' >"$tree/simulator/BUILD"
  printf '#include "compiler/ir/a.h"\n' >"$tree/simulator/core.cc"
  sed -i 's/"a.h"/"a.h", "pragmas.h"/' "$tree/compiler/ir/BUILD"
  printf '%s\n' '#ifndef COMPILER_IR_PRAGMAS_H_' '#define COMPILER_IR_PRAGMAS_H_' '#define KEYS(X) \' \
    '  X(kPad, "pad", "", "a nest", "It " "pads.",  \' '    "compiler/ir/a.cc",  "")' '#endif' >"$tree/compiler/ir/pragmas.h"
  printf 'auto key = pragma::kPad;\n' >>"$tree/compiler/ir/a.cc"
  printf 'See [the header](compiler/ir/a.h).\n' >"$tree/README.md"
}

# broken NAME REASON FILE TEXT: appends the text to the file and expects the complaint.
broken() {
  fresh_tree
  mkdir -p "$(dirname "$tree/$3")"
  printf '%b' "$4" >>"$tree/$3"
  expect "$1" fail "$2" "$check_tree" "$tree"
}

fresh_tree
expect CleanTreePasses pass '' "$check_tree" "$tree"
broken TrailingBlank 'README.md:2: blank at the end' README.md 'text \n'
broken Tab 'a.cc:9: tab' compiler/ir/a.cc '\tint x;\n'
broken ConflictMarker 'conflict marker' README.md '<<<<<<< ours\n'
broken NoNewlineAtEnd 'no newline at the end' README.md 'text'
long=$(printf 'ten chars %.0s' {1..13})
broken LongProse 'README.md:2: prose of more than 120' README.md "${long}on\n"
broken LongItem 'README.md:2: prose of more than 120' README.md "- ${long}on\n"
broken LongComment 'a.cc:9: prose of more than 120' compiler/ir/a.cc "  // ${long}on\n"
broken LongCommentOfScript 'BUILD:5: prose of more than 120' isa/BUILD "\n\n\n\n# ${long}on\n"
# Tables, code, listings, and 120 characters of several bytes each are as long as they have to be.
fresh_tree
printf '| %son |\n\n    %son\n\n```\n%son\n```\n%s\n' "$long" "$long" "$long" "$(printf '\xe2\x89\xa4%.0s' {1..120})" >>"$tree/README.md"
printf '// \n//   %son\n// A  %son\nint x;  // %son\n' "$long" "$long" "$long" | sed 's/ $//' >>"$tree/compiler/ir/a.cc"
expect LongListingsPass pass '' "$check_tree" "$tree"
broken LargeFile 'larger than 1 MB' data.txt "$(printf '%01000001d' 0)\n"
broken HomePath 'a path of one machine' compiler/ir/a.cc '// \057home/jo/x\n'
broken RootPath 'a path of one machine' README.md "Run '\057root/bin'.\n"
broken TestNotListed 'b_test.cc: not listed' compiler/ir/b_test.cc '// Empty.\n'
broken SourceNotListed 'b.cc: not listed' compiler/ir/b.cc '// Empty.\n'
broken NoBuildFile 'no BUILD file' isa/b.cc '// Empty.\n'
broken HeaderGuard 'header guard should be COMPILER_IR_B_H_' compiler/ir/b.h '#ifndef B_H\n#define B_H\n#endif\n'
broken TwoDefinitions 'polynao::ir::A is defined in' simulator/core.cc \
  'namespace polynao::ir {\nnamespace {\nstruct B {};\n}  // namespace\nstruct A {\n};\n}  // namespace polynao::ir\n'
broken CompilerIncludesSimulator 'does not depend on the simulator' compiler/ir/a.cc '#include "simulator/core.h"\n'
broken SimulatorIncludesCompiler 'does not depend on the compiler' simulator/core.cc '#include "compiler/poly/a.h"\n'
broken DependencyUpwards 'point the other way' simulator/core.cc '#include "kernels/a.h"\n'
broken PagesIncludeSimulator 'pages depends on base alone' pages/a.cc '#include "simulator/report.h"\n'
broken KernelsIncludeCases 'point the other way' kernels/a.cc '#include "cases/a.h"\n'
broken TeIncludesTopi 'kernels/te knows no' kernels/te/a.cc '#include "kernels/topi/a.h"\n'
broken TeIncludesOperators 'kernels/te knows no' kernels/te/a.cc '#include "kernels/operators.h"\n'
broken TopiIncludesOperators 'kernels/topi builds on' kernels/topi/a.cc '#include "kernels/operators.h"\n'
broken LibraryIncludesChoice 'the library shares nothing' kernels/library/a.cc '#include "kernels/te/card_choice.h"\n'
broken CasesIncludeTools 'point the other way' cases/a.cc '#include "tools/a.h"\n'
broken BenchmarksIncludeTools 'point the other way' benchmarks/a.cc '#include "tools/driver/a.h"\n'
broken BaseIncludesCompiler 'base depends on nothing' base/a.cc '#include "compiler/ir/a.h"\n'
broken PassIncludesPoly 'a pass knows neither' compiler/passes/a.cc '#include "compiler/poly/poly.h"\n'
broken PassIncludesRegistry 'a pass knows neither' compiler/passes/a.h '#include "compiler/registry/registry.h"\n'
broken PolyUsesLayerAbove 'a layer of compiler/poly' compiler/poly/order/a.h '#include "compiler/poly/arrange/a.h"\n'
broken PolyUsesTopFromBelow 'a layer of compiler/poly' compiler/poly/fuse/a.cc '#include "compiler/poly/a.h"\n'
broken PolyUsesTools 'a layer of compiler/poly' compiler/poly/a.cc '#include "compiler/poly/tools/a.h"\n'
broken ClockedIncludesEventDriven 'the clocked model shares nothing' simulator/reference/a.h '#include "simulator/report.h"\n'
broken ClockedIncludesSystemC 'the clocked model shares nothing' simulator/reference/a.cc '#include <systemc>\n'
broken ClockedIncludesEventDrivenDram 'the clocked model shares nothing' simulator/reference/a.cc '#include "simulator/dram/channel.h"\n'
broken PlainDramIncludesEventDriven 'the plain DRAM channel shares nothing' simulator/dram/naive_channel.cc '#include "simulator/dram/channel.h"\n'
broken EventDrivenIncludesClocked 'the event-driven model shares nothing' simulator/core.cc '#include "simulator/reference/card.h"\n'
broken PragmaUseNotListed 'no writer or reader of "pad"' simulator/core.cc 'auto key = pragma::kPad;\n'
broken PragmaFileWithoutUse 'core.cc does not use pragma::kEnd' compiler/ir/pragmas.h \
  ' X(kEnd, "end", "", "a nest", "It ends.", "simulator/core.cc", "")\n'
broken PragmaKeyAsString 'a pragma key as a string' simulator/core.cc 'auto s = c.Pragma("pad", {}, body);\n'
target_table='constexpr TargetFacts kTargets[] = {\n    {.name = "card",\n    {.name = "c",\n    {.name = "gpu",\n'
for text in 'target.name == "c"' 'flags.target != "gpu"' 'name == "card"'; do
  fresh_tree
  mkdir "$tree/compiler/target"
  printf 'cc_library(\n    srcs = ["targets.cc"],\n)\n' >"$tree/compiler/target/BUILD"
  printf '%b' "$target_table" >"$tree/compiler/target/targets.cc"
  printf 'bool is_row = row.name() == "c";\n' >>"$tree/simulator/core.cc"
  expect "OtherNamesOf: $text" pass '' "$check_tree" "$tree"
  printf 'bool is_one = %s;\n' "$text" >>"$tree/simulator/core.cc"
  expect "NameOfTarget: $text" fail 'core.cc:3: asks for the name of a target' "$check_tree" "$tree"
done
broken ShellSyntax 'does not parse' x.sh 'if\n'
broken ShellNotExecutable 'not executable' x.sh '#!/bin/bash\n'
broken DeadLink 'link to no/such.md' README.md '[x](no/such.md)\n'
finish
