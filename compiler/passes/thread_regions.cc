// Method: Chain takes apart an outermost nest of loops over threadIdx. If thread loops are left in its
// body, Distribute rebuilds the body from the outside in: a statement without a thread loop inside
// becomes a region, with the nest of thread loops around it, and other statements go around regions.
#include "compiler/passes/thread_regions.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

bool IsThreadLoop(Stmt s) {
  return s.Is(StmtKind::kFor) && s.for_kind() == ForKind::kThread &&
         s.name().starts_with("threadIdx.");
}

bool IsShared(Buffer buffer) { return buffer->scope == "shared"; }

// Replaces the private buffers of a thread by buffers for all threads.
class PrivateRewriter : public ir::Mutator {
 public:
  PrivateRewriter(ir::Context& context, const absl::flat_hash_map<Buffer, Buffer>& buffers,
                  const std::vector<Expr>& threads)
      : context_(context), buffers_(buffers), threads_(threads) {}

  using Mutator::Mutate;
  Expr Mutate(Expr e) override {
    auto [it, added] = done_.try_emplace(e);
    if (!added) return it->second;
    Expr result = MutateOperands(e);
    if (result.Is(ExprKind::kLoad)) {
      if (auto found = buffers_.find(Buffer(result.buffer())); found != buffers_.end()) {
        result = context_.Load(found->second, Indices(result.operands()));
      }
    }
    return done_[e] = result;
  }
  Stmt Mutate(Stmt s) override {
    s = Mutator::Mutate(s);
    if (!s.Is(StmtKind::kStore)) return s;
    auto found = buffers_.find(s.buffer());
    if (found == buffers_.end()) return s;
    return context_.Store(found->second, Indices(s.indices()), s.value());
  }

 private:
  std::vector<Expr> Indices(absl::Span<const Expr> indices) const {
    std::vector<Expr> all = threads_;
    all.insert(all.end(), indices.begin(), indices.end());
    return all;
  }

  ir::Context& context_;
  const absl::flat_hash_map<Buffer, Buffer>& buffers_;
  const std::vector<Expr>& threads_;
  absl::flat_hash_map<Expr, Expr> done_;
};

class Distributor {
 public:
  explicit Distributor(ir::Context& context) : context_(context) {}

  // Visits `s`, which stands outside all loops over threadIdx.
  absl::StatusOr<Stmt> Outside(Stmt s) {
    if (!HasThreadLoop(s)) return s;
    if (IsThreadLoop(s)) return Chain(s);
    std::vector<Stmt> children;
    for (Stmt child : s.children()) {
      ASSIGN_OR_RETURN(Stmt made, Outside(child));
      children.push_back(made);
    }
    return context_.Rebuild(s, s.operands(), children);
  }

 private:
  // A nest of thread loops that is being distributed.
  struct Nest {
    std::vector<Stmt> loops;  // outermost first
    std::vector<Expr> vars;
    std::string names;  // "threadIdx.y, threadIdx.x"
    // Variables that differ between threads: the numbers of threads, and lets that depend on them.
    absl::flat_hash_set<Expr> varying;
    std::vector<Stmt> lets;  // the lets among these, outermost first
    absl::flat_hash_set<Buffer> stored;
    absl::flat_hash_set<Buffer> shared;  // allocated inside
    absl::flat_hash_map<Buffer, Buffer>
        private_buffers;  // and the buffers for all threads in their place
  };

  bool HasThreadLoop(Stmt s) {
    if (auto it = has_thread_loop_.find(s); it != has_thread_loop_.end()) return it->second;
    bool found = IsThreadLoop(s);
    for (Stmt child : s.children()) found = HasThreadLoop(child) || found;
    has_thread_loop_.emplace(s, found);
    return found;
  }

  // Goes down through `s` while a statement has one child only.
  static bool IsWrapper(Stmt s) {
    return s.Is(StmtKind::kLet) || s.Is(StmtKind::kAllocate) || s.Is(StmtKind::kPragma);
  }

  absl::StatusOr<Stmt> Chain(Stmt s) {
    Nest nest;
    absl::flat_hash_set<std::string_view> axes;
    Stmt inner = s;
    for (Stmt at = s;; at = at.body()) {
      if (IsThreadLoop(at)) {
        if (!axes.insert(at.name()).second) break;
        nest.loops.push_back(at);
        nest.vars.push_back(at.var());
        nest.varying.insert(at.var());
        StrAppend(&nest.names, nest.names.empty() ? "" : ", ", at.name());
        inner = at.body();
      } else if (!IsWrapper(at)) {
        break;
      }
    }
    if (!HasThreadLoop(inner)) return s;
    std::string called;
    ir::ForEachExprIn(s, [&](Expr e) {
      if (e.callee() != nullptr && !ir::IsPureCall(e)) called = e.name();
    });
    if (!called.empty()) {
      return InvalidInput(Place(nest), "expected loads and stores, found a call of '", called,
                          "', which may do what other threads see");
    }
    for (Stmt loop : nest.loops) {
      if (!loop.min().IsInt(0)) {
        return InvalidInput(Place(nest), "expected a loop from 0, found '",
                            ir::PrintFirstLine(loop), "'");
      }
      RETURN_IF_ERROR(CheckUniform(nest, loop.extent(), "the extent of", loop));
    }
    ir::ForEachStmt(s, [&](Stmt x) {
      if (x.Is(StmtKind::kStore)) nest.stored.insert(x.buffer());
      return true;
    });
    return Distribute(nest, s);
  }

