#include "isa/instruction_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/check.h"
#include "base/text.h"
#include "isa/test_operands.h"

namespace polynao::isa {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr int64_t kBytes = 32768;
constexpr uint64_t kSeed = 20240607;

const Instruction& Get(const InstructionSet& set, std::string_view mnemonic) {
  const Instruction* instruction = set.Find(mnemonic);
  POLYNAO_CHECK(instruction != nullptr) << mnemonic;
  return *instruction;
}

const Instruction& Get(std::string_view mnemonic) { return Get(DianNao(), mnemonic); }

// A short row; `attributes` replace the usual ones.
std::string Row(std::string_view function,
                std::string_view attributes = "@doc(\"d\") @opcode(1) @unit(vector) @cost(1)") {
  return StrCat(attributes, "\nfunc ", function, "\n");
}

absl::StatusOr<std::unique_ptr<InstructionSet>> LoadText(const std::string& text) {
  return InstructionSet::Load({{"test.nir", text}});
}

// A machine of which every parameter has this value, except one that it lacks.
isa::Machine AllParameters(int64_t value, std::string_view lacking = "") {
  isa::Machine machine;
  for (const std::string& name : DianNao().parameter_names()) {
    if (name != lacking) machine.Set(name, value);
  }
  return machine;
}

// ---- the built-in table ---------------------------------------------------------------

TEST(DianNao, HasTheFamiliesThatProgramsNeed) {
  for (const char* mnemonic : {"li",
                               "mov",
                               "add",
                               "addi",
                               "muli",
                               "select",
                               "fadd.f16",
                               "math.exp.f32",
                               "beq",
                               "jump",
                               "arg",
                               "load.f16.nmem",
                               "store.i8.gmem",
                               "halt",
                               "memcpy.f16.nmem.gmem",
                               "memcpy.f16.nmem.gmem.async",
                               "memcpy3d.i8.wmem.smem",
                               "memcpy.f32.nmem.nmem",
                               "add.f16",
                               "max.i8",
                               "adds.f32",
                               "relu.f16",
                               "sigmoid.f32",
                               "cast.i8.f16",
                               "fill.f16",
                               "reduce_sum.f32",
                               "conv.i8",
                               "conv_acc.i16",
                               "matmul.i8",
                               "sync.io",
                               "sync",
                               "barrier.cluster",
                               "barrier.global"}) {
    EXPECT_NE(DianNao().Find(mnemonic), nullptr) << mnemonic;
  }
  EXPECT_EQ(DianNao().Find("add.f64"), nullptr);
  EXPECT_EQ(DianNao().Find(""), nullptr);
}

TEST(DianNao, DescribesUnitsQueuesAndWaiting) {
  EXPECT_EQ(Get("add.f16").queue, Queue::kCompute);
  EXPECT_EQ(Get("conv.i8").queue, Queue::kCompute);
  EXPECT_FALSE(Get("add.f16").waits);
  EXPECT_EQ(Get("memcpy.f16.nmem.gmem").queue, Queue::kIo);
  EXPECT_EQ(Get("memcpy.f16.smem.nmem").queue, Queue::kMove);
  EXPECT_EQ(Get("memcpy.f16.nmem.nmem").unit, Unit::kVector);
  EXPECT_TRUE(Get("memcpy.f16.nmem.gmem").waits);
  EXPECT_FALSE(Get("memcpy.f16.nmem.gmem.async").waits);
  EXPECT_EQ(Get("sync.io").drains, std::vector<Queue>{Queue::kIo});
  EXPECT_EQ(Get("sync").drains.size(), 3u);
  EXPECT_EQ(Get("sync").barrier, Instruction::Barrier::kNone);
  EXPECT_EQ(Get("barrier.cluster").barrier, Instruction::Barrier::kCluster);
  EXPECT_EQ(Get("barrier.global").barrier, Instruction::Barrier::kGlobal);
}

TEST(DianNao, DerivesLanewiseAndAccessFromTheMeaning) {
  EXPECT_TRUE(Get("add.f16").lanewise);
  EXPECT_TRUE(Get("fill.f32").lanewise);
  EXPECT_TRUE(Get("cast.i8.f16").lanewise);
  EXPECT_FALSE(Get("memcpy.f16.nmem.nmem").lanewise);
  EXPECT_FALSE(Get("reduce_sum.f32").lanewise);
  EXPECT_FALSE(Get("add").lanewise);
  const Instruction& conv = Get("conv.i8");
  EXPECT_TRUE(conv.operands[0].is_written);
  EXPECT_FALSE(conv.operands[0].is_read);  // only what it has written itself
  EXPECT_TRUE(Get("conv_acc.i8").operands[0].is_read);
  EXPECT_TRUE(conv.operands[2].is_read);
  EXPECT_EQ(conv.operands[2].space, Space::kWmem);
  EXPECT_TRUE(Get("beq").operands[2].is_target);
  EXPECT_FALSE(Get("li").operands[1].is_target);
}

TEST(DianNao, HotInstructionsAreNative) {
  for (const Instruction& instruction : DianNao().instructions()) {
    if (instruction.unit == Unit::kScalar) continue;
    EXPECT_TRUE(DianNao().HasNativeRoutine(instruction)) << instruction.mnemonic;
  }
  for (const char* mnemonic :
       {"add", "addi", "li", "and", "or", "xor", "beq", "arg", "load.i32.nmem", "fadd.f32"}) {
    EXPECT_TRUE(DianNao().HasNativeRoutine(Get(mnemonic))) << mnemonic;
  }
}

// ---- encoding -------------------------------------------------------------------------

TEST(Encoding, EveryBitHasOneMeaning) {
  std::set<std::pair<int, int>> codes;
  for (const Instruction& instruction : DianNao().instructions()) {
    EXPECT_TRUE(codes.insert({instruction.opcode, instruction.variant_code}).second)
        << instruction.mnemonic;
    EXPECT_NE(instruction.opcode, 0) << instruction.mnemonic << ": a zero word must not decode";
    EXPECT_EQ(DianNao().FindCode(instruction.opcode, instruction.variant_code), &instruction);
    int next = 16;
    for (const Operand& operand : instruction.operands) {
      EXPECT_EQ(operand.bit, next) << instruction.mnemonic << " " << operand.name;
      next += operand.bits;
    }
    EXPECT_LE(next, 128) << instruction.mnemonic;
    // What follows must be zero.
    std::vector<int64_t> fields(instruction.operands.size(), 1);
    const Word word = *DianNao().Encode(instruction, fields);
    for (int bit = next; bit < 128; ++bit) {
      Word bad = word;
      (bit < 64 ? bad.low : bad.high) ^= uint64_t{1} << (bit % 64);
      EXPECT_FALSE(DianNao().Decode(bad).ok()) << instruction.mnemonic << " bit " << bit;
    }
  }
  EXPECT_EQ(codes.size(), DianNao().instructions().size());
}

TEST(Encoding, RoundTripsRandomFields) {
  std::mt19937_64 random(kSeed);
  for (const Instruction& instruction : DianNao().instructions()) {
    for (int trial = 0; trial < 4; ++trial) {
      std::vector<int64_t> fields;
      for (const Operand& operand : instruction.operands) {
        if (operand.kind == OperandKind::kImmediate) {
          const int64_t extremes[] = {0, -1, INT64_MIN, INT64_MAX, static_cast<int64_t>(random())};
          fields.push_back(ir::WrapInt(operand.type, extremes[random() % 5]));
        } else {
          fields.push_back(trial == 0 ? 63 : static_cast<int64_t>(random() % kRegisterCount));
        }
      }
      const absl::StatusOr<Word> word = DianNao().Encode(instruction, fields);
      ASSERT_TRUE(word.ok()) << word.status();
      const auto decoded = DianNao().Decode(*word);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_EQ(decoded->instruction, &instruction);
      EXPECT_EQ(decoded->fields, fields) << instruction.mnemonic;
    }
  }
}

// From what docs/isa.md says of a word, bit by bit: opcode in bits 0 to 7, variant in 8 to 15, then operands, 6 bits
// for a register.
TEST(Encoding, AWordDecodedByHand) {
  // li: opcode 1, no variants. rd in bits 16 to 21, the 64 bits of the value in 22 to 85.
  const uint64_t minus_two = ~uint64_t{1};
  const Word li = {.low = 1 | 5 << 16 | minus_two << 22, .high = 0x3f'ffff};
  auto decoded = DianNao().Decode(li);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->instruction->mnemonic, "li");
  EXPECT_THAT(decoded->fields, ElementsAre(5, -2));
  // sub.f32: opcode 80; add, sub and mul of f16, f32, i32, i16, i8 are variants 0 to 14 in that order.
  const Word sub = {.low =
                        80 | 6 << 8 | 63 << 16 | 1 << 22 | uint64_t{2} << 28 | uint64_t{3} << 34};
  decoded = DianNao().Decode(sub);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->instruction->mnemonic, "sub.f32");
  EXPECT_THAT(decoded->fields, ElementsAre(63, 1, 2, 3));
  // bne: opcode 32, variant 1. Two registers, then the target in bits 28 to 91.
  const Word bne = {.low = 32 | 1 << 8 | 7 << 16 | uint64_t{9} << 22 | uint64_t{1000} << 28};
  decoded = DianNao().Decode(bne);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->instruction->mnemonic, "bne");
  EXPECT_THAT(decoded->fields, ElementsAre(7, 9, 1000));
}

