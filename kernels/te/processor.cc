#include "kernels/te/processor.h"

#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
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

using te::Operation;

bool IsCompute(const Operation& operation) { return operation.kind == Operation::Kind::kCompute; }
bool IsReduction(const Operation& operation) {
  return IsCompute(operation) && operation.bodies[0].reducer.has_value();
}

// The buffers that `e` loads.
absl::flat_hash_set<ir::Buffer> LoadsOf(Expr e) {
  absl::flat_hash_set<ir::Buffer> loads;
  ir::ForEachExpr(e, [&](Expr part) {
    if (part.Is(ExprKind::kLoad)) loads.insert(ir::Buffer(part.buffer()));
  });
  return loads;
}

// The elementwise computes that are no nests of their own.
std::vector<const Operation*> Inlined(const te::Tensor& output) {
  const te::GraphState& graph = *output.graph();
  absl::flat_hash_map<const Operation*, std::vector<const Operation*>> readers;
  for (const Operation& operation : graph.operations) {
    absl::flat_hash_set<const Operation*> read;
    for (const te::Body& body : operation.bodies) {
      for (const ir::Buffer buffer : LoadsOf(body.value))
        read.insert(graph.producers.at(buffer).first);
    }
    for (const Operation* producer : read) readers[producer].push_back(&operation);
  }
  std::vector<const Operation*> inlined;
  bool is_before = true;  // no reduction yet
  for (const Operation& operation : graph.operations) {
    if (!IsCompute(operation) || &operation == output.operation()) continue;
    is_before &= !IsReduction(operation);
    if (IsReduction(operation)) continue;
    const std::vector<const Operation*>& by = readers[&operation];
    const bool is_step = by.size() == 1 && !IsReduction(*by[0]) &&
                         te::ElementCount(by[0]->shape) == te::ElementCount(operation.shape);
    if (is_before || is_step) inlined.push_back(&operation);
  }
  return inlined;
}

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
  for (const Operation* operation : Inlined(output)) {
    s[te::Tensor(output.graph(), operation)].ComputeInline();
  }
  ProcessorFunctions result;
  ASSIGN_OR_RETURN(result.run, Lower(s));
  result.run.body = Fused().Mutate(result.run.body);
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  ASSIGN_OR_RETURN(const poly::CpuMachine machine, poly::HostMachine(threads, options.has_tiles));
  ASSIGN_OR_RETURN(poly::ScheduleReport report,
                   poly::Schedule(result.run, {.takes_dots = options.takes_dots,
                                               .constants = options.constants,
                                               .machine = machine}));
  result.before = std::move(report.before);
  return result;
}

}  // namespace polynao::kernels
