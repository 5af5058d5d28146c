#include "kernels/topi/spatial.h"

#include <algorithm>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "kernels/topi/row.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Axes;

constexpr std::string_view kSpatialLetters = "DHW";

// Words for the axis of a letter, as the attributes have them.
struct AxisWords {
  std::string suffix, before, after;
};
AxisWords WordsOf(char letter) {
  switch (letter) {
    case 'D':
      return {"d", "pad_front", "pad_back"};
    case 'H':
      return {"h", "pad_top", "pad_bottom"};
    case 'W':
      return {"w", "pad_left", "pad_right"};
    default:
      POLYNAO_UNREACHABLE(letter);
  }
}

std::string SpatialOf(std::string_view layout) {
  std::string letters;
  for (const char letter : kSpatialLetters) {
    if (layout.find(letter) != std::string_view::npos) letters += letter;
  }
  return letters;
}

int64_t Extent(const te::Shape& shape, std::string_view layout, char letter) {
  const size_t at = layout.find(letter);
  return at == std::string_view::npos ? 1 : shape[at];
}

}  // namespace

OperatorAttribute TailAttribute(std::vector<std::string> words) {
  return {"epilogue", words[0], "what is fused behind it", std::move(words)};
}

Tail ReadTail(const Operator& row, const OperatorCase& c) {
  Tail tail;
  tail.word = AttributeWord(row, c, "epilogue");
  tail.bias = tail.word.starts_with("bias");
  tail.scale_shift = tail.word.starts_with("scale_shift");
  tail.relu = tail.word.ends_with("relu");
  return tail;
}

std::vector<OperatorAttribute> SpatialAttributes(const SpatialForm& form, bool with_dilation) {
  std::vector<OperatorAttribute> attributes;
  for (const char letter : SpatialOf(form.layout)) {
    const auto [suffix, before, after] = WordsOf(letter);
    attributes.push_back({StrCat("stride_", suffix), "1", "places from one window to the next"});
    if (form.transposed) {
      attributes.push_back(
          {StrCat("output_padding_", suffix), "0", "elements that the output has more"});
    } else if (with_dilation) {
      attributes.push_back(
          {StrCat("dilation_", suffix), "1", "places between elements of a filter"});
    }
    attributes.push_back({before, "0", "zeros before"});
    attributes.push_back({after, "0", "zeros behind"});
  }
  return attributes;
}

