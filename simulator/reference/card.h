// The card as one clocked state: every cycle is a Step, and nothing happens outside of steps. It shares the decoded
// program (isa) and the machine's parameters with the event-driven simulator, and nothing else, so that each checks the
// other.
//
// It computes no values in memories. Scalar registers it must compute, since they hold addresses and counts; a register
// that was loaded from memory is unknown, and a program that needs its value for an address, a count or a branch is
// refused. It does not check bounds, hazards and definedness: the event-driven simulator does.
#ifndef SIMULATOR_REFERENCE_CARD_H_
#define SIMULATOR_REFERENCE_CARD_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"
#include "isa/program.h"
#include "simulator/reference/burst.h"
#include "simulator/reference/core.h"
#include "simulator/reference/dram_channel.h"
#include "simulator/reference/gmem_channel.h"
#include "simulator/reference/parameters.h"
#include "simulator/reference/report.h"
#include "simulator/reference/server.h"

namespace polynao::simulator::reference {

// The argument of a parameter that is no temporary: the bytes of a tensor, or the value of a scalar.
struct Argument {
  int64_t bytes = 0;
  int64_t value = 0;
};

// The parameter gmem.dram chooses the kind.
using Channel = std::variant<GmemChannel, DramChannel>;

struct Card {
  Card(const isa::InstructionSet& instructions, const isa::Machine& machine)
      : set(&instructions), parameters(machine) {}

  const isa::InstructionSet* set;
  std::vector<std::optional<isa::InstructionSet::Decoded>> code;  // none: no instruction
  std::vector<int64_t> cost_parameters;
  Parameters parameters;

  int64_t cycle = 0;
  std::vector<Core> cores;  // cluster by cluster, the memory core last in each
  std::vector<Channel> channels;
  std::vector<Server> links_down, links_up, smem;  // by cluster
  std::vector<Server> io_in, io_out, move;         // by core

  // Cores that have arrived at the barrier of a cluster, of the card.
  std::vector<int64_t> at_cluster_barrier;
  int64_t at_global_barrier = 0;

  int64_t last_gmem_write = -1;
  Report report;
};

// The card in cycle 0. Errors: parameters of @cost rows that the machine lacks; DRAM that no channel can
// have; arguments that do not fit the program.
absl::StatusOr<Card> MakeCard(const isa::InstructionSet& set, const isa::Program& program,
                              const std::vector<Argument>& arguments, const isa::Machine& machine);

// The burst sets out for its next stop in this cycle.
void SetOut(Card& card, const Burst& burst);

// The cycle `card.cycle`, in phases; the caller then advances it. What a phase does cannot be seen by an earlier one
// before the next cycle.
//
//  1. Services that end in this cycle end: their bursts travel to the next server, or have completed.
//  2. Units whose instruction is done complete it; queues start what is ready.
//  3. Cores issue, and open barriers, until none can go on in this cycle.
//  4. DMA engines send at most one burst each.
//  5. Free servers begin to serve a burst that has arrived. What they serve takes cycles from instructions that
//     compute, where
//     both use a memory with one port.
//
// Errors: what is wrong with the program, with core and pc.
absl::Status Step(Card& card);

// Returns true if in this cycle all cores have halted and all queues are empty.
bool IsDone(const Card& card);

// Steps until IsDone. Errors: those of Step; a deadlock; DeadlineExceeded after `max_cycles`.
absl::StatusOr<Report> Run(const isa::InstructionSet& set, const isa::Program& program,
                           const std::vector<Argument>& arguments, const isa::Machine& machine,
                           int64_t max_cycles = int64_t{1} << 40);

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_CARD_H_
