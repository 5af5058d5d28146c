#include "compiler/poly/fuse/shared_rows.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;

// Loads of a body, each counted once, that leave vector registers for what is computed of them.
constexpr size_t kMostLoads = 24;

// Of a loop with nothing inside but loops, lets and stores.
struct Uses {
  bool is_simple = true;
  absl::flat_hash_set<Buffer> stored, used;
  absl::flat_hash_set<Expr> loads;
};

Uses UsesOf(Stmt s) {
  Uses uses;
  ir::ForEachStmt(s, [&](Stmt part) {
    if (part.Is(StmtKind::kStore)) {
      uses.stored.insert(part.buffer());
      uses.used.insert(part.buffer());
    }
    uses.is_simple &= part.Is(StmtKind::kStore) || part.Is(StmtKind::kLet) ||
                      part.Is(StmtKind::kSeq) || part.Is(StmtKind::kFor);
    return true;
  });
  ir::ForEachExprIn(s, [&](Expr e) {
    if (e.Is(ExprKind::kAddress) || e.callee() != nullptr) uses.is_simple = false;
    if (!e.Is(ExprKind::kLoad)) return;
    uses.used.insert(Buffer(e.buffer()));
    uses.loads.insert(e);
  });
  return uses;
}

bool Meet(const absl::flat_hash_set<Buffer>& a, const absl::flat_hash_set<Buffer>& b) {
  return std::any_of(a.begin(), a.end(), [&](Buffer buffer) { return b.contains(buffer); });
}

bool ReadSameRow(const Uses& a, const Uses& b) {
  const auto is_row = [](Expr x, Expr y) {
    if (Buffer(x.buffer()) != Buffer(y.buffer())) return false;
    const auto of_x = x.operands(), of_y = y.operands();
    return of_x.size() >= 2 && std::equal(of_x.begin(), of_x.end() - 1, of_y.begin());
  };
  return std::any_of(a.loads.begin(), a.loads.end(), [&](Expr x) {
    return std::any_of(b.loads.begin(), b.loads.end(), [&](Expr y) { return is_row(x, y); });
  });
}

class Joiner : public ir::Mutator {
 public:
  using Mutator::Mutate;

  Stmt Mutate(Stmt s) override {
    if (s.Is(StmtKind::kAllocate)) own_.insert(s.buffer());
    const Stmt result = Mutator::Mutate(s);
    if (!result.Is(StmtKind::kSeq)) return result;
    std::vector<Stmt> children;
    for (const Stmt child : result.children()) {
      const Stmt joined = children.empty() ? Stmt() : Join(children.back(), child);
      if (joined) {
        children.back() = joined;
      } else {
        children.push_back(child);
      }
    }
    return result.context().Seq(children);
  }

 private:
  // Both as one, or nothing.
  Stmt Join(Stmt a, Stmt b) const {
    const auto is_loop = [](Stmt s) {
      return s.Is(StmtKind::kFor) &&
             (s.for_kind() == ForKind::kSerial || s.for_kind() == ForKind::kVectorize);
    };
    if (!is_loop(a) || !is_loop(b) || a.for_kind() != b.for_kind() || a.min() != b.min() ||
        a.extent() != b.extent() || a.var().type() != b.var().type()) {
      return {};
    }
    const Stmt second = ir::Substitute(b.body(), {{b.var(), a.var()}});
    ir::Context& c = a.context();
    if (a.for_kind() == ForKind::kSerial) {
      const Stmt joined = Join(a.body(), second);
      return joined ? c.For(a.var(), a.min(), a.extent(), joined, a.for_kind()) : Stmt();
    }
    const Uses of_a = UsesOf(a.body()), of_b = UsesOf(second);
    const auto is_own = [&](Buffer buffer) { return own_.contains(buffer); };
    if (!of_a.is_simple || !of_b.is_simple || Meet(of_a.stored, of_b.used) ||
        Meet(of_b.stored, of_a.used) ||
        !std::all_of(of_a.stored.begin(), of_a.stored.end(), is_own) ||
        !std::all_of(of_b.stored.begin(), of_b.stored.end(), is_own) || !ReadSameRow(of_a, of_b) ||
        of_a.loads.size() + of_b.loads.size() > kMostLoads) {
      return {};
    }
    return c.For(a.var(), a.min(), a.extent(), c.Seq({a.body(), second}), a.for_kind());
  }

  absl::flat_hash_set<Buffer> own_;
};

}  // namespace

Stmt WithSharedRows(Stmt s) { return Joiner().Mutate(s); }

}  // namespace polynao::poly
