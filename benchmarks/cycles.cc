#include "benchmarks/cycles.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/json_reader.h"
#include "benchmarks/name_filter.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/nest_on_card.h"
#include "cases/run_case.h"
#include "compiler/target/target.h"
#include "isa/bound.h"
#include "kernels/topi_cases/cases.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {
namespace {

constexpr char kAgree[] = "agree";
// A case is worse from so many times its cycles on.
constexpr double kWorse = 1.01;

void Measure(const SuiteCase& suite_case, const CyclesSettings& settings, CaseCycles& result) {
  absl::StatusOr<kernels::OperatorCase> c = cases::ParseCase({.op = suite_case.op,
                                                              .shape = suite_case.shape,
                                                              .dtype = suite_case.dtype,
                                                              .attributes = suite_case.attributes});
  if (!c.ok()) {
    result.failure = std::string(c.status().message());
    return;
  }
  c->use_tuned = settings.use_tuned;
  cases::CaseSettings case_settings;
  case_settings.config = settings.config;
  case_settings.overrides = settings.overrides;
  case_settings.check_values = false;
  case_settings.timing_only = true;
  const absl::StatusOr<cases::CaseReport> report = cases::RunCase(*c, case_settings);
  if (!report.ok()) {
    result.failure = std::string(report.status().message());
    return;
  }
  result.cycles = report->simulated->cycles;
  result.bound = std::max(report->bound_cycles, report->dram_bound_cycles);
  result.reach = report->reach_cycles;
}

// About so many stores take the simulator a minute.
constexpr double kMostScalarStores = 3e6;
// About so many products and bytes take it a second with values.
constexpr double kMostWork = 1e7;

// ---- smaller cases

constexpr int64_t kLeastHalved = 8;

int64_t Halved(int64_t extent) { return extent / 2 + ((extent / 2 + extent) & 1); }

std::optional<double> WorkOf(const kernels::OperatorCase& c) {
  const absl::StatusOr<const kernels::Operator*> op = kernels::FindOperator(c);
  if (!op.ok()) return std::nullopt;
  const isa::Work work = (*op)->work(c);
  return static_cast<double>(work.macs) + static_cast<double>(work.gmem_bytes);
}

// Calls visit(number) for each number of an attribute above kLeastHalved; it may change it.
template <typename F>
void ForNumbers(std::string& attribute, const F& visit) {
  std::vector<std::string> words = absl::StrSplit(ToAbsl(attribute), ':');
  for (std::string& word : words) {
    int64_t number;
    if (!absl::SimpleAtoi(word, &number) || number <= kLeastHalved) continue;
    visit(number);
    word = StrCat(number);
  }
  attribute = absl::StrJoin(words, ":");
}

// The case with these numbers halved wherever they stand, if there is such a case and it has less work.
std::optional<kernels::OperatorCase> WithHalved(kernels::OperatorCase c,
                                                const std::set<int64_t>& numbers) {
  const std::optional<double> before = WorkOf(c);
  const auto halve = [&](int64_t& number) {
    if (numbers.contains(number)) number = Halved(number);
  };
  for (int64_t& extent : c.shape) halve(extent);
  for (std::vector<int64_t>& shape : c.operands) {
    for (int64_t& extent : shape) halve(extent);
  }
  for (auto& [name, text] : c.attributes) ForNumbers(text, halve);
  const std::optional<double> work = WorkOf(c);
  return work && *work < *before ? std::optional(c) : std::nullopt;
}

std::optional<kernels::OperatorCase> OneStepSmaller(const kernels::OperatorCase& c) {
  std::set<int64_t, std::greater<>> extents, numbers;
  const auto add = [&](const std::vector<int64_t>& shape) {
    for (const int64_t extent : shape) {
      if (extent > kLeastHalved) extents.insert(extent);
    }
  };
  add(c.shape);
  for (const std::vector<int64_t>& shape : c.operands) add(shape);
  for (const auto& [name, text] : c.attributes) {
    std::string copy = text;
    ForNumbers(copy, [&](int64_t number) { numbers.insert(number); });
  }
  std::vector<std::set<int64_t>> tries;
  for (const int64_t extent : extents) tries.push_back({extent});
  for (const int64_t extent : extents) {
    for (const int64_t number : numbers) tries.push_back({extent, number});
  }
  for (const int64_t number : numbers) tries.push_back({number});
  tries.emplace_back(extents.begin(), extents.end());
  tries.back().insert(numbers.begin(), numbers.end());
  for (const std::set<int64_t>& halved : tries) {
    if (auto smaller = WithHalved(c, halved)) return smaller;
  }
  return std::nullopt;
}

cases::CaseSettings CardSettings(const CyclesSettings& settings, bool with_values) {
  cases::CaseSettings result;
  result.config = settings.config;
  result.overrides = settings.overrides;
  result.check_values = with_values;
  result.timing_only = !with_values;
  return result;
}

// The function after the passes.
absl::StatusOr<ir::Function> FunctionOf(const kernels::OperatorCase& c, const Target& target) {
  ASSIGN_OR_RETURN(const kernels::Operator* op, kernels::FindOperator(c));
  return cases::BuildFunction(*op, c, target, {});
}

void MeasureTopi(const kernels::TopiCase& topi, const CyclesSettings& settings,
                 const Target& target, CaseCycles& result) {
  const kernels::OperatorCase& c = topi.functions[0];
  const auto measure = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const ir::Function function, FunctionOf(c, target));
    result.scalar_stores = cases::ScalarStores(function);
    if (const double stores = cases::StoredElements(function.body); stores > kMostScalarStores) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("not simulated: the scalar unit stores about %.0f elements", stores));
    }
    cases::CaseSettings case_settings = CardSettings(settings, /*with_values=*/false);
    absl::StatusOr<cases::CaseReport> report = cases::RunCase(c, case_settings);
    if (!report.ok()) {
      // Cycles of some scalar code depend on values.
      case_settings.timing_only = false;
      report = cases::RunCase(c, case_settings);
    }
    if (!report.ok()) return report.status();
    result.cycles = report->simulated->cycles;
    result.bound = std::max(report->bound_cycles, report->dram_bound_cycles);
    result.reach = report->reach_cycles;
    return absl::OkStatus();
  };
  if (const absl::Status status = measure(); !status.ok()) {
    result.failure = std::string(status.message());
  }
}