  static std::string Place(const Nest& nest) { return StrCat("threads (", nest.names, "): "); }

  // The name of something in `e` that differs between threads or changes while they run, or "".
  static std::string WhyNotUniform(const Nest& nest, Expr e) {
    std::string why;
    ir::ForEachExpr(e, [&](Expr x) {
      if (!why.empty()) return;
      if (x.Is(ExprKind::kVar) && nest.varying.contains(x)) why = StrCat("'", x.name(), "'");
      if (x.Is(ExprKind::kLoad) && nest.stored.contains(Buffer(x.buffer()))) {
        why = StrCat("the contents of '", x.buffer()->name, "', which threads store");
      }
    });
    return why;
  }

  static absl::Status CheckUniform(const Nest& nest, Expr e, std::string_view what, Stmt around) {
    const std::string why = WhyNotUniform(nest, e);
    if (why.empty()) return absl::OkStatus();
    return InvalidInput(Place(nest), what, " '", ir::PrintFirstLine(around),
                        "', which has loops over threads inside: expected one value for all "
                        "threads, found '",
                        ir::Print(e), "', which depends on ", why);
  }

  absl::StatusOr<Stmt> Distribute(Nest& nest, Stmt s) {
    if (!HasThreadLoop(s)) return Region(nest, s);
    switch (s.kind()) {
      case StmtKind::kFor: {
        if (IsThreadLoop(s)) {
          for (Stmt loop : nest.loops) {
            if (loop == s) return Distribute(nest, s.body());
          }
          return Together(nest, s);
        }
        if (s.for_kind() == ForKind::kThread) {
          return InvalidInput(Place(nest), "found a loop over ", s.name(),
                              " inside, with loops over threads inside: expected it outside");
        }
        RETURN_IF_ERROR(CheckUniform(nest, s.min(), "the lower bound of", s));
        RETURN_IF_ERROR(CheckUniform(nest, s.extent(), "the extent of", s));
        ASSIGN_OR_RETURN(Stmt body, Distribute(nest, s.body()));
        return context_.Rebuild(s, s.operands(), {body});
      }
      case StmtKind::kIf: {
        RETURN_IF_ERROR(CheckUniform(nest, s.cond(), "the condition of", s));
        ASSIGN_OR_RETURN(Stmt then_case, Distribute(nest, s.then_case()));
        ASSIGN_OR_RETURN(Stmt else_case, Distribute(nest, s.else_case()));
        return context_.Rebuild(s, s.operands(), {then_case, else_case});
      }
      case StmtKind::kLet: {
        if (WhyNotUniform(nest, s.value()).empty()) {
          ASSIGN_OR_RETURN(Stmt body, Distribute(nest, s.body()));
          return context_.Rebuild(s, s.operands(), {body});
        }
        // Each region computes the value again, so it must not change between regions.
        bool changes = false;
        ir::ForEachExpr(s.value(), [&](Expr e) {
          changes |= e.Is(ExprKind::kLoad) && nest.stored.contains(Buffer(e.buffer()));
        });
        if (changes) {
          return CheckUniform(nest, s.value(), "the value of", s);
        }
        nest.varying.insert(s.var());
        nest.lets.push_back(s);
        absl::StatusOr<Stmt> body = Distribute(nest, s.body());
        nest.lets.pop_back();
        return body;
      }
      case StmtKind::kAllocate: {
        const Buffer buffer = s.buffer();
        for (Expr extent : buffer->extents) {
          RETURN_IF_ERROR(CheckUniform(nest, extent, "an extent of", s));
        }
        if (IsShared(buffer)) {
          nest.shared.insert(buffer);
          ASSIGN_OR_RETURN(Stmt body, Distribute(nest, s.body()));
          return context_.Rebuild(s, s.operands(), {body});
        }
        std::vector<Expr> extents;
        for (Stmt loop : nest.loops) extents.push_back(loop.extent());
        extents.insert(extents.end(), buffer->extents.begin(), buffer->extents.end());
        const Buffer copy = context_.NewBuffer(buffer->name, buffer->type, extents, "local");
        nest.private_buffers[buffer] = copy;
        ASSIGN_OR_RETURN(Stmt body, Distribute(nest, s.body()));
        return context_.Allocate(copy, body);
      }
      case StmtKind::kPragma: {
        ASSIGN_OR_RETURN(Stmt body, Distribute(nest, s.body()));
        for (Expr e : s.operands()) {
          // A hint about one thread does not hold for all threads.
          if (!WhyNotUniform(nest, e).empty()) return body;
        }
        return context_.Rebuild(s, s.operands(), {body});
      }
      case StmtKind::kSeq:
        return DistributeSeq(nest, s);
      case StmtKind::kStore:
      case StmtKind::kEvaluate:
        break;
    }
    POLYNAO_UNREACHABLE(ir::StmtKindName(s.kind()));
  }

