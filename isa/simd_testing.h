// Runs a test at each level of vector extensions that the host has.
#ifndef ISA_SIMD_TESTING_H_
#define ISA_SIMD_TESTING_H_

#include <cstdio>
#include <string>

#include "gtest/gtest.h"
#include "isa/simd.h"

namespace polynao::isa {

// Calls test() with each level in use, and prints which levels the host lacks.
template <typename Test>
void AtEachSimdLevel(const Test& test) {
  const SimdLevel before = CurrentSimdLevel();
  for (const SimdLevel level : kSimdLevels) {
    const std::string name(SimdLevelName(level));
    if (level > HostSimdLevel()) {
      std::printf("[   NOTE   ] this CPU lacks %s, which is not tested\n", name.c_str());
      continue;
    }
    SCOPED_TRACE(name);
    SetSimdLevel(level);
    test();
  }
  SetSimdLevel(before);
}

}  // namespace polynao::isa

#endif  // ISA_SIMD_TESTING_H_
