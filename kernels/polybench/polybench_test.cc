#include "kernels/polybench/polybench.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/text.h"
#include "compiler/codegen/c/run_c.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/agreement.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::kernels {
namespace {

constexpr uint64_t kSeed = 1;

const std::vector<ir::Function>& Functions() {
  static const auto& functions = *[] {
    auto* result = new std::vector<ir::Function>();
    for (const PolyBenchKernel& kernel : PolyBenchKernels()) {
      absl::StatusOr<ir::Function> function = PolyBenchFunction(kernel);
      EXPECT_TRUE(function.ok()) << function.status();
      result->push_back(*std::move(function));
    }
    return result;
  }();
  return functions;
}

// Values for the kernel's integer parameters: all equal, and all different, around edges and primes. The first is the
// largest, because gramschmidt wants at least as many rows as columns.
std::vector<std::vector<int64_t>> EdgeSizes(const PolyBenchKernel& kernel,
                                            const ir::Function& function) {
  std::vector<std::vector<int64_t>> result;
  const size_t count = kernel.parameters.size();
  for (const int64_t size : {0, 1, 2, 3, 7, 11}) {
    if (size == 0 && function.FindAttribute("assert") != nullptr) continue;
    for (const int64_t step : {0, 2}) {
      std::vector<int64_t>& sizes = result.emplace_back();
      for (size_t i = 0; i < count; ++i) sizes.push_back(size + step * (count - 1 - i));
      if (count == 1) break;
    }
  }
  return result;
}

// Runs function number `index` on arguments.
using Runner = std::function<absl::Status(size_t index, absl::Span<const ir::Argument>)>;

absl::Status Interpret(size_t index, absl::Span<const ir::Argument> arguments) {
  return ir::Interpret(Functions()[index], {arguments.begin(), arguments.end()});
}

// Runs all kernels on all edge sizes by `run` and in the interpreter, which must agree bit for bit. Back ends may
// call another exp than the interpreter, so deriche gets its tolerance.
void ExpectAgreesWithInterpreter(const Runner& run) {
  for (size_t k = 0; k < Functions().size(); ++k) {
    const PolyBenchKernel& kernel = PolyBenchKernels()[k];
    const ir::Function& function = Functions()[k];
    for (const std::vector<int64_t>& sizes : EdgeSizes(kernel, function)) {
      SCOPED_TRACE(StrCat(kernel.name, " ", testing::PrintToString(sizes)));
      auto arguments = PolyBenchArguments(kernel, function, sizes, kSeed);
      ASSERT_TRUE(arguments.ok()) << arguments.status();
      const ir::RandomArguments expected(*arguments);
      ASSERT_EQ(Interpret(k, expected.arguments()), absl::OkStatus());
      ASSERT_EQ(run(k, arguments->arguments()), absl::OkStatus());
      EXPECT_EQ(ir::FindDisagreement(function, *arguments, expected,
                                     kernel.name == "deriche" ? kernel.tolerance : 0),
                "");
    }
  }
}

TEST(PolyBenchTest, HasThirtyKernelsInOrder) {
  const absl::Span<const PolyBenchKernel> kernels = PolyBenchKernels();
  ASSERT_EQ(kernels.size(), 30);
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (i > 0) EXPECT_LT(kernels[i - 1].name, kernels[i].name);
    EXPECT_EQ(*FindPolyBenchKernel(kernels[i].name), &kernels[i]);
    for (const std::vector<int64_t>& sizes : kernels[i].sizes) {
      EXPECT_EQ(sizes.size(), kernels[i].parameters.size()) << kernels[i].name;
    }
  }
}

TEST(PolyBenchTest, TellsWhatThereIs) {
  EXPECT_THAT(FindPolyBenchKernel("gem").status().message(),
              testing::HasSubstr("no kernel 'gem': expected one of 2mm, 3mm, adi"));
  EXPECT_EQ(FindPolyBenchSize("large").status().message(),
            "no data set 'large': expected MINI, SMALL, MEDIUM, LARGE or EXTRALARGE");
  EXPECT_EQ(*FindPolyBenchSize("LARGE"), 3);
}

// The parameters of the table are those of the .nir files.
TEST(PolyBenchTest, TableNamesAllScalarParameters) {
  for (size_t k = 0; k < Functions().size(); ++k) {
    const PolyBenchKernel& kernel = PolyBenchKernels()[k];
    std::vector<std::string> integers, floats;
    for (const ir::Param& param : Functions()[k].params) {
      if (!param.var) continue;
      (ir::IsFloat(param.var.type()) ? floats : integers).emplace_back(param.name());
    }
    EXPECT_THAT(kernel.parameters, testing::UnorderedElementsAreArray(integers)) << kernel.name;
    std::vector<std::string> scalars;
    for (const auto& [name, value] : kernel.scalars) scalars.emplace_back(name);
    EXPECT_THAT(scalars, testing::UnorderedElementsAreArray(floats)) << kernel.name;
  }
}

TEST(PolyBenchTest, InterpreterAgreesWithReferences) {
  for (size_t k = 0; k < Functions().size(); ++k) {
    const PolyBenchKernel& kernel = PolyBenchKernels()[k];
    const ir::Function& function = Functions()[k];
    std::vector<std::vector<int64_t>> all = EdgeSizes(kernel, function);
    all.push_back(kernel.sizes[0]);
    for (const std::vector<int64_t>& sizes : all) {
      SCOPED_TRACE(StrCat(kernel.name, " ", testing::PrintToString(sizes)));
      auto arguments = PolyBenchArguments(kernel, function, sizes, kSeed);
      ASSERT_TRUE(arguments.ok()) << arguments.status();
      const ir::RandomArguments before(*arguments);
      const ir::RandomArguments expected(*arguments);
      kernel.reference(expected.arguments());
      ASSERT_EQ(Interpret(k, arguments->arguments()), absl::OkStatus());
      EXPECT_EQ(ir::FindDisagreement(function, *arguments, expected, kernel.tolerance), "");
      // The comparison can fail: the kernel has changed something.
      if (sizes == kernel.sizes[0]) {
        EXPECT_NE(ir::FindDisagreement(function, before, expected, kernel.tolerance), "");
      }
    }
  }
}

TEST(PolyBenchTest, CpuAgreesWithInterpreter) {
  std::vector<std::unique_ptr<codegen::CompiledFunction>> compiled;
  for (const ir::Function& function : Functions()) {
    auto one = codegen::Compile(function);
    ASSERT_TRUE(one.ok()) << one.status();
    compiled.push_back(*std::move(one));
  }
  ExpectAgreesWithInterpreter([&](size_t index, absl::Span<const ir::Argument> arguments) {
    return compiled[index]->Run(arguments);
  });
}

TEST(PolyBenchTest, CAgreesWithInterpreter) {
  auto compiled = codegen::CompiledC::Create(Functions(), {.optimization_level = 1});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ExpectAgreesWithInterpreter([&](size_t index, absl::Span<const ir::Argument> arguments) {
    return (*compiled)->Run(index, arguments);
  });
}

TEST(PolyBenchTest, CudaAgreesWithInterpreter) {
  auto compiled = codegen::ShimmedCuda::Create(Functions());
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ExpectAgreesWithInterpreter([&](size_t index, absl::Span<const ir::Argument> arguments) {
    return (*compiled)->Run(index, arguments);
  });
}

}  // namespace
}  // namespace polynao::kernels
