#include "simulator/server.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/clock.h"
#include "simulator/isolated.h"

namespace polynao::simulator {
namespace {

// A burst that arrives at a cycle from a requester; what happens to it.
struct Arrival {
  int requester;
  int64_t bytes;
  int64_t time;
};

// Collects when each burst leaves.
class Sink : public BurstOwner {
 public:
  explicit Sink(size_t count) : bursts(count), left(count, -1) {
    for (Burst& burst : bursts) burst.owner = this;
  }
  void Advance(Burst& burst, int64_t time) override {
    left[static_cast<size_t>(&burst - bursts.data())] = time;
  }
  std::vector<Burst> bursts;
  std::vector<int64_t> left;
};

// Runs arrivals (of each requester in order of time) through a Server: when each leaves, then the
// server's busy cycles.
std::vector<int64_t> Serve(const std::vector<Arrival>& arrivals, int requesters, Rate rate) {
  const auto text = RunIsolated([&]() -> absl::StatusOr<std::string> {
    Server server("server", requesters, rate);
    Sink sink(arrivals.size());
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    for (size_t i = 0; i < arrivals.size(); ++i) {
      server.Push(arrivals[i].requester, sink.bursts[i], arrivals[i].bytes, arrivals[i].time);
    }
    sc_core::sc_start();
    std::string result;
    for (int64_t time : sink.left) absl::StrAppend(&result, time, " ");
    absl::StrAppend(&result, server.use().busy);
    return result;
  });
  EXPECT_TRUE(text.ok()) << text.status();
  std::vector<int64_t> numbers;
  std::istringstream stream(text.value_or(""));
  for (int64_t number; stream >> number;) numbers.push_back(number);
  return numbers;
}

// The same as a loop over clock cycles, as hardware would do it: slow, but easy to check by reading.
std::vector<int64_t> ServeClocked(const std::vector<Arrival>& arrivals, int requesters, Rate rate) {
  std::vector<int64_t> left(arrivals.size(), -1);
  std::vector<bool> taken(arrivals.size(), false);
  int64_t busy = 0;
  int next = 0;
  size_t remaining = arrivals.size();
  int serving = -1;
  int64_t credit = 0;  // of the burst in service, in bytes * 1000
  for (int64_t cycle = 0; remaining > 0 || serving >= 0; ++cycle) {
    if (serving >= 0 && credit >= arrivals[serving].bytes * kKilocycle) {
      left[serving] = cycle;
      serving = -1;
    }
    for (int i = 0; serving < 0 && i < requesters; ++i) {
      const int requester = (next + i) % requesters;
      for (size_t a = 0; a < arrivals.size(); ++a) {
        if (arrivals[a].requester != requester || taken[a]) continue;
        if (arrivals[a].time > cycle) break;  // its first one has not arrived
        serving = static_cast<int>(a);
        taken[a] = true;
        --remaining;
        credit = 0;
        next = (requester + 1) % requesters;
        break;
      }
    }
    if (serving >= 0) {
      ++busy;
      credit += rate;
    }
  }
  left.push_back(busy);
  return left;
}

TEST(ServiceCycles, RoundsUpToWholeCycles) {
  EXPECT_EQ(ServiceCycles(512, 25'600), 20);
  EXPECT_EQ(ServiceCycles(513, 25'600), 21);
  EXPECT_EQ(ServiceCycles(64, 25'600), 3);
  EXPECT_EQ(ServiceCycles(0, 25'600), 1);
}

TEST(Server, OneBurstTakesItsServiceTime) {
  EXPECT_EQ(Serve({{0, 512, 7}}, 1, 25'600), (std::vector<int64_t>{27, 20}));
}

TEST(Server, RequestersTakeTurns) {
  // All arrive in cycle 1; each takes 4 cycles. Requester 0 has two.
  EXPECT_EQ(Serve({{0, 64, 1}, {0, 64, 1}, {1, 64, 1}, {2, 64, 1}}, 3, 16'000),
            (std::vector<int64_t>{5, 17, 9, 13, 16}));
}

TEST(Server, NeverWaitsWhileABurstIsThere) {
  // Requester 1 is next in turn, but only requester 0 has something.
  EXPECT_EQ(Serve({{0, 16, 1}, {0, 16, 1}, {0, 16, 1}, {1, 16, 3}}, 2, 16'000),
            (std::vector<int64_t>{2, 3, 5, 4, 4}));
}

TEST(Server, ShareIsFairAndTheRateIsKept) {
  for (int requesters : {2, 3, 16}) {
    std::vector<Arrival> arrivals;
    for (int i = 0; i < 50; ++i) {
      for (int r = 0; r < requesters; ++r) arrivals.push_back({r, 512, 1});
    }
    const std::vector<int64_t> left = Serve(arrivals, requesters, 25'600);
    ASSERT_EQ(left.size(), arrivals.size() + 1);
    // Round-robin: each round serves every requester once.
    for (size_t i = 0; i < arrivals.size(); ++i) {
      EXPECT_EQ(left[i], 1 + 20 * static_cast<int64_t>(i + 1));
    }
  }
}

// Bursts of one payload byte leave at once, a cycle later.
class Diverting : public Server {
 public:
  using Server::Server;

 protected:
  bool Divert(Burst& burst, int64_t) override {
    if (burst.payload != 1) return false;
    burst.owner->Advance(burst, Now() + 1);
    return true;
  }
};

TEST(Server, BurstsThatGoAnotherWayTakeTheirTurnAndNoTime) {
  const auto text = RunIsolated([]() -> absl::StatusOr<std::string> {
    Diverting server("server", 3, 16'000);
    // Each takes 4 cycles except three: the first of requester 0 and both of requester 1.
    Sink sink(6);
    for (size_t i : {0, 2, 3}) sink.bursts[i].payload = 1;
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    const int requester[] = {0, 0, 1, 1, 2, 2};
    const int64_t time[] = {1, 1, 1, 3, 1, 20};
    for (size_t i = 0; i < 6; ++i) server.Push(requester[i], sink.bursts[i], 64, time[i]);
    sc_core::sc_start();
    std::string result;
    for (int64_t left : sink.left) absl::StrAppend(&result, left, " ");
    return absl::StrCat(result, server.use().busy, " ", server.use().bursts);
  });
  // Cycle 1: 0 and 1 leave, 2 is served until 5; then 0's second one until 9. In between, 1's second
  // one waits for its turn.
  EXPECT_EQ(text.value_or(text.status().ToString()), "2 9 2 10 5 24 12 3");
}

TEST(Server, AgreesWithAClockedModelOnRandomTraffic) {
  const uint32_t seed = 4242;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    const int requesters = 1 + static_cast<int>(random() % 6);
    const Rate rate = 1'000 + static_cast<Rate>(random() % 60'000);
    const int spread = 1 + static_cast<int>(random() % 40);
    std::vector<Arrival> arrivals;
    std::vector<int64_t> last(static_cast<size_t>(requesters), 1);
    for (int i = 0; i < 80; ++i) {
      const int requester = static_cast<int>(random() % requesters);
      last[requester] += static_cast<int64_t>(random() % spread);
      arrivals.push_back({requester, 1 + static_cast<int64_t>(random() % 300), last[requester]});
    }
    ASSERT_EQ(Serve(arrivals, requesters, rate), ServeClocked(arrivals, requesters, rate))
        << "round " << round;
  }
}

TEST(Port, PassesInOrder) {
  Port port(64 * kKilocycle);
  Burst burst;
  burst.payload = 512;
  EXPECT_EQ(port.Pass(burst, 512, 10), 18);
  EXPECT_EQ(port.Pass(burst, 512, 12), 26);
  EXPECT_EQ(port.Pass(burst, 512, 100), 108);
  EXPECT_EQ(port.use().busy, 24);
  EXPECT_EQ(port.use().payload, 3 * 512);
}

TEST(Isolated, PassesResultsErrorsAndDeaths) {
  EXPECT_EQ(RunIsolated([] { return std::string(300'000, 'x'); }).value().size(), 300'000u);
  const auto error = RunIsolated(
      []() -> absl::StatusOr<std::string> { return absl::InvalidArgumentError("no good"); });
  EXPECT_EQ(error.status(), absl::InvalidArgumentError("no good"));
  const auto death = RunIsolated([]() -> absl::StatusOr<std::string> { std::abort(); });
  EXPECT_EQ(death.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(death.status().message()), testing::HasSubstr("signal 6"));
}

}  // namespace
}  // namespace polynao::simulator
