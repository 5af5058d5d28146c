#include "kernels/te/elementwise.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/math.h"
#include "base/status.h"
#include "compiler/ir/pragmas.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"
#include "isa/levels.h"
#include "kernels/reference/elementwise.h"
#include "kernels/te/broadcast.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/tuned.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Axis;
using te::Schedule;
using te::Tensor;

// The operands of one element: the inputs' elements, then the results of the previous steps.
using Values = absl::Span<const Expr>;

// One tensor instruction on the card, and what it computes.
struct Step {
  const char* instruction;
  Expr (*value)(Values v, Expr scalar);
  // The value whose buffer on the card the result overwrites; this step is the last to read it.
  int in_place = 0;
  // Whether the number is the attribute a_min instead of the operator's scalar.
  bool takes_low = false;
};

struct Elementwise {
  const char* name;
  const char* doc;
  std::vector<const char*> inputs;
  const char* output;
  std::vector<Step> steps;

  // The instruction that makes value `i` on the card: inputs are copied.
  const char* Instruction(size_t i) const {
    return i < inputs.size() ? "memcpy" : steps[i - inputs.size()].instruction;
  }
  // Places on the card that a tile needs.
  int64_t Buffers() const {
    return inputs.size() + std::count_if(steps.begin(), steps.end(),
                                         [](const Step& step) { return step.in_place < 0; });
  }
};

// How a card's cores share n elements: each core takes one run of them, in tiles. Runs and tiles are whole groups of
// the vector unit. NMEM holds two sets of the tiles that are needed at a time (one is computed while the next one is
// loaded), each at a multiple of kOnChipAlignment.
struct Tiling {
  int64_t run = 0;
  int64_t tile = 0;
  // How many tiles further on each core starts than its neighbour. With tiles of different sizes the cores drift
  // apart, so that GMEM serves some cores while others wait.
  int64_t rotate = 0;
  // Whether the cost model may choose it: all tiles of one size, in the same order on all cores. The model does not
  // see how cores drift apart under other tilings; a search may find that they are faster.
  bool is_plain = true;
  double cycles = 0;  // by the cost model
  ScheduleChoice choice = {};
};

// What a tiling costs, for ranking. All cores share GMEM, which moves all bytes. It is always busy except before the
// first tile has arrived, while the last tile is computed (nothing is left to load), and where all cores wait for their
// queues between two tiles.
class CostModel {
 public:
  CostModel(const Elementwise& op, int64_t n, int64_t bytes, const isa::Machine& m) {
    const auto get = [&](std::string_view name) { return static_cast<double>(m.Get(name)); };
    const double copies = static_cast<double>(op.inputs.size()) + 1;
    bytes_ = bytes;
    steps_ = static_cast<double>(op.steps.size());
    start_ = get("vector.start");
    rate_ = get("vector.bytes");
    wait_ = copies * get("io_dma.start") + get("sync.drain");
    moved_ = copies * static_cast<double>(n * bytes) /
             std::min(m.gmem_bytes_per_cycle(),
                      get("cluster.link_bytes") * static_cast<double>(m.clusters()));
  }
  double Cycles(const Tiling& t) const {
    const double tiles = static_cast<double>(CeilDiv(t.run, t.tile));
    const double compute = steps_ * (start_ + static_cast<double>(t.tile * bytes_) / rate_);
    return moved_ + compute + tiles * wait_;
  }

 private:
  int64_t bytes_;
  double steps_, start_, rate_, wait_, moved_;
};

