#include "compiler/codegen/llvm/vector_loop.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/arith/order.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {

namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;

// vectorize-memory-check-threshold.
constexpr int64_t kMostChecks = 128;

bool Uses(const arith::LinearForm& form, const absl::flat_hash_set<ir::Var>& vars) {
  for (const arith::LinearForm::Term& term : form.terms()) {
    for (const ir::Var var : ir::FreeVars(term.atom)) {
      if (vars.contains(var)) return true;
    }
  }
  return false;
}

class Finder {
 public:
  Finder(Stmt loop, const ir::Aliases& aliases, arith::Analyzer& analyzer)
      : var_(loop.var()), aliases_(aliases), analyzer_(analyzer) {}

  std::optional<VectorLoop> Find(Stmt loop) {
    arith::Analyzer::Scope scope(analyzer_);
    arith::BindLoopWithParts(analyzer_, loop);
    if (!Visit(loop.body()) || !HasSeparateElements()) return std::nullopt;
    result_.has_word_runs = std::all_of(accesses_.begin(), accesses_.end(),
                                        [&](const Access& access) { return IsWordRun(access); });
    return result_;
  }

 private:
  struct Access {
    Buffer buffer;
    bool is_store;
    std::vector<Expr> places;
    std::vector<arith::LinearForm> indices;  // the forms of `places`
  };

  bool Visit(Stmt s) {
    switch (s.kind()) {
      case StmtKind::kSeq:
        return std::all_of(s.children().begin(), s.children().end(),
                           [&](Stmt child) { return Visit(child); });
      case StmtKind::kIf:
        return Evaluates(s.cond()) && Visit(s.then_case()) &&
               (s.else_case().IsEmpty() || Visit(s.else_case()));
      case StmtKind::kPragma:
        return Visit(s.body());
      case StmtKind::kLet: {
        // An integer of 64 bits is an index, unless a value uses it.
        const bool is_index = s.value().type() == Type::kI64;
        if (is_index ? !Evaluates(s.value()) : !Computes(s.value())) return false;
        inside_.insert(s.var());
        if (Varies(s.value())) varies_.insert(s.var());
        arith::Analyzer::Scope scope(analyzer_);
        analyzer_.BindLet(s.var(), s.value());
        return Visit(s.body());
      }
      case StmtKind::kFor: {
        if (s.for_kind() == ForKind::kParallel) return false;
        if (!Evaluates(s.min()) || !Evaluates(s.extent())) return false;
        if (Varies(s.min()) || Varies(s.extent())) return false;
        inside_.insert(s.var());
        arith::Analyzer::Scope scope(analyzer_);
        arith::BindLoopWithParts(analyzer_, s);
        return Visit(s.body());
      }
      case StmtKind::kStore: {
        const Buffer buffer = s.buffer();
        if (aliases_.Group(buffer) || s.indices().empty()) return false;
        for (Expr index : s.indices()) {
          if (!Evaluates(index)) return false;
        }
        AddAccess(buffer, s.indices(), true);
        const arith::LinearForm& last = accesses_.back().indices.back();
        const std::optional<int64_t> slope = SlopeIn(last, var_);
        if (!slope || *slope == 0 || std::abs(*slope) > kMostStride) return false;
        for (size_t d = 0; d + 1 < s.indices().size(); ++d) {
          if (Varies(s.indices()[d])) return false;
        }
        return Computes(s.value());
      }
      case StmtKind::kAllocate:
      case StmtKind::kEvaluate:
        return false;
    }
    return false;
  }

  // Narrow floats are computed as floats, and rounded from these.
  static bool HasVector(Expr e) {
    if (e.type() != Type::kF16 && e.type() != Type::kBF16) return true;
    return !e.Is(ExprKind::kCast) || e.operand(0).type() == Type::kF32;
  }

  // Whether lanes may differ; what memory says counts as such. Of what Evaluates has seen, which knows the lets inside.
  bool Varies(Expr e) {
    const auto [it, is_new] = expressions_that_vary_.emplace(e, false);
    if (!is_new) return it->second;
    bool varies = e.Is(ExprKind::kLoad) || e == var_ || varies_.contains(e);
    for (Expr operand : e.operands()) varies = varies || Varies(operand);
    return expressions_that_vary_[e] = varies;
  }

  // Whether the value has a vector form; `e` is stored or kept, so that its type counts.
  bool Computes(Expr e) {
    if (!Evaluates(e)) return false;
    result_.bytes = std::max<int64_t>(result_.bytes, ir::ByteSize(e.type()));
    AddBytes(e);
    return true;
  }

