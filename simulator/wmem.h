// Weight memory: one bank for each lane of the tensor unit.
#ifndef SIMULATOR_WMEM_H_
#define SIMULATOR_WMEM_H_

#include <cstdint>

#include "simulator/memory.h"

namespace polynao::simulator {

// Bank b holds the bytes from b * bank_bytes() on.
class Wmem : public Memory {
 public:
  Wmem(sc_core::sc_module_name name, int64_t bytes, int64_t banks)
      : Memory(name, bytes), banks_(banks) {
    POLYNAO_CHECK(bytes % banks == 0) << bytes << " bytes in " << banks << " banks";
  }
  int64_t banks() const { return banks_; }
  int64_t bank_bytes() const { return size() / banks_; }

 private:
  const int64_t banks_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_WMEM_H_
