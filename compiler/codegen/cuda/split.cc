#include "compiler/codegen/cuda/split.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/text.h"
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

class Splitter {
 public:
  explicit Splitter(const ir::Function& function)
      : function_(function),
        context_(*function.context),
        aliases_(function),
        blocks_(IsBlockLoop),
        threads_(IsThreadLoop) {}

  absl::StatusOr<std::vector<HostStep>> Split(Stmt s) {
    // Outside all blocks, global memory is what it says.
    if (s.Is(StmtKind::kAllocate) && (s.buffer()->scope == "gmem" || IsOnHost(s))) {
      return SplitAllocate(s);
    }
    if (!IsOnHost(s)) {
      std::vector<HostStep> steps;
      if (!s.IsEmpty()) steps.push_back({.kernel = AddKernel(TakeWorkspaces(s))});
      return steps;
    }
    switch (s.kind()) {
      case StmtKind::kSeq:
        return SplitSeq(s);
      case StmtKind::kPragma:
        return Split(s.body());
      case StmtKind::kLet:
      case StmtKind::kIf:
        return HostComputes(s.operands()[0]) ? SplitOnHost(s) : SplitInKernels(s);
      case StmtKind::kFor:
        if (HostComputes(s.min()) && HostComputes(s.extent()) && s.for_kind() != ForKind::kThread) {
          return SplitOnHost(s);
        }
        [[fallthrough]];
      default:
        return InvalidInput(function_.name, ": '", ir::PrintFirstLine(s),
                            "' stands around loops over blockIdx: expected sequences, lets, "
                            "branches, and loops whose bounds are integers without reads of "
                            "memory");
    }
  }

  KernelPlan Take(std::vector<HostStep> host) {
    KernelPlan plan;
    for (size_t i = 0; i < bodies_.size(); ++i) {
      Kernel& kernel = plan.kernels.emplace_back();
      kernel.function = function_;
      kernel.function.body = bodies_[i];
      kernel.function.params = UsedParams(bodies_[i]);
      kernel.known = known_[i];
    }
    plan.workspaces = workspaces_;
    plan.host = std::move(host);
    return plan;
  }

 private:
  struct Around {
    Stmt stmt;
    Expr condition = {};  // of an if that kernels evaluate
    Expr known = {};      // what an if of the host says
  };

  bool IsOnHost(Stmt s) { return blocks_.Has(s) && !IsBlockLoop(s); }

  // The host has scalars and lets, computes integers that do not wrap around (ir::EvaluateInt), and reads no
  // memory.
  bool HostComputes(Expr e) const {
    bool computes = true;
    ir::ForEachExpr(e, [&](Expr x) {
      const bool is_leaf = x.Is(ExprKind::kVar) || x.Is(ExprKind::kIntImm);
      computes &= is_leaf || ir::IsIndexable(x.type()) || x.type() == ir::Type::kI1;
      computes &= ir::IsInt(x.type()) && !x.Is(ExprKind::kLoad) && !x.Is(ExprKind::kAddress) &&
                  !x.Is(ExprKind::kCall) && !x.Is(ExprKind::kLet) && !of_kernels_.contains(x);
    });
    return computes;
  }

  absl::StatusOr<std::vector<HostStep>> SplitAllocate(Stmt s) {
    std::vector<Expr> extents;
    bool is_same = true;
    for (Expr extent : s.buffer()->extents) {
      // Of lets around, the values.
      Expr resolved = extent;
      for (size_t i = around_.size(); i-- > 0;) {
        const Stmt let = around_[i].stmt;
        if (let.Is(StmtKind::kLet)) resolved = ir::Substitute(resolved, {{let.var(), let.value()}});
      }
      bool varies = !HostComputes(resolved);
      for (const Around& around : around_) {
        varies |= around.stmt.Is(StmtKind::kFor) && ir::UsesVar(resolved, around.stmt.var());
      }
      if (varies) {
        return InvalidInput(function_.name, ": '", ir::PrintFirstLine(s),
                            "' stands around kernels: expected extents that depend on nothing but "
                            "the parameters");
      }
      is_same &= resolved == extent;
      extents.push_back(resolved);
    }
    Buffer buffer = s.buffer();
    Stmt body = s.body();
    if (!is_same) {
      buffer = context_.NewBuffer(buffer->name, buffer->type, extents, buffer->scope);
      body = ir::Substitute(body, {}, {{s.buffer(), buffer}});
    }
    workspaces_.push_back(buffer);
    return Split(body);
  }

  absl::StatusOr<std::vector<HostStep>> SplitSeq(Stmt s) {
    std::vector<HostStep> steps;
    std::vector<Stmt> group;  // of one kernel with one block
    for (Stmt child : s.children()) {
      if (!blocks_.Has(child)) {
        group.push_back(child);
        continue;
      }
      if (!group.empty())
        steps.push_back({.kernel = AddKernel(TakeWorkspaces(context_.Seq(group)))});
      group.clear();
      ASSIGN_OR_RETURN(std::vector<HostStep> more, Split(child));
      for (HostStep& step : more) steps.push_back(std::move(step));
    }
    if (!group.empty()) steps.push_back({.kernel = AddKernel(TakeWorkspaces(context_.Seq(group)))});
    return steps;
  }

