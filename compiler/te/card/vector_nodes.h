// A graph of computes as nodes of which each is a part of a tensor on chip: what elementwise
// groups do not have, that is elements at other places (windows, margins, transposed or strided reads) and reductions.
//
//   Y[i] = max over r of X[2i + r - 1]      -->  input X; copy P[i] = X[i - 1], 0 outside; reduction over
//   (X is 0 outside)                             copy G[i, r] = P[2i + r]
#ifndef COMPILER_TE_CARD_VECTOR_NODES_H_
#define COMPILER_TE_CARD_VECTOR_NODES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/te/card/lane_instructions.h"
#include "compiler/te/card/steps.h"
#include "compiler/te/graph.h"

namespace polynao::te {

struct VectorNode {
  enum class Kind : uint8_t {
    kInput,   // of the graph
    kCopy,    // the elements of another node, or a constant, at places that the axes say
    kLane,    // one instruction on elements at the same place
    kReduce,  // of another node, over its last dimensions
    kProduct,  // sums of products of two nodes by the tensor unit: rows, and weights for each channel
  };
  // Another node as one reads it: which dimension of the reader's domain each of its dimensions follows, -1 for element
  // 0. The domain is the reader's dimensions, of reductions and products these and the reduced ones.
  struct Operand {
    size_t node;
    std::vector<int> dimensions;
  };

  Kind kind;
  std::string name;
  Type type;
  Shape shape;
  std::vector<Operand> operands = {};  // a copy's has no dimensions: `load` says where it reads

  const Operation* input = nullptr;
  size_t output = 0;

  // A copy's element at `axes`, and the load in it.
  Axes axes = {};
  Expr value = {}, load = {};

  // A lane's instruction; `step.elements[o]` in `step.value` stands for operand o.
  Step step = {};

  Reducer reducer = Reducer::kSum;
  Shape reduced = {};  // extents

  // Of a product; the last dimension is its channels. The last dimension of both operands is the reduced one, that
  // before it in the weights, operand 1, the channels.
  const isa::Instruction* product = nullptr;

  // The reduction in whose domain the node is, and which of the node's dimensions are reduced there; -1: in that of
  // results.
  int reduction = -1;
  std::vector<bool> is_reduced = {};

  bool pads() const { return value != load; }
};

struct VectorNodes {
  std::vector<VectorNode> list;  // operands before their readers
  VectorNode::Operand result;    // in the domain of the output
};

// The nodes of `output`. Errors: an expression that no instruction computes, an axis that is used as a value.
// `products`: sums of products go to the tensor unit where it computes them, else to the vector unit.
absl::StatusOr<VectorNodes> CutIntoNodes(const Tensor& output, const LaneInstructions& instructions,
                                         bool products);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_VECTOR_NODES_H_
