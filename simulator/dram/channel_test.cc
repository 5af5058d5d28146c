#include "simulator/dram/channel.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/dram/testing.h"

namespace polynao::simulator {
namespace {

// The completion of each request by number, all run to the end. Ids are set here.
std::vector<int64_t> Serve(DramChannel& channel, std::vector<DramRequest> requests) {
  std::vector<int64_t> ends(requests.size(), -1);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].id = static_cast<int64_t>(i);
    channel.Push(requests[i]);
  }
  while (!channel.idle()) channel.Run(channel.clock() + 1000);
  for (const DramCompletion& completion : channel.completions()) {
    ends[static_cast<size_t>(completion.id)] = completion.clock;
  }
  channel.completions().clear();
  return ends;
}
std::vector<int64_t> Serve(const DramTiming& timing, const std::vector<DramRequest>& requests) {
  DramChannel channel(timing);
  return Serve(channel, requests);
}

DramRequest Read(int64_t clock, int64_t address, int64_t bytes = 64) {
  return {.address = address, .bytes = bytes, .clock = clock};
}
DramRequest Write(int64_t clock, int64_t address, int64_t bytes = 64) {
  return {.address = address, .bytes = bytes, .is_write = true, .clock = clock};
}

const char* const kPresets[] = {"ddr4_3200", "lpddr5", "hbm2"};
// Row, bank group, bank and column in order: the next row of a bank is bank_count rows on.
const std::vector<std::string> kLinear = {"map=row bank_group bank column", "hash=0"};

TEST(DramChannel, UnloadedLatencyOfAClosedBankAnOpenRowAndAConflict) {
  for (const char* preset : kPresets) {
    SCOPED_TRACE(preset);
    const DramTiming t = TestDram(preset, kLinear);
    const int64_t data = t.cl + t.burst_clocks();
    const int64_t row = t.bank_count() * t.row_bytes;  // the next one of the same bank
    EXPECT_EQ(Serve(t, {Read(100, 0), Read(500, 128), Read(1000, row + 64), Read(1500, 0)}),
              (std::vector<int64_t>{100 + t.trcd + data, 500 + data, 1000 + t.trp + t.trcd + data,
                                    1500 + t.trp + t.trcd + data}));
  }
}

TEST(DramChannel, AConflictWaitsUntilTheRowMayBeClosed) {
  const DramTiming t = TestDram("ddr4_3200", kLinear);
  const int64_t row = t.bank_count() * t.row_bytes, data = t.cl + t.burst_clocks();
  // The second one comes while the first is served: its ACT waits for tras, trp and trc.
  EXPECT_EQ(Serve(t, {Read(0, 0), Read(1, row)})[1],
            std::max(t.tras + t.trp, t.trc) + t.trcd + data);
  // A write keeps its row longer: trcd, then its data, then twr. (Not posted, so that it is the write that counts.)
  DramTiming w = t;
  w.posted = 0;
  const std::vector<int64_t> ends = Serve(w, {Write(0, 0), Read(w.trcd + 1, row)});
  const int64_t written = w.trcd + w.cwl + w.burst_clocks();
  EXPECT_EQ(ends[0], written);
  EXPECT_EQ(ends[1], written + w.twr + w.trp + w.trcd + data);
}

TEST(DramChannel, APostedWriteIsCompleteWhenTheQueueHasIt) {
  const DramTiming t = TestDram("ddr4_3200");
  EXPECT_EQ(Serve(t, {Write(7, 0)})[0], 7 + t.cwl + t.burst_clocks());
  // A queue of 4 that is full passes one on with each write.
  const DramTiming small = TestDram("ddr4_3200", {"write_queue=4", "write_high=4", "write_low=0"});
  const std::vector<int64_t> ends = Serve(small, {Write(0, 0, 256), Write(0, 256)});
  EXPECT_EQ(ends[0], small.cwl + small.burst_clocks());
  EXPECT_EQ(ends[1], small.trcd + 1 + small.cwl + small.burst_clocks());
}

TEST(DramChannel, ReadsOfQueuedWritesComeFromTheQueue) {
  const DramTiming t = TestDram("ddr4_3200");
  DramChannel channel(t);
  EXPECT_EQ(Serve(channel, {Write(0, 640), Read(3, 640)})[1], 3 + t.cl + t.burst_clocks());
  EXPECT_EQ(channel.counters().forwarded, 1);
  EXPECT_EQ(channel.counters().reads, 0);
}