  absl::StatusOr<Stmt> DistributeSeq(Nest& nest, Stmt s) {
    std::vector<Stmt> result;
    std::vector<Stmt> group;  // statements of one region
    const auto end_group = [&]() -> absl::Status {
      if (group.empty()) return absl::OkStatus();
      ASSIGN_OR_RETURN(Stmt region, Region(nest, context_.Seq(group)));
      result.push_back(region);
      group.clear();
      return absl::OkStatus();
    };
    for (Stmt child : s.children()) {
      if (!HasThreadLoop(child)) {
        group.push_back(child);
        continue;
      }
      RETURN_IF_ERROR(end_group());
      ASSIGN_OR_RETURN(Stmt made, Distribute(nest, child));
      result.push_back(made);
    }
    RETURN_IF_ERROR(end_group());
    return context_.Seq(result);
  }

  // The region that runs `s`, which has no thread loop inside, for all threads of the nest.
  absl::StatusOr<Stmt> Region(const Nest& nest, Stmt s) {
    if (s.IsEmpty()) return s;
    Stmt wrong;
    ir::ForEachStmt(s, [&](Stmt x) {
      if (x.Is(StmtKind::kStore) && nest.shared.contains(x.buffer())) wrong = x;
      return !wrong;
    });
    if (wrong) {
      return InvalidInput(Place(nest), "'", ir::PrintFirstLine(wrong),
                          "': each thread stores to its own copy of what is to be shared; expected "
                          "a loop over threads around it, with the numbers that it uses");
    }
    Stmt region = PrivateRewriter(context_, nest.private_buffers, nest.vars).Mutate(s);
    for (size_t i = nest.lets.size(); i-- > 0;) {
      if (!ir::UsesVar(region, nest.lets[i].var())) continue;
      region = context_.Rebuild(nest.lets[i], nest.lets[i].operands(), {region});
    }
    for (size_t i = nest.loops.size(); i-- > 0;) {
      region = context_.Rebuild(nest.loops[i], nest.loops[i].operands(), {region});
    }
    return ir::CloneWithFreshBindings(region);
  }

  // A loop over threads inside the nest, which all threads run together: it stands once.
  absl::StatusOr<Stmt> Together(const Nest& nest, Stmt s) {
    absl::flat_hash_set<Buffer> own;
    std::string why;
    const auto note = [&](std::string text) {
      if (why.empty()) why = std::move(text);
    };
    ir::ForEachStmt(s, [&](Stmt x) {
      if (x.Is(StmtKind::kAllocate)) own.insert(x.buffer());
      if (x.Is(StmtKind::kStore) && !own.contains(x.buffer()) &&
          !nest.shared.contains(x.buffer())) {
        note(StrCat("it stores to '", x.buffer()->name,
                    "', which is no shared memory allocated inside these threads"));
      }
      return true;
    });
    ir::ForEachExprIn(s, [&](Expr e) {
      if (e.Is(ExprKind::kVar) && nest.varying.contains(e)) {
        note(StrCat("it depends on '", e.name(), "'"));
      }
      if (!e.Is(ExprKind::kLoad)) return;
      const Buffer buffer(e.buffer());
      if (nest.private_buffers.contains(buffer)) {
        note(StrCat("it reads '", buffer->name, "', which each thread has for itself"));
      } else if (nest.stored.contains(buffer) && !own.contains(buffer) &&
                 !nest.shared.contains(buffer)) {
        note(StrCat("it reads '", buffer->name, "', which threads store"));
      }
    });
    if (!why.empty()) {
      return InvalidInput(Place(nest), "'", ir::PrintFirstLine(s),
                          "': expected what all threads can do together, but ", why);
    }
    return Chain(s);
  }

  ir::Context& context_;
  absl::flat_hash_map<Stmt, bool> has_thread_loop_;
};

}  // namespace

absl::StatusOr<bool> ThreadRegions(ir::Function& function) {
  ASSIGN_OR_RETURN(Stmt body, Distributor(*function.context).Outside(function.body));
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

PassInfo ThreadRegionsPass() {
  return {.name = "thread_regions",
          .doc = "sets loops over a GPU's threads one after another",
          .run = [](ir::Function& function, const PassEnvironment&, const OptionValues&) {
            return ThreadRegions(function);
          }};
}

}  // namespace polynao
