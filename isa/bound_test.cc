#include "isa/bound.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/machine.h"
#include "testing/machine.h"

namespace polynao::isa {
namespace {

using ::testing::HasSubstr;

TEST(Bound, IsTheSlowestResource) {
  const Machine machine = TestMachine("mlu270");
  const auto bound = [&](const Work& work) { return BoundOf(machine, work).value().cycles; };
  EXPECT_EQ(bound({}), 0);
  EXPECT_EQ(bound({.gmem_bytes = 1}), 1);
  EXPECT_EQ(bound({.gmem_bytes = 1024}), 10);
  EXPECT_EQ(bound({.gmem_bytes = 1025}), 11);
  EXPECT_EQ(bound({.macs = 16 * 4096 * 7}), 7);
  EXPECT_EQ(bound({.macs = 16 * 4096 * 7, .mac_type = ir::Type::kI16}), 14);
  EXPECT_EQ(bound({.vector_elements = 16 * 64 * 3 + 1}), 4);
  EXPECT_EQ(bound({.vector_elements = 16 * 64 * 3, .vector_type = ir::Type::kF32}), 6);
  EXPECT_EQ(bound({.gmem_bytes = 10240, .vector_elements = 16 * 64 * 3}), 100);
  const auto none = BoundOf(machine, {.macs = 1, .mac_type = ir::Type::kF16});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("no tensor unit for f16"));
}

TEST(Bound, NamesTheResource) {
  const Machine machine = TestMachine("mlu270");
  const auto by = [&](const Work& work) { return std::string(BoundOf(machine, work).value().by); };
  EXPECT_EQ(by({}), "");
  EXPECT_EQ(by({.gmem_bytes = 1024}), "GMEM");
  EXPECT_EQ(by({.gmem_bytes = 1024, .macs = 16 * 4096 * 20}), "tensor unit");
  EXPECT_EQ(by({.gmem_bytes = 1024, .vector_elements = 16 * 64 * 20}), "vector unit");
}

// 30 cycles of one unit or 60 of the other are 20 of both; what only one of them does comes first.
TEST(Bound, WorkThatEitherUnitMayDo) {
  const Machine machine = TestMachine("mlu270");
  Work work = {.either_elements = 16 * 64 * 60, .either_macs = 16 * 4096 * 30};
  EXPECT_EQ(BoundOf(machine, work)->cycles, 20);
  EXPECT_EQ(BoundOf(machine, work)->by, "both units");
  work.vector_elements = 16 * 64 * 15;
  EXPECT_EQ(BoundOf(machine, work)->cycles, 25);
  work.vector_elements = 16 * 64 * 50;
  EXPECT_EQ(BoundOf(machine, work)->cycles, 50);
  // The tensor unit has no such type.
  work.mac_type = ir::Type::kF16;
  EXPECT_EQ(BoundOf(machine, work)->cycles, 110);
  EXPECT_EQ(BoundOf(machine, work)->by, "vector unit");
}

// Four clusters of mlu270, which loads 102.4 bytes a cycle: as a table of parts, computation and loads.
TEST(Bound, ClustersLoadTheirOwnParts) {
  Machine machine = TestMachine("mlu270");
  // Image and weights of 1 MB each. On all clusters 2 x 2 boxes load 4 MB; on one, 2 MB are loaded, but the products
  // take four times as long.
  Work work = {
      .gmem_bytes = 2'000'000, .operand_bytes = {1'000'000, 1'000'000}, .results = 1 << 30};
  work.macs = int64_t{16} * 4096 * 1000;
  const auto few = BoundOf(machine, work);
  EXPECT_EQ(few->by, "GMEM");  // 4000 cycles on one cluster
  EXPECT_EQ(few->cycles, 19532);
  work.macs = int64_t{16} * 4096 * 30'000;
  const auto many = BoundOf(machine, work);
  EXPECT_EQ(many->by, "clusters");
  EXPECT_NEAR(static_cast<double>(many->cycles), 35'600, 300);  // 3.3 clusters
  // A cache has what others load; one cluster has all.
  machine.Set("card.clusters", 1);
  EXPECT_EQ(BoundOf(machine, work)->by, "tensor unit");
  // Sums of few results are cut instead: nothing is loaded twice.
  machine.Set("card.clusters", 4);
  work.results = 100;
  EXPECT_EQ(BoundOf(machine, work)->by, "tensor unit");
}

// Four clusters, 102.4 bytes a cycle of GMEM and 128 of each link.
TEST(Reach, IsTheBestSharingWithTwoLatencies) {
  Machine machine = TestMachine("mlu270");
  const int64_t latencies = 2 * (machine.Get("io_dma.start") + machine.Get("gmem.latency"));
  const auto reach = [&](const Work& work) { return ReachOf(machine, work).value(); };
  EXPECT_EQ(reach({}), latencies);
  EXPECT_EQ(reach({.gmem_bytes = 102'400}), latencies + 1000);
  // The units of a core take turns.
  const Work both = {.gmem_bytes = 1024, .macs = 16 * 4096 * 100, .vector_elements = 16 * 64 * 300};
  EXPECT_EQ(reach(both), latencies + 400);
  // Image and weights of 102,400 bytes each: on one cluster 2000 cycles of GMEM, on two 3000, on 2 x 2 4000.
  Work work = {
      .gmem_bytes = 204'800, .operand_bytes = {102'400, 102'400}, .results = int64_t{1} << 30};
  work.macs = int64_t{16} * 4096 * 400;
  EXPECT_EQ(reach(work), latencies + 2000);
  work.macs = int64_t{16} * 4096 * 1400;
  EXPECT_EQ(reach(work), latencies + 3000);
  work.macs = int64_t{16} * 4096 * 3000;
  EXPECT_EQ(reach(work), latencies + 4000);
  // Each of four clusters has a fourth of the products of few sums, and stores and loads 100 of these.
  work.results = 100;
  EXPECT_EQ(reach(work), latencies + 3000);
  // What a cache has is loaded once; a link may take longer than GMEM.
  work.results = int64_t{1} << 30;
  machine.Set("gmem.cache_reads", 1), machine.Set("gmem.cache_kib", 1024);
  EXPECT_EQ(reach(work), latencies + 3000);
  machine.Set("cluster.link_bytes", 16);
  EXPECT_EQ(reach(work), latencies + 6400);  // 2 x 2 clusters, half of both operands each
  EXPECT_FALSE(ReachOf(machine, {.macs = 1, .mac_type = ir::Type::kF16}).ok());
}

}  // namespace
}  // namespace polynao::isa
