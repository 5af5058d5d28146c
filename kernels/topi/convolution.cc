#include "kernels/topi/convolution.h"

#include <algorithm>
#include <utility>

#include "base/math.h"
#include "base/status.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/topi/row.h"
#include "kernels/topi/schedules.h"
#include "kernels/topi/spatial.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Axes;
using te::ReduceAxis;
using te::Schedule;
using te::Tensor;

// The 8-bit convolutions take channels in blocks of this size; their output is NCHW4c.
constexpr int64_t kBlock8 = 4;

struct Convolution : Spatial {
  bool transposed = false;
  bool blocked_output = false;  // NCHW4c

  te::Shape OutputShape() const {
    if (!blocked_output) return out_shape;
    return {n, co / kBlock8, axes[0].out, axes[1].out, kBlock8};
  }
};

// The tensor that the sums read: the padded input. For a transposed convolution, stride - 1 zeros stand between its
// elements, so that it becomes a convolution of stride 1 with the reversed filter.
Tensor Source(te::Graph& g, const Convolution& k, const Tensor& data) {
  if (!k.transposed) return Pad(g, k, data);
  te::Shape shape = data.shape();
  // The layouts of transposed convolutions end with their spatial axes.
  for (size_t a = 0; a < k.rank(); ++a) shape[2 + a] = k.axes[a].out + k.axes[a].kernel - 1;
  const Tensor dilate = g.Compute(
      "dilate",
      [&] {
        te::Shape dilated = data.shape();
        for (size_t a = 0; a < k.rank(); ++a) {
          dilated[2 + a] = (k.axes[a].in - 1) * k.axes[a].stride + 1;
        }
        return dilated;
      }(),
      [&](const Axes& i) -> Expr {
        Expr element;
        Axes from = i;
        for (size_t a = 0; a < k.rank(); ++a) {
          const int64_t stride = k.axes[a].stride;
          if (stride == 1) continue;
          const Expr here = ir::Eq(i[2 + a] % stride, ir::ConstantLike(i[2 + a], 0));
          element = element ? ir::And(element, here) : here;
          from[2 + a] = i[2 + a] / stride;
        }
        return element ? te::Select(element, data(from), 0) : data(from);
      },
      AxisNames(k.layout));
  return g.Compute(
      "pad_temp", shape,
      [&](const Axes& i) {
        Expr inside;
        Axes from = i;
        for (size_t a = 0; a < k.rank(); ++a) {
          // Negative with more padding than the filter reaches.
          const int64_t before = k.axes[a].kernel - 1 - k.axes[a].before;
          const Expr here = ir::And(i[2 + a] >= before, i[2 + a] < before + dilate.shape()[2 + a]);
          inside = inside ? ir::And(inside, here) : here;
          from[2 + a] = i[2 + a] - before;
        }
        return te::Select(inside, dilate(from), 0);
      },
      AxisNames(k.layout));
}

// The element of `source` that output place `spatial` of channel `c` multiplies with tap r of the
// group's input channel rc.
Expr SourceAt(const Convolution& k, const Tensor& source, Expr n, Expr c, Expr rc,
              const std::vector<Expr>& spatial, const std::vector<ReduceAxis>& r) {
  std::vector<Expr> places;
  for (size_t a = 0; a < k.rank(); ++a) {
    Expr place = k.transposed || k.axes[a].stride == 1 ? spatial[a] : spatial[a] * k.axes[a].stride;
    places.push_back(place + (k.axes[a].dilation == 1 ? Expr(r[a]) : r[a] * k.axes[a].dilation));
  }
  Expr channel = rc;
  if (k.groups > 1) {
    channel = k.group_ci() == 1 ? c / k.group_co() : c / k.group_co() * k.group_ci() + rc;
  }
  return source(InLayout(k.layout, n, channel, places));
}

Expr WeightAt(const Convolution& k, const Tensor& weight, Expr c, Expr rc,
              const std::vector<Expr>& r) {
  Axes indices;
  size_t a = 0;
  for (const char letter : k.kernel_layout) {
    if (letter == 'O') {
      indices.push_back(c);
    } else if (letter == 'I') {
      indices.push_back(rc);
    } else if (letter == 'C') {  // depthwise: C M
      indices.push_back(c / k.group_co());
    } else if (letter == 'M') {
      indices.push_back(c % k.group_co());
    } else {
      indices.push_back(k.transposed ? k.axes[a].kernel - 1 - r[a] : r[a]);
      ++a;
    }
  }
  return weight(indices);
}

