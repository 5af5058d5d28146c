// An elementwise expression graph as steps, each of them one vector instruction: how computes over one domain are cut
// into instructions, whatever expressions their bodies are and however they are spread over tensors.
//
//   Y[i, c] = max(X[i, c] * A[c] + B[c], 0)   -->   t0 = X * A (row)   t1 = t0 + B (row)   Y = max(t1, 0)
#ifndef COMPILER_TE_CARD_STEPS_H_
#define COMPILER_TE_CARD_STEPS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "compiler/te/card/lane_instructions.h"
#include "compiler/te/graph.h"

namespace polynao::te {

struct Step {
  // Of the tensor that is read, or of the compute that the step belongs to.
  std::string name;
  Type type;
  // The dimensions of the domain along which the values differ.
  std::vector<bool> varies;

  // A tensor that is no step itself, read at one element for each element of the domain; null: an instruction.
  const Operation* tensor = nullptr;
  size_t output = 0;
  // For each dimension of the tensor the domain's, or -1 where only element 0 is read.
  std::vector<int> dimensions = {};

  const isa::Instruction* instruction = nullptr;
  // The form for one operand that is the same in all rows, and which operand that is; null if there is none.
  struct RowForm {
    const isa::Instruction* instruction;
    size_t operand;
  };
  std::vector<RowForm> row_forms = {};
  std::vector<size_t> operands = {};  // steps
  // The value over these loads, which stand for the operands' elements.
  std::vector<Expr> elements = {};
  Expr value = {};
};

struct Steps {
  Shape domain;
  std::vector<Step> list;  // operands before their users
  size_t result = 0;

  // The last step that reads each step; the number of steps if none does.
  std::vector<size_t> LastReaders() const;
};

// The steps of `output`. The domain is its shape. Computes that are no elementwise expression (reductions, padding,
// other indices than the axes in their order) count as tensors that are read. Errors: an expression that no instruction
// computes.
// Other computes in `whole` count as tensors too.
absl::StatusOr<Steps> CutIntoSteps(const Tensor& output, const LaneInstructions& instructions,
                                   const absl::flat_hash_set<const Operation*>& whole = {});

// Returns true if every element of the compute is an expression of elements of tensors at the same place: plain axes or
// 0 as indices, in the order of the axes, no other use of the axes.
bool IsElementwise(const Operation& operation);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_STEPS_H_
