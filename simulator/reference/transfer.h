// Transfers: their segments, the bursts that a DMA engine cuts them into, and the ways of bursts through the card.
#ifndef SIMULATOR_REFERENCE_TRANSFER_H_
#define SIMULATOR_REFERENCE_TRANSFER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "isa/instruction_set.h"
#include "simulator/reference/burst.h"
#include "simulator/reference/core.h"
#include "simulator/reference/parameters.h"

namespace polynao::simulator::reference {

// Of each core: who asks for SMEM's port, and for a channel.
inline constexpr int64_t kSmemRequesters = 5;
inline constexpr int64_t kChannelRequesters = 3;

// The transfer of an instruction that starts in `cycle` in the IO-DMA or the Move-DMA.
Transfer MakeTransfer(const Parameters& parameters, const Issued& issued, Sender sender,
                      int64_t cycle);

// Returns true if two transfers of one engine cannot be in it at the same time: one writes where the other reads or
// writes, from the lowest to the highest byte; or they go in the same direction on different ways.
bool Hinders(const Issued& a, const Issued& b);

// The burst that the engine sends in this cycle, if it sends one: of the first transfer that has not sent all.
std::optional<Burst> Send(const Parameters& parameters, Core& core, Sender sender, int64_t cycle);

// One of an engine's bursts has completed. Whether its segment has, too.
bool Complete(Core& core, const Burst& burst);

// The burst of a scalar access to SMEM or GMEM, which sets out `delay` cycles before it reaches the first server.
Burst ScalarBurst(const Parameters& parameters, const Core& core, const isa::ByteRanges& access,
                  int64_t delay);

// The memories that a transfer reads and writes; none if it moves no byte.
struct Sides {
  const isa::ByteRanges* from = nullptr;
  const isa::ByteRanges* to = nullptr;
};
Sides SidesOf(const Issued& issued);

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_TRANSFER_H_