struct Tensors {
  SpatialInputs in;
  Tensor packed_data;  // the input in blocks of channels, if there are any
  Tensor source;
  Tensor packed;  // the filter, if it is packed
  Tensor sums;
  Tensor output;
};

std::vector<ReduceAxis> AllAxes(const ReduceAxis& rc, const std::vector<ReduceAxis>& r) {
  std::vector<ReduceAxis> axes = {rc};
  axes.insert(axes.end(), r.begin(), r.end());
  return axes;
}

Expr To(ir::Type type, Expr e) { return e.context().Cast(type, e); }

// The output, in its layout and type and with its tail, from a function that gives the sum at n, c and
// the spatial places.
template <typename F>
Tensor Output(te::Graph& g, const Convolution& k, const Tensors& t, const F& sum) {
  if (k.blocked_output) {
    return g.Compute("output", k.OutputShape(),
                     [&](Expr n, Expr co, Expr h, Expr w, Expr cb) {
                       const Expr c = co * kBlock8 + cb;
                       return ApplyTail(k, t.in, To(k.out, sum(n, c, std::vector<Expr>{h, w})), c);
                     },
                     {"n", "co", "h", "w", "cb"});
  }
  return g.Compute(
      "output", k.out_shape,
      [&](const Axes& i) {
        const Expr c = Letter(k.layout, i, 'C');
        return ApplyTail(
            k, t.in, To(k.out, sum(Letter(k.layout, i, 'N'), c, SpatialLetters(k.layout, i))), c);
      },
      AxisNames(k.layout));
}

// The sums in the output's layout.
void ExpressDirect(te::Graph& g, const Convolution& k, Tensors& t) {
  const ReduceAxis rc = g.ReduceAxisOf("rc", k.group_ci());
  const std::vector<ReduceAxis> r = KernelAxes(g, k);
  const std::vector<Expr> taps(r.begin(), r.end());
  const bool plain = !k.tail.bias && !k.tail.relu && !k.tail.scale_shift;
  t.sums = g.Compute(
      plain ? "output" : "conv", k.out_shape,
      [&](const Axes& i) {
        const Expr c = Letter(k.layout, i, 'C');
        const Expr x =
            SourceAt(k, t.source, Letter(k.layout, i, 'N'), c, rc, SpatialLetters(k.layout, i), r);
        return te::ReduceSum(x * WeightAt(k, t.in.weight, c, rc, taps), AllAxes(rc, r));
      },
      AxisNames(k.layout));
  t.output = t.sums;
  if (plain) return;
  t.output = Output(g, k, t, [&](Expr n, Expr c, const std::vector<Expr>& places) {
    return t.sums(InLayout(k.layout, n, c, places));
  });
}

// TOPI's 8-bit convolution: data and filter are repacked in blocks of four input channels, whose products a GPU adds
// up with one instruction. Sums are computed in blocks of four output channels.
void ExpressBlocks8(te::Graph& g, const Convolution& k, Tensors& t) {
  const SpatialAxis &h = k.axes[0], &w = k.axes[1];
  t.packed_data = g.Compute(
      "packed_data", {k.n, k.ci / kBlock8, h.in, w.in, kBlock8},
      [&](Expr n, Expr c, Expr y, Expr x, Expr cb) { return t.in.data(n, c * kBlock8 + cb, y, x); },
      {"n", "c", "h", "w", "cb"});
  Spatial blocked = k;
  blocked.layout = "NCHWc";
  t.source = Pad(g, blocked, t.packed_data);
  t.packed =
      g.Compute("packed_kernel",
                {k.co / kBlock8, k.group_ci() / kBlock8, h.kernel, w.kernel, kBlock8, kBlock8},
                [&](Expr o, Expr c, Expr y, Expr x, Expr ob, Expr cb) {
                  return t.in.weight(o * kBlock8 + ob, c * kBlock8 + cb, y, x);
                },
                {"o", "c", "kh", "kw", "ob", "cb"});
  const ReduceAxis rc = g.ReduceAxisOf("rc", k.group_ci() / kBlock8);
  const std::vector<ReduceAxis> r = KernelAxes(g, k);
  const ReduceAxis rb = g.ReduceAxisOf("rb", kBlock8);
  t.sums = g.Compute(
      "conv", k.OutputShape(),
      [&](Expr n, Expr o, Expr y, Expr x, Expr ob) {
        Expr c = rc;
        if (k.groups > 1) {
          c = o / (k.group_co() / kBlock8) * (k.group_ci() / kBlock8) + rc;
        }
        const Expr value =
            t.source(n, c, y * h.stride + r[0] * h.dilation, x * w.stride + r[1] * w.dilation, rb);
        return te::ReduceSum(To(k.acc, value) * To(k.acc, t.packed(o, rc, r[0], r[1], ob, rb)), rc,
                             r[0], r[1], rb);
      },
      {"n", "o", "h", "w", "ob"});
  t.output =
      g.Compute("output", k.OutputShape(),
                [&](Expr n, Expr o, Expr y, Expr x, Expr ob) {
                  return ApplyTail(k, t.in, To(k.out, t.sums(n, o, y, x, ob)), o * kBlock8 + ob);
                },
                {"n", "o", "h", "w", "ob"});
}