absl::StatusOr<Spatial> ReadSpatial(const Operator& row, const OperatorCase& c,
                                    const SpatialForm& form) {
  RETURN_IF_ERROR(CheckTypes(c, form.types));
  RETURN_IF_ERROR(CheckRank(c, 0, form.layout.size()));
  RETURN_IF_ERROR(CheckRank(c, 1, form.kernel_layout.size()));
  Spatial k;
  k.tail = ReadTail(row, c);
  k.name = k.tail.word == "none" ? row.name : StrCat(row.name, "_", k.tail.word);
  k.in = k.out = c.dtype;
  k.acc = ir::IsInt(c.dtype) ? ir::Type::kI32 : c.dtype;
  k.layout = form.layout;
  k.kernel_layout = form.kernel_layout;
  k.data_shape = c.shape;
  k.weight_shape = c.operands[0];
  k.n = Extent(k.data_shape, k.layout, 'N');
  k.ci = Extent(k.data_shape, k.layout, 'C');
  const bool depthwise = k.kernel_layout.find('M') != std::string::npos;
  if (depthwise) {
    k.groups = Extent(k.weight_shape, k.kernel_layout, 'C');
    k.co = k.groups * Extent(k.weight_shape, k.kernel_layout, 'M');
  } else {
    k.co = Extent(k.weight_shape, k.kernel_layout, 'O');
    const auto has_groups = [](const OperatorAttribute& a) { return a.name == "groups"; };
    if (std::any_of(row.attributes.begin(), row.attributes.end(), has_groups)) {
      ASSIGN_OR_RETURN(k.groups, NumberFrom(row, c, "groups", 1));
    }
  }
  const int64_t filter_ci = depthwise ? 1 : Extent(k.weight_shape, k.kernel_layout, 'I');
  if (k.ci != filter_ci * k.groups || k.co % k.groups != 0) {
    return WrongShape(c, "expected a filter for ", k.ci, " input channels in ", k.groups,
                      " groups, found one of ", filter_ci, " input and ", k.co, " output channels");
  }
  for (const char letter : SpatialOf(form.layout)) {
    const auto [suffix, before, after_word] = WordsOf(letter);
    SpatialAxis a;
    a.in = Extent(k.data_shape, k.layout, letter);
    a.kernel = Extent(k.weight_shape, k.kernel_layout, letter);
    ASSIGN_OR_RETURN(a.stride, NumberFrom(row, c, StrCat("stride_", suffix), 1));
    ASSIGN_OR_RETURN(a.before, NumberFrom(row, c, before, 0));
    ASSIGN_OR_RETURN(const int64_t after, NumberFrom(row, c, after_word, 0));
    if (form.transposed) {
      ASSIGN_OR_RETURN(const int64_t more,
                       NumberFrom(row, c, StrCat("output_padding_", suffix), 0));
      a.out = (a.in - 1) * a.stride + a.kernel - a.before - after + more;
    } else {
      const auto has_dilation = [&](const OperatorAttribute& other) {
        return other.name == StrCat("dilation_", suffix);
      };
      if (std::any_of(row.attributes.begin(), row.attributes.end(), has_dilation)) {
        ASSIGN_OR_RETURN(a.dilation, NumberFrom(row, c, StrCat("dilation_", suffix), 1));
      }
      const int64_t room = a.in + a.before + after - a.dilation * (a.kernel - 1) - 1;
      a.out = room < 0 ? 0 : room / a.stride + 1;
    }
    if (a.out <= 0) {
      return WrongShape(c, "expected a filter that fits the padded input, found an extent ",
                        std::string(1, letter), " of ", a.kernel, " on ", a.in, " with ", a.before,
                        " and ", after, " zeros");
    }
    k.axes.push_back(a);
    k.after.push_back(after);
  }
  for (const char letter : k.layout) {
    const size_t axis = SpatialOf(k.layout).find(letter);
    k.out_shape.push_back(letter == 'N' ? k.n : letter == 'C' ? k.co : k.axes[axis].out);
  }
  return k;
}

std::vector<TensorSpec> SpatialTensors(const Spatial& k) {
  std::vector<TensorSpec> specs = {{"data", k.in, k.data_shape}, {"weight", k.in, k.weight_shape}};
  if (k.tail.bias) specs.push_back({"bias", k.out, {k.co}});
  if (k.tail.scale_shift) {
    specs.push_back({"scale", k.out, {k.co}});
    specs.push_back({"shift", k.out, {k.co}});
  }
  specs.push_back({"output", k.out, k.out_shape});
  return specs;
}

SpatialProblem ToProblem(const Spatial& k) {
  return {.n = k.n,
          .ci = k.ci,
          .co = k.co,
          .groups = k.groups,
          .axes = k.axes,
          .layout = k.layout,
          .kernel_layout = k.kernel_layout};
}

int64_t SpatialMacs(const Spatial& k, bool transposed) {
  int64_t macs = k.n * k.co * k.group_ci();
  for (const SpatialAxis& a : k.axes) macs *= (transposed ? a.in : a.out) * a.kernel;
  return macs;
}

