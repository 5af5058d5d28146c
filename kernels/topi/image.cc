#include "kernels/topi/image.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/check.h"
#include "base/status.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/reference/image.h"
#include "kernels/topi/row.h"
#include "kernels/topi/schedules.h"
#include "kernels/topi/spatial.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Axes;
using te::Schedule;
using te::Tensor;

enum class ImageKind { kResize, kCropAndResize, kAffineGrid, kGridSample };

struct Image {
  std::string name;  // of the function
  ImageKind kind = ImageKind::kResize;
  std::string layout;  // N C D H W and what blocks of channels there are
  CoordinateMode mode = CoordinateMode::kAsymmetric;
  bool nearest = false;
  double outside = 0;
  te::Shape data_shape, grid_shape, out_shape;
  std::vector<double> boxes, box_indices;
};

std::vector<TensorSpec> Tensors(const Image& k) {
  std::vector<TensorSpec> specs = {{"data", Type::kF32, k.data_shape}};
  if (k.kind == ImageKind::kCropAndResize) {
    const int64_t count = static_cast<int64_t>(k.box_indices.size());
    specs.push_back({"boxes", Type::kF32, {count, 4}});
    specs.push_back({"box_indices", Type::kI32, {count}});
  }
  if (k.kind == ImageKind::kGridSample) specs.push_back({"grid", Type::kF32, k.grid_shape});
  specs.push_back({"output", Type::kF32, k.out_shape});
  return specs;
}

ir::Tensor Input(const Image& k, size_t i, uint64_t seed) {
  const TensorSpec spec = Tensors(k)[i];
  if (k.kind != ImageKind::kCropAndResize || i == 0) {
    return UniformTensor(spec.type, spec.shape, seed);
  }
  ir::Tensor tensor(spec.type, spec.shape);
  const std::vector<double>& values = i == 1 ? k.boxes : k.box_indices;
  for (size_t j = 0; j < values.size(); ++j) tensor.SetValue(static_cast<int64_t>(j), values[j]);
  return tensor;
}

void Reference(const Image& k, absl::Span<const ir::Tensor> in, ir::Tensor& out) {
  switch (k.kind) {
    case ImageKind::kResize: {
      ResizeProblem p;
      p.mode = k.mode;
      p.nearest = k.nearest;
      const size_t first = k.layout.find_first_of("DHW");
      const size_t last = k.layout.find('W');
      for (size_t d = 0; d < k.data_shape.size(); ++d) {
        if (d < first) p.outer *= k.data_shape[d];
        if (d > last) p.inner *= k.data_shape[d];
        if (d < first || d > last) continue;
        p.in[2 - (last - d)] = k.data_shape[d];
        p.out[2 - (last - d)] = k.out_shape[d];
      }
      return ReferenceResize(p, in[0], out);
    }
    case ImageKind::kCropAndResize:
      return ReferenceCropAndResize(k.layout == "NCHW", k.nearest, k.outside, in[0], in[1], in[2],
                                    out);
    case ImageKind::kAffineGrid:
      return ReferenceAffineGrid(in[0], out);
    case ImageKind::kGridSample:
      return ReferenceGridSample(in[0], in[1], out);
  }
  POLYNAO_UNREACHABLE(static_cast<int>(k.kind));
}

// ---- expressions, as TOPI writes them

Expr Call(const char* function, Expr x) { return x.context().Call(x.type(), function, {x}); }
Expr F32(Expr x) { return x.context().Cast(Type::kF32, x); }
Expr I32(Expr x) { return x.context().Cast(Type::kI32, x); }
Expr Lerp(Expr a, Expr b, Expr t) { return a * (1.0 - t) + b * t; }
// A coordinate on an axis, clamped to the edge.
Expr Limited(Expr place, int64_t extent) {
  return ir::Max(ir::Min(place, ir::ConstantLike(place, extent - 1)), ir::ConstantLike(place, 0));
}

