#include "compiler/ir/tensor.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace polynao::ir {

namespace {

int64_t Product(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

// `value` truncated towards zero, modulo 2^64; 0 for NaN and infinities.
int64_t LowBits(double value) {
  if (std::abs(value) < 0x1p63) return static_cast<int64_t>(value);
  if (!std::isfinite(value)) return 0;
  // Such a number is whole, and fmod is exact.
  const auto bits = static_cast<uint64_t>(std::fmod(std::abs(value), 0x1p64));
  return static_cast<int64_t>(value < 0 ? 0 - bits : bits);
}

}  // namespace

Tensor::Tensor(Type type, std::vector<int64_t> shape) : type(type), shape(std::move(shape)) {
  bytes.resize(element_count() * ByteSize(type));
}

int64_t Tensor::element_count() const { return Product(shape); }

double Tensor::Float(int64_t i) const { return LoadFloat(type, &bytes[i * ByteSize(type)]); }

int64_t Tensor::Int(int64_t i) const { return LoadInt(type, &bytes[i * ByteSize(type)]); }

double Tensor::Value(int64_t i) const {
  return IsFloat(type) ? Float(i) : IntToFloat(type, Int(i), Type::kF64);
}

void Tensor::SetValue(int64_t i, double value) {
  if (IsFloat(type)) {
    StoreFloat(type, &bytes[i * ByteSize(type)], value);
  } else {
    SetInt(i, LowBits(value));
  }
}

void Tensor::SetInt(int64_t i, int64_t value) { StoreInt(type, &bytes[i * ByteSize(type)], value); }

}  // namespace polynao::ir