void FinishReference(const Spatial& k, const std::vector<double>& sums,
                     absl::Span<const ir::Tensor> in, ir::Tensor& out) {
  int64_t places = 1;
  for (const SpatialAxis& a : k.axes) places *= a.out;
  // Where an element goes: strides of N, C and the places between them.
  std::vector<int64_t> strides(k.layout.size(), 1);
  for (size_t d = k.layout.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * k.out_shape[d + 1];
  const auto stride = [&](char letter) { return strides[k.layout.find(letter)]; };
  const std::string letters = SpatialOf(k.layout);
  int64_t next = 0;
  for (int64_t n = 0; n < k.n; ++n) {
    for (int64_t c = 0; c < k.co; ++c) {
      for (int64_t place = 0; place < places; ++place) {
        int64_t at = n * stride('N') + c * stride('C');
        int64_t rest = place;
        for (size_t d = k.axes.size(); d-- > 0; rest /= k.axes[d].out) {
          at += rest % k.axes[d].out * stride(letters[d]);
        }
        double value = sums[next++];
        const auto wrapped = [&](double v) {
          return ir::IsInt(k.out) ? static_cast<double>(ir::WrapInt(k.out, static_cast<int64_t>(v)))
                                  : v;
        };
        value = wrapped(value);
        if (k.tail.bias) value = wrapped(value + in[2].Value(c));
        if (k.tail.scale_shift) value = value * in[2].Value(c) + in[3].Value(c);
        if (k.tail.relu) value = std::max(value, 0.0);
        out.SetValue(at, value);
      }
    }
  }
}

Axes InLayout(std::string_view layout, Expr n, Expr c, const std::vector<Expr>& spatial) {
  Axes indices;
  const std::string letters = SpatialOf(layout);
  for (const char letter : layout) {
    indices.push_back(letter == 'N' ? n : letter == 'C' ? c : spatial[letters.find(letter)]);
  }
  return indices;
}

Expr Letter(std::string_view layout, const Axes& indices, char letter) {
  const size_t at = layout.find(letter);
  POLYNAO_CHECK(at != std::string_view::npos) << std::string(layout) << " " << letter;
  return indices[at];
}

std::vector<Expr> SpatialLetters(std::string_view layout, const Axes& indices) {
  std::vector<Expr> result;
  for (const char letter : SpatialOf(layout)) result.push_back(Letter(layout, indices, letter));
  return result;
}

std::vector<std::string> AxisNames(std::string_view layout) {
  std::vector<std::string> names;
  for (const char letter : layout) {
    // A block of channels, c, after the channels C themselves.
    names.push_back(letter == 'c' ? "cb" : std::string(1, static_cast<char>(letter - 'A' + 'a')));
  }
  return names;
}

SpatialInputs Placeholders(te::Graph& g, const Spatial& k) {
  SpatialInputs t;
  t.data = g.Placeholder("data", k.data_shape, k.in);
  t.weight = g.Placeholder("weight", k.weight_shape, k.in);
  if (k.tail.bias) t.bias = g.Placeholder("bias", {k.co}, k.out);
  if (k.tail.scale_shift) {
    t.scale = g.Placeholder("scale", {k.co}, k.out);
    t.shift = g.Placeholder("shift", {k.co}, k.out);
  }
  return t;
}

te::Tensor Pad(te::Graph& g, const Spatial& k, const te::Tensor& data) {
  const std::string letters = SpatialOf(k.layout);
  te::Shape shape = data.shape();
  std::vector<int64_t> before(shape.size(), 0), behind(shape.size(), 0);
  bool pads = false;
  for (size_t a = 0; a < letters.size(); ++a) {
    const size_t d = k.layout.find(letters[a]);
    before[d] = k.axes[a].before;
    behind[d] = k.after[a];
    pads = pads || before[d] + behind[d] > 0;
    shape[d] += before[d] + behind[d];
  }
  if (!pads) return data;
  return g.Compute(
      "pad_temp", shape,
      [&](const Axes& i) {
        Expr inside;
        const auto require = [&inside](Expr e) { inside = inside ? ir::And(inside, e) : e; };
        Axes from = i;
        for (size_t d = 0; d < i.size(); ++d) {
          if (before[d] > 0) require(i[d] >= before[d]);
          if (behind[d] > 0) require(i[d] < before[d] + data.shape()[d]);
          if (before[d] > 0) from[d] = i[d] - before[d];
        }
        return te::Select(inside, data(from), 0);
      },
      AxisNames(k.layout));
}

std::vector<te::ReduceAxis> KernelAxes(te::Graph& g, const Spatial& k) {
  const std::string letters = SpatialOf(k.layout);
  std::vector<te::ReduceAxis> axes;
  for (size_t a = 0; a < k.axes.size(); ++a) {
    axes.push_back(g.ReduceAxisOf(StrCat("r", WordsOf(letters[a]).suffix), k.axes[a].kernel));
  }
  return axes;
}

Expr ApplyTail(const Spatial& k, const SpatialInputs& t, Expr value, Expr c) {
  if (k.tail.bias) value = value + t.bias(c);
  if (k.tail.scale_shift) value = value * t.scale(c) + t.shift(c);
  if (k.tail.relu) value = ir::Max(value, ir::ConstantLike(value, 0));
  return value;
}

}  // namespace polynao::kernels