// Where place `o` of an axis of `out` places lies in one of `in`.
Expr Coordinate(CoordinateMode mode, Expr o, int64_t in, int64_t out) {
  const auto f = [](int64_t value) { return static_cast<float>(value); };
  if (mode == CoordinateMode::kAlignCorners) {
    return F32(o) * static_cast<double>(out == 1 ? 0.0F : f(in - 1) / f(out - 1));
  }
  const double scale = static_cast<double>(f(in) / f(out));
  return mode == CoordinateMode::kHalfPixel ? (F32(o) + 0.5) * scale - 0.5 : F32(o) * scale;
}

Expr Nearest(CoordinateMode mode, Expr at) {
  // Adding 1e-5 keeps a number that rounding left just below a whole number from being rounded down.
  return I32(mode == CoordinateMode::kAlignCorners ? Call("round", at) : Call("floor", at + 1e-5));
}

// The value between the neighbours of `at` on all axes: `element` gives the one at whole places.
template <typename F>
Expr Linear(const std::vector<Expr>& at, std::vector<Expr>& whole, const F& element) {
  const size_t axis = whole.size();
  if (axis == at.size()) return element(whole);
  const Expr low = I32(Call("floor", at[axis]));
  const Expr high = I32(Call("ceil", at[axis]));
  whole.push_back(low);
  const Expr a = Linear(at, whole, element);
  whole.back() = high;
  const Expr b = Linear(at, whole, element);
  whole.pop_back();
  return Lerp(a, b, at[axis] - F32(low));
}

// `at` are the coordinates on the spatial axes.
Expr Sample(const Image& k, CoordinateMode mode, const Tensor& data, const Axes& i, Expr n,
            const std::vector<Expr>& at) {
  const auto element = [&](const std::vector<Expr>& whole) {
    Axes from = i;
    from[0] = n;
    size_t next = 0;
    for (size_t d = 0; d < k.layout.size(); ++d) {
      if (k.layout.find_first_of("DHW", d) != d) continue;
      from[d] = Limited(whole[next++], k.data_shape[d]);
    }
    return data(from);
  };
  if (k.nearest) {
    std::vector<Expr> whole;
    for (const Expr a : at) whole.push_back(Nearest(mode, a));
    return element(whole);
  }
  std::vector<Expr> whole;
  return Linear(at, whole, element);
}

Tensor Resize(te::Graph& g, const Image& k, const Tensor& data) {
  return g.Compute("output", k.out_shape, [&](const Axes& i) {
    std::vector<Expr> at;
    for (size_t d = 0; d < k.layout.size(); ++d) {
      if (k.layout.find_first_of("DHW", d) != d) continue;
      at.push_back(Coordinate(k.mode, i[d], k.data_shape[d], k.out_shape[d]));
    }
    return Sample(k, k.mode, data, i, i[0], at);
  });
}

Tensor CropAndResize(te::Graph& g, const Image& k, const Tensor& data) {
  const int64_t count = static_cast<int64_t>(k.box_indices.size());
  const Tensor boxes = g.Placeholder("boxes", {count, 4}, Type::kF32);
  const Tensor indices = g.Placeholder("box_indices", {count}, Type::kI32);
  const size_t h = k.layout.find('H');
  return g.Compute("output", k.out_shape, [&](const Axes& i) {
    std::vector<Expr> at;
    Expr inside;
    for (const size_t d : {h, h + 1}) {
      const int64_t first = static_cast<int64_t>(d - h);
      const double last = static_cast<double>(k.data_shape[d] - 1);
      const Expr begin = boxes(i[0], first), end = boxes(i[0], first + 2);
      const Expr size = last * (end - begin);
      const Expr scale = size / static_cast<double>(k.out_shape[d] - 1);
      at.push_back(begin * last + scale * F32(i[d]));
      const Expr here = ir::And(at.back() >= 0.0, at.back() <= last);
      inside = inside ? ir::And(inside, here) : here;
    }
    const Expr value = Sample(k, CoordinateMode::kAlignCorners, data, i, indices(i[0]), at);
    return te::Select(inside, value, k.outside);
  });
}

