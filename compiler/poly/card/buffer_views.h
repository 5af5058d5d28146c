// Other shapes of buffers: parts that stand in order, and all of them where a copy would have the same elements.
#ifndef COMPILER_POLY_CARD_BUFFER_VIEWS_H_
#define COMPILER_POLY_CARD_BUFFER_VIEWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// Parts of a buffer: where the first one begins, and how many elements later the next one does along each dimension of
// the parts.
struct BufferParts {
  int64_t first = 0;
  std::vector<int64_t> steps;
};

// Steps of parts with these extents that stand behind one another, of `elements` each.
std::vector<int64_t> StepsOf(const std::vector<int64_t>& extents, int64_t elements);

// `buffer` as parts that have `dimensions` and stand along `parts`, the dimensions in front of them; none if they come
// in another order, or others have several elements. Those of a single element may stand anywhere.
std::optional<BufferParts> PartsOf(ir::Buffer buffer, const std::vector<int>& parts,
                                   const std::vector<int>& dimensions);

class BufferViews {
 public:
  BufferViews(ir::Context& c, ir::Type index_type) : c_(c), index_type_(index_type) {}

  ir::Buffer NewBuffer(const std::string& name, ir::Type type, const std::vector<int64_t>& extents);
  // Another shape of `whole`, or of one part of it.
  ir::Buffer View(ir::Buffer whole, const std::vector<int64_t>& extents);
  // `buffer` itself if it has that shape.
  ir::Buffer InShape(ir::Buffer buffer, const std::vector<int64_t>& extents);

  // Where a copy has all elements of a buffer in their order, that buffer in the shape of `target`.
  std::optional<ir::Buffer> WhereItStands(const NestStage& copy, ir::Buffer target);

  // The views that were made, and the buffers of which they are.
  const std::vector<std::pair<ir::Buffer, ir::Buffer>>& list() const { return list_; }

 private:
  std::vector<ir::Expr> Shape(const std::vector<int64_t>& extents);

  ir::Context& c_;
  const ir::Type index_type_;
  std::vector<std::pair<ir::Buffer, ir::Buffer>> list_;
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_BUFFER_VIEWS_H_