TEST(Encoding, RefusesWhatDoesNotFit) {
  const Instruction& add = Get("add");
  EXPECT_THAT(std::string(DianNao().Encode(add, {1, 2}).status().message()),
              HasSubstr("add: expected 3 operands, found 2"));
  EXPECT_THAT(std::string(DianNao().Encode(add, {1, 64, 2}).status().message()),
              HasSubstr("operand lhs: expected a register number below 64, found 64"));
  EXPECT_FALSE(DianNao().Encode(add, {-1, 0, 2}).ok());
  EXPECT_THAT(std::string(DianNao().Decode(Word{}).status().message()),
              HasSubstr("no instruction has opcode 0"));
  const auto set = LoadText(Row("small(rd: i64[1] @reg out, v: i8 @imm) { rd[0] = i64(v) }"));
  ASSERT_TRUE(set.ok()) << set.status();
  const Instruction& small = *(*set)->Find("small");
  EXPECT_EQ(small.operands[1].bits, 8);
  EXPECT_TRUE((*set)->Encode(small, {1, -128}).ok());
  EXPECT_THAT(std::string((*set)->Encode(small, {1, 128}).status().message()),
              HasSubstr("operand v: expected an i8, found 128"));
}

// ---- constraints and costs ------------------------------------------------------------

