// Block operations that the native routines spend their time in. Each uses what the CPU has (asked at run time) and
// gives the same bits as its portable form.
#ifndef ISA_SIMD_H_
#define ISA_SIMD_H_

#include <cstdint>
#include <string_view>

namespace polynao::isa {

// The CPU's vector extensions, as far as routines differ: each level has all of the ones before it.
enum class SimdLevel : uint8_t {
  kPortable,
  kAvx2,        // with F16C
  kAvx512,      // F, BW
  kAvx512Vnni,  // and VNNI
};
inline constexpr SimdLevel kSimdLevels[] = {SimdLevel::kPortable, SimdLevel::kAvx2,
                                            SimdLevel::kAvx512, SimdLevel::kAvx512Vnni};
// "portable", "avx2", "avx512", "avx512_vnni"
std::string_view SimdLevelName(SimdLevel level);
// The highest level of this CPU.
SimdLevel HostSimdLevel();
// The level in use: the host's, or a lower one that the environment asks for: POLYNAO_SIMD=avx2. Stops if that names no
// level.
SimdLevel CurrentSimdLevel();
// For tests, while no other thread executes. Stops if the host lacks the level.
void SetSimdLevel(SimdLevel level);

// Conversions of n elements; addresses need no alignment. NaNs stay NaNs.
void HalfToFloat(const uint8_t* halves, float* floats, int64_t n);
void FloatToHalf(const float* floats, uint8_t* halves, int64_t n);
// Each float rounded to the nearest f16.
void RoundToHalf(float* floats, int64_t n);
// acc, then acc + x[0] rounded to f16, then that + x[1] rounded, and so on.
float SumToHalf(float acc, const float* x, int64_t n);

// Sums of products, wrapping around in 32 bits, of `rows` rows of n elements that start so many bytes
// apart in a and in b: the window of a convolution.
struct DotRows {
  int64_t n;
  int64_t rows = 1;
  int64_t a_stride = 0, b_stride = 0;
};
int32_t DotI8(const uint8_t* a, const uint8_t* b, const DotRows& shape);
int32_t DotI16(const uint8_t* a, const uint8_t* b, const DotRows& shape);

// The portable forms, for tests and for CPUs without the extensions.
namespace portable {
void HalfToFloat(const uint8_t* halves, float* floats, int64_t n);
void FloatToHalf(const float* floats, uint8_t* halves, int64_t n);
void RoundToHalf(float* floats, int64_t n);
float SumToHalf(float acc, const float* x, int64_t n);
int32_t DotI8(const uint8_t* a, const uint8_t* b, const DotRows& shape);
int32_t DotI16(const uint8_t* a, const uint8_t* b, const DotRows& shape);
}  // namespace portable

}  // namespace polynao::isa

#endif  // ISA_SIMD_H_
