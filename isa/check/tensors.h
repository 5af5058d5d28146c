// Where the check puts the tensors of a program.
#ifndef ISA_CHECK_TENSORS_H_
#define ISA_CHECK_TENSORS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "isa/check/check.h"
#include "isa/program.h"

namespace polynao::isa {

// Where the check puts the program's tensors: far apart, so that an address tells its tensor. A tensor without an end
// has all the room.
class CheckedTensors {
 public:
  static constexpr int kShift = 44;
  struct Tensor {
    std::string name;
    int64_t begin = 0;
    int64_t size = 0;
    ir::Access access = ir::Access::kIn;
  };
  CheckedTensors(const Program& program, const CheckedArguments& arguments);
  // By the parameter's position; none for a scalar.
  const std::optional<Tensor>& at(int param) const { return tensors_[static_cast<size_t>(param)]; }
  // The tensor that has this address, or null.
  const Tensor* Find(int64_t address) const;
  // What `arg` reads for each parameter; 0 for a scalar without a value.
  std::vector<int64_t> values;
  std::vector<bool> is_known;

 private:
  std::vector<std::optional<Tensor>> tensors_;
};

}  // namespace polynao::isa

#endif  // ISA_CHECK_TENSORS_H_
