// Nests of many forms on the card: which instructions they become, and which stay scalar code, with the reason.
// All run on the simulated card, and the values are those of the interpreter.
#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/registry/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "simulator/simulator.h"
#include "testing/machine.h"

namespace polynao {
namespace {

const Target& Card() {
  static const auto* machine = new isa::Machine(TestMachine("unit"));
  static const auto* target = new Target{"diannao", &isa::DianNao(), machine};
  return *target;
}

absl::StatusOr<ir::Function> Lowered(const ir::Function& function) {
  ir::Function lowered = ir::CloneInto(function, std::make_shared<ir::Context>());
  ASSIGN_OR_RETURN(std::vector<PassSpec> passes, PipelineFor(Card()));
  RETURN_IF_ERROR(RunPasses(lowered, passes, Card()));
  return lowered;
}

absl::StatusOr<ir::Runner> RunnerOf(const ir::Function& lowered) {
  ASSIGN_OR_RETURN(isa::Program program, GenerateDianNao(lowered, Card()));
  return ir::Runner([program, lowered](absl::Span<const ir::Argument> arguments) {
    std::vector<simulator::Argument> card;
    std::vector<std::pair<ir::Tensor*, std::vector<int64_t>>> shapes;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].tensor == nullptr) {
        int64_t bits = arguments[i].int_value;
        const ir::Type type = lowered.params[i].var.type();
        if (ir::IsFloat(type)) {
          bits = 0;
          ir::StoreFloat(type, reinterpret_cast<uint8_t*>(&bits), arguments[i].float_value);
        }
        card.push_back(simulator::Argument::Scalar(bits));
        continue;
      }
      ir::Tensor* tensor = arguments[i].tensor;
      shapes.emplace_back(tensor, tensor->shape);
      if (!program.params[i].any_shape) tensor->shape = program.params[i].shape;
      card.push_back(simulator::Argument::Of(tensor));
    }
    simulator::RunOptions options;
    options.machine = Card().machine;
    const auto result = simulator::Run(*Card().instructions, program, card, options);
    for (auto& [tensor, shape] : shapes) tensor->shape = shape;
    return result.status();
  });
}

// The families of the queued instructions, and "scalar" for stores that the scalar unit does, in
// the order of the program, each once in a row: "memcpy add scalar".
std::string Forms(const ir::Function& lowered) {
  std::string forms;
  std::string last;
  ir::ForEachStmt(lowered.body, [&](ir::Stmt s) {
    std::string form;
    if (s.Is(ir::StmtKind::kStore)) form = "scalar";
    if (s.Is(ir::StmtKind::kEvaluate)) {
      const std::string name(s.value().name());
      if (!name.starts_with("sync") && !name.starts_with("barrier")) {
        form = name.substr(0, name.find('.'));
      }
    }
    if (!form.empty() && form != last) StrAppend(&forms, forms.empty() ? "" : " ", form);
    if (!form.empty()) last = form;
    return true;
  });
  return forms;
}

struct Case {
  const char* name;
  const char* params;
  const char* body;
  const char* forms;
};

class CardNests : public testing::TestWithParam<Case> {};

TEST_P(CardNests, Form) {
  const Case& c = GetParam();
  const std::string text = StrCat("func f(", c.params, ") {\n", c.body, "}\n");
  const absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  ASSERT_TRUE(function.ok()) << function.status() << "\n" << text;
  const absl::StatusOr<ir::Function> lowered = Lowered(*function);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(Forms(*lowered), c.forms) << ir::Print(*lowered);
  const absl::StatusOr<ir::Runner> runner = RunnerOf(*lowered);
  ASSERT_TRUE(runner.ok()) << runner.status();
  for (const uint64_t seed : {1, 2}) {
    ir::RandomArgumentOptions options;
    for (const int64_t n : {-3, 0, 1, 5, 37}) {
      const bool has_n = std::string(c.params).find("n: i32") != std::string::npos;
      if (!has_n && n != 5) continue;
      if (has_n) options.scalars = {{"n", ir::Argument::Int(n)}};
      EXPECT_EQ(ir::Disagreement(*function, ir::RandomArguments(*function, seed, options), *runner),
                "")
          << "n = " << n << "\n"
          << ir::Print(*lowered);
    }
  }
}

