// Names for variables that a pass binds.
#ifndef COMPILER_PASSES_LET_NAMES_H_
#define COMPILER_PASSES_LET_NAMES_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "compiler/ir/ir.h"

namespace polynao {

// New variables whose names tell what their values depend on, and differ from all others in the
// function: "inv_i_j" for i * 64 + j * 8, "inv_A" for A[i + 1], "inv_i_j_1" for the next value of i
// and j. A variable that was named here stands for the parts of its own name.
class LetNames {
 public:
  // All names begin with `stem`.
  LetNames(const ir::Function& function, std::string_view stem);

  ir::Var NewVar(ir::Expr value);

 private:
  // Beyond these a name gets no longer, and the walk over a value ends.
  static constexpr size_t kMaxParts = 3;
  static constexpr int kMaxSteps = 64;
  using Parts = absl::InlinedVector<std::string, kMaxParts>;

  void AddParts(ir::Expr e, int& steps, Parts& parts) const;

  const std::string stem_;
  absl::flat_hash_set<std::string> taken_;
  absl::flat_hash_map<std::string, int> numbers_;
  absl::flat_hash_map<ir::Var, Parts> parts_;  // of the names given here
};

}  // namespace polynao

#endif  // COMPILER_PASSES_LET_NAMES_H_
