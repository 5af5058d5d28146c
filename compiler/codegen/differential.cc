#include "compiler/codegen/differential.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"

namespace polynao::codegen {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Tensor;
using ir::Type;

}  // namespace

ir::RandomArguments RandomProgramArguments(const ir::Function& program, uint64_t seed) {
  return ir::RandomArguments(program, seed, {.scalars = ir::EdgeScalars(program, seed)});
}

std::string DisagreementOnRandomProgram(uint64_t seed, const ir::RandomProgramOptions& options,
                                        const Compiler& compile) {
  constexpr std::string_view kStops = "the interpreter stops";
  const auto check = [&](const ir::Function& f) -> std::string {
    absl::StatusOr<Runner> run = compile(f);
    if (!run.ok()) return StrCat("does not compile: ", run.status().message());
    return Disagreement(f, RandomProgramArguments(f, seed), *run);
  };
  const ir::Function f = ir::RandomProgram(seed, options);
  if (std::string wrong = check(f); wrong.empty() || wrong.starts_with(kStops)) return wrong;
  const ir::Function smallest = ir::ShrinkProgram(f, [&](const ir::Function& candidate) {
    const std::string wrong = check(candidate);
    return !wrong.empty() && !wrong.starts_with(kStops);
  });
  return StrCat("seed ", seed, ", shrunk: ", check(smallest));
}

// ---- edge values --------------------------------------------------------------------------------