#define IN "for (i, 0, 256) { L[i] = A[i] } "
#define OUT " for (i, 0, 256) { B[i] = L[i] }"
#define LOAD "allocate L: f32[256] @nmem " IN
constexpr char kAB[] = "A: f32[256] in, B: f32[256]";
constexpr char kABn[] = "A: f32[256] in, B: f32[256], n: i32";

const Case kCases[] = {
    {"StridedCopy", kAB,
     "allocate L: f32[256] @nmem for (i, 0, 64) { L[i] = A[i * 3 + 1] } "
     "for (i, 0, 64) { B[i * 4] = L[i] }",
     "memcpy"},
    {"TransposedCopy", kAB,
     "allocate L: f32[256] @nmem "
     "for (i, 0, 16) { for (j, 0, 16) { L[j * 16 + i] = A[i * 16 + j] } }" OUT,
     "memcpy3d memcpy"},
    {"ReversedRows", kAB,
     "allocate L: f32[256] @nmem "
     "for (i, 0, 16) { for (j, 0, 16) { L[i * 16 + j] = A[(15 - i) * 16 + j] } }" OUT,
     "memcpy"},
    {"ReversedElements", kAB,
     "allocate L: f32[256] @nmem for (i, 0, 256) { L[i] = A[255 - i] }" OUT, "memcpy"},
    {"GuardOverTwoLoops", kAB,
     LOAD "for (i, 0, 16) { for (j, 0, 16) { if (i + j < 20) { B[i * 16 + j] = L[i * 16 + j] } } }",
     "memcpy"},
    {"TriangularCopy", kAB,
     LOAD "for (i, 0, 16) { for (j, 0, i + 1) { B[i * 16 + j] = L[i * 16 + j] } }", "memcpy"},
    {"TriangularAdd", kAB,
     LOAD
     "for (i, 0, 4) { for (j, 0, i + 1) { L[i * 64 + j] = L[i * 64 + j] + L[i * 64 + j] } }" OUT,
     "memcpy scalar memcpy"},
    {"OffsetAdd", kAB, LOAD "for (i, 0, 100) { L[i + 3] = L[i + 3] + L[i + 3] }" OUT,
     "memcpy scalar memcpy"},
    {"OffsetAddAligned", kAB, LOAD "for (i, 0, 128) { L[i + 32] = L[i + 32] * L[i + 32] }" OUT,
     "memcpy mul memcpy"},
    {"SymbolicCopy", kABn, LOAD "for (i, 0, n - 2) { B[i + 3] = L[i + 1] }", "memcpy"},
    {"SymbolicTiles", kABn,
     "for (t, 0, (n + 7) / 8) { allocate L: f32[8] @nmem "
     "for (i, 0, 8) { if (t * 8 + i < n) { L[i] = A[t * 8 + i] } } "
     "for (i, 0, 8) { if (t * 8 + i < n) { B[t * 8 + i] = L[i] } } }",
     "memcpy"},
    {"Remainder", kAB,
     "for (t, 0, 7) { allocate L: f32[40] @nmem "
     "for (i, 0, 40) { if (t * 40 + i < 256) { L[i] = A[t * 40 + i] } } "
     "for (i, 0, 40) { if (t * 40 + i < 256) { L[i] = L[i] + L[i] } } "
     "for (i, 0, 40) { if (t * 40 + i < 256) { B[t * 40 + i] = L[i] } } }",
     "memcpy add memcpy add memcpy"},
    {"GuardOnBothSides", kAB, LOAD "for (i, 0, 256) { if (17 <= i && i < 99) { B[i] = L[i] } }",
     "memcpy"},
    {"GuardOnTwoDimensions", kAB,
     LOAD "for (i, 0, 16) { for (j, 0, 16) { if (2 <= i && i < 9 && 1 <= j && j < 15) { "
          "B[i * 16 + j] = L[i * 16 + j] } } }",
     "memcpy"},
    {"GuardByRemainder", kAB, LOAD "for (i, 0, 256) { if (i % 2 == 0) { B[i] = L[i] } }", "memcpy"},
    {"RowAdd", "A: f32[4, 64] in, R: f32[64] in, B: f32[4, 64]",
     "allocate L: f32[4, 64] @nmem allocate K: f32[64] @nmem "
     "for (i, 0, 4) { for (j, 0, 64) { L[i, j] = A[i, j] } } for (j, 0, 64) { K[j] = R[j] } "
     "for (i, 0, 4) { for (j, 0, 64) { L[i, j] = L[i, j] + K[j] } } "
     "for (i, 0, 4) { for (j, 0, 64) { B[i, j] = L[i, j] } }",
     "memcpy row_add memcpy"},
    {"RowAddOtherOrder", "A: f32[4, 64] in, R: f32[64] in, B: f32[4, 64]",
     "allocate L: f32[4, 64] @nmem allocate K: f32[64] @nmem "
     "for (i, 0, 4) { for (j, 0, 64) { L[i, j] = A[i, j] } } for (j, 0, 64) { K[j] = R[j] } "
     "for (j, 0, 64) { for (i, 0, 4) { L[i, j] = K[j] + L[i, j] } } "
     "for (i, 0, 4) { for (j, 0, 64) { B[i, j] = L[i, j] } }",
     "memcpy row_add memcpy"},
    {"AddOtherOrder", kAB,
     LOAD "for (j, 0, 64) { for (i, 0, 4) { L[i * 64 + j] = L[i * 64 + j] + L[i * 64 + j] } }" OUT,
     "memcpy add memcpy"},
    {"CopyOtherOrder", "A: f32[8, 4, 8] in, B: f32[8, 4, 8]",
     "allocate L: f32[8, 4, 8] @nmem "
     "for (k, 0, 8) { for (j, 0, 4) { for (i, 0, 8) { L[i, j, k] = A[i, j, k] } } } "
     "for (j, 0, 4) { for (i, 0, 8) { for (k, 0, 8) { B[i, j, k] = L[i, j, k] } } }",
     "memcpy"},
    {"AddAScalar", "A: f32[256] in, B: f32[256], x: f32",
     LOAD "for (i, 0, 256) { L[i] = x + L[i] }" OUT, "memcpy adds memcpy"},
    {"SubtractANumber", kAB, LOAD "for (i, 0, 256) { L[i] = 2 - (L[i] - 0.5) }" OUT,
     "memcpy scalar memcpy"},
    {"ReduceRows", "A: f32[4, 64] in, B: f32[4]",
     "allocate L: f32[4, 64] @nmem allocate S: f32[4] @nmem "
     "for (i, 0, 4) { for (j, 0, 64) { L[i, j] = A[i, j] } } "
     "for (i, 0, 4) { S[i] = 0 for (j, 0, 64) { S[i] = S[i] + L[i, j] } } "
     "for (i, 0, 4) { B[i] = S[i] }",
     "memcpy reduce_sum memcpy"},
    {"ReduceRaggedRows", "A: f32[4, 64] in, B: f32[4]",
     "allocate L: f32[4, 64] @nmem allocate S: f32[4] @nmem "
     "for (i, 0, 4) { for (j, 0, 64) { L[i, j] = A[i, j] } } "
     "for (i, 0, 4) { S[i] = 0 for (j, 0, 60) { S[i] = S[i] + L[i, j] } } "
     "for (i, 0, 4) { B[i] = S[i] }",
     "memcpy scalar memcpy"},
    {"WideLoopVariables", kAB,
     "allocate L: f32[256] @nmem for (i: i64, 0, 256) { L[i] = A[i] } "
     "for (i: i64, 0, 256) { B[i] = L[i] }",
     "memcpy"},
    {"NarrowLoopVariables", kAB,
     "allocate L: f32[256] @nmem for (i: u8, 0, 200) { L[i] = A[i] } "
     "for (i: i16, 100, 100) { B[i] = L[i] }",
     "memcpy"},
    {"LoopsFromElsewhere", kAB,
     "allocate L: f32[256] @nmem for (i, 3, 10) { L[i - 3] = A[i * 2] } "
     "for (i, -5, 10) { B[i + 5] = L[i + 5] }",
     "memcpy"},
    {"BackwardsOnBothSides", kAB,
     "allocate L: f32[256] @nmem for (i, 0, 256) { L[255 - i] = A[255 - i] } "
     "for (i, 0, 64) { L[63 - i] = L[63 - i] + L[63 - i] } "
     "for (i, 0, 4) { for (j, 0, 64) { B[i * 64 - j + 63] = L[i * 64 - j + 63] } }",
     "memcpy add memcpy"},
    {"Fill", "B: f32[256]",
     "allocate L: f32[100] @nmem for (i, 0, 100) { L[i] = 1.5 } "
     "for (i, 0, 100) { B[i * 2] = L[i] }",
     "fill memcpy"},
    {"Shift", kAB, LOAD "for (i, 0, 255) { L[i] = L[i + 1] }" OUT, "memcpy scalar memcpy"},
    {"MaxOfIntegers", "A: i32[256] in, B: i32[256]",
     "allocate L: i32[256] @nmem " IN "for (i, 0, 256) { L[i] = max(0, L[i]) }" OUT,
     "memcpy relu memcpy"},
    {"MaxOfFloats", kAB, LOAD "for (i, 0, 256) { L[i] = max(0.0, L[i]) }" OUT,
     "memcpy scalar memcpy"},
    {"ByAScalarInMemory", "A: f32[4, 64] in, R: f32[4] in, B: f32[4, 64]",
     "allocate L: f32[4, 64] @nmem allocate K: f32[4] @nmem "
     "for (i, 0, 4) { for (j, 0, 64) { L[i, j] = A[i, j] } } for (j, 0, 4) { K[j] = R[j] } "
     "for (i, 0, 4) { for (j, 0, 64) { L[i, j] = L[i, j] * K[i] } } "
     "for (i, 0, 4) { for (j, 0, 64) { B[i, j] = L[i, j] } }",
     "memcpy scalar memcpy"},
    {"PadWithoutPragma", "A: f32[62] in, B: f32[64]",
     "allocate L: f32[64] @nmem "
     "for (i, 0, 64) { L[i] = select(1 <= i && i < 63, A[i - 1], 0.0) } "
     "for (i, 0, 64) { B[i] = L[i] }",
     "scalar memcpy scalar memcpy"},
    {"Clamp", "A: f32[64] in, B: f32[64]",
     "allocate L: f32[64] @nmem "
     "for (i, 0, 64) { L[i] = A[min(max(i - 2, 0), 60)] } for (i, 0, 64) { B[i] = L[i] }",
     "memcpy"},
    {"Cast", "A: f16[100] in, B: f32[100]",
     "allocate L: f16[100] @nmem allocate K: f32[100] @nmem "
     "for (i, 0, 100) { L[i] = A[i] } for (i, 0, 100) { K[i] = f32(L[i]) } "
     "for (i, 0, 100) { B[i] = K[i] }",
     "memcpy cast memcpy"},
    {"Matmul", "A: i8[4, 64] in, V: i8[64, 64] in, B: i32[4, 64]",
     "allocate L: i8[4, 64] @nmem allocate W: i8[64, 64] @wmem allocate S: i32[4, 64] @nmem "
     "for (i, 0, 4) { for (j, 0, 64) { L[i, j] = A[i, j] } } "
     "for (i, 0, 64) { for (j, 0, 64) { W[i, j] = V[i, j] } } "
     "pragma \"matmul\" { for (i, 0, 4) { for (o, 0, 64) { S[i, o] = 0 "
     "for (k, 0, 64) { S[i, o] = S[i, o] + i32(L[i, k]) * i32(W[o, k]) } } } } "
     "for (i, 0, 4) { for (o, 0, 64) { B[i, o] = S[i, o] } }",
     "memcpy matmul memcpy"},
    {"MatmulOtherOrder", "A: i8[4, 64] in, V: i8[64, 64] in, B: i32[4, 64]",
     "allocate L: i8[4, 64] @nmem allocate W: i8[64, 64] @wmem allocate S: i32[4, 64] @nmem "
     "for (i, 0, 4) { for (j, 0, 64) { L[i, j] = A[i, j] } } "
     "for (i, 0, 64) { for (j, 0, 64) { W[i, j] = V[i, j] } } "
     "for (i, 0, 4) { for (o, 0, 64) { S[i, o] = 0 } } "
     "for (k, 0, 64) { for (o, 0, 64) { for (i, 0, 4) { S[i, o] = S[i, o] + i32(L[i, k]) * "
     "i32(W[o, k]) } } } "
     "for (i, 0, 4) { for (o, 0, 64) { B[i, o] = S[i, o] } }",
     "memcpy matmul memcpy"},
};

