#include "compiler/passes/cse_tables.h"

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::cse {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

class Counter {
 public:
  explicit Counter(const std::function<bool(Expr)>& is_candidate) : is_candidate_(is_candidate) {}

  void Count(Stmt s) {
    // Hints, and what sizes memory, are not bound.
    if (!s.Is(StmtKind::kPragma)) {
      for (Expr e : s.operands()) Count(e);
    }
    for (Stmt child : s.children()) Count(child);
  }

  ComputationTable table;

 private:
  void Count(Expr e) {
    if (!is_candidate_(e)) {
      for (Expr operand : e.operands()) Count(operand);
      return;
    }
    const auto [it, is_new] = rows_.emplace(e, table.size());
    if (is_new) table.emplace_back(e, 0);
    ++table[it->second].second;
  }

  const std::function<bool(Expr)>& is_candidate_;
  absl::flat_hash_map<Expr, size_t> rows_;
};

// Every operator in parentheses of its own, as in the article.
std::string FullText(Expr e) {
  static constexpr std::pair<ExprKind, std::string_view> kOperators[] = {
      {ExprKind::kAdd, "+"},        {ExprKind::kSub, "-"},    {ExprKind::kMul, "*"},
      {ExprKind::kDiv, "/"},        {ExprKind::kMod, "%"},    {ExprKind::kEq, "=="},
      {ExprKind::kNe, "!="},        {ExprKind::kLt, "<"},     {ExprKind::kLe, "<="},
      {ExprKind::kAnd, "&&"},       {ExprKind::kOr, "||"},    {ExprKind::kBitAnd, "&"},
      {ExprKind::kBitOr, "|"},      {ExprKind::kBitXor, "^"}, {ExprKind::kShiftLeft, "<<"},
      {ExprKind::kShiftRight, ">>"}};
  for (const auto& [kind, text] : kOperators) {
    if (!e.Is(kind)) continue;
    return StrCat("(", FullText(e.operand(0)), " ", text, " ", FullText(e.operand(1)), ")");
  }
  return ir::Print(e);
}

class Replacer : public ir::Mutator {
 public:
  Replacer(Expr from, Expr to) : from_(from), to_(to) {}
  using Mutator::Mutate;
  Expr Mutate(Expr e) override {
    if (e == from_) return to_;
    const auto [it, is_new] = done_.try_emplace(e);
    if (!is_new) return it->second;
    const Expr result = MutateOperands(e);
    return done_[e] = result;
  }
  Stmt Mutate(Stmt s) override { return Mutator::Mutate(s); }

 private:
  const Expr from_, to_;
  absl::flat_hash_map<Expr, Expr> done_;
};

std::string Step(Stmt s, bool creates, const std::function<bool(Expr)>& is_candidate) {
  return StrCat("Input Stmt :\n", ir::Print(s), "\nComputationTable :\n",
                TableText(ComputationsDoneBy(s, is_candidate)), "variables_created ",
                creates ? "true" : "false", "\n");
}

}  // namespace

ComputationTable ComputationsDoneBy(Stmt s, const std::function<bool(Expr)>& is_candidate) {
  Counter counter(is_candidate);
  counter.Count(s);
  return std::move(counter.table);
}

std::string TableText(const ComputationTable& table) {
  std::string text = "{\n";
  for (const auto& [e, count] : table) StrAppend(&text, "(", FullText(e), ", ", count, ")\n");
  return text + "}\n";
}

std::string ScopeLog(Stmt s, absl::Span<const NewVariable> variables,
                     const std::function<bool(Expr)>& is_candidate) {
  std::string text;
  for (const auto& [var, value] : variables) {
    StrAppend(&text, Step(s, /*creates=*/true, is_candidate));
    s = s.context().LetStmt(var, value, Replacer(value, var).Mutate(s));
  }
  for (size_t i = 0; i <= variables.size(); ++i) {
    StrAppend(&text, Step(s, /*creates=*/false, is_candidate));
    if (i < variables.size()) s = s.body();
  }
  return text;
}

}  // namespace polynao::cse
