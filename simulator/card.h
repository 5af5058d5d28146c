// The card: GMEM and clusters.
#ifndef SIMULATOR_CARD_H_
#define SIMULATOR_CARD_H_

#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "simulator/barrier.h"
#include "simulator/cluster.h"
#include "simulator/context.h"
#include "simulator/gmem.h"

namespace polynao::simulator {

class Card : public sc_core::sc_module {
 public:
  // `gmem` are the bytes of GMEM. context.result has a report for each core.
  Card(sc_core::sc_module_name name, Context& context, uint8_t* gmem, int64_t gmem_bytes);

  // Runs the program on all cores until all have halted and all queues are empty, or an error.
  // Fills context.result. Errors: that of a core; a deadlock; `max_cycles` have passed.
  absl::Status Simulate(int64_t max_cycles);

 private:
  absl::Status Outcome(int64_t max_cycles) const;
  void Report();

  Context& context_;
  Gmem gmem_;
  Barrier barrier_;
  std::vector<std::unique_ptr<Cluster>> clusters_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_CARD_H_
