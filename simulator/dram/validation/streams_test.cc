#include "simulator/dram/validation/streams.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/dram/testing.h"

namespace polynao::simulator {
namespace {

using ::testing::HasSubstr;

std::string Requests(const std::string& pattern, const std::string& parameters,
                     const std::vector<int64_t>& indices) {
  const Stream stream = MakeStream(pattern, parameters).value();
  std::string text;
  for (const int64_t i : indices) {
    const DramRequest request = stream.request(i);
    text += (request.is_write ? "w" : "r") + std::to_string(request.address) + " ";
  }
  return text;
}

TEST(Streams, AreMadeFromTheirParameters) {
  EXPECT_EQ(Requests("seq_write", "", {0, 3}), "w0 w192 ");
  EXPECT_EQ(Requests("copy", "piece=128 b_offset=1024", {0, 1, 2, 3, 4, 7}),
            "r0 r64 w1024 w1088 r128 w1216 ");
  EXPECT_EQ(Requests("stride_read", "stride=4194304", {1, 2048}), "r4194304 r0 ");
  EXPECT_EQ(Requests("streams_read", "streams=4 distance=65536", {0, 9, 31, 32}),
            "r0 r65600 r197056 r512 ");
  EXPECT_EQ(Requests("streams_mixed", "streams=4 distance=65536", {16, 24}), "r131072 w196608 ");
}

// The known sequence of splitmix64 with seed 1: its first outputs are 910a2dec89025cc1, beeb8da1658eec67.
TEST(Streams, RandomAddressesAreThoseOfSplitmix64) {
  EXPECT_EQ(Requests("rand_read", "span=4294967296 seed=1", {0, 1}),
            "r" + std::to_string((0x910a2dec89025cc1 >> 38) * 64) + " r" +
                std::to_string((0xbeeb8da1658eec67 >> 38) * 64) + " ");
}

TEST(Streams, ErrorsNameTheStream) {
  const auto error = [](const std::string& pattern, const std::string& parameters) {
    return std::string(MakeStream(pattern, parameters).status().message());
  };
  EXPECT_THAT(error("rand", ""), HasSubstr("stream rand \"\": there is no such pattern"));
  EXPECT_THAT(error("copy", "piece=64"), HasSubstr("expected b_offset=POSITIVE"));
  EXPECT_THAT(error("stride_read", "stride=0"), HasSubstr("found \"stride=0\""));
  EXPECT_THAT(error("seq_read", "stride=1"), HasSubstr("there is no parameter stride"));
}

TEST(Streams, LatencyOfReadsThatComeRarelyIsThatOfAnIdleChannel) {
  const DramTiming timing = TestDram("ddr4_3200", {"trefi=0"});
  const Stream stream = MakeStream("light_read", "span=4294967296 seed=1 gap=1000").value();
  const StreamResult result = RunStream(timing, stream, 200);
  EXPECT_GE(result.mean_read_latency, static_cast<double>(timing.trcd + timing.cl + 4));
  EXPECT_LE(result.mean_read_latency,
            static_cast<double>(timing.trp + timing.trcd + timing.cl + 4));
  EXPECT_EQ(result.counters.reads, 200);
}

}  // namespace
}  // namespace polynao::simulator
