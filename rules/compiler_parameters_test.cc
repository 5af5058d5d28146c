// The list of parameters that rules know is the one that the compiler has, and what the compiler reads is in it.
#include <set>
#include <string>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/machine.h"

namespace polynao {
namespace {

// Machines on which the compiler has no reason to leave a parameter out.
const std::vector<std::vector<std::string>> kMachines = {
    {}, {"gmem.dram=flat"}, {"gmem.dram=flat", "gmem.cache_reads=1"}};

const std::vector<cases::CaseText> kCases = {
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

// A build's error counts as well: it may be why a parameter was read.
absl::StatusOr<cases::BuiltProgram> Build(const cases::CaseText& text, const isa::Machine& machine,
                                          const std::string& impl) {
  ASSIGN_OR_RETURN(const Target target, cases::MakeTarget("diannao", &machine));
  ASSIGN_OR_RETURN(const kernels::OperatorCase c, cases::ParseCase(text, target));
  return cases::BuildProgram(c, target, impl);
}

// The names in a list of rules/compiler_parameters.bzl.
std::set<std::string> Listed(const std::string& list) {
  const auto text = ReadFile("rules/compiler_parameters.bzl");
  EXPECT_TRUE(text.ok()) << text.status();
  std::set<std::string> names;
  const size_t begin_of_list = text->find("\n" + list + " = [");
  const size_t end_of_list = text->find("\n]", begin_of_list);
  for (size_t at = text->find("\n    \"", begin_of_list); at < end_of_list;
       at = text->find("\n    \"", at + 1)) {
    const size_t begin = at + 6;
    names.insert(text->substr(begin, text->find('"', begin) - begin));
  }
  return names;
}

TEST(CompilerParameters, RulesHaveTheList) {
  const std::set<std::string> listed = Listed("COMPILER_PARAMETERS");
  std::set<std::string> read;
  for (const auto& overrides : kMachines) {
    const auto machine = cases::LoadMachine("mlu270", overrides);
    ASSERT_TRUE(machine.ok()) << machine.status();
    for (const auto& [name, value] : isa::CompiledFor(*machine)) read.insert(name);
  }
  EXPECT_EQ(listed, read);
}

// A sweep compiles again where what the compiler reads changes, also if a point gives only what it follows from.
TEST(CompilerParameters, RulesHaveWhatTheyFollowFrom) {
  std::set<std::string> followed;
  for (const auto& overrides : kMachines) {
    const auto base = cases::LoadMachine("mlu270", overrides);
    ASSERT_TRUE(base.ok()) << base.status();
    for (const auto& [name, value] : base->parameters) {
      for (const int64_t other : {value / 2, value + 1, value * 2}) {
        std::vector<std::string> changed = overrides;
        changed.push_back(StrCat(name, "=", other));
        const auto machine = cases::LoadMachine("mlu270", changed);
        if (!machine.ok() || isa::IsReadByCompiler(name)) continue;
        if (isa::CompiledFor(*machine) != isa::CompiledFor(*base)) followed.insert(name);
      }
    }
  }
  EXPECT_EQ(Listed("FOLLOWED_PARAMETERS"), followed);
}

TEST(CompilerParameters, WhatIsReadIsListed) {
  int programs = 0;
  for (const auto& overrides : kMachines) {
    const auto machine = cases::LoadMachine("mlu270", overrides);
    ASSERT_TRUE(machine.ok()) << machine.status();
    for (const cases::CaseText& text : kCases) {
      for (const char* impl : {"compiled", "library"}) {
        const isa::ParameterReads reads;
        const auto built = Build(text, *machine, impl);
        if (std::string(impl) == "compiled") {
          EXPECT_TRUE(built.ok()) << text.op << ": " << built.status();
        }
        programs += built.ok();
        for (const std::string& name : reads.names()) {
          EXPECT_TRUE(isa::IsReadByCompiler(name)) << text.op << ", " << impl << " reads " << name;
        }
      }
    }
  }
  EXPECT_GE(programs, 40);
}

// The same programs for machines that differ in parameters that are not listed.
TEST(CompilerParameters, OthersChangeNoProgram) {
  const auto base = cases::LoadMachine("mlu270", {});
  ASSERT_TRUE(base.ok()) << base.status();
  isa::Machine other = *base;
  int changed = 0;
  for (auto& [name, value] : other.parameters) {
    if (isa::IsReadByCompiler(name)) continue;
    value = value == 0 ? 1 : value * 2;
    ++changed;
  }
  EXPECT_GE(changed, 40);
  for (const cases::CaseText& text : kCases) {
    const auto a = Build(text, *base, "compiled");
    const auto b = Build(text, other, "compiled");
    ASSERT_TRUE(a.ok()) << a.status();
    ASSERT_TRUE(b.ok()) << b.status();
    EXPECT_EQ(a->program, b->program) << text.op << " " << text.shape;
  }
}

}  // namespace
}  // namespace polynao