// As TOPI does for CPUs: the filter is packed and the sums are computed in blocks of `block` output channels, the
// lanes of a vector; a last step stores them in the output's layout.
void ExpressBlocked(te::Graph& g, const Convolution& k, int64_t block, Tensors& t) {
  const int64_t blocks = CeilDiv(k.co, block);
  const bool whole = k.co % block == 0;
  te::Shape packed_shape = {blocks, k.group_ci()};
  std::vector<std::string> names = {"co", "ci"};
  for (size_t a = 0; a < k.rank(); ++a) {
    packed_shape.push_back(k.axes[a].kernel);
    names.push_back(StrCat("k", a));
  }
  packed_shape.push_back(block);
  names.emplace_back("cb");
  t.packed = g.Compute(
      "kernel_vec", packed_shape,
      [&](const Axes& i) -> Expr {
        const Expr c = i.front() * block + i.back();
        const std::vector<Expr> taps(i.begin() + 2, i.end() - 1);
        const Expr value = WeightAt(k, t.in.weight, c, i[1], taps);
        return whole ? value : te::Select(c < k.co, value, 0);
      },
      names);
  const ReduceAxis rc = g.ReduceAxisOf("rc", k.group_ci());
  const std::vector<ReduceAxis> r = KernelAxes(g, k);
  te::Shape shape = {k.n, blocks};
  names = {"n", "co"};
  for (size_t a = 0; a < k.rank(); ++a) {
    shape.push_back(k.axes[a].out);
    names.emplace_back(1, "dhw"[3 - k.rank() + a]);
  }
  shape.push_back(block);
  names.emplace_back("cb");
  t.sums = g.Compute(
      "conv", shape,
      [&](const Axes& i) {
        const std::vector<Expr> spatial(i.begin() + 2, i.end() - 1);
        // Channels of a block are in one group: block divides the channels of one.
        const Expr x = SourceAt(k, t.source, i[0], i[1] * block, rc, spatial, r);
        Axes w = {i[1], rc};
        w.insert(w.end(), r.begin(), r.end());
        w.push_back(i.back());
        return te::ReduceSum(To(k.acc, x) * To(k.acc, t.packed(w)), AllAxes(rc, r));
      },
      names);
  t.output = Output(g, k, t, [&](Expr n, Expr c, const std::vector<Expr>& places) {
    Axes from = {n, c / block};
    from.insert(from.end(), places.begin(), places.end());
    from.push_back(c % block);
    return t.sums(from);
  });
}

// Channels in a block, or 0: not blocked.
int64_t BlockOf(const Convolution& k) {
  if (k.groups > 1) {
    const int64_t block = DivisorUpTo(k.group_co(), 16);
    return block >= 8 ? block : 0;
  }
  return ChannelBlock(k.co);
}

// Threads on an axis, or iterations at a time: a large divisor, or `most` with a remainder.
int64_t ThreadsOn(int64_t extent, int64_t most) {
  const int64_t divisor = DivisorUpTo(extent, most);
  return 2 * divisor >= most ? divisor : std::min(extent, most);
}

