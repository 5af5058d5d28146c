#include "benchmarks/bench_suite.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "benchmarks/lines.h"
#include "benchmarks/name_filter.h"
#include "benchmarks/provenance.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "kernels/operators.h"

namespace polynao::benchmarks {
namespace {

struct Implementation {
  std::string name;                  // of the row
  std::string impl;                  // of CaseSettings
  std::vector<std::string> without;  // passes
  bool use_tuned = true;
  bool use_smem = true;
  std::vector<std::string> words = {};  // what is left out, as the row is named
  // The programs of a sequence; null: the case is one program.
  std::vector<SuiteProgram> (*programs)(const SuiteCase&) = nullptr;
};

// "partition,tensorize" -> without-loop_partition,tensorize. Two words name parts of schedules instead of passes:
// "smem" (filters by way of SMEM) and "tuning" (schedules of earlier searches).
absl::StatusOr<Implementation> ParseAblation(const std::string& list,
                                             const std::vector<PassSpec>& pipeline) {
  Implementation result = {.name = "", .impl = kCompiled, .without = {}};
  const std::vector<std::string> words = absl::StrSplit(list, ',');
  for (const std::string& word : words) {
    if (word == "tuning" || word == "smem") {
      (word == "tuning" ? result.use_tuned : result.use_smem) = false;
      result.words.push_back(word);
      continue;
    }
    const std::string name = word == "partition"          ? "loop_partition"
                             : word == "preprocessing"    ? "preprocess"
                             : word == "double_buffering" ? "pipeline"
                                                          : word;
    const auto is_pass = [&](const PassSpec& pass) { return pass.name == name; };
    if (std::none_of(pipeline.begin(), pipeline.end(), is_pass)) {
      std::vector<std::string> names;
      for (const PassSpec& pass : pipeline) {
        if (std::find(names.begin(), names.end(), pass.name) == names.end()) {
          names.push_back(pass.name);
        }
      }
      return InvalidInput("--without=", list, ": no pass of the card's pipeline is named '", name,
                          "'; there are: ", absl::StrJoin(names, ", "));
    }
    result.without.push_back(name);
    result.words.push_back(name);
  }
  result.name = StrCat("without-", absl::StrJoin(result.words, ","));
  return result;
}

// The rows that pass the filter, not yet run.
absl::StatusOr<std::vector<Row>> SelectRows(const Suite& suite,
                                            const std::vector<Implementation>& implementations,
                                            const std::string& filter) {
  ASSIGN_OR_RETURN(const NameFilter names, NameFilter::Create(filter));
  std::vector<Row> rows;
  for (const SuiteCase& suite_case : suite.cases) {
    for (const Implementation& implementation : implementations) {
      Row row;
      row.suite_case = suite_case;
      row.impl = implementation.name;
      if (!names.Passes(row.Name())) continue;
      rows.push_back(std::move(row));
    }
  }
  if (rows.empty()) {
    return InvalidInput("--filter='", filter, "': no row of ", suite.name,
                        " is named so; the first is '", suite.cases[0].Name(), "/",
                        implementations[0].name, "'");
  }
  return rows;
}

absl::StatusOr<cases::CaseReport> RunProgram(const Row& row, const SuiteProgram& program,
                                             const Implementation& implementation,
                                             const BenchSettings& settings) {
  ASSIGN_OR_RETURN(kernels::OperatorCase c, cases::ParseCase({.op = program.op,
                                                              .shape = program.shape,
                                                              .dtype = program.dtype,
                                                              .attributes = program.attributes,
                                                              .schedule = program.schedule}));
  cases::CaseSettings case_settings;
  case_settings.impl = program.impl;
  case_settings.config = settings.config;
  case_settings.overrides = settings.overrides;
  case_settings.seed = settings.seed;
  case_settings.without = implementation.without;
  c.use_tuned = implementation.use_tuned;
  // What the cost model chooses without it; elementwise operators have no filters.
  if (!implementation.use_smem && row.suite_case.op_class == "conv") {
    c.schedule = {{"weights_by_smem", 0}};
  }
  return cases::RunCase(c, case_settings);
}

void AddBytes(const nlohmann::ordered_json& bytes, nlohmann::ordered_json& sum) {
  for (const auto& [path, count] : bytes.items()) {
    sum[path] = (sum.contains(path) ? sum[path].get<int64_t>() : 0) + count.get<int64_t>();
  }
}

// All programs of the row, one after the other; bounds, bytes and times are sums.
void RunRow(Row& row, const Implementation& implementation, const BenchSettings& settings) {
  const SuiteCase& c = row.suite_case;
  std::vector<SuiteProgram> programs = {{.op = c.op,
                                         .shape = c.shape,
                                         .dtype = c.dtype,
                                         .attributes = c.attributes,
                                         .impl = implementation.impl}};
  if (implementation.programs != nullptr) programs = implementation.programs(c);
  if (programs.empty()) row.reason = "the case has no such sequence";
  for (const SuiteProgram& program : programs) {
    const absl::StatusOr<cases::CaseReport> report =
        RunProgram(row, program, implementation, settings);
    if (!report.ok()) {
      // The configuration has been read, so nothing else can be missing.
      row.state = absl::IsNotFound(report.status()) ? Row::State::kSkipped : Row::State::kFailed;
      const std::string message(report.status().message());
      // The list of all names would be repeated in every row.
      row.reason =
          absl::IsNotFound(report.status()) ? message.substr(0, message.find(';')) : message;
      return;
    }
    if (row.state != Row::State::kDiffers) {
      row.state = report->ok ? Row::State::kAgrees : Row::State::kDiffers;
    }
    row.cycles += report->simulated->cycles;
    row.bound_cycles += report->bound_cycles;
    row.dram_bound_cycles += report->dram_bound_cycles;
    row.traffic_bytes +=
        (*kernels::FindOperator(report->operator_case))->work(report->operator_case).gmem_bytes;
    AddBytes(report->ToJson()["bytes"], row.bytes);
    row.instructions += report->simulated->instruction_count();
    row.compile_ms += report->compile_ms;
    row.simulate_ms += report->simulate_ms;
  }
}

}  // namespace

absl::StatusOr<SuiteResult> RunSuite(const Suite& suite, const BenchSettings& settings) {
  if (settings.jobs < 1) {
    return InvalidInput("--jobs: expected 1 or more, found ", settings.jobs);
  }
  SuiteResult result;
  result.date = Date();
  result.commit = Commit();
  ASSIGN_OR_RETURN(result.machine, cases::LoadMachine(settings.config, settings.overrides));
  ASSIGN_OR_RETURN(Target target, MakeTarget("diannao", &result.machine));
  ASSIGN_OR_RETURN(std::vector<PassSpec> pipeline, PipelineFor(target));
  std::vector<Implementation> implementations = {
      {.name = kCompiled, .impl = kCompiled, .without = {}}};
  for (const Sequence& sequence : suite.sequences) {
    implementations.push_back(
        {.name = sequence.name, .impl = kCompiled, .without = {}, .programs = sequence.programs});
  }
  if (suite.sequences.empty()) {
    implementations.push_back({.name = "library", .impl = "library", .without = {}});
    implementations.push_back({.name = "expert", .impl = "expert", .without = {}});
  }
  for (const std::string& list : settings.without) {
    ASSIGN_OR_RETURN(Implementation ablation, ParseAblation(list, pipeline));
    implementations.push_back(std::move(ablation));
  }
  ASSIGN_OR_RETURN(result.rows, SelectRows(suite, implementations, settings.filter));
  ASSIGN_OR_RETURN(LineCounts lines, CountKernelLines());

  const auto start = std::chrono::steady_clock::now();
  std::vector<Row>& rows = result.rows;
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  int done = 0;
  const auto work = [&] {
    for (size_t i = next++; i < rows.size(); i = next++) {
      const auto implementation =
          std::find_if(implementations.begin(), implementations.end(),
                       [&](const Implementation& x) { return x.name == rows[i].impl; });
      RunRow(rows[i], *implementation, settings);
      const std::lock_guard<std::mutex> lock(mutex);
      ++done;
      if (settings.on_row) settings.on_row(done, static_cast<int>(rows.size()), rows[i]);
    }
  };
  std::vector<std::thread> threads;
  const size_t thread_count = std::min(rows.size(), static_cast<size_t>(settings.jobs));
  for (size_t i = 1; i < thread_count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();

  result.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.suite = suite;
  result.seed = settings.seed;
  result.filter = settings.filter;
  result.jobs = settings.jobs;
  result.summary = Summarize(suite, rows, lines);
  return result;
}

}  // namespace polynao::benchmarks
