// The checker objects to each kind of mistake, and to nothing that DramChannel does. POLYNAO_RANDOM_CASES=1000000
// checks as many bursts of each preset, POLYNAO_SEED=7 others.
#include "simulator/dram/trace_checker.h"

#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/dram/channel.h"
#include "simulator/dram/testing.h"
#include "testing/fuzz.h"

namespace polynao::simulator {
namespace {

using Kind = DramCommand::Kind;

// Two ranks of two groups of two banks: banks 0, 1 | 2, 3 of rank 0, 4 to 7 of rank 1. No number hides another:
// trc is more than tras + trp, and so on. No refresh, unless a test says so.
DramTiming Timing() {
  return TestDram("ddr4_3200", {"ranks=2", "bank_groups=2", "banks=2",
                                "map=row rank bank column bank_group", "trc=90", "trefi=0"});
}

std::set<std::string> Rules(const DramTiming& timing, const std::vector<DramCommand>& trace,
                            int64_t end) {
  std::set<std::string> rules;
  for (const DramViolation& violation : CheckDramTrace(timing, trace, end)) {
    rules.insert(violation.rule);
  }
  return rules;
}

DramCommand Act(int64_t clock, int32_t bank, int32_t row = 0) {
  return {clock, Kind::kActivate, bank, row, 0};
}
DramCommand Pre(int64_t clock, int32_t bank) { return {clock, Kind::kPrecharge, bank, -1, 0}; }
DramCommand PreAll(int64_t clock, int32_t bank) {
  return {clock, Kind::kPrechargeAll, bank, -1, 0};
}
DramCommand Ref(int64_t clock, int32_t bank) { return {clock, Kind::kRefresh, bank, -1, 0}; }
DramCommand Rd(int64_t clock, int32_t bank) { return {clock, Kind::kRead, bank, 0, 0}; }
DramCommand Wr(int64_t clock, int32_t bank) { return {clock, Kind::kWrite, bank, 0, 0}; }

// `trace` keeps the rules; with its last command one clock earlier it breaks `rule` and no other.
void ExpectExact(const std::string& rule, const DramTiming& timing,
                 std::vector<DramCommand> trace) {
  SCOPED_TRACE(rule);
  EXPECT_THAT(Rules(timing, trace, 0), testing::IsEmpty());
  --trace.back().clock;
  EXPECT_THAT(Rules(timing, trace, 0), testing::ElementsAre(rule));
}

TEST(TraceChecker, FindsACommandThatComesAClockTooEarly) {
  const DramTiming t = Timing();
  const int64_t write = t.cwl + t.burst_clocks(), read = t.cl + t.burst_clocks();
  ExpectExact("trcd", t, {Act(0, 0), Rd(t.trcd, 0)});
  ExpectExact("trcd", t, {Act(0, 0), Wr(t.trcd, 0)});
  ExpectExact("tras", t, {Act(0, 0), Pre(t.tras, 0)});
  ExpectExact("tras", t, {Act(0, 1), PreAll(t.tras, 0)});
  ExpectExact("trp", t, {Act(0, 0), Pre(80, 0), Act(80 + t.trp, 0)});
  ExpectExact("trp", t, {Act(0, 1), PreAll(80, 0), Act(80 + t.trp, 1)});
  ExpectExact("trc", t, {Act(0, 0), Pre(t.tras, 0), Act(t.trc, 0)});
  ExpectExact("trtp", t, {Act(0, 0), Rd(70, 0), Pre(70 + t.trtp, 0)});
  ExpectExact("twr", t, {Act(0, 0), Wr(70, 0), Pre(70 + write + t.twr, 0)});
  ExpectExact("twr", t, {Act(0, 0), Wr(70, 0), PreAll(70 + write + t.twr, 0)});
  ExpectExact("trrd_s", t, {Act(0, 0), Act(t.trrd_s, 2)});
  ExpectExact("trrd_l", t, {Act(0, 0), Act(t.trrd_l, 1)});
  DramTiming slow = t;
  slow.tccd_s = 6;  // more than a burst
  ExpectExact("tccd_s", slow, {Act(0, 0), Act(8, 2), Rd(70, 0), Rd(76, 2)});
  ExpectExact("tccd_l", t, {Act(0, 0), Act(8, 1), Rd(70, 0), Rd(70 + t.tccd_l, 1)});
  ExpectExact("tccd_l", t, {Act(0, 0), Wr(70, 0), Wr(70 + t.tccd_l, 0)});
  ExpectExact("twtr_s", t, {Act(0, 0), Act(8, 2), Wr(70, 0), Rd(70 + write + t.twtr_s, 2)});
  ExpectExact("twtr_l", t, {Act(0, 0), Wr(70, 0), Rd(70 + write + t.twtr_l, 0)});
  ExpectExact("turnaround", t, {Act(0, 0), Rd(70, 0), Wr(70 + read + t.turnaround - t.cwl, 0)});
  ExpectExact("rank_switch", t,
              {Act(0, 0), Act(8, 4), Rd(70, 0), Rd(70 + t.burst_clocks() + t.rank_switch, 4)});
  DramTiming far = t;
  far.rank_switch = 9;
  ExpectExact("rank_switch", far,
              {Act(0, 0), Act(8, 4), Wr(70, 0), Rd(70 + write + far.rank_switch - t.cl, 4)});
}

TEST(TraceChecker, FindsAFifthActivateInTheWindow) {
  DramTiming t = Timing();
  t.trrd_s = t.trrd_l = 5;
  std::vector<DramCommand> trace;
  for (int32_t i = 0; i < 4; ++i) trace.push_back(Act(5 * i, i));
  // The banks of rank 1 have a window of their own.
  trace.push_back(Act(16, 4));
  trace.push_back(Pre(80, 0));
  DramTiming wide = t;
  wide.tfaw = 120;
  trace.push_back(Act(120, 0));
  ExpectExact("tfaw", wide, trace);
}

TEST(TraceChecker, FindsOverlappingDataAndCommands) {
  const DramTiming t = Timing();
  // Without a rank switch, only the bus itself keeps two ranks apart.
  DramTiming no_switch = t;
  no_switch.rank_switch = 0;
  std::vector<DramCommand> trace = {Act(0, 0), Act(8, 4), Rd(70, 0), Rd(74, 4)};
  EXPECT_THAT(Rules(no_switch, trace, 0), testing::IsEmpty());
  --trace.back().clock;
  EXPECT_THAT(Rules(no_switch, trace, 0), testing::UnorderedElementsAre("data bus", "rank_switch"));
  EXPECT_THAT(Rules(t, {Act(0, 0), Act(0, 4)}, 0), testing::ElementsAre("bus"));
  EXPECT_THAT(Rules(t, {Act(9, 0), Act(8, 4)}, 0), testing::ElementsAre("bus"));
}

TEST(TraceChecker, FindsCommandsThatDoNotFitTheStateOfTheBank) {
  const DramTiming t = Timing();
  EXPECT_THAT(Rules(t, {Rd(0, 0)}, 0), testing::ElementsAre("state"));
  EXPECT_THAT(Rules(t, {Act(0, 0, 1), Rd(70, 0)}, 0), testing::ElementsAre("state"));
  EXPECT_THAT(Rules(t, {Act(0, 0), Act(500, 0)}, 0), testing::ElementsAre("state"));
  EXPECT_THAT(Rules(t, {Pre(0, 0)}, 0), testing::ElementsAre("state"));
  EXPECT_THAT(Rules(t, {PreAll(0, 0)}, 0), testing::ElementsAre("state"));
}

TEST(TraceChecker, FindsRefreshesThatAreEarlyLateMissingOrUnprepared) {
  DramTiming t = Timing();
  t.trefi = 10'000;
  // Rank 0 is due in 5000, 15000, ..., rank 1 in 10000, 20000, ...
  const std::vector<DramCommand> good = {Ref(5000, 0), Ref(10'000, 4), Ref(15'000, 0)};
  EXPECT_THAT(Rules(t, good, 16'000), testing::IsEmpty());
  EXPECT_THAT(Rules(t, good, 30'000), testing::ElementsAre("refresh"));
  std::vector<DramCommand> early = good, late = good;
  --early[1].clock;
  EXPECT_THAT(Rules(t, early, 16'000), testing::ElementsAre("refresh"));
  late[2].clock += 3000;
  EXPECT_THAT(Rules(t, late, 19'000), testing::ElementsAre("refresh"));
  EXPECT_THAT(Rules(t, {Act(0, 0), Ref(5000, 0)}, 6000), testing::ElementsAre("state"));
  const auto exact = [&](const std::string& rule, std::vector<DramCommand> trace) {
    SCOPED_TRACE(rule);
    EXPECT_THAT(Rules(t, trace, 6000), testing::IsEmpty());
    --trace.back().clock;
    EXPECT_THAT(Rules(t, trace, 6000), testing::ElementsAre(rule));
  };
  exact("trfc", {Ref(5000, 0), Act(5000 + t.trfc, 3)});
  exact("trp", {Act(0, 3), Pre(5000, 3), Ref(5000 + t.trp, 0)});
  exact("trc", {Act(5000, 3), Pre(5000 + t.tras, 3), Ref(5000 + t.trc, 0)});
}

// All commands of `count` random bursts or more.
std::vector<DramCommand> RandomTrace(const DramTiming& timing, int64_t count,
                                     std::mt19937_64& random, int64_t& end) {
  DramChannel channel(timing);
  std::vector<DramCommand> trace;
  channel.set_trace(&trace);
  while (channel.counters().reads + channel.counters().writes < count) {
    TrafficShape shape = RandomShape(timing, random);
    shape.span = timing.capacity();
    for (DramRequest& request : RandomTraffic(shape, 500, random)) {
      request.clock += channel.clock();
      channel.Push(request);
    }
    while (!channel.idle()) channel.Run(channel.clock() + 1000);
  }
  end = channel.clock();
  return trace;
}

TEST(TraceChecker, FindsNothingInWhatTheChannelDoes) {
  const int64_t bursts = FuzzCases(50'000);
  for (const char* preset : {"ddr4_3200", "lpddr5", "hbm2"}) {
    for (const char* ranks : {"1", "2"}) {
      const uint64_t seed = FuzzSeed();
      SCOPED_TRACE(testing::Message()
                   << preset << ", ranks " << ranks << ", POLYNAO_SEED=" << seed);
      std::mt19937_64 random(seed);
      const DramTiming timing =
          TestDram(preset, {StrCat("ranks=", ranks), "map=row rank bank column bank_group"});
      int64_t end = 0;
      const std::vector<DramCommand> trace = RandomTrace(timing, bursts, random, end);
      for (const DramViolation& violation : CheckDramTrace(timing, trace, end)) {
        ADD_FAILURE() << violation.what;
      }
    }
  }
}

// A channel that takes a parameter for less than it is breaks that rule, and the checker sees it.
TEST(TraceChecker, FindsAChannelThatIgnoresAClockOfAnyRule) {
  std::mt19937_64 random(FuzzSeed());
  DramTiming t = TestDram("ddr4_3200", {"ranks=2", "map=row rank bank column bank_group", "trc=80",
                                        "tccd_s=5", "trtp=40", "cwl=20", "rank_switch=3"});
  const std::pair<const char*, int64_t DramTiming::*> kRules[] = {
      {"trcd", &DramTiming::trcd},     {"trp", &DramTiming::trp},
      {"tras", &DramTiming::tras},     {"trc", &DramTiming::trc},
      {"tccd_s", &DramTiming::tccd_s}, {"tccd_l", &DramTiming::tccd_l},
      {"trrd_s", &DramTiming::trrd_s}, {"trrd_l", &DramTiming::trrd_l},
      {"tfaw", &DramTiming::tfaw},     {"twr", &DramTiming::twr},
      {"twtr_s", &DramTiming::twtr_s}, {"twtr_l", &DramTiming::twtr_l},
      {"trtp", &DramTiming::trtp},     {"turnaround", &DramTiming::turnaround},
      {"trfc", &DramTiming::trfc},     {"rank_switch", &DramTiming::rank_switch},
      {"refresh", &DramTiming::trefi}};
  for (const auto& [rule, field] : kRules) {
    DramTiming wrong = t;
    --(wrong.*field);
    int64_t end = 0;
    const std::vector<DramCommand> trace = RandomTrace(wrong, 20'000, random, end);
    std::set<std::string> found;
    for (const DramViolation& violation : CheckDramTrace(t, trace, end, 1'000'000)) {
      found.insert(violation.rule);
    }
    EXPECT_THAT(found, testing::ElementsAre(rule));
  }
}

}  // namespace
}  // namespace polynao::simulator