namespace {

constexpr Type kTypes[] = {Type::kI1,   Type::kI8,  Type::kI16, Type::kI32, Type::kI64,
                           Type::kU8,   Type::kU16, Type::kU32, Type::kU64, Type::kF16,
                           Type::kBF16, Type::kF32, Type::kF64};

Tensor EdgeValues(Type type) {
  if (ir::IsFloat(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    // Ties and overflows of f16 and bf16, ends of the integer types, the smallest floats.
    std::vector<double> values = {
        0.0,       1.0,        0.5,     1.5,       2.5,      3.0,      0.1,      1.0 / 3,
        7.0,       100.25,     127.5,   128.0,     255.5,    256.0,    2047.5,   2049.0,
        65504.0,   65519.0,    65520.0, 32767.5,   0x1p31,   0x1p63,   3e9,      1e10,
        1e-10,     0x1p-14,    0x1p-24, 0x1p-25,   0x1p-126, 0x1p-133, 0x1p-149, 0x1.ffp127,
        1.0078125, 1.00390625, 1e300,   0x1p-1074, 88.0,     89.0,     infinity};
    const size_t count = values.size();
    for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
    values.push_back(std::numeric_limits<double>::quiet_NaN());
    Tensor tensor(type, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) tensor.SetValue(i, values[i]);
    return tensor;
  }
  std::vector<int64_t> values = {0, 1};
  if (type != Type::kI1) {
    const int bits = 8 * ir::ByteSize(type);
    const bool is_unsigned = ir::IsUnsigned(type);
    const int64_t low = ir::LeastInt(type);
    const int64_t high = ir::GreatestInt(type);
    for (int64_t v : {2, 3, 5, 7, 8, 100}) values.push_back(v);
    for (int64_t v : {bits - 1, bits, bits + 1}) values.push_back(v);  // counts of shifts
    if (is_unsigned) values.push_back(int64_t{1} << (bits - 1));
    for (int64_t v : {low, low + 1, high - 1, high, low / 2, high / 2}) values.push_back(v);
    if (!is_unsigned) {
      for (int64_t v : {-1, -2, -3, -5, -7, -8, -100}) values.push_back(v);
    }
    if (bits >= 32) {
      // Neighbours of what f32 holds, so that conversions have something to round.
      for (int64_t v : {(1 << 24) + 1, (1 << 24) + 3, (1 << 17) + (1 << 9) + 1, 65535}) {
        values.push_back(v);
      }
    }
    if (bits == 64) {
      for (int64_t v : {(int64_t{1} << 53) + 1, (int64_t{1} << 62) + (int64_t{1} << 38) + 1}) {
        values.push_back(v);
      }
    }
  }
  Tensor tensor(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.SetInt(i, values[i]);
  return tensor;
}

// Builds one case: inputs, outputs, and a body of loops over them.
class CaseBuilder {
 public:
  explicit CaseBuilder(std::string name) : context_(std::make_shared<ir::Context>()) {
    function_.name = std::move(name);
    function_.context = context_;
  }

  ir::Context& c() { return *context_; }

  ir::Buffer Add(Tensor tensor, ir::Access access) {
    std::vector<Expr> extents;
    for (int64_t extent : tensor.shape) extents.push_back(c().I32(extent));
    ir::Param& param = function_.params.emplace_back();
    param.buffer = c().NewBuffer(StrCat(access == ir::Access::kIn ? "in" : "out", tensors_.size()),
                                 tensor.type, extents);
    param.access = access;
    tensors_.push_back(std::move(tensor));
    return param.buffer;
  }

  // Adds to the body of the innermost loop: the value, in a new output with an element for each
  // iteration of the loops over `loops`.
  void Output(const std::vector<ir::Var>& loops, const std::vector<int64_t>& shape, Expr value) {
    const ir::Buffer out = Add(Tensor(value.type(), shape), ir::Access::kOut);
    stores_.push_back(c().Store(out, loops, value));
  }

  // Adds to the body of the innermost loop.
  void Body(ir::Stmt s) { stores_.push_back(s); }

  SemanticsCase Finish(const std::vector<ir::Var>& loops, const std::vector<int64_t>& shape,
                       int64_t max_ulps = 0) {
    ir::Stmt body = c().Seq(stores_);
    for (size_t d = loops.size(); d-- > 0;) {
      body = c().For(loops[d], c().I32(0), c().I32(shape[d]), body);
    }
    function_.body = body;
    const absl::Status status = ir::Verify(function_);
    POLYNAO_CHECK(status.ok()) << status;
    return {function_.name, function_, ir::RandomArguments(std::move(tensors_)), max_ulps};
  }

 private:
  std::shared_ptr<ir::Context> context_;
  ir::Function function_;
  std::deque<Tensor> tensors_;
  std::vector<ir::Stmt> stores_;
};

bool IsWideUnsigned(Type type) {
  return type == Type::kU16 || type == Type::kU32 || type == Type::kU64;
}

SemanticsCase BinaryOperators(Type type, const SemanticsOptions& options) {
  CaseBuilder b(StrCat("binary_", ir::TypeName(type)));
  ir::Context& c = b.c();
  const Tensor values = EdgeValues(type);
  const int64_t count = values.element_count();
  const ir::Buffer in = b.Add(values, ir::Access::kIn);
  const ir::Var i = c.NewVar("i");
  const ir::Var j = c.NewVar("j");
  const Expr x = in(i);
  const Expr y = in(j);
  const auto output = [&](Expr value) { b.Output({i, j}, {count, count}, value); };
  output(Eq(x, y));
  output(Ne(x, y));
  if (type == Type::kI1) {
    output(And(x, y));
    output(Or(x, y));
    output(Not(x));
    output(c.Select(x, y, Not(y)));
    return b.Finish({i, j}, {count, count});
  }
  output(x < y);
  output(x <= y);
  for (ExprKind kind :
       {ExprKind::kAdd, ExprKind::kSub, ExprKind::kMul, ExprKind::kMin, ExprKind::kMax}) {
    output(c.Binary(kind, x, y));
  }
  if (!ir::IsFloat(type)) {
    for (ExprKind kind : {ExprKind::kBitAnd, ExprKind::kBitOr, ExprKind::kBitXor,
                          ExprKind::kShiftLeft, ExprKind::kShiftRight}) {
      const bool shifts = kind == ExprKind::kShiftLeft || kind == ExprKind::kShiftRight;
      if (!shifts || options.variable_shifts) output(c.Binary(kind, x, y));
    }
    const int64_t bits = ir::BitWidth(type);
    for (int64_t count : {int64_t{0}, int64_t{1}, bits - 1, bits, bits + 1, int64_t{-1}}) {
      if (!options.variable_shifts && (count < 0 || count >= bits)) continue;
      output(x << c.Int(type, count));
      output(x >> c.Int(type, count));
    }
  }
  if (ir::IsFloat(type)) {
    output(x / y);
    output(x * y + x);  // must not be contracted
    return b.Finish({i, j}, {count, count});
  }
  output(c.Select(Ne(y, c.Int(type, 0)), x / y, x));
  output(c.Select(Ne(y, c.Int(type, 0)), x % y, x));
  for (int64_t divisor : {1, 2, 3, 7, 8, -1, -2, -3, -8}) {
    const Expr constant = c.Int(type, divisor);
    output(x / constant);
    output(x % constant);
  }
  return b.Finish({i, j}, {count, count});
}

SemanticsCase Casts(Type type, const SemanticsOptions& options) {
  CaseBuilder b(StrCat("cast_", ir::TypeName(type)));
  const Tensor values = EdgeValues(type);
  const int64_t count = values.element_count();
  const ir::Buffer in = b.Add(values, ir::Access::kIn);
  const ir::Var i = b.c().NewVar("i");
  for (Type to : kTypes) {
    if (to == type || (IsWideUnsigned(to) && !options.wide_unsigned)) continue;
    b.Output({i}, {count}, b.c().Cast(to, in(i)));
  }
  return b.Finish({i}, {count});
}

SemanticsCase Intrinsics(Type type, bool exact) {
  CaseBuilder b(StrCat(exact ? "exact_intrinsics_" : "intrinsics_", ir::TypeName(type)));
  ir::Context& c = b.c();
  const Tensor values = EdgeValues(type);
  const int64_t count = values.element_count();
  const ir::Buffer in = b.Add(values, ir::Access::kIn);
  const ir::Var i = c.NewVar("i");
  for (const ir::PureIntrinsic& intrinsic : ir::PureIntrinsics()) {
    if ((intrinsic.accuracy == ir::Accuracy::kExact) != exact || intrinsic.arity != 1) continue;
    b.Output({i}, {count}, c.Call(type, intrinsic.name, {in(i)}));
  }
  if (exact) {
    // Products that a sum meets halfway, cancels, and leaves behind.
    for (const double z : {0.0, -0.0, 1.0, -1.0, 1e-3, 3e4}) {
      b.Output({i}, {count}, c.Call(type, "fma", {in(i), in(i), c.Float(type, z)}));
      b.Output({i}, {count},
               c.Call(type, "fma", {in(i), c.Float(type, 1.0 + 0x1p-7), c.Float(type, z)}));
      b.Output({i}, {count},
               c.Call(type, "fma", {c.Float(type, 1.0 + 0x1p-7), c.Float(type, z), in(i)}));
    }
    return b.Finish({i}, {count});
  }
  b.Output({i}, {count}, c.Call(type, "pow", {in(i), c.Float(type, 3)}));
  b.Output({i}, {count}, c.Call(type, "pow", {c.Float(type, 1.5), in(i)}));
  // The libraries for float promise about one unit in the last place, tanh two.
  constexpr int64_t kMaxUlps = 4;
  return b.Finish({i}, {count}, kMaxUlps);
}

// Loops from the type's least value on, and up to its greatest: enough iterations for a vector and a rest, with a guard
// that changes within.
SemanticsCase LoopsToTheEnds(Type type) {
  CaseBuilder b(StrCat("loops_", ir::TypeName(type)));
  ir::Context& c = b.c();
  constexpr int64_t kIterations = 19, kBorder = 13;
  const ir::Var i = c.NewVar("i");  // of the loop around, which runs once
  for (const int64_t first : {ir::LeastInt(type), ir::GreatestInt(type) - (kIterations - 1)}) {
    const ir::Buffer out = b.Add(Tensor(Type::kI64, {kIterations}), ir::Access::kOut);
    const ir::Var var = c.NewVar("x", type);
    const std::vector<Expr> place = {var - c.Int(type, first)};
    const Expr value = c.Cast(Type::kI64, var);
    b.Body(c.For(var, c.Int(type, first), c.Int(type, kIterations),
                 c.If(var < c.Int(type, first + kBorder), c.Store(out, place, value),
                      c.Store(out, place, c.I64(0) - value))));
  }
  return b.Finish({i}, {1});
}

// Where i32 and i64 are mathematical integers otherwise, the least value by -1 wraps too.
SemanticsCase QuotientsByMinusOne(Type type) {
  CaseBuilder b(StrCat("minus_one_", ir::TypeName(type)));
  ir::Context& c = b.c();
  const Tensor values = EdgeValues(type);
  const int64_t count = values.element_count();
  const ir::Buffer in = b.Add(values, ir::Access::kIn);
  const ir::Var i = c.NewVar("i"), j = c.NewVar("j");
  const Expr quotient = in(i) / c.Int(type, -1);
  const Expr zero = c.Int(type, 0);
  const auto output = [&] { return b.Add(Tensor(type, {count, count}), ir::Access::kOut); };
  b.Output({i, j}, {count, count}, c.Select(quotient <= in(j), c.I32(1), c.I32(2)));
  b.Output({i, j}, {count, count}, in(Max(Min(quotient, c.Int(type, count - 1)), zero)));
  const ir::Buffer branch = output(), loop = output();
  b.Body(c.If(in(j) < quotient, c.Store(branch, {i, j}, in(i)), c.Store(branch, {i, j}, in(j))));
  const ir::Var k = c.NewVar("k", type);
  b.Body(c.Store(loop, {i, j}, zero));
  b.Body(c.For(k, zero, Min(quotient, c.Int(type, 3)), c.Store(loop, {i, j}, k + c.Int(type, 1))));
  return b.Finish({i, j}, {count, count});
}

}  // namespace

std::vector<SemanticsCase> SemanticsCases(const SemanticsOptions& options) {
  std::vector<SemanticsCase> cases;
  for (Type type : kTypes) {
    if (IsWideUnsigned(type) && !options.wide_unsigned) continue;
    cases.push_back(BinaryOperators(type, options));
    cases.push_back(Casts(type, options));
    if (ir::IsIndexable(type)) {
      cases.push_back(LoopsToTheEnds(type));
      cases.push_back(QuotientsByMinusOne(type));
    }
    if (!ir::IsFloat(type)) continue;
    cases.push_back(Intrinsics(type, true));
    cases.push_back(Intrinsics(type, false));
  }
  return cases;
}

}  // namespace polynao::codegen
