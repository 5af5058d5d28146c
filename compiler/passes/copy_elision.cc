#include "compiler/passes/copy_elision.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/core_memory.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// What a function does with the buffers of cores, in the order of its text.
class Uses {
 public:
  struct Of {
    size_t begin = 0, end = 0;   // of the scope
    size_t loops = 0;            // around the scope
    bool is_doubled = false;     // has several versions, or is a window of one
    bool is_pinned = false;      // an instruction takes its address
    std::vector<size_t> stores;  // where
    size_t last_load = 0;
  };
  // A nest whose one store is `to[i] = from[i]`.
  struct Copy {
    Stmt nest;
    Buffer to, from;
    size_t at = 0;
    size_t loops = 0;  // around the nest
  };

  explicit Uses(Stmt body) { Visit(body, Stmt()); }

  const std::vector<Copy>& copies() const { return copies_; }
  Of& of(Buffer buffer) { return buffers_[buffer]; }

 private:
  // `nest`: the outermost of the loops and pragmas that have `s` alone in them, if any.
  void Visit(Stmt s, Stmt nest) {
    ++at_;
    switch (s.kind()) {
      case StmtKind::kFor: {
        Read(s.min()), Read(s.extent());
        const bool is_thread = s.for_kind() == ir::ForKind::kThread;
        const bool begins = !nest && !is_thread;
        if (begins) nest_loops_ = loops_;
        ++loops_;
        Visit(s.body(), is_thread ? Stmt() : nest ? nest : s);
        --loops_;
        return;
      }
      case StmtKind::kPragma:
        if (s.body().Is(StmtKind::kAllocate)) {
          const bool keeps =
              s.name() == pragma::kDoubleBuffer || s.name() == pragma::kSlidingWindow;
          if (keeps) buffers_[s.body().buffer()].is_doubled = true;
          return Visit(s.body(), Stmt());
        }
        if (!nest) nest_loops_ = loops_;
        return Visit(s.body(), nest ? nest : s);
      case StmtKind::kAllocate: {
        const Buffer buffer = s.buffer();
        buffers_[buffer].begin = at_;
        buffers_[buffer].loops = loops_;
        Visit(s.body(), Stmt());
        buffers_[buffer].end = at_;
        return;
      }
      case StmtKind::kStore:
        for (Expr index : s.indices()) Read(index);
        Read(s.value());
        buffers_[s.buffer()].stores.push_back(at_);
        AddCopy(s, nest);
        return;
      case StmtKind::kIf:
        Read(s.cond());
        break;
      case StmtKind::kLet:
      case StmtKind::kEvaluate:
        Read(s.value());
        break;
      case StmtKind::kSeq:
        break;
    }
    for (Stmt child : s.children()) Visit(child, Stmt());
  }

  void Read(Expr e) {
    ir::ForEachExpr(e, [this](Expr part) {
      if (part.Is(ExprKind::kLoad)) buffers_[Buffer(part.buffer())].last_load = at_;
      if (part.Is(ExprKind::kAddress)) buffers_[Buffer(part.buffer())].is_pinned = true;
    });
  }

  void AddCopy(Stmt store, Stmt nest) {
    const Expr value = store.value();
    if (!nest || !value.Is(ExprKind::kLoad) || store.indices().size() != 1) return;
    const Buffer from(value.buffer()), to = store.buffer();
    if (from == to || value.operands().size() != 1 || value.operand(0) != store.indices()[0])
      return;
    copies_.push_back({.nest = nest, .to = to, .from = from, .at = at_, .loops = nest_loops_});
  }

  size_t at_ = 0, loops_ = 0, nest_loops_ = 0;
  absl::flat_hash_map<Buffer, Of> buffers_;
  std::vector<Copy> copies_;
};

// Whether `b` has the elements that `a` has, of as many or more.
bool HasRoomFor(Buffer a, Buffer b) {
  return a->type == b->type && a->scope == b->scope && a->extents.size() == 1 &&
         b->extents.size() == 1 && a->extents[0].Is(ExprKind::kIntImm) &&
         b->extents[0].Is(ExprKind::kIntImm) &&
         a->extents[0].int_value() <= b->extents[0].int_value();
}

class Eliding : public ir::Mutator {
 public:
  explicit Eliding(Stmt body) : uses_(body) {
    for (const Uses::Copy& copy : uses_.copies()) {
      const auto it = instead_.find(copy.from);
      const Buffer from = it == instead_.end() ? copy.from : it->second;
      if (!CanGo(copy, from)) continue;
      instead_[copy.to] = from;
      nests_.insert(copy.nest);
    }
  }

  int count() const { return static_cast<int>(nests_.size()); }

  using Mutator::Mutate;
  Expr Mutate(Expr e) override {
    if (e.operands().empty()) return e;
    const auto known = mutated_.find(e);
    if (known != mutated_.end()) return known->second;
    Expr changed = MutateOperands(e);
    if (e.Is(ExprKind::kLoad)) {
      const auto it = instead_.find(Buffer(e.buffer()));
      if (it != instead_.end()) changed = e.context().Load(it->second, {changed.operands()[0]});
    }
    mutated_[e] = changed;
    return changed;
  }
  Stmt Mutate(Stmt s) override {
    if (nests_.contains(s)) return s.context().Seq({});
    const Stmt allocation = s.Is(StmtKind::kPragma) ? s.body() : s;
    if (allocation.Is(StmtKind::kAllocate) && instead_.contains(allocation.buffer())) {
      return Mutate(allocation.body());
    }
    return MutateChildren(s);
  }

 private:
  bool CanGo(const Uses::Copy& copy, Buffer from) {
    const Uses::Of &to_is = uses_.of(copy.to), &from_is = uses_.of(from);
    if (!IsOfCore(copy.to) || !IsOfCore(from) || !HasRoomFor(copy.to, from)) return false;
    if (from_is.begin == 0 || to_is.begin == 0) return false;  // parameters
    if (to_is.is_pinned || from_is.is_pinned || to_is.stores.size() != 1) return false;
    if (to_is.is_doubled && !from_is.is_doubled) return false;
    if (copy.loops != to_is.loops || to_is.last_load > from_is.end) return false;
    for (const size_t store : from_is.stores) {
      if (copy.at < store && store <= to_is.end) return false;
    }
    return true;
  }

  Uses uses_;
  absl::flat_hash_map<Buffer, Buffer> instead_;
  absl::flat_hash_map<Expr, Expr> mutated_;
  absl::flat_hash_set<Stmt> nests_;
};

bool Elide(ir::Function& function, int& count) {
  Eliding eliding(function.body);
  count = eliding.count();
  if (count == 0) return false;
  function.body = eliding.Mutate(function.body);
  return true;
}

}  // namespace

absl::StatusOr<bool> ElideCopies(ir::Function& function) {
  int count = 0;
  return Elide(function, count);
}

PassInfo CopyElisionPass() {
  return {.name = "copy_elision",
          .doc = "copies on chip that move nothing: their readers read what was copied",
          .run = [](ir::Function& function, const PassEnvironment& environment,
                    const OptionValues&) -> absl::StatusOr<bool> {
            int count = 0;
            const bool changed = Elide(function, count);
            if (environment.stats != nullptr && changed) {
              environment.stats->push_back(StrCat(count, " copies elided"));
            }
            return changed;
          }};
}

}  // namespace polynao
