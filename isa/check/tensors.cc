#include "isa/check/tensors.h"

#include "compiler/ir/type.h"

namespace polynao::isa {

CheckedTensors::CheckedTensors(const Program& program, const CheckedArguments& arguments) {
  constexpr int64_t kNoEnd = int64_t{1} << (kShift - 2);
  for (size_t i = 0; i < program.params.size(); ++i) {
    const ProgramParam& param = program.params[i];
    tensors_.emplace_back();
    if (!param.is_tensor) {
      const bool has_value = i < arguments.scalars.size() && arguments.scalars[i];
      values.push_back(has_value ? *arguments.scalars[i] : 0);
      is_known.push_back(has_value);
      continue;
    }
    int64_t size = kNoEnd;
    if (i < arguments.tensor_bytes.size() && arguments.tensor_bytes[i]) {
      size = *arguments.tensor_bytes[i];
    } else if (!param.any_shape) {
      size = ir::ByteSize(param.type);
      for (const int64_t extent : param.shape) size *= extent;
    }
    // In the middle of its room, so that a few bytes in front of it are its own, too.
    const int64_t begin = ((static_cast<int64_t>(i) + 1) << kShift) + (int64_t{1} << (kShift - 1));
    tensors_.back() = Tensor{param.name, begin, size, param.access};
    values.push_back(begin);
    is_known.push_back(true);
  }
}

const CheckedTensors::Tensor* CheckedTensors::Find(int64_t address) const {
  const int64_t i = (address >> kShift) - 1;
  if (i < 0 || i >= static_cast<int64_t>(tensors_.size())) return nullptr;
  return tensors_[static_cast<size_t>(i)] ? &*tensors_[static_cast<size_t>(i)] : nullptr;
}

}  // namespace polynao::isa
