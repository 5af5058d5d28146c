#include "isa/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/text.h"

namespace polynao::isa {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSeed = 20240608;

Program Example() {
  Program program;
  program.name = "scale";
  program.machine = {{"core.nmem_kib", "512"}, {"gmem.dram", "flat"}};
  program.assertions = {"n % 64 == 0", "0 < n"};
  program.is_reassociated = true;
  program.params.push_back({.name = "x", .shape = {4, 5}});
  program.params.push_back({.name = "w", .shape = {8, 6}, .rows = 8, .parts = 3});
  program.params.push_back({.name = "y", .any_shape = true, .access = ir::Access::kOut});
  program.params.push_back({.name = "n", .is_tensor = false, .type = ir::Type::kI64});
  program.params.push_back(
      {.name = "t", .shape = {16, 64}, .access = ir::Access::kOut, .is_temporary = true});
  program.code = {{1, 2}, {3, ~uint64_t{0}}, {5, 6}};
  program.labels = {{0, "start"}, {3, "end"}};
  return program;
}

std::string ErrorOf(std::string_view bytes) {
  const auto program = Deserialize(bytes, "p.bin");
  return program.ok() ? "" : std::string(program.status().message());
}

TEST(Program, RoundTrips) {
  for (const Program& program : {Program(), Example()}) {
    const auto read = Deserialize(Serialize(program), "p.bin");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, program);
  }
}

TEST(Program, PartsAreOfARow) {
  const auto error = [](ProgramParam param) {
    Program program;
    program.params = {std::move(param)};
    return ErrorOf(Serialize(program));
  };
  EXPECT_EQ(error({.name = "w", .shape = {8, 6}, .rows = 8, .parts = 6}), "");
  for (const ProgramParam& wrong :
       {ProgramParam{.name = "w", .shape = {8, 6}, .rows = 8, .parts = 4},
        {.name = "w", .shape = {8, 6}, .rows = 7, .parts = 2},
        {.name = "w", .shape = {8, 0}, .rows = 8, .parts = 2},
        {.name = "w", .shape = {8, 6}, .rows = 8, .parts = 1},
        {.name = "w", .shape = {8, 6}, .rows = 0, .parts = 2},
        {.name = "w", .any_shape = true, .rows = 8, .parts = 2},
        {.name = "w", .shape = {8, 6}, .access = ir::Access::kOut, .rows = 8, .parts = 2}}) {
    EXPECT_THAT(error(wrong),
                HasSubstr(StrCat("'w' has no ", wrong.rows, " rows of ", wrong.parts)));
  }
}

TEST(Program, ScalarsKeepItsAssertions) {
  const auto check = [](const Program& program, std::vector<int64_t> values) {
    return std::string(CheckAssertions(program, values).message());
  };
  EXPECT_EQ(check(Example(), {4096, 8192, 8192, 128, 0}), "");
  EXPECT_EQ(check(Example(), {4096, 8192, 8192, 5, 0}),
            "program scale: '@assert(n % 64 == 0)' does not hold: n = 5");
  EXPECT_EQ(check(Example(), {4096, 8192, 8192, -64, 0}),
            "program scale: '@assert(0 < n)' does not hold: n = -64");
  Program program;
  program.name = "p";
  program.params.push_back({.name = "x", .is_tensor = false, .type = ir::Type::kF16});
  program.assertions = {"x < 1.5"};
  EXPECT_EQ(check(program, {0x3c00}), "");  // 1
  EXPECT_EQ(check(program, {0x4000}), "program p: '@assert(x < 1.5)' does not hold: x = 2");
  program.assertions = {"x <"};
  EXPECT_THAT(check(program, {0}), HasSubstr("program p: "));
}

TEST(Program, EveryTruncationIsAnError) {
  const std::string bytes = Serialize(Example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(ErrorOf(bytes.substr(0, size)), HasSubstr("p.bin: byte ")) << size;
  }
  EXPECT_THAT(
      ErrorOf(bytes.substr(0, bytes.size() - 1)),
      HasSubstr(StrCat("expected a file of ", bytes.size(), " bytes, found ", bytes.size() - 1)));
  EXPECT_THAT(ErrorOf(bytes + "x"), HasSubstr("expected a file of"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("expected a program, which starts with NAOP"));
}

TEST(Program, EveryFlippedBitIsAnError) {
  const std::string bytes = Serialize(Example());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THAT(ErrorOf(damaged), HasSubstr("p.bin: byte ")) << "bit " << bit;
  }
  std::string newer = bytes;
  newer[4] = 7;
  EXPECT_THAT(ErrorOf(newer), HasSubstr("version 6, found version 7"));
  std::string damaged = bytes;
  damaged.back() ^= 1;
  EXPECT_THAT(ErrorOf(damaged), HasSubstr("checksum"));
}

// Its text has no place for an access, so another program would be read from it.
TEST(Program, AScalarIsNotWritten) {
  Program program;
  program.params.push_back(
      {.name = "n", .is_tensor = false, .type = ir::Type::kI64, .access = ir::Access::kOut});
  EXPECT_THAT(ErrorOf(Serialize(program)), HasSubstr("'n' is a scalar"));
}

// Puts the right size and checksum on a body that may be nonsense.
std::string Sealed(std::string_view body) {
  std::string bytes("NAOP\6\0\0\0", 8);
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : body) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  for (const uint64_t value : {uint64_t{24 + body.size()}, hash}) {
    bytes.append(reinterpret_cast<const char*>(&value), 8);
  }
  return bytes + std::string(body);
}

TEST(Program, DamagedBodiesBehindAValidChecksumNeverCrash) {
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(StrCat("seed ", kSeed));
  const std::string body = Serialize(Example()).substr(24);
  ASSERT_TRUE(Deserialize(Sealed(body), "p.bin").ok());
  int accepted = 0;
  for (int trial = 0; trial < 30000; ++trial) {
    std::string mutated = body;
    for (uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % (mutated.size() + 1);
      switch (random() % 3) {
        case 0:
          mutated.erase(at, random() % 9);
          break;
        case 1:
          mutated.insert(at, 1, static_cast<char>(random()));
          break;
        default:
          if (at < mutated.size()) mutated[at] = static_cast<char>(random() % 2 ? random() : 255);
      }
    }
    const auto program = Deserialize(Sealed(mutated), "p.bin");
    if (!program.ok()) continue;
    ++accepted;
    // What is accepted means something: it reads back the same.
    EXPECT_EQ(*Deserialize(Serialize(*program), "p.bin"), *program);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 30000);
}

TEST(Program, RandomBytesNeverCrash) {
  std::mt19937_64 random(kSeed);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string bytes(random() % 80, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_FALSE(Deserialize(trial % 2 ? bytes : Sealed(bytes), "p.bin").ok());
  }
}

}  // namespace
}  // namespace polynao::isa
