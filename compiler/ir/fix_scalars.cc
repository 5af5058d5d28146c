#include "compiler/ir/fix_scalars.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/visit.h"

namespace polynao::ir {
namespace {

// Allocations of extents that can be evaluated get these numbers as extents.
class FoldExtents : public Mutator {
 public:
  Expr Mutate(Expr e) override {
    e = MutateOperands(e);
    const bool names = e.Is(ExprKind::kLoad) || e.Is(ExprKind::kAddress);
    const auto it = names ? buffers_.find(Buffer(e.buffer())) : buffers_.end();
    if (it == buffers_.end()) return e;
    return e.Is(ExprKind::kLoad) ? e.context().Load(it->second, e.operands())
                                 : e.context().Address(it->second, e.operands());
  }
  Stmt Mutate(Stmt s) override {
    if (s.Is(StmtKind::kAllocate)) {
      Context& c = s.context();
      const Buffer old = s.buffer();
      std::vector<Expr> extents;
      for (Expr extent : old->extents) {
        const absl::StatusOr<int64_t> number = EvaluateInt(extent, {});
        // None has a negative size.
        if (number.ok()) extents.push_back(c.Int(extent.type(), std::max<int64_t>(0, *number)));
      }
      if (extents.size() != old->extents.size()) return MutateChildren(s);
      buffers_[old] = c.NewBuffer(old->name, old->type, extents, old->scope);
      return c.Allocate(buffers_[old], Mutate(s.body()));
    }
    s = MutateChildren(s);
    const auto it = s.Is(StmtKind::kStore) ? buffers_.find(s.buffer()) : buffers_.end();
    return it == buffers_.end() ? s : s.context().Store(it->second, s.indices(), s.value());
  }

 private:
  BufferMap buffers_;
};

}  // namespace

absl::StatusOr<Function> FixScalars(const Function& function,
                                    absl::Span<const Argument> arguments) {
  POLYNAO_CHECK(arguments.size() == function.params.size()) << function.name;
  Context& c = *function.context;
  VarMap values;
  IntValues integers;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Param& param = function.params[i];
    if (!param.var) continue;
    const Type type = param.var.type();
    if (IsInt(type)) {
      integers[param.var] = arguments[i].int_value;
      values[param.var] = c.Int(type, arguments[i].int_value);
    } else {
      values[param.var] = c.Float(type, arguments[i].float_value);
    }
  }
  ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> shapes,
                   ParameterShapes(function, integers));
  Function fixed;
  fixed.name = function.name;
  fixed.context = function.context;
  BufferMap buffers;
  size_t next = 0;
  for (const Param& param : function.params) {
    if (!param.buffer) continue;
    std::vector<Expr> extents;
    for (size_t d = 0; d < shapes[next].size(); ++d) {
      extents.push_back(c.Int(param.buffer->extents[d].type(), shapes[next][d]));
    }
    ++next;
    Param copy = param;
    copy.buffer = c.NewBuffer(param.buffer->name, param.buffer->type, extents);
    buffers[param.buffer] = copy.buffer;
    fixed.params.push_back(copy);
  }
  fixed.body = FoldExtents().Mutate(Substitute(function.body, values, buffers));
  return fixed;
}

}  // namespace polynao::ir
