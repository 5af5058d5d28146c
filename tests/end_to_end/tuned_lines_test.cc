// Every line of kernels/te/tuned.txt is one that the compiler takes on its machine, and is worth its place there:
// no slower than the cost model's own choice, with a limit that belongs to the cycles that are simulated today.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/text.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "compiler/target/target.h"
#include "gtest/gtest.h"
#include "isa/machine.h"
#include "kernels/operators.h"
#include "kernels/te/tuned.h"
#include "simulator/simulator.h"

namespace polynao::cases {
namespace {

struct Line {
  std::string machine;
  CaseText text;
};

// "mlu270 conv2d 56x56x64,64x3x3x64 i8 stride=2: within=1.1 ..."
std::vector<Line> Lines() {
  std::vector<Line> lines;
  for (const absl::string_view row :
       absl::StrSplit(ToAbsl(kernels::TunedText()), '\n', absl::SkipEmpty())) {
    if (row[0] == '#') continue;
    const std::vector<std::string> words =
        absl::StrSplit(row.substr(0, row.find(':')), ' ', absl::SkipEmpty());
    EXPECT_GE(words.size(), 4u) << row;
    Line line = {.machine = words[0],
                 .text = {.op = words[1], .shape = words[2], .dtype = words[3]}};
    line.text.attributes.assign(words.begin() + 4, words.end());
    lines.push_back(std::move(line));
  }
  return lines;
}

// Cycles on tensors of zeros: values change none. 0: an error, which has been reported.
int64_t Cycles(const kernels::OperatorCase& c, const Target& target) {
  const absl::StatusOr<BuiltProgram> built = BuildProgram(c, target, "compiled");
  EXPECT_TRUE(built.ok()) << built.status();
  const absl::StatusOr<const kernels::Operator*> op = kernels::FindOperator(c);
  EXPECT_TRUE(op.ok()) << op.status();
  if (!built.ok() || !op.ok()) return 0;
  std::vector<ir::Tensor> tensors;
  for (const kernels::TensorSpec& spec : (*op)->tensors(c)) {
    tensors.emplace_back(spec.type, spec.shape);
  }
  simulator::RunOptions options;
  options.machine = target.machine;
  options.check_hazards = false;
  const absl::StatusOr<simulator::RunResult> result = simulator::Run(
      *target.instructions, built->program, ProgramArguments(*built, tensors), options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->cycles : 0;
}

double ModelledCycles(const std::vector<kernels::RankedSchedule>& ranked,
                      const kernels::ScheduleChoice& choice) {
  for (const kernels::RankedSchedule& schedule : ranked) {
    if (schedule.choice == choice) return schedule.cycles;
  }
  return NAN;
}

TEST(TunedLines, EachIsTakenAndWorthItsPlace) {
  int lines = 0;
  for (const Line& line : Lines()) {
    SCOPED_TRACE(StrCat(line.machine, " ", line.text.op, " ", line.text.shape));
    const absl::StatusOr<isa::Machine> machine = LoadMachine(line.machine, {});
    ASSERT_TRUE(machine.ok()) << machine.status();
    const absl::StatusOr<Target> target = MakeTarget("diannao", &*machine);
    ASSERT_TRUE(target.ok()) << target.status();
    const absl::StatusOr<kernels::OperatorCase> parsed = ParseCase(line.text, *target);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const std::optional<kernels::TunedSchedule> tuned = kernels::TunedFor(*parsed, *machine);
    ASSERT_TRUE(tuned.has_value());
    const auto ranked = (*kernels::FindOperator(*parsed))->schedules(*parsed, *target);
    ASSERT_TRUE(ranked.ok()) << ranked.status();
    const double modelled = ModelledCycles(*ranked, tuned->choice);
    ASSERT_FALSE(std::isnan(modelled)) << "the operator has no such schedule";
    EXPECT_EQ(kernels::Choose(*ranked, tuned).choice, tuned->choice) << "beyond its limit";

    kernels::OperatorCase untuned = *parsed;
    untuned.use_tuned = false;
    const int64_t cycles = Cycles(*parsed, *target);
    const int64_t first_cycles = Cycles(untuned, *target);
    EXPECT_LE(cycles, first_cycles);
    const double limit =
        kernels::TuningLimit(static_cast<double>(cycles), modelled,
                             static_cast<double>(first_cycles), (*ranked)[0].cycles);
    EXPECT_NEAR(tuned->within / limit, 1, 0.02)
        << "the limit is " << limit << " by now: nao tune --save writes it";
    ++lines;
  }
  EXPECT_GE(lines, 48);
}

// A few KiB more or less change no schedule, and so no cycle.
TEST(TunedLines, NoCliffBesideTheMachineOfTheSearch) {
  for (const char* shape : {"56x56x64,64x3x3x64", "55x55x64,64x3x3x64"}) {
    std::map<std::string, int64_t> cycles;
    for (const char* nmem : {"511", "512", "513"}) {
      const absl::StatusOr<isa::Machine> machine =
          LoadMachine("mlu270", {StrCat("core.nmem_kib=", nmem)});
      ASSERT_TRUE(machine.ok()) << machine.status();
      const absl::StatusOr<Target> target = MakeTarget("diannao", &*machine);
      const absl::StatusOr<kernels::OperatorCase> c =
          ParseCase({.op = "conv2d", .shape = shape, .dtype = "i8"}, *target);
      ASSERT_TRUE(c.ok()) << c.status();
      cycles[nmem] = Cycles(*c, *target);
    }
    EXPECT_EQ(cycles["511"], cycles["512"]) << shape;
    EXPECT_EQ(cycles["513"], cycles["512"]) << shape;
  }
}

}  // namespace
}  // namespace polynao::cases