std::string ConstraintError(std::string_view mnemonic, std::vector<int64_t> values) {
  return std::string(DianNao().CheckConstraints(Get(mnemonic), values).message());
}

TEST(Constraints, MessagesNameInstructionOperandMultipleAndValue) {
  EXPECT_EQ(
      ConstraintError("add.f16", {0, 1024, 2048, 100}),
      "add.f16: requires count % 64 == 0, but count is 100, which is no multiple of 64 (64 and "
      "128 are)");
  EXPECT_EQ(
      ConstraintError("add.f16", {0, 1025, 2048, 64}),
      "add.f16: requires &lhs[0] % 128 == 0, but the address of lhs is 1025, which is no multiple "
      "of 128 (1024 and 1152 are)");
  EXPECT_THAT(ConstraintError("memcpy.f16.nmem.gmem", {0, 0, 8, 3, 4, 8}),
              AllOf(HasSubstr("segments <= 1 || dst_stride >= count"), HasSubstr("dst_stride is 4"),
                    HasSubstr("count is 8"), HasSubstr("segments is 3")));
  EXPECT_THAT(ConstraintError("memcpy.f16.nmem.gmem", {1, 0, 8, 1, 8, 8}),
              HasSubstr("requires &dst[0] % sizeof(f16) == 0, but the address of dst is 1"));
  EXPECT_THAT(ConstraintError("div", {0, 4, 0}), HasSubstr("rhs is 0"));
  EXPECT_EQ(ConstraintError("add.f16", {0, 1024, 2048, 64}), "");
}

TEST(Constraints, OperandsAreTheSameOrDisjoint) {
  EXPECT_EQ(ConstraintError("add.f16", {0, 0, 0, 64}), "");
  EXPECT_EQ(ConstraintError("add.f16", {0, 128, 256, 64}), "");
  EXPECT_EQ(
      ConstraintError("add.f16", {0, 128, 256, 128}),
      "add.f16: dst [0, 256) overlaps lhs [128, 384) in nmem; they may be the same or disjoint");
  EXPECT_EQ(ConstraintError("add.f16", {128, 128, 0, 0}), "");
  // A wider element would overwrite sources that are still needed.
  EXPECT_THAT(ConstraintError("cast.f32.f16", {0, 0, 64}), HasSubstr("must be disjoint"));
  EXPECT_EQ(ConstraintError("cast.f32.i32", {0, 0, 64}), "");
  EXPECT_THAT(ConstraintError("memcpy.f16.nmem.nmem", {0, 0, 64, 1, 0, 0}),
              HasSubstr("must be disjoint"));
  EXPECT_THAT(ConstraintError("reduce_sum.f32", {0, 0, 2, 64, 64}), HasSubstr("must be disjoint"));
  // Different memories never overlap.
  EXPECT_EQ(ConstraintError("memcpy.f16.nmem.gmem", {0, 0, 64, 1, 0, 0}), "");
}