// All tilings of a case that agree with its schedule, the cost model's first choice first.
std::vector<Tiling> Tilings(const Elementwise& op, const OperatorCase& k, const isa::Machine& m) {
  const int64_t bytes = ir::ByteSize(k.dtype);
  const int64_t n = te::ElementCount(k.shape);
  constexpr int64_t kGroup = isa::kVectorGroup;
  const int64_t run = std::max(kGroup, RoundUp(CeilDiv(n, m.cores()), kGroup));
  const int64_t room = m.nmem_bytes() / (2 * op.Buffers()) / kOnChipAlignment * kOnChipAlignment;
  const int64_t largest = std::max(kGroup, room / bytes / kGroup * kGroup);
  // A half, a third, ... of the run, sizes in between, and parts of the largest tile. Most of these leave a short
  // tile at the end; only equal tiles are safe without measuring.
  const int64_t least = 4 * CeilDiv(run, largest);
  std::vector<std::pair<int64_t, bool>> sizes;  // and whether tiles are equal
  for (int64_t quarters = least; quarters <= least + 24; ++quarters) {
    sizes.emplace_back(CeilDiv(4 * run, quarters), quarters % 4 == 0);
  }
  for (int64_t part = 128; part >= 16; --part) {
    sizes.emplace_back(CeilDiv(std::min(run, largest) * part, 128), false);
  }
  const CostModel cost(op, n, bytes, m);
  const int64_t cores = m.cores_per_cluster();
  std::set<std::pair<int64_t, int64_t>> seen;  // sizes and rotations
  std::vector<Tiling> tilings;
  for (const auto& [size, is_equal] : sizes) {
    const int64_t tile = RoundUp(size, kGroup);
    if (tile > largest) continue;
    const int64_t orders = std::min(cores, CeilDiv(run, tile));
    for (int64_t rotate = 0; rotate < orders; ++rotate) {
      Tiling t = {.run = run, .tile = tile, .rotate = rotate};
      t.choice = {{"rotate", rotate}, {"tile", t.tile}};
      if (!Agrees(t.choice, k.schedule) || !seen.insert({tile, rotate}).second) continue;
      t.is_plain = rotate == 0 && is_equal;
      t.cycles = cost.Cycles(t);
      tilings.push_back(t);
    }
  }
  std::sort(tilings.begin(), tilings.end(), [](const Tiling& a, const Tiling& b) {
    return std::tuple(!a.is_plain, a.cycles, b.tile, a.rotate) <
           std::tuple(!b.is_plain, b.cycles, a.tile, b.rotate);
  });
  return tilings;
}

// The tiling that the case asks for, a tuned one, or the cost model's choice.
absl::StatusOr<Tiling> ChooseTiling(const Elementwise& op, const OperatorCase& k,
                                    const isa::Machine& m) {
  const std::vector<Tiling> tilings = Tilings(op, k, m);
  if (!tilings.empty()) return tilings[0];
  return InvalidInput("operator ", k.op, ": no schedule that fits has ", ChoiceText(k.schedule),
                      " (there are rotate, tile)");
}

// The attribute a_min of clip.
double LowOf(const OperatorCase& k) {
  const auto it = k.attributes.find("a_min");
  double low = 0;
  return it != k.attributes.end() && absl::SimpleAtod(it->second, &low) ? low : 0;
}

// [tensor-program binary unary begin]
// The inputs, then the result of each step; the last one is the output.
std::vector<Tensor> Express(te::Graph& g, const Elementwise& op, const OperatorCase& k,
                            double scalar) {
  const auto constant = [&](double value) {
    return ir::IsFloat(k.dtype) ? g.context().Float(k.dtype, value)
                                : g.context().Int(k.dtype, static_cast<int64_t>(value));
  };
  std::vector<Tensor> v;
  for (const char* name : op.inputs) v.push_back(g.Flatten(g.Placeholder(name, k.shape, k.dtype)));
  for (size_t j = 0; j < op.steps.size(); ++j) {
    const std::string name = j + 1 == op.steps.size() ? op.output : StrCat("T", j);
    v.push_back(g.Compute(name, v[0].shape(), [&](Expr i) {
      std::vector<Expr> elements;
      for (const Tensor& t : v) elements.push_back(t(i));
      return op.steps[j].value(elements, constant(op.steps[j].takes_low ? LowOf(k) : scalar));
    }));
  }
  return v;
}

// Results take the places of values that no later step reads.
void ReusePlaces(Schedule& s, const Elementwise& op, const std::vector<Tensor>& v) {
  for (size_t j = 0; j < op.steps.size(); ++j) {
    if (op.steps[j].in_place < 0) continue;
    s[v[op.inputs.size() + j]].InPlace(v[op.steps[j].in_place]);
  }
}