TEST(DramChannel, WritesOfAQueuedBurstAreMerged) {
  const DramTiming posted = TestDram("ddr4_3200");
  DramChannel channel(posted);
  EXPECT_EQ(Serve(channel, {Write(0, 640), Write(3, 640)})[1],
            3 + posted.cwl + posted.burst_clocks());
  EXPECT_EQ(channel.counters().merged, 1);
  EXPECT_EQ(channel.counters().writes, 1);
  // Not posted: both are complete with the one WR.
  DramChannel written(TestDram("ddr4_3200", {"posted=0"}));
  const std::vector<int64_t> ends = Serve(written, {Write(0, 640), Write(3, 640, 128)});
  EXPECT_EQ(ends[0], posted.trcd + posted.cwl + posted.burst_clocks());
  EXPECT_EQ(written.counters().merged, 1);
  EXPECT_EQ(written.counters().writes, 2);
  // Merging needs no room.
  DramChannel full(TestDram("ddr4_3200", {"write_queue=1", "write_high=1", "write_low=0"}));
  Serve(full, {Write(0, 640), Write(0, 640), Write(0, 640)});
  EXPECT_EQ(full.counters().writes, 1);
}

TEST(DramChannel, AWriteDoesNotOvertakeAnOlderReadOfItsBurst) {
  // A queue of one: writes have the direction as soon as one waits. Of another row of the bank, so that the read takes
  // long.
  const DramTiming t = TestDram("ddr4_3200", {"map=row bank_group bank column", "hash=0",
                                              "write_queue=1", "write_high=1", "write_low=0"});
  DramChannel channel(t);
  std::vector<DramCommand> trace;
  channel.set_trace(&trace);
  Serve(channel, {Read(0, 0x20000), Read(0, 0), Write(0, 0), Write(0, 64)});
  std::string columns;
  for (const DramCommand& command : trace) {
    if (command.kind == DramCommand::Kind::kRead) columns += "r" + std::to_string(command.row);
    if (command.kind == DramCommand::Kind::kWrite) columns += "w" + std::to_string(command.row);
  }
  EXPECT_EQ(columns, "r1r0w0w0");
}

TEST(DramChannel, TheOldestBurstOfABankMayCloseARowThatOthersWant) {
  // The row is open when all three come; the oldest wants another one.
  const auto ends = [](const char* keep_rows) {
    const DramTiming t =
        TestDram("ddr4_3200", {"map=row bank_group bank column", "hash=0", keep_rows});
    return Serve(t, {Read(0, 0), Read(500, 0x20000), Read(520, 64), Read(520, 128)});
  };
  const std::vector<int64_t> open = ends("keep_rows=0"), kept = ends("keep_rows=1");
  EXPECT_LT(open[1], open[2]);
  // The PRE leaves before the others come, whatever the rule.
  EXPECT_EQ(open, kept);
  const auto together = [](const char* keep_rows) {
    const DramTiming t =
        TestDram("ddr4_3200", {"map=row bank_group bank column", "hash=0", keep_rows});
    return Serve(t, {Read(0, 0), Read(500, 0x20000), Read(500, 64), Read(500, 128)});
  };
  EXPECT_LT(together("keep_rows=0")[1], together("keep_rows=0")[2]);
  EXPECT_GT(together("keep_rows=1")[1], together("keep_rows=1")[3]);
}

TEST(DramChannel, OpenedBurstsAreFinishedBeforeTheDirectionChanges) {
  // A read opens its row; two writes to another row of the bank take the direction before it is read.
  const DramTiming t = TestDram("ddr4_3200", {"map=row bank_group bank column", "hash=0",
                                              "write_queue=2", "write_high=2", "write_low=0"});
  DramChannel channel(t);
  Serve(channel, {Read(0, 0), Write(2, 0x20000), Write(2, 0x20040)});
  EXPECT_EQ(channel.counters().activates, 2);
  EXPECT_EQ(channel.counters().precharges, 1);
}

TEST(DramChannel, BurstsOfARequestFollowEachOtherInTheOpenRow) {
  for (const char* preset : kPresets) {
    SCOPED_TRACE(preset);
    // One bank: tccd_l apart.
    const DramTiming t = TestDram(preset, kLinear);
    const int64_t first = t.trcd + t.cl + t.burst_clocks();
    EXPECT_EQ(Serve(t, {Read(0, 0, 512)})[0], first + 7 * t.tccd_l);
    // The unaligned one touches a ninth burst.
    EXPECT_EQ(Serve(t, {Read(0, 63, 512)})[0], first + 8 * t.tccd_l);
  }
}

TEST(DramChannel, ARowHitOvertakesUntilTheOldestStarves) {
  // Reads of row 0 stream; one of row 1 of the same bank is overtaken by at most `starvation` bursts.
  for (const int64_t starvation : {1, 5, 20}) {
    const DramTiming t = TestDram("ddr4_3200", {"map=row bank_group bank column", "hash=0",
                                                "starvation=" + std::to_string(starvation)});
    std::vector<DramRequest> requests = {Read(0, 0), Read(0, 0x20000)};
    for (int i = 1; i < 25; ++i) requests.push_back(Read(0, 64 * i));
    const std::vector<int64_t> ends = Serve(t, requests);
    int before = 0;
    for (size_t i = 2; i < ends.size(); ++i) before += ends[i] < ends[1];
    EXPECT_EQ(before, starvation);
  }
}

