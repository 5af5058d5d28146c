// The memories of a core: bytes of their own, no time of their own. The units that access them have
// ports wide enough for their rates (docs/timing.md).
#ifndef SIMULATOR_MEMORY_H_
#define SIMULATOR_MEMORY_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <systemc>

#include "base/check.h"

namespace polynao::simulator {

// Zeroed bytes. The host gives pages to those that are used: a card has tens of megabytes, a
// program that runs a microsecond touches few.
class Memory : public sc_core::sc_module {
 public:
  Memory(sc_core::sc_module_name name, int64_t bytes)
      : sc_core::sc_module(name),
        size_(bytes),
        data_(static_cast<uint8_t*>(std::calloc(static_cast<size_t>(bytes), 1))) {
    POLYNAO_CHECK(data_ != nullptr) << bytes << " bytes";
  }
  uint8_t* data() { return data_.get(); }
  int64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(uint8_t* data) const { std::free(data); }
  };
  const int64_t size_;
  std::unique_ptr<uint8_t[], Free> data_;
};

// Neuron memory: operands and results of the vector and tensor units.
class Nmem : public Memory {
 public:
  using Memory::Memory;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_MEMORY_H_
