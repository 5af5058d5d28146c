#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/text.h"
#include "isa/program.h"
#include "isa/test_operands.h"

namespace polynao::isa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr uint64_t kSeed = 20240609;

std::string ErrorOf(std::string_view text) {
  const auto program = Assemble(DianNao(), text, "t.nasm");
  return program.ok() ? "" : std::string(program.status().message());
}

Program MustAssemble(std::string_view text) {
  auto program = Assemble(DianNao(), text, "t.nasm");
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : Program();
}

TEST(Assembler, ReadsAProgram) {
  const Program program = MustAssemble(R"(
.program add                  # adds
.tensor x f16 any in
.tensor y f32 [4, 5] inout    // other comments
.scalar n i64
.equ TILE 0x400
.equ HALF TILE - 512
.reg size r5

start: again:
  li size, TILE + HALF
  li r2, f16(-1.5)
  blt size, r2, done
  add.f16 r1, r2, r3, size
  jump start
done:
  halt
)");
  EXPECT_EQ(program.name, "add");
  ASSERT_EQ(program.params.size(), 3u);
  EXPECT_TRUE(program.params[0].any_shape);
  EXPECT_EQ(program.params[1].shape, (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(program.params[1].access, ir::Access::kInOut);
  EXPECT_FALSE(program.params[2].is_tensor);
  EXPECT_EQ(program.labels, (std::map<int64_t, std::string>{{0, "start"}, {5, "done"}}));
  ASSERT_EQ(program.code.size(), 6u);
  const auto li = DianNao().Decode(program.code[0]);
  EXPECT_EQ(li->fields, (std::vector<int64_t>{5, 1536}));
  EXPECT_EQ(DianNao().Decode(program.code[1])->fields[1], 0xbe00);
  EXPECT_EQ(DianNao().Decode(program.code[2])->fields, (std::vector<int64_t>{5, 2, 5}));
  EXPECT_EQ(DisassembleWord(DianNao(), program, 3), "add.f16 r1, r2, r3, r5");
  EXPECT_EQ(DisassembleWord(DianNao(), program, 4), "jump start");
  EXPECT_EQ(DisassembleWord(DianNao(), program, 5), "halt");
}

TEST(Assembler, DisassemblesToTextThatReadsBack) {
  Program program = MustAssemble(
      ".program p\n.machine \"core.nmem_kib=512\"\n.machine \"gmem.dram=\"\n.assert \"n % 64 == "
      "0\"\n.reassociated\n.tensor a.b bf16 [] "
      "out\n.tensor w i8 [64, 9] in parts(64, 3)\n.temporary t f32 [4, 0]\nloop:\n  addi r1, r2, "
      "-9223372036854775808\n"
      "  bne r1, r63, loop\n  jump 7\nend:\n");
  program.params[0].name = "odd name \"\\\n\xff";
  EXPECT_THAT(program.machine, ElementsAre(Pair("core.nmem_kib", "512"), Pair("gmem.dram", "")));
  EXPECT_THAT(program.assertions, ElementsAre("n % 64 == 0"));
  EXPECT_TRUE(program.is_reassociated);
  ASSERT_EQ(program.params.size(), 3u);
  EXPECT_EQ(program.params[1].rows, 64);
  EXPECT_EQ(program.params[1].parts, 3);
  EXPECT_TRUE(program.params[2].is_temporary);
  const auto text = Disassemble(DianNao(), program);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(MustAssemble(*text), program) << *text;
}

TEST(Assembler, EveryInstructionRoundTrips) {
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(StrCat("seed ", kSeed));
  for (const Instruction& instruction : DianNao().instructions()) {
    Program program;
    for (int trial = 0; trial < 4; ++trial) {
      std::vector<int64_t> fields;
      for (const Operand& operand : instruction.operands) {
        fields.push_back(
            operand.kind == OperandKind::kImmediate
                ? ir::WrapInt(operand.type, static_cast<int64_t>(random() >> (random() % 64)))
                : static_cast<int64_t>(random() % kRegisterCount));
      }
      program.code.push_back(*DianNao().Encode(instruction, fields));
    }
    const auto text = Disassemble(DianNao(), program);
    ASSERT_TRUE(text.ok()) << text.status();
    const Program again = MustAssemble(*text);
    EXPECT_EQ(again.code, program.code) << *text;
    EXPECT_EQ(*Deserialize(Serialize(again), "p"), again);
    EXPECT_EQ(*Disassemble(DianNao(), again), *text);
  }
}

TEST(Assembler, ErrorsNamePlaceExpectedAndFound) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"li r1", "t.nasm:1:6: expected ',', found the end of the line"},
      {"\n  li r1, x", "t.nasm:2:10: expected a constant or a label, found 'x'"},
      {"li 5, 5", "t.nasm:1:4: expected a register (r0 to r63), found '5'"},
      {"li r64, 5", "t.nasm:1:4: expected a register (r0 to r63), found 'r64'"},
      {"li r01, 5", "found 'r01'"},
      {"li r1, 5 6", "t.nasm:1:10: expected the end of the line, found '6'"},
      {"li r1, 9223372036854775808", "expected an integer of 64 bits"},
      {"li r1, 0x10000000000000000", "expected an integer of 64 bits"},
      {"li r1, 12ab", "expected an integer of 64 bits, found '12ab'"},
      {"li r1, 1.5", "expected a number, a constant or a label, found '1.5'"},
      {"li r1, f16(x)", "expected a number, found 'x'"},
      {"li r1, i32(1)", "expected a float type, found i32"},
      {"add.f15 r1, r2, r3, r4",
       "t.nasm:1:1: expected an instruction (add, add.f16, add.f32, add.i32, add.i16, add.i8), "
       "found "
       "'add.f15'"},
      {"frob", "t.nasm:1:1: expected an instruction, found 'frob'"},
      {", r1", "expected a label, a directive or an instruction, found ','"},
      {"a:\nhalt\na:", "t.nasm:3:1: 'a' is defined already"},
      {".equ a 1\na:", "'a' is defined already"},
      {".reg a r1\n.equ a 1", "'a' is defined already"},
      {"r1: halt", "expected a label (this is a register), found 'r1'"},
      {".reg r2 r1", "(this is a register)"},
      {".tensor x f17 any in", "t.nasm:1:11: expected a type"},
      {".tensor x f16 in", "expected a shape such as [4, 5], or any, found 'in'"},
      {".tensor x f16 [4 5] in", "expected ',', found '5'"},
      {".tensor x f16 [-4] in", "at least 0, found -4"},
      {".temporary x f16 any", "expected a shape such as [4, 5], found 'any'"},
      {".temporary x f16 [4] out", "expected the end of the line, found 'out'"},
      {".tensor x f16 any", "expected in, out or inout, found the end of the line"},
      {".tensor x f16 [4, 6] in parts(4, 4)",
       "expected an input with a shape whose elements are so many rows"},
      {".tensor x f16 [4, 6] in parts(4 2)", "expected ',', found"},
      {".program a\n.program b", "t.nasm:2:1: a second .program"},
      {".machine nmem", "expected \"name=value\" of a machine's parameter, found \"nmem\""},
      {".machine \"a=1\"\n.machine \"a=2\"", "a second a"},
      {".data 5",
       "expected .program, .machine, .assert, .reassociated, .tensor, .scalar, .temporary, .equ or "
       ".reg, found '.data'"},
      {".program \"abc", "a string that no quote ends"},
      {".program \"a\\x9\"", "two hexadecimal digits"},
      {"halt !", "a character that means nothing: '!'"},
      {"halt \x01", "byte 1"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_THAT(ErrorOf(text), HasSubstr(expected)) << text;
  EXPECT_EQ(ErrorOf(""), "");
  EXPECT_EQ(ErrorOf("halt"), "");
  EXPECT_EQ(ErrorOf("  # nothing\r\n\t\n"), "");
}

TEST(Assembler, BadWordsDoNotDisassemble) {
  Program program;
  program.code = {Word{}};
  EXPECT_THAT(DisassembleWord(DianNao(), program, 0), HasSubstr("<bad word: no instruction"));
  EXPECT_THAT(std::string(Disassemble(DianNao(), program).status().message()),
              HasSubstr("instruction 0: no instruction has opcode 0"));
  program.code.clear();
  program.labels = {{0, "not an identifier"}};
  EXPECT_FALSE(Disassemble(DianNao(), program).ok());
  program.labels = {{1, "beyond"}};
  EXPECT_FALSE(Disassemble(DianNao(), program).ok());
}

TEST(Assembler, MutatedTextsNeverCrash) {
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(StrCat("seed ", kSeed));
  const std::string text =
      ".program p\n.tensor x f16 [4, 5] in\n.scalar n i64\n.equ K 5 + 3\n.reg a r7\nl: li a, K - "
      "1\n"
      "li r2, f32(-1e3)\nblt a, r2, end\nadd.f16 r1, r2, r3, a\njump l # c\nend: halt\n";
  MustAssemble(text);
  int accepted = 0;
  for (int trial = 0; trial < 30000; ++trial) {
    std::string mutated = text;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % (mutated.size() + 1);
      switch (random() % 3) {
        case 0:
          mutated.erase(at, random() % 9);
          break;
        case 1:
          mutated.insert(at, 1, static_cast<char>(random()));
          break;
        default:
          mutated.insert(at, mutated.substr(random() % (mutated.size() + 1), random() % 20));
      }
    }
    const auto program = Assemble(DianNao(), mutated, "t.nasm");
    if (!program.ok()) {
      EXPECT_THAT(std::string(program.status().message()), HasSubstr("t.nasm:")) << mutated;
      continue;
    }
    ++accepted;
    const auto again = Disassemble(DianNao(), *program);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << mutated;
    EXPECT_EQ(MustAssemble(*again), *program) << mutated;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 29000);
}

