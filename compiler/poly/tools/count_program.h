// Counts for a function how often its statements run, how many elements they touch, how
// often each is reused, what crosses a memory's border when tiles run one after the other, and what overlapped
// tiles compute again.
//
//   for (i, 0, n) for (j, 0, n)          S0: n^2 instances
//     y[i] = y[i] + A[i, j] * x[j]       A: n^2 accesses to n^2 elements; x: n^2 to n; y: 2n^2 to n
#ifndef COMPILER_POLY_TOOLS_COUNT_PROGRAM_H_
#define COMPILER_POLY_TOOLS_COUNT_PROGRAM_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao::poly {

struct ProgramCountOptions {
  // Values of parameters, by name; counts that need no others get a value.
  std::map<std::string, int64_t> arguments;
  // Iterations of a tile along a statement's loops, outermost first; the last one counts for all
  // further loops.
  std::vector<int64_t> tile = {32};
  // isl's count of its own steps for one count. 0: no limit.
  unsigned long max_operations = 300'000;
};

// A quasi-polynomial in the parameters, or why there is none.
struct SymbolicCount {
  std::string text;  // "[n] -> { n^2 : n > 0 }", or "not counted: ..."
  std::optional<int64_t> value;
};

struct StatementCount {
  std::string name;  // "S0"
  SymbolicCount instances;
  SymbolicCount tiles;
};

struct ArrayCount {
  std::string name;
  int element_bytes = 0;
  // Reads and writes; those of an access that may not happen count as if it did.
  SymbolicCount reads, writes;
  // Different elements that are accessed.
  SymbolicCount footprint;
  // The sum over all tiles of each statement of the elements that the tile accesses: what is moved if
  // no element stays in the near memory from one tile to the next.
  SymbolicCount tile_volume;

  std::optional<int64_t> FootprintBytes() const;
  std::optional<int64_t> VolumeBytes() const;
  // Accesses for each element.
  std::optional<double> Reuse() const;
};

// A statement whose values another one reads, where every tile of the consumer computes for itself what it
// needs (overlapped tiles). A chain of producers is one such pair after the other.
struct FlowCount {
  std::string producer, consumer;
  // The sum over the consumer's tiles of the producer's instances that the tile needs.
  SymbolicCount needed = {};
  // The same less the producer's instances that any tile needs: how many run more than once, each time counted.
  SymbolicCount recomputed = {};
};

struct PartCount {
  std::string name;  // of the static control part
  std::vector<StatementCount> statements;
  std::vector<ArrayCount> arrays;
  std::vector<FlowCount> flows;
};

// The counts of each static control part of `function`. Errors: a tile size below 1; an argument that
// no part has as a parameter; what Extract() refuses.
absl::StatusOr<std::vector<PartCount>> CountProgram(const ir::Function& function,
                                                    const ProgramCountOptions& options = {});

// As lines for people.
std::string ToString(const std::vector<PartCount>& parts);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_TOOLS_COUNT_PROGRAM_H_
