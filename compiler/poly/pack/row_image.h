// The row operand of a contraction as an array that is filled once, with its padding, so that tiles read their rows
// where they are and no window is copied: a convolution's image.
//
//   select(1 <= y + r && y + r < 57 && .., X[y + r - 1, x + s - 1, c], 0.0)   -->   row.image[y + r, (x + s) * 64 + c]
#ifndef COMPILER_POLY_PACK_ROW_IMAGE_H_
#define COMPILER_POLY_PACK_ROW_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/pack/contraction.h"
#include "compiler/poly/pack/iterations.h"

namespace polynao::poly {

class RowImage {
 public:
  // Of loops with constant counts, whose last one of sums walks along memory. The operand must depend on the loops
  // through the indices of one load alone, each of which has loops of its own, and reach all of what lies between its
  // first and its last element. Else nothing.
  static std::optional<RowImage> Of(const Contraction& contraction, const std::vector<Range>& rows,
                                    const std::vector<Range>& outer_sums, const Range& sum);

  // The operand is elements of memory as they are.
  bool IsPlain() const { return is_plain_; }
  // Elements from a row to the next one, of the last loop of rows: in memory, and in the image.
  int64_t MemoryStep() const { return memory_step_; }
  int64_t ImageStep() const { return RowStep() * pitch_; }
  double Elements() const;
  // The last two loops of sums follow each other in the image as one.
  bool JoinsSums() const { return joins_sums_; }

  // Room for rows up to number `count` of their last loop, and `pad` elements behind each row of memory.
  void Extend(int64_t count, int64_t pad);
  ir::Buffer NewBuffer(ir::Type type) const;
  // Fills all of it. `outer` has the values of what stands around.
  ir::Stmt Fill(ir::Buffer image, ir::ForKind kind, const Values& outer) const;
  // What the operand is at these iterations; of joined sums, the last loop may go beyond its range.
  ir::Expr At(ir::Buffer image, const Values& at) const;

 private:
  // An index: the sum of each loop's number times its step. `carrier`, a loop with step 1, stands for all in it.
  struct Dimension {
    std::vector<int64_t> steps;
    size_t carrier = 0;
    int64_t extent = 1;
    int64_t room = 1;
  };

  RowImage() = default;
  bool AddDimension(ir::Expr index);
  bool DependsOnIndices(ir::Expr e) const;
  int64_t RowStep() const;
  ir::Stmt FillFrom(size_t d, ir::Buffer image, ir::ForKind kind, const Values& at,
                    std::vector<ir::Expr>& place, bool is_zero) const;
  std::vector<ir::Expr> Flat(std::vector<ir::Expr> place) const;

  const Statement* statement_ = nullptr;
  ir::Expr operand_;
  std::vector<Range> loops_;  // rows, outer sums, the last loop of sums
  std::vector<ir::Var> vars_;
  size_t last_row_ = 0;
  std::vector<Dimension> dimensions_;  // the last two are one of the buffer
  int64_t pitch_ = 1;                  // elements of the last dimension
  int64_t memory_step_ = 0;
  bool is_plain_ = false, joins_sums_ = false;
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_PACK_ROW_IMAGE_H_
