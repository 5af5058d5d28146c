#include "compiler/ir/fix_scalars.h"

#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/visit.h"

namespace polynao::ir {

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
  fixed.body = Substitute(function.body, values, buffers);
  return fixed;
}

}  // namespace polynao::ir