// As TOPI's direct convolutions for GPUs: blocks of pixels and channels; a thread computes several channels (or,
// where channels are the last dimension, several pixels). Shared memory holds tiles of input and filter for some
// input channels and taps at a time.
GpuTile TileOf(const Convolution& k) {
  const bool last = k.layout.find('C') > k.layout.find('W');
  const int64_t width = k.axes.back().out;
  const int64_t height = k.rank() > 1 ? k.axes[k.rank() - 2].out : 1;
  const int64_t channels = k.group_co() / (k.blocked_output ? kBlock8 : 1);
  int64_t w = 1, h = 1, c = 1, each_w = 1, each_c = 1;
  if (last) {
    c = ThreadsOn(channels, 32);
    each_w = DivisorUpTo(width, 4);
    w = ThreadsOn(CeilDiv(width, each_w), 4);
    h = ThreadsOn(height, std::max<int64_t>(1, 256 / (c * w) / 2));
  } else {
    w = ThreadsOn(width, 32);
    h = ThreadsOn(height, std::max<int64_t>(1, 64 / w));
    each_c = DivisorUpTo(channels, k.blocked_output ? 2 : 4);
    c = DivisorUpTo(channels / each_c, std::clamp<int64_t>(256 / (w * h), 1, 8));
  }
  GpuTile tile;
  for (const char letter : k.layout) {
    tile.threads.push_back(letter == 'W' ? w : letter == 'H' ? h : letter == 'C' ? c : 1);
    const int64_t each = letter == 'W' ? each_w : letter == 'C' ? each_c : 1;
    tile.each.push_back(
        letter == 'N' && last ? std::min<int64_t>(k.n, k.layout.back() == 'N' ? 4 : 1) : each);
  }
  if (k.blocked_output) {
    tile.threads.push_back(1);
    tile.each.push_back(kBlock8);
    tile.dot_of_four = true;
  }
  // All taps at a time, those of the last axis, or one; as many channels as fit.
  constexpr int64_t kSharedBytes = 32 << 10;
  const int64_t element = ir::ByteSize(k.in);
  const int64_t lanes = k.blocked_output ? kBlock8 : 1;
  for (size_t whole = k.rank() + 1; whole-- > 0;) {
    int64_t image = 1, taps = 1;
    std::vector<int64_t> reduce = {1};
    for (size_t a = 0; a < k.rank(); ++a) {
      const SpatialAxis& axis = k.axes[a];
      const int64_t kernel = a + whole >= k.rank() ? axis.kernel : 1;
      const int64_t outputs = a + 1 == k.rank() ? w * each_w : a + 2 == k.rank() ? h : 1;
      image *= (outputs - 1) * (k.transposed ? 1 : axis.stride) + (kernel - 1) * axis.dilation + 1;
      taps *= kernel;
      reduce.push_back(kernel);
    }
    const int64_t batch = k.layout.back() == 'N' ? std::min<int64_t>(k.n, 4) : 1;
    for (int64_t most = 8; most > 0; most /= 2) {
      const int64_t rc = ThreadsOn(k.group_ci() / lanes, most);
      reduce[0] = rc;
      const int64_t bytes = rc * lanes * element * (image * batch + c * each_c * lanes * taps);
      if (bytes > kSharedBytes && (most > 1 || whole > 0)) continue;
      tile.reduce = reduce;
      if (k.blocked_output) tile.reduce.push_back(kBlock8);
      return tile;
    }
  }
  POLYNAO_UNREACHABLE(k.name);
}

absl::StatusOr<ir::Function> BuildForGpu(te::Schedule& s, const Convolution& k, Tensors& t) {
  const bool padded = !(t.source == t.in.data) && !(t.source == t.packed_data);
  if (k.blocked_output) {
    BindElements(s, t.packed_data);
    BindElements(s, t.packed);
  }
  TileOnGpu(s, t.output, t.sums, TileOf(k),
            {{.tensor = t.source, .inlined = padded, .lanes = 1},
             {.tensor = k.blocked_output ? t.packed : t.in.weight, .inlined = false, .lanes = 1}});
  return te::Lower(s);
}

