// Accesses to the buffers of one function as accesses to those of another: how the functions of groups become parts of
// one function.
#ifndef COMPILER_TE_CARD_RENAME_H_
#define COMPILER_TE_CARD_RENAME_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"

namespace polynao::te {

// Where the elements of a buffer stand in another one.
struct Renamed {
  ir::Buffer to;
  // Of a buffer of one dimension: element at[0], at[1], .. is number offset + at[0] * strides[0] + ... Empty: `to` has
  // the same extents, or one dimension with the elements in row-major order.
  std::vector<int64_t> strides = {};
  int64_t offset = 0;
};

class Rename : public ir::Mutator {
 public:
  using Map = absl::flat_hash_map<ir::Buffer, Renamed>;
  explicit Rename(const Map& to) : to_(to) {}

  ir::Expr Mutate(ir::Expr e) override;
  ir::Stmt Mutate(ir::Stmt s) override;

 private:
  static std::vector<ir::Expr> At(ir::Buffer from, const Renamed& renamed,
                                  absl::Span<const ir::Expr> indices);

  const Map& to_;
};

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_RENAME_H_
