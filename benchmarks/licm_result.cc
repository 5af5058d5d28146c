#include "benchmarks/licm_result.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/json_reader.h"
#include "compiler/target/target.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {

std::string LicmRow::Name() const { return StrCat(op, "/", id); }

double LicmRow::passes_ms() const {
  double sum = 0;
  for (const auto& [pass, ms] : pass_ms) sum += ms;
  return sum;
}

Verdict VerdictOf(double speedup) {
  if (speedup > 1 + kBand) return Verdict::kImproved;
  return speedup < 1 - kBand ? Verdict::kWorse : Verdict::kUnchanged;
}

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kImproved:
      return "improved";
    case Verdict::kUnchanged:
      return "unchanged";
    case Verdict::kWorse:
      return "worse";
  }
  return "";
}

namespace {

double PerElement(const LicmRow& row, int64_t count) {
  return static_cast<double>(count) /
         static_cast<double>(std::max<int64_t>(1, row.output_elements));
}

double Quotient(double after, double before) { return before == 0 ? 1 : after / before; }

class GeometricMean {
 public:
  // A count that fell to zero counts as a thousandth.
  void Add(double value) {
    logarithms_ += std::log(std::max(value, 1e-3));
    ++count_;
  }
  double value() const { return count_ == 0 ? 1 : std::exp(logarithms_ / count_); }

 private:
  double logarithms_ = 0;
  int count_ = 0;
};

void Add(LicmCode& sum, const LicmCode& more) {
  sum.ptx += more.ptx;
  sum.ptx_integer += more.ptx_integer;
  sum.ptx_branches += more.ptx_branches;
  sum.machine_bytes += more.machine_bytes;
}

LicmOperator SummarizeOperator(const std::string& op, const std::vector<const LicmRow*>& rows) {
  LicmOperator result{.op = op};
  double speedups = 0, baseline = 0, optimized = 0;
  double int_ops[2] = {}, branches[2] = {};
  LicmCode code[2];
  GeometricMean executed, executed_integer;
  for (const LicmRow* row : rows) {
    ++result.cases;
    if (!row->error.empty()) continue;
    int_ops[0] += PerElement(*row, row->baseline_counts.int_ops());
    int_ops[1] += PerElement(*row, row->optimized_counts.int_ops());
    branches[0] += PerElement(*row, row->baseline_counts.branches);
    branches[1] += PerElement(*row, row->optimized_counts.branches);
    if (row->baseline_code && row->optimized_code) {
      Add(code[0], *row->baseline_code);
      Add(code[1], *row->optimized_code);
      executed.Add(Quotient(row->optimized_code->executed, row->baseline_code->executed));
      executed_integer.Add(
          Quotient(row->optimized_code->executed_integer, row->baseline_code->executed_integer));
    }
    if (!row->effective()) continue;
    if (result.effective++ == 0) {
      result.best = result.worst = row->speedup;
      result.worst_id = row->id;
    }
    speedups += row->speedup;
    baseline += row->baseline_ns;
    optimized += row->optimized_ns;
    result.best = std::max(result.best, row->speedup);
    if (row->speedup < result.worst) {
      result.worst = row->speedup;
      result.worst_id = row->id;
    }
  }
  if (result.effective > 0) {
    result.average = speedups / result.effective;
    result.total = baseline / optimized;
  }
  result.int_ops = Quotient(int_ops[1], int_ops[0]);
  result.branches = Quotient(branches[1], branches[0]);
  const auto quotient = [&](int64_t LicmCode::* what) {
    return Quotient(static_cast<double>(code[1].*what), static_cast<double>(code[0].*what));
  };
  result.executed = executed.value();
  result.executed_integer = executed_integer.value();
  result.ptx = quotient(&LicmCode::ptx);
  result.ptx_integer = quotient(&LicmCode::ptx_integer);
  result.ptx_branches = quotient(&LicmCode::ptx_branches);
  result.machine_bytes = quotient(&LicmCode::machine_bytes);
  return result;
}

}  // namespace

