// Shared memory of a cluster: bytes, and a port for which its cores' DMA engines compete.
#ifndef SIMULATOR_SMEM_H_
#define SIMULATOR_SMEM_H_

#include <cstdint>

#include "isa/machine.h"
#include "simulator/memory.h"
#include "simulator/server.h"

namespace polynao::simulator {

class Smem : public Memory {
 public:
  Smem(sc_core::sc_module_name name, const isa::Machine& machine)
      : Memory(name, machine.smem_bytes()),
        granule_(machine.Get("smem.granule")),
        port_("port", static_cast<int>((machine.cores_per_cluster() + 1) * kUses),
              machine.Get("smem.bytes") * kKilocycle) {}

  // Who asks: a core's IO-DMA for what it reads and for what it writes, its Move-DMA likewise, its scalar
  // unit.
  enum class Use { kIoRead, kIoWrite, kMoveRead, kMoveWrite, kScalar };

  // Bytes that the port moves for [address, address + size): whole granules.
  int64_t MovedBytes(int64_t address, int64_t size) const {
    const int64_t end = (address + size + granule_ - 1) / granule_ * granule_;
    return end - address / granule_ * granule_;
  }
  void Push(int core, Use use, Burst& burst, int64_t bytes, int64_t time) {
    port_.Push(core * kUses + static_cast<int>(use), burst, bytes, time);
  }
  const Server& port() const { return port_; }

 private:
  static constexpr int kUses = 5;
  const int64_t granule_;
  Server port_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_SMEM_H_