  absl::StatusOr<std::vector<HostStep>> SplitOnHost(Stmt s) {
    std::vector<HostStep> steps;
    around_.push_back({s});
    for (size_t i = 0; i < s.children().size(); ++i) {
      if (s.Is(StmtKind::kIf)) around_.back().known = i == 0 ? s.cond() : ir::Not(s.cond());
      ASSIGN_OR_RETURN(std::vector<HostStep> body, Split(s.children()[i]));
      if (body.empty()) continue;
      steps.push_back({.around = s, .otherwise = i > 0, .kernel = 0, .steps = std::move(body)});
    }
    around_.pop_back();
    return steps;
  }

  // Each kernel inside evaluates `s` again, a let or a branch. If one stores what it reads, a kernel evaluates it
  // before.
  absl::StatusOr<std::vector<HostStep>> SplitInKernels(Stmt s) {
    const Expr e = s.operands()[0];
    if (IsStoredIn(s, e)) {
      if (Stmt narrow = NarrowLets(s)) return Split(narrow);
      return SplitAfterValue(s);
    }
    around_.push_back({s});
    if (s.Is(StmtKind::kLet)) {
      of_kernels_.insert(s.var());
      ASSIGN_OR_RETURN(std::vector<HostStep> steps, Split(s.body()));
      around_.pop_back();
      return steps;
    }
    around_.back().condition = e;
    ASSIGN_OR_RETURN(std::vector<HostStep> steps, Split(s.then_case()));
    around_.back().condition = ir::Not(e);
    ASSIGN_OR_RETURN(std::vector<HostStep> otherwise, Split(s.else_case()));
    for (HostStep& step : otherwise) steps.push_back(std::move(step));
    around_.pop_back();
    return steps;
  }

  // Whether `s` stores to memory that `e` reads.
  bool IsStoredIn(Stmt s, Expr e) const {
    bool is_stored = false;
    ir::ForEachExpr(e, [&](Expr load) {
      if (!load.Is(ExprKind::kLoad)) return;
      const Buffer read(load.buffer());
      const auto group = aliases_.Group(read);
      is_stored |= ir::AnyStmt(s, [&](Stmt x) {
        return x.Is(StmtKind::kStore) &&
               (x.buffer() == read || (group && aliases_.Group(x.buffer()) == group));
      });
    });
    return is_stored;
  }

  // let x = A[0]                       { let x = A[0]
  // A[0] = x * x               -->       A[0] = x * x }
  // thread (blockIdx.x, ..)            thread (blockIdx.x, ..)
  //
  // with several lets too, if only statements before the first loop over blocks use them. Otherwise null.
  Stmt NarrowLets(Stmt s) {
    std::vector<Stmt> lets;
    Stmt body = s;
    for (; body.Is(StmtKind::kLet); body = body.body()) lets.push_back(body);
    if (lets.empty() || !body.Is(StmtKind::kSeq)) return Stmt();
    std::vector<Stmt> inside, behind;
    for (Stmt child : body.children()) {
      (behind.empty() && !blocks_.Has(child) ? inside : behind).push_back(child);
    }
    for (Stmt child : behind) {
      for (Stmt let : lets) {
        if (ir::UsesVar(child, let.var())) return Stmt();
      }
    }
    Stmt narrow = context_.Seq(inside);
    for (size_t i = lets.size(); i-- > 0;) {
      narrow = context_.LetStmt(lets[i].var(), lets[i].value(), narrow);
    }
    behind.insert(behind.begin(), narrow);
    return context_.Seq(behind);
  }

  // A kernel of one thread stores the value in a workspace, where others read it.
  absl::StatusOr<std::vector<HostStep>> SplitAfterValue(Stmt s) {
    const Expr value = s.operands()[0];
    const bool is_truth = value.type() == ir::Type::kI1;
    const Expr var = s.Is(StmtKind::kLet) ? s.var() : context_.NewVar("condition", value.type());
    const Buffer memory =
        context_.NewBuffer(StrCat(var.name(), ".value"), is_truth ? ir::Type::kU8 : value.type(),
                           {context_.I64(1)}, "gmem");
    workspaces_.push_back(memory);
    const Expr place = context_.I64(0);
    const Expr stored = is_truth ? context_.Cast(ir::Type::kU8, value) : value;
    const Expr load = context_.Load(memory, {place});
    std::vector<HostStep> steps = {{.kernel = AddKernel(context_.Store(memory, {place}, stored))}};
    const Stmt body =
        s.Is(StmtKind::kLet) ? s.body() : context_.If(var, s.then_case(), s.else_case());
    const Stmt let =
        context_.LetStmt(var, is_truth ? ir::Ne(load, context_.Int(ir::Type::kU8, 0)) : load, body);
    ASSIGN_OR_RETURN(std::vector<HostStep> more, SplitInKernels(let));
    for (HostStep& step : more) steps.push_back(std::move(step));
    return steps;
  }