TEST(Assembler, RandomWordsDecodeOrFail) {
  std::mt19937_64 random(kSeed);
  int decoded = 0;
  for (int trial = 0; trial < 30000; ++trial) {
    // An instruction with few operands uses few bits of its word; the others must be zero.
    const Word word{random() >> (random() % 64), random() % 4 ? 0 : random() >> (random() % 64)};
    const auto result = DianNao().Decode(word);
    if (!result.ok()) continue;
    ++decoded;
    EXPECT_EQ(*DianNao().Encode(*result->instruction, result->fields), word);
  }
  EXPECT_GT(decoded, 100);
}

// A row of text is all that a new instruction needs.
TEST(Assembler, ANewInstructionIsARowOfText) {
  const auto set = InstructionSet::Load({{"base.nir", R"(
@doc("rd = value.") @opcode(1) @unit(scalar) @cost(1)
func li(rd: i64[1] @reg out, value: i64 @imm) { rd[0] = value })"},
                                         {"new.nir", R"(
@doc("dst = a * lhs + rhs.")
@opcode(200)
@variants(T, f16, f32)
@unit(vector)
@require(count % 64 == 0)
@cost(start + count * sizeof(T) / 128)
func axpy(dst: T[count] @nmem out, lhs: T[count] @nmem in, rhs: T[count] @nmem in, a: T, count: i64) {
  for (i: i64, 0, count) { dst[i] = a * lhs[i] + rhs[i] }
})"}});
  ASSERT_TRUE(set.ok()) << set.status();
  const auto program = Assemble(**set, "li r4, f32(2.5)\naxpy.f32 r1, r2, r3, r4, r5", "axpy.nasm");
  ASSERT_TRUE(program.ok()) << program.status();
  const auto decoded = (*set)->Decode(program->code[1]);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const Instruction& axpy = *decoded->instruction;
  EXPECT_TRUE(axpy.lanewise);
  EXPECT_TRUE((*set)->HasNativeRoutine(axpy));

  TestMachine machine(4096);
  float* memory = reinterpret_cast<float*>(machine.memory[int(Space::kNmem)].data());
  for (int i = 0; i < 64; ++i) {
    memory[i] = static_cast<float>(i);
    memory[64 + i] = 100;
  }
  const std::vector<int64_t> values = {512, 0, 256, (*set)->Decode(program->code[0])->fields[1],
                                       64};
  EXPECT_TRUE((*set)->CheckConstraints(axpy, values).ok());
  isa::Machine costs;
  costs.Set("start", 16);
  EXPECT_EQ(*(*set)->Cost(axpy, values, costs), 18);
  std::vector<int64_t> written(values.size());
  ASSERT_TRUE((*set)->Execute(axpy, values, machine.View(), absl::MakeSpan(written)).ok());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(memory[128 + i], 2.5f * i + 100);
}

}  // namespace
}  // namespace polynao::isa
