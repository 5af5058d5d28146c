#include "simulator/reference/testing/random_dram.h"

#include <cstdint>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "simulator/dram/address_map.h"
#include "simulator/dram/preset.h"
#include "simulator/dram/testing.h"
#include "simulator/dram/timing.h"

namespace polynao::simulator::reference {
namespace {

constexpr int64_t kGmemMib = 2;  // enough for the programs' tensor

DramTiming Preset(const std::string& name) {
  const absl::StatusOr<DramTiming> preset = DramPreset(name);
  POLYNAO_CHECK(preset.ok()) << preset.status();
  return *preset;
}

// A preset whose controller, and sometimes more, has other numbers.
DramTiming ChangedPreset(Random& random, const std::string& name) {
  DramTiming t = Preset(name);
  if (random.Below(2) == 0) t.read_queue = random.From(1, 64);
  if (random.Below(2) == 0) {
    t.write_queue = random.From(1, 64);
    t.write_high = random.From(1, t.write_queue);
    t.write_low = random.From(0, t.write_high - 1);
  }
  if (random.Below(2) == 0) t.starvation = random.OneOf({0, 1, 2, 5, 20, 200});
  t.posted = random.From(0, 1);
  if (random.Below(2) == 0) t.hash = random.From(0, 2);
  if (random.Below(3) == 0) t.keep_rows = 1;
  if (random.Below(3) == 0) t.ranks = random.OneOf({1, 2, 4});
  if (random.Below(3) == 0) t.rank_switch = random.From(0, 8);
  if (random.Below(3) == 0) t.turnaround = random.From(0, 8);
  if (random.Below(4) == 0) t.trefi = 0;
  t.map = random.OneOf({"row rank bank column bank_group", "row column rank bank bank_group",
                        "rank bank_group bank row column", "row rank bank_group bank column",
                        "row bank column bank_group rank", "bank row rank column bank_group"});
  if (random.Below(2) == 0) t.map = absl::StrCat(t.map, " column:1");
  return t;
}

}  // namespace

std::vector<std::string> RandomDramOverrides(Random& random) {
  const std::string name = random.OneOf({"ddr4_3200", "lpddr5", "hbm2"});
  const DramTiming preset = Preset(name);
  DramTiming t = preset;
  if (random.Below(2) == 0) {
    std::mt19937_64 numbers(random.Below(uint64_t{1} << 62));
    t = RandomDram(numbers);
    while (t.capacity() < kGmemMib << 20) t.rows *= 2;
    t.clock_mhz = random.OneOf({preset.clock_mhz, 1000, random.From(300, 3000)});
  } else {
    t = ChangedPreset(random, name);
  }
  if (!AddressMap::Make(t, name).ok()) t.hash = 0;  // no permutation
  std::vector<std::string> overrides = {
      absl::StrCat("gmem.dram=", name), "gmem.cache_reads=0", absl::StrCat("gmem.mib=", kGmemMib),
      absl::StrCat("card.clock_mhz=", random.OneOf({1000, 800, 1600, random.From(200, 4000)}))};
  for (const DramField& field : DramFields()) {
    if (t.*field.field == preset.*field.field) continue;
    overrides.push_back(absl::StrCat("dram.", field.name, "=", t.*field.field));
  }
  if (t.map != preset.map) overrides.push_back(absl::StrCat("dram.map=", t.map));
  return overrides;
}

}  // namespace polynao::simulator::reference