INSTANTIATE_TEST_SUITE_P(All, CardNests, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Random programs of one form: threads copy their part of a tensor, compute on it and copy it back, under guards over
// one loop or several, with loops in either order, indices that run backwards, strides, offsets, and what a program may
// leave open: memories, where a thread's elements begin, and the spelling of keys.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed) {}

  std::string Text() {
    type_ = OneOf({"f32", "i32", "f16", "i8"});
    threads_ = Pick(0, 3);
    rows_ = Pick(1, 4);
    columns_ = Pick(0, 1) ? Pick(1, 20) : 64 * Pick(1, 2);
    step_ = columns_ + Pick(0, 1) * Pick(0, 9);
    const int parts = threads_ == 0 ? 1 : threads_;
    guard_ = Guard();
    whole_ = threads_ > 0 && Pick(0, 2) == 0;
    const int rows_of_buffer = whole_ && Pick(0, 1) ? rows_ * parts : rows_;
    // The interpreter wants room for indices that count in the whole tensor.
    const std::string memory = OneOf({" @local", " @nmem", ""});
    const int all_rows = whole_ ? rows_ * parts : rows_of_buffer;
    const std::string elements = StrCat((rows_ * parts) * step_ + 3);
    std::string text =
        StrCat("func f(A: ", type_, "[", elements, "] in, B: ", type_, "[", elements, "]) {\n");
    if (threads_ > 0) StrAppend(&text, "  thread (tid, ", threads_, ")\n");
    if (threads_ == 0 && memory.empty()) StrAppend(&text, "  for (once, 0, 1) {\n");
    StrAppend(&text, "  allocate L: ", type_, "[", all_rows, ", ", columns_, "]", memory, "\n");
    offset_ = Pick(0, 1) * Pick(0, 3);
    StrAppend(&text, Nest(OneOf({"MEMCPY", "memcpy", "tensorize"}), true,
                          StrCat("L[", Place(), "] = A[", Far(), "]")));
    const std::string x = StrCat("L[", Place(), "]");
    const char* op = OneOf({"+", "-", "*"});
    const char* key = op[0] == '+' ? "TADD" : op[0] == '-' ? "Sub" : "TMUL";
    StrAppend(&text, Nest(key, false, StrCat(x, " = ", x, " ", op, " ", x)));
    StrAppend(&text, Nest(OneOf({"MEMCPY", "Memcpy"}), true, StrCat("B[", Far(), "] = ", x)));
    if (threads_ == 0 && memory.empty()) StrAppend(&text, "  }\n");
    return text + "}\n";
  }

 private:
  int Pick(int low, int high) { return low + static_cast<int>(random_() % (high - low + 1)); }
  const char* OneOf(std::initializer_list<const char*> list) {
    return *(list.begin() + Pick(0, static_cast<int>(list.size()) - 1));
  }
  std::string Row() const { return threads_ == 0 ? "i" : StrCat("(tid * ", rows_, " + i)"); }
  std::string Place() const { return StrCat(whole_ ? Row() : "i", ", j"); }
  std::string Far() const { return StrCat(Row(), " * ", step_, " + j + ", offset_); }

  std::string Guard() {
    const int rows = rows_ * std::max(threads_, 1);
    switch (Pick(0, 6)) {
      case 0:
        return "";
      case 1:
        return StrCat(Row(), " < ", Pick(0, rows));
      case 2:
        return StrCat(Row(), " < ", Pick(0, rows), " && ", Pick(0, columns_), " <= j");
      case 3:
        return StrCat("i + j < ", Pick(0, rows_ + columns_));
      case 4:
        return StrCat(Row(), " * ", columns_, " + j < ", Pick(0, rows * columns_));
      case 5:
        return StrCat("(", Row(), " < ", Pick(0, rows), " || j < ", Pick(0, columns_),
                      ") && i != ", Pick(0, 3));
      default:
        return StrCat("j % ", Pick(2, 5), " == 1 || i < ", Pick(0, rows_));
    }
  }

  // The statement in loops over rows and columns.
  std::string Nest(const char* key, bool may_turn, const std::string& statement) {
    const std::string i = StrCat("for (i, 0, ", rows_, ") ");
    const std::string j = StrCat("for (j, 0, ", columns_, ") ");
    const std::string guarded = guard_.empty() ? StrCat("{ ", statement, " }")
                                               : StrCat("if (", guard_, ") { ", statement, " }");
    const bool other_order = may_turn ? Pick(0, 3) == 0 : Pick(0, 1) == 0;
    return StrCat("  pragma=\"", key, "\" ", other_order ? j + i : i + j, guarded, "\n");
  }

  std::mt19937_64 random_;
  std::string type_, guard_;
  int threads_ = 0, rows_ = 0, columns_ = 0, step_ = 0, offset_ = 0;
  bool whole_ = false;  // indices of L count rows of the whole tensor
};

