#include "compiler/passes/thread_memory.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/affine.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/facts.h"
#include "compiler/passes/instruction_layout.h"
#include "compiler/target/core_roles.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using arith::Analyzer;
using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Function;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

// What is known of one allocation.
struct Allocation {
  Stmt statement;
  std::vector<Stmt> threads;  // the thread loops around it
  bool is_temporary = false;  // at the head of the body, where the card allocates in GMEM
  bool is_weights = false;
  // Rule 2. For each dimension and thread loop the multiple in all indices so far, once there is one.
  std::vector<std::vector<int64_t>> multiples;
  bool moves = true;
};

class Collector {
 public:
  Collector(const Function& function, const isa::InstructionSet& set)
      : set_(set), analyzer_(*function.context) {
    AssumeParameters(function, analyzer_);
    for (Stmt s = function.body; s.Is(StmtKind::kAllocate) || s.Is(StmtKind::kPragma);
         s = s.body()) {
      if (s.Is(StmtKind::kAllocate)) head_.insert(s.buffer());
    }
    Walk(function.body);
  }

  const std::vector<Buffer>& in_order() const { return in_order_; }
  const Allocation& Of(Buffer buffer) const { return allocations_.at(buffer); }

 private:
  void Walk(Stmt s) {
    Analyzer::Scope scope(analyzer_);
    for (Expr e : s.operands()) Accesses(e);
    switch (s.kind()) {
      case StmtKind::kFor:
        analyzer_.BindLoop(s.var(), s.min(), s.extent());
        break;
      case StmtKind::kLet:
        if (ir::IsInt(s.var().type())) analyzer_.BindLet(s.var(), s.value());
        break;
      case StmtKind::kIf:
        for (const bool truth : {true, false}) {
          Analyzer::Scope branch(analyzer_);
          analyzer_.Assume(s.cond(), truth);
          Walk(truth ? s.then_case() : s.else_case());
        }
        return;
      case StmtKind::kAllocate:
        allocations_[s.buffer()] = {.statement = s,
                                    .threads = threads_,
                                    .is_temporary = head_.contains(s.buffer()),
                                    .multiples = {}};
        in_order_.push_back(s.buffer());
        break;
      case StmtKind::kPragma:
        FindWeights(s);
        break;
      case StmtKind::kStore:
        Access(s.buffer(), s.indices());
        break;
      case StmtKind::kEvaluate:
      case StmtKind::kSeq:
        break;
    }
    if (IsThreadLoop(s)) threads_.push_back(s);
    for (Stmt child : s.children()) Walk(child);
    if (IsThreadLoop(s)) threads_.pop_back();
  }

  Allocation* Find(Buffer buffer) {
    auto it = allocations_.find(buffer);
    return it == allocations_.end() ? nullptr : &it->second;
  }

  void Accesses(Expr root) {
    ir::ForEachExpr(root, [&](Expr e) {
      if (e.Is(ExprKind::kLoad)) Access(Buffer(e.buffer()), e.operands());
      if (!e.Is(ExprKind::kAddress)) return;
      // What an instruction touches from there on is its own affair.
      if (Allocation* a = Find(Buffer(e.buffer()))) a->moves = false;
    });
  }

  void Access(Buffer buffer, absl::Span<const Expr> indices) {
    Allocation* a = Find(buffer);
    if (a == nullptr || a->threads.empty() || !a->moves) return;
    const bool first = a->multiples.empty();
    for (size_t d = 0; d < indices.size() && a->moves; ++d) {
      std::vector<int64_t> multiples;
      ir::VarMap begin;
      for (Stmt thread : a->threads) {
        multiples.push_back(Multiple(indices[d], thread.var(), a->moves));
        begin[thread.var()] = thread.min();
      }
      if (first) {
        a->multiples.push_back(multiples);
      } else {
        a->moves = a->moves && a->multiples[d] == multiples;
      }
      if (std::all_of(multiples.begin(), multiples.end(), [](int64_t m) { return m == 0; })) {
        continue;
      }
      const Expr moved = ir::Substitute(indices[d], begin);
      ir::Context& c = analyzer_.context();
      const Expr extent = buffer->extents[d];
      a->moves = a->moves && moved.type() == extent.type() &&
                 analyzer_.CanProve(c.Int(moved.type(), 0) <= moved) &&
                 analyzer_.CanProve(moved < extent);
    }
  }

  // The m of `index` = m * thread + ..; clears `moves` if there is none.
  static int64_t Multiple(Expr index, Var thread, bool& moves) {
    if (!ir::UsesVar(index, thread)) return 0;
    const std::optional<ir::Affine> affine = ir::Linearize(index, {thread});
    const Expr m = affine ? affine->coefficients[0] : Expr();
    moves = moves && m && m.Is(ExprKind::kIntImm);
    return moves ? m.int_value() : 0;
  }

  // Marks what the nest under `pragma` loads as weights.
  void FindWeights(Stmt pragma) {
    auto [it, added] = reads_weights_.try_emplace(std::string(pragma.name()), false);
    if (added) {
      const std::optional<InstructionFamily> family = FindInstructionFamily(set_, pragma.name());
      it->second = family && !family->weights.empty();
    }
    if (!it->second) return;
    std::vector<Var> loops;
    ir::ForEachStmt(pragma.body(), [&](Stmt s) {
      if (s.Is(StmtKind::kFor)) loops.push_back(s.var());
      return true;
    });
    ir::ForEachStmt(pragma.body(), [&](Stmt s) {
      if (s.Is(StmtKind::kStore)) FindWeights(s, loops);
      return true;
    });
  }

