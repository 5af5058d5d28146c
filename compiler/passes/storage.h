// storage: gives every allocation on chip its address.
#ifndef COMPILER_PASSES_STORAGE_H_
#define COMPILER_PASSES_STORAGE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// One allocation's place.
struct StoragePlace {
  std::string buffer;
  std::string scope;
  int64_t begin = 0;  // bytes
  int64_t bytes = 0;
};

// Wraps each allocation in NMEM, SMEM or WMEM in a pragma with its byte address:
//
//   allocate L: f16[128] @nmem   -->   pragma "address" (0) { allocate L: f16[128] @nmem ... }
//
// Allocations that live at the same time get disjoint places, in the order of nesting; those that
// do not may share one. Addresses are multiples of kOnChipAlignment. Errors: a memory that is too
// small (the message lists what lives there at the peak, largest first), an extent that is not
// constant, SMEM allocated inside a core's loop (it belongs to the whole cluster).
absl::StatusOr<bool> Storage(ir::Function& function, const Target& target,
                             std::vector<StoragePlace>* places = nullptr);

// The byte address that the pragma around an allocation gives, by buffer.
using AddressMap = absl::flat_hash_map<ir::Buffer, int64_t>;
AddressMap CollectAddresses(ir::Stmt body);

}  // namespace polynao

#endif  // COMPILER_PASSES_STORAGE_H_
