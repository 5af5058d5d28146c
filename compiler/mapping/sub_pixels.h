// Channels of a layer that are the channels of several pixels of its result: a transposed convolution with a stride.
//
//   Y[2 q + a, 2 x + b, o] = T[q, x, (a, b, o)]      T: a convolution with four times the channels, a stride of 2
//
// A result is moved as box by box of (a, b, o), so that a run of channels must be one.
#ifndef COMPILER_MAPPING_SUB_PIXELS_H_
#define COMPILER_MAPPING_SUB_PIXELS_H_

#include <algorithm>
#include <cstdint>
#include <optional>

namespace polynao::mapping {

struct SubPixels {
  // Rows and columns of the result for one pixel of the layer, and channels of each of these.
  int64_t rows = 1, columns = 1, channels = 1;

  int64_t count() const { return rows * columns * channels; }
  bool operator==(const SubPixels&) const = default;
  // The box of each run of `size` channels, of which there are whole ones; or all. None if the runs are no boxes.
  std::optional<SubPixels> Run(int64_t size) const {
    const SubPixels run =
        size >= count() ? *this
        : size >= columns * channels
            ? SubPixels{size / (columns * channels), columns, channels}
            : SubPixels{1, std::max<int64_t>(1, size / channels), std::min(size, channels)};
    const bool is_whole =
        size >= count() || (run.count() == size && rows % run.rows == 0 &&
                            columns % run.columns == 0 && channels % run.channels == 0);
    return is_whole ? std::optional(run) : std::nullopt;
  }
};

}  // namespace polynao::mapping

#endif  // COMPILER_MAPPING_SUB_PIXELS_H_