  // Code of one thread, whose allocations of sizes that are over the parameters become workspaces.
  Stmt TakeWorkspaces(Stmt s) {
    if (blocks_.Has(s) || threads_.Has(s)) return s;
    const auto is_parameter = [&](Expr var) {
      return std::any_of(function_.params.begin(), function_.params.end(),
                         [&](const ir::Param& param) { return param.var == var; });
    };
    class Taker : public ir::Mutator {
     public:
      using Mutator::Mutate;
      Expr Mutate(Expr e) override { return e; }
      Stmt Mutate(Stmt s) override {
        return s.Is(StmtKind::kAllocate) && takes(s.buffer()) ? Mutate(s.body())
                                                              : Mutator::Mutate(s);
      }
      std::function<bool(Buffer)> takes;
    };
    Taker taker;
    taker.takes = [&](Buffer buffer) {
      bool is_constant = true;
      bool is_known = buffer->scope == "gmem";
      for (Expr extent : buffer->extents) {
        is_constant &= extent.IsConst();
        is_known &= HostComputes(extent);
        ir::ForEachExpr(extent, [&](Expr e) {
          if (e.Is(ExprKind::kVar)) is_known &= is_parameter(e);
        });
      }
      if (!is_constant && is_known) workspaces_.push_back(buffer);
      return !is_constant && is_known;
    };
    return taker.Mutate(s);
  }

  size_t AddKernel(Stmt body) {
    for (size_t i = around_.size(); i-- > 0;) {
      const Stmt s = around_[i].stmt;
      if (around_[i].condition) {
        body = context_.If(around_[i].condition, body);
      } else if (s.Is(StmtKind::kLet) && ir::UsesVar(body, s.var())) {
        body = context_.LetStmt(s.var(), s.value(), body);
      } else if (s.Is(StmtKind::kFor)) {
        host_vars_.push_back(s.var());
      }
    }
    std::vector<Expr>& known = known_.emplace_back();
    for (const Around& around : around_) {
      if (around.known) known.push_back(around.known);
    }
    bodies_.push_back(body);
    return bodies_.size() - 1;
  }

  std::vector<ir::Param> UsedParams(Stmt body) const {
    absl::flat_hash_set<const void*> used;
    const auto use = [&](Expr e) {
      if (e.Is(ExprKind::kVar)) used.insert(e.node());
      if (e.Is(ExprKind::kLoad)) used.insert(e.buffer());
    };
    const auto use_extents = [&](Buffer buffer) {
      for (Expr extent : buffer->extents) ir::ForEachExpr(extent, use);
    };
    ir::ForEachExprIn(body, use);
    ir::ForEachStmt(body, [&](Stmt s) {
      if (s.Is(StmtKind::kStore)) used.insert(s.buffer().node());
      if (s.Is(StmtKind::kAllocate)) use_extents(s.buffer());
      return true;
    });
    for (const ir::Param& param : function_.params) {
      if (param.buffer && used.contains(param.buffer.node())) use_extents(param.buffer);
    }
    for (Buffer buffer : workspaces_) {
      if (used.contains(buffer.node())) use_extents(buffer);
    }
    std::vector<ir::Param> params;
    for (const ir::Param& param : function_.params) {
      const void* node = param.buffer ? static_cast<const void*>(param.buffer.node())
                                      : static_cast<const void*>(param.var.node());
      if (used.contains(node)) params.push_back(param);
    }
    absl::flat_hash_set<ir::Var> taken;
    for (ir::Var var : host_vars_) {
      if (used.contains(var.node()) && taken.insert(var).second) {
        params.push_back({.var = var, .buffer = {}, .access = ir::Access::kIn, .scope = {}});
      }
    }
    for (Buffer buffer : workspaces_) {
      if (!used.contains(buffer.node())) continue;
      params.push_back({.var = {}, .buffer = buffer, .access = ir::Access::kInOut, .scope = ""});
    }
    return params;
  }

  const ir::Function& function_;
  ir::Context& context_;
  const ir::Aliases aliases_;
  Finder blocks_;
  Finder threads_;
  std::vector<Around> around_;
  std::vector<Stmt> bodies_;
  std::vector<std::vector<Expr>> known_;  // at each of them
  std::vector<ir::Var> host_vars_;
  absl::flat_hash_set<ir::Var> of_kernels_;  // lets that the host has no value of
  std::vector<Buffer> workspaces_;
};

}  // namespace

absl::StatusOr<KernelPlan> SplitIntoKernels(const ir::Function& function) {
  Splitter splitter(function);
  ASSIGN_OR_RETURN(std::vector<HostStep> host, splitter.Split(function.body));
  return splitter.Take(std::move(host));
}

}  // namespace polynao::codegen
