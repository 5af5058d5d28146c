// Pictures in PNG files.
#ifndef CASES_PNG_H_
#define CASES_PNG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace polynao::cases {

struct Picture {
  int64_t rows = 0;
  int64_t cols = 0;
  int channels = 1;  // 1: gray; 2: gray, alpha; 3: red, green, blue; 4: and alpha
  int bits = 8;      // of a sample: 8 or 16
  // By row, column and channel.
  std::vector<uint16_t> samples;

  uint16_t Sample(int64_t row, int64_t col, int channel) const {
    return samples[static_cast<size_t>((row * cols + col) * channels + channel)];
  }
};

// The picture in the bytes of a file; palettes become colours, fewer bits than 8 become 8. Errors: what is no PNG, is
// damaged or ends too early, and more than 2^27 pixels; `file` is for the message.
absl::StatusOr<Picture> DecodePng(std::string_view bytes, std::string_view file);

// The bytes of a file. The picture has samples for all its pixels.
std::string EncodePng(const Picture& picture);

}  // namespace polynao::cases

#endif  // CASES_PNG_H_
