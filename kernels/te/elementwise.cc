#include "kernels/te/elementwise.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/reference/elementwise.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Axis;
using te::Schedule;
using te::Tensor;

// [tensor-program binary begin]
int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

Expr Apply(BinaryOp op, Expr a, Expr b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kMax:
      return ir::Max(a, b);
    case BinaryOp::kMin:
      return ir::Min(a, b);
  }
  POLYNAO_UNREACHABLE(static_cast<int>(op));
}

// Elements that a core takes at a time: whole groups of the vector unit's 64, of which the three
// buffers fit NMEM, each from a multiple of kOnChipAlignment on.
int64_t TileElements(const isa::Machine& machine, int64_t bytes) {
  const int64_t buffer_bytes = machine.nmem_bytes() / 3 / kOnChipAlignment * kOnChipAlignment;
  return std::max<int64_t>(64, buffer_bytes / bytes / 64 * 64);
}

// Each core takes one run of elements and moves it through NMEM in tiles:
//   copy A and B in, operate, copy C out.
void ScheduleDianNao(Schedule& s, const Tensor& a, const Tensor& b, const Tensor& c,
                     const char* instruction, const isa::Machine& machine) {
  const int64_t n = c.shape()[0];
  const int64_t bytes = ir::ByteSize(c.type());
  const int64_t run = std::max<int64_t>(64, CeilDiv(CeilDiv(n, machine.cores()), 64) * 64);
  const Tensor in_a = s.CacheRead(a, "nmem", {c});
  const Tensor in_b = s.CacheRead(b, "nmem");
  const Tensor out = s.CacheWrite(c, "nmem");
  auto [core, rest] = s[c].Split(s[c].axis(0), run);
  auto [cid, tid] = s[c].Split(core, machine.cores_per_cluster());
  auto [tile, element] = s[c].Split(rest, std::min(run, TileElements(machine, bytes)));
  s[c].Bind(cid, "cid").Bind(tid, "tid").Pragma(element, "memcpy");
  s[in_a].ComputeAt(s[c], tile).Pragma(s[in_a].axis(0), "memcpy");
  s[in_b].ComputeAt(s[c], tile).Pragma(s[in_b].axis(0), "memcpy");
  s[out].ComputeAt(s[c], tile).Pragma(s[out].axis(0), instruction);
}
// [tensor-program binary end]

// Threads take runs of 16 Ki elements; below that a thread costs more than it brings.
void ScheduleCpu(Schedule& s, const Tensor& c) {
  auto [run, element] = s[c].Split(s[c].axis(0), int64_t{1} << 14);
  s[c].Parallel(run).Vectorize(element);
}

// [tensor-program binary begin]
absl::StatusOr<ir::Function> Build(BinaryOp op, const OperatorCase& k, const Target& target) {
  te::Graph g(k.op);
  const Tensor a = g.Flatten(g.Placeholder("A", k.shape, k.dtype));
  const Tensor b = g.Flatten(g.Placeholder("B", k.shape, k.dtype));
  const Tensor c = g.Compute("C", a.shape(), [&](Expr i) { return Apply(op, a(i), b(i)); });
  Schedule s(c);
  if (target.name == "diannao") {
    const std::string instruction = StrCat(k.op, ".", ir::TypeName(k.dtype));
    if (target.instructions->Find(instruction) == nullptr) {
      return InvalidInput("operator ", k.op, " of ", ir::TypeName(k.dtype),
                          ": the card has no instruction ", instruction);
    }
    ScheduleDianNao(s, a, b, c, k.op.c_str(), *target.machine);
  } else if (target.name == "cpu" || target.name == "c") {
    ScheduleCpu(s, c);
  }
  return Lower(s);
}
// [tensor-program binary end]

Operator Binary(BinaryOp op, std::string name, std::string doc) {
  Operator row;
  row.name = std::move(name);
  row.doc = std::move(doc);
  row.inputs = 2;
  row.tensors = [](const OperatorCase& c) {
    return std::vector<TensorSpec>{
        {"A", c.dtype, c.shape}, {"B", c.dtype, c.shape}, {"C", c.dtype, c.shape}};
  };
  row.work = [](const OperatorCase& c) {
    const int64_t n = te::ElementCount(c.shape);
    isa::Work work;
    work.gmem_bytes = 3 * n * ir::ByteSize(c.dtype);
    work.vector_elements = n;
    work.vector_type = c.dtype;
    return work;
  };
  row.reference = [op](const OperatorCase&, absl::Span<const ir::Tensor> in,
                       absl::Span<ir::Tensor> out) { ReferenceBinary(op, in[0], in[1], out[0]); };
  row.build = [op](const OperatorCase& c, const Target& target) { return Build(op, c, target); };
  return row;
}

}  // namespace

std::vector<Operator> ElementwiseOperators() {
  return {Binary(BinaryOp::kAdd, "add", "C = A + B, element by element"),
          Binary(BinaryOp::kSub, "sub", "C = A - B, element by element"),
          Binary(BinaryOp::kMul, "mul", "C = A * B, element by element"),
          Binary(BinaryOp::kMax, "max", "C = the larger of A and B, element by element"),
          Binary(BinaryOp::kMin, "min", "C = the smaller of A and B, element by element")};
}

}  // namespace polynao::kernels
