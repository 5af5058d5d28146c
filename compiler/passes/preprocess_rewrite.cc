#include "compiler/passes/preprocess_rewrite.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/nest_builder.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// Puts the planned nests and buffers into the function.
class Rewriter : public ir::Mutator {
 public:
  Rewriter(const PreprocessFacts& facts, const PreprocessPlan& plan, NestBuilder& builder,
           ir::Context& context)
      : facts_(facts), plan_(plan), builder_(builder), c_(context) {
    for (size_t n = 0; n < facts.nests.size(); ++n) nest_of_[facts.nests[n].pragma] = n;
  }

  Expr Mutate(Expr e) override {
    const bool is_access = e.Is(ExprKind::kLoad) || e.Is(ExprKind::kAddress);
    const BufferPlan* plan = is_access ? plan_.Replaced(Buffer(e.buffer())) : nullptr;
    if (plan == nullptr) return Mutator::Mutate(e);
    const std::vector<Expr> indices = Indices(*plan, e.operands());
    return e.Is(ExprKind::kLoad) ? c_.Load(plan->replacement, indices)
                                 : c_.Address(plan->replacement, indices);
  }

  Stmt Mutate(Stmt s) override {
    if (s.Is(StmtKind::kPragma)) {
      auto it = nest_of_.find(s);
      if (it != nest_of_.end()) {
        const Stmt built = builder_.Build(it->second);
        return built == s ? Mutator::Mutate(s) : Mutate(built);
      }
    }
    if (const auto filled = facts_.filled_before.find(s); filled != facts_.filled_before.end()) {
      return Mutate(FilledBefore(s, filled->second));
    }
    if (s.Is(StmtKind::kAllocate)) {
      // No element of a window is stored twice, so its padding comes before all else.
      const auto window = facts_.windows.find(s.buffer());
      if (window != facts_.windows.end() && facts_.IsFilled(window->second, s.buffer())) {
        const Stmt fill = builder_.FillAll(s.buffer(), *window->second.fill_value);
        s = c_.Allocate(s.buffer(), c_.Seq({fill, s.body()}));
      }
    }
    const BufferPlan* plan =
        s.Is(StmtKind::kAllocate) || s.Is(StmtKind::kStore) ? plan_.Replaced(s.buffer()) : nullptr;
    if (plan == nullptr) return Mutator::Mutate(s);
    if (s.Is(StmtKind::kAllocate)) return c_.Allocate(plan->replacement, Mutate(s.body()));
    return c_.Store(plan->replacement, Indices(*plan, s.indices()), Mutate(s.value()));
  }

 private:
  // The loop with the buffers, which it allocates, allocated and filled in front of it.
  Stmt FilledBefore(Stmt loop, const std::vector<Buffer>& buffers) {
    std::vector<Stmt> stmts;
    for (Buffer buffer : buffers) {
      stmts.push_back(builder_.FillAll(buffer, facts_.before_loops.at(buffer)));
    }
    const auto without = [&](const auto& self, Stmt s) -> Stmt {
      if (!s.Is(StmtKind::kAllocate)) return s;
      const Stmt body = self(self, s.body());
      const bool is_filled = std::find(buffers.begin(), buffers.end(), s.buffer()) != buffers.end();
      return is_filled ? body : c_.Allocate(s.buffer(), body);
    };
    stmts.push_back(c_.Rebuild(loop, loop.operands(), {without(without, loop.body())}));
    Stmt result = c_.Seq(stmts);
    for (Buffer buffer : buffers) result = c_.Allocate(buffer, result);
    return result;
  }

  std::vector<Expr> Indices(const BufferPlan& plan, absl::Span<const Expr> old) {
    std::vector<Expr> indices;
    for (Expr index : old) indices.push_back(Mutate(index));
    if (!plan.layout) return indices;
    const Expr channel = indices[plan.channel_dimension];
    const int64_t lanes = plan.layout->lanes;
    return LaidOutIndices(plan, indices, channel % lanes, channel / lanes);
  }

  const PreprocessFacts& facts_;
  const PreprocessPlan& plan_;
  NestBuilder& builder_;
  ir::Context& c_;
  absl::flat_hash_map<Stmt, size_t> nest_of_;
};

}  // namespace

Stmt CarryOut(Stmt body, const PreprocessFacts& facts, const PreprocessPlan& plan,
              GuardRemoval& guards, arith::Analyzer& analyzer,
              std::vector<PreprocessDecision>* decisions) {
  NestBuilder builder(facts, plan, guards, analyzer, decisions);
  return Rewriter(facts, plan, builder, analyzer.context()).Mutate(body);
}

}  // namespace polynao