// A condition that a copy's loops do not change stands in front of the copy, not of each element.
TEST(CardNestsTest, ConditionsInFrontOfCopies) {
  const absl::StatusOr<ir::Function> function = ir::ParseFunction(
      "func f(A: f32[512] in, B: f32[256], n: i32) {\n" LOAD
      " for (t, 0, 3) { pragma \"memcpy\" { for (i, 0, 8) { for (j, 0, 32) {"
      " if (t < n) { L[i * 32 + j] = A[i * 32 + j + t * 7] } } } } " OUT " }\n}\n");
  ASSERT_TRUE(function.ok()) << function.status();
  const absl::StatusOr<ir::Function> lowered = Lowered(*function);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const std::string text = ir::Print(*lowered);
  EXPECT_THAT(text, testing::HasSubstr("&L[0], &A[t * 7], 256, 1, 0, 0)")) << text;
}

TEST(CardNestsRandom, Values) {
  const uint64_t first = std::random_device{}();
  const char* wanted = std::getenv("POLYNAO_RANDOM_CASES");
  const uint64_t count = wanted == nullptr ? 150 : std::strtoull(wanted, nullptr, 10);
  uint64_t with_instructions = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::string text = RandomProgram(seed).Text();
    SCOPED_TRACE(StrCat("seed ", seed, "\n", text));
    const absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
    ASSERT_TRUE(function.ok()) << function.status();
    const absl::StatusOr<ir::Function> lowered = Lowered(*function);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    with_instructions += Forms(*lowered).find("memcpy") != std::string::npos;
    const absl::StatusOr<ir::Runner> runner = RunnerOf(*lowered);
    ASSERT_TRUE(runner.ok()) << runner.status();
    ASSERT_EQ(ir::Disagreement(*function, ir::RandomArguments(*function, seed), *runner), "")
        << ir::Print(*lowered);
  }
  EXPECT_GT(with_instructions, count / 2);
}

}  // namespace
}  // namespace polynao
