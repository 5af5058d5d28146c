#include "benchmarks/suites.h"

#include "base/status.h"

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

}  // namespace

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
                {"add", "sub", "mul"})};
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
