#include "compiler/codegen/c/prelude.h"

#include <cstddef>
#include <iterator>
#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "compiler/ir/type.h"

namespace polynao::codegen {
namespace {

constexpr std::string_view kHeader = R"(#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#if !defined(NAO_CONTRACT)
#pragma STDC FP_CONTRACT OFF
#endif
#pragma clang diagnostic ignored "-Wpass-failed"
#endif
#if defined(__GNUC__) && !defined(_OPENMP)
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif
)";

constexpr std::string_view kCudaHeader = R"(#if defined(__CUDACC_RTC__)
// NVRTC comes without the C library's headers.
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615ull
#define NAN __int_as_float(0x7fffffff)
#define INFINITY __int_as_float(0x7f800000)
#else
#include <math.h>
#include <stdint.h>
#endif
)";

// Helpers for which CUDA has better code than the C text, or needs other code.
struct CudaHelper {
  std::string_view name;
  std::string_view text;
};
constexpr CudaHelper kCudaHelpers[] = {
    {"nao_bits_of_f32", R"(
static __device__ inline uint32_t nao_bits_of_f32(float x) { return __float_as_uint(x); })"},
    {"nao_f32_of_bits", R"(
static __device__ inline float nao_f32_of_bits(uint32_t bits) { return __uint_as_float(bits); })"},
    {"nao_f32_of_f16", R"(
static __device__ inline float nao_f32_of_f16(uint16_t h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
})"},
    {"nao_f16_of_f32", R"(
// Rounds to nearest even.
static __device__ inline uint16_t nao_f16_of_f32(float x) {
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
})"},
    {"nao_odd_fma", R"(
// x * y + z, of which the product is exact, rounded to odd: the last bit is set if it is not exact.
static __device__ inline double nao_odd_fma(double x, double y, double z) {
  const double product = x * y, sum = product + z, part = sum - product;
  const double error = (product - (sum - part)) + (z - part);
  long long bits;
  asm("mov.b64 %0, %1;" : "=l"(bits) : "d"(sum));
  if (!(error < 0 || 0 < error) || bits % 2 != 0) return sum;
  bits += (0 < error) == (0 < sum) ? 1 : -1;
  double odd;
  asm("mov.b64 %0, %1;" : "=d"(odd) : "l"(bits));
  return odd;
})"},
};

// A helper's name and its definition. A helper comes after the helpers that it calls. In a family of
// helpers, {T} is the C type, {N} the type's name (i32), {U} the C type in which its bits are shifted,
// {W} its width in bits, {LOW} and {HIGH} its limits.
struct Helper {
  std::string_view name;
  std::string_view text;
};