LicmSummary SummarizeLicm(const std::vector<LicmRow>& rows) {
  LicmSummary summary;
  std::vector<std::pair<std::string, std::vector<const LicmRow*>>> by_operator;
  double speedups = 0, baseline = 0, optimized = 0;
  GeometricMean executed;
  for (const LicmRow& row : rows) {
    ++summary.cases;
    const auto found = std::find_if(by_operator.begin(), by_operator.end(),
                                    [&](const auto& entry) { return entry.first == row.op; });
    if (found == by_operator.end()) {
      by_operator.push_back({row.op, {&row}});
    } else {
      found->second.push_back(&row);
    }
    if (!row.error.empty()) {
      ++summary.failed;
      continue;
    }
    ++summary.measured;
    summary.differ += !row.values_agree;
    if (row.passes_ms() > summary.most_passes_ms) {
      summary.most_passes_ms = row.passes_ms();
      summary.most_passes_case = row.Name();
    }
    summary.same_code += row.same_code;
    if (row.baseline_code && row.optimized_code) {
      const double quotient = Quotient(row.optimized_code->executed, row.baseline_code->executed);
      executed.Add(quotient);
      summary.fewer_executed += quotient < 1 - kBand;
      summary.same_executed += std::abs(quotient - 1) <= kBand;
      summary.more_executed += quotient > 1 + kBand;
      if (summary.most_executed_case.empty() || quotient > summary.most_executed) {
        summary.most_executed = quotient;
        summary.most_executed_case = row.Name();
      }
    }
    if (!row.effective()) {
      summary.too_short += !row.same_code;
      continue;
    }
    if (summary.effective++ == 0 || row.speedup < summary.worst) {
      summary.worst = row.speedup;
      summary.worst_case = row.Name();
    }
    speedups += row.speedup;
    baseline += row.baseline_ns;
    optimized += row.optimized_ns;
    const Verdict verdict = VerdictOf(row.speedup);
    summary.improved_cases += verdict == Verdict::kImproved;
    summary.unchanged_cases += verdict == Verdict::kUnchanged;
    summary.worse_cases += verdict == Verdict::kWorse;
  }
  summary.executed = executed.value();
  if (summary.effective > 0) {
    summary.average = speedups / summary.effective;
    summary.total = baseline / optimized;
  }
  for (const auto& [op, its_rows] : by_operator) {
    LicmOperator entry = SummarizeOperator(op, its_rows);
    if (entry.effective > 0) {
      ++summary.effective_operators;
      const Verdict verdict = VerdictOf(entry.average);
      summary.improved += verdict == Verdict::kImproved;
      summary.unchanged += verdict == Verdict::kUnchanged;
      summary.worse += verdict == Verdict::kWorse;
    }
    summary.operators.push_back(std::move(entry));
  }
  return summary;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t ir::Counts::* kCounts[] = {
    &ir::Counts::loads,    &ir::Counts::stores,     &ir::Counts::int_add,
    &ir::Counts::int_mul,  &ir::Counts::int_div,    &ir::Counts::int_compare,
    &ir::Counts::logic,    &ir::Counts::float_ops,  &ir::Counts::casts,
    &ir::Counts::branches, &ir::Counts::iterations, &ir::Counts::instructions};

Json CountsJson(const ir::Counts& c) {
  Json json = Json::object();
  for (const auto& [name, count] : ir::CountRows(c)) json[name] = count;
  return json;
}

Json CodeJson(const std::optional<LicmCode>& c) {
  if (!c) return nullptr;
  return {{"executed", c->executed},
          {"executed_integer", c->executed_integer},
          {"exact_execution", c->exact_execution},
          {"ptx", c->ptx},
          {"ptx_integer", c->ptx_integer},
          {"ptx_branches", c->ptx_branches},
          {"machine_bytes", c->machine_bytes},
          {"registers", c->registers},
          {"spill_bytes", c->spill_bytes}};
}

void ReadCounts(const Json& json, ir::Counts& counts, absl::Status& status) {
  JsonReader reader(json, status);
  const std::vector<std::pair<std::string, int64_t>> names = ir::CountRows(counts);
  POLYNAO_CHECK(names.size() == std::size(kCounts)) << names.size();
  for (size_t i = 0; i < names.size(); ++i) reader.Read(names[i].first, counts.*kCounts[i]);
}

void ReadCode(const Json& json, std::optional<LicmCode>& code, absl::Status& status) {
  if (json.is_null()) return;
  LicmCode& c = code.emplace();
  JsonReader reader(json, status);
  reader.Read("executed", c.executed);
  reader.Read("executed_integer", c.executed_integer);
  reader.Read("exact_execution", c.exact_execution);
  reader.Read("ptx", c.ptx);
  reader.Read("ptx_integer", c.ptx_integer);
  reader.Read("ptx_branches", c.ptx_branches);
  reader.Read("machine_bytes", c.machine_bytes);
  reader.Read("registers", c.registers);
  reader.Read("spill_bytes", c.spill_bytes);
}

}  // namespace

