// All programs of tensorize48, compiled, of the library and of the experts, on the event-driven simulator and on the
// clocked model (simulator/reference): all that both report is equal.
//
// In the test run that is done for the smallest case of each class. POLYNAO_RANDOM_CASES=48 takes all of them, in their
// full sizes and with their tuned schedules, and prints the counts.

#include <cstdint>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "benchmarks/suites.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "compiler/target/target.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"
#include "simulator/reference/testing/compare.h"
#include "testing/fuzz.h"

namespace polynao {
namespace {

// Bytes of the case's tensors.
int64_t Size(const std::vector<kernels::TensorSpec>& specs) {
  int64_t bytes = 0;
  for (const kernels::TensorSpec& spec : specs) {
    int64_t size = ir::ByteSize(spec.type);
    for (int64_t extent : spec.shape) size *= extent;
    bytes += size;
  }
  return bytes;
}

struct Case {
  std::string name, op_class;
  kernels::OperatorCase operator_case;
  std::vector<kernels::TensorSpec> tensors;
};

std::vector<Case> AllCases(const Target& target) {
  std::vector<Case> cases;
  for (const benchmarks::SuiteCase& c : (*benchmarks::FindSuite("tensorize48"))->cases) {
    const auto parsed = cases::ParseCase(
        {.op = c.op, .shape = c.shape, .dtype = c.dtype, .attributes = c.attributes}, target);
    POLYNAO_CHECK(parsed.ok()) << parsed.status();
    const auto op = kernels::FindOperator(*parsed);
    POLYNAO_CHECK(op.ok()) << op.status();
    cases.push_back({c.Name(), c.op_class, *parsed, (*op)->tensors(*parsed)});
  }
  return cases;
}

// `count` cases: the smallest of each class first, then the next ones.
std::vector<Case> Smallest(const std::vector<Case>& cases, int64_t count) {
  std::map<std::string, std::multimap<int64_t, Case>> by_class;
  for (const Case& c : cases) by_class[c.op_class].insert({Size(c.tensors), c});
  std::vector<Case> result;
  while (static_cast<int64_t>(result.size()) < count && !by_class.empty()) {
    for (auto members = by_class.begin(); members != by_class.end();) {
      if (static_cast<int64_t>(result.size()) == count) break;
      result.push_back(members->second.begin()->second);
      members->second.erase(members->second.begin());
      members = members->second.empty() ? by_class.erase(members) : std::next(members);
    }
  }
  return result;
}

// Runs `count` cases, with all three programs of each, on an mlu270 with these overrides.
void CompareCases(const std::vector<std::string>& overrides, int64_t count) {
  const auto machine = cases::LoadMachine("mlu270", overrides);
  ASSERT_TRUE(machine.ok()) << machine.status();
  const auto target = MakeTarget("diannao", &*machine);
  ASSERT_TRUE(target.ok()) << target.status();
  int64_t programs = 0, instructions = 0, cycles = 0;
  for (const Case& c : Smallest(AllCases(*target), count)) {
    for (const char* impl : {"compiled", "library", "expert"}) {
      SCOPED_TRACE(c.name + " " + impl);
      const auto built = cases::BuildProgram(c.operator_case, *target, impl);
      ASSERT_TRUE(built.ok()) << built.status();
      // Zeros: values change no cycle.
      std::vector<ir::Tensor> tensors;
      for (const kernels::TensorSpec& spec : c.tensors) tensors.emplace_back(spec.type, spec.shape);
      built->Prepare(tensors);
      const simulator::reference::Comparison comparison = simulator::reference::Compare(
          *machine, built->program, cases::ProgramArguments(*built, tensors));
      EXPECT_EQ(comparison.difference, "");
      ASSERT_TRUE(comparison.error.ok()) << comparison.error;
      ++programs;
      instructions += comparison.result.instruction_count();
      cycles += comparison.result.end_cycle;
    }
  }
  std::cout << programs << " programs, " << instructions << " instructions, " << cycles
            << " cycles; no difference\n";
}

TEST(ClockedSuiteTest, BothModelsReportTheSame) {
  CompareCases({"gmem.dram=flat", "gmem.cache_reads=1"}, FuzzCases(3));
}

TEST(ClockedSuiteTest, BothModelsReportTheSameWithDram) { CompareCases({}, FuzzCases(2)); }

}  // namespace
}  // namespace polynao
