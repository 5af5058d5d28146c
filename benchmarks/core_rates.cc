#include "benchmarks/core_rates.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/elapsed.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::benchmarks {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// Vectors that do not wait for each other: more than start until the first one is done (2 x 4 on x86, 4 x 4 on some of
// Arm's), and fewer than there are registers.
constexpr int64_t kVectors = 12;

// `step` in a loop over n, on sums C of `vectors` x `lanes` f32 that stay in registers.
ir::Function SumProgram(int64_t vectors, int64_t lanes, const std::string& params,
                        const std::string& step) {
  const std::string text =
      "func rate(S: f32[V * L], PARAMSn: i64) {\n"
      "  allocate C: f32[V, L] @local\n"
      "  unroll (r: i64, 0, V) { vectorize (l: i64, 0, L) { C[r, l] = S[r * L + l] } }\n"
      "  for (t: i64, 0, n) { STEP }\n"
      "  unroll (r: i64, 0, V) { vectorize (l: i64, 0, L) { S[r * L + l] = C[r, l] } }\n"
      "}\n";
  return ir::ParseFunction(
             absl::StrReplaceAll(absl::StrReplaceAll(text, {{"STEP", step}, {"PARAMS", params}}),
                                 {{"V", StrCat(vectors)}, {"L", StrCat(lanes)}}))
      .value();
}

RateProgram MultiplyAddsOf(int64_t vectors, int bytes) {
  return {SumProgram(vectors, bytes / 4, "X: f32[L] in, ",
                     "unroll (r: i64, 0, V) { vectorize (l: i64, 0, L) {\n"
                     "    C[r, l] = fma(X[l], X[l], C[r, l]) } }"),
          static_cast<double>(vectors)};
}

// Loads and stores of some buffers are those of larger ones, whose first index is so much more.
class Moved : public ir::Mutator {
 public:
  using Mutator::Mutate;
  // Of the parameter `number`: `count` times as many elements along the first index.
  void Move(ir::Function& f, size_t number, int64_t count, Expr place) {
    ir::Context& c = *f.context;
    const ir::Buffer from = f.params[number].buffer;
    std::vector<Expr> extents(from->extents.begin(), from->extents.end());
    const int64_t each = extents[0].int_value();
    extents[0] = c.Int(extents[0].type(), count * each);
    f.params[number].buffer = c.NewBuffer(from->name, from->type, extents);
    moved_.push_back({from, f.params[number].buffer, place * c.Int(place.type(), each)});
  }
  Expr Mutate(Expr e) override {
    e = MutateOperands(e);
    if (!e.Is(ExprKind::kLoad)) return e;
    const One* one = Find(ir::Buffer(e.buffer()));
    return one == nullptr ? e : e.context().Load(one->to, At(*one, e.operands()));
  }
  Stmt Mutate(Stmt s) override {
    s = Mutator::Mutate(s);
    if (!s.Is(StmtKind::kStore)) return s;
    const One* one = Find(s.buffer());
    return one == nullptr ? s : s.context().Store(one->to, At(*one, s.indices()), s.value());
  }

 private:
  struct One {
    ir::Buffer from, to;
    Expr first;
  };
  const One* Find(ir::Buffer buffer) const {
    for (const One& one : moved_) {
      if (one.from == buffer) return &one;
    }
    return nullptr;
  }
  static std::vector<Expr> At(const One& one, absl::Span<const Expr> indices) {
    std::vector<Expr> at(indices.begin(), indices.end());
    at[0] = one.first + at[0];
    return at;
  }

  std::vector<One> moved_;
};

// Seconds of a run: the best of several, since other programs only take away. n is such that each takes milliseconds.
absl::StatusOr<double> SecondsOfIteration(const ir::Function& function) {
  ASSIGN_OR_RETURN(const auto compiled,
                   codegen::Compile(function, {.threads = 1, .wide_vectors = true}));
  constexpr double kSeconds = 2e-3;
  double best = std::numeric_limits<double>::infinity();
  int64_t n = 1000;
  for (int turn = 0; turn < 8; ++turn) {
    ir::RandomArgumentOptions options;
    options.scalars["n"] = ir::Argument::Int(n);
    ASSIGN_OR_RETURN(const ir::RandomArguments arguments,
                     ir::RandomArguments::Draw(function, 1, options));
    const Clock::time_point start = Clock::now();
    RETURN_IF_ERROR(compiled->Run(arguments.arguments()));
    const double each = SecondsSince(start) / static_cast<double>(n);
    // The first ones find out how many iterations take long enough.
    if (turn < 2) {
      n = std::max<int64_t>(static_cast<int64_t>(kSeconds / each), 1);
    } else {
      best = std::min(best, each);
    }
  }
  return best;
}

}  // namespace

