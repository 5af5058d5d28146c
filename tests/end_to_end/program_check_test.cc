// The static check (isa/check) against the simulator: whole programs have no finding, and of each program without one
// of its waits or barriers, the check finds what the simulator stops at. Compiled operators of several kinds,
// hand-written kernels, nests, and random layers on random cards under random schedules: POLYNAO_RANDOM_CASES=200 takes
// more of these, POLYNAO_SEED=7 begins with that one.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/check.h"
#include "base/text.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/nest_on_card.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"
#include "isa/check/check.h"
#include "kernels/ladder/ladder.h"
#include "simulator/simulator.h"
#include "testing/fuzz.h"
#include "testing/machine.h"
#include "tests/end_to_end/random_layer_for_test.h"

namespace polynao {
namespace {

using Kind = isa::ProgramFinding::Kind;

// A program with all that a run needs.
struct Subject {
  std::string name;
  cases::BuiltProgram built;
  std::vector<std::vector<int64_t>> shapes;  // of its tensors
};

// What became of programs without one of their waits.
struct Tally {
  int programs = 0, dropped = 0, stopped = 0, found = 0, found_alone = 0, undecided = 0;
  void Add(const Tally& other) {
    programs += other.programs, dropped += other.dropped, stopped += other.stopped;
    found += other.found, found_alone += other.found_alone, undecided += other.undecided;
  }
  std::string ToString() const {
    return StrCat(programs, " programs, ", dropped,
                  " without a wait or barrier: the simulator stops ", stopped, ", the check finds ",
                  found, " of them (", undecided, " as undecided) and ", found_alone,
                  " more that the simulator passes");
  }
};

isa::ProgramCheck Check(const Subject& subject, const isa::Program& program,
                        const isa::Machine& machine) {
  isa::CheckedArguments arguments;
  arguments.scalars.assign(subject.built.scalars.begin(), subject.built.scalars.end());
  return isa::CheckProgram(isa::DianNao(), program, machine, arguments);
}

std::string Simulated(const Subject& subject, const isa::Program& program,
                      const isa::Machine& machine) {
  std::vector<ir::Tensor> tensors;
  std::vector<simulator::Argument> arguments;
  tensors.reserve(program.params.size());
  for (size_t i = 0; i < program.params.size(); ++i) {
    const isa::ProgramParam& param = program.params[i];
    if (param.is_temporary) continue;
    if (!param.is_tensor) {
      arguments.push_back(simulator::Argument::Scalar(subject.built.scalars[i]));
      continue;
    }
    tensors.push_back(simulator::ShapeOnly(
        param.type, param.any_shape ? subject.shapes[tensors.size()] : param.shape));
    arguments.push_back(simulator::Argument::Of(&tensors.back()));
  }
  simulator::RunOptions options;
  options.machine = &machine;
  options.max_cycles = 50'000'000;
  const auto result = simulator::RunForTiming(isa::DianNao(), program, arguments, options);
  return result.ok() ? "" : std::string(result.status().message());
}

// Compares the check with the simulator on `subject`, whole and without each of at most `most` waits.
Tally Compare(const Subject& subject, const isa::Machine& machine, int most) {
  SCOPED_TRACE(subject.name);
  const isa::Program& program = subject.built.program;
  Tally tally = {.programs = 1};
  for (const isa::ProgramFinding& finding : Check(subject, program, machine).findings) {
    ADD_FAILURE() << "of the whole program: " << finding.text;
  }
  EXPECT_EQ(Simulated(subject, program, machine), "");
  std::vector<size_t> waits;
  for (size_t pc = 0; pc < program.code.size(); ++pc) {
    const auto decoded = isa::DianNao().Decode(program.code[pc]);
    if (decoded.ok() && decoded->instruction->unit == isa::Unit::kControl) waits.push_back(pc);
  }
  const isa::Instruction& move = *isa::DianNao().Find("mov");
  const isa::Word nothing = *isa::DianNao().Encode(move, {0, 0});
  const size_t step = std::max<size_t>(1, waits.size() / static_cast<size_t>(most));
  for (size_t i = 0; i < waits.size(); i += step) {
    isa::Program mutant = program;
    mutant.code[waits[i]] = nothing;
    const std::string stop = Simulated(subject, mutant, machine);
    const isa::ProgramCheck check = Check(subject, mutant, machine);
    const bool is_found = !check.findings.empty();
    const bool is_sure = !check.ToStatus(mutant).ok();
    ++tally.dropped;
    tally.stopped += !stop.empty();
    tally.found += !stop.empty() && is_found;
    tally.undecided += !stop.empty() && is_found && !is_sure;
    tally.found_alone += stop.empty() && is_found;
    EXPECT_TRUE(stop.empty() || is_found)
        << "without pc " << waits[i] << " the simulator says: " << stop;
    // The same place, where the simulator found two accesses without a wait between.
    if (absl::StrContains(stop, "hazard: ") && is_sure) {
      EXPECT_TRUE(std::any_of(check.findings.begin(), check.findings.end(),
                              [&](const auto& f) {
                                return absl::StrContains(stop, StrCat(" pc ", f.pc, " ")) ||
                                       absl::StrContains(stop, StrCat(" pc ", f.other_pc, " "));
                              }))
          << stop << "\n"
          << check.findings[0].text;
    }
  }
  return tally;
}

std::optional<Subject> Operator(const cases::CaseText& text, const std::string& impl,
                                const Target& target) {
  const auto c = cases::ParseCase(text, target);
  POLYNAO_CHECK(c.ok()) << c.status();
  auto built = cases::BuildProgram(*c, target, impl);
  if (!built.ok()) {
    ADD_FAILURE() << text.op << " " << text.shape << ": " << built.status();
    return std::nullopt;
  }
  Subject subject = {
      StrCat(text.op, " ", text.shape, " ", text.dtype, " ", impl, " on ", target.machine->name),
      *std::move(built),
      {}};
  for (const kernels::TensorSpec& spec : (*kernels::FindOperator(*c))->tensors(*c)) {
    subject.shapes.push_back(spec.shape);
  }
  if (subject.built.prepare) {
    const size_t input = subject.built.prepared_input;
    const kernels::TensorSpec spec = (*kernels::FindOperator(*c))->tensors(*c)[input];
    subject.shapes[input] = subject.built.prepare(ir::Tensor(spec.type, spec.shape)).shape;
  }
  return subject;
}

struct Wanted {
  const char* op;
  const char* shape;
  const char* dtype;
  std::vector<std::string> attributes = {};
  const char* machine = "mlu270";
  std::vector<std::string> impls = {"compiled"};
};

TEST(ProgramCheckTest, OperatorsAndHandWrittenKernels) {
  const std::vector<Wanted> all = {
      {"add", "255x27x27", "f16", {}, "mlu270", {"compiled", "library", "expert"}},
      {"relu", "4x4x64", "f16", {}, "mlu290", {"compiled", "library", "expert"}},
      {"gelu", "100x1000", "f16"},
      {"conv2d",
       "28x28x128,128x3x3x128",
       "i8",
       {"pad=1"},
       "mlu270",
       {"compiled", "library", "expert"}},
      {"conv2d", "14x14x256,512x1x1x256", "i8", {"stride=2"}, "mlu270", {"compiled", "library"}},
      {"conv2d", "9x9x64,64x3x3x64", "f16", {"pad=1"}, "mlu370"},
      {"conv2d_bn", "14x14x64,128x1x1x64", "i8", {"residual=1", "relu=1"}},
      {"conv2d_batch_norm", "14x14x64,64x1x1x64", "i8"},
      {"matmul", "100x512,200x512", "i8"},
      {"softmax", "100x1000", "f16", {}, "mlu370"},
      {"layer_norm", "64x512", "f16", {}, "mlu370"},
      {"max_pool2d", "17x17x100", "f16", {"window=3"}},
      {"transpose", "100x130", "f16"},
      {"reduce_sum", "33x200", "f32", {}, "mlu370"},
  };
  Tally tally;
  for (const Wanted& wanted : all) {
    const isa::Machine machine = TestMachine(wanted.machine);
    const Target target = *MakeTarget("diannao", &machine);
    cases::CaseText text;
    text.op = wanted.op;
    text.shape = wanted.shape;
    text.dtype = wanted.dtype;
    text.attributes = wanted.attributes;
    for (const std::string& impl : wanted.impls) {
      const std::optional<Subject> subject = Operator(text, impl, target);
      if (subject) tally.Add(Compare(*subject, machine, 12));
    }
  }
  std::printf("operators and kernels: %s\n", tally.ToString().c_str());
  EXPECT_GT(tally.stopped, 90);
}

TEST(ProgramCheckTest, StepsOfTheLadder) {
  const isa::Machine machine = TestMachine("mlu270");
  const Target target = *MakeTarget("diannao", &machine);
  Tally tally;
  for (const kernels::LadderStep& step : kernels::LadderSteps()) {
    const auto program = kernels::LadderProgram(step.name, target);
    ASSERT_TRUE(program.ok()) << program.status();
    const int64_t columns = kernels::kLadderSide * machine.cores() * 2;
    Subject subject = {step.name, {}, {{256, 256}, {columns, 256}, {256, columns}}};
    subject.built.program = *program;
    subject.built.scalars.assign(program->params.size(), 0);
    for (size_t i = 0; i < program->params.size(); ++i) {
      const std::string& name = program->params[i].name;
      if (name == "columns" || name == "row") subject.built.scalars[i] = columns;
    }
    tally.Add(Compare(subject, machine, 100));
  }
  std::printf("steps of the ladder: %s\n", tally.ToString().c_str());
  EXPECT_GT(tally.stopped, 5);
}

// Nests whose values decide what the scalar unit does, and one that became instructions.
TEST(ProgramCheckTest, Nests) {
  const std::pair<const char*, const char*> nests[] = {
      {"softmax of rows",
       "func f(A: f32[64, 200] in, B: f32[64, 200] out) { allocate M: f32[64] allocate S: f32[64] "
       "for (i, 0, 64) { M[i] = A[i, 0] } "
       "for (i, 0, 64) { for (j, 0, 200) { M[i] = max(M[i], A[i, j]) } } "
       "for (i, 0, 64) { S[i] = 0.0 } "
       "for (i, 0, 64) { for (j, 0, 200) { S[i] = S[i] + exp(A[i, j] - M[i]) } } "
       "for (i, 0, 64) { for (j, 0, 200) { B[i, j] = exp(A[i, j] - M[i]) / S[i] } } }"},
      {"a value decides",
       "func f(A: f32[40] in, B: f32[40]) { for (i, 0, 40) { if (A[i] > 0.0) { B[i] = A[i] } else "
       "{ "
       "B[i] = B[i] * 2.0 } } }"},
      {"an index from memory",
       "func f(A: i32[40] in, B: f32[40] in, C: f32[40] out) { for (i, 0, 40) { C[i] = B[A[i]] } "
       "}"},
      {"a recurrence",
       "func f(A: f32[40], B: f32[40] in) { for (i, 1, 39) { A[i] = A[i - 1] * 0.5 + B[i] } }"},
  };
  Tally tally;
  for (const auto& [name, text] : nests) {
    const auto function = ir::ParseFunction(text);
    ASSERT_TRUE(function.ok()) << function.status();
    const auto nest = cases::CompileForCard(
        *function, std::vector<ir::Argument>(function->params.size()), "mlu370", {});
    ASSERT_TRUE(nest.ok()) << name << ": " << nest.status();
    Subject subject = {name, {}, {}};
    subject.built.program = nest->program;
    subject.built.scalars.assign(nest->program.params.size(), 0);
    tally.Add(Compare(subject, *nest->machine, 20));
  }
  std::printf("nests: %s\n", tally.ToString().c_str());
}

TEST(ProgramCheckTest, RandomLayersOnRandomCards) {
  const int64_t count = FuzzCases(12);
  uint64_t seed = FuzzSeed();
  Tally tally;
  for (int64_t round = 0; round < count; ++round, ++seed) {
    SCOPED_TRACE(testing::Message() << "POLYNAO_RANDOM_CASES=1 POLYNAO_SEED=" << seed);
    Draw draw(static_cast<unsigned>(seed));
    cases::CaseText text = RandomLayer(draw);
    const std::string config = draw.OneOf<std::string>({"mlu270", "mlu370"});
    const auto machine = cases::LoadMachine(config, RandomCard(draw));
    ASSERT_TRUE(machine.ok()) << machine.status();
    const Target target = *MakeTarget("diannao", &*machine);
    auto c = cases::ParseCase(text, target);
    if (!c.ok()) continue;
    const auto all = (*kernels::FindOperator(*c))->schedules(*c, target);
    if (!all.ok() || all->empty()) continue;
    c->schedule = (*all)[draw.Number(0, static_cast<int64_t>(all->size()) - 1)].choice;
    const auto built = cases::BuildProgram(*c, target, "compiled");
    if (!built.ok()) continue;
    tally.Add(
        Compare({StrCat(text.op, " ", text.shape, " ", text.dtype), *built, {}}, *machine, 8));
  }
  std::printf("random layers: %s\n", tally.ToString().c_str());
  EXPECT_GT(2 * tally.programs, count);
}

}  // namespace
}  // namespace polynao