TEST(Cost, FollowsTheTable) {
  isa::Machine machine = AllParameters(1);
  machine.Set("vector.start", 16);
  machine.Set("vector.bytes", 128);
  machine.Set("vector.slow", 4);
  machine.Set("tensor.start", 64);
  machine.Set("tensor.macs_i8", 4096);
  machine.Set("tensor.macs_f16", 0);
  machine.Set("tensor.read_bytes", 256);
  machine.Set("tensor.write_bytes", 256);
  const auto cost = [&](std::string_view mnemonic, std::vector<int64_t> values) {
    const auto cycles = DianNao().Cost(Get(mnemonic), values, machine);
    return cycles.ok() ? *cycles : -1;
  };
  EXPECT_EQ(cost("add.f16", {0, 0, 0, 64}), 17);
  EXPECT_EQ(cost("add.f16", {0, 0, 0, 0}), 16);
  EXPECT_EQ(cost("add.f32", {0, 0, 0, 128}), 20);
  EXPECT_EQ(cost("add.i8", {0, 0, 0, 64}), 17);  // 64 operations a cycle
  EXPECT_EQ(cost("exp.f16", {0, 0, 256}), 32);
  // 2 x 3 positions, 64 channels, k = 3 * 3 * 5 = 45 padded to 64.
  const std::vector<int64_t> conv = {0, 0, 0, 2, 3, 64, 5, 3, 3, 5, 1, 1, 1, 1, 64, 64};
  EXPECT_EQ(cost("conv.i8", conv), 64 + 2 * 3 * 64 * 64 / 4096);
  // 10 rows, 128 columns, k = 64: 4096 products a cycle; for each row and 64 columns 64 bytes of input, 256 of sums.
  const std::vector<int64_t> matmul = {0, 0, 0, 10, 128, 64, 64, 128};
  EXPECT_EQ(cost("matmul.i8", matmul), 64 + 20);
  EXPECT_EQ(cost("matmul_acc.i8", matmul), 64 + 20 * (64 + 256) / 256);
  machine.Set("tensor.write_bytes", 100);
  EXPECT_EQ(cost("matmul.i8", matmul), 64 + (20 * 256 + 99) / 100);
  machine.Set("tensor.read_bytes", 10);
  EXPECT_EQ(cost("matmul.i8", matmul), 64 + 20 * 64 / 10);
  EXPECT_EQ(cost("conv_acc.i8", conv), 64 + (6 * (64 + 256) + 9) / 10);
  const auto missing = DianNao().Cost(Get("conv.f16"), conv, machine);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("tensor.macs_f16 is 0"));
  const isa::Machine lacking = AllParameters(1, "vector.start");
  EXPECT_THAT(
      std::string(DianNao().Cost(Get("add.f16"), {0, 0, 0, 64}, lacking).status().message()),
      HasSubstr("lacks the parameter vector.start"));
}

// A compiler that asks what one instruction costs depends on that instruction's parameters alone.
TEST(Cost, ReadsWhatTheRowNames) {
  const isa::Machine machine = AllParameters(1);
  const ParameterReads reads;
  ASSERT_TRUE(DianNao().Cost(Get("add.f16"), {0, 0, 0, 64}, machine).ok());
  EXPECT_THAT(reads.Values(machine),
              ElementsAre(Pair("vector.bytes", "1"), Pair("vector.start", "1")));
}

// ---- footprints -----------------------------------------------------------------------

struct Touch {
  int operand;
  bool is_write;
  int64_t byte;
  auto operator<=>(const Touch&) const = default;
};

// Follows the loops of a meaning and records each byte that it loads or stores.
class Tracer {
 public:
  Tracer(const Instruction& instruction, const std::vector<int64_t>& values)
      : instruction_(instruction), values_(values) {
    for (size_t o = 0; o < values.size(); ++o) {
      const ir::Param& param = instruction.meaning.params[instruction.operands[o].param];
      if (param.var) env_[param.var.node()] = values[o];
    }
    Run(instruction.meaning.body);
  }
  const std::set<Touch>& touched() const { return touched_; }

