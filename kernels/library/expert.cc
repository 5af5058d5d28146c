#include "kernels/library/expert.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/math.h"
#include "base/status.h"
#include "isa/granularity.h"
#include "isa/machine.h"
#include "kernels/library/conv2d.h"
#include "kernels/library/kernels_text.h"

namespace polynao::kernels {
namespace {

// Cores 0, 1, 2 and 3 of a cluster, and so on, differ in their first tile.
constexpr int64_t kCoreKinds = 4;

// The first tiles of cores 0, 1, 2, 3 of a cluster (and so on), in hundredths of a tile. Tiles are as large as
// NMEM allows in all plans, because each load and store costs half a thousand cycles of latency. The plans
// differ in how the cores drift apart, so that GMEM has stores to serve while loads return. On the small
// shapes of tensorize48 the first plan alone gives a mean efficiency of 0.93 on mlu270, the best of all plans
// 0.95. Tensors of few interleave blocks use the channels of GMEM unevenly, which allows 0.96 at most.
constexpr std::array<std::array<int64_t, kCoreKinds>, 6> kFirstTiles = {{
    {25, 100, 25, 100},
    {15, 25, 100, 25},
    {25, 10, 20, 15},
    {100, 50, 25, 20},
    {25, 50, 33, 100},
    {100, 100, 100, 100},
}};

// Plans are measured for this many bytes of GMEM traffic. Above, start and end of a run are less than 2 % of it,
// and measuring takes seconds. Below, a core has one or two groups of elements.
constexpr int64_t kMeasureUpTo = 8 << 20;
constexpr int64_t kMeasureFrom = 64 << 10;

absl::StatusOr<HandWrittenKernel> ElementwiseKernel(
    const OperatorCase& c, const Target& target, const ElementwiseKind& kind, int64_t count,
    const std::array<int64_t, kCoreKinds>& first_tiles) {
  ASSIGN_OR_RETURN(const Operator* op, FindOperator(c));
  const isa::Machine& machine = *target.machine;
  const int64_t group_bytes = isa::kVectorGroup * ir::ByteSize(c.dtype);
  const int64_t groups = CeilDiv(count, isa::kVectorGroup);
  const int64_t run = groups / machine.cores();
  const int64_t longer_runs = groups % machine.cores();
  // Two halves, each with a buffer for every input.
  const int64_t room =
      machine.nmem_bytes() / (2 * kind.inputs) / kOnChipAlignment * kOnChipAlignment;
  int64_t tile = std::min(run + (longer_runs > 0 ? 1 : 0), room / group_bytes);
  tile = std::min<int64_t>(tile, std::numeric_limits<int16_t>::max());  // see packed
  if (groups > 0 && tile == 0) {
    return absl::ResourceExhaustedError(StrCat("expert kernel of '", c.op, "': expected at least ",
                                               2 * kind.inputs * kOnChipAlignment,
                                               " bytes of nmem, found ", machine.nmem_bytes()));
  }
  int64_t packed = 0;
  for (int64_t i = kCoreKinds - 1; i >= 0; --i) {
    packed = packed << 16 | std::max<int64_t>(1, tile * first_tiles[i] / 100);
  }
  const KernelWords words = {
      {"$OP", c.op},
      {"$VALUE", kind.with_scalar ? "operand, " : ""},
      {"$TYPE", std::string(ir::TypeName(c.dtype))},
      {"$BYTES", StrCat(ir::ByteSize(c.dtype))},
      {"$SCALAR", StrCat(RegisterValue(c.dtype, ScalarOf(*op, c)))},
      {"$CORES", StrCat(machine.cores_per_cluster())},
      {"$COUNT", StrCat(count)},
      {"$RUN_GROUPS", StrCat(run)},
      {"$LONGER_RUNS", StrCat(longer_runs)},
      {"$FIRST_TILES", StrCat(packed)},
      {"$TILE", StrCat(tile * isa::kVectorGroup)},
      {"$BUFFER_BYTES", StrCat(RoundUp(tile * group_bytes, kOnChipAlignment))}};
  HandWrittenKernel kernel;
  const bool binary = kind.inputs == 2;
  ASSIGN_OR_RETURN(kernel.program,
                   AssembleKernel(binary ? ExpertBinaryKernelText() : ExpertUnaryKernelText(),
                                  ExpertPartitionText(), words,
                                  binary ? "expert_binary.nasm" : "expert_unary.nasm", target));
  kernel.scalars.assign(kernel.program.params.size(), 0);
  return kernel;
}

}  // namespace

absl::StatusOr<HandWrittenKernel> FindExpertKernel(const OperatorCase& c, const Target& target,
                                                   const MeasureKernel& measure) {
  ASSIGN_OR_RETURN(const Operator* op, FindOperator(c));
  if (op->name == "conv2d") return FindExpertConv2d(c, target, measure);
  ASSIGN_OR_RETURN(const ElementwiseKind kind, FindElementwiseKind(c, target, "the expert"));
  int64_t count = 1;
  for (int64_t extent : c.shape) count *= extent;
  const int64_t traffic = (kind.inputs + 1) * count * ir::ByteSize(c.dtype);
  const bool measured = traffic >= kMeasureFrom && traffic <= kMeasureUpTo;
  std::optional<HandWrittenKernel> best;
  int64_t least = 0;
  for (const std::array<int64_t, kCoreKinds>& first_tiles : kFirstTiles) {
    ASSIGN_OR_RETURN(HandWrittenKernel kernel,
                     ElementwiseKernel(c, target, kind, count, first_tiles));
    if (!measured) return kernel;
    ASSIGN_OR_RETURN(const int64_t cycles, measure(kernel));
    if (best && cycles >= least) continue;
    best = std::move(kernel);
    least = cycles;
  }
  return *std::move(best);
}

}  // namespace polynao::kernels
