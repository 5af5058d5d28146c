// A program depends on no parameter of the machine but those that were read to make it (isa::ParameterReads).
#include <string>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/machine.h"

namespace polynao::cases {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;

using Parameters = std::map<std::string, std::string>;

// Machines on which the compiler reads different parameters.
const std::vector<std::vector<std::string>> kMachines = {
    {}, {"gmem.dram=flat"}, {"gmem.dram=flat", "gmem.cache_reads=1"}};

const CaseText kGroups = {
    .op = "conv2d", .shape = "14x14x64,64x3x3x16", .dtype = "i8", .attributes = {"groups=4"}};

const std::vector<CaseText> kCases = {
    kGroups,
    {.op = "conv2d", .shape = "14x14x64,64x3x3x1", .dtype = "f16", .attributes = {"groups=64"}},
    {.op = "add", .shape = "9x41x65", .dtype = "f16"},
    {.op = "add", .shape = "63x65,65", .dtype = "f32"},
    {.op = "silu", .shape = "70000", .dtype = "f16"},
    {.op = "conv2d", .shape = "14x14x32,65x3x3x32", .dtype = "i8"},
    {.op = "conv2d", .shape = "14x14x64,64x3x3x64", .dtype = "i8", .untuned = true},
    {.op = "conv2d_bn", .shape = "14x14x64,64x1x1x64", .dtype = "i8"},
    {.op = "conv2d_pair", .shape = "14x14x64,32x1x1x64,32x3x3x32", .dtype = "i8"},
    {.op = "conv2d_batch_norm", .shape = "14x14x64,64x1x1x64", .dtype = "i8"},
    {.op = "matmul", .shape = "100x70,90x70", .dtype = "i8"},
    {.op = "max_pool2d", .shape = "14x14x64", .dtype = "f16"},
    {.op = "reduce_sum", .shape = "70x65", .dtype = "f32"},
    {.op = "pad", .shape = "7x9x64", .dtype = "f16"}};

// A program's code, or why there is none, which depends on what was read as well.
struct Built {
  std::string code;
  Parameters read;
  bool ok = false;
};

Built Build(const CaseText& text, const isa::Machine& machine, const std::string& impl) {
  const isa::ParameterReads reads;
  const auto build = [&]() -> absl::StatusOr<BuiltProgram> {
    ASSIGN_OR_RETURN(const Target target, MakeTarget("diannao", &machine));
    ASSIGN_OR_RETURN(const kernels::OperatorCase c, ParseCase(text, target));
    return BuildProgram(c, target, impl);
  };
  absl::StatusOr<BuiltProgram> built = build();
  Built result;
  result.read = reads.Values(machine);
  result.ok = built.ok();
  if (built.ok()) {
    built->program.machine.clear();
    result.code = isa::Serialize(built->program);
  } else {
    result.code = std::string(built.status().message());
  }
  return result;
}

// Smallest input: a schedule whose cost counts how long SMEM takes (grouped_convolution.cc).
TEST(ParameterReads, NoListCanLackOne) {
  const auto machine = LoadMachine("mlu270", {});
  ASSERT_TRUE(machine.ok()) << machine.status();
  const Built built = Build(kGroups, *machine, "compiled");
  EXPECT_TRUE(built.ok) << built.code;
  EXPECT_THAT(built.read, Contains(Key("smem.latency")));
  EXPECT_THAT(built.read, Contains(Key("move_dma.outstanding")));
  EXPECT_THAT(built.read, Not(Contains(Key("card.launch"))));
}

// All parameters that were not read have other values at once.
TEST(ParameterReads, OthersChangeNoProgram) {
  int programs = 0, changed = 0;
  for (const auto& overrides : kMachines) {
    const auto base = LoadMachine("mlu270", overrides);
    ASSERT_TRUE(base.ok()) << base.status();
    for (const CaseText& text : kCases) {
      for (const char* impl : {"compiled", "library"}) {
        const Built a = Build(text, *base, impl);
        if (std::string(impl) == "compiled") EXPECT_TRUE(a.ok) << text.op << ": " << a.code;
        isa::Machine other = *base;
        for (const auto& [name, value] : base->parameters()) {
          if (a.read.contains(name)) continue;
          other.Set(name, value == 0 ? 1 : value * 2);
          ++changed;
        }
        const Built b = Build(text, other, impl);
        EXPECT_EQ(a.code, b.code) << text.op << " " << text.shape << " " << impl;
        EXPECT_EQ(a.read, b.read) << text.op << " " << text.shape << " " << impl;
        programs += a.ok;
      }
    }
  }
  EXPECT_GE(programs, 45);
  EXPECT_GE(changed, 30 * programs);
}

// Each parameter by itself, with what follows from it (gmem.channel_bytes_per_kilocycle from card.clock_mhz): where no
// value that was read differs, the program is the same.
TEST(ParameterReads, EachThatChangesAProgramWasRead) {
  int changes = 0;
  for (const auto& overrides : kMachines) {
    const auto base = LoadMachine("mlu270", overrides);
    ASSERT_TRUE(base.ok()) << base.status();
    const bool is_usual = overrides.empty();
    for (size_t i = 0; i < (is_usual ? 3 : 1); ++i) {
      const Built a = Build(kCases[i], *base, "compiled");
      for (const auto& [name, value] : base->parameters()) {
        for (const int64_t other : {value / 2, value * 2 + 1}) {
          std::vector<std::string> changed = overrides;
          changed.push_back(StrCat(name, "=", other));
          const auto machine = LoadMachine("mlu270", changed);
          if (!machine.ok()) continue;
          const Built b = Build(kCases[i], *machine, "compiled");
          changes += a.code != b.code;
          bool same_read = true;
          for (const auto& [read, text] : a.read) same_read &= machine->Text(read) == text;
          if (same_read) EXPECT_EQ(a.code, b.code) << kCases[i].op << ": " << changed.back();
        }
      }
    }
  }
  EXPECT_GE(changes, 15);
}

}  // namespace
}  // namespace polynao::cases
