// Sums of products of many windows of one operand with many rows of the other: the work of a convolution or a matrix
// multiplication, blocked over both.
#ifndef ISA_DOT_GRID_H_
#define ISA_DOT_GRID_H_

#include <cstdint>

#include "compiler/ir/type.h"
#include "isa/simd.h"

namespace polynao::isa {

// For each window w and each lane l: dst[w, l] = (adds ? dst[w, l] : 0) + the products that `shape` says of the
// window's elements in a and the lane's in b. Integers are added in i32, which wraps around; floats one after the other
// in f32, each product and each sum rounded, so that all forms give the same bits. Strides are in bytes. Windows stand
// in a nest of loops; lanes in groups of consecutive 32-bit results.
struct DotGrid {
  static constexpr int kMaxLoops = 6;
  struct WindowLoop {
    int64_t count, a_stride, dst_stride;
  };
  struct GroupLoop {
    int64_t count, b_stride, dst_stride;
  };
  DotRows shape;
  ir::Type element = ir::Type::kI8;  // of a and b: i8, i16, f16 or f32
  bool adds = false;
  int window_depth = 0;
  WindowLoop windows[kMaxLoops];  // outermost first
  int group_depth = 0;
  GroupLoop groups[kMaxLoops];
  int64_t lanes = 0, lane_stride = 0;  // of b
};

// False, and nothing is done, if the host's extensions have no form of it or it would not pay: the caller then goes
// window by window. dst must not overlap a and b.
bool RunDotGrid(const DotGrid& grid, const uint8_t* a, const uint8_t* b, uint8_t* dst);

}  // namespace polynao::isa

#endif  // ISA_DOT_GRID_H_