absl::StatusOr<ir::Function> Build(const Convolution& k, const Target& target) {
  te::Graph g(k.name);
  Tensors t;
  t.in = Placeholders(g, k);
  const int64_t block = IsProcessor(target.name) ? BlockOf(k) : 0;
  if (block > 0) {
    t.source = Source(g, k, t.in.data);
    ExpressBlocked(g, k, block, t);
  } else if (k.blocked_output) {
    ExpressBlocks8(g, k, t);
  } else {
    t.source = Source(g, k, t.in.data);
    ExpressDirect(g, k, t);
  }
  Schedule s(t.output);
  const auto& operations = g.state()->operations;
  for (const te::Operation& operation : operations) {
    if (operation.name == "dilate") s[Tensor(g.state(), &operation)].ComputeInline();
  }
  if (IsGpu(target.name)) return BuildForGpu(s, k, t);
  if (!IsProcessor(target.name)) return te::Lower(s);
  if (!(t.source == t.in.data) && !(t.source == t.packed_data))
    ParallelElementwise(s, t.source, target);
  if (t.packed) ParallelElementwise(s, t.packed, target);
  if (!(t.output == t.sums)) ParallelElementwise(s, t.output, target);
  const int64_t width = k.axes.back().out;
  if (block > 0) {
    TileReduction(
        s, t.sums,
        {.row_axis = t.sums.rank() - 2, .rows = RegisterRows(width, block), .vector = block});
    return te::Lower(s);
  }
  if (k.blocked_output) {
    ParallelElementwise(s, t.packed_data, target);
    TileReduction(s, t.sums, {.row_axis = 3, .rows = DivisorUpTo(width, 8), .vector = kBlock8});
    return te::Lower(s);
  }
  const size_t w = k.layout.find('W');
  if (w + 1 == k.layout.size()) {
    const int64_t divisor = DivisorUpTo(width, 64);
    TileReduction(s, t.sums,
                  {.row_axis = w, .vector = divisor >= 8 ? divisor : std::min<int64_t>(width, 32)});
  } else {  // few channels, which are the last dimension
    TileReduction(s, t.sums,
                  {.row_axis = w, .rows = DivisorUpTo(width, 8), .vector = t.sums.shape().back()});
  }
  return te::Lower(s);
}

Operator Row(std::string name, std::string doc, const SpatialForm& form,
             std::vector<OperatorAttribute> more = {}) {
  Operator row;
  row.name = std::move(name);
  row.doc = std::move(doc);
  row.shapes = {StrCat("data (", form.layout, ")"), StrCat("weight (", form.kernel_layout, ")")};
  row.attributes = SpatialAttributes(form);
  for (OperatorAttribute& attribute : more) row.attributes.push_back(std::move(attribute));
  return row;
}

Operator Finish(
    Operator row,
    std::function<absl::StatusOr<Convolution>(const Operator&, const OperatorCase&)> parse) {
  return MakeRow<Convolution>(
      std::move(row),
      {.parse = std::move(parse),
       .tensors =
           [](const Convolution& k) {
             std::vector<TensorSpec> specs = SpatialTensors(k);
             specs.back().shape = k.OutputShape();
             return specs;
           },
       .reference =
           [](const Convolution& k, absl::Span<const ir::Tensor> in, ir::Tensor& out) {
             SpatialProblem p = ToProblem(k);
             ir::Tensor weight = in[1];
             if (k.kernel_layout == "CMHW") {
               // In output channels C * M and one input channel.
               p.kernel_layout = "OIHW";
               weight.shape = {k.co, 1, k.axes[0].kernel, k.axes[1].kernel};
             }
             const std::vector<double> sums = k.transposed
                                                  ? ReferenceSpatialTransposed(p, in[0], weight)
                                                  : ReferenceSpatial(p, in[0], weight);
             if (!k.blocked_output) return FinishReference(k, sums, in, out);
             ir::Tensor plain(k.out, k.out_shape);
             FinishReference(k, sums, in, plain);
             const int64_t places = k.axes[0].out * k.axes[1].out;
             for (int64_t i = 0; i < plain.element_count(); ++i) {
               const int64_t nc = i / places;
               out.SetValue((nc / kBlock8 * places + i % places) * kBlock8 + nc % kBlock8,
                            plain.Value(i));
             }
           },
       .build = Build,
       .macs = [](const Convolution& k) { return SpatialMacs(k, k.transposed); }});
}

