// libpng reports errors by longjmp: the two functions that call it own nothing, their callers own what they fill.
#include "cases/png.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "base/check.h"
#include "base/status.h"

namespace polynao::cases {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 27;

// The message of an error goes to the std::string that the structure was made with.
[[noreturn]] void Fail(png_structp png, png_const_charp message) {
  *static_cast<std::string*>(png_get_error_ptr(png)) = message;
  png_longjmp(png, 1);
}
void Ignore(png_structp, png_const_charp) {}

void Read(png_structp png, png_bytep to, size_t count) {
  auto& rest = *static_cast<std::string_view*>(png_get_io_ptr(png));
  if (rest.size() < count) png_error(png, "the file ends too early");
  std::memcpy(to, rest.data(), count);
  rest.remove_prefix(count);
}
void Write(png_structp png, png_bytep from, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<const char*>(from), count);
}
void Flush(png_structp) {}

// Rows of samples as the file format has them, of 16 bits in this machine's order.
struct RawRows {
  std::vector<png_byte> bytes;
  std::vector<png_bytep> rows;
};

void SetRows(size_t count, size_t row_bytes, RawRows& raw) {
  raw.bytes.resize(count * row_bytes);
  raw.rows.resize(count);
  for (size_t i = 0; i < count; ++i) raw.rows[i] = raw.bytes.data() + i * row_bytes;
}

bool ReadRows(png_structp png, png_infop info, Picture& picture, RawRows& raw) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_user_limits(png, kMostPixels, kMostPixels);
  png_read_info(png, info);
  picture.rows = png_get_image_height(png, info);
  picture.cols = png_get_image_width(png, info);
  if (picture.rows > kMostPixels / picture.cols) png_error(png, "more than 2^27 pixels");
  png_set_expand(png);
  if (png_get_bit_depth(png, info) == 16) png_set_swap(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  picture.channels = png_get_channels(png, info);
  picture.bits = png_get_bit_depth(png, info);
  SetRows(static_cast<size_t>(picture.rows), png_get_rowbytes(png, info), raw);
  png_read_image(png, raw.rows.data());
  png_read_end(png, nullptr);
  return true;
}

bool WriteRows(png_structp png, png_infop info, const Picture& picture, RawRows& raw) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  constexpr int kColorTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                 PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, static_cast<png_uint_32>(picture.cols),
               static_cast<png_uint_32>(picture.rows), picture.bits,
               kColorTypes[picture.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  if (picture.bits == 16) png_set_swap(png);
  png_write_image(png, raw.rows.data());
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

absl::StatusOr<Picture> DecodePng(std::string_view bytes, std::string_view file) {
  if (bytes.size() < 8 || png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, 8) != 0) {
    return InvalidInput(file, ": expected a PNG file, found something else");
  }
  std::string error;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &error, Fail, Ignore);
  POLYNAO_CHECK(png != nullptr) << "libpng";
  png_infop info = png_create_info_struct(png);
  POLYNAO_CHECK(info != nullptr) << "libpng";
  png_set_read_fn(png, &bytes, Read);
  Picture picture;
  RawRows raw;
  const bool ok = ReadRows(png, info, picture, raw);
  png_destroy_read_struct(&png, &info, nullptr);
  if (!ok) return InvalidInput(file, ": expected a whole PNG file: ", error);
  picture.samples.resize(static_cast<size_t>(picture.rows * picture.cols * picture.channels));
  if (picture.bits == 16) {
    std::memcpy(picture.samples.data(), raw.bytes.data(), raw.bytes.size());
  } else {
    std::copy(raw.bytes.begin(), raw.bytes.end(), picture.samples.begin());
  }
  return picture;
}

std::string EncodePng(const Picture& picture) {
  const int64_t row_samples = picture.cols * picture.channels;
  POLYNAO_CHECK(picture.samples.size() == static_cast<size_t>(picture.rows * row_samples));
  POLYNAO_CHECK(picture.bits == 8 || picture.bits == 16) << picture.bits;
  RawRows raw;
  SetRows(static_cast<size_t>(picture.rows), static_cast<size_t>(row_samples * picture.bits / 8),
          raw);
  if (picture.bits == 16) {
    std::memcpy(raw.bytes.data(), picture.samples.data(), raw.bytes.size());
  } else {
    std::copy(picture.samples.begin(), picture.samples.end(), raw.bytes.begin());
  }
  std::string error, bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &error, Fail, Ignore);
  POLYNAO_CHECK(png != nullptr) << "libpng";
  png_infop info = png_create_info_struct(png);
  POLYNAO_CHECK(info != nullptr) << "libpng";
  png_set_write_fn(png, &bytes, Write, Flush);
  const bool ok = WriteRows(png, info, picture, raw);
  png_destroy_write_struct(&png, &info);
  POLYNAO_CHECK(ok) << error;
  return bytes;
}

}  // namespace polynao::cases
