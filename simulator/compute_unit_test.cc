// Instructions that compute while DMAs use the memories they need: docs/timing.md.

#include "simulator/compute_unit.h"

#include "gtest/gtest.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

RunResult RunBody(const isa::Machine& machine, std::string_view body) {
  ir::Tensor x(ir::Type::kI8, {1 << 20});
  RunOptions options;
  options.check_hazards = false;
  const auto result =
      RunProgram(machine, OnCore0(".tensor x i8 any inout", body), {Argument::Of(&x)}, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

// A load of 4096 bytes and, meanwhile, a product of 256 x 256 with 64 columns: 64 + 1024 cycles.
constexpr int64_t kProduct = 64 + 1024;
int64_t ProductCycles(const isa::Machine& machine, const std::string& memory) {
  return Busy(RunBody(machine,
                      "  arg r10, 8\n  li r11, 4096\n  li r12, 32768\n  li r13, 256\n"
                      "  li r14, 64\n  li r15, 0x20000\n  li r16, 0x60000\n"
                      "  memcpy.i8." +
                          memory +
                          ".gmem.async r16, r10, r11, r1, r0, r0\n"
                          "  matmul.i8 r15, r0, r0, r13, r14, r13, r13, r13\n  sync\n"),
              isa::Unit::kTensor);
}

TEST(ComputeUnit, TheTensorUnitWaitsForPortsThatItShares) {
  const auto machine = [](const char* nmem, const char* wmem) {
    return FlatMachine(
        {std::string("core.nmem_ports=") + nmem, std::string("core.wmem_ports=") + wmem});
  };
  // 64 bytes of 4096 pass the port in a cycle.
  EXPECT_EQ(ProductCycles(machine("2", "2"), "wmem"), kProduct);
  EXPECT_EQ(ProductCycles(machine("2", "1"), "wmem"), kProduct + 64);
  EXPECT_EQ(ProductCycles(machine("1", "2"), "wmem"), kProduct);
  EXPECT_EQ(ProductCycles(machine("1", "2"), "nmem"), kProduct + 64);
  EXPECT_EQ(ProductCycles(machine("2", "1"), "nmem"), kProduct);
}

// An addition of 64 f16 elements takes 17 cycles. A load of 512 bytes has its port in the last 8 of its 265 cycles.
TEST(ComputeUnit, OnlyCyclesOfBothCount) {
  const isa::Machine machine = FlatMachine({"core.nmem_ports=1"});
  // The addition starts `wait` cycles before the load's port; waiting takes cycles of scalar code.
  const auto cycles = [&](int64_t scalars) {
    std::string body =
        "  arg r10, 8\n  li r11, 512\n  li r12, 64\n  li r16, 4096\n"
        "  memcpy.i8.nmem.gmem.async r16, r10, r11, r1, r0, r0\n";
    for (int64_t i = 0; i < scalars; ++i) body += "  li r9, 0\n";
    body += "  add.f16 r0, r0, r0, r12\n  sync\n";
    return Busy(RunBody(machine, body), isa::Unit::kVector);
  };
  // The load starts one cycle after its issue, in cycle s, as the addition does; so the addition starts in s + 1 + 2 *
  // scalars and would end in s + 18 + 2 * scalars; the port is busy from s + 257 to s + 264.
  EXPECT_EQ(cycles(119), 17);  // ends in s + 256
  EXPECT_EQ(cycles(120),
            17 + 8);  // ends in s + 258: one cycle is taken, and then the seven that follow
  EXPECT_EQ(cycles(125), 17 + 8);
  EXPECT_EQ(cycles(128), 17 + 8);  // starts in s + 257
  EXPECT_EQ(cycles(130), 17 + 4);  // in s + 261
  EXPECT_EQ(cycles(132), 17);      // in s + 265
}

}  // namespace
}  // namespace polynao::simulator
