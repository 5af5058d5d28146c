#include "simulator/reference/testing/twin_run.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/tensor.h"
#include "isa/instruction_set.h"
#include "isa/program.h"
#include "simulator/reference/testing/compare.h"
#include "simulator/reference/testing/random_machine.h"
#include "simulator/reference/testing/shrink.h"
#include "simulator/simulator.h"
#include "testing/processes.h"

namespace polynao::simulator::reference {
namespace {

// A program that takes longer says nothing more.
constexpr int64_t kMaxCycles = 60'000;
constexpr int kSecondsAlone = 60;

bool IsDeadlock(const absl::Status& error) {
  return std::string(error.message()).find("deadlock") != std::string::npos;
}

struct CaseResult {
  std::string invalid;  // what is wrong with the case itself
  Comparison comparison;
  isa::Machine machine;
  isa::Program program;
};

CaseResult Execute(const RandomCase& c) {
  CaseResult result;
  const absl::StatusOr<isa::Machine> machine = MachineOf(c);
  if (!machine.ok()) {
    result.invalid = machine.status().ToString();
    return result;
  }
  result.machine = *machine;
  auto program = isa::Assemble(isa::DianNao(), ProgramText(c, *machine), "random.nasm");
  if (!program.ok()) {
    result.invalid = program.status().ToString();
    return result;
  }
  result.program = *std::move(program);
  ir::Tensor x = c.has_values ? ir::Tensor(ir::Type::kI8, {c.tensor_bytes})
                              : ShapeOnly(ir::Type::kI8, {c.tensor_bytes});
  result.comparison = Compare(*machine, result.program, {simulator::Argument::Of(&x)}, kMaxCycles);
  const absl::Status& error = result.comparison.error;
  // Any other error is a program that breaks a rule, and tests nothing.
  if (!error.ok() && !absl::IsDeadlineExceeded(error) && !IsDeadlock(error)) {
    result.invalid = error.ToString();
  }
  return result;
}

void Count(const RandomCase& c, const CaseResult& result, TwinTally& tally) {
  auto& counts = tally.counts;
  ++counts["programs"];
  ++counts["machine " + c.machine];
  if (!c.has_values) ++counts["timing alone"];
  if (!result.invalid.empty()) return;
  ++counts[absl::StrCat("channels ", result.machine.Get("gmem.channels"))];
  const Comparison& comparison = result.comparison;
  if (absl::IsDeadlineExceeded(comparison.error)) {
    ++counts["too long"];
  } else if (!comparison.error.ok()) {
    ++counts["deadlocks"];
  }
  for (const auto& [name, value] : comparison.result.Rows()) counts["sum " + name] += value;
  for (size_t pc = 0; pc < comparison.issued.size(); ++pc) {
    const auto decoded = isa::DianNao().Decode(result.program.code[pc]);
    if (!decoded.ok() || comparison.issued[pc] == 0) continue;
    counts["row " + decoded->instruction->mnemonic] += comparison.issued[pc];
  }
}

bool Differs(const RandomCase& c) {
  const CaseResult result = Execute(c);
  return result.invalid.empty() && !result.comparison.difference.empty();
}

// What is wrong with it, and the smallest case that is wrong in the same way, as a person wants to read it.
std::string Explain(const RandomCase& c, const std::string& what, bool shrink) {
  RandomCase smallest = c;
  std::string text = what;
  if (shrink && Differs(c)) {
    smallest = Shrink(c, Differs);
    text = RunCase(smallest);
  }
  absl::StrAppend(&text, "machine ", smallest.machine, " with ",
                  absl::StrJoin(smallest.overrides, " "), "\ntensor of ", smallest.tensor_bytes,
                  " bytes", smallest.has_values ? "" : ", timing alone", "\n");
  const auto machine = MachineOf(smallest);
  if (machine.ok()) absl::StrAppend(&text, ProgramText(smallest, *machine));
  return text;
}

// ---- from a batch's process to the one that waits ---------------------------------------------------

std::string Write(const TwinTally& tally) {
  std::ostringstream out;
  for (const auto& [name, value] : tally.counts) out << value << ' ' << name << '\n';
  out << "findings\n";
  for (const TwinFinding& finding : tally.findings) {
    out << finding.seed << ' ' << finding.what.size() << ' ' << finding.what << '\n';
  }
  return out.str();
}

TwinTally Read(const std::string& text) {
  std::istringstream in(text);
  TwinTally tally;
  std::string line;
  while (std::getline(in, line) && line != "findings") {
    const size_t space = line.find(' ');
    tally.counts[line.substr(space + 1)] = std::stoll(line.substr(0, space));
  }
  TwinFinding finding;
  size_t size = 0;
  while (in >> finding.seed >> size) {
    in.get();
    finding.what.resize(size);
    in.read(finding.what.data(), static_cast<std::streamsize>(size));
    tally.findings.push_back(finding);
  }
  return tally;
}

TwinTally RunBatch(uint64_t first, uint64_t last, bool shrink) {
  TwinTally tally;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const RandomCase c = MakeRandomCase(seed);
    const std::string what = RunCase(c, &tally);
    if (!what.empty()) tally.findings.push_back({seed, Explain(c, what, shrink)});
  }
  return tally;
}

std::string Million(int64_t count) {
  return absl::StrFormat("%.2f M", static_cast<double>(count) / 1e6);
}

}  // namespace

