// Functions as bytes: what a build writes, so that a program need not parse text each time it starts.
#ifndef COMPILER_IR_PACKED_H_
#define COMPILER_IR_PACKED_H_

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// Appends numbers and texts to bytes: integers in groups of seven bits, lowest first.
class PackedWriter {
 public:
  void Unsigned(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  // Numbers near 0 of both signs are short.
  void Signed(int64_t value) {
    Unsigned(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  void Float(double value) { Unsigned(std::bit_cast<uint64_t>(value)); }
  void Text(std::string_view text) {
    Unsigned(text.size());
    bytes_ += text;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what PackedWriter wrote, in the same order. Bytes are the program's own: it stops at their end.
class PackedReader {
 public:
  explicit PackedReader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t Unsigned() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      POLYNAO_CHECK(at_ < bytes_.size() && shift < 64) << "at byte " << at_;
      const uint8_t byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  int64_t Signed() {
    const uint64_t value = Unsigned();
    return static_cast<int64_t>(value >> 1 ^ -(value & 1));
  }
  double Float() { return std::bit_cast<double>(Unsigned()); }
  std::string_view Text() {
    const size_t size = Unsigned();
    POLYNAO_CHECK(size <= bytes_.size() - at_) << size << " at byte " << at_;
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  bool AtEnd() const { return at_ == bytes_.size(); }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

// Functions of one context, with all that ir::Function holds. Shared expressions are written once.
void PackFunctions(absl::Span<const Function> functions, PackedWriter& writer);
// The same functions, in `context`. Not verified: they were before they were packed.
std::vector<Function> UnpackFunctions(PackedReader& reader, std::shared_ptr<Context> context);

}  // namespace polynao::ir

#endif  // COMPILER_IR_PACKED_H_
