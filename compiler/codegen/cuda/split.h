// Which parts of a function run as kernels, and what the host does around them.
#ifndef COMPILER_CODEGEN_CUDA_SPLIT_H_
#define COMPILER_CODEGEN_CUDA_SPLIT_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/codegen/cuda/kernels.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// Finds the statements that contain, or are, loops of a kind.
class Finder {
 public:
  explicit Finder(bool (*is_one)(ir::Stmt)) : is_one_(is_one) {}
  bool Has(ir::Stmt s) {
    if (auto it = known_.find(s); it != known_.end()) return it->second;
    bool found = is_one_(s);
    for (ir::Stmt child : s.children()) found = Has(child) || found;
    known_.emplace(s, found);
    return found;
  }

 private:
  bool (*is_one_)(ir::Stmt);
  absl::flat_hash_map<ir::Stmt, bool> known_;
};

// The kernels of `function`, of which only functions are set, the host's steps, and the workspaces. PlanKernels
// (kernels.h) says what becomes what, and lists the errors.
absl::StatusOr<KernelPlan> SplitIntoKernels(const ir::Function& function);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_SPLIT_H_