Tensor AffineGrid(te::Graph& g, const Image& k, const Tensor& data) {
  const int64_t h = k.out_shape[2], w = k.out_shape[3];
  return g.Compute("output", k.out_shape,
                   [&](Expr n, Expr d, Expr i, Expr j) {
                     const Expr y = -1.0 + F32(i) * (2.0 / static_cast<double>(h - 1));
                     const Expr x = -1.0 + F32(j) * (2.0 / static_cast<double>(w - 1));
                     return data(n, d, 0) * x + data(n, d, 1) * y + data(n, d, 2);
                   },
                   {"n", "d", "i", "j"});
}

Tensor GridSample(te::Graph& g, const Image& k, const Tensor& data) {
  const Tensor grid = g.Placeholder("grid", k.grid_shape, Type::kF32);
  const int64_t height = k.data_shape[2], width = k.data_shape[3];
  return g.Compute("output", k.out_shape,
                   [&](Expr n, Expr c, Expr i, Expr j) {
                     const auto coordinate = [&](int64_t which, int64_t extent) {
                       return (grid(n, which, i, j) + 1.0) * static_cast<double>(extent - 1) / 2.0;
                     };
                     const Expr x = coordinate(0, width), y = coordinate(1, height);
                     const Expr x0 = I32(Call("floor", x)), y0 = I32(Call("floor", y));
                     const Expr dx = x - F32(x0), dy = y - F32(y0);
                     const auto at = [&](Expr row, Expr column) {
                       const Expr inside = ir::And(ir::And(row >= 0, row < height),
                                                   ir::And(column >= 0, column < width));
                       return te::Select(inside, data(n, c, row, column), 0);
                     };
                     return at(y0, x0) * (1.0 - dy) * (1.0 - dx) +
                            at(y0, x0 + 1) * (1.0 - dy) * dx + at(y0 + 1, x0) * dy * (1.0 - dx) +
                            at(y0 + 1, x0 + 1) * dy * dx;
                   },
                   {"n", "c", "i", "j"});
}

absl::StatusOr<ir::Function> Build(const Image& k, const Target& target) {
  te::Graph g(k.name);
  const Tensor data = g.Placeholder("data", k.data_shape, Type::kF32);
  const auto express = k.kind == ImageKind::kResize          ? Resize
                       : k.kind == ImageKind::kCropAndResize ? CropAndResize
                       : k.kind == ImageKind::kAffineGrid    ? AffineGrid
                                                             : GridSample;
  const Tensor output = express(g, k, data);
  Schedule s(output);
  ParallelElementwise(s, output, target);
  if (IsGpu(target.name)) BindElements(s, output);
  return te::Lower(s);
}

// ---- rows

// The layout and how coordinates are made, of resize and upsampling.
absl::Status ReadResize(const Operator& row, const OperatorCase& c, Image& k) {
  k.layout = AttributeWord(row, c, "layout");
  const std::string& mode = AttributeWord(row, c, "coord_mode");
  k.mode = mode == "align_corners" ? CoordinateMode::kAlignCorners
           : mode == "half_pixel"  ? CoordinateMode::kHalfPixel
                                   : CoordinateMode::kAsymmetric;
  k.nearest = AttributeWord(row, c, "method") == "nearest_neighbor";
  // NCHW1n16c has two more dimensions, blocks of batch and channels.
  if (k.layout == "NCHW1n16c") k.layout = "NCHWnc";
  k.data_shape = k.out_shape = c.shape;
  return CheckRank(c, 0, k.layout.size());
}

struct Extents {
  char letter;
  const char* suffix;
};
constexpr Extents kExtents[] = {{'D', "d"}, {'H', "h"}, {'W', "w"}};