Json RowToJson(const LicmRow& row, std::string_view target) {
  Json json = {{"case", row.Name()},
               {"op", row.op},
               {"id", row.id},
               {"shape", row.shape},
               {"functions", row.functions}};
  if (!row.error.empty()) {
    json["ok"] = false;
    json["error"] = row.error;
    return json;
  }
  json["ok"] = row.values_agree;
  json["error"] = nullptr;
  json["same_code"] = row.same_code;
  if (IsGpu(target)) {
    json["baseline_code"] = CodeJson(row.baseline_code);
    json["optimized_code"] = CodeJson(row.optimized_code);
    json["no_code"] = row.no_code.empty() ? Json(nullptr) : Json(row.no_code);
  } else {
    json["effective"] = row.effective();
    json["baseline_ns"] = row.baseline_ns;
    json["optimized_ns"] = row.optimized_ns;
    json["speedup"] = row.speedup;
    json["samples"] = row.samples;
  }
  json["output_elements"] = row.output_elements;
  json["baseline_counts"] = CountsJson(row.baseline_counts);
  json["optimized_counts"] = CountsJson(row.optimized_counts);
  json["exact_counts"] = row.exact_counts;
  json["nodes"] = row.nodes;
  Json passes = Json::object();
  for (const auto& [pass, ms] : row.pass_ms) passes[pass] = ms;
  json["pass_ms"] = passes;
  return json;
}

absl::StatusOr<LicmRow> RowFromJson(const Json& json) {
  if (!json.is_object()) return InvalidInput("expected an object, found ", json.dump());
  LicmRow row;
  absl::Status status;
  JsonReader reader(json, status);
  reader.Read("op", row.op);
  reader.Read("id", row.id);
  reader.Read("shape", row.shape);
  reader.Read("functions", row.functions);
  if (json.contains("error") && json["error"].is_string()) {
    row.error = json["error"].get<std::string>();
    RETURN_IF_ERROR(status);
    return row;
  }
  reader.Read("ok", row.values_agree);
  reader.Read("same_code", row.same_code);
  if (json.contains("baseline_code")) {
    ReadCode(json["baseline_code"], row.baseline_code, status);
    ReadCode(json.value("optimized_code", Json()), row.optimized_code, status);
    if (const auto reason = json.find("no_code"); reason != json.end() && reason->is_string()) {
      row.no_code = reason->get<std::string>();
    }
  } else {
    reader.Read("baseline_ns", row.baseline_ns);
    reader.Read("optimized_ns", row.optimized_ns);
    reader.Read("speedup", row.speedup);
    reader.Read("samples", row.samples);
  }
  reader.Read("output_elements", row.output_elements);
  ReadCounts(reader.Object("baseline_counts"), row.baseline_counts, status);
  ReadCounts(reader.Object("optimized_counts"), row.optimized_counts, status);
  reader.Read("exact_counts", row.exact_counts);
  reader.Read("nodes", row.nodes);
  const Json passes = reader.Object("pass_ms");
  JsonReader times(passes, status);
  for (const auto& [pass, ms] : passes.items())
    times.Read(pass, row.pass_ms.emplace_back(pass, 0).second);
  RETURN_IF_ERROR(status);
  return row;
}

