// Collects what preprocess knows about a function before it decides anything: its marked nests, and
// who accesses the buffers on chip.
#ifndef COMPILER_PASSES_PREPROCESS_FACTS_H_
#define COMPILER_PASSES_PREPROCESS_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/guarded_nest.h"
#include "compiler/passes/instruction_layout.h"
#include "compiler/target/target.h"

namespace polynao {

// A buffer allocated on chip.
struct OnChipBuffer {
  ir::Stmt allocation;
  ir::Stmt loop;  // the serial one around it, if nothing but allocations stands between; or null
  // The positions of the walk at which its scope begins and ends.
  int begin = 0;
  int end = 0;
  // The marked nests that access it, and whether other statements store to it.
  std::vector<size_t> writers;
  std::vector<size_t> readers;
  bool other_writers = false;
  bool has_address = false;  // an instruction takes its address
  // One more than the largest innermost index that marked nests store to.
  int64_t used = 0;
  std::vector<int64_t> extents;  // empty if one is not constant
};

// A buffer under pragma "sliding_window".
struct Window {
  std::optional<ir::Expr> fill_value;  // the value that pads it
  bool other_writers = false;          // nests that do not pad, or pad with another value
};

struct PreprocessFacts {
  std::map<std::string, std::optional<InstructionFamily>> families;  // the nests point there
  std::vector<GuardedNest> nests;                                    // in program order
  absl::flat_hash_map<ir::Buffer, OnChipBuffer> buffers;
  std::vector<ir::Buffer> in_order;  // the keys of `buffers`
  absl::flat_hash_map<ir::Buffer, Window> windows;
  // Buffers that get the same diagonal in each iteration of a loop, which allocates them, by the loop. What is off the
  // diagonal stays as it is, so that one fill in front of the loop does.
  absl::flat_hash_map<ir::Stmt, std::vector<ir::Buffer>> filled_before;
  absl::flat_hash_map<ir::Buffer, ir::Expr> before_loops;  // what fills them
  // The positions of the walk at which loops and lets outside of nests begin.
  absl::flat_hash_map<ir::Var, int> bound_at;
  // Marked nests that are left alone: their first statement and the reason.
  std::vector<std::pair<ir::Stmt, std::string>> rejected;

  // Null if `buffer` is not allocated on chip.
  const OnChipBuffer* Find(ir::Buffer buffer) const;
  // Returns true if the value of `e` may change while `buffer` lives.
  bool Changes(ir::Expr e, const OnChipBuffer& buffer) const;
  // Returns true if one fill of a whole window does for all the padding stored to it.
  bool IsFilled(const Window& window, ir::Buffer buffer) const;
};

// Reads the function in one walk. None if preprocess has nothing to do in it: no marked nest
// reduces or pads, and no pragma is "ragged".
std::optional<PreprocessFacts> CollectPreprocessFacts(const ir::Function& function,
                                                      const Target& target,
                                                      arith::Analyzer& analyzer);

}  // namespace polynao

#endif  // COMPILER_PASSES_PREPROCESS_FACTS_H_