constexpr Helper kIntHelpers[] = {
    {"nao_add_", R"(
// Sums, differences and products that wrap around.
static inline {T} nao_add_{N}({T} a, {T} b) { return ({T})((u{T})a + (u{T})b); })"},
    {"nao_sub_",
     R"(static inline {T} nao_sub_{N}({T} a, {T} b) { return ({T})((u{T})a - (u{T})b); })"},
    {"nao_mul_",
     R"(static inline {T} nao_mul_{N}({T} a, {T} b) { return ({T})((u{T})a * (u{T})b); })"},
    {"nao_div_", R"(
// The quotient rounded down; the one that does not fit wraps around.
static inline {T} nao_div_{N}({T} a, {T} b) {
  if (b == -1) return ({T})(0 - (u{T})a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
})"},
    {"nao_mod_", R"(
// The remainder of the division that rounds down; it has the sign of b.
static inline {T} nao_mod_{N}({T} a, {T} b) {
  if (b == -1) return 0;
  const {T} r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
})"},
};

constexpr Helper kOrderHelpers[] = {
    {"nao_min_", R"(static inline {T} nao_min_{N}({T} a, {T} b) { return b < a ? b : a; })"},
    {"nao_max_", R"(static inline {T} nao_max_{N}({T} a, {T} b) { return a < b ? b : a; })"},
};

constexpr Helper kShiftHelpers[] = {
    {"nao_shl_", R"(
// A count from the width on shifts all bits out; so does a negative one.
static inline {T} nao_shl_{N}({T} a, {T} b) {
  return (uint64_t)b < {W} ? ({T})(({U})a << b) : 0;
})"},
};
constexpr Helper kSignedShiftHelpers[] = {
    {"nao_shr_", R"(
// Copies the sign; a count from the width on leaves nothing else.
static inline {T} nao_shr_{N}({T} a, {T} b) {
  return ({T})(a >> ((uint64_t)b < {W} ? b : {W} - 1));
})"},
};
constexpr Helper kUnsignedShiftHelpers[] = {
    {"nao_shr_", R"(
// A count from the width on shifts all bits out.
static inline {T} nao_shr_{N}({T} a, {T} b) { return b < {W} ? ({T})(a >> b) : 0; })"},
};

// A 64-bit integer as a double that rounds to f16 and bf16 as the integer does: above 2^53 one bit is
// set in place of all that a double drops.
constexpr Helper kOddHelpers[] = {
    {"nao_odd_i64", R"(
static inline double nao_odd_i64(int64_t x) {
  const bool is_exact = (x >= -((int64_t)1 << 53) && x <= (int64_t)1 << 53) || (x & 0x7ff) == 0;
  return (double)(is_exact ? x : (x & ~(int64_t)0x7ff) | 0x800);
})"},
    {"nao_odd_u64", R"(
static inline double nao_odd_u64(uint64_t x) {
  const bool is_exact = x >> 53 == 0 || (x & 0x7ff) == 0;
  return (double)(is_exact ? x : (x & ~(uint64_t)0x7ff) | 0x800);
})"},
};

// Casts of floats to integers truncate and saturate; NaN gives 0.
constexpr Helper kCastHelpers[] = {
    {"nao_to_", R"(
static inline {T} nao_to_{N}(double x) {
  if (x != x) return 0;
  return x <= (double){LOW} ? {LOW} : x >= (double){HIGH} ? {HIGH} : ({T})x;
})"},
};

constexpr Helper kFloatHelpers[] = {
    {"nao_bits_of_f32", R"(
static inline uint32_t nao_bits_of_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
})"},
    {"nao_f32_of_bits", R"(
static inline float nao_f32_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
})"},
    {"nao_f64_of_bits", R"(
static inline double nao_f64_of_bits(int64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
})"},
    {"nao_f32_of_f16", R"(
// IEEE binary16, by its bits.
static inline float nao_f32_of_f16(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
  const uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
  const uint32_t normal = magnitude + ((uint32_t)112 << 23);
  const uint32_t special = magnitude | 0x7f800000;
  const uint32_t small = nao_bits_of_f32((float)(h & 0x3ff) * 0x1p-24f);
  const uint32_t exponent = h & 0x7c00;
  return nao_f32_of_bits(sign | (exponent == 0 ? small : exponent == 0x7c00 ? special : normal));
})"},
    {"nao_f16_of_f32", R"(
// Rounds to nearest even.
static inline uint16_t nao_f16_of_f32(float x) {
  const uint32_t bits = nao_bits_of_f32(x);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t odd = (magnitude >> 13) & 1;
  const uint32_t normal = (magnitude - 0x38000000 + 0xfff + odd) >> 13;
  const uint32_t small = nao_bits_of_f32(nao_f32_of_bits(magnitude) + 0.5f) - 0x3f000000;
  const uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
  const uint32_t rounded = magnitude < 0x38800000 ? small : magnitude < 0x47800000 ? normal : special;
  return (uint16_t)((bits >> 16 & 0x8000) | rounded);
})"},
    {"nao_round_f16", R"(
static inline float nao_round_f16(float x) { return nao_f32_of_f16(nao_f16_of_f32(x)); })"},
    {"nao_f32_of_bf16", R"(
// bfloat16, the upper half of a float.
static inline float nao_f32_of_bf16(uint16_t b) { return nao_f32_of_bits((uint32_t)b << 16); })"},
    {"nao_bf16_of_f32", R"(
// Rounds to nearest even.
static inline uint16_t nao_bf16_of_f32(float x) {
  const uint32_t bits = nao_bits_of_f32(x);
  const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  return (uint16_t)((x != x ? bits | 0x400000 : rounded) >> 16);
})"},
    {"nao_round_bf16", R"(
static inline float nao_round_bf16(float x) { return nao_f32_of_bf16(nao_bf16_of_f32(x)); })"},
    {"nao_odd_f32", R"(
// A float that rounds to f16 and bf16 as the double x does: the nearest float towards zero, with its
// last bit set if it is not x itself.
static inline float nao_odd_f32(double x) {
  const float nearest = (float)x;
  const uint32_t bits = nao_bits_of_f32(nearest);
  if (x != x || (double)nearest == x) return nearest;
  return nao_f32_of_bits((bits - (fabs((double)nearest) > fabs(x))) | 1);
})"},
    {"nao_odd_fma", R"(
// x * y + z, of which the product is exact, rounded to odd: the last bit is set if it is not exact. Narrower floats
// then round as the exact value does.
static inline double nao_odd_fma(double x, double y, double z) {
  const double product = x * y, sum = product + z, part = sum - product;
  const double error = (product - (sum - part)) + (z - part);
  int64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  if (!(error < 0 || 0 < error) || bits % 2 != 0) return sum;
  bits += (0 < error) == (0 < sum) ? 1 : -1;
  double odd;
  memcpy(&odd, &bits, sizeof odd);
  return odd;
})"},
    {"nao_fma_f16", R"(
static inline float nao_fma_f16(float x, float y, float z) { return nao_round_f16(nao_odd_f32(nao_odd_fma(x, y, z))); })"},
    {"nao_fma_bf16", R"(
static inline float nao_fma_bf16(float x, float y, float z) { return nao_round_bf16(nao_odd_f32(nao_odd_fma(x, y, z))); })"},
    {"nao_sigmoid_f32", R"(
// 1 / (1 + exp(-x)), without overflow on the way.
static inline float nao_sigmoid_f32(float x) {
  const float e = expf(-fabsf(x));
  return (0 < x ? 1 : e) / (1 + e);
})"},
    {"nao_sigmoid_f64", R"(
// 1 / (1 + exp(-x)), without overflow on the way.
static inline double nao_sigmoid_f64(double x) {
  const double e = exp(-fabs(x));
  return (0 < x ? 1 : e) / (1 + e);
})"},
    {"nao_allocate", R"(
// Aligned memory; stops the program if there is none.
static inline void *nao_allocate(int64_t bytes) {
  void *memory = aligned_alloc(64, ((size_t)bytes / 64 + 1) * 64);
  if (memory == NULL) abort();
  return memory;
})"},
};

