// Which buffers of a function may share memory.
#ifndef COMPILER_IR_ALIASES_H_
#define COMPILER_IR_ALIASES_H_

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// Buffers do not overlap (ir.h), except those that the function's attribute
// `@may_alias("A", "B", ...)` names. The attribute may stand several times; a name that stands in
// two joins both. Names mean parameters and allocations alike.
class Aliases {
 public:
  explicit Aliases(const Function& function);

  // The number of the group of buffers that `buffer` may overlap, below group_count(); nothing if it
  // overlaps no other.
  std::optional<size_t> Group(Buffer buffer) const;
  size_t group_count() const { return group_count_; }

 private:
  absl::flat_hash_map<std::string, size_t> group_of_name_;
  size_t group_count_ = 0;
};

}  // namespace polynao::ir

#endif  // COMPILER_IR_ALIASES_H_