// [tensor-program binary unary end]

// One loop for all steps. On a CPU threads take runs of 16 Ki elements; for fewer, a thread costs more than it
// gains.
absl::StatusOr<ir::Function> LowerFused(Schedule& s, const Elementwise& op,
                                        const std::vector<Tensor>& v, const Target& target) {
  const Tensor& y = v.back();
  for (size_t i = op.inputs.size(); i + 1 < v.size(); ++i) s[v[i]].ComputeInline();
  if (IsProcessor(target.name)) {
    auto [run, element] = s[y].Split(s[y].axis(0), int64_t{1} << 14);
    s[y].Parallel(run).Vectorize(element);
  } else if (IsGpu(target.name)) {
    auto [group, element] = s[y].Split(s[y].axis(0), 4);
    auto [block, thread] = s[y].Split(group, 256);
    s[y].Bind(block, "blockIdx.x").Bind(thread, "threadIdx.x").Vectorize(element);
  }
  return Lower(s);
}

// The name of the function that computes an operator. It must not be the name of a function in C's library, which
// compiled code may call or be linked with.
std::string FunctionName(std::string_view op) {
  const bool is_taken = op == "abs" || op == "div" || op == "exp" || op == "tanh";
  return StrCat(op, is_taken ? "_elements" : "");
}

// [tensor-program binary unary begin]
// On the card each core takes one run of elements and moves it through NMEM in tiles:
//   copy the inputs in, one instruction for each step, copy the output out.
absl::StatusOr<ir::Function> Build(const Elementwise& op, const OperatorCase& k, double scalar,
                                   const Target& target) {
  te::Graph g(FunctionName(k.op));
  std::vector<Tensor> v = Express(g, op, k, scalar);
  const Tensor y = v.back();
  Schedule s(y);
  if (target.machine == nullptr) return LowerFused(s, op, v, target);
  ASSIGN_OR_RETURN(const Tiling t, ChooseTiling(op, k, *target.machine));
  for (size_t i = 0; i < op.inputs.size(); ++i) v[i] = s.CacheRead(v[i], isa::kNmem);
  v.back() = s.CacheWrite(y, isa::kNmem);
  auto [core, rest] = s[y].Split(s[y].axis(0), t.run);
  auto [cid, tid] = s[y].Split(core, target.machine->cores_per_cluster());
  auto [tile_in_order, element] = s[y].Split(rest, t.tile);
  const Axis tile = t.rotate > 0 ? s[y].Rotate(tile_in_order, tid, t.rotate) : tile_in_order;
  s[y].Bind(cid, isa::kClusterAxis).Bind(tid, isa::kCoreAxis).Pragma(element, "memcpy");
  if (t.run % t.tile != 0) s[y].Pragma(tile, pragma::kRagged);
  for (size_t i = 0; i < v.size(); ++i) {
    s[v[i]].ComputeAt(s[y], tile).SetScope(isa::kNmem).Pragma(s[v[i]].axis(0), op.Instruction(i));
  }
  ReusePlaces(s, op, v);
  s[v.back()].DoubleBuffer();
  return Lower(s);
}
// [tensor-program binary unary end]

absl::Status CheckCard(const Elementwise& op, const OperatorCase& k, const Target& target) {
  if (target.instructions == nullptr) return absl::OkStatus();
  for (const Step& step : op.steps) {
    const std::string instruction = StrCat(step.instruction, ".", ir::TypeName(k.dtype));
    if (target.instructions->Find(instruction) != nullptr) continue;
    return InvalidInput("operator ", k.op, " of ", ir::TypeName(k.dtype),
                        ": the card has no instruction ", instruction);
  }
  return absl::OkStatus();
}

using Reference = void (*)(absl::Span<const ir::Tensor> in, double scalar, ir::Tensor& out);

