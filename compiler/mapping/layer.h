// A contraction with what is elementwise behind it, as the search sees it: roles and sizes, no expressions.
#ifndef COMPILER_MAPPING_LAYER_H_
#define COMPILER_MAPPING_LAYER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/mapping/sub_pixels.h"

namespace polynao::mapping {

// How many elements of one dimension of the image a run of the output reads.
struct Window {
  int64_t step = 1, size = 1;
  int64_t whole = 1;   // of the dimension, padding included
  int64_t inside = 1;  // without it

  int64_t Of(int64_t outputs) const { return std::min(whole, (outputs - 1) * step + size); }
  // Of these so many at most come from GMEM.
  int64_t LoadedOf(int64_t outputs) const { return std::min(inside, Of(outputs)); }
};

// A convolution or product of `rows` x `columns` pixels (a product has one column) and `channels` output channels.
// Extents are 1 and more.
struct Layer {
  int64_t rows = 1, columns = 1, channels = 1;
  Window image_rows, image_columns;
  int64_t input_channels = 1;
  // That lie side by side in GMEM: more than input_channels if these are a part, whose sums go to others' (of clusters
  // that share sums). Then filters come in parts, and of an image in SMEM there are whole pixels.
  int64_t pixel_channels = 1;
  int64_t element_bytes = 1;  // of the image and the weights
  bool is_padded = false;
  int64_t filter_bytes = 1;   // of one output channel in GMEM
  int64_t filter_pitch = 1;   // and in its bank of WMEM
  double macs_per_cycle = 1;  // of a core
  // The ways to cut each filter into equal parts whose sums the tensor unit adds up, where the host lays weights out
  // part by part. Empty: none.
  struct Part {
    int64_t count = 1;
    int64_t bytes = 1, pitch = 1;  // of a part of one filter, in GMEM and in its bank
    // Of an image that comes in parts, too: input channels of a part. 0: a part has all of one or several places of the
    // window, which an image that is there is read at.
    int64_t channels = 0;
    // Rows and columns of the image from where one part is read to where the next one is; 0: they begin alike.
    int64_t row_step = 0, column_step = 0;
  };
  std::vector<Part> parts;
  // Elementwise inputs of the output's shape, bytes of an element; and inputs that differ along the channels alone.
  std::vector<int64_t> loaded;
  int64_t channel_vectors = 0;
  int64_t result_bytes = 1;  // of an element
  // Results lie in GMEM in blocks of 64 channels, which cores store by themselves, not as whole pixels.
  bool in_blocks = false;
  // What the channels are of a result of more pixels; such results go by way of SMEM, where they are put in order. They
  // lie side by side in GMEM as in SMEM, or row by row (`rows_apart`).
  std::optional<SubPixels> sub_pixels = std::nullopt;
  bool rows_apart = false;
  bool has_part_of_pixels() const { return pixel_channels > input_channels; }
  // Bytes of NMEM for what is computed of so many pixels and lanes, `copies` of what is loaded for them; and the vector
  // unit's cycles for it.
  std::function<int64_t(int64_t pixels, int64_t lanes, int64_t copies)> temporaries;
  std::function<double(int64_t pixels, int64_t lanes)> vector_cycles;
};

}  // namespace polynao::mapping

#endif  // COMPILER_MAPPING_LAYER_H_
