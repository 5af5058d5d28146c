#include "kernels/topi/row.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/ir/random_value.h"

namespace polynao::kernels {

ir::Tensor UniformTensor(ir::Type type, const std::vector<int64_t>& shape, uint64_t seed) {
  ir::Tensor tensor(type, shape);
  const int64_t count = tensor.element_count();
  for (int64_t i = 0; i < count; ++i) {
    if (ir::IsFloat(type)) {
      tensor.SetValue(i, ir::UniformFloat(seed, static_cast<uint64_t>(i)));
    } else {
      tensor.SetInt(i, ir::UniformInt(type, seed, static_cast<uint64_t>(i)));
    }
  }
  return tensor;
}

isa::Work WorkOf(const std::vector<TensorSpec>& tensors, int64_t macs) {
  isa::Work work;
  for (const TensorSpec& spec : tensors) {
    work.gmem_bytes += te::ElementCount(spec.shape) * ir::ByteSize(spec.type);
  }
  work.macs = macs;
  work.mac_type = tensors[0].type;
  work.vector_elements = macs > 0 ? 0 : te::ElementCount(tensors.back().shape);
  work.vector_type = tensors[0].type;
  return work;
}

absl::StatusOr<int64_t> NumberFrom(const Operator& row, const OperatorCase& c,
                                   std::string_view attribute, int64_t low) {
  constexpr int64_t kHigh = 1 << 20;
  const std::optional<int64_t> value = AttributeInt(row, c, attribute);
  if (value && *value >= low && *value <= kHigh) return *value;
  return InvalidInput("operator ", row.name, ", attribute ", attribute,
                      ": expected a whole number from ", low, " to ", kHigh, ", found '",
                      AttributeWord(row, c, attribute), "'");
}

const std::vector<int64_t>& ShapeOf(const OperatorCase& c, size_t i) {
  return i == 0 ? c.shape : c.operands[i - 1];
}

absl::Status CheckRank(const OperatorCase& c, size_t i, size_t rank) {
  const std::vector<int64_t>& shape = ShapeOf(c, i);
  if (shape.size() == rank &&
      std::all_of(shape.begin(), shape.end(), [](int64_t extent) { return extent > 0; })) {
    return absl::OkStatus();
  }
  return WrongShape(c, "expected shape ", i + 1, " to have ", rank,
                    " dimensions of 1 and more elements, found ", ShapeText(shape));
}

absl::Status CheckTypes(const OperatorCase& c, const std::vector<ir::Type>& types) {
  if (std::find(types.begin(), types.end(), c.dtype) != types.end()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const ir::Type type : types) names.emplace_back(ir::TypeName(type));
  return WrongType(c, absl::StrJoin(names, ", "));
}

}  // namespace polynao::kernels