// Compares values at the largest shapes that take about a second.
absl::StatusOr<std::string> CompareTopi(const kernels::OperatorCase& whole,
                                        const CyclesSettings& settings, const Target& target,
                                        std::string& values_at) {
  kernels::OperatorCase c = SmallerCase(whole, kMostWork);
  for (double work = kMostWork;; work /= 4) {
    ASSIGN_OR_RETURN(const ir::Function function, FunctionOf(c, target));
    if (cases::StoredElements(function.body) <= kMostScalarStores / 10) break;
    kernels::OperatorCase next = c;
    for (; work > 1 && kernels::ShapesText(next) == kernels::ShapesText(c); work /= 4) {
      next = SmallerCase(c, work / 4);
    }
    if (work <= 1) break;
    c = next;
  }
  values_at = kernels::ShapesText(c);
  ASSIGN_OR_RETURN(const cases::CaseReport report,
                   cases::RunCase(c, CardSettings(settings, /*with_values=*/true)));
  if (report.ok) return kAgree;
  return absl::StrFormat("differ by up to %g", report.max_abs_error);
}

void CompareTopi(const kernels::TopiCase& topi, const CyclesSettings& settings,
                 const Target& target, CaseCycles& result) {
  std::vector<const kernels::OperatorCase*> functions = {&topi.functions.front()};
  if (topi.functions.size() > 1) functions.push_back(&topi.functions.back());
  for (const kernels::OperatorCase* c : functions) {
    const absl::StatusOr<std::string> compared =
        CompareTopi(*c, settings, target, result.values_at);
    result.values = compared.ok() ? *compared : std::string(compared.status().message());
    if (result.values != kAgree) return;
  }
}