Operator Of(std::string name, std::string doc, const SpatialForm& form,
            std::vector<OperatorAttribute> more = {}) {
  return Finish(Row(std::move(name), std::move(doc), form, std::move(more)),
                [form](const Operator& row, const OperatorCase& c) -> absl::StatusOr<Convolution> {
                  ASSIGN_OR_RETURN(Spatial k, ReadSpatial(row, c, form));
                  return Convolution{std::move(k), form.transposed, false};
                });
}

// 8-bit data and filters, in blocks of four channels.
Operator Of8(std::string name, std::string doc, std::vector<OperatorAttribute> more) {
  return Finish(Row(std::move(name), std::move(doc), SpatialForm(), std::move(more)),
                [](const Operator& row, const OperatorCase& c) -> absl::StatusOr<Convolution> {
                  SpatialForm form;
                  form.types = {ir::Type::kI8};
                  ASSIGN_OR_RETURN(Spatial k, ReadSpatial(row, c, form));
                  if (k.group_ci() % kBlock8 != 0 || k.group_co() % kBlock8 != 0) {
                    return WrongShape(c, "expected channels of a group in blocks of ", kBlock8,
                                      ", found ", k.group_ci(), " and ", k.group_co());
                  }
                  return Convolution{std::move(k), false, true};
                });
}

// conv1d in both layouts.
Operator Conv1d() {
  Operator row =
      Row("conv1d", "sums of windows times filters, on one axis", {"NCW", "OIW"},
          {TailAttribute({"none"}),
           {"layout", "NCW", "of data and filter: NCW, OIW or NWC, WIO", {"NCW", "NWC"}}});
  row.shapes = {"data (NCW or NWC)", "weight (OIW or WIO)"};
  return Finish(
      std::move(row), [](const Operator& r, const OperatorCase& c) -> absl::StatusOr<Convolution> {
        const bool last = AttributeWord(r, c, "layout") == "NWC";
        const SpatialForm form = last ? SpatialForm{"NWC", "WIO"} : SpatialForm{"NCW", "OIW"};
        ASSIGN_OR_RETURN(Spatial k, ReadSpatial(r, c, form));
        return Convolution{std::move(k), false, false};
      });
}

}  // namespace

std::vector<Operator> TopiConvolutionOperators() {
  const OperatorAttribute none = TailAttribute({"none"});
  const OperatorAttribute relu = TailAttribute({"none", "relu"});
  const OperatorAttribute bias = TailAttribute({"none", "bias", "relu", "bias_relu"});
  const OperatorAttribute scale = TailAttribute({"none", "scale_shift", "scale_shift_relu"});
  const OperatorAttribute groups = {"groups", "1", "channels are convolved in so many groups"};
  const std::string doc = "sums of windows times filters, ";
  const std::string transposed = "the transpose of a convolution with a stride, ";
  return {
      Conv1d(),
      Of("conv2d_nchw", doc + "NCHW", {"NCHW", "OIHW"}, {bias}),
      Of("conv2d_nhwc", doc + "NHWC", {"NHWC", "HWIO"}, {none}),
      Of("conv2d_hwcn", doc + "HWCN", {"HWCN", "HWIO"}, {bias}),
      Of("conv3d_ncdhw", doc + "NCDHW", {"NCDHW", "OIDHW"}, {bias}),
      Of("conv3d_ndhwc", doc + "NDHWC", {"NDHWC", "DHWIO"}, {none}),
      Of("group_conv2d", doc + "in groups of channels, NCHW", {"NCHW", "OIHW"}, {bias, groups}),
      Of8("conv2d_int8", doc + "8 bits, NCHW to NCHW4c", {bias}),
      Of8("group_conv2d_int8", doc + "8 bits, in groups of channels, NCHW to NCHW4c",
          {bias, groups}),
      Of("depthwise_conv2d", doc + "each channel by itself, NCHW", {"NCHW", "CMHW"}, {scale}),
      Of("conv1d_transpose_ncw", transposed + "NCW", {"NCW", "IOW", true}, {relu}),
      Of("conv2d_transpose_nchw", transposed + "NCHW", {"NCHW", "IOHW", true}, {relu}),
      Of("conv3d_transpose_ncdhw", transposed + "NCDHW", {"NCDHW", "IODHW", true}, {relu}),
  };
}

}  // namespace polynao::kernels
