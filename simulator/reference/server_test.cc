#include "simulator/reference/server.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::simulator::reference {
namespace {

Burst MakeBurst(int64_t requester, int64_t bytes, int64_t address) {
  Burst burst;
  burst.address = address;
  burst.payload = bytes;
  burst.Add({.requester = requester, .bytes = bytes});
  return burst;
}

// (address, cycle in which its service ends) of all bursts.
std::vector<std::pair<int64_t, int64_t>> Ends(Server& server, int64_t cycles) {
  std::vector<std::pair<int64_t, int64_t>> ends;
  for (int64_t cycle = 0; cycle < cycles; ++cycle) {
    if (const auto burst = Finish(server)) ends.push_back({burst->address, cycle});
    Take(server, cycle);
  }
  return ends;
}

using testing::ElementsAre;
using testing::Pair;

TEST(ServerTest, ServesForWholeCyclesAtLeastOne) {
  Server server = MakeServer("s", 1, 25'600);
  Enter(server, MakeBurst(0, 512, 1), 3);
  Enter(server, MakeBurst(0, 513, 2), 3);
  Enter(server, MakeBurst(0, 1, 3), 90);
  EXPECT_THAT(Ends(server, 100), ElementsAre(Pair(1, 3 + 20), Pair(2, 23 + 21), Pair(3, 91)));
  EXPECT_EQ(server.counts.busy, 20 + 21 + 1);
  EXPECT_EQ(server.counts.bursts, 3);
  EXPECT_EQ(server.counts.moved, 512 + 513 + 1);
}

TEST(ServerTest, TakesTurnsAndNeverIdles) {
  Server server = MakeServer("s", 3, 1000);
  for (int64_t i = 0; i < 3; ++i) Enter(server, MakeBurst(0, 10, i), 0);
  Enter(server, MakeBurst(2, 10, 20), 5);
  Enter(server, MakeBurst(1, 10, 10), 15);
  // Requester 2 is alone with 0 in cycle 10; in cycle 20 it is 0's turn again, then 1's.
  EXPECT_THAT(Ends(server, 60),
              ElementsAre(Pair(0, 10), Pair(20, 20), Pair(1, 30), Pair(10, 40), Pair(2, 50)));
}

TEST(ServerTest, ARequestersBurstsStayInOrder) {
  Server server = MakeServer("s", 1, 1000);
  Enter(server, MakeBurst(0, 1, 1), 10);
  Enter(server, MakeBurst(0, 1, 2), 4);
  EXPECT_THAT(Ends(server, 20), ElementsAre(Pair(1, 11), Pair(2, 12)));
}

}  // namespace
}  // namespace polynao::simulator::reference
