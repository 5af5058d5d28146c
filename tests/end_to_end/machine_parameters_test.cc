// Every parameter of a machine file is read by something: changing it alone changes what a user sees, the
// cycles, counters or bound of some program, or whether the program can be had at all.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"
#include "isa/program.h"
#include "nlohmann/json.hpp"
#include "simulator/simulator.h"

namespace polynao::cases {
namespace {

struct Program {
  kernels::OperatorCase operator_case;
  std::string impl;
  std::vector<std::string> without = {};
};

std::vector<Program> Programs() {
  using ir::Type;
  const kernels::OperatorCase add = {.op = "add", .shape = {9, 41, 65}, .dtype = Type::kF16};
  const kernels::OperatorCase div = {.op = "div", .shape = {1000}, .dtype = Type::kF16};
  kernels::OperatorCase conv = {
      .op = "conv2d", .shape = {9, 9, 33}, .operands = {{65, 3, 3, 33}}, .dtype = Type::kI8};
  std::vector<Program> programs = {{add, "compiled"},
                                   {add, "library"},
                                   {div, "compiled"},
                                   {conv, "compiled"},
                                   {conv, "library"}};
  for (const Type type : {Type::kI16, Type::kF16, Type::kF32}) {
    conv.dtype = type;
    programs.push_back({conv, "compiled"});
  }
  // Element by element on the scalar unit.
  programs.push_back({{.op = "add", .shape = {7}, .dtype = Type::kI16}, "compiled", {"tensorize"}});
  // Tiles of some columns and rows: strided copies.
  conv = {.op = "conv2d", .shape = {56, 56, 64}, .operands = {{64, 3, 3, 64}}, .dtype = Type::kI8};
  conv.schedule = {{"columns", 28}, {"rows", 4}};
  programs.push_back({conv, "compiled"});
  // Two MiB, so that GMEM can be too small.
  programs.push_back(
      {{.op = "relu", .shape = {int64_t{1} << 19}, .dtype = Type::kF16}, "compiled"});
  return programs;
}

// GMEM that every parameter but those of DRAM means something for. (simulator:dram_gmem_test does the same for those.)
const std::vector<std::string> kBase = {"gmem.dram=flat", "gmem.cache_reads=1",
                                        "cluster.store_segments=0"};

std::vector<std::string> WithBase(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = kBase;
  all.insert(all.end(), overrides.begin(), overrides.end());
  return all;
}

// What a user sees of a program on a machine: every number of the report but the machine's own parameters and
// wall times, or the error.
std::string Observe(const Program& program, const std::vector<std::string>& overrides) {
  CaseSettings settings;
  settings.impl = program.impl;
  settings.overrides = WithBase(overrides);
  settings.without = program.without;
  const absl::StatusOr<CaseReport> report = RunCase(program.operator_case, settings);
  if (!report.ok()) return std::string(report.status().message());
  EXPECT_TRUE(report->ok) << program.operator_case.op << " " << program.impl << " "
                          << (overrides.empty() ? "" : overrides[0]) << ": values differ";
  nlohmann::ordered_json json = report->ToJson();
  for (const char* key : {"machine", "compile_ms", "simulate_ms"}) json.erase(key);
  return json.dump();
}

// Cycles of a barrier of the whole card, which no operator needs.
int64_t BarrierCycles(const std::vector<std::string>& overrides) {
  const absl::StatusOr<isa::Machine> machine = LoadMachine("mlu270", WithBase(overrides));
  const absl::StatusOr<isa::Program> program =
      isa::Assemble(isa::DianNao(), ".program p\n  barrier.global\n  halt\n", "p.nasm");
  EXPECT_TRUE(program.ok()) << program.status();
  simulator::RunOptions options;
  options.machine = &*machine;
  const absl::StatusOr<simulator::RunResult> result =
      simulator::Run(isa::DianNao(), *program, {}, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->end_cycle : 0;
}

// Values to try for a parameter, those near its own first.
std::vector<int64_t> OtherValues(const std::string& name, int64_t value) {
  if (name == "gmem.mib") return {1};
  if (name == "cluster.store_segments") return {1};
  if (name == "gmem.cache_kib" || name == "gmem.cache_reads" || name == "gmem.channel_hash")
    return {0};
  if (name == "core.nmem_reserved_kib") return {508};
  if (name == "cluster.smem_reserved_kib") return {2047};
  if (name == "cluster.smem_kib") return {1};
  if (name == "smem.granule") return {1024};
  if (value == 0) return {64, 1024, 1};
  return {value * 2, std::max<int64_t>(1, value / 2), std::max<int64_t>(1, value / 32)};
}

TEST(MachineParameters, EachOneChangesSomething) {
  const absl::StatusOr<isa::Machine> machine = LoadMachine("mlu270", kBase);
  ASSERT_TRUE(machine.ok()) << machine.status();
  const std::vector<Program> programs = Programs();
  std::vector<std::string> usual;
  for (const Program& program : programs) usual.push_back(Observe(program, {}));
  const int64_t barrier_cycles = BarrierCycles({});
  for (const auto& [name, value] : machine->parameters()) {
    // No operator loads filters while the tensor unit computes (simulator:compute_unit_test), or has two moves to go on
    // with (simulator:dma_test).
    if (name == "core.wmem_ports" || name == "move_dma.transfers") continue;
    bool changes = false;
    for (const int64_t other : OtherValues(name, value)) {
      const std::vector<std::string> overrides = {StrCat(name, "=", other)};
      // A value that contradicts other parameters is refused, which shows nothing.
      if (!LoadMachine("mlu270", WithBase(overrides)).ok()) continue;
      if (changes || other == value) continue;
      changes = BarrierCycles(overrides) != barrier_cycles;
      for (size_t p = 0; p < programs.size() && !changes; ++p) {
        changes = Observe(programs[p], overrides) != usual[p];
      }
    }
    EXPECT_TRUE(changes) << name << " changes nothing";
  }
}

}  // namespace
}  // namespace polynao::cases
