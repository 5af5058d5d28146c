// The hand-written convolutions share this: the numbers of a layer, and what fits on chip.
#ifndef KERNELS_LIBRARY_CONV2D_H_
#define KERNELS_LIBRARY_CONV2D_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "isa/machine.h"
#include "kernels/library/expert.h"
#include "kernels/library/kernel.h"

namespace polynao::kernels {

// X (h, w, ci) convolved with F (co, kh, kw, ci), times scale: Y (ho, wo, co), f16.
struct ConvCase {
  ir::Type type = ir::Type::kI8;  // of X and F
  int64_t bytes = 1;              // of an element of X and F
  int64_t h = 0, w = 0, ci = 0, co = 0, kh = 0, kw = 0;
  int64_t stride = 1, dilation = 1, pad_h = 0, pad_w = 0;
  int64_t ho = 0, wo = 0;
  double scale = 1;

  int64_t filter_elements() const { return kh * kw * ci; }
  // Bytes from one filter to the next in a bank of WMEM, as the tensor unit wants them aligned.
  int64_t filter_pitch() const;
  // Rows of the padded image that `rows` rows of the output read; columns likewise.
  int64_t ImageRows(int64_t rows) const { return (rows - 1) * stride + (kh - 1) * dilation + 1; }
  int64_t ImageColumns(int64_t columns) const {
    return (columns - 1) * stride + (kw - 1) * dilation + 1;
  }
};

// Errors: NotFound with `who` ("the library") if the case is no conv2d of i8 or i16 to f16 or has groups, a
// bias or relu. ResourceExhausted if a bank of WMEM is smaller than a filter.
absl::StatusOr<ConvCase> ReadConvCase(const OperatorCase& c, const Target& target,
                                      std::string_view who);

// Bytes of a bank of WMEM.
int64_t BankBytes(const isa::Machine& machine);

absl::StatusOr<HandWrittenKernel> FindLibraryConv2d(const OperatorCase& c, const Target& target);
absl::StatusOr<HandWrittenKernel> FindExpertConv2d(const OperatorCase& c, const Target& target,
                                                   const MeasureKernel& measure);

}  // namespace polynao::kernels

#endif  // KERNELS_LIBRARY_CONV2D_H_
