// Graphs without a schedule, compiled for the card, simulated and interpreted: what the tests of such graphs share.
#ifndef TESTS_END_TO_END_CARD_GRAPH_FOR_TEST_H_
#define TESTS_END_TO_END_CARD_GRAPH_FOR_TEST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/tensor.h"
#include "compiler/te/card/card_schedule.h"
#include "compiler/te/graph.h"
#include "isa/machine.h"
#include "simulator/simulator.h"

namespace polynao {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % (high - low + 1));
  }
  bool OneIn(int64_t n) { return Pick(1, n) == 1; }
  template <typename T>
  T Of(const std::vector<T>& values) {
    return values[Pick(0, values.size() - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

struct Result {
  std::vector<ir::Tensor> inputs;
  ir::Tensor output;
  simulator::RunResult run;
  ir::Function function;  // after the passes
  te::CardChoice choice;
};

// Values for the placeholders of the graph.
std::vector<ir::Tensor> Inputs(const te::Tensor& y, unsigned seed, ir::Values values);

// What the graph means: its computes one after the other, interpreted.
absl::StatusOr<ir::Tensor> Meaning(const te::Tensor& y, std::vector<ir::Tensor> inputs);

// Stands for the cheapest schedule that makes a group of each contraction.
inline constexpr size_t kCutChoice = -1;
// This and more: the schedule of that number, from 0 on again, of those whose contraction's results lie in blocks of
// channels; the cheapest if there is none.
inline constexpr size_t kBlocksChoice = size_t{1} << 32;

// Compiles the graph under the schedule number `choice` of the cost model's list, and simulates it. `by_vector`: as
// CardGroup::Create has it.
absl::StatusOr<Result> OnCard(const te::Tensor& y, const isa::Machine& machine, size_t choice,
                              std::vector<ir::Tensor> inputs, bool by_vector = false);

// Statements that compute or copy element by element.
int Stores(const ir::Function& function);

// What the compiler may do with a few graphs, but not with many.
struct Exceptions {
  int too_large = 0;  // the code generator has too few registers
  int scalar = 0;     // some nest became no instruction
};

// All values of the graph on the card are those of the interpreter; scalar code is counted and printed.
void MustAgree(const te::Tensor& y, const isa::Machine& machine, size_t choice, unsigned seed,
               Exceptions& exceptions, bool by_vector = false);

// Runs `run` with `count` random engines, or as many as POLYNAO_RANDOM_CASES says, and prints the seed of what fails.
// Of programs drawn at random about `scalar_rate` in a hundred have a nest that becomes no instruction, and one in a
// hundred is too large: clearly more (testing/chance.h) are a failure.
void ForRandomSeeds(int count, double scalar_rate,
                    const std::function<void(Random&, unsigned seed, Exceptions&)>& run);

}  // namespace polynao

#endif  // TESTS_END_TO_END_CARD_GRAPH_FOR_TEST_H_
