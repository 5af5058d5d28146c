// Arithmetic on short runs of elements: what native routines compute in.
#ifndef ISA_NATIVE_BLOCKS_H_
#define ISA_NATIVE_BLOCKS_H_

#include <cstdint>
#include <cstring>

#include "compiler/ir/intrinsics.h"
#include "compiler/ir/type.h"

namespace polynao::isa::native {

using ir::Type;

// Elements that one pass over an expression handles; a slot of them stays in the first-level cache.
constexpr int kBlock = 256;
constexpr int kMaxSlots = 16;

union Slot {
  float f[kBlock];
  int32_t i[kBlock];
};

// Types that blocks can hold: floats up to f32 as float, integers up to i32 as int32_t.
bool IsBlockType(Type type);

template <typename T>
T ReadAs(const uint8_t* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

template <typename T>
void WriteAs(uint8_t* address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

enum class BlockOp : uint8_t {
  kLoad,
  kBroadcastOperand,
  kBroadcastConst,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,
  kMax,
  kEq,
  kNe,
  kLt,
  kLe,
  kAnd,
  kOr,
  kNot,
  kSelect,
  kIntToFloat,
  kFloatToInt,
  kCopy,
  kCall,
};

// One operation of a block program; its result has the slot of its own position.
struct BlockStep {
  BlockOp op;
  Type type;                // of the result
  bool on_floats = false;   // of its operands
  int a = 0, b = 0, c = 0;  // slots; kLoad: access; kBroadcastOperand: operand
  double constant = 0;
  const ir::PureIntrinsic* intrinsic = nullptr;  // of kCall, with one argument
};

// Converts n elements of `type` from memory and back; `stride` is in bytes.
void LoadBlock(Type type, const uint8_t* from, int64_t stride, Slot& to, int64_t n);
void StoreBlock(Type type, const Slot& from, uint8_t* to, int64_t stride, int64_t n);

// Brings freshly computed values to their type: rounds f16, wraps narrow integers.
void Normalize(Type type, Slot& slot, int64_t n);

// out[i] = a[i] op b[i] for n elements, where `op` compares (kEq to kLe) ...
template <typename T>
void Compare(BlockOp op, const T* a, const T* b, int32_t* out, int64_t n);
// ... or computes: kAdd to kMax ...
void FloatArithmetic(BlockOp op, const float* a, const float* b, float* out, int64_t n);
// ... or kAdd to kMax without kDiv, kAnd, kOr. Results wrap around in i32.
void IntArithmetic(BlockOp op, const int32_t* a, const int32_t* b, int32_t* out, int64_t n);
// Converts to the integer type `type` as ir::FloatToInt does.
void CastFloatToInt(Type type, const float* from, int32_t* to, int64_t n);

inline int32_t WrapAdd(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

}  // namespace polynao::isa::native

#endif  // ISA_NATIVE_BLOCKS_H_