// Whether `text` calls `name` (and not another function whose name begins like it).
bool Calls(const std::string& text, const std::string& name) {
  return text.find(name + "(") != std::string::npos;
}

struct Definition {
  std::string name;
  std::string text;
};

std::vector<Definition> AllHelpers() {
  std::vector<Definition> all;
  const auto add_family = [&](const auto& helpers, ir::Type type) {
    const bool is_unsigned = ir::IsUnsigned(type);
    const int width = ir::BitWidth(type);
    const std::string c_name = StrCat(is_unsigned ? "uint" : "int", width);
    const std::string limit = StrCat(is_unsigned ? "UINT" : "INT", width);
    for (const Helper& helper : helpers) {
      all.push_back(
          {StrCat(helper.name, ir::TypeName(type)),
           absl::StrReplaceAll(ToAbsl(helper.text),
                               {{"{T}", StrCat(c_name, "_t")},
                                {"{N}", ToAbsl(ir::TypeName(type))},
                                {"{U}", width == 64 ? "uint64_t" : "uint32_t"},
                                {"{W}", StrCat(width)},
                                {"{LOW}", is_unsigned ? std::string("0") : StrCat(limit, "_MIN")},
                                {"{HIGH}", StrCat(limit, "_MAX")}})});
    }
  };
  const auto add_float_family = [&](const auto& helpers, std::string_view type,
                                    std::string_view name) {
    for (const Helper& helper : helpers) {
      all.push_back({StrCat(helper.name, name),
                     absl::StrReplaceAll(ToAbsl(helper.text),
                                         {{"{T}", ToAbsl(type)}, {"{N}", ToAbsl(name)}})});
    }
  };
  for (ir::Type type : {ir::Type::kI32, ir::Type::kI64}) add_family(kIntHelpers, type);
  for (ir::Type type : {ir::Type::kI32, ir::Type::kI64, ir::Type::kU32, ir::Type::kU64}) {
    add_family(kOrderHelpers, type);
  }
  add_float_family(kOrderHelpers, "float", "f32");
  add_float_family(kOrderHelpers, "double", "f64");
  for (int i = 0; i < ir::kTypeCount; ++i) {
    const ir::Type type = static_cast<ir::Type>(i);
    if (!ir::IsInt(type) || type == ir::Type::kI1) continue;
    add_family(kCastHelpers, type);
    add_family(kShiftHelpers, type);
    if (ir::IsUnsigned(type)) {
      add_family(kUnsignedShiftHelpers, type);
    } else {
      add_family(kSignedShiftHelpers, type);
    }
  }
  for (const Helper& helper : kOddHelpers) {
    all.push_back({std::string(helper.name), std::string(helper.text)});
  }
  for (const Helper& helper : kFloatHelpers) {
    all.push_back({std::string(helper.name), std::string(helper.text)});
  }
  return all;
}

// The text of the helpers of `all` that `body` needs, in order.
std::string Needed(const std::vector<Definition>& all, const std::string& body) {
  // From the last to the first, since later helpers call earlier ones.
  std::string needed = body;
  std::string text;
  for (size_t i = all.size(); i-- > 0;) {
    if (!Calls(needed, all[i].name)) continue;
    needed += all[i].text;
    text = StrCat(all[i].text.starts_with('\n') ? "" : "\n", all[i].text, "\n", text);
  }
  return text;
}

// A helper for CUDA: its own text, or C's text as a device function, which the shim compiles too.
Definition ForCuda(const Definition& c) {
  const std::string device =
      absl::StrReplaceAll(c.text, {{"static inline ", "static __device__ inline "}});
  for (const CudaHelper& helper : kCudaHelpers) {
    if (c.name != helper.name) continue;
    if (helper.text.find("asm(") == std::string_view::npos)
      return {c.name, std::string(helper.text)};
    return {c.name,
            StrCat("\n#if defined(__CUDACC__)", helper.text, "\n#else", device, "\n#endif")};
  }
  return {c.name, device};
}

}  // namespace

std::string CPrelude(const std::string& body) {
  return StrCat(kHeader, Needed(AllHelpers(), body));
}

std::string CudaPrelude(const std::string& body) {
  std::vector<Definition> all = AllHelpers();
  for (Definition& helper : all) helper = ForCuda(helper);
  return StrCat(kCudaHeader, Needed(all, body));
}

}  // namespace polynao::codegen
