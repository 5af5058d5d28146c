// The benchmark suites: their cases, published figures and goals.
#ifndef BENCHMARKS_SUITES_H_
#define BENCHMARKS_SUITES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace polynao::benchmarks {

// One case, in the words of the command line: nao run OP --shape=SHAPE --dtype=DTYPE.
struct SuiteCase {
  std::string op_class;                      // "binary"
  std::string op;                            // "add"
  std::string shape;                         // "255x27x27"; of several tensors "55x55x64,64x3x3x64"
  std::string dtype;                         // "f16"
  std::vector<std::string> attributes = {};  // "stride=2"
  int count = 1;                             // how often the network has it

  // "binary/add/255x27x27", "stage2/conv2d_bn/28x28x128,512x1x1x128/residual=1".
  std::string Name() const;
};

// A way to compute a case by several programs, one after the other, each of them in the words of the command line.
struct SuiteProgram {
  std::string op, shape, dtype;
  std::vector<std::string> attributes = {};
  std::string impl = "compiled";
  std::vector<std::string> schedule = {};  // "sums_along=0"
};
struct Sequence {
  std::string name;  // of the implementation
  std::string doc;
  // Empty: the case has no such sequence.
  std::vector<SuiteProgram> (*programs)(const SuiteCase&);
};

// Speed-ups of the compiled programs, over all cases of a class.
struct SpeedupFigures {
  double geomean = 0;
  double min = 0;
};

// Published figures and goals of a class. All speed-ups are those of the compiled programs.
struct ClassFigures {
  std::string op_class;
  std::string title;                   // for pictures
  SpeedupFigures paper;                // against the paper's own library
  SpeedupFigures goal;                 // against kernels/library
  SpeedupFigures goal_expert;          // against the expert kernels
  std::optional<double> efficiency;    // the geometric mean to reach
  bool elementwise = false;            // the goals by traffic below apply
  int paper_tensor_program_lines = 0;  // of the paper's Table III
  int paper_hand_written_lines = 0;
};

struct Suite {
  std::string name;
  std::string doc;  // one line
  std::vector<ClassFigures> classes;
  std::vector<SuiteCase> cases;  // by class, in the order of `classes`
  // The compiled programs are compared with these; empty means the hand-written kernels, library and expert.
  std::vector<Sequence> sequences = {};
};

// The efficiency that elementwise cases should reach, by the bytes that must cross GMEM.
struct TrafficGoal {
  std::string_view name;
  double above_bytes = 0;  // exclusive
  double up_to_bytes = 0;  // inclusive
  double efficiency = 0;
};
absl::Span<const TrafficGoal> TrafficGoals();

// All suites. `resnet50` has the layers of ResNet-50 (He and others, "Deep residual learning for image recognition";
// 3x3 convolutions have the strides), an image of 224 x 224, as groups of convolution, batch normalisation, addition
// and relu; and pairs of a 1x1 and a 3x3 convolution. `resnet50_train` has the layers with the statistics of batch
// normalisation computed, as in training's forward pass. `tensorize48` is Table II of "Tensor instruction generation
// optimization fusing with loop partitioning": 16 shapes for each of three classes, 48 cases. The paper names three
// binary operators (add, sub, mul) for the same 16 shapes and counts 16 cases; here these are the additions, and
// `tensorize48_all` has sub and mul too, 80 cases.
// `layers95` are the layers of layers95.txt, i8 for mlu270; `layers95_f16` are the same of f16, for mlu370.
absl::Span<const Suite> Suites();

// Errors: no suite has that name; the message lists the suites.
absl::StatusOr<const Suite*> FindSuite(std::string_view name);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_SUITES_H_
