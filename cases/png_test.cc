#include "cases/png.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/random_value.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::cases {
namespace {

using ::testing::HasSubstr;

Picture RandomPicture(int64_t rows, int64_t cols, int channels, int bits) {
  Picture picture{.rows = rows, .cols = cols, .channels = channels, .bits = bits, .samples = {}};
  for (int64_t i = 0; i < rows * cols * channels; ++i) {
    const uint64_t random = ir::Splitmix(static_cast<uint64_t>(channels), static_cast<uint64_t>(i));
    picture.samples.push_back(static_cast<uint16_t>(random & ((1u << bits) - 1)));
  }
  return picture;
}

TEST(PngTest, RoundTrip) {
  for (int channels = 1; channels <= 4; ++channels) {
    for (const int bits : {8, 16}) {
      for (const int64_t cols : {1, 17}) {
        const Picture picture = RandomPicture(11, cols, channels, bits);
        const absl::StatusOr<Picture> read = DecodePng(EncodePng(picture), "x.png");
        ASSERT_TRUE(read.ok()) << read.status();
        EXPECT_EQ(read->rows, 11);
        EXPECT_EQ(read->cols, cols);
        EXPECT_EQ(read->channels, channels);
        EXPECT_EQ(read->bits, bits);
        EXPECT_EQ(read->samples, picture.samples);
      }
    }
  }
}

TEST(PngTest, RefusesWhatIsNoWholePng) {
  const std::string bytes = EncodePng(RandomPicture(9, 9, 3, 8));
  EXPECT_EQ(DecodePng("", "x.png").status().message(),
            "x.png: expected a PNG file, found something else");
  EXPECT_FALSE(DecodePng("P6 2 2 255 and so on", "x.png").ok());
  // Whatever its length is.
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodePng(bytes.substr(0, size), "x.png").ok()) << size;
  }
  EXPECT_EQ(DecodePng(bytes.substr(0, 60), "x.png").status().message(),
            "x.png: expected a whole PNG file: the file ends too early");
}

// A changed byte fails its chunk's checksum, or leaves a picture of the same size.
TEST(PngTest, SurvivesDamage) {
  const std::string bytes = EncodePng(RandomPicture(9, 9, 3, 8));
  int refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x15);
    const absl::StatusOr<Picture> read = DecodePng(damaged, "x.png");
    if (!read.ok()) ++refused;
  }
  EXPECT_GT(refused, static_cast<int>(bytes.size()) / 2);
}

TEST(PngTest, RefusesTooManyPixels) {
  // The header of a picture of 2^20 x 2^20 pixels, with its checksum.
  std::string bytes = EncodePng(RandomPicture(1, 1, 1, 8));
  bytes.replace(16, 8, std::string("\x00\x10\x00\x00\x00\x10\x00\x00", 8));
  uint32_t crc = 0xffffffff;
  for (size_t i = 12; i < 29; ++i) {
    crc ^= static_cast<uint8_t>(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  crc = ~crc;
  for (size_t i = 0; i < 4; ++i) bytes[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
  EXPECT_THAT(DecodePng(bytes, "x.png").status().message(), HasSubstr("more than 2^27 pixels"));
}

}  // namespace
}  // namespace polynao::cases