  void FindWeights(Stmt store, absl::Span<const Var> loops) {
    if (store.indices().empty()) return;
    const std::optional<ir::Affine> index = ir::Linearize(store.indices().back(), loops);
    if (!index) return;
    std::vector<Expr> others;  // loads of other buffers; `along`: those that move with the result
    std::vector<Expr> along;
    ir::ForEachExpr(store.value(), [&](Expr e) {
      if (!e.Is(ExprKind::kLoad) || Buffer(e.buffer()) == store.buffer()) return;
      others.push_back(e);
      for (size_t k = 0; k < loops.size(); ++k) {
        if (index->coefficients[k] && index->coefficients[k].IsInt(1) && ir::UsesVar(e, loops[k])) {
          along.push_back(e);
          return;
        }
      }
    });
    if (others.size() != 2 || along.size() != 1) return;
    if (Allocation* a = Find(Buffer(along[0].buffer()))) a->is_weights = true;
  }

  const isa::InstructionSet& set_;
  Analyzer analyzer_;
  absl::flat_hash_set<Buffer> head_;  // of the allocations at the head of the body
  std::vector<Stmt> threads_;
  absl::flat_hash_map<std::string, bool> reads_weights_;  // by the key of a pragma
  std::vector<Buffer> in_order_;                          // the keys of the next
  absl::flat_hash_map<Buffer, Allocation> allocations_;
};

// The memory that an allocation gets.
std::string_view MemoryOf(const Allocation& a) {
  const std::string_view scope = a.statement.buffer()->scope;
  const bool is_local = scope == "local";
  if (!is_local && (scope != isa::kGmem || a.is_temporary)) return scope;
  bool in_cluster = false;
  bool in_core = false;
  for (Stmt thread : a.threads) {
    in_cluster = in_cluster || thread.name() == isa::kClusterAxis;
    in_core = in_core || thread.name() == isa::kCoreAxis;
  }
  if (!in_core) {
    if (in_cluster) return isa::kSmem;
    if (ir::AnyStmt(a.statement.body(), IsThreadLoop)) return isa::kGmem;
  }
  return a.is_weights ? isa::kWmem : isa::kNmem;
}

// Puts new buffers, and indices without the thread's number, in the places of the old ones.
class Rewriter : public ir::Mutator {
 public:
  Rewriter(Function& function, const Collector& collector,
           std::vector<PreprocessDecision>* decisions)
      : c_(*function.context), analyzer_(c_) {
    for (const Buffer buffer : collector.in_order()) {
      const Allocation& a = collector.Of(buffer);
      Place place;
      const std::string memory(MemoryOf(a));
      if (a.moves) {
        bool any = false;
        for (const std::vector<int64_t>& of_dimension : a.multiples) {
          for (const int64_t m : of_dimension) any = any || m != 0;
        }
        if (any) {
          for (Stmt thread : a.threads) place.begin[thread.var()] = thread.min();
        }
      }
      if (memory == buffer->scope && place.begin.empty()) continue;
      place.buffer = memory == buffer->scope
                         ? buffer
                         : c_.NewBuffer(buffer->name, buffer->type, buffer->extents, memory);
      ReportDecision(
          decisions, a.statement,
          StrCat("in ", memory,
                 place.begin.empty() ? "" : ", counted from the thread's first element"));
      places_[buffer] = std::move(place);
    }
  }

  bool HasWork() const { return !places_.empty(); }

  using ir::Mutator::Mutate;
  Expr Mutate(Expr e) override {
    if (const auto it = done_.find(e); it != done_.end()) return it->second;
    const Expr result = Moved(e);
    done_.emplace(e, result);
    return result;
  }

  Stmt Mutate(Stmt s) override {
    if (s.Is(StmtKind::kStore) || s.Is(StmtKind::kAllocate)) {
      auto it = places_.find(s.buffer());
      if (it != places_.end()) {
        if (s.Is(StmtKind::kAllocate)) return c_.Allocate(it->second.buffer, Mutate(s.body()));
        return c_.Store(it->second.buffer, Indices(it->second, s.indices()), Mutate(s.value()));
      }
    }
    return MutateChildren(s);
  }

 private:
  struct Place {
    Buffer buffer;
    ir::VarMap begin;  // of the thread loops' variables, in indices
  };

  Expr Moved(Expr e) {
    if (!e.Is(ExprKind::kLoad) && !e.Is(ExprKind::kAddress)) return MutateOperands(e);
    const auto it = places_.find(Buffer(e.buffer()));
    if (it == places_.end()) return MutateOperands(e);
    const std::vector<Expr> indices = Indices(it->second, e.operands());
    return e.Is(ExprKind::kLoad) ? c_.Load(it->second.buffer, indices)
                                 : c_.Address(it->second.buffer, indices);
  }

  std::vector<Expr> Indices(const Place& place, absl::Span<const Expr> indices) {
    std::vector<Expr> result;
    for (Expr index : indices) {
      const Expr mutated = Mutate(index);
      result.push_back(
          place.begin.empty() ? mutated : analyzer_.Simplify(ir::Substitute(mutated, place.begin)));
    }
    return result;
  }

  ir::Context& c_;
  Analyzer analyzer_;  // without facts: what it simplifies is the same everywhere
  absl::flat_hash_map<Buffer, Place> places_;
  absl::flat_hash_map<Expr, Expr> done_;
};

}  // namespace

bool PlaceThreadMemory(Function& function, const isa::InstructionSet& set,
                       std::vector<PreprocessDecision>* decisions) {
  if (!ir::AnyStmt(function.body, [](Stmt s) { return s.Is(StmtKind::kAllocate); })) return false;
  Rewriter rewriter(function, Collector(function, set), decisions);
  if (!rewriter.HasWork()) return false;
  function.body = rewriter.Mutate(function.body);
  return true;
}

}  // namespace polynao
