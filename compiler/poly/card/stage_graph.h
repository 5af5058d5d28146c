// Stages of a nest as one graph of tensor expressions.
#ifndef COMPILER_POLY_CARD_STAGE_GRAPH_H_
#define COMPILER_POLY_CARD_STAGE_GRAPH_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/nest_stages.h"
#include "compiler/te/card/rename.h"
#include "compiler/te/graph.h"

namespace polynao::poly {

// The extents of a buffer; -1 for one that is no number, {1} for a single element.
te::Shape ShapeOf(ir::Buffer buffer);

// Where the elements of a stage's box, as a tensor of this shape, stand in its target.
absl::Status PlaceBox(const NestStage& stage, const te::Shape& shape, te::Renamed& place);

// Stages are added in the order of the nest; the last one's target is the output. They must outlive the graph.
class StageGraph {
 public:
  // Axes are of `index_type`.
  StageGraph(const ir::Function& function, ir::Type index_type);

  void Add(const NestStage& stage);

  const te::Tensor& output() const { return output_; }
  // The buffers of the placeholders, in order.
  const std::vector<ir::Buffer>& inputs() const { return inputs_; }

 private:
  // `e` over the graph's tensors.
  ir::Expr Value(ir::Expr e, const ir::VarMap& by);

  std::shared_ptr<te::GraphState> state_;
  te::Graph g_;
  absl::flat_hash_map<ir::Buffer, std::pair<te::Tensor, const NestStage*>> computed_;
  absl::flat_hash_map<ir::Buffer, te::Tensor> placeholders_;
  std::vector<ir::Buffer> inputs_;
  te::Tensor output_;
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_STAGE_GRAPH_H_
