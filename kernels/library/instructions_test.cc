// What the compiler emits for an operator, its hand-written kernels use too: a walk over the instructions of
// the programs of both. It keeps the comparison of the two fair when an instruction is added to the table.

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/registry/registry.h"
#include "gtest/gtest.h"
#include "kernels/library/expert.h"
#include "kernels/library/library.h"
#include "testing/machine.h"

namespace polynao::kernels {
namespace {

using Mnemonics = std::set<std::string>;

// Instructions that the compiler emits for a class of operators and that a kernel does without, with the
// reason. The test fails for a line that nothing needs any more.
struct Exception {
  std::string_view operators;  // "conv2d" or "elementwise"
  std::string_view impl;
  std::string_view mnemonic;
  std::string_view reason;
};
constexpr std::string_view kOneSync =
    "a step waits for its load, store and computation at once, which one sync of all queues does";
constexpr std::string_view kLoops = "loops and conditions are arranged so that others do";
constexpr std::string_view kRotates =
    "rotates the tiles of clusters, for which the expert's kernel is";
// A debt, not a reason: docs/mapping.md says so beside what the compiler gains by it.
constexpr char kNotYet[] =
    "images and results by way of SMEM: hand-written kernels have to learn it";
// Another one.
constexpr char kParts[] = "filters that come part by part: hand-written kernels have to learn it";
constexpr Exception kExceptions[] = {
    {"conv2d", "library", "conv_acc.i8", kParts},
    {"conv2d", "library", "conv_acc.i16", kParts},
    {"conv2d", "library", "fill.i32", kParts},
    {"conv2d", "expert", "fill.i32", kParts},
    {"conv2d", "library", "memcpy.f16.gmem.smem.async", kNotYet},
    {"conv2d", "library", "memcpy.f16.smem.nmem.async", kNotYet},
    {"conv2d", "library", "memcpy3d.i8.nmem.smem.async", kNotYet},
    {"conv2d", "library", "memcpy3d.i16.nmem.smem.async", kNotYet},
    {"conv2d", "expert", "memcpy3d.i8.nmem.smem.async", kNotYet},
    {"conv2d", "expert", "memcpy3d.i16.nmem.smem.async", kNotYet},
    {"conv2d", "expert", "memcpy.f16.gmem.smem.async", kNotYet},
    {"conv2d", "expert", "memcpy.f16.smem.nmem.async", kNotYet},
    {"conv2d", "library", "fill.i8", "the host puts the zeros around the image"},
    {"conv2d", "library", "fill.i16", "the host puts the zeros around the image"},
    {"conv2d", "library", "memcpy.f16.gmem.nmem.async", "memcpy3d of one plane is the same copy"},
    {"conv2d", "expert", "memcpy.f16.gmem.nmem.async", "memcpy3d of one plane is the same copy"},
    {"conv2d", "library", "sync.compute", kOneSync},
    {"conv2d", "library", "sync.io", kOneSync},
    {"elementwise", "library", "sync.compute", kOneSync},
    {"elementwise", "library", "sync.io", kOneSync},
    {"elementwise", "expert", "sync", "no step waits for more than one queue"},
    {"conv2d", "library", "max", kLoops},
    {"conv2d", "library", "shr", kRotates},
    {"conv2d", "library", "or", kLoops},
    {"conv2d", "expert", "or", kLoops},
    {"conv2d", "library", "sle", kLoops},
    {"conv2d", "expert", "sle", kLoops},
    {"conv2d", "library", "slt", kLoops},
    {"elementwise", "library", "and", kRotates},
    {"elementwise", "library", "shr", kRotates},
    {"elementwise", "library", "slt", kLoops},
    {"elementwise", "library", "beq", kLoops},
    {"elementwise", "library", "jump", kLoops},
    {"elementwise", "expert", "beq", kLoops},
    {"elementwise", "expert", "jump", kLoops},
};

struct Class {
  const char* name;
  std::vector<OperatorCase> cases;
};

OperatorCase Case(const char* op, const char* shapes, ir::Type type,
                  std::map<std::string, std::string, std::less<>> attributes = {}) {
  OperatorCase c = {.op = op, .dtype = type, .attributes = std::move(attributes)};
  EXPECT_TRUE(ParseShapes(shapes, c).ok()) << shapes;
  return c;
}

// The operators that have hand-written kernels, in shapes that tiles divide and that they do not.
std::vector<Class> Classes() {
  Class conv = {.name = "conv2d", .cases = {}};
  for (const ir::Type type : {ir::Type::kI8, ir::Type::kI16}) {
    for (const char* shapes : {"56x56x64,64x3x3x64", "55x55x128,32x3x3x128", "7x7x512,512x3x3x512",
                               "9x11x6,7x3x3x6", "14x14x64,200x1x1x64"}) {
      conv.cases.push_back(Case("conv2d", shapes, type));
    }
    conv.cases.push_back(Case("conv2d", "33x35x16,40x3x5x16", type, {{"stride", "2"}}));
  }
  Class elementwise = {.name = "elementwise", .cases = {}};
  for (const char* op : {"add", "sub", "mul", "div", "max", "min", "adds", "subs", "muls", "maxs",
                         "mins", "relu", "abs", "exp", "sigmoid", "tanh"}) {
    for (const char* shape : {"1x5", "127x27x27", "255x55x55"}) {
      elementwise.cases.push_back(Case(op, shape, ir::Type::kF16));
    }
  }
  for (const char* op : {"add", "muls"}) {
    elementwise.cases.push_back(Case(op, "127x27x27", ir::Type::kI8));
    elementwise.cases.push_back(Case(op, "127x27x27", ir::Type::kF32));
  }
  return {conv, elementwise};
}

void Collect(const isa::Program& program, Mnemonics& mnemonics) {
  for (const isa::Word& word : program.code) {
    const auto decoded = isa::DianNao().Decode(word);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    mnemonics.insert(decoded->instruction->mnemonic);
  }
}

isa::Program Compile(const OperatorCase& c, const Target& target) {
  absl::StatusOr<ir::Function> function = (*FindOperator(c))->build(c, target);
  EXPECT_TRUE(function.ok()) << function.status();
  if (!function.ok()) return {};
  const auto passes = PipelineFor(target);
  EXPECT_TRUE(RunPasses(*function, *passes, target, {.verify = false}).ok());
  absl::StatusOr<isa::Program> program = GenerateDianNao(*function, target);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : isa::Program();
}

// The instructions of a kernel; of the expert's kernels, of all plans together.
Mnemonics HandWritten(const std::string& impl, const OperatorCase& c, const Target& target) {
  Mnemonics mnemonics;
  const absl::StatusOr<HandWrittenKernel> kernel =
      impl == "library" ? FindLibraryKernel(c, target)
                        : FindExpertKernel(c, target, [&](const HandWrittenKernel& plan) {
                            Collect(plan.program, mnemonics);
                            return absl::StatusOr<int64_t>(1);
                          });
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (kernel.ok()) Collect(kernel->program, mnemonics);
  return mnemonics;
}

TEST(InstructionsTest, WhatTheCompilerEmitsHandWrittenKernelsUse) {
  const isa::Machine machine = TestMachine("mlu270");
  Target target;
  target.name = "diannao";
  target.instructions = &isa::DianNao();
  target.machine = &machine;
  std::set<const Exception*> needed;
  for (const Class& operators : Classes()) {
    for (const std::string impl : {"library", "expert"}) {
      // By operator and type.
      std::map<std::string, Mnemonics> compiled, written;
      for (const OperatorCase& c : operators.cases) {
        const std::string key = absl::StrCat(c.op, ".", std::string(ir::TypeName(c.dtype)));
        Collect(Compile(c, target), compiled[key]);
        written[key].merge(HandWritten(impl, c, target));
      }
      for (const auto& [key, mnemonics] : compiled) {
        for (const std::string& mnemonic : mnemonics) {
          if (written[key].contains(mnemonic)) continue;
          const auto* exception =
              std::find_if(std::begin(kExceptions), std::end(kExceptions), [&](const Exception& e) {
                return operators.name == e.operators && impl == e.impl && mnemonic == e.mnemonic;
              });
          EXPECT_TRUE(exception != std::end(kExceptions))
              << "the compiler emits " << mnemonic << " for " << key << ", the " << impl
              << "'s kernel does without: use it there, or say in kExceptions why it does not help";
          if (exception != std::end(kExceptions)) needed.insert(exception);
        }
      }
    }
  }
  for (const Exception& exception : kExceptions) {
    EXPECT_TRUE(needed.contains(&exception))
        << "kExceptions: nothing needs the line of " << exception.mnemonic << " for "
        << exception.operators << " of the " << exception.impl << " any more";
  }
}

}  // namespace
}  // namespace polynao::kernels