 private:
  int64_t Eval(Expr e) {
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return e.int_value();
      case ExprKind::kVar:
        return env_.at(e.node());
      case ExprKind::kAdd:
        return Eval(e.operand(0)) + Eval(e.operand(1));
      case ExprKind::kSub:
        return Eval(e.operand(0)) - Eval(e.operand(1));
      case ExprKind::kMul:
        return Eval(e.operand(0)) * Eval(e.operand(1));
      case ExprKind::kDiv: {
        const int64_t a = Eval(e.operand(0)), b = Eval(e.operand(1));
        POLYNAO_CHECK(a >= 0 && b > 0) << a << " / " << b;
        return a / b;
      }
      default:
        POLYNAO_UNREACHABLE(ir::ExprKindName(e.kind()));
    }
  }

  void Record(const ir::BufferNode* buffer, absl::Span<const Expr> indices, bool is_write) {
    int64_t flat = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const int64_t index = Eval(indices[d]), extent = Eval(buffer->extents[d]);
      ASSERT_GE(index, 0) << buffer->name;
      ASSERT_LT(index, extent) << buffer->name << " of " << instruction_.mnemonic;
      flat = flat * extent + index;
    }
    for (size_t o = 0; o < values_.size(); ++o) {
      const Operand& operand = instruction_.operands[o];
      const ir::Param& param = instruction_.meaning.params[operand.param];
      if (param.buffer.node() != buffer || operand.kind != OperandKind::kAddress) continue;
      for (int64_t b = 0; b < ByteSize(buffer->type); ++b) {
        const Touch touch{static_cast<int>(o), is_write,
                          values_[o] + flat * ByteSize(buffer->type) + b};
        if (!is_write && param.access == ir::Access::kOut) {
          EXPECT_TRUE(touched_.contains({touch.operand, true, touch.byte}))
              << instruction_.mnemonic << " reads " << operand.name << " before it writes it";
        } else {
          touched_.insert(touch);
        }
      }
    }
  }

  void RecordLoads(Expr e) {
    for (Expr operand : e.operands()) RecordLoads(operand);
    if (e.Is(ExprKind::kLoad)) Record(e.buffer(), e.operands(), false);
  }

  void Run(Stmt s) {
    if (s.Is(StmtKind::kFor)) {
      const int64_t min = Eval(s.min()), extent = Eval(s.extent());
      for (int64_t i = min; i < min + extent; ++i) {
        env_[s.var().node()] = i;
        Run(s.body());
      }
      return;
    }
    for (Expr operand : s.operands()) RecordLoads(operand);
    if (s.Is(StmtKind::kStore)) Record(s.buffer().node(), s.indices(), true);
    for (Stmt child : s.children()) Run(child);
  }

  const Instruction& instruction_;
  const std::vector<int64_t>& values_;
  std::map<const ir::ExprNode*, int64_t> env_;
  std::set<Touch> touched_;
};

TEST(Footprint, IsExactlyWhatTheMeaningTouches) {
  std::mt19937_64 random(kSeed);
  for (const Instruction& instruction : DianNao().instructions()) {
    const bool has_memory =
        std::any_of(instruction.operands.begin(), instruction.operands.end(),
                    [](const Operand& o) { return o.kind == OperandKind::kAddress; });
    // Copies differ in the element's size only.
    if (!has_memory || instruction.mnemonic.ends_with(".async")) continue;
    for (int trial = 0; trial < 3; ++trial) {
      const auto values = RandomOperands(DianNao(), instruction, kBytes, random);
      ASSERT_TRUE(values) << instruction.mnemonic;
      const Tracer tracer(instruction, *values);
      std::set<Touch> found;
      for (const ByteRanges& range : DianNao().Footprint(instruction, *values)) {
        int64_t end = range.begin;
        range.ForEachRun([&](int64_t begin, int64_t size) {
          for (int64_t b = begin; b < begin + size; ++b) {
            found.insert({range.operand, range.is_write, b});
          }
          end = std::max(end, begin + size);
        });
        EXPECT_EQ(range.end(), end) << DescribeOperands(instruction, *values);
        EXPECT_EQ(range.space, instruction.operands[range.operand].space);
      }
      ASSERT_EQ(found, tracer.touched()) << DescribeOperands(instruction, *values);
    }
  }
}

TEST(Footprint, IsMergedIntoLongRuns) {
  // Whole rows are one run.
  auto ranges = DianNao().Footprint(Get("memcpy.f16.nmem.gmem"), {0, 4096, 64, 10, 64, 64});
  ASSERT_EQ(ranges.size(), 2u);
  for (const ByteRanges& range : ranges) {
    EXPECT_EQ(range.run, 1280);
    EXPECT_TRUE(range.dims.empty());
  }
  // Strided segments are one dimension.
  ranges = DianNao().Footprint(Get("memcpy.f16.nmem.gmem"), {0, 4096, 64, 10, 64, 100});
  for (const ByteRanges& range : ranges) {
    EXPECT_EQ(range.dims.size(), range.is_write ? 0u : 1u);
    EXPECT_EQ(range.byte_count(), 1280);
  }
  // A convolution's windows overlap; the source is one run all the same.
  ranges = DianNao().Footprint(Get("conv.i8"),
                               {0, 4096, 0, 4, 4, 64, 6, 3, 3, 64, 1, 1, 1, 1, 576, 576});
  for (const ByteRanges& range : ranges) {
    if (range.operand == 1) {
      EXPECT_EQ(range.run, 6 * 6 * 64);
    }
    if (range.operand == 0) {
      EXPECT_EQ(range.run, 4 * 4 * 64 * 4);
    }
  }
  EXPECT_TRUE(DianNao().Footprint(Get("add.f16"), {0, 128, 256, 0}).empty());
}

