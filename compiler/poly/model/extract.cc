#include "compiler/poly/model/extract.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "base/status.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/assertions.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/model/build_scop.h"

namespace polynao::poly {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

namespace {

// The pragma that a part stands in while it is looked at; no program has it afterwards.
constexpr std::string_view kPlace = "static control part";

class Finder {
 public:
  Finder(const ir::Function& function, const ExtractOptions& options)
      : function_(function), options_(options), aliases_(function) {
    for (const ir::Param& param : function.params) {
      if (param.var) outer_.insert(param.var);
    }
    asserts_ = ir::Assertions(function);
  }

  absl::StatusOr<Extraction> Find() {
    result_.skeleton = Walk(function_.body);
    RETURN_IF_ERROR(status_);
    FindPrivateBuffers();
    return std::move(result_);
  }

 private:
  // The first statement of `s` that no part can have; null if it may be in one.
  Stmt Obstacle(Stmt s) {
    Stmt found;
    ir::ForEachStmt(s, [&](Stmt x) {
      if (found) return false;
      const bool is_thread = x.Is(StmtKind::kFor) && x.for_kind() == ir::ForKind::kThread;
      if (x.Is(StmtKind::kPragma) || x.Is(StmtKind::kEvaluate) || is_thread) found = x;
      // What an extern function reads is no access of a single element.
      for (Expr operand : x.operands()) {
        ir::ForEachExpr(operand, [&](Expr e) {
          if (e.Is(ExprKind::kCall) && !ir::IsPureCall(e)) found = x;
        });
      }
      return !found;
    });
    return found;
  }

  // Whether `s` belongs to a run that has begun. A let of an integer that is read from memory begins a
  // part of its own, in which it is a parameter.
  bool CanFollow(Stmt s) {
    if (s.Is(StmtKind::kLet)) {
      bool loads = false;
      ir::ForEachExpr(s.value(), [&](Expr x) { loads |= x.Is(ExprKind::kLoad); });
      if (loads && ir::IsInt(s.value().type())) return false;
    }
    return !Obstacle(s);
  }

  Stmt Walk(Stmt s) {
    if (s.Is(StmtKind::kSeq)) return WalkRun(s.children(), s.context());
    if (s.Is(StmtKind::kFor) || s.Is(StmtKind::kIf)) {
      const Stmt obstacle = Obstacle(s);
      if (!obstacle) return WalkRun({&s, 1}, s.context());
      if (s.Is(StmtKind::kFor)) {
        result_.remarks.push_back(
            {ir::PrintFirstLine(s), ir::PrintFirstLine(obstacle), "the loop stays as it is"});
        if (s.for_kind() == ir::ForKind::kThread) return s;
      }
    }
    if (s.Is(StmtKind::kPragma)) return s;
    if (s.Is(StmtKind::kFor) || s.Is(StmtKind::kLet)) outer_.insert(s.var());
    return ir::MapChildren(s, [&](Stmt child) { return Walk(child); });
  }

  Stmt WalkRun(absl::Span<const Stmt> children, ir::Context& context) {
    std::vector<Stmt> out, run;
    const auto flush = [&] {
      if (!run.empty()) out.push_back(MakePart(run, context));
      run.clear();
    };
    for (Stmt child : children) {
      const bool may_begin = child.Is(StmtKind::kFor) || child.Is(StmtKind::kIf) ||
                             child.Is(StmtKind::kStore) || child.Is(StmtKind::kSeq);
      if ((!run.empty() || may_begin) && CanFollow(child)) {
        run.push_back(child);
      } else {
        flush();
        out.push_back(Walk(child));
      }
    }
    flush();
    return context.Seq(out);
  }

  Stmt MakePart(const std::vector<Stmt>& run, ir::Context& context) {
    const Stmt code = context.Seq(run);
    if (!ir::AnyStmt(code, [](Stmt x) { return x.Is(StmtKind::kFor); })) return code;
    ScopBuilder builder(function_, outer_, aliases_, options_.max_operations, &result_.remarks);
    absl::StatusOr<std::optional<Scop>> built = Guarded(
        builder.isl(),
        [&]() -> absl::StatusOr<std::optional<Scop>> { return builder.Build(run, asserts_); });
    status_.Update(built.status());
    if (!built.ok() || !*built) return code;
    Scop scop = **std::move(built);
    scop.place = context.Pragma(kPlace, {}, code);
    result_.scops.push_back(std::move(scop));
    return result_.scops.back().place;
  }

  // Allocations around a part, of which nothing else in the function uses the buffer.
  void FindPrivateBuffers() {
    absl::flat_hash_map<ir::Buffer, Stmt> user;  // the part's place; null: used elsewhere
    absl::flat_hash_set<ir::Buffer> allocated;
    const auto walk = [&](const auto& self, Stmt s, Stmt place) -> void {
      if (s.Is(StmtKind::kPragma) && s.name() == kPlace) place = s;
      if (s.Is(StmtKind::kAllocate)) allocated.insert(s.buffer());
      const auto use = [&](ir::Buffer buffer) {
        const auto [it, is_new] = user.emplace(buffer, place);
        if (!is_new && !(it->second && place && it->second == place)) it->second = Stmt();
      };
      if (s.Is(StmtKind::kStore)) use(s.buffer());
      for (Expr operand : s.operands()) {
        ir::ForEachExpr(operand, [&](Expr x) {
          if (x.Is(ExprKind::kLoad) || x.Is(ExprKind::kAddress)) use(ir::Buffer(x.buffer()));
        });
      }
      for (Stmt child : s.children()) self(self, child, place);
    };
    walk(walk, result_.skeleton, Stmt());
    for (Scop& scop : result_.scops) {
      scop.private_buffers = scop.locals;
      for (const Statement& statement : scop.statements) {
        for (const Access& access : statement.accesses) {
          const auto it = user.find(access.buffer);
          if (it == user.end() || !(it->second == scop.place) || scop.IsPrivate(access.buffer) ||
              !allocated.contains(access.buffer) || aliases_.Group(access.buffer)) {
            continue;
          }
          scop.private_buffers.push_back(access.buffer);
        }
      }
    }
  }

  const ir::Function& function_;
  const ExtractOptions& options_;
  const ir::Aliases aliases_;
  absl::flat_hash_set<ir::Var> outer_;
  std::vector<Expr> asserts_;
  Extraction result_;
  absl::Status status_;
};

class Replacer : public ir::Mutator {
 public:
  Replacer(const Extraction& extraction, const std::vector<Stmt>& replacements) {
    for (size_t i = 0; i < extraction.scops.size(); ++i) {
      const Stmt place = extraction.scops[i].place;
      new_[place] = i < replacements.size() && replacements[i] ? replacements[i] : place.body();
    }
  }

  using Mutator::Mutate;
  Stmt Mutate(Stmt s) override {
    const auto it = new_.find(s);
    return it != new_.end() ? it->second : Mutator::Mutate(s);
  }
  Expr Mutate(Expr e) override { return e; }

 private:
  absl::flat_hash_map<Stmt, Stmt> new_;
};

}  // namespace

std::string Remark::ToString() const {
  return StrCat("'", place, "': ", term.empty() ? "" : StrCat("'", term, "' is not affine: "),
                effect);
}

absl::StatusOr<Extraction> Extract(const ir::Function& function, const ExtractOptions& options) {
  return Finder(function, options).Find();
}

Stmt Replace(const Extraction& extraction, const std::vector<Stmt>& replacements) {
  return Replacer(extraction, replacements).Mutate(extraction.skeleton);
}

}  // namespace polynao::poly