int64_t TwinTally::count(const std::string& name) const {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

void TwinTally::Add(const TwinTally& other) {
  for (const auto& [name, value] : other.counts) counts[name] += value;
  findings.insert(findings.end(), other.findings.begin(), other.findings.end());
}

std::vector<std::string> TwinTally::RowsNeverIssued() const {
  std::vector<std::string> rows;
  for (const isa::Instruction& instruction : isa::DianNao().instructions()) {
    if (count("row " + instruction.mnemonic) == 0) rows.push_back(instruction.mnemonic);
  }
  return rows;
}

std::string TwinTally::ToString(const TwinRunOptions& options) const {
  const int64_t programs = count("programs");
  const size_t rows = isa::DianNao().instructions().size();
  const double each = 1000 / static_cast<double>(std::max<int64_t>(programs, 1));
  std::string text = absl::StrCat(
      "seeds ", options.first_seed, " to ",
      options.first_seed + static_cast<uint64_t>(programs) - 1, ": ", programs, " programs, ",
      Million(count("sum end_cycle")), " cycles, ", Million(count("sum instructions")),
      " instructions, ", rows - RowsNeverIssued().size(), " of ", rows, " rows; ",
      count("timing alone"), " without values, ", count("deadlocks"), " deadlocks, ",
      count("too long"), " stopped after ", kMaxCycles, " cycles; ",
      absl::StrFormat("%.0f s, %.1f ms a program, %.1f ms of CPU; ", seconds, seconds * each,
                      cpu_seconds * each),
      findings.size(), " findings\n  machines:");
  for (const std::string& name : MachineNames()) {
    absl::StrAppend(&text, " ", name, " ", count("machine " + name));
  }
  int64_t most = 0;
  for (const auto& [name, value] : counts) {
    if (name.starts_with("channels ")) most = std::max<int64_t>(most, std::stoll(name.substr(9)));
  }
  absl::StrAppend(&text, "; channels up to ", most, "\n  DRAM:");
  for (const auto& [name, value] : counts) {
    constexpr std::string_view kPrefix = "sum dram.";
    if (name.starts_with(kPrefix)) {
      absl::StrAppend(&text, " ", name.substr(kPrefix.size()), " ", Million(value));
    }
  }
  return text;
}

std::string RunCase(const RandomCase& c, TwinTally* tally) {
  const CaseResult result = Execute(c);
  if (tally != nullptr) Count(c, result, *tally);
  if (!result.invalid.empty()) return "not a valid case: " + result.invalid + "\n";
  return result.comparison.difference;
}

TwinTally RunTwin(const TwinRunOptions& options,
                  const std::function<void(const TwinTally&)>& on_batch) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = CpuSeconds();
  isa::DianNao();  // once for all processes
  TwinTally all;
  const uint64_t end = options.first_seed + static_cast<uint64_t>(options.programs);
  const auto run = [&](uint64_t first, uint64_t last, bool shrink, int seconds) {
    return InProcess([&] { return Write(RunBatch(first, last, shrink)); }, seconds);
  };
  for (uint64_t first = options.first_seed; first < end;
       first += static_cast<uint64_t>(options.batch)) {
    const uint64_t last = std::min(first + static_cast<uint64_t>(options.batch), end) - 1;
    const ProcessOutcome outcome = run(first, last, options.shrink, options.seconds_per_batch);
    if (!outcome.crashed) {
      all.Add(Read(outcome.output));
    } else {
      // One by one, to find which program it is.
      for (uint64_t seed = first; seed <= last; ++seed) {
        const ProcessOutcome one = run(seed, seed, false, kSecondsAlone);
        if (!one.crashed) {
          all.Add(Read(one.output));
          continue;
        }
        ++all.counts["programs"];
        all.findings.push_back({seed, Explain(MakeRandomCase(seed), one.how + "\n", false)});
      }
    }
    all.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    all.cpu_seconds = CpuSeconds() - cpu_start;
    if (on_batch) on_batch(all);
  }
  return all;
}

}  // namespace polynao::simulator::reference
