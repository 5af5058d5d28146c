// Values at a place in the code that isl makes of a schedule tree.
#ifndef COMPILER_POLY_GENERATE_LOOPS_AROUND_H_
#define COMPILER_POLY_GENERATE_LOOPS_AROUND_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {

// Functions on and sets of [t0, t1, ..], the loops around, at a place in isl's code. There isl's space has no dimension
// for a loop that it has left out, and others may be nested. All functions may throw isl::exception.
class LoopsAround {
 public:
  // `loops`: { S[i] -> [t0, t1, ..] } of the instances below; without it, only functions that are constant have a
  // value.
  LoopsAround(const isl::ast_build& build, const std::optional<isl::union_map>& loops);

  isl::ast_expr Value(const isl::pw_aff& f) const;
  // isl's loops around, by number: what Condition is over.
  std::vector<isl::ast_expr> Numbers() const;
  // Returns the condition that the loops around are in `set`, where `known` holds of the parameters, over
  // LoopParameter(0), .. of isl's loops. The build at hand would leave out what holds wherever there is an instance
  // below, and there may be none.
  isl::ast_expr Condition(const isl::set& set, const isl::set& known) const;
  // The number of loop `i` among all around.
  isl::ast_expr Number(unsigned i) const;

 private:
  const isl::ast_build& build_;
  isl::space space_;
  std::optional<isl::pw_multi_aff> all_;  // { isl's -> [t0, t1, ..] }
};

// The name, in conditions, of isl's loop number `i` around a place.
std::string LoopParameter(size_t i);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GENERATE_LOOPS_AROUND_H_
