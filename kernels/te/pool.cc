#include "kernels/te/pool.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/reference/layout.h"
#include "kernels/reference/reduce.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Schedule;
using te::Tensor;

Expr Within(Expr v, int64_t begin, int64_t count) { return ir::And(begin <= v, v < begin + count); }

// x with `value` around it, or x itself.
Expr Padded(const Tensor& x, int64_t before, int64_t after, Expr value, Expr row, Expr column,
            Expr channel) {
  if (before == 0 && after == 0) return x(row, column, channel);
  const int64_t h = x.shape()[0], w = x.shape()[1];
  return te::Select(ir::And(Within(row, before, h), Within(column, before, w)),
                    x(row - before, column - before, channel), value);
}

// ---- pooling -----------------------------------------------------------------------------------

// A case of pooling, its attributes read.
struct Pool : PoolLayer {
  bool is_max;
  Type type, sum;

  Pool(const Operator& op, const OperatorCase& c) {
    h = c.shape[0], w = c.shape[1], this->c = c.shape[2];
    window = *AttributeInt(op, c, "window");
    stride = AttributeInt(op, c, "stride").value_or(window);
    pad = *AttributeInt(op, c, "pad");
    is_max = op.name == "max_pool2d";
    type = c.dtype;
    sum = is_max ? type : SumType(type);
  }

  // Means of one element are that element.
  bool has_mean() const { return !is_max && window > 1; }
};

// [tensor-program pool begin]
// The tensors of pooling in the order of their computation; the result is the last.
struct PoolTensors {
  Tensor padded;
  Tensor wide;  // in the sum's type; empty if that is the input's
  Tensor reduced;
  Tensor mean, narrow;  // of means
  Tensor output() const { return narrow ? narrow : mean ? mean : reduced; }
};

PoolTensors Express(te::Graph& g, const Pool& k) {
  PoolTensors t;
  const std::vector<std::string> names = {"y", "x", "c"};
  const Tensor x = g.Placeholder("X", {k.h, k.w, k.c}, k.type);
  const Expr around = k.is_max ? te::Identity(te::Reducer::kMax, g.context(), k.type)
                               : ir::ConstantLike(x(0, 0, 0), 0);
  t.padded = g.Compute(
      "P", {k.h + 2 * k.pad, k.w + 2 * k.pad, k.c},
      [&](Expr row, Expr column, Expr c) {
        return Padded(x, k.pad, k.pad, around, row, column, c);
      },
      names);
  Tensor from = t.padded;
  if (k.sum != k.type) {
    t.wide = g.Compute(
        "W", t.padded.shape(), [&](Expr y, Expr x, Expr c) { return To(k.sum, t.padded(y, x, c)); },
        names);
    from = t.wide;
  }
  const te::Shape shape = {k.ho(), k.wo(), k.c};
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.window), s = g.ReduceAxisOf("s", k.window);
  const bool narrows = k.sum != k.type;
  t.reduced = g.Compute(
      k.has_mean() || narrows ? "S" : "Y", shape,
      [&](Expr y, Expr x, Expr c) {
        const Expr value = from(y * k.stride + r, x * k.stride + s, c);
        return k.is_max ? te::ReduceMax(value, r, s) : te::ReduceSum(value, r, s);
      },
      names);
  if (k.has_mean()) {
    t.mean = g.Compute(
        narrows ? "M" : "Y", shape,
        [&](Expr y, Expr x, Expr c) { return MeanOf(t.reduced(y, x, c), k.window * k.window); },
        names);
  }
  if (narrows) {
    const Tensor wide = t.output();
    t.narrow = g.Compute(
        "Y", shape, [&](Expr y, Expr x, Expr c) { return To(k.type, wide(y, x, c)); }, names);
  }
  return t;
}

// [tensor-program pool end]

absl::Status Check(const Operator& op, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckShapes(c, {3}));
  RETURN_IF_ERROR(CheckNumber(op, c, "window", 1));
  if (AttributeWord(op, c, "stride") != "window") RETURN_IF_ERROR(CheckNumber(op, c, "stride", 1));
  const int64_t window = *AttributeInt(op, c, "window");
  // Each window then covers a part of the image.
  RETURN_IF_ERROR(CheckNumber(op, c, "pad", 0, window - 1));
  const Pool k(op, c);
  if (k.h + 2 * k.pad < window || k.w + 2 * k.pad < window) {
    return WrongCase(c, "the window is larger than the padded image");
  }
  return absl::OkStatus();
}