  // The widest type of what differs from lane to lane, outside of indices and of comparisons of indices.
  void AddBytes(Expr e) {
    if (e == var_ || e.IsConst() || !Varies(e)) return;
    result_.bytes = std::max<int64_t>(result_.bytes, ir::ByteSize(e.type()));
    if (e.Is(ExprKind::kLoad)) return;
    if (ir::IsComparison(e.kind()) && e.operand(0).type() == Type::kI64) return;
    if (!seen_.insert(e).second) return;
    for (Expr operand : e.operands()) AddBytes(operand);
  }

  bool Evaluates(Expr root) {
    bool can = true;
    ir::ForEachExpr(root, [&](Expr e) {
      can &= HasVector(e) && !e.Is(ExprKind::kAddress);
      if (e.Is(ExprKind::kLet)) inside_.insert(e.var()), varies_.insert(e.var());
      if (e.Is(ExprKind::kCall)) {
        const ir::PureIntrinsic* intrinsic = ir::FindPureIntrinsic(e.name());
        can &= intrinsic != nullptr && ir::HasVectorForm(*intrinsic, e.type());
      }
      const bool divides = e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod);
      if (divides && ir::IsInt(e.type())) {
        can &= e.operand(1).Is(ExprKind::kIntImm) && e.operand(1).int_value() != 0;
      }
      if (can && e.Is(ExprKind::kLoad)) AddAccess(Buffer(e.buffer()), e.operands(), false);
    });
    return can;
  }

  bool IsWordRun(const Access& access) {
    if (ir::ByteSize(access.buffer->type) < ir::ByteSize(Type::kI32)) return false;
    for (size_t d = 0; d < access.indices.size(); ++d) {
      const std::optional<int64_t> slope = SlopeIn(access.indices[d], var_);
      const bool is_last = d + 1 == access.indices.size();
      if (!slope || *slope < 0 || *slope > (is_last ? 1 : 0)) return false;
      if (Uses(access.indices[d], varies_)) return false;
    }
    return true;
  }

  void AddAccess(Buffer buffer, absl::Span<const Expr> indices, bool is_store) {
    Access access{.buffer = buffer,
                  .is_store = is_store,
                  .places = {indices.begin(), indices.end()},
                  .indices = {}};
    for (Expr index : indices) access.indices.push_back(analyzer_.Form(index));
    accesses_.push_back(std::move(access));
  }

  // No two iterations use the same element of what one of them stores.
  bool HasSeparateElements() {
    for (const Access& store : accesses_) {
      if (!store.is_store) continue;
      for (const Access& other : accesses_) {
        if (other.buffer != store.buffer) continue;
        result_.reads_what_it_stores |= !other.is_store;
        if (!AreSeparate(store, other)) return false;
      }
    }
    return true;
  }

  // c i + r and c j + r + d are the same only if i == j, for |d| < |c|.
  bool AreSeparate(const Access& a, const Access& b) {
    for (size_t d = 0; d < a.indices.size(); ++d) {
      const std::optional<int64_t> slope = SlopeIn(a.indices[d], var_);
      if (!slope || *slope == 0 || slope != SlopeIn(b.indices[d], var_)) continue;
      arith::LinearForm difference = a.indices[d];
      if (!difference.Add(b.indices[d], -1) || !difference.IsConstant()) continue;
      if (std::abs(difference.constant()) >= std::abs(*slope)) continue;
      if (!Uses(a.indices[d], inside_)) return true;
    }
    for (size_t d = 0; d < a.indices.size(); ++d) {
      if (NeverMeet(a, b, d)) return true;
    }
    return false;
  }

  // Whether the indices of dimension d differ, whichever iterations a and b are of: those of A[r, i] and A[r, k], k <
  // i, in the elimination of row r by row k.
  bool NeverMeet(const Access& a, const Access& b, size_t d) {
    if (Uses(a.indices[d], inside_) || Uses(b.indices[d], inside_)) return false;
    if (Uses(a.indices[d], {var_}) && Uses(b.indices[d], {var_})) return false;
    ir::Context& c = var_.context();
    const Expr x = c.Cast(Type::kI64, a.places[d]);
    const Expr y = c.Cast(Type::kI64, b.places[d]);
    return arith::IsLess(analyzer_, x, y) || arith::IsLess(analyzer_, y, x);
  }

  const ir::Var var_;
  const ir::Aliases& aliases_;
  arith::Analyzer& analyzer_;
  VectorLoop result_;
  std::vector<Access> accesses_;
  absl::flat_hash_set<ir::Var> inside_;  // bound in the body
  absl::flat_hash_set<ir::Var> varies_;  // of these, those that may differ from lane to lane
  absl::flat_hash_map<Expr, bool> expressions_that_vary_;  // answers of Varies
  absl::flat_hash_set<Expr> seen_;
};

