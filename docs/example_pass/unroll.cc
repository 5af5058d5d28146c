#include "docs/example_pass/unroll.h"

#include <vector>

#include "compiler/ir/visit.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

class Unroller : public ir::Mutator {
 public:
  Unroller(ir::Context& context, int64_t max_extent) : c_(context), max_extent_(max_extent) {}

  using Mutator::Mutate;
  Stmt Mutate(Stmt s) override {
    s = Mutator::Mutate(s);  // inner loops first
    return CanUnroll(s) ? Copies(s) : s;
  }

 private:
  bool CanUnroll(Stmt s) const {
    if (!s.Is(StmtKind::kFor) || s.for_kind() != ir::ForKind::kUnroll) return false;
    if (!s.min().Is(ExprKind::kIntImm) || !s.extent().Is(ExprKind::kIntImm)) return false;
    if (s.extent().int_value() > max_extent_) return false;
    // A loop whose last value does not fit its type stops the program, and still has to.
    int64_t end;
    return !__builtin_add_overflow(s.min().int_value(), s.extent().int_value(), &end) &&
           ir::FitsInt(s.var().type(), end);
  }

  Stmt Copies(Stmt loop) {
    std::vector<Stmt> copies;
    for (int64_t k = 0; k < loop.extent().int_value(); ++k) {
      // A variable or buffer is bound once in a function, so each further copy binds new ones.
      const Stmt body = k == 0 ? loop.body() : ir::CloneWithFreshBindings(loop.body());
      const ir::Expr value = c_.Int(loop.var().type(), loop.min().int_value() + k);
      copies.push_back(ir::Substitute(body, {{loop.var(), value}}));
    }
    return c_.Seq(copies);
  }

  ir::Context& c_;
  const int64_t max_extent_;
};

}  // namespace

absl::StatusOr<bool> Unroll(ir::Function& function, const UnrollOptions& options) {
  const Stmt body = Unroller(*function.context, options.max_extent).Mutate(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

PassInfo UnrollPass() {
  return WithOptions<UnrollOptions>(
      {.name = "unroll", .doc = "copies the bodies of short unroll loops"},
      {IntOption("max_extent", &UnrollOptions::max_extent, 0, 1024, "iterations of a loop")},
      FixedDefaults, [](ir::Function& function, const PassEnvironment&, UnrollOptions options) {
        return Unroll(function, options);
      });
}

}  // namespace polynao
