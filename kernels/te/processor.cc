#include "kernels/te/processor.h"

#include <thread>
#include <utility>

#include "base/status.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/arrange/machine.h"
#include "compiler/poly/poly.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::ExprKind;

class Fused : public ir::Mutator {
 public:
  using Mutator::Mutate;
  ir::Stmt Mutate(ir::Stmt s) override {
    if (!s.Is(ir::StmtKind::kStore)) return MutateChildren(s);
    const Expr sum = s.value();
    if (!ir::IsFloat(sum.type()) || !sum.Is(ExprKind::kAdd)) return s;
    ir::Context& c = s.context();
    const Expr old = sum.operand(0), product = sum.operand(1);
    if (old != c.Load(s.buffer(), s.indices()) || !product.Is(ExprKind::kMul)) return s;
    return c.Store(s.buffer(), s.indices(),
                   c.Call(sum.type(), "fma", {product.operand(0), product.operand(1), old}));
  }
};

}  // namespace

absl::StatusOr<ir::Function> LowerForProcessor(const te::Tensor& output, const Target& target,
                                               bool takes_dots) {
  ASSIGN_OR_RETURN(
      ProcessorFunctions functions,
      LowerForProcessor(output, {.has_tiles = HasTiles(target.name), .takes_dots = takes_dots}));
  return std::move(functions.run);
}

absl::StatusOr<ProcessorFunctions> LowerForProcessor(const te::Tensor& output,
                                                     const ProcessorOptions& options) {
  te::Schedule s(output);
  for (const te::Operation& operation : output.graph()->operations) {
    if (operation.kind != te::Operation::Kind::kCompute) continue;
    const te::Tensor tensor(output.graph(), &operation);
    if (!(tensor == output) && !operation.bodies[0].reducer) s[tensor].ComputeInline();
  }
  ProcessorFunctions result;
  ASSIGN_OR_RETURN(result.run, Lower(s));
  result.run.body = Fused().Mutate(result.run.body);
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  ASSIGN_OR_RETURN(
      poly::ScheduleReport report,
      poly::Schedule(result.run, {.takes_dots = options.takes_dots,
                                  .constants = options.constants,
                                  .machine = poly::HostMachine(threads, options.has_tiles)}));
  result.before = std::move(report.before);
  return result;
}

}  // namespace polynao::kernels