// The pairs of accesses that LLVM compares before a loop runs as vectors.
class CheckCounter {
 public:
  CheckCounter(const ir::Aliases& aliases, arith::Analyzer& analyzer)
      : aliases_(aliases), analyzer_(analyzer) {}

  // `copies`: what unrolling makes of `s`.
  void Visit(Stmt s, double copies) {
    ir::ForEachStmt(s, [&](Stmt child) {
      for (Expr operand : child.operands()) {
        ir::ForEachExpr(operand, [&](Expr e) {
          if (e.Is(ExprKind::kLet)) inside_.insert(e.var());
          if (e.Is(ExprKind::kLoad)) Add(Buffer(e.buffer()), e.operands(), false, copies);
        });
      }
      if (child.Is(StmtKind::kStore)) Add(child.buffer(), child.indices(), true, copies);
      if (child.Is(StmtKind::kLet)) inside_.insert(child.var());
      if (!child.Is(StmtKind::kFor)) return true;
      // An extent that LLVM may find to be a constant counts as a large one.
      const bool is_constant = child.extent().Is(ExprKind::kIntImm);
      if (!is_constant) inside_.insert(child.var());
      if (is_constant) unrolled_.insert(child.var());
      Visit(child.body(),
            copies * (is_constant ? std::max(0.0, static_cast<double>(child.extent().int_value()))
                                  : double{kMostChecks + 1}));
      return false;
    });
  }

  double Checks() const {
    double checks = 0;
    bool needs_some = false;
    for (const auto& [key, accesses] : buffers_) {
      if (accesses.stores <= 0) continue;
      checks += accesses.stores * accesses.all;
      needs_some |= !accesses.at_constant_distances;
    }
    return needs_some ? checks : 0;
  }

 private:
  // Of one buffer, or of all that may overlap.
  struct Accesses {
    Buffer buffer;
    std::vector<arith::LinearForm> first;  // indices
    double stores = 0, all = 0;
    bool at_constant_distances = true;
  };

  void Add(Buffer buffer, absl::Span<const Expr> indices, bool is_store, double copies) {
    const std::optional<size_t> group = aliases_.Group(buffer);
    std::vector<arith::LinearForm> forms;
    for (Expr index : indices) forms.push_back(analyzer_.Form(index));
    Accesses& accesses =
        buffers_.try_emplace({group ? Buffer() : buffer, group.value_or(0)}).first->second;
    if (accesses.all == 0) accesses.buffer = buffer, accesses.first = forms;
    accesses.all += copies;
    if (is_store) accesses.stores += copies;
    bool& constant = accesses.at_constant_distances;
    constant &= accesses.buffer == buffer;
    for (size_t d = 0; constant && d < forms.size(); ++d) {
      if (copies > 1) constant &= HasCopiesAtConstantDistances(forms[d]);
      constant &= forms[d].Add(accesses.first[d], -1) && forms[d].IsConstant();
    }
  }

  // Of 2 j + k with an unrolled j; not of A[j], n j, or what a let says.
  bool HasCopiesAtConstantDistances(const arith::LinearForm& form) const {
    if (Uses(form, inside_)) return false;
    return std::all_of(form.terms().begin(), form.terms().end(), [&](const auto& term) {
      return unrolled_.contains(term.atom) || !Uses(arith::LinearForm::Atom(term.atom), unrolled_);
    });
  }

  const ir::Aliases& aliases_;
  arith::Analyzer& analyzer_;
  absl::flat_hash_map<std::pair<Buffer, size_t>, Accesses> buffers_;
  absl::flat_hash_set<ir::Var> unrolled_;
  absl::flat_hash_set<ir::Var> inside_;  // bound in the body otherwise
};

}  // namespace

std::optional<VectorLoop> FindVectorLoop(Stmt loop, const ir::Aliases& aliases,
                                         arith::Analyzer& analyzer) {
  return Finder(loop, aliases, analyzer).Find(loop);
}

bool MayLoseChecks(Stmt loop, const ir::Aliases& aliases, arith::Analyzer& analyzer) {
  CheckCounter counter(aliases, analyzer);
  counter.Visit(loop.body(), 1);
  return counter.Checks() > kMostChecks;
}

std::optional<int64_t> SlopeIn(const arith::LinearForm& form, ir::Var var) {
  for (const arith::LinearForm::Term& term : form.terms()) {
    if (term.atom != var && ir::UsesVar(term.atom, var)) return std::nullopt;
  }
  return form.CoefficientOf(var);
}

}  // namespace polynao::codegen