// Calls measure(i) for all results, some at a time.
template <typename F>
void MeasureAll(const CyclesSettings& settings, const std::vector<CaseCycles>& results,
                const F& measure) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  int done = 0;
  const auto work = [&] {
    for (size_t i = next++; i < results.size(); i = next++) {
      measure(i);
      const std::lock_guard<std::mutex> lock(mutex);
      if (settings.on_case) settings.on_case(++done, static_cast<int>(results.size()), results[i]);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < settings.jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

// Sums over the cases of a machine, suite and class that have cycles in both files.
struct Sums {
  int cases = 0;
  double log_before = 0, log_after = 0;  // of efficiencies
  int64_t before = 0, after = 0;         // cycles times count

  void Add(const CaseCycles& b, const CaseCycles& a) {
    ++cases;
    const auto efficiency = [](const CaseCycles& c) {
      return std::log(static_cast<double>(std::max<int64_t>(1, c.bound)) /
                      static_cast<double>(std::max<int64_t>(1, c.cycles)));
    };
    log_before += efficiency(b);
    log_after += efficiency(a);
    before += b.cycles * b.count;
    after += a.cycles * a.count;
  }
  std::string Line(const std::string& name) const {
    return absl::StrFormat("%-40s %4d  %.3f -> %.3f  %d -> %d\n", name, cases,
                           std::exp(log_before / cases), std::exp(log_after / cases), before,
                           after);
  }
};

}  // namespace

absl::StatusOr<std::vector<CaseCycles>> MeasureCycles(const Suite& suite,
                                                      const CyclesSettings& settings) {
  ASSIGN_OR_RETURN(const isa::Machine machine,
                   cases::LoadMachine(settings.config, settings.overrides));
  std::vector<CaseCycles> results;
  std::vector<const SuiteCase*> chosen;
  for (const SuiteCase& c : suite.cases) {
    if (c.Name().find(settings.filter) == std::string::npos) continue;
    chosen.push_back(&c);
    results.push_back(
        {.machine = machine.name, .suite = suite.name, .name = c.Name(), .count = c.count});
  }
  if (chosen.empty()) {
    return InvalidInput("--filter='", settings.filter, "': no case of ", suite.name,
                        " has it in its name; the first is '", suite.cases[0].Name(), "'");
  }
  MeasureAll(settings, results, [&](size_t i) { Measure(*chosen[i], settings, results[i]); });
  return results;
}

absl::StatusOr<std::vector<CaseCycles>> MeasureTopiCycles(const CyclesSettings& settings) {
  ASSIGN_OR_RETURN(const isa::Machine machine,
                   cases::LoadMachine(settings.config, settings.overrides));
  ASSIGN_OR_RETURN(const Target target, MakeTarget("diannao", &machine));
  std::vector<CaseCycles> results;
  ASSIGN_OR_RETURN(const NameFilter filter, NameFilter::Create(settings.filter));
  std::vector<const kernels::TopiCase*> chosen;
  for (const kernels::TopiCase& c : kernels::TopiCases()) {
    const std::string name = StrCat(c.op, "/", c.id);
    if (!filter.Passes(name)) continue;
    chosen.push_back(&c);
    results.push_back({.machine = machine.name, .suite = kTopiSuite, .name = name});
  }
  if (chosen.empty()) {
    return InvalidInput("--filter='", settings.filter, "': no case of ", kTopiSuite,
                        " has it in its name; names are like 'conv2d_nchw/3'");
  }
  MeasureAll(settings, results, [&](size_t i) {
    MeasureTopi(*chosen[i], settings, target, results[i]);
    if (settings.values) CompareTopi(*chosen[i], settings, target, results[i]);
  });
  return results;
}

kernels::OperatorCase SmallerCase(const kernels::OperatorCase& c, double most_work) {
  kernels::OperatorCase smaller = c;
  while (WorkOf(smaller).value_or(0) > most_work) {
    std::optional<kernels::OperatorCase> next = OneStepSmaller(smaller);
    if (!next) break;
    smaller = *std::move(next);
  }
  return smaller;
}

std::string SummaryText(const std::vector<CaseCycles>& cases) {
  int run = 0, clean = 0, compared = 0, agree = 0;
  std::vector<double> efficiencies;
  for (const CaseCycles& c : cases) {
    compared += !c.values.empty();
    agree += c.values == kAgree;
    if (!c.failure.empty()) continue;
    ++run;
    clean += c.scalar_stores == 0;
    efficiencies.push_back(static_cast<double>(c.bound) /
                           static_cast<double>(std::max<int64_t>(1, c.cycles)));
  }
  std::sort(efficiencies.begin(), efficiencies.end());
  std::string text =
      StrCat(cases.size(), " cases: ", run, " run, ", clean, " of them without scalar stores");
  if (!efficiencies.empty()) {
    StrAppend(&text,
              absl::StrFormat("; median efficiency %.3f", efficiencies[efficiencies.size() / 2]));
  }
  if (compared > 0) StrAppend(&text, "; values agree in ", agree, " of ", compared);
  return text;
}

std::string CyclesText(const std::vector<CaseCycles>& cases) {
  std::string text = "[\n";
  for (size_t i = 0; i < cases.size(); ++i) {
    const CaseCycles& c = cases[i];
    nlohmann::ordered_json json = {
        {"machine", c.machine}, {"suite", c.suite}, {"case", c.name}, {"count", c.count}};
    if (c.failure.empty()) {
      json["cycles"] = c.cycles;
      json["bound"] = c.bound;
      if (c.reach > 0) json["reach"] = c.reach;
      if (c.scalar_stores > 0) json["scalar_stores"] = c.scalar_stores;
    } else {
      json["failure"] = c.failure;
    }
    if (!c.values.empty()) json["values"] = c.values, json["values_at"] = c.values_at;
    text += json.dump() + (i + 1 < cases.size() ? ",\n" : "\n");
  }
  return text + "]\n";
}

absl::StatusOr<std::vector<CaseCycles>> ParseCycles(std::string_view text) {
  const auto list = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!list.is_array()) return InvalidInput("expected a JSON list of cases");
  std::vector<CaseCycles> cases;
  std::set<std::string> keys;
  for (const nlohmann::ordered_json& json : list) {
    const std::string place = StrCat("case ", cases.size() + 1, ": ");
    if (!json.is_object()) return InvalidInput(place, "expected an object, found ", json.dump());
    CaseCycles c;
    absl::Status status;
    JsonReader reader(json, status);
    reader.Read("machine", c.machine);
    reader.Read("suite", c.suite);
    reader.Read("case", c.name);
    reader.Read("count", c.count);
    if (reader.Has("failure")) {
      reader.Read("failure", c.failure);
    } else {
      reader.Read("cycles", c.cycles);
      reader.Read("bound", c.bound);
      if (reader.Has("reach")) reader.Read("reach", c.reach);
      if (reader.Has("scalar_stores")) reader.Read("scalar_stores", c.scalar_stores);
    }
    if (reader.Has("values")) reader.Read("values", c.values);
    if (reader.Has("values_at")) reader.Read("values_at", c.values_at);
    if (!status.ok()) return InvalidInput(place, status.message());
    if (!keys.insert(c.Key()).second) return InvalidInput(place, c.Key(), " stands here twice");
    cases.push_back(std::move(c));
  }
  return cases;
}

