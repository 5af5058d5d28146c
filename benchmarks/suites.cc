#include "benchmarks/suites.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status.h"
#include "benchmarks/layers95_text.h"

namespace polynao::benchmarks {
namespace {

// Table II. The second half of each list is just off the first, so that no tile divides it.
constexpr const char* kElementwiseShapes[] = {
    "256x56x56x15", "256x56x56x8", "256x56x56", "128x56x56",
    "64x56x56",     "32x56x56",    "256x28x28", "128x28x28",  //
    "255x55x55x14", "255x55x55x7", "255x55x55", "127x55x55",
    "63x55x55",     "31x55x55",    "255x27x27", "127x27x27"};

// Input (height, width, channels), filters (count, height, width, channels). The paper prints 256 channels for all
// filters, even where the input has 128 or 64. No convolution has such shapes, so the filters here have the input's
// number of channels.
constexpr const char* kConvShapes[] = {
    "56x56x256,128x3x3x256", "56x56x256,64x3x3x256", "56x56x256,32x3x3x256",
    "56x56x128,128x3x3x128", "56x56x128,64x3x3x128", "56x56x128,32x3x3x128",
    "56x56x64,128x3x3x64",   "56x56x64,64x3x3x64",  //
    "55x55x256,128x3x3x256", "55x55x256,64x3x3x256", "55x55x256,32x3x3x256",
    "55x55x128,128x3x3x128", "55x55x128,64x3x3x128", "55x55x128,32x3x3x128",
    "55x55x64,128x3x3x64",   "55x55x64,64x3x3x64"};

std::vector<ClassFigures> Classes() {
  ClassFigures conv;
  conv.op_class = "conv";
  conv.title = "Convolution";
  conv.paper = {.geomean = 1.9433, .min = 1.25};
  conv.goal = {.geomean = 2.0, .min = 1.3};
  conv.efficiency = 0.85;
  conv.paper_tensor_program_lines = 96;
  conv.paper_hand_written_lines = 687;
  ClassFigures binary;
  binary.op_class = "binary";
  binary.title = "Elementwise binary";
  binary.paper = {.geomean = 1.2511, .min = 1.0409};
  binary.goal = {.geomean = 1.25, .min = 1.05};
  binary.elementwise = true;
  binary.paper_tensor_program_lines = 20;
  binary.paper_hand_written_lines = 149;
  ClassFigures unary;
  unary.op_class = "unary";
  unary.title = "Unary in place";
  unary.paper = {.geomean = 1.1789, .min = 0.9477};
  unary.goal = {.geomean = 1.2, .min = 1.0};
  unary.elementwise = true;
  unary.paper_tensor_program_lines = 17;
  unary.paper_hand_written_lines = 49;
  std::vector<ClassFigures> classes = {conv, binary, unary};
  for (ClassFigures& c : classes) c.goal_expert = {.geomean = 1.0, .min = 1.0};
  return classes;
}

Suite Tensorize(std::string name, std::string doc, std::vector<std::string> binary_operators) {
  Suite suite;
  suite.name = std::move(name);
  suite.doc = std::move(doc);
  suite.classes = Classes();
  for (const char* shape : kConvShapes) {
    suite.cases.push_back({"conv", "conv2d", shape, "i8"});
  }
  for (const std::string& op : binary_operators) {
    for (const char* shape : kElementwiseShapes)
      suite.cases.push_back({"binary", op, shape, "f16"});
  }
  for (const char* shape : kElementwiseShapes) {
    suite.cases.push_back({"unary", "relu", shape, "f16"});
  }
  return suite;
}

// ---- ResNet-50

// A convolution with what follows it: rows and columns of the image, input and output channels, extent of the window,
// stride, whether another branch is added, whether relu follows, and how often the network has it.
struct ResidualLayer {
  const char* op_class;
  int64_t size, ci, co, window, stride;
  bool residual, relu;
  int count;
};
constexpr ResidualLayer kResNetLayers[] = {
    {"stem", 224, 3, 64, 7, 2, false, true, 1},
    {"stage1", 56, 64, 64, 1, 1, false, true, 1},
    {"stage1", 56, 64, 64, 3, 1, false, true, 3},
    {"stage1", 56, 64, 256, 1, 1, false, false, 1},
    {"stage1", 56, 64, 256, 1, 1, true, true, 3},
    {"stage1", 56, 256, 64, 1, 1, false, true, 2},
    {"stage2", 56, 256, 128, 1, 1, false, true, 1},
    {"stage2", 56, 128, 128, 3, 2, false, true, 1},
    {"stage2", 56, 256, 512, 1, 2, false, false, 1},
    {"stage2", 28, 128, 512, 1, 1, true, true, 4},
    {"stage2", 28, 512, 128, 1, 1, false, true, 3},
    {"stage2", 28, 128, 128, 3, 1, false, true, 3},
    {"stage3", 28, 512, 256, 1, 1, false, true, 1},
    {"stage3", 28, 256, 256, 3, 2, false, true, 1},
    {"stage3", 28, 512, 1024, 1, 2, false, false, 1},
    {"stage3", 14, 256, 1024, 1, 1, true, true, 6},
    {"stage3", 14, 1024, 256, 1, 1, false, true, 5},
    {"stage3", 14, 256, 256, 3, 1, false, true, 5},
    {"stage4", 14, 1024, 512, 1, 1, false, true, 1},
    {"stage4", 14, 512, 512, 3, 2, false, true, 1},
    {"stage4", 14, 1024, 2048, 1, 2, false, false, 1},
    {"stage4", 7, 512, 2048, 1, 1, true, true, 3},
    {"stage4", 7, 2048, 512, 1, 1, false, true, 2},
    {"stage4", 7, 512, 512, 3, 1, false, true, 2},
};
// Pairs that stand one after the other in the network: of `size` x `size` x 4 * channels, 1x1 to so many channels, then
// 3x3.
struct ResidualPair {
  int64_t size, channels;
  int count;
};
// The weights of the last one do not fit WMEM together.
constexpr ResidualPair kResNetPairs[] = {{56, 64, 2}, {28, 128, 3}, {14, 256, 5}, {7, 512, 2}};

std::string FilterText(int64_t co, int64_t window, int64_t ci) {
  return StrCat(co, "x", window, "x", window, "x", ci);
}

bool HasAttribute(const SuiteCase& c, std::string_view attribute) {
  return std::find(c.attributes.begin(), c.attributes.end(), attribute) != c.attributes.end();
}

std::vector<int64_t> Extents(std::string_view shape) {
  std::vector<int64_t> extents;
  for (const std::string& text : std::vector<std::string>(absl::StrSplit(ToAbsl(shape), 'x'))) {
    int64_t extent = 0;
    POLYNAO_CHECK(absl::SimpleAtoi(text, &extent)) << shape;
    extents.push_back(extent);
  }
  return extents;
}

// The programs for a layer: its convolution, then one for all that follows, or (`one_by_one`) one for each operator.
// "group" is the convolution as the same scheduler compiles it, other words are implementations of conv2d.
std::vector<SuiteProgram> LayerPrograms(const SuiteCase& c, std::string_view convolution,
                                        bool one_by_one = false) {
  if (c.op != "conv2d_bn") return {};
  const std::vector<std::string> shapes = absl::StrSplit(c.shape, ',');
  const std::vector<int64_t> image = Extents(shapes[0]), filter = Extents(shapes[1]);
  const int64_t stride = HasAttribute(c, "stride=2") ? 2 : 1;
  const int64_t size = (image[0] + 2 * ((filter[1] - 1) / 2) - filter[1]) / stride + 1;
  const std::string out = StrCat(size, "x", size, "x", filter[0]);
  const bool residual = HasAttribute(c, "residual=1"), relu = !HasAttribute(c, "relu=0");
  std::vector<SuiteProgram> programs = {{.op = "conv2d",
                                         .shape = c.shape,
                                         .dtype = c.dtype,
                                         .attributes = {StrCat("stride=", stride)},
                                         .impl = std::string(convolution)}};
  if (convolution == "group") {
    programs[0].op = "conv2d_bn";
    programs[0].impl = "compiled";
    programs[0].attributes = {StrCat("stride=", stride), "norm=0", "relu=0"};
  }
  const auto add = [&](const char* op, const std::string& shape,
                       std::vector<std::string> attributes = {}) {
    programs.push_back(
        {.op = op, .shape = shape, .dtype = "f16", .attributes = std::move(attributes)});
  };
  if (!one_by_one) {
    add("batch_norm", out, {StrCat("residual=", residual ? 1 : 0), StrCat("relu=", relu ? 1 : 0)});
    return programs;
  }
  add("mul", StrCat(out, ",", filter[0]));
  add("add", StrCat(out, ",", filter[0]));
  if (residual) add("add", out);
  if (relu) add("relu", out);
  return programs;
}

std::vector<SuiteProgram> PairPrograms(const SuiteCase& c) {
  const std::vector<std::string> shapes = absl::StrSplit(c.shape, ',');
  const std::vector<int64_t> image = Extents(shapes[0]), filter = Extents(shapes[1]);
  const std::string between = StrCat(image[0], "x", image[1], "x", filter[0]);
  return {{.op = "conv2d_bn",
           .shape = StrCat(shapes[0], ",", shapes[1]),
           .dtype = c.dtype,
           .attributes = {"out=i8"}},
          {.op = "conv2d_bn", .shape = StrCat(between, ",", shapes[2]), .dtype = c.dtype}};
}

// The layers as cases of `op`.
void AddLayers(const char* op, Suite& suite) {
  for (const ResidualLayer& layer : kResNetLayers) {
    SuiteCase c = {.op_class = layer.op_class,
                   .op = op,
                   .shape = StrCat(layer.size, "x", layer.size, "x", layer.ci, ",",
                                   FilterText(layer.co, layer.window, layer.ci)),
                   .dtype = "i8",
                   .attributes = {},
                   .count = layer.count};
    if (layer.stride != 1) c.attributes.push_back(StrCat("stride=", layer.stride));
    if (layer.residual) c.attributes.push_back("residual=1");
    if (!layer.relu) c.attributes.push_back("relu=0");
    suite.cases.push_back(std::move(c));
  }
}

Suite ResNet50Training() {
  Suite suite;
  suite.name = "resnet50_train";
  suite.doc =
      "convolution, batch normalisation with its statistics, addition and relu of ResNet-50's 24 "
      "layers";
  for (const char* name : {"stem", "stage1", "stage2", "stage3", "stage4"}) {
    ClassFigures& figures = suite.classes.emplace_back();
    figures.op_class = name;
    figures.title = name;
  }
  AddLayers("conv2d_batch_norm", suite);
  suite.sequences = {
      {.name = "apart",
       .doc = "the convolution, a pass over its result for the statistics, one that normalises",
       .programs = [](const SuiteCase& c) -> std::vector<SuiteProgram> {
         return {{.op = c.op,
                  .shape = c.shape,
                  .dtype = c.dtype,
                  .attributes = c.attributes,
                  .schedule = {"sums_along=0"}}};
       }},
      {.name = "inference",
       .doc = "the layer with known statistics, as one group: what the statistics cost",
       .programs = [](const SuiteCase& c) -> std::vector<SuiteProgram> {
         return {
             {.op = "conv2d_bn", .shape = c.shape, .dtype = c.dtype, .attributes = c.attributes}};
       }}};
  return suite;
}

Suite ResNet50() {
  Suite suite;
  suite.name = "resnet50";
  suite.doc =
      "convolution, batch normalisation, addition and relu of ResNet-50's 24 layers as groups, and "
      "4 pairs";
  for (const char* name : {"stem", "stage1", "stage2", "stage3", "stage4", "pairs"}) {
    ClassFigures& figures = suite.classes.emplace_back();
    figures.op_class = name;
    figures.title = name;
  }
  AddLayers("conv2d_bn", suite);
  for (const ResidualPair& pair : kResNetPairs) {
    suite.cases.push_back({.op_class = "pairs",
                           .op = "conv2d_pair",
                           .shape = StrCat(pair.size, "x", pair.size, "x", 4 * pair.channels, ",",
                                           FilterText(pair.channels, 1, 4 * pair.channels), ",",
                                           FilterText(pair.channels, 3, pair.channels)),
                           .dtype = "i8",
                           .attributes = {},
                           .count = pair.count});
  }
  suite.sequences = {
      {.name = "unfused",
       .doc = "the convolution by the same scheduler, then one program for all that is "
              "elementwise; of a pair, both groups",
       .programs =
           [](const SuiteCase& c) {
             return c.op == "conv2d_pair" ? PairPrograms(c) : LayerPrograms(c, "group");
           }},
      {.name = "unfused_conv2d",
       .doc = "the scheduled operator conv2d, then one program for all that is elementwise",
       .programs = [](const SuiteCase& c) { return LayerPrograms(c, "compiled"); }},
      {.name = "one_by_one",
       .doc = "the convolution by the same scheduler, then one program for each operator",
       .programs = [](const SuiteCase& c) { return LayerPrograms(c, "group", true); }},
      {.name = "library",
       .doc = "the library's convolution, then one compiled program for all that is elementwise",
       .programs = [](const SuiteCase& c) { return LayerPrograms(c, "library"); }},
      {.name = "expert",
       .doc = "the expert's convolution, then one compiled program for all that is elementwise",
       .programs = [](const SuiteCase& c) { return LayerPrograms(c, "expert"); }}};
  return suite;
}

// ---- layers that stand in no other suite

Suite Layers95(std::string name, const std::string& dtype) {
  Suite suite;
  suite.name = std::move(name);
  suite.doc = StrCat("95 layers of nine networks, dilated, grouped and of eight images, of ", dtype,
                     ": none was tuned");
  for (const auto line : absl::StrSplit(ToAbsl(Layers95Text()), '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    POLYNAO_CHECK(words.size() >= 3) << std::string(line);
    if (suite.classes.empty() || suite.classes.back().op_class != words[0]) {
      ClassFigures& figures = suite.classes.emplace_back();
      figures.op_class = figures.title = words[0];
    }
    suite.cases.push_back({.op_class = words[0],
                           .op = words[1],
                           .shape = words[2],
                           .dtype = dtype,
                           .attributes = {words.begin() + 3, words.end()}});
  }
  return suite;
}

}  // namespace

std::string SuiteCase::Name() const {
  return StrCat(op_class, "/", op, "/", shape, attributes.empty() ? "" : "/",
                absl::StrJoin(attributes, ","));
}

absl::Span<const TrafficGoal> TrafficGoals() {
  static constexpr TrafficGoal kGoals[] = {
      {.name = "over_4_mb", .above_bytes = 4e6, .up_to_bytes = 1e18, .efficiency = 0.95},
      {.name = "from_1_to_4_mb", .above_bytes = 1e6, .up_to_bytes = 4e6, .efficiency = 0.90},
  };
  return kGoals;
}

absl::Span<const Suite> Suites() {
  static const auto* suites = new std::vector<Suite>{
      Tensorize("tensorize48", "16 convolutions, 16 additions, 16 relus: the 48 cases of the paper",
                {"add"}),
      Tensorize("tensorize48_all", "tensorize48 with sub and mul on the shapes of add: 80 cases",
                {"add", "sub", "mul"}),
      ResNet50(),
      ResNet50Training(),
      Layers95("layers95", "i8"),
      Layers95("layers95_f16", "f16")};
  return *suites;
}

absl::StatusOr<const Suite*> FindSuite(std::string_view name) {
  std::string names;
  for (const Suite& suite : Suites()) {
    if (suite.name == name) return &suite;
    StrAppend(&names, names.empty() ? "" : ", ", suite.name);
  }
  return InvalidInput("no suite is named '", name, "'; there are: ", names);
}

}  // namespace polynao::benchmarks