TEST(Footprint, FallsBackToTheDeclaredExtent) {
  const auto set = LoadText(Row(
      "gather(dst: f16[n] @nmem out, src: f16[m] @nmem in, at: i32[n] @nmem in, n: i64, m: i64) "
      "{ for (i: i64, 0, n) { dst[i] = src[at[i]] } }"));
  ASSERT_TRUE(set.ok()) << set.status();
  const auto ranges = (*set)->Footprint(*(*set)->Find("gather"), {0, 1000, 2000, 4, 30});
  ASSERT_EQ(ranges.size(), 3u);
  for (const ByteRanges& range : ranges) {
    EXPECT_EQ(range.run, range.operand == 0 ? 8 : range.operand == 1 ? 60 : 16);
  }
}

// ---- execution ------------------------------------------------------------------------

TEST(Execute, NativeEqualsInterpreted) {
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(StrCat("seed ", kSeed));
  for (const Instruction& instruction : DianNao().instructions()) {
    if (!DianNao().HasNativeRoutine(instruction)) continue;
    const int trials = instruction.family.starts_with("memcpy") ? 2 : 6;
    for (int trial = 0; trial < trials; ++trial) {
      const auto values = RandomOperands(DianNao(), instruction, kBytes, random);
      ASSERT_TRUE(values) << instruction.mnemonic;
      TestMachine machine(kBytes);
      FillOperands(DianNao(), instruction, *values, &machine, random);
      TestMachine other = machine;
      std::vector<int64_t> written(values->size(), 99), other_written(values->size(), -5);
      const absl::Status native =
          DianNao().Execute(instruction, *values, machine.View(), absl::MakeSpan(written));
      const absl::Status meaning =
          DianNao().Interpret(instruction, *values, other.View(), absl::MakeSpan(other_written));
      ASSERT_EQ(native, meaning) << DescribeOperands(instruction, *values);
      UnifyNans(DianNao(), instruction, *values, &machine);
      UnifyNans(DianNao(), instruction, *values, &other);
      for (int s = 0; s < kSpaceCount; ++s) {
        for (int64_t b = 0; b < kBytes; ++b) {
          ASSERT_EQ(machine.memory[s][b], other.memory[s][b])
              << SpaceName(Space(s)) << " byte " << b << "\n"
              << DescribeOperands(instruction, *values);
        }
      }
      EXPECT_EQ(machine.pc, other.pc) << instruction.mnemonic;
      for (size_t o = 0; o < values->size(); ++o) {
        const Operand& operand = instruction.operands[o];
        if (operand.kind != OperandKind::kWritten) continue;
        const bool is_nan = IsFloat(operand.type) &&
                            std::isnan(ir::LoadFloat(operand.type, &written[o])) &&
                            std::isnan(ir::LoadFloat(operand.type, &other_written[o]));
        EXPECT_TRUE(is_nan || written[o] == other_written[o])
            << written[o] << " and " << other_written[o] << "\n"
            << DescribeOperands(instruction, *values);
      }
    }
  }
}

int64_t RunScalar(std::string_view mnemonic, std::vector<int64_t> values, TestMachine* machine) {
  std::vector<int64_t> written(values.size());
  const absl::Status status =
      DianNao().Execute(Get(mnemonic), values, machine->View(), absl::MakeSpan(written));
  EXPECT_TRUE(status.ok()) << status;
  return written.empty() ? 0 : written[0];
}

TEST(Execute, ScalarInstructions) {
  TestMachine machine(64);
  EXPECT_EQ(RunScalar("li", {0, -5}, &machine), -5);
  EXPECT_EQ(RunScalar("div", {0, -7, 2}, &machine), -4);
  EXPECT_EQ(RunScalar("mod", {0, -7, 2}, &machine), 1);
  EXPECT_EQ(RunScalar("and", {0, -4, 0x7fffffffffffffff}, &machine), 0x7ffffffffffffffc);
  EXPECT_EQ(RunScalar("or", {0, INT64_MIN, 5}, &machine), INT64_MIN + 5);
  EXPECT_EQ(RunScalar("xor", {0, -1, 5}, &machine), ~int64_t{5});
  EXPECT_EQ(RunScalar("shl", {0, 3, 62}, &machine), int64_t{3} << 62);
  EXPECT_EQ(RunScalar("shr", {0, -9, 1}, &machine), -5);
  EXPECT_EQ(RunScalar("wrap.i8", {0, 130}, &machine), -126);
  EXPECT_EQ(RunScalar("fadd.f16", {0, 0x3c00, 0x3c00}, &machine), 0x4000);  // 1 + 1
  EXPECT_EQ(RunScalar("convert.i32.f16", {0, 0xc500}, &machine), -5);
  EXPECT_EQ(RunScalar("convert.f16.i64", {0, -5}, &machine), 0xc500);
  EXPECT_EQ(RunScalar("flt.f32", {0, 0, 0x3f800000}, &machine), 1);
  EXPECT_EQ(RunScalar("arg", {0, 3}, &machine), 2997);

  EXPECT_EQ(RunScalar("blt", {1, 1, 40}, &machine), 0);
  EXPECT_EQ(machine.pc, 7);
  RunScalar("bge", {1, 1, 40}, &machine);
  EXPECT_EQ(machine.pc, 40);
  RunScalar("halt", {}, &machine);
  EXPECT_EQ(machine.pc, -1);

  RunScalar("store.i16.nmem", {10, -2}, &machine);
  EXPECT_EQ(RunScalar("load.i16.nmem", {0, 10}, &machine), -2);
  EXPECT_EQ(RunScalar("load.u8.nmem", {0, 10}, &machine), 254);
  EXPECT_EQ(RunScalar("load.f16.nmem", {0, 10}, &machine), 0xfffe & 0xffff ? 0xfffe : 0);
}

