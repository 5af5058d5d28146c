#include "benchmarks/model_check.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "base/status.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "compiler/target/target.h"
#include "kernels/operators.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {
namespace {

std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (size_t k = i; k < j; ++k) ranks[order[k]] = static_cast<double>(i + j - 1) / 2;
    i = j;
  }
  return ranks;
}

// Three digits are what the numbers are good for.
double Rounded(double value) { return std::round(value * 1000) / 1000; }

}  // namespace

double RankCorrelation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = Ranks(a), y = Ranks(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx == 0 || yy == 0 ? 0 : xy / std::sqrt(xx * yy);
}

absl::StatusOr<std::vector<ModelCheck>> CheckModel(const Suite& suite,
                                                   const std::vector<std::string>& schedule,
                                                   int most, const CyclesSettings& settings) {
  ASSIGN_OR_RETURN(const isa::Machine machine,
                   cases::LoadMachine(settings.config, settings.overrides));
  ASSIGN_OR_RETURN(const Target target, MakeTarget("diannao", &machine));
  cases::CaseSettings case_settings;
  case_settings.config = settings.config;
  case_settings.overrides = settings.overrides;
  case_settings.check_values = false;
  case_settings.timing_only = true;
  std::vector<ModelCheck> checks;
  for (const SuiteCase& suite_case : suite.cases) {
    if (suite_case.Name().find(settings.filter) == std::string::npos) continue;
    ASSIGN_OR_RETURN(kernels::OperatorCase c, cases::ParseCase({.op = suite_case.op,
                                                                .shape = suite_case.shape,
                                                                .dtype = suite_case.dtype,
                                                                .attributes = suite_case.attributes,
                                                                .schedule = schedule}));
    ASSIGN_OR_RETURN(const kernels::Operator* op, kernels::FindOperator(c));
    if (!op->schedules) continue;
    absl::StatusOr<std::vector<kernels::RankedSchedule>> all = op->schedules(c, target);
    if (!all.ok() || all->size() < 2) continue;
    ModelCheck check;
    check.machine = machine.name;
    check.name = suite_case.Name();
    check.schedules = static_cast<int>(all->size());
    std::mt19937_64 random(1);
    std::shuffle(all->begin() + 1, all->end(), random);
    if (all->size() > static_cast<size_t>(most)) all->resize(static_cast<size_t>(most));
    std::vector<double> modelled, simulated;
    for (const kernels::RankedSchedule& one : *all) {
      c.schedule = one.choice;
      const absl::StatusOr<cases::CaseReport> report = cases::RunCase(c, case_settings);
      if (!report.ok()) {
        ++check.failed;
        continue;
      }
      const int64_t cycles = report->simulated->cycles;
      modelled.push_back(one.cycles);
      simulated.push_back(static_cast<double>(cycles));
      check.worst = std::max(check.worst, static_cast<double>(cycles) / one.cycles);
      if (check.chosen == 0) check.chosen = cycles;
      check.best = check.best == 0 ? cycles : std::min(check.best, cycles);
    }
    check.simulated = static_cast<int>(simulated.size());
    if (check.simulated < 2) continue;
    check.rank = RankCorrelation(modelled, simulated);
    checks.push_back(std::move(check));
  }
  return checks;
}

std::string ModelText(const std::vector<ModelCheck>& checks) {
  std::string text = "[\n";
  double ranks = 0, regrets = 0, regret = 0;
  int simulated = 0, failed = 0;
  for (const ModelCheck& c : checks) {
    text += nlohmann::ordered_json({{"machine", c.machine},
                                    {"case", c.name},
                                    {"schedules", c.schedules},
                                    {"simulated", c.simulated},
                                    {"failed", c.failed},
                                    {"rank", Rounded(c.rank)},
                                    {"chosen", c.chosen},
                                    {"best", c.best},
                                    {"regret", Rounded(c.regret())},
                                    {"worst", Rounded(c.worst)}})
                .dump() +
            ",\n";
    ranks += c.rank;
    regrets += c.regret();
    regret = std::max(regret, c.regret());
    simulated += c.simulated;
    failed += c.failed;
  }
  const double n = std::max<double>(1, static_cast<double>(checks.size()));
  return text +
         nlohmann::ordered_json({{"cases", checks.size()},
                                 {"simulated", simulated},
                                 {"failed", failed},
                                 {"mean_rank", Rounded(ranks / n)},
                                 {"mean_regret", Rounded(regrets / n)},
                                 {"largest_regret", Rounded(regret)}})
             .dump() +
         "\n]\n";
}

}  // namespace polynao::benchmarks