absl::StatusOr<Image> ParseUpsampling(const Operator& row, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckTypes(c, {Type::kF32}));
  Image k;
  k.name = "upsampling";
  RETURN_IF_ERROR(ReadResize(row, c, k));
  for (const auto& [letter, suffix] : kExtents) {
    const size_t d = k.layout.find(letter);
    if (d == std::string::npos) continue;
    double scale = 0;
    if (!absl::SimpleAtod(AttributeWord(row, c, StrCat("scale_", suffix)), &scale) || scale <= 0) {
      return WrongShape(c, "expected a scale above 0, found ", scale);
    }
    k.out_shape[d] = std::llround(static_cast<double>(k.data_shape[d]) * scale);
    if (k.out_shape[d] < 1) return WrongShape(c, "expected an output, found a scale of ", scale);
  }
  return k;
}

absl::StatusOr<Image> ParseResize(const Operator& row, const OperatorCase& c, Image k) {
  RETURN_IF_ERROR(ReadResize(row, c, k));
  constexpr const char* kNames[] = {"out_depth", "out_height", "out_width"};
  for (size_t a = 0; a < 3; ++a) {
    const size_t d = k.layout.find(kExtents[a].letter);
    if (d == std::string::npos) continue;
    ASSIGN_OR_RETURN(k.out_shape[d], NumberFrom(row, c, kNames[a], 1));
  }
  return k;
}

absl::StatusOr<Image> ParseCropAndResize(const Operator& row, const OperatorCase& c, Image k) {
  RETURN_IF_ERROR(CheckRank(c, 0, 4));
  k.layout = AttributeWord(row, c, "layout");
  if (k.layout.size() != 4) return WrongShape(c, "expected layout NCHW or NHWC, found ", k.layout);
  k.nearest = AttributeWord(row, c, "method") == "nearest_neighbor";
  k.outside = AttributeList(row, c, "extrapolation_value")[0];
  k.boxes = AttributeList(row, c, "boxes");
  k.box_indices = AttributeList(row, c, "box_indices");
  const std::vector<double> size = AttributeList(row, c, "crop_size");
  if (size.size() != 2 || size[0] < 2 || size[1] < 2 || size[0] > 1 << 16 || size[1] > 1 << 16) {
    return WrongShape(c, "expected a crop_size of two numbers of 2 and more");
  }
  if (k.box_indices.empty() || k.boxes.size() != 4 * k.box_indices.size()) {
    return WrongShape(c, "expected four numbers of boxes for each of box_indices, found ",
                      k.boxes.size(), " for ", k.box_indices.size());
  }
  for (const double index : k.box_indices) {
    if (index < 0 || index >= static_cast<double>(c.shape[0])) {
      return WrongShape(c, "expected box_indices from 0 to ", c.shape[0] - 1, ", found ", index);
    }
  }
  k.data_shape = k.out_shape = c.shape;
  k.out_shape[0] = static_cast<int64_t>(k.box_indices.size());
  const size_t h = k.layout.find('H');
  for (const size_t d : {h, h + 1}) k.out_shape[d] = static_cast<int64_t>(size[d - h]);
  return k;
}

absl::StatusOr<Image> ParseAffineGrid(const Operator& row, const OperatorCase& c, Image k) {
  RETURN_IF_ERROR(CheckRank(c, 0, 3));
  const std::vector<double> size = AttributeList(row, c, "target_shape");
  if (c.shape[1] != 2 || c.shape[2] != 3 || size.size() != 2 || size[0] < 2 || size[1] < 2 ||
      size[0] > 1 << 16 || size[1] > 1 << 16) {
    return WrongShape(c,
                      "expected matrices of 2 x 3 and a target_shape of two numbers of 2 and more");
  }
  k.data_shape = c.shape;
  k.out_shape = {c.shape[0], 2, static_cast<int64_t>(size[0]), static_cast<int64_t>(size[1])};
  return k;
}