CyclesComparison CompareCycles(const std::vector<CaseCycles>& before,
                               const std::vector<CaseCycles>& after) {
  std::map<std::string, const CaseCycles*> by_key;
  for (const CaseCycles& c : after) by_key[c.Key()] = &c;
  CyclesComparison result;
  std::map<std::string, Sums> sums;
  std::string changes;
  for (const CaseCycles& b : before) {
    const auto found = by_key.find(b.Key());
    if (found == by_key.end()) {
      result.worse.push_back(StrCat(b.Key(), ": is no longer there"));
      continue;
    }
    const CaseCycles& a = *found->second;
    if (!b.failure.empty() || !a.failure.empty()) {
      if (b.failure.empty()) {
        result.worse.push_back(StrCat(b.Key(), ": had ", b.cycles, " cycles, now ", a.failure));
      } else if (a.failure.empty()) {
        StrAppend(&changes, b.Key(), ": failed, now ", a.cycles, "\n");
      }
      continue;
    }
    const std::string suite = StrCat(b.machine, " ", b.suite);
    sums[suite].Add(b, a);
    sums[StrCat(suite, " ", b.name.substr(0, b.name.find('/')))].Add(b, a);
    if (a.cycles == b.cycles) continue;
    const double ratio =
        static_cast<double>(a.cycles) / static_cast<double>(std::max<int64_t>(1, b.cycles));
    const std::string line = absl::StrFormat("%s: %d -> %d (%.3f, bound %d)", b.Key(), b.cycles,
                                             a.cycles, ratio, a.bound);
    StrAppend(&changes, line, "\n");
    if (ratio > kWorse) result.worse.push_back(line);
  }
  for (const auto& [name, of] : sums) result.report += of.Line(name);
  result.report += changes;
  return result;
}

}  // namespace polynao::benchmarks