RateProgram WaitingMultiplyAdds(int bytes) { return MultiplyAddsOf(1, bytes); }
RateProgram MultiplyAdds(int bytes) { return MultiplyAddsOf(kVectors, bytes); }

RateProgram Loads(int bytes, int64_t array) {
  const int64_t lanes = bytes / 4;
  const int64_t rows = std::max<int64_t>(array / (kVectors * bytes), 1);
  return {SumProgram(kVectors, lanes, StrCat("A: f32[", rows, ", V * L] in, "),
                     StrCat("for (i: i64, 0, ", rows,
                            ") { unroll (r: i64, 0, V) { vectorize (l: i64, 0, L) {\n"
                            "    C[r, l] = C[r, l] + A[i, r * L + l] } } }")),
          static_cast<double>(rows * kVectors)};
}

RateProgram Stores(int bytes, int64_t array) {
  const int64_t lanes = bytes / 4;
  const int64_t rows = std::max<int64_t>(array / (kVectors * bytes), 1);
  const std::string text =
      "func rate(A: f32[R, V * L] out, n: i64) {\n"
      "  for (t: i64, 0, n) { for (i: i64, 0, R) { unroll (r: i64, 0, V) {\n"
      "    vectorize (l: i64, 0, L) { A[i, r * L + l] = cast(f32, t) } } } }\n"
      "}\n";
  return {ir::ParseFunction(
              absl::StrReplaceAll(
                  text, {{"R", StrCat(rows)}, {"V", StrCat(kVectors)}, {"L", StrCat(lanes)}}))
              .value(),
          static_cast<double>(rows * kVectors)};
}

RateProgram Instructions(const isa::ProcessorInstruction& row) {
  ir::Function f = ir::CloneInto(row.meaning, std::make_shared<ir::Context>());
  ir::Context& c = *f.context;
  // Two registers are for the operands of tiles.
  const int64_t count = row.IsTile() ? std::min<int64_t>(row.registers - 4, kVectors) : kVectors;
  const ir::Var r = c.NewVar("r", ir::Type::kI64), t = c.NewVar("t", ir::Type::kI64);
  const ir::Var n = c.NewVar("n", ir::Type::kI64);
  Moved moved;
  moved.Move(f, 0, count, r);
  // Products of the same vectors would be computed once: some instructions do not add to the sums by themselves.
  if (!row.IsTile()) {
    constexpr int64_t kWords = 64;
    moved.Move(f, 1, kWords, t % c.I64(kWords));
    moved.Move(f, 2, count, r);
  }
  const Stmt each = c.For(r, c.I64(0), c.I64(count), moved.Mutate(f.body), ir::ForKind::kUnroll);
  f.body = c.For(t, c.I64(0), n, each);
  f.params.push_back({.var = n, .buffer = {}, .access = ir::Access::kIn, .scope = ""});
  f.name = "rate";
  return {std::move(f), static_cast<double>(count)};
}

absl::StatusOr<poly::CoreRates> MeasureCore(const poly::CpuMachine& machine, double clock_hz) {
  const auto cycles = [&](const RateProgram& program) -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const double seconds, SecondsOfIteration(program.function));
    return seconds * clock_hz / program.count;
  };
  const int bytes = machine.vector_bytes;
  poly::CoreRates rates;
  ASSIGN_OR_RETURN(rates.operation, cycles(MultiplyAdds(bytes)));
  ASSIGN_OR_RETURN(rates.latency, cycles(WaitingMultiplyAdds(bytes)));
  ASSIGN_OR_RETURN(rates.load, cycles(Loads(bytes, machine.near_bytes / 2)));
  ASSIGN_OR_RETURN(rates.store, cycles(Stores(bytes, machine.near_bytes / 2)));
  // Far more than the nearest cache has room for.
  ASSIGN_OR_RETURN(const double far, cycles(Loads(bytes, machine.cache_bytes / 2)));
  rates.next_bytes = bytes / far;
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
    if (!isa::HostHas(row.feature)) continue;
    ASSIGN_OR_RETURN(rates.instructions[row.name], cycles(Instructions(row)));
  }
  return rates;
}

}  // namespace polynao::benchmarks
