// The @cost rows of the whole built-in table against closed forms that are written here by hand, from docs/timing.md
// and what the rows' comments say about the units: not from the rows.
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "isa/test_operands.h"

namespace polynao::isa {
namespace {

using Numbers = std::map<std::string, int64_t, std::less<>>;

// Steps that move `amount` with `rate` a step.
int64_t Steps(int64_t amount, int64_t rate) {
  int64_t steps = amount / rate;
  if (steps * rate < amount) ++steps;
  return steps;
}

int64_t Bytes(std::string_view type) {
  static const std::map<std::string_view, int64_t> kBytes = {{"i8", 1},  {"u8", 1},   {"i16", 2},
                                                             {"f16", 2}, {"bf16", 2}, {"i32", 4},
                                                             {"f32", 4}, {"i64", 8},  {"f64", 8}};
  return kBytes.at(type);
}

struct Case {
  const Instruction& instruction;
  Numbers operands;
  Numbers machine;

  int64_t of(std::string_view name) const { return operands.find(name)->second; }
  int64_t at(std::string_view name) const { return machine.find(name)->second; }
  // Of the variant's type number `i`.
  int64_t bytes(size_t i = 0) const { return Bytes(instruction.variant.at(i)); }
};

// Elements pass the vector unit vector.bytes at a time; narrow ones are as wide as two bytes in arithmetic.
int64_t Vector(const Case& c) {
  static const std::set<std::string_view> kArithmetic = {"add",  "sub",  "mul",  "max",  "min",
                                                         "adds", "subs", "muls", "maxs", "mins"};
  static const std::set<std::string_view> kSlow = {"div",   "divs", "rdivs",   "exp", "log", "sqrt",
                                                   "rsqrt", "tanh", "sigmoid", "sin", "cos"};
  const std::string_view family = c.instruction.family;
  int64_t width = c.bytes();
  if (kArithmetic.contains(family)) width = std::max<int64_t>(width, 2);
  if (family == "cast") width = std::max(c.bytes(0), c.bytes(1));
  if (family == "rescale") width = c.bytes(1);  // what is read
  int64_t passes = Steps(c.of("count") * width, c.at("vector.bytes"));
  if (kSlow.contains(family)) passes *= c.at("vector.slow");
  const bool has_rows = family.starts_with("row_") || family.starts_with("reduce_");
  if (has_rows) passes *= c.of("rows");
  return c.at("vector.start") + passes;
}

// Blocks of 64 bytes a side: their rows go in, their columns come out.
int64_t Transpose(const Case& c) {
  const int64_t side = 64 / c.bytes();
  const int64_t blocks = Steps(c.of("rows"), side) * Steps(c.of("columns"), side);
  return c.at("vector.start") + Steps(2 * blocks * side * 64, c.at("vector.bytes"));
}

// DMAs take their start; inside a core the vector unit copies segment by segment.
int64_t Copy(const Case& c) {
  if (c.instruction.unit == Unit::kIoDma) return c.at("io_dma.start");
  if (c.instruction.unit == Unit::kMoveDma) return c.at("move_dma.start");
  const int64_t planes = c.instruction.family == "memcpy3d" ? c.of("planes") : 1;
  return c.at("vector.start") +
         planes * c.of("segments") * Steps(c.of("count") * c.bytes(), c.at("vector.bytes"));
}

// The slowest of three: products, reads of NMEM, writes of NMEM. Inputs come in lines of 64 bytes, once for each 64
// filters; sums have four bytes, and are read where they are added to.
int64_t Tensor(const Case& c) {
  const std::string& type = c.instruction.variant[0];
  const bool is_conv = c.instruction.family.starts_with("conv");
  const bool adds = c.instruction.family.ends_with("_acc");
  const int64_t pixels = is_conv ? c.of("ho") * c.of("wo") : c.of("rows");
  const int64_t length = is_conv ? c.of("kh") * c.of("kw") * c.of("ci") : c.of("k");
  const int64_t line_bytes = 64 * Steps(length * Bytes(type), 64);
  const int64_t sum_bytes = pixels * c.of("co") * 4;
  const int64_t products = pixels * c.of("co") * (line_bytes / Bytes(type));
  const int64_t reads = pixels * (c.of("co") / 64) * line_bytes + (adds ? sum_bytes : 0);
  return c.at("tensor.start") + std::max({Steps(products, c.at("tensor.macs_" + type)),
                                          Steps(reads, c.at("tensor.read_bytes")),
                                          Steps(sum_bytes, c.at("tensor.write_bytes"))});
}

int64_t Scalar(const Case& c) {
  static const std::set<std::string_view> kDivides = {"div", "mod", "fdiv", "math"};
  const std::string_view family = c.instruction.family;
  if (family == "load" || family == "store") return c.at("scalar.nmem");
  return kDivides.contains(family) ? c.at("scalar.div") : c.at("scalar.simple");
}

int64_t Control(const Case& c) {
  if (c.instruction.family == "sync") return c.at("sync.drain");
  return c.at("sync." + c.instruction.variant.at(0));
}

int64_t Expected(const Case& c) {
  if (c.instruction.family.starts_with("memcpy")) return Copy(c);
  switch (c.instruction.unit) {
    case Unit::kScalar:
      return Scalar(c);
    case Unit::kVector:
      return c.instruction.family == "transpose" ? Transpose(c) : Vector(c);
    case Unit::kTensor:
      return Tensor(c);
    case Unit::kControl:
      return Control(c);
    default:
      ADD_FAILURE() << c.instruction.mnemonic;
      return -1;
  }
}

TEST(Cost, EveryRowHasItsClosedForm) {
  std::mt19937_64 random(7);
  for (const Instruction& instruction : DianNao().instructions()) {
    for (int trial = 0; trial < 4; ++trial) {
      const auto values = RandomOperands(DianNao(), instruction, 1 << 15, random);
      ASSERT_TRUE(values) << instruction.mnemonic;
      Case c{instruction, {}, {}};
      for (size_t i = 0; i < values->size(); ++i) {
        c.operands[instruction.operands[i].name] = (*values)[i];
      }
      Machine machine;
      for (const std::string& name : DianNao().parameter_names()) {
        c.machine[name] = static_cast<int64_t>(random() % 300) + 1;
        machine.Set(name, c.machine[name]);
      }
      const auto cost = DianNao().Cost(instruction, *values, machine);
      ASSERT_TRUE(cost.ok()) << cost.status();
      EXPECT_EQ(*cost, Expected(c)) << DescribeOperands(instruction, *values);
    }
  }
}

}  // namespace
}  // namespace polynao::isa
