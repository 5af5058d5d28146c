// Prints the worst share of a channel's peak that 2 to 64 streams get at any distance that is a power of two, for each
// preset and bank hash, and of whole cards, as Markdown; and draws the shares of 16 streams of reads over the distance.
//
//   bazel run //simulator/dram/validation:distances > docs/dram_streams.md
//   bazel run //simulator/dram/validation:distances -- svg > docs/dram_streams.svg

#include <iostream>
#include <string>
#include <vector>

#include "simulator/dram/testing.h"
#include "simulator/dram/validation/card_streams.h"
#include "simulator/dram/validation/distances.h"
#include "testing/machine.h"

namespace {

using polynao::simulator::NamedTiming;
using polynao::simulator::TestDram;

constexpr const char* kPresets[] = {"ddr4_3200", "lpddr5", "hbm2"};

int Draw() {
  const std::vector<NamedTiming> timings = {
      {"hash = 0", TestDram("ddr4_3200", {"hash=0"})},
      {"hash = 1", TestDram("ddr4_3200", {"hash=1"})},
      {"hash = 2", TestDram("ddr4_3200")},
  };
  std::cout << polynao::simulator::DistancesSvg(timings, 16);
  return 0;
}

}  // namespace

namespace {

void PrintCards() {
  using polynao::TestMachine;
  const std::vector<std::string> camping = {"gmem.interleave=16384", "gmem.channel_hash=0"};
  std::cout << R"(
## A stream for each core of whole cards

The share of all channels' peak if each core has one stream of 8 transfers of 64 KiB, at the worst and the best
distance of the streams' starts that is a power of two, from 512 KiB on. `card_streams_test` fails below 0.75. Blocks of
16 KiB on channels that take turns (the last row of each card) put all streams on one channel at a time.

)";
  std::vector<polynao::simulator::NamedMachine> machines;
  for (const char* name : {"mlu270", "mlu290", "mlu370"}) {
    machines.push_back({name, TestMachine(name)});
    machines.push_back({std::string(name) + ", 16 KiB in turn", TestMachine(name, camping)});
  }
  std::cout << polynao::simulator::CardSharesTable(machines);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "svg") return Draw();
  std::cout << R"(# Streams side by side through DRAM

## Through one channel

The share of the channel's peak that 2 to 64 streams get, which take turns of 512 bytes, at the worst distance of their
starts that is a power of two (and at which they do not overlap). "1 of 4 writes": every fourth stream writes.
`bazel run //simulator/dram/validation:distances` makes this page; `distances_test` fails below 0.75 with the presets'
`dram.hash` = 2, which folds all bits of an address above the column into its bank (simulator/dram/address_map.h). 1
folds the low bits of the row only, 0 none. The picture is of `ddr4_3200`.

![16 streams of reads by their distance](dram_streams.svg)
)";
  for (const char* preset : kPresets) {
    for (const char* hash : {"hash=2", "hash=1", "hash=0"}) {
      std::cout << "\n`" << preset << "`, `" << hash << "`\n\n"
                << polynao::simulator::WorstSharesTable(TestDram(preset, {hash}));
    }
  }
  PrintCards();
  return 0;
}
