// From a schedule back to loops.
#ifndef COMPILER_POLY_GENERATE_GENERATE_H_
#define COMPILER_POLY_GENERATE_GENERATE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// How the loop under a mark of a schedule tree runs.
struct LoopMark {
  ir::ForKind kind = ir::ForKind::kSerial;
  // How many schedule dimensions are around the loop's. isl leaves out a loop of one iteration, and then the
  // loop that follows the mark is another one.
  int depth = 0;
  // Private buffers that each iteration gets a copy of.
  std::vector<ir::Buffer> copies = {};
  // Of an innermost loop over x[f] = x[f] op e, where f is the same in all iterations and e reads other elements: x[f]
  // is in a local variable meanwhile.
  bool accumulates = false;
  // Of a loop around a tile of registers: the iterations of the loops inside, outermost first, which are unrolled but
  // for the last, a vector. They stand a second time for tiles that are not whole.
  std::vector<int64_t> tile = {};
};

// A schedule tree in which a mark stands above the band of each loop that is not a plain one.
struct MarkedSchedule {
  isl::schedule schedule;
  std::map<std::string, LoopMark> marks;  // by the mark's name
};

// A MarkHandler may use this where it writes the statement of a mark.
class MarkPlace {
 public:
  virtual ~MarkPlace() = default;
  virtual ir::Context& context() = 0;
  // An integer (i64) or a condition that MarkHandler::Expressions has made.
  virtual ir::Expr Value(const isl::ast_expr& e) = 0;
  // An i64 over variables outside of the part.
  virtual ir::Expr Wide(ir::Expr e) = 0;
  // Returns the buffer that stands here for a buffer of the part.
  virtual ir::Buffer Current(ir::Buffer buffer) = 0;
  // From now on `name`, a parameter of such expressions, or a loop ("c3"), is `value`; null: no longer. The
  // loop then is no loop: what is in its body is done if its bounds hold `value`.
  virtual void Bind(const std::string& name, ir::Expr value) = 0;
  // Returns true if the loop "c3" stands around here, or is bound, but isl has left it out because it has one
  // iteration.
  virtual bool IsLeftOut(const std::string& loop) = 0;
  // Returns the code below the mark, with new buffers for `copies`, which live there.
  virtual ir::Stmt Below(const std::vector<ir::Buffer>& copies = {}) = 0;
};

// Writes marks that are no LoopMarks in a way of its own, and accesses below them.
class MarkHandler {
 public:
  virtual ~MarkHandler() = default;
  // Called while isl makes the code at the mark: the expressions over the loops around that Write needs. May throw
  // isl::exception.
  virtual std::vector<isl::ast_expr> Expressions(const std::string& mark,
                                                 const isl::ast_build& build) = 0;
  virtual bool Handles(const std::string& mark) const = 0;
  virtual ir::Stmt Write(const std::string& mark, const std::vector<isl::ast_expr>& expressions,
                         MarkPlace& place) = 0;
  // Returns what a statement loads, or stores `value` to, instead of the element of an access at `indices` (i64).
  // `load` is the load in the statement's code. Null: the access stays.
  virtual ir::Expr Load(const Statement& statement, ir::Expr load,
                        const std::vector<ir::Expr>& indices) = 0;
  virtual ir::Stmt Store(const Statement& statement, ir::Buffer buffer,
                         const std::vector<ir::Expr>& indices, ir::Expr value) = 0;
};

// Loops that run the instances of `scop` in the order of `schedule`. Their variables, and all
// arithmetic on them, are i64: parameters are at most 2^40 (Scop::assumed), so that nothing overflows.
// `/` and `%` of loop IR round down, as isl's quotients and remainders do.
//
//   let n: i64 = cast(i64, n)
//   if (what the part assumes of its parameters) { new loops } else { the original code }
//
// The test is left out where it always holds. Throws isl::exception.
ir::Stmt Generate(const Scop& scop, const MarkedSchedule& schedule, MarkHandler* handler = nullptr);

// `body`, made of several parts of `scop` that each take for granted what it assumes, with the test for that as
// Generate has it. Throws isl::exception.
ir::Stmt WithTest(const Scop& scop, ir::Stmt body);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GENERATE_GENERATE_H_
