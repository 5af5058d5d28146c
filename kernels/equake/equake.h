// One time step of an earthquake simulation by finite elements, after the program equake of SPEC CPU2000 (Bao et al.,
// CMAME 152, 1998): a sparse matrix of 3 x 3 blocks times the displacements, then pointwise updates of arrays of
// (nodes, 3). Loop IR without a schedule, with a synthetic mesh, inputs and a reference. The inner loop over a row's
// blocks has bounds from memory, so that the polyhedral layer sees one opaque statement for each row; the work on
// fusion (Zhao and Di, MICRO 2020, figure 9) measures with this program what is gained around it. docs/benchmarks.md
// has more.
#ifndef KERNELS_EQUAKE_EQUAKE_H_
#define KERNELS_EQUAKE_EQUAKE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"

namespace polynao::kernels {

// Rows of blocks: those of row i are first[i] .. first[i + 1] - 1, in the columns `column`, the diagonal's first.
struct EquakeMesh {
  std::vector<int32_t> first, column;
};

// Nodes of a cube's grid, x fastest, each small cube cut into six tetrahedra along its diagonal (so that a node in the
// middle has 14 neighbours, seven of them behind it), and one more edge for every eighth node, to one up to two layers
// behind it. Of n nodes the last layers are not full. The same for the same `nodes`. With `upper_half`: only columns
// behind the diagonal.
EquakeMesh MakeEquakeMesh(int64_t nodes, bool upper_half);

struct Equake {
  std::string_view name;  // "equake", of the function too
  std::string_view doc;
  // Each block above the diagonal is stored once and also serves as its transpose: a row adds to the elements of later
  // rows. Else all blocks are stored, and each row is computed for itself.
  bool is_symmetric = false;
  // Stores the outputs, by plain loops. Takes the function's arguments.
  std::function<void(absl::Span<const ir::Argument>)> reference = {};
  // Within which results agree that were rounded otherwise (ir::FindDisagreement).
  double tolerance = 1e-12;
};

// equake and equake_whole.
absl::Span<const Equake> Equakes();
// Null if neither has that name.
const Equake* FindEquake(std::string_view name);

struct EquakeSize {
  std::string_view name;
  int64_t nodes;
};

// Nodes of the San Fernando meshes sf10, sf5 and sf2 (O'Hallaron and Shewchuk, CMU Unstructured Mesh Suite). With half
// of the matrix all arrays take about 6, 25 and 320 MB.
inline constexpr std::array<EquakeSize, 3> kEquakeSizes = {
    {{"test", 7'294}, {"train", 30'169}, {"ref", 378'747}}};

// The time step for a mesh of so many nodes. Errors: below 0, or more than 2^22.
absl::StatusOr<ir::Function> EquakeFunction(const Equake& equake, int64_t nodes);

// Arguments for it: the mesh, and random values, the same for the same seed. Masses are in [1, 2), damping in [0, 1),
// all else in [-1, 1).
absl::StatusOr<ir::RandomArguments> EquakeArguments(const Equake& equake,
                                                    const ir::Function& function, int64_t nodes,
                                                    uint64_t seed);

// "train", or a number of nodes; the first of the sizes above where the text is empty.
absl::StatusOr<int64_t> ParseEquakeNodes(const Equake& equake, std::string_view text);

}  // namespace polynao::kernels

#endif  // KERNELS_EQUAKE_EQUAKE_H_