absl::StatusOr<Image> ParseGridSample(const Operator& row, const OperatorCase& c, Image k) {
  RETURN_IF_ERROR(CheckRank(c, 0, 4));
  const std::vector<double> grid = AttributeList(row, c, "grid_shape");
  if (grid.size() != 4 || grid[0] != static_cast<double>(c.shape[0]) || grid[1] != 2 ||
      grid[2] < 1 || grid[3] < 1 || grid[2] > 1 << 16 || grid[3] > 1 << 16) {
    return WrongShape(c, "expected a grid_shape of ", c.shape[0], ":2:H:W");
  }
  k.data_shape = c.shape;
  k.grid_shape = {c.shape[0], 2, static_cast<int64_t>(grid[2]), static_cast<int64_t>(grid[3])};
  k.out_shape = {c.shape[0], c.shape[1], k.grid_shape[2], k.grid_shape[3]};
  return k;
}

absl::StatusOr<Image> ParseImage(const Operator& row, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckTypes(c, {Type::kF32}));
  const std::string& kind = AttributeWord(row, c, "kind");
  Image k;
  k.name = kind;
  if (kind == "crop_and_resize") {
    k.kind = ImageKind::kCropAndResize;
    return ParseCropAndResize(row, c, std::move(k));
  }
  if (kind == "affine_grid") {
    k.kind = ImageKind::kAffineGrid;
    return ParseAffineGrid(row, c, std::move(k));
  }
  if (kind == "grid_sample") {
    k.kind = ImageKind::kGridSample;
    return ParseGridSample(row, c, std::move(k));
  }
  return ParseResize(row, c, std::move(k));
}

Operator Finished(Operator row,
                  absl::StatusOr<Image> (*parse)(const Operator&, const OperatorCase&)) {
  return MakeRow<Image>(
      std::move(row),
      {.parse = parse, .tensors = Tensors, .reference = Reference, .build = Build, .input = Input});
}

}  // namespace

std::vector<Operator> TopiImageOperators() {
  const OperatorAttribute layout = {
      "layout", "NCHW", "of the image", {"NCHW", "NHWC", "NCDHW", "NDHWC", "NCHW1n16c"}};
  const OperatorAttribute method = {"method",
                                    "bilinear",
                                    "how elements are chosen",
                                    {"nearest_neighbor", "bilinear", "trilinear"}};
  const OperatorAttribute mode = {"coord_mode",
                                  "asymmetric",
                                  "which places correspond",
                                  {"align_corners", "asymmetric", "half_pixel"}};
  Operator upsampling;
  upsampling.name = "upsampling";
  upsampling.doc = "an image enlarged by a factor on each axis";
  upsampling.shapes = {"data"};
  upsampling.attributes = {layout, method, mode};
  for (const auto& [letter, suffix] : kExtents) {
    upsampling.attributes.push_back({StrCat("scale_", suffix), "2", "the factor"});
  }
  Operator image;
  image.name = "image";
  image.doc = "images resized, cut out and sampled";
  image.shapes = {"data"};
  image.attributes = {
      {"kind",
       "resize2d",
       "what",
       {"resize2d", "resize3d", "crop_and_resize", "affine_grid", "grid_sample"}},
      layout,
      method,
      mode,
      {"out_depth", "1", "extent of the output, of resize3d"},
      {"out_height", "1", "extent of the output"},
      {"out_width", "1", "extent of the output"},
      {"extrapolation_value", "0", "crop_and_resize: what is outside"},
      {.name = "boxes", .default_value = "", .doc = "y1:x1:y2:x2:...", .is_list = true},
      {.name = "box_indices", .default_value = "", .doc = "of which image", .is_list = true},
      {.name = "crop_size", .default_value = "", .doc = "height:width", .is_list = true},
      {.name = "target_shape",
       .default_value = "",
       .doc = "affine_grid: height:width",
       .is_list = true},
      {.name = "grid_shape",
       .default_value = "",
       .doc = "grid_sample: of the grid",
       .is_list = true}};
  return {Finished(std::move(upsampling), ParseUpsampling), Finished(std::move(image), ParseImage)};
}

}  // namespace polynao::kernels
