// A graph copied operation by operation, some of them changed on the way.
#ifndef COMPILER_TE_CARD_GRAPH_COPY_H_
#define COMPILER_TE_CARD_GRAPH_COPY_H_

#include "absl/container/flat_hash_map.h"
#include "compiler/te/graph.h"

namespace polynao::te {

// The operations of a copy, by those of the graph that it is one of.
using OwnOperations = absl::flat_hash_map<const Operation*, const Operation*>;

// Adds a copy of `operation` to `graph`, a graph of the same context (GraphState::Empty), and to `own`. Expressions
// that read its results read the copy's there. A view's placeholder has been copied before.
inline Operation& CopyTo(GraphState& graph, const Operation& operation, OwnOperations& own) {
  graph.operations.push_back(operation);
  Operation& copy = graph.operations.back();
  if (copy.base != nullptr) copy.base = own.at(copy.base);
  own[&operation] = &copy;
  for (size_t i = 0; i < copy.outputs.size(); ++i) graph.producers[copy.outputs[i]] = {&copy, i};
  return copy;
}

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_GRAPH_COPY_H_
