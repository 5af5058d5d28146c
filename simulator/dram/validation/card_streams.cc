#include "simulator/dram/validation/card_streams.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/text.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

// A core's number n in the card is r4; of every MIX cores the last WRITERS write.
constexpr char kBody[] = R"(
  muli r4, r3, CORES
  add r4, r4, r2
  muli r5, r4, DISTANCE
  arg r6, 8
  add r6, r6, r5
  li r7, TRANSFER
  li r8, TRANSFERS
  li r9, MIX
  div r10, r4, r9
  mul r10, r10, r9
  sub r10, r4, r10
  li r11, READERS
  bge r10, r11, write
read:
  memcpy.i8.nmem.gmem.async r0, r6, r7, r1, r0, r0
  addi r6, r6, TRANSFER
  addi r8, r8, -1
  bne r8, r0, read
  sync
  beq r0, r0, done
write:
  memcpy.i8.gmem.nmem.async r6, r0, r7, r1, r0, r0
  addi r6, r6, TRANSFER
  addi r8, r8, -1
  bne r8, r0, write
  sync
done:
)";

int64_t Cores(const isa::Machine& machine) {
  return machine.Get("card.clusters") * machine.Get("cluster.cores");
}

}  // namespace

std::vector<int64_t> CardDistances(const isa::Machine& machine) {
  std::vector<int64_t> distances;
  for (int64_t distance = kCardTransferBytes * kCardTransfers;
       distance * Cores(machine) < machine.Get("gmem.mib") << 20; distance *= 2) {
    distances.push_back(distance);
  }
  return distances;
}

double CardShareOfPeak(const isa::Machine& machine, const StreamMix& mix, int64_t distance) {
  const int64_t period = std::max<int64_t>(mix.writes_of, 1);
  const std::string body =
      absl::StrReplaceAll(kBody, {{"CORES", StrCat(machine.Get("cluster.cores"))},
                                  {"DISTANCE", StrCat(distance)},
                                  {"TRANSFERS", StrCat(kCardTransfers)},
                                  {"TRANSFER", StrCat(kCardTransferBytes)},
                                  {"MIX", StrCat(period)},
                                  {"READERS", StrCat(mix.writes_of == 0 ? period : period - 1)}});
  const isa::Program program =
      OnCores(static_cast<int>(machine.Get("card.clusters")),
              static_cast<int>(machine.Get("cluster.cores")), ".tensor x i8 any inout", body);
  ir::Tensor x = ShapeOnly(ir::Type::kI8, {distance * Cores(machine)});
  const auto result = RunForTiming(isa::DianNao(), program, {Argument::Of(&x)},
                                   {.machine = &machine, .check_hazards = false});
  POLYNAO_CHECK(result.ok()) << result.status();
  const double bytes = static_cast<double>(Cores(machine) * kCardTransfers) *
                       static_cast<double>(kCardTransferBytes);
  const double rate = static_cast<double>(machine.Get("gmem.channels") *
                                          machine.Get("gmem.channel_bytes_per_kilocycle")) /
                      1000;
  return bytes / (static_cast<double>(result->end_cycle) * rate);
}

std::string CardSharesTable(const std::vector<NamedMachine>& machines) {
  std::string text = "| card | cores |";
  for (const StreamMix& mix : kStreamMixes) StrAppend(&text, " ", mix.name, " |");
  StrAppend(&text, "\n|---|---|");
  for (size_t i = 0; i < std::size(kStreamMixes); ++i) StrAppend(&text, "---|");
  for (const NamedMachine& m : machines) {
    StrAppend(&text, "\n| ", m.name, " | ", Cores(m.machine), " |");
    for (const StreamMix& mix : kStreamMixes) {
      double worst = 1, best = 0;
      for (const int64_t distance : CardDistances(m.machine)) {
        const double share = CardShareOfPeak(m.machine, mix, distance);
        worst = std::min(worst, share);
        best = std::max(best, share);
      }
      StrAppend(&text, absl::StrFormat(" %.2f to %.2f |", worst, best));
    }
  }
  return text + "\n";
}

}  // namespace polynao::simulator