// A store that waits for its write goes on after 4 `starvation` reads, though more come. A second write that comes
// meanwhile is written with the first, a third waits again.
TEST(DramChannel, ReadsPassAWriteThatIsWaitedForOnlySoLong) {
  for (const int64_t starvation : {0, 1, 5, 20}) {
    SCOPED_TRACE(starvation);
    const DramTiming t =
        TestDram("ddr4_3200", {"posted=0", "starvation=" + std::to_string(starvation)});
    std::vector<DramRequest> requests = {Read(0, 0), Write(1, 1 << 20), Write(2, 3 << 20)};
    for (int i = 0; i < 300; ++i) requests.push_back(Read(3 + i, 64 * (i + 1)));
    requests.push_back(Write(303, 5 << 20));
    for (int i = 0; i < 300; ++i) requests.push_back(Read(304 + i, 64 * (i + 301)));
    const std::vector<int64_t> ends = Serve(t, requests);
    const auto reads_between = [&](int64_t begin, int64_t end) {
      int64_t reads = 0;
      for (size_t i = 0; i < ends.size(); ++i) {
        if (!requests[i].is_write) reads += begin < ends[i] && ends[i] < end;
      }
      return reads;
    };
    const int64_t most = std::max<int64_t>(1, 4 * starvation);
    // Read 0 is sent before there is a write; rows are opened meanwhile, and those that are open are read first.
    EXPECT_NEAR(static_cast<double>(reads_between(0, ends[1])), static_cast<double>(most), 8);
    EXPECT_LT(reads_between(ends[1], ends[2]), 8);
    EXPECT_LT(ends[303], ends.back());
  }
}

TEST(DramChannel, RefreshesComeAtTheirTimeWhetherThereIsTrafficOrNot) {
  for (const char* preset : kPresets) {
    const DramTiming t = TestDram(preset);
    DramChannel channel(t);
    std::vector<DramCommand> trace;
    channel.set_trace(&trace);
    channel.Run(10 * t.trefi + 1);
    ASSERT_EQ(trace.size(), 10u);
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(trace[static_cast<size_t>(i)].clock, (i + 1) * t.trefi);
      EXPECT_EQ(trace[static_cast<size_t>(i)].kind, DramCommand::Kind::kRefresh);
    }
    // A read that comes with the next refresh waits for it.
    const int64_t due = 11 * t.trefi;
    EXPECT_EQ(Serve(channel, {Read(due, 0)})[0], due + t.trfc + t.trcd + t.cl + t.burst_clocks());
    // And one that comes when a row is open: PREA, REF, ACT.
    const int64_t next = 12 * t.trefi;
    EXPECT_EQ(Serve(channel, {Read(next, 0)})[0],
              next + t.trp + t.trfc + t.trcd + t.cl + t.burst_clocks());
  }
}

TEST(DramChannel, RanksAreRefreshedOneAfterAnother) {
  const DramTiming t = TestDram("ddr4_3200", {"ranks=2", "map=rank row bank column bank_group"});
  DramChannel channel(t);
  std::vector<DramCommand> trace;
  channel.set_trace(&trace);
  channel.Run(2 * t.trefi);
  ASSERT_EQ(trace.size(), 3u);
  EXPECT_EQ(trace[0].clock, t.trefi / 2);
  EXPECT_EQ(trace[0].bank, 0);
  EXPECT_EQ(trace[1].clock, t.trefi);
  EXPECT_EQ(trace[1].bank, 16);
}

TEST(DramChannel, CountsHitsMissesAndConflicts) {
  const DramTiming t = TestDram("ddr4_3200", kLinear);
  DramChannel channel(t);
  Serve(channel, {Read(0, 0, 256), Read(500, 0x20000), Write(1000, 0x20040), Read(2000, 8192)});
  const DramCounters& c = channel.counters();
  EXPECT_EQ(c.reads, 6);
  EXPECT_EQ(c.writes, 1);
  EXPECT_EQ(c.hits, 4);
  EXPECT_EQ(c.misses, 2);
  EXPECT_EQ(c.conflicts, 1);
  EXPECT_EQ(c.activates, 3);
  EXPECT_EQ(c.precharges, 1);
  EXPECT_EQ(c.drains, 1);
}

TEST(DramChannel, StopsWhenTheInboxIsEmpty) {
  const DramTiming t = TestDram("ddr4_3200", {"read_queue=2"});
  DramChannel channel(t);
  channel.Push(Read(5, 0, 256));
  channel.RunUntilEntered(4);
  EXPECT_EQ(channel.clock(), 4);
  EXPECT_FALSE(channel.inbox_empty());
  channel.RunUntilEntered(100'000);
  // Four bursts of four bank groups, two entries: the last one enters the clock after the second RD.
  EXPECT_EQ(channel.clock(), 5 + t.trcd + t.trrd_s + 1);
  EXPECT_TRUE(channel.inbox_empty());
  EXPECT_FALSE(channel.idle());
}

}  // namespace
}  // namespace polynao::simulator