Operator MakeOperator(Elementwise op, Reference reference,
                      std::optional<double> scalar = std::nullopt) {
  Operator row;
  row.name = op.name;
  row.doc = op.doc;
  row.scalar = scalar;
  row.tensors = [op](const OperatorCase& c) {
    std::vector<TensorSpec> specs;
    for (const char* name : op.inputs) specs.push_back({name, c.dtype, c.shape});
    specs.push_back({op.output, c.dtype, c.shape});
    return specs;
  };
  row.work = [op](const OperatorCase& c) {
    const int64_t n = te::ElementCount(c.shape);
    isa::Work work;
    work.gmem_bytes = static_cast<int64_t>(op.inputs.size() + 1) * n * ir::ByteSize(c.dtype);
    work.vector_elements = static_cast<int64_t>(op.steps.size()) * n;
    work.vector_type = c.dtype;
    return work;
  };
  const auto number = [scalar](const OperatorCase& c) {
    return c.scalar.value_or(scalar.value_or(0));
  };
  row.reference = [reference, number](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                                      absl::Span<ir::Tensor> out) {
    reference(in, number(c), out[0]);
  };
  row.build = [op, number](const OperatorCase& c,
                           const Target& target) -> absl::StatusOr<ir::Function> {
    RETURN_IF_ERROR(CheckCard(op, c, target));
    return Build(op, c, number(c), target);
  };
  row.schedules = [op](const OperatorCase& c, const Target& target) {
    return Ranked(Tilings(op, c, *target.machine));
  };
  return row;
}

// `name` is operator and instruction.
template <BinaryOp kOp>
Operator Binary(const char* name, const char* doc, Expr (*value)(Values v, Expr scalar)) {
  return WithBroadcasting(
      MakeOperator({name, doc, {"A", "B"}, "C", {{name, value}}},
                   [](absl::Span<const ir::Tensor> in, double, ir::Tensor& out) {
                     ReferenceBinary(kOp, in[0], in[1], out);
                   }),
      kOp, [value](Expr a, Expr b) { return value({a, b}, Expr()); });
}

template <BinaryOp kOp>
Operator WithScalar(const char* name, const char* doc, Expr (*value)(Values v, Expr scalar)) {
  return MakeOperator(
      {name, doc, {"X"}, "Y", {{name, value}}},
      [](absl::Span<const ir::Tensor> in, double scalar, ir::Tensor& out) {
        ReferenceScalar(kOp, in[0], scalar, out);
      },
      2);
}

template <UnaryOp kOp>
Operator Unary(const char* name, const char* doc, std::vector<Step> steps,
               std::optional<double> scalar = std::nullopt) {
  return MakeOperator(
      {name, doc, {"X"}, "Y", std::move(steps)},
      [](absl::Span<const ir::Tensor> in, double parameter, ir::Tensor& out) {
        ReferenceUnary(kOp, in[0], parameter, out);
      },
      scalar);
}

Operator FloatsOnly(Operator row, double tolerance_steps = 0) {
  row.floats_only = true;
  row.tolerance_steps = tolerance_steps;
  return row;
}

Expr Zero(Expr like) { return ir::ConstantLike(like, 0); }

template <const char* kFunction>
Expr Call(Values v, Expr) {
  return v[0].context().Call(v[0].type(), kFunction, {v[0]});
}
constexpr char kSigmoid[] = "sigmoid";
constexpr char kTanh[] = "tanh";
constexpr char kExp[] = "exp";
constexpr char kAbs[] = "abs";