// Registers hold anything. What passes the checks that the simulator makes must be safe to execute.
TEST(Execute, HostileOperandsNeverCrash) {
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(StrCat("seed ", kSeed));
  const int64_t interesting[] = {0,
                                 1,
                                 -1,
                                 2,
                                 3,
                                 64,
                                 128,
                                 -64,
                                 4096,
                                 int64_t{1} << 31,
                                 int64_t{1} << 32,
                                 int64_t{1} << 56,
                                 int64_t{1} << 62,
                                 INT64_MAX,
                                 INT64_MIN,
                                 INT64_MAX - 127};
  int executed = 0, rejected = 0;
  for (int trial = 0; trial < 40000; ++trial) {
    const auto instructions = DianNao().instructions();
    const Instruction& instruction = instructions[random() % instructions.size()];
    TestMachine machine(4096);
    std::vector<int64_t> values;
    for (size_t o = 0; o < instruction.operands.size(); ++o) {
      values.push_back(interesting[random() % (random() % 2 ? 8 : std::size(interesting))]);
    }
    bool safe = DianNao().CheckConstraints(instruction, values).ok();
    if (safe) {
      for (const ByteRanges& range : DianNao().Footprint(instruction, values)) {
        safe &= range.begin >= 0 && range.end() <= 4096;
        EXPECT_LE(range.begin, range.end()) << DescribeOperands(instruction, values);
      }
    }
    (safe ? executed : rejected) += 1;
    if (!safe) continue;
    std::vector<int64_t> written(values.size());
    // Arguments that do not exist and wrapping indices are errors; that is fine.
    (void)DianNao().Execute(instruction, values, machine.View(), absl::MakeSpan(written));
  }
  EXPECT_GT(executed, 1000);
  EXPECT_GT(rejected, 1000);
}

TEST(Footprint, DoesNotWrapAround) {
  const int64_t huge = int64_t{1} << 61;
  for (const ByteRanges& range :
       DianNao().Footprint(Get("memcpy.f32.nmem.gmem"), {0, 0, huge, 4, huge, huge})) {
    EXPECT_GE(range.end(), int64_t{1} << 62);
  }
  for (const ByteRanges& range : DianNao().Footprint(Get("fill.f32"), {128, 0, INT64_MAX - 63})) {
    EXPECT_GE(range.end(), int64_t{1} << 62);
  }
}

TEST(Execute, MissingArgumentIsAnError) {
  TestMachine machine(64);
  std::vector<int64_t> written(2);
  const absl::Status status = DianNao().Execute(Get("arg"), std::vector<int64_t>{0, 16},
                                                machine.View(), absl::MakeSpan(written));
  EXPECT_THAT(std::string(status.message()), HasSubstr("argument 16 does not exist"));
}

// ---- loading a table ------------------------------------------------------------------

