// The memories of a core. They hold bytes and take no time: the units that access them have
// ports wide enough for their rates (docs/timing.md).
#ifndef SIMULATOR_MEMORY_H_
#define SIMULATOR_MEMORY_H_

#include <cstdint>
#include <systemc>

#include "base/check.h"
#include "simulator/pages.h"

namespace polynao::simulator {

// Zeroed bytes.
class Memory : public sc_core::sc_module {
 public:
  Memory(sc_core::sc_module_name name, int64_t bytes)
      : sc_core::sc_module(name), size_(bytes), pages_(bytes, Pages::Sharing::kPrivate) {
    POLYNAO_CHECK(pages_.ok()) << bytes << " bytes";
  }
  uint8_t* data() { return pages_.data(); }
  int64_t size() const { return size_; }

 private:
  const int64_t size_;
  Pages pages_;
};

// Neuron memory: operands and results of the vector and tensor units.
class Nmem : public Memory {
 public:
  using Memory::Memory;
};

// Weight memory: a bank for each lane of the tensor unit, one after the other.
class Wmem : public Memory {
 public:
  using Memory::Memory;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_MEMORY_H_