Json ToJson(const LicmResult& result) {
  const bool cuda = IsGpu(result.target);
  Json rows = Json::array();
  for (const LicmRow& row : result.rows) rows.push_back(RowToJson(row, result.target));
  const LicmSummary& s = result.summary;
  Json operators = Json::array();
  for (const LicmOperator& op : s.operators) {
    operators.push_back(
        {{"op", op.op},
         {"cases", op.cases},
         {"effective", op.effective},
         {"verdict", op.effective == 0 ? std::string("no effective case")
                                       : std::string(VerdictName(VerdictOf(op.average)))},
         {"average", op.average},
         {"total", op.total},
         {"best", op.best},
         {"worst", op.worst},
         {"worst_id", op.worst_id},
         {"int_ops", op.int_ops},
         {"branches", op.branches}});
    if (cuda) {
      for (const char* times :
           {"effective", "verdict", "average", "total", "best", "worst", "worst_id"}) {
        operators.back().erase(times);
      }
      operators.back()["executed"] = op.executed;
      operators.back()["executed_integer"] = op.executed_integer;
      operators.back()["ptx"] = op.ptx;
      operators.back()["ptx_integer"] = op.ptx_integer;
      operators.back()["ptx_branches"] = op.ptx_branches;
      operators.back()["machine_bytes"] = op.machine_bytes;
    }
  }
  const Json summary = {{"cases", s.cases},
                        {"measured", s.measured},
                        {"failed", s.failed},
                        {"differ", s.differ},
                        {"same_code", s.same_code},
                        {"too_short", s.too_short},
                        {"effective", s.effective},
                        {"effective_operators", s.effective_operators},
                        {"improved", s.improved},
                        {"unchanged", s.unchanged},
                        {"worse", s.worse},
                        {"improved_cases", s.improved_cases},
                        {"unchanged_cases", s.unchanged_cases},
                        {"worse_cases", s.worse_cases},
                        {"average", s.average},
                        {"total", s.total},
                        {"worst", s.worst},
                        {"worst_case", s.worst_case},
                        {"fewer_executed", s.fewer_executed},
                        {"same_executed", s.same_executed},
                        {"more_executed", s.more_executed},
                        {"executed", s.executed},
                        {"most_executed", s.most_executed},
                        {"most_executed_case", s.most_executed_case},
                        {"most_passes_ms", s.most_passes_ms},
                        {"most_passes_case", s.most_passes_case},
                        {"operators", operators}};
  return {{"suite", "licm511"},
          {"target", result.target},
          {"machine", result.machine},
          {"date", result.date},
          {"commit", result.commit},
          {"filter", result.filter},
          {"wall_seconds", result.wall_seconds},
          {"ok", result.ok()},
          {"rows", rows},
          {"summary", summary}};
}

namespace {

std::string CudaRowsText(const LicmResult& result) {
  std::string text = absl::StrFormat("%-34s %9s %9s %8s %8s %8s %8s %8s %9s %9s %8s  %s\n", "case",
                                     "int ops", "branches", "executed", "integer", "PTX", "optim.",
                                     "bytes", "registers", "optim.", "ms", "");
  for (const LicmRow& row : result.rows) {
    if (!row.error.empty()) {
      absl::StrAppendFormat(&text, "%-34s FAILED: %s\n", row.Name(), row.error);
      continue;
    }
    const LicmCode before = row.baseline_code.value_or(LicmCode());
    const LicmCode after = row.optimized_code.value_or(LicmCode());
    absl::StrAppendFormat(
        &text, "%-34s %9.3f %9.3f %8.3f %8.3f %8d %8d %8.3f %9d %9d %8.2f  %s\n", row.Name(),
        Quotient(static_cast<double>(row.optimized_counts.int_ops()),
                 static_cast<double>(row.baseline_counts.int_ops())),
        Quotient(static_cast<double>(row.optimized_counts.branches),
                 static_cast<double>(row.baseline_counts.branches)),
        Quotient(after.executed, before.executed),
        Quotient(after.executed_integer, before.executed_integer), before.ptx, after.ptx,
        Quotient(static_cast<double>(after.machine_bytes),
                 static_cast<double>(before.machine_bytes)),
        before.registers, after.registers, row.passes_ms(),
        row.same_code ? "same CUDA C" : row.no_code);
  }
  return text;
}

std::string CudaSummaryText(const LicmSummary& s) {
  std::string text =
      absl::StrFormat("%-28s %5s %9s %9s %8s %8s %8s %8s %8s %8s\n", "operator", "cases", "int ops",
                      "branches", "executed", "integer", "PTX", "integer", "branches", "bytes");
  for (const LicmOperator& op : s.operators) {
    absl::StrAppendFormat(&text, "%-28s %5d %9.3f %9.3f %8.3f %8.3f %8.3f %8.3f %8.3f %8.3f\n",
                          op.op, op.cases, op.int_ops, op.branches, op.executed,
                          op.executed_integer, op.ptx, op.ptx_integer, op.ptx_branches,
                          op.machine_bytes);
  }
  absl::StrAppendFormat(&text, "\n%d cases: %d compiled, %d failed; %d have the same CUDA C.\n",
                        s.cases, s.measured, s.failed, s.same_code);
  if (s.most_executed_case.empty()) return text;
  absl::StrAppendFormat(&text,
                        "Executed instructions of PTX: fewer in %d, as many in %d, more in %d; "
                        "%.3f of the baseline's "
                        "(geometric mean), at most %.3f (%s).\n",
                        s.fewer_executed, s.same_executed, s.more_executed, s.executed,
                        s.most_executed, s.most_executed_case);
  return text;
}

std::string PassesText(const LicmSummary& s) {
  return absl::StrFormat("The four passes take at most %.2f ms%s.\n", s.most_passes_ms,
                         s.most_passes_case.empty() ? "" : " (" + s.most_passes_case + ")");
}

}  // namespace