TEST(Load, ErrorsNameThePlaceAndTheReason) {
  const std::string ok = "ok(dst: f16[n] @nmem out, n: i64) { for (i: i64, 0, n) { dst[i] = 0 } }";
  const std::pair<std::string, std::string> cases[] = {
      {Row(ok, "@opcode(1) @unit(vector) @cost(1)"), "test.nir:1: ok: the row lacks @doc"},
      {Row(ok, "@doc(\"d\") @unit(vector) @cost(1)"), "the row lacks @opcode"},
      {Row(ok, "@doc(\"d\") @opcode(1) @cost(1)"), "the row lacks @unit"},
      {Row(ok, "@doc(\"d\") @opcode(1) @unit(vector)"), "the row lacks @cost"},
      {Row(ok, "@doc(\"d\") @opcode(256) @unit(vector) @cost(1)"), "found 256"},
      {Row(ok, "@doc(\"d\") @opcode(1) @opcode(2) @unit(vector) @cost(1)"), "given twice"},
      {Row(ok, "@doc(\"d\") @opcode(1) @unit(vectr) @cost(1)"), "found vectr"},
      {Row(ok, "@doc(\"d\") @opcode(1) @unit(vector) @cost(1) @fast"), "@fast is no attribute"},
      {Row(ok, "@doc(\"d\") @opcode(1) @unit(vector) @cost(1) @require(n + 1)"),
       "expected a condition in @require, found n + 1"},
      {Row(ok, "@doc(\"d\") @opcode(1) @unit(vector) @cost(1) @require(m == 1)"),
       "'m' is no scalar operand"},
      {Row(ok, "@doc(\"d\") @opcode(1) @unit(vector) @cost(1) @drains(io)"), "need @unit(control)"},
      {Row(ok) + Row("ok2(n: i64) { }"), "opcode 1 is that of the row at test.nir:1"},
      {Row("ok(dst: f16[n] @l2 out, n: i64) { for (i: i64, 0, n) { dst[i] = 0 } }"),
       "'dst' is in @l2, expected one of"},
      {Row("ok(dst: f16[n] @nmem in, n: i64) { for (i: i64, 0, n) { dst[i] = 0 } }"),
       "writes 'dst', which is declared `in`"},
      {Row("ok(a: i64 @imm, b: i64 @imm) { }"), "operands need 144 bits"},
      {Row("ok(a: f32 @imm) { }"), "must be an integer"},
      {Row("ok(a: i64 @mem) { }"), "expected @imm or nothing"},
      {Row("ok(n: i64) { x[0] = 1 }"), "test.nir:2:"},
      {"@variants(T, f16) " + Row("ok(n: i64) { }"), "does not use T"},
      {Row(ok, "@doc(\"d\") @opcode(1) @unit(vector) @cost(1) @form(fine)"),
       "test.nir:1: ok: @form(fine) must name a family"},
      {Row(ok, "@doc(\"d\") @opcode(1) @unit(vector) @cost(1) @form(ok)"), "no form itself"},
      {Row(ok, "@doc(\"d\") @opcode(1) @unit(vector) @cost(1) @form(1 + n)"),
       "expected @form(family)"},
      {Row("ok(n: i64) { }", "@doc(\"d\") @opcode(1) @unit(scalar) @cost(1) @form(ok)"),
       "@form needs a unit with a queue"},
  };
  for (const auto& [text, expected] : cases) {
    const auto set = LoadText(text);
    ASSERT_FALSE(set.ok()) << text;
    EXPECT_THAT(std::string(set.status().message()), HasSubstr(expected)) << text;
  }
  EXPECT_TRUE(LoadText(Row(ok)).ok());
}

TEST(Load, FormsNameTheirFamily) {
  EXPECT_EQ(Get("memcpy3d.f16.nmem.gmem").form_of, "memcpy");
  EXPECT_EQ(Get("conv_acc.i8").form_of, "conv");
  EXPECT_EQ(Get("matmul_acc.i8").form_of, "matmul");
  EXPECT_EQ(Get("conv.i8").form_of, "");
}

TEST(Load, AnotherTableJoinsTheFirst) {
  const auto set = InstructionSet::Load(
      {{"a.nir", Row("one(n: i64) { }")},
       {"b.nir", Row("two(n: i64) { }", "@doc(\"d\") @opcode(2) @unit(vector) @cost(n)")}});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ((*set)->instructions().size(), 2u);
  EXPECT_EQ(*(*set)->Cost(*(*set)->Find("two"), {17}, isa::Machine()), 17);
  EXPECT_EQ((*set)->intrinsics().FindMeaning("two"), &(*set)->Find("two")->meaning);
  EXPECT_EQ((*set)->intrinsics().FindMeaning("three"), nullptr);
}

TEST(Load, MutatedTablesNeverCrash) {
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(StrCat("seed ", kSeed));
  const std::string text =
      "@doc(\"d\") @opcode(7)\n@variants((T, _N), (f16, 2), (f32, 4))\n@unit(vector) @wait(1)\n"
      "@require(n % 64 == 0, &dst[0] % 128 == 0)\n@cost(start + (n * sizeof(T) + 3) / _N)\n"
      "func op(dst: T[n] @nmem out, a: T[n] @nmem in, n: i64, k: i32 @imm) {\n"
      "  for (i: i64, 0, n) { dst[i] = max(a[i], 0) * T(2) }\n}\n";
  ASSERT_TRUE(LoadText(text).ok()) << LoadText(text).status();
  int accepted = 0;
  for (int trial = 0; trial < 10000; ++trial) {
    std::string mutated = text;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % mutated.size();
      switch (random() % 3) {
        case 0:
          mutated.erase(at, 1 + random() % 8);
          break;
        case 1:
          mutated[at] = static_cast<char>(random() % 128);
          break;
        default:
          mutated.insert(at, mutated.substr(random() % mutated.size(), random() % 12));
      }
      if (mutated.empty()) mutated = text;
    }
    accepted += LoadText(mutated).ok() ? 1 : 0;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 10000);
}

}  // namespace
}  // namespace polynao::isa
