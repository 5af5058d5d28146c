// storage: gives every allocation on chip its address.
#ifndef COMPILER_PASSES_STORAGE_H_
#define COMPILER_PASSES_STORAGE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

struct PassInfo;

// One allocation's place.
struct StoragePlace {
  std::string buffer;
  std::string scope;
  int64_t begin = 0;  // bytes
  int64_t bytes = 0;
  // The first and the last statement that use it, by number and by the start of their text. Uses in a
  // loop inside of the allocation count as uses by the loop.
  int first = 0;
  int last = 0;
  std::string from;
  std::string to;
  // The number of copies of its buffer (NAME.0, NAME.1, ...) that the pipeline pass has made; else 1.
  int copies = 1;
  // This is true if another allocation uses some of its bytes at another time.
  bool is_shared = false;
};

// Wraps each allocation in NMEM, SMEM or WMEM in a pragma with its byte address:
//
//   allocate L: f16[128] @nmem   -->   pragma "address" (0) { allocate L: f16[128] @nmem ... }
//
// If all allocations of a memory fit side by side, each gets bytes of its own, in program order: shared
// bytes cost waits (sync). Otherwise allocations that are never live at the same time share bytes: the
// largest is placed first, each in the smallest gap that holds it. An allocation is live from its first
// to its last use, and through every loop inside of it that uses it. Addresses are multiples of
// kOnChipAlignment.
//
// Errors: a memory that is too small (the message lists the allocations that are live at the peak,
// largest first, and how far the largest would have to shrink); an extent that is not constant; SMEM
// allocated inside a loop over cores, since it belongs to the whole cluster.
absl::StatusOr<bool> Storage(ir::Function& function, const Target& target,
                             std::vector<StoragePlace>* places = nullptr);

// A report on `places`: each memory's peak, then its allocations by address.
//
//   nmem: peak 8576 of 32768 bytes
//     0 .. 128  X.0 (ping-pong, 2 copies)  fill.f16(&X.0[0], 0, 64) .. for (t, 0, 5) {
std::vector<std::string> StorageReport(absl::Span<const StoragePlace> places, const Target& target);

// The byte address that the pragma around an allocation gives, by buffer.
using AddressMap = absl::flat_hash_map<ir::Buffer, int64_t>;
AddressMap CollectAddresses(ir::Stmt body);

// The pass by name (registry.h).
PassInfo StoragePass();

}  // namespace polynao

#endif  // COMPILER_PASSES_STORAGE_H_