std::string RowsText(const LicmResult& result) {
  if (IsGpu(result.target)) return CudaRowsText(result);
  std::string text = absl::StrFormat("%-34s %11s %11s %8s %9s %9s %8s  %s\n", "case", "baseline us",
                                     "optimized", "speed-up", "int ops", "branches", "ms", "");
  for (const LicmRow& row : result.rows) {
    if (!row.error.empty()) {
      absl::StrAppendFormat(&text, "%-34s FAILED: %s\n", row.Name(), row.error);
      continue;
    }
    const std::string note = !row.values_agree ? "VALUES DIFFER"
                             : row.same_code   ? "same code"
                             : row.effective() ? ""
                                               : "under 50 us";
    absl::StrAppendFormat(&text, "%-34s %11.1f %11.1f %8.3f %9.3f %9.3f %8.2f  %s\n", row.Name(),
                          row.baseline_ns / 1e3, row.optimized_ns / 1e3, row.speedup,
                          Quotient(static_cast<double>(row.optimized_counts.int_ops()),
                                   static_cast<double>(row.baseline_counts.int_ops())),
                          Quotient(static_cast<double>(row.optimized_counts.branches),
                                   static_cast<double>(row.baseline_counts.branches)),
                          row.passes_ms(), note);
  }
  return text;
}

std::string SummaryText(const LicmResult& result) {
  const LicmSummary& s = result.summary;
  if (IsGpu(result.target)) return CudaSummaryText(s) + PassesText(s);
  std::string text =
      absl::StrFormat("%-28s %5s %5s %8s %8s %8s %8s %9s %9s\n", "operator", "cases", "eff.",
                      "average", "total", "best", "worst", "int ops", "branches");
  for (const LicmOperator& op : s.operators) {
    absl::StrAppendFormat(&text, "%-28s %5d %5d", op.op, op.cases, op.effective);
    if (op.effective > 0) {
      absl::StrAppendFormat(&text, " %8.3f %8.3f %8.3f %8.3f", op.average, op.total, op.best,
                            op.worst);
    } else {
      absl::StrAppendFormat(&text, " %8s %8s %8s %8s", "-", "-", "-", "-");
    }
    absl::StrAppendFormat(&text, " %9.3f %9.3f  %s\n", op.int_ops, op.branches,
                          op.effective > 0 ? std::string(VerdictName(VerdictOf(op.average))) : "");
  }
  absl::StrAppendFormat(
      &text,
      "\n%d cases: %d measured, %d failed, %d with other values. Effective: %d (%d have the same "
      "code, %d take less than %.0f us).\n",
      s.cases, s.measured, s.failed, s.differ, s.effective, s.same_code, s.too_short,
      kEffectiveNs / 1e3);
  const auto share = [&](int count) {
    return s.effective_operators == 0 ? 0 : 100.0 * count / s.effective_operators;
  };
  absl::StrAppendFormat(&text,
                        "Of %d effective operators %d improved (%.1f %%), %d unchanged (%.1f %%), "
                        "%d worse (%.1f %%); "
                        "of the cases %d, %d, %d.\n",
                        s.effective_operators, s.improved, share(s.improved), s.unchanged,
                        share(s.unchanged), s.worse, share(s.worse), s.improved_cases,
                        s.unchanged_cases, s.worse_cases);
  absl::StrAppendFormat(
      &text, "Average speed-up %.3f, of the total time %.3f, worst case %.3f%s.\n", s.average,
      s.total, s.worst, s.worst_case.empty() ? "" : " (" + s.worst_case + ")");
  return text + PassesText(s);
}

}  // namespace polynao::benchmarks
