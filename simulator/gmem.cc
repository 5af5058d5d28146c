#include "simulator/gmem.h"

#include <string>

namespace polynao::simulator {

Gmem::Gmem(sc_core::sc_module_name name, const isa::Machine& machine, uint8_t* data, int64_t bytes)
    : sc_core::sc_module(name),
      data_(data),
      size_(bytes),
      interleave_(machine.Get("gmem.interleave")),
      granule_(machine.Get("gmem.granule")) {
  const int requesters =
      static_cast<int>(2 * machine.clusters() * (machine.cores_per_cluster() + 1));
  for (int64_t i = 0; i < machine.Get("gmem.channels"); ++i) {
    channels_.push_back(std::make_unique<Server>(("channel" + std::to_string(i)).c_str(),
                                                 requesters,
                                                 machine.Get("gmem.channel_bytes_per_kilocycle")));
  }
}

int64_t Gmem::MovedBytes(int64_t address, int64_t size, bool is_write) const {
  const int64_t end = address + size;
  const int64_t first = address / granule_;
  const int64_t last = (end + granule_ - 1) / granule_;  // one past
  int64_t granules = last - first;
  if (is_write) {
    const bool partial_first = address % granule_ != 0;
    const bool partial_last = end % granule_ != 0;
    const bool one = last - first == 1;
    granules += one ? (partial_first || partial_last) : partial_first + partial_last;
  }
  return granules * granule_;
}

}  // namespace polynao::simulator
