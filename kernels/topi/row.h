// Builds a row of the operators' table (kernels/te/operator.h) from one struct that holds a case's attributes.
#ifndef KERNELS_TOPI_ROW_H_
#define KERNELS_TOPI_ROW_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "isa/bound.h"
#include "isa/machine.h"
#include "kernels/te/operator.h"

namespace polynao::kernels {

// The parts of a row, over the struct K that `parse` reads a case into.
template <typename K>
struct RowParts {
  // Checks the case. Messages begin with the operator's name (WrongShape).
  std::function<absl::StatusOr<K>(const Operator& row, const OperatorCase& c)> parse;
  // Inputs, then the output.
  std::function<std::vector<TensorSpec>(const K&)> tensors;
  std::function<void(const K&, absl::Span<const ir::Tensor> in, ir::Tensor& out)> reference;
  // `target` is a processor or a GPU.
  std::function<absl::StatusOr<ir::Function>(const K&, const Target&)> build;
  // Number of multiplications and additions; empty: none.
  std::function<int64_t(const K&)> macs = {};
  // Operator::input; empty: uniform values (UniformTensor).
  std::function<ir::Tensor(const K&, size_t i, uint64_t seed)> input = {};
};

// Values of [-1, 1) that use all bits of a float, and whole numbers of -128 .. 127 (or what the type
// has of them); the same seed gives the same values.
ir::Tensor UniformTensor(ir::Type type, const std::vector<int64_t>& shape, uint64_t seed);

// Each tensor crosses memory once.
isa::Work WorkOf(const std::vector<TensorSpec>& tensors, int64_t macs);

// The tolerance of float operators of the TOPI table, as a part of the largest value's magnitude.
inline constexpr double kTopiTolerance = 1e-5;

// `row` (name, doc, shapes, attributes) with everything else from `parts`.
template <typename K>
Operator MakeRow(Operator row, RowParts<K> parts) {
  const auto shared = std::make_shared<const Operator>(row);
  const auto p = std::make_shared<const RowParts<K>>(std::move(parts));
  const auto parsed = [shared, p](const OperatorCase& c) {
    absl::StatusOr<K> k = p->parse(*shared, c);
    POLYNAO_CHECK(k.ok()) << std::string(k.status().message());
    return *std::move(k);
  };
  row.tolerance_of_largest = kTopiTolerance;
  row.loops_on_card = [](const OperatorCase&, const Target&) { return true; };
  row.check = [shared, p](const OperatorCase& c) { return p->parse(*shared, c).status(); };
  row.tensors = [parsed, p](const OperatorCase& c) { return p->tensors(parsed(c)); };
  row.work = [parsed, p](const OperatorCase& c) {
    const K k = parsed(c);
    return WorkOf(p->tensors(k), p->macs ? p->macs(k) : 0);
  };
  row.reference = [parsed, p](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                              absl::Span<ir::Tensor> out) { p->reference(parsed(c), in, out[0]); };
  row.build = [parsed, p](const OperatorCase& c,
                          const Target& target) -> absl::StatusOr<ir::Function> {
    if (target.machine == nullptr) return p->build(parsed(c), target);
    return InvalidInput("operator ", c.op, ": it has no schedule for target ", target.name,
                        ": expected cpu, c, cuda or interp");
  };
  row.input = [parsed, p](const OperatorCase& c, size_t i, uint64_t seed) {
    const K k = parsed(c);
    if (p->input) return p->input(k, i, seed);
    const TensorSpec spec = p->tensors(k)[i];
    return UniformTensor(spec.type, spec.shape, seed);
  };
  return row;
}

// "operator dense 1x1024,1000x1000: ...": wrong input that has to do with shapes or attributes.
template <typename... Words>
absl::Status WrongShape(const OperatorCase& c, const Words&... words) {
  return InvalidInput("operator ", c.op, " ", ShapesText(c), ": ", words...);
}

// That the attribute is a whole number of `low` and more; its value.
absl::StatusOr<int64_t> NumberFrom(const Operator& row, const OperatorCase& c,
                                   std::string_view attribute, int64_t low);
// That shape `i` (the inputs' in order) has `rank` dimensions of one and more elements.
absl::Status CheckRank(const OperatorCase& c, size_t i, size_t rank);
// That the inputs are of one of `types`.
absl::Status CheckTypes(const OperatorCase& c, const std::vector<ir::Type>& types);
// Shape i of the inputs.
const std::vector<int64_t>& ShapeOf(const OperatorCase& c, size_t i);

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_ROW_H_
