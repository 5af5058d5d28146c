#include "compiler/ir/device.h"

#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

using ::testing::HasSubstr;

// Knows `put(dst, value)` and `stop()`, both without a meaning.
class Meanings : public Intrinsics {
 public:
  Meanings() : put_(Parse("func put(dst: i32[4] out, value: i32, f: f32) {}")) {
    stop_ = Parse("func stop() {}");
  }
  const Function* FindMeaning(std::string_view name) const override {
    return name == "put" ? &put_ : name == "stop" ? &stop_ : nullptr;
  }

 private:
  static Function Parse(std::string_view text) {
    absl::StatusOr<Function> f = ParseFunction(text, "test.nir");
    POLYNAO_CHECK(f.ok()) << f.status();
    return *std::move(f);
  }
  Function put_;
  Function stop_;
};

// Collects what `put` is called with and does it at the next `stop`.
class LateDevice : public Device {
 public:
  absl::StatusOr<bool> Call(std::string_view name,
                            absl::Span<const Interpreter::RawArgument> arguments) override {
    if (name == "stop") return false;
    if (arguments[1].int_value < 0) return InvalidInput("put does not take negative numbers");
    puts_.emplace_back(arguments[0].address, static_cast<int32_t>(arguments[1].int_value));
    floats.push_back(arguments[2].float_value);
    return true;
  }
  absl::StatusOr<uint8_t*> Allocate(const BufferNode& buffer) override {
    if (buffer.scope != "nmem") return InvalidInput("no memory ", buffer.scope);
    return memory;
  }
  void DoPuts() {
    for (const auto& [address, value] : puts_) std::memcpy(address, &value, sizeof value);
    puts_.clear();
  }

  uint8_t memory[64] = {};
  std::vector<double> floats;

 private:
  std::vector<std::pair<uint8_t*, int32_t>> puts_;
};

TEST(DeviceTest, CallsGoToTheDeviceAndARunStopsWhereItSays) {
  const absl::StatusOr<Function> f = ParseFunction(
      "func f(A: i32[8], n: i32) { allocate B: i32[4] @nmem B[3] = 5"
      " for (i, 0, 2) { put(&A[i * 4], n + i, 1.5) put(&B[i], i32(7), 2.0) stop() A[i + 1] = B[0] "
      "} }");
  ASSERT_TRUE(f.ok()) << f.status();
  const Meanings meanings;
  LateDevice device;
  auto interpreter = Interpreter::Create(*f, {.intrinsics = &meanings, .device = &device});
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  Tensor a(Type::kI32, {8});
  ASSERT_TRUE((*interpreter)->Run({Argument::Of(&a), Argument::Int(20)}).ok());
  EXPECT_TRUE((*interpreter)->IsSuspended());
  EXPECT_EQ(a.Int(0), 0);  // the device has not done it yet
  device.DoPuts();
  EXPECT_EQ(a.Int(0), 20);
  ASSERT_TRUE((*interpreter)->Resume().ok());
  EXPECT_TRUE((*interpreter)->IsSuspended());
  EXPECT_EQ(a.Int(1), 7);
  device.DoPuts();
  ASSERT_TRUE((*interpreter)->Resume().ok());
  EXPECT_FALSE((*interpreter)->IsSuspended());
  EXPECT_EQ(a.Int(4), 21);
  EXPECT_EQ(device.memory[12], 5);  // a scalar store to the device's memory
  EXPECT_EQ(device.floats, (std::vector<double>{1.5, 2, 1.5, 2}));
}

TEST(DeviceTest, ErrorsOfTheDeviceNameTheStatement) {
  const auto error = [](std::string_view body) {
    const absl::StatusOr<Function> f =
        ParseFunction(StrCat("func f(A: i32[8], n: i32) {", body, "}"), "test.nir");
    POLYNAO_CHECK(f.ok()) << f.status();
    const Meanings meanings;
    LateDevice device;
    auto interpreter = Interpreter::Create(*f, {.intrinsics = &meanings, .device = &device});
    POLYNAO_CHECK(interpreter.ok()) << interpreter.status();
    Tensor a(Type::kI32, {8});
    return std::string((*interpreter)->Run({Argument::Of(&a), Argument::Int(20)}).message());
  };
  EXPECT_THAT(error("for (i, 0, 3) { put(&A[0], 1 - i, 0.0) }"),
              HasSubstr("in 'put(&A[0], 1 - i, 0.0)' with i = 2: put does not take negative"));
  EXPECT_THAT(error("allocate S: i32[4] @smem S[0] = 1"), HasSubstr("no memory smem"));
}

}  // namespace
}  // namespace polynao::ir