Operator PoolRow(const char* name, const char* doc, bool floats_only) {
  Operator row;
  row.name = name;
  row.doc = doc;
  row.floats_only = row.takes_i8 = floats_only;
  // Windows side by side of many elements are summed in two steps on the card, so in another order.
  if (floats_only) {
    row.tolerance_of_largest = 2e-3;
    row.only_card_reorders = true;
  }
  row.shapes = {"image (H, W, C)"};
  row.attributes = {
      {"window", "2", "rows and columns of a window"},
      {"stride", "window", "distance between windows; window: as many as it has rows"},
      {"pad", "0", "rows and columns around the image; fewer than the window's"}};
  const auto shared = std::make_shared<Operator>(row);
  const auto pool = [shared](const OperatorCase& c) { return Pool(*shared, c); };
  row.check = [shared](const OperatorCase& c) { return Check(*shared, c); };
  row.tensors = [pool](const OperatorCase& c) {
    const Pool k = pool(c);
    return std::vector<TensorSpec>{{"X", c.dtype, c.shape}, {"Y", c.dtype, {k.ho(), k.wo(), k.c}}};
  };
  row.work = [pool](const OperatorCase& c) {
    const Pool k = pool(c);
    // Rows (columns) that some window reads.
    const auto read = [&k](int64_t extent, int64_t outputs) {
      int64_t count = 0, end = 0;
      for (int64_t y = 0; y < outputs; ++y) {
        const int64_t begin = std::max(end, y * k.stride - k.pad);
        end = std::clamp(y * k.stride - k.pad + k.window, begin, std::max(begin, extent));
        count += end - begin;
      }
      return count;
    };
    const int64_t outputs = k.ho() * k.wo() * k.c;
    isa::Work work;
    work.gmem_bytes =
        (read(k.h, k.ho()) * read(k.w, k.wo()) * k.c + outputs) * ir::ByteSize(k.type);
    work.vector_elements = outputs * (k.window * k.window - (k.is_max ? 1 : 0));
    work.vector_type = k.sum;
    return work;
  };
  row.reference = [pool](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                         absl::Span<ir::Tensor> out) {
    const Pool k = pool(c);
    ReferencePool2d(k.is_max ? ReduceOp::kMax : ReduceOp::kMean, k, in[0], out[0]);
  };
  ScheduleByExpressions(
      row, [pool](te::Graph& g, const OperatorCase& c) { return Express(g, pool(c)).output(); },
      name);
  return row;
}

// ---- pad ---------------------------------------------------------------------------------------

struct Pad {
  int64_t h, w, c, before, after;
  double value;
  Type type;

  Pad(const Operator& op, const OperatorCase& k) {
    h = k.shape[0], w = k.shape[1], c = k.shape[2];
    before = *AttributeInt(op, k, "before");
    after = AttributeInt(op, k, "after").value_or(before);
    if (!absl::SimpleAtod(ToAbsl(AttributeWord(op, k, "value")), &value)) value = 0;
    type = k.dtype;
  }
  te::Shape output() const { return {before + h + after, before + w + after, c}; }
};

// [tensor-program pad begin]
Tensor Express(te::Graph& g, const Pad& k) {
  const Tensor x = g.Placeholder("X", {k.h, k.w, k.c}, k.type);
  const Expr value = ir::IsFloat(k.type) ? g.context().Float(k.type, k.value)
                                         : g.context().Int(k.type, static_cast<int64_t>(k.value));
  return g.Compute("Y", k.output(),
                   [&](Expr row, Expr column, Expr channel) {
                     return Padded(x, k.before, k.after, value, row, column, channel);
                   },
                   {"y", "x", "c"});
}
// [tensor-program pad end]

absl::Status CheckPad(const Operator& op, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckShapes(c, {3}));
  RETURN_IF_ERROR(CheckNumber(op, c, "before", 0));
  if (AttributeWord(op, c, "after") != "before") RETURN_IF_ERROR(CheckNumber(op, c, "after", 0));
  const double value = Pad(op, c).value;
  const bool is_whole = std::trunc(value) == value && std::abs(value) <= 0x1p53;
  if (ir::IsInt(c.dtype) && !(is_whole && ir::FitsInt(c.dtype, static_cast<int64_t>(value)))) {
    return WrongCase(c, "attribute value: expected a value of ", ir::TypeName(c.dtype), ", found ",
                     value);
  }
  return absl::OkStatus();
}

Operator PadRow() {
  Operator row;
  row.name = "pad";
  row.doc =
      "Y (B + H + A, B + W + A, C) = X (H, W, C) with B rows and columns before and A after it";
  row.shapes = {"image (H, W, C)"};
  row.attributes = {{"before", "1", "rows above and columns left of the image"},
                    {"after", "before", "rows below and columns right of it; before: as many"},
                    {"value", "0", "of the new elements"}};
  const auto shared = std::make_shared<Operator>(row);
  const auto pad = [shared](const OperatorCase& c) { return Pad(*shared, c); };
  row.check = [shared](const OperatorCase& c) { return CheckPad(*shared, c); };
  row.tensors = [pad](const OperatorCase& c) {
    return std::vector<TensorSpec>{{"X", c.dtype, c.shape}, {"Y", c.dtype, pad(c).output()}};
  };
  row.work = [pad](const OperatorCase& c) {
    isa::Work work;
    work.gmem_bytes =
        (te::ElementCount(c.shape) + te::ElementCount(pad(c).output())) * ir::ByteSize(c.dtype);
    return work;
  };
  row.reference = [pad](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                        absl::Span<ir::Tensor> out) {
    const Pad k = pad(c);
    ReferencePad(k.before, k.after, k.value, in[0], out[0]);
  };
  ScheduleByExpressions(
      row, [pad](te::Graph& g, const OperatorCase& c) { return Express(g, pad(c)); }, "pad");
  return row;
}

}  // namespace

std::vector<Operator> PoolOperators() {
  return {
      PoolRow("max_pool2d", "Y (HO, WO, C) = the largest element of each window of X (H, W, C)",
              false),
      PoolRow("avg_pool2d",
              "Y (HO, WO, C) = the mean of each window of X (H, W, C), zeros around it counted; "
              "of floats and i8",
              true),
      PadRow()};
}

}  // namespace polynao::kernels
