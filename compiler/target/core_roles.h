// Which cores of the card run which statements of a function with loops over cid and tid. The code generator
// (compiler/codegen/diannao), sync and the queue interpreter all follow this rule.
#ifndef COMPILER_TARGET_CORE_ROLES_H_
#define COMPILER_TARGET_CORE_ROLES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "isa/levels.h"

namespace polynao {

// Who runs a statement.
enum class RunsOn : uint8_t {
  kCore,        // the cores that have an iteration of the thread loops around it
  kMemoryCore,  // the memory core of each cluster that has an iteration
  kCluster,     // all cores of the cluster and its memory core
};

bool IsThreadLoop(ir::Stmt s);
// A loop over tid.
bool IsCoreLoop(ir::Stmt s);

// The roles in one function:
//
//   thread (cid, 2) {          its body runs on the cluster, since it contains a loop over tid
//     memcpy...(&S[0], ...)    the memory core: contains no loop over tid and no barrier
//     barrier.cluster()        the cluster
//     for (b, 0, 3) {          the cluster: everyone counts to 3
//       S[b] = 0               the memory core
//       thread (tid, 4) {...}  the body runs on cores
//     }
//   }
//
// Without a loop over tid inside, the body of a loop over cid runs on the core with the number 0 of each
// cluster. Statements at the top run where the numbers on axes without a loop are 0; everyone meets a
// barrier at the top.
class CoreRoles {
 public:
  // `target` outlives this.
  CoreRoles(ir::Stmt body, const Target& target);

  // Returns true if the function has a loop over the units of `level`.
  bool Uses(isa::Level level) const { return uses_[static_cast<int>(level)]; }

  // Returns true if `s` is or contains a loop over tid or a barrier.
  bool IsForAllCores(ir::Stmt s) const { return for_all_cores_.contains(s); }

  // Who runs `s`, a child of a statement that `around` runs.
  RunsOn Of(ir::Stmt s, RunsOn around) const {
    return around == RunsOn::kCluster && !IsForAllCores(s) ? RunsOn::kMemoryCore : around;
  }
  // Who runs the body of a thread loop that `around` reaches.
  RunsOn InBody(ir::Stmt loop, RunsOn around) const;

  // Iteration v of a thread loop runs on the unit with the number (v - min) % Units(loop).
  int64_t Units(ir::Stmt loop) const;
  // Returns true if it is known that no unit runs two iterations, and that each runs exactly one.
  bool RunsAtMostOnce(ir::Stmt loop) const;
  bool RunsExactlyOnce(ir::Stmt loop) const;

  // The memory core runs no iteration of a loop over tid. It meets these barriers of the loop's body, which
  // every core meets exactly once; it cannot follow the cores into other barriers.
  std::vector<ir::Stmt> BarriersOfMemoryCore(ir::Stmt core_loop) const;

  // The statements at the top of a function with this body: below allocations in GMEM.
  static std::vector<ir::Stmt> TopStatements(ir::Stmt body);
  // The buffers of these allocations, which live as long as the program runs.
  static std::vector<ir::Buffer> Temporaries(ir::Stmt body);
  static bool IsTemporary(ir::Stmt s);

 private:
  void Mark(ir::Stmt s);

  const Target& target_;
  std::array<bool, static_cast<int>(isa::Level::kCore) + 1> uses_ = {};  // by level
  absl::flat_hash_set<ir::Stmt> has_core_loop_;
  absl::flat_hash_set<ir::Stmt> for_all_cores_;
};

}  // namespace polynao

#endif  // COMPILER_TARGET_CORE_ROLES_H_
