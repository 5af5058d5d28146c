// GMEM channels of DRAM: closed forms of docs/timing.md, and a model that goes through every cycle and clock.
// POLYNAO_RANDOM_CASES=2000 runs more random cases, POLYNAO_SEED=7 others.

#include "simulator/dram_gmem.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/channel_map.h"
#include "simulator/clock.h"
#include "simulator/dram/bound.h"
#include "simulator/dram/clock_ratio.h"
#include "simulator/dram/naive_channel.h"
#include "simulator/dram/preset.h"
#include "simulator/dram/testing.h"
#include "simulator/isolated.h"
#include "simulator/testing.h"
#include "testing/fuzz.h"

namespace polynao::simulator {
namespace {

constexpr char kParams[] = ".tensor x i8 any inout";
const std::vector<std::string> kDdr4 = {"gmem.dram=ddr4_3200", "gmem.cache_reads=0",
                                        "dram.posted=1"};

isa::Machine Ddr4(std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(), kDdr4.begin(), kDdr4.end());
  return FlatMachine(overrides);
}
// A clock is a cycle, so that closed forms have no rounding.
isa::Machine OneToOne(std::vector<std::string> overrides = {}) {
  overrides.push_back("dram.clock_mhz=1000");
  overrides.push_back("gmem.channel_bytes_per_kilocycle=16000");
  return Ddr4(overrides);
}

absl::StatusOr<RunResult> TryRun(const isa::Machine& machine, const isa::Program& program,
                                 int64_t bytes = 1 << 20) {
  ir::Tensor x(ir::Type::kI8, {bytes});
  return RunProgram(machine, program, {Argument::Of(&x)});
}
RunResult RunOn(const isa::Machine& machine, const isa::Program& program) {
  const auto result = TryRun(machine, program);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

std::string Copy(bool store, int64_t count, int64_t offset = 0) {
  return absl::StrCat("  arg r10, 8\n  addi r10, r10, ", offset, "\n  li r11, ", count, "\n",
                      store ? "  memcpy.i8.gmem.nmem r10, r0, r11, r1, r11, r11\n"
                            : "  memcpy.i8.nmem.gmem r0, r10, r11, r1, r11, r11\n");
}
int64_t LoadCycles(const isa::Machine& machine, int64_t count, int64_t offset = 0) {
  return Busy(RunOn(machine, OnCore0(kParams, Copy(false, count, offset))), isa::Unit::kIoDma);
}
int64_t StoreCycles(const isa::Machine& machine, int64_t count, int64_t offset = 0) {
  const std::string fill = "  li r20, 4096\n  fill.i8 r0, r0, r20\n  sync\n";
  return Busy(RunOn(machine, OnCore0(kParams, fill + Copy(true, count, offset))),
              isa::Unit::kIoDma);
}

TEST(DramGmem, LoadOfOneBurst) {
  const isa::Machine m = OneToOne();
  const DramTiming t = DramOf(m).value();
  const int64_t data = t.trcd + t.cl + t.burst_clocks();
  EXPECT_EQ(LoadCycles(m, 64), 32 + 1 + data + 200 + 1 + 1);
  // Eight bursts of two bank groups.
  EXPECT_EQ(LoadCycles(m, 512), 32 + 1 + data + 7 * t.tccd_s + 200 + 4 + 8);
  // Two turns; the second burst's rows are open.
  EXPECT_EQ(LoadCycles(m, 1024), 32 + 1 + data + 15 * t.tccd_s + 200 + 4 + 8);
}

TEST(DramGmem, StoreIsCompleteWhenTheControllerHasItOrWhenItIsWritten) {
  const isa::Machine posted = OneToOne();
  const DramTiming t = DramOf(posted).value();
  const int64_t ways = 32 + 8 + 4 + 200, data = t.cwl + t.burst_clocks();
  EXPECT_EQ(StoreCycles(posted, 512), ways + data);
  EXPECT_EQ(StoreCycles(OneToOne({"dram.posted=0"}), 512), ways + t.trcd + 7 * t.tccd_s + data);
}

TEST(DramGmem, StoreOfPartOfAGranuleReadsItFirst) {
  const isa::Machine m = OneToOne();
  const DramTiming t = DramOf(m).value();
  const int64_t read = t.trcd + t.cl + t.burst_clocks(), written = t.cwl + t.burst_clocks();
  EXPECT_EQ(StoreCycles(m, 2), 32 + 1 + 1 + 200 + read + written);
  // Two granules, both in part: one read of both, in two bank groups.
  EXPECT_EQ(StoreCycles(m, 64, 32), 32 + 1 + 1 + 200 + read + t.trrd_s + written);
  // First and last of three: two reads of one row.
  EXPECT_EQ(StoreCycles(m, 128, 32), 32 + 2 + 1 + 200 + read + t.tccd_l + written);
  const RunResult result = RunOn(
      m, OnCore0(kParams, "  li r20, 4096\n  fill.i8 r0, r0, r20\n  sync\n" + Copy(true, 128, 32)));
  ASSERT_EQ(result.dram.size(), 4u);
  EXPECT_EQ(result.dram[0].reads, 2);
  EXPECT_EQ(PortOf(result, "gmem.channel0").moved, 5 * 64);
}

TEST(DramGmem, ReportsCommands) {
  const RunResult result = RunOn(Ddr4(), OnCore0(kParams, Copy(false, 65536)));
  int64_t reads = 0, hits = 0;
  for (const auto& [name, value] : result.Rows()) {
    if (name == "dram.reads") reads = value;
    if (name == "dram.hits") hits = value;
  }
  EXPECT_EQ(reads, 1024);
  EXPECT_EQ(hits, 1024 - 4 * 2);
  EXPECT_THAT(RunOn(FlatMachine(), OnCore0(kParams, Copy(false, 64))).dram, testing::IsEmpty());
}

TEST(DramGmem, AStreamTakesHardlyMoreThanTheBound) {
  const isa::Machine m = Ddr4();
  const int64_t n = 4 << 20;
  ir::Tensor x(ir::Type::kF16, {n}), y(ir::Type::kF16, {n}), out(ir::Type::kF16, {n});
  const auto result =
      RunProgram(m, StreamingAdd(16384),
                 {Argument::Of(&x), Argument::Of(&y), Argument::Of(&out), Argument::Scalar(n)});
  ASSERT_TRUE(result.ok()) << result.status();
  const int64_t bound =
      DramBoundCycles(DramOf(m).value(), m.Get("card.clock_mhz"), 4, 2 * 2 * n, 2 * n);
  EXPECT_GE(result->cycles, bound);
  EXPECT_LE(result->cycles, bound * 13 / 10);
}

TEST(DramGmem, EachParameterChangesSomething) {
  // Two ranks, so that these have something to change; rows and banks in one channel, reads and writes. (The number of
  // rows changes nothing as long as they suffice.)
  const std::vector<std::string> base = {"dram.ranks=2", "dram.map=row rank bank column bank_group",
                                         "gmem.channels=1", "gmem.mib=1024", "dram.trtp=60"};
  const int64_t n = 1 << 18;
  const auto observe = [&](const std::string& override) {
    std::vector<std::string> overrides = base;
    if (!override.empty()) overrides.push_back(override);
    const isa::Machine machine = Ddr4(overrides);
    ir::Tensor x(ir::Type::kF16, {n}), y(ir::Type::kF16, {n}), out(ir::Type::kF16, {n});
    const auto result =
        RunProgram(machine, StreamingAdd(4096),
                   {Argument::Of(&x), Argument::Of(&y), Argument::Of(&out), Argument::Scalar(n)});
    EXPECT_TRUE(result.ok()) << override << ": " << result.status();
    std::string seen;
    if (result.ok()) {
      for (const auto& [name, value] : result->Rows()) absl::StrAppend(&seen, value, " ");
    }
    return seen;
  };
  const std::string usual = observe("");
  for (const char* override : {"dram.ranks=1",        "dram.bank_groups=2",
                               "dram.banks=2",        "dram.row_bytes=1024",
                               "dram.burst_length=4", "dram.cl=30",
                               "dram.cwl=25",         "dram.trcd=30",
                               "dram.trp=40",         "dram.tras=300",
                               "dram.trc=300",        "dram.tccd_s=7",
                               "dram.tccd_l=20",      "dram.trrd_s=8",
                               "dram.trrd_l=40",      "dram.tfaw=200",
                               "dram.twr=200",        "dram.twtr_s=12",
                               "dram.twtr_l=60",      "dram.trtp=200",
                               "dram.turnaround=20",  "dram.rank_switch=8",
                               "dram.trefi=9000",     "dram.trfc=800",
                               "dram.read_queue=8",   "dram.write_queue=60",
                               "dram.write_high=40",  "dram.write_low=20",
                               "dram.starvation=1",   "dram.posted=0",
                               "dram.keep_rows=1",    "dram.hash=0",
                               "dram.hash=1",         "dram.map=row rank column bank bank_group"}) {
    EXPECT_NE(observe(override), usual) << override;
  }
}

TEST(DramGmem, ErrorsOfTheTimingComeBeforeTheRun) {
  const auto expect_error = [](const std::string& override, const std::string& message) {
    const auto result = TryRun(Ddr4({override}), OnCore0(kParams, Copy(false, 64)));
    ASSERT_FALSE(result.ok()) << override;
    EXPECT_THAT(std::string(result.status().message()), testing::HasSubstr(message));
  };
  expect_error("dram.tccd_s=3", "machine mlu270: dram.tccd_s (3) must be at least");
  expect_error("dram.map=row", "machine mlu270: dram.map \"row\": bank has 2 bits");
}

// A burst that reaches the channel.
struct Arrival {
  int requester;
  int64_t address, bytes, time;
  bool is_write;
};

// Collects when each burst is complete.
class Sink : public BurstOwner {
 public:
  explicit Sink(size_t count) : bursts(count), left(count, -1) {
    for (Burst& burst : bursts) burst.owner = this;
  }
  void Advance(Burst& burst, int64_t time) override {
    EXPECT_GT(time, Now());
    left[static_cast<size_t>(&burst - bursts.data())] = time;
  }
  std::vector<Burst> bursts;
  std::vector<int64_t> left;
};

std::vector<int64_t> Serve(const isa::Machine& machine, const std::vector<Arrival>& arrivals,
                           int requesters) {
  const auto text = RunIsolated([&]() -> absl::StatusOr<std::string> {
    const isa::ChannelMap map(machine);
    DramGmemChannel channel("channel", machine, DramOf(machine).value(), map, requesters);
    Sink sink(arrivals.size());
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    for (size_t i = 0; i < arrivals.size(); ++i) {
      const Arrival& arrival = arrivals[i];
      sink.bursts[i].address = arrival.address;
      sink.bursts[i].payload = arrival.bytes;
      sink.bursts[i].is_write = arrival.is_write;
      channel.Push(arrival.requester, sink.bursts[i], arrival.bytes, arrival.time);
    }
    sc_core::sc_start();
    std::string result;
    for (int64_t time : sink.left) absl::StrAppend(&result, time, " ");
    return result;
  });
  EXPECT_TRUE(text.ok()) << text.status();
  std::vector<int64_t> times;
  std::istringstream stream(text.value_or(""));
  for (int64_t time; stream >> time;) times.push_back(time);
  return times;
}

// The same cycle by cycle, with a DRAM that goes clock by clock.
std::vector<int64_t> ServeClocked(const isa::Machine& machine, const std::vector<Arrival>& arrivals,
                                  int requesters) {
  NaiveChannel dram(DramOf(machine).value());
  const int64_t cycle_mhz = machine.Get("card.clock_mhz"),
                clock_mhz = machine.Get("dram.clock_mhz");
  const int64_t interleave = machine.Get("gmem.interleave"),
                channels = machine.Get("gmem.channels");
  const int64_t granule = machine.Get("gmem.granule");
  std::vector<std::deque<size_t>> queues(static_cast<size_t>(requesters));
  for (size_t i = 0; i < arrivals.size(); ++i) queues[arrivals[i].requester].push_back(i);
  std::vector<int64_t> left(arrivals.size(), -1);
  std::vector<int> reads_left(arrivals.size(), 0);
  std::deque<std::pair<int64_t, size_t>> merged;  // cycle, burst
  size_t seen = 0, done = 0;
  int next = 0;
  for (int64_t cycle = 0; done < arrivals.size(); ++cycle) {
    const int64_t clock = cycle * clock_mhz / cycle_mhz;  // the last one that has begun
    const int64_t seen_from = (cycle * clock_mhz + cycle_mhz - 1) / cycle_mhz;
    const auto push = [&](size_t burst, int64_t begin, int64_t end, bool is_write) {
      const int64_t first = begin / granule * granule;
      dram.Push({.id = static_cast<int64_t>(burst),
                 .address = first / (interleave * channels) * interleave + first % interleave,
                 .bytes = (end + granule - 1) / granule * granule - first,
                 .is_write = is_write,
                 .clock = seen_from});
    };
    dram.Run(clock);
    const bool is_free = dram.EnterEarly(clock);
    for (; seen < dram.completions().size(); ++seen) {
      const auto& [id, end] = dram.completions()[seen];
      const size_t burst = static_cast<size_t>(id);
      const int64_t at = (end * cycle_mhz + clock_mhz - 1) / clock_mhz;
      if (reads_left[burst] == 0) {
        left[burst] = at;
        ++done;
      } else if (--reads_left[burst] == 0) {
        merged.push_back({at, burst});
      }
    }
    if (!is_free) continue;
    if (!merged.empty() && merged.front().first <= cycle) {
      const size_t burst = merged.front().second;
      merged.pop_front();
      const Arrival& a = arrivals[burst];
      push(burst, a.address, a.address + a.bytes, true);
      continue;
    }
    for (int i = 0; i < requesters; ++i) {
      std::deque<size_t>& queue = queues[(next + i) % requesters];
      if (queue.empty() || arrivals[queue.front()].time > cycle) continue;
      const size_t burst = queue.front();
      const Arrival& a = arrivals[burst];
      queue.pop_front();
      next = (next + i + 1) % requesters;
      const int64_t end = a.address + a.bytes;
      const int64_t first = a.address / granule * granule;
      const int64_t last = (end + granule - 1) / granule * granule;
      const bool cuts_first = a.is_write && a.address != first,
                 cuts_last = a.is_write && end != last;
      if (!cuts_first && !cuts_last) {
        push(burst, a.address, end, a.is_write);
      } else if (last - first == granule ||
                 (cuts_first && cuts_last && last - first == 2 * granule)) {
        reads_left[burst] = 1;
        push(burst, first, last, false);
      } else {
        reads_left[burst] = cuts_first + cuts_last;
        if (cuts_first) push(burst, first, first + granule, false);
        if (cuts_last) push(burst, last - granule, last, false);
      }
      break;
    }
  }
  return left;
}

TEST(DramGmem, AgreesWithAClockedModelOnRandomTraffic) {
  const uint64_t seed = FuzzSeed();
  for (int64_t i = 0; i < FuzzCases(150); ++i) {
    std::mt19937_64 random(seed * 3'000'017 + static_cast<uint64_t>(i));
    const auto between = [&](int64_t least, int64_t most) {
      return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
    };
    isa::Machine machine = Ddr4();
    const DramTiming timing = RandomDram(random);
    for (const DramField& field : DramFields()) {
      machine.Set(absl::StrCat("dram.", field.name), timing.*field.field);
    }
    machine.SetText("dram.map", timing.map);
    machine.Set("dram.clock_mhz", between(300, 3000));
    machine.Set("card.clock_mhz", between(0, 2) ? 1000 : between(100, 20'000));
    machine.Set("gmem.granule", 8 << between(0, 4));
    machine.Set("gmem.channels", between(1, 3));
    const int64_t interleave = 512 << between(0, 3);
    machine.Set("gmem.interleave", interleave);
    const int requesters = static_cast<int>(between(1, 5));
    const int64_t spread = between(1, 300), span = between(1, 20);
    const int64_t writes = between(0, 2) * between(0, 50);
    std::vector<Arrival> arrivals;
    std::vector<int64_t> last(static_cast<size_t>(requesters), 0);
    for (int64_t n = between(1, 150); n > 0; --n) {
      const int requester = static_cast<int>(between(0, requesters - 1));
      last[requester] += between(arrivals.size() < 10 ? 1 : 0, spread);
      // In one burst of 512 bytes, anywhere or all of it.
      const int64_t offset = between(0, 1) ? 0 : between(0, 511);
      arrivals.push_back(
          {requester,
           between(0, span) * interleave + between(0, interleave / 512 - 1) * 512 + offset,
           between(0, 1) ? 512 - offset : between(1, 512 - offset),
           std::max<int64_t>(1, last[requester]), between(0, 99) < writes});
    }
    SCOPED_TRACE(testing::Message()
                 << "POLYNAO_SEED=" << seed << ", case " << i << ": " << DescribeDram(timing));
    ASSERT_EQ(Serve(machine, arrivals, requesters), ServeClocked(machine, arrivals, requesters));
  }
}

}  // namespace
}  // namespace polynao::simulator