// clip, whose lower limit is an attribute.
Operator Clip() {
  Operator row = MakeOperator(
      {"clip",
       "Y = X limited to a_min .. scalar (6)",
       {"X"},
       "Y",
       {{"maxs", [](Values v, Expr low) { return ir::Max(v[0], low); }, 0, /*takes_low=*/true},
        {"mins", [](Values v, Expr s) { return ir::Min(v[1], s); }, 1}}},
      nullptr, 6);
  row.attributes = {{"a_min", "0", "the lower limit"}};
  row.check = [](const OperatorCase& c) {
    const double low = LowOf(c);
    const bool is_integer = low == std::trunc(low) && std::abs(low) <= 0x1p53;
    if (ir::IsFloat(c.dtype) || (is_integer && ir::FitsInt(c.dtype, static_cast<int64_t>(low)))) {
      return absl::OkStatus();
    }
    return InvalidInput("operator clip, attribute a_min ", low, ": expected a value of ",
                        ir::TypeName(c.dtype));
  };
  row.reference = [](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                     absl::Span<ir::Tensor> out) {
    ir::Tensor above = out[0];
    ReferenceScalar(BinaryOp::kMax, in[0], LowOf(c), above);
    ReferenceScalar(BinaryOp::kMin, above, c.scalar.value_or(6), out[0]);
  };
  return row;
}

}  // namespace

std::vector<Operator> ElementwiseOperators() {
  // Steps between neighbouring values by which the processor's functions may be off.
  constexpr double kMathSteps = 4;
  return {
      Binary<BinaryOp::kAdd>("add", "C = A + B, element by element",
                             [](Values v, Expr) { return v[0] + v[1]; }),
      Binary<BinaryOp::kSub>("sub", "C = A - B, element by element",
                             [](Values v, Expr) { return v[0] - v[1]; }),
      Binary<BinaryOp::kMul>("mul", "C = A * B, element by element",
                             [](Values v, Expr) { return v[0] * v[1]; }),
      FloatsOnly(Binary<BinaryOp::kDiv>("div", "C = A / B, element by element; of floats",
                                        [](Values v, Expr) { return v[0] / v[1]; })),
      Binary<BinaryOp::kMax>("max", "C = the larger of A and B, element by element",
                             [](Values v, Expr) { return ir::Max(v[0], v[1]); }),
      Binary<BinaryOp::kMin>("min", "C = the smaller of A and B, element by element",
                             [](Values v, Expr) { return ir::Min(v[0], v[1]); }),
      WithScalar<BinaryOp::kAdd>("adds", "Y = X + scalar (2)",
                                 [](Values v, Expr s) { return v[0] + s; }),
      WithScalar<BinaryOp::kSub>("subs", "Y = X - scalar (2)",
                                 [](Values v, Expr s) { return v[0] - s; }),
      WithScalar<BinaryOp::kMul>("muls", "Y = X * scalar (2)",
                                 [](Values v, Expr s) { return v[0] * s; }),
      WithScalar<BinaryOp::kMax>("maxs", "Y = the larger of X and scalar (2)",
                                 [](Values v, Expr s) { return ir::Max(v[0], s); }),
      WithScalar<BinaryOp::kMin>("mins", "Y = the smaller of X and scalar (2)",
                                 [](Values v, Expr s) { return ir::Min(v[0], s); }),
      Unary<UnaryOp::kRelu>("relu", "Y = the larger of X and 0",
                            {{"relu", [](Values v, Expr) { return ir::Max(v[0], Zero(v[0])); }}}),
      FloatsOnly(Unary<UnaryOp::kLeakyRelu>(
          "leaky_relu", "Y = the larger of X and X * scalar (0.01: the slope below 0); of floats",
          {{"muls", [](Values v, Expr s) { return v[0] * s; }, -1},
           {"max", [](Values v, Expr) { return ir::Max(v[0], v[1]); }}},
          0.01)),
      FloatsOnly(Unary<UnaryOp::kSigmoid>("sigmoid", "Y = 1 / (1 + exp(-X)); of floats",
                                          {{"sigmoid", Call<kSigmoid>}}),
                 kMathSteps),
      FloatsOnly(Unary<UnaryOp::kTanh>("tanh", "Y = tanh(X); of floats", {{"tanh", Call<kTanh>}}),
                 kMathSteps),
      FloatsOnly(
          Unary<UnaryOp::kExp>("exp", "Y = e to the power of X; of floats", {{"exp", Call<kExp>}}),
          kMathSteps),
      FloatsOnly(
          Unary<UnaryOp::kAbs>("abs", "Y = X without its sign; of floats", {{"abs", Call<kAbs>}})),
      Clip(),
  };
}

}  // namespace polynao::kernels
