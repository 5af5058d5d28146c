// Our clocks against those of two public simulators, on streams that are made anew.
#include "simulator/dram/validation/public_simulators.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/dram/preset.h"

namespace polynao::simulator {
namespace {

// With the watermarks of the recorded runs, and with the preset's own.
std::vector<std::vector<std::string>> Watermarks() {
  const DramTiming preset = DramPreset("ddr4_3200").value();
  std::vector<std::string> own;
  for (const auto& [name, value] : {std::pair{"write_queue", preset.write_queue},
                                    {"write_high", preset.write_high},
                                    {"write_low", preset.write_low}}) {
    own.push_back(std::string(name) + "=" + std::to_string(value));
  }
  return {{}, own};
}

TEST(PublicSimulators, NoStreamIsSlowerThanBothByMoreThanThreePercent) {
  for (const bool hash : {false, true}) {
    for (const std::vector<std::string>& overrides : Watermarks()) {
      const auto streams = CompareWithPublicSimulators(hash, overrides);
      ASSERT_TRUE(streams.ok()) << streams.status();
      EXPECT_EQ(streams->size(), 26u);
      for (const ComparedStream& stream : *streams) {
        EXPECT_LE(stream.ratio(), 1.03)
            << stream.pattern << " " << stream.parameters << ", hash " << hash;
        // Nor may it be too fast to be true: at least what the rows cost the faster one, with better decisions.
        EXPECT_GE(stream.ours, 0.75 * std::min(stream.dramsim3, stream.ramulator))
            << stream.pattern << " " << stream.parameters << ", hash " << hash;
      }
    }
  }
}

}  // namespace
}  // namespace polynao::simulator
