// What this machine has of the features that rows name.
#include <string_view>

#include "isa/processor/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace polynao::isa {
namespace {

// Linux gives a process the 8 KiB of tiles if it asks for them. It may refuse: a thread's stack for signals can be too
// small to save them.
bool MayUseTiles() {
#if defined(__x86_64__) && defined(__linux__)
  static const bool may = syscall(SYS_arch_prctl, kAskForState, kTileState) == 0;
  return may;
#else
  return false;
#endif
}

}  // namespace

bool HostHas(std::string_view feature) {
#if defined(__x86_64__)
  if (feature == "avx2") return __builtin_cpu_supports("avx2") != 0;
  if (feature == "avx512vnni") return __builtin_cpu_supports("avx512vnni") != 0;
  if (feature == "avx512bf16") return __builtin_cpu_supports("avx512bf16") != 0;
  // Compilers do not know these by name yet: bits of EDX, and of EAX of the second part, of the leaf of
  // extended features (Intel SDM, CPUID).
  constexpr unsigned kExtendedFeatures = 7, kBf16Bit = 1U << 22, kTileBit = 1U << 24,
                     kInt8Bit = 1U << 25, kVexVnniBit = 1U << 4;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (feature == "avxvnni") {
    return __builtin_cpu_supports("avx2") != 0 &&
           __get_cpuid_count(kExtendedFeatures, 1, &a, &b, &c, &d) != 0 && (a & kVexVnniBit) != 0;
  }
  if (__get_cpuid_count(kExtendedFeatures, 0, &a, &b, &c, &d) == 0) return false;
  if (feature == "amx-int8") return (d & kTileBit) != 0 && (d & kInt8Bit) != 0 && MayUseTiles();
  if (feature == "amx-bf16") return (d & kTileBit) != 0 && (d & kBf16Bit) != 0 && MayUseTiles();
#else
  static_cast<void>(feature);
#endif
  return false;
}

}  // namespace polynao::isa
