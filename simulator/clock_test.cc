#include "simulator/clock.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "simulator/isolated.h"
#include "testing/fuzz.h"
#include "third_party/systemc/process.h"

namespace polynao::simulator {
namespace {

// What the events of SystemC do, as a Timer has it.
class Event : public sc_core::sc_module {
 public:
  explicit Event(std::function<void()> wake)
      : sc_core::sc_module(sc_core::sc_gen_unique_name("event")), wake_(std::move(wake)) {
    SC_METHOD(Run);
    sensitive << event_;
    dont_initialize();
  }
  static int64_t Now() { return static_cast<int64_t>(sc_core::sc_time_stamp().value()); }
  void NotifyAt(int64_t cycle) {
    event_.notify(sc_core::sc_time::from_value(static_cast<uint64_t>(cycle - Now())));
  }
  void Cancel() { event_.cancel(); }

 private:
  void Run() { wake_(); }
  const std::function<void()> wake_;
  sc_core::sc_event event_;
};

struct OfCalendar {
  using Timer = simulator::Timer;
  static int64_t Now() { return simulator::Now(); }
};
struct OfSystemc {
  using Timer = Event;
  static int64_t Now() { return Event::Now(); }
};

// When which timers ran, by cycle and number, while the first one sets and cancels itself and others at random,
// `steps` times.
template <typename World>
std::string Script(uint64_t seed, int64_t steps) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  // Now, soon, at the ends of the calendar's lists, and far away.
  const auto delay = [&] {
    constexpr int64_t kFar[] = {510, 1022, 4094, 100'000};
    switch (below(4)) {
      case 0:
        return int64_t{0};
      case 1:
        return below(10);
      case 2:
        return below(2000);
      default:
        return kFar[below(4)] + below(5);
    }
  };
  constexpr int64_t kTimers = 30;
  std::vector<std::unique_ptr<typename World::Timer>> timers;
  std::vector<std::pair<int64_t, int64_t>> log;
  const auto step = [&] {
    if (steps-- == 0) return;
    for (int64_t action = below(6); action > 0; --action) {
      auto& timer = *timers[static_cast<size_t>(1 + below(kTimers - 1))];
      if (below(4) == 0) {
        timer.Cancel();
      } else {
        timer.NotifyAt(World::Now() + delay());
      }
    }
    timers[0]->NotifyAt(World::Now() + delay());
    if (below(8) != 0) return;
    timers[0]->Cancel();
    timers[0]->NotifyAt(World::Now() + delay());
  };
  for (int64_t i = 0; i < kTimers; ++i) {
    timers.push_back(std::make_unique<typename World::Timer>([&log, &step, i] {
      log.push_back({World::Now(), i});
      if (i == 0) step();
    }));
  }
  timers[0]->NotifyAt(3);
  sc_core::sc_start();
  std::sort(log.begin(), log.end());  // within a cycle, in no order
  std::string text;
  for (const auto& [cycle, timer] : log) absl::StrAppend(&text, cycle, ":", timer, " ");
  return text;
}

TEST(Timer, BehavesAsEventsOfSystemcDo) {
  const uint64_t seed = FuzzSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (int64_t round = 0; round < FuzzCases(100); ++round) {
    const uint64_t s = seed + static_cast<uint64_t>(round);
    const auto calendar = RunIsolated([&] { return Script<OfCalendar>(s, 200); });
    const auto systemc = RunIsolated([&] { return Script<OfSystemc>(s, 200); });
    ASSERT_TRUE(calendar.ok() && systemc.ok()) << calendar.status() << systemc.status();
    ASSERT_GT(systemc->size(), 200u);
    ASSERT_EQ(*calendar, *systemc) << "round " << round;
  }
}

TEST(Timer, TheEarliestOfSeveralNotificationsCounts) {
  const auto text = RunIsolated([]() -> absl::StatusOr<std::string> {
    std::string log;
    Timer timer([&] { absl::StrAppend(&log, Now(), " "); });
    timer.NotifyAt(2000);
    timer.NotifyAt(70'000);
    timer.NotifyAt(1999);
    sc_core::sc_start();
    timer.NotifyAt(1999);
    timer.NotifyAt(2000);
    sc_core::sc_start();
    return log;
  });
  EXPECT_EQ(text.value_or(text.status().ToString()), "1999 1999 ");
}

TEST(Calendar, StopsBeforeItsLimitAndKeepsTheRest) {
  const auto text = RunIsolated([]() -> absl::StatusOr<std::string> {
    std::string log;
    Timer timer([&] {
      absl::StrAppend(&log, Now(), " ");
      timer.NotifyAt(Now() + 3);
    });
    timer.NotifyAt(5000);
    Calendar::Get().set_limit(5006);
    sc_core::sc_start();
    absl::StrAppend(&log, Calendar::Get().pending() ? "pending" : "over");
    return log;
  });
  EXPECT_EQ(text.value_or(text.status().ToString()), "5000 5003 pending");
}

TEST(Calendar, FinishesTheTimersThatAreDueWhenItStops) {
  const auto text = RunIsolated([]() -> absl::StatusOr<std::string> {
    std::string log;
    Timer later([&] { log += "later "; });
    Timer first([&] {
      log += "first ";
      Calendar::Get().Stop();
      later.NotifyAt(Now());
    });
    Timer second([&] { log += "second "; });
    first.NotifyAt(7);
    second.NotifyAt(7);
    sc_core::sc_start();
    return absl::StrCat(log, Now());
  });
  EXPECT_EQ(text.value_or(text.status().ToString()), "first second 7");
}

TEST(CalendarDeathTest, NoTimerRunsInThePast) {
  EXPECT_DEATH(
      {
        Timer timer([&] { timer.NotifyAt(Now() - 1); });
        timer.NotifyAt(9);
        sc_core::sc_start();
      },
      "notified at 8 in cycle 9");
}

}  // namespace
}  // namespace polynao::simulator
