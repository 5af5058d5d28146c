#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/library/conv2d.h"
#include "kernels/library/kernels_text.h"

namespace polynao::kernels {
namespace {

// What expert_conv2d.nasm leaves open.
struct Plan {
  int64_t cluster_columns = 1;  // of the clusters' grid; the rest are its rows
  int64_t core_columns = 1;     // of the cores' grid in a cluster
  int64_t rows = 2;             // of a tile
  int64_t ahead = 0;            // rows of the output whose image comes before it is needed
  int64_t skew = 0;             // rows: how much lower than the cluster before a cluster begins
  int64_t begun_rows = 0;       // of the image, that come behind the filters, before the barrier
  bool sliced = false;          // the first tile row by row of the filters
};

// Chosen from 384 plans that vary all of this, on 11 of the 16 convolutions of tensorize48 and mlu270: for
// each of them the best of these eight is within 1.5 % of the best of all. Tried besides and not
// faster: tiles of 1 row, stores after all loads, filters by the memory core or past SMEM. What plans weigh:
// narrow shares need little of the image before they can begin, wide ones store long segments; filters
// first or image first.
constexpr Plan kPlans[] = {
    {.cluster_columns = 2, .ahead = 2, .skew = 1, .sliced = true},
    {.cluster_columns = 2, .begun_rows = 2},
    {.cluster_columns = 2, .skew = 1, .sliced = true},
    {.cluster_columns = 2, .ahead = 2, .skew = 1, .begun_rows = 2},
    {.core_columns = 4, .skew = 1},
    {.cluster_columns = 2, .rows = 3, .ahead = 2, .begun_rows = 2},
    {.core_columns = 2, .skew = 1, .sliced = true},
    {.core_columns = 2, .ahead = 2, .skew = 1, .sliced = true},
};

// In multiplications: smaller layers do not gain by measuring, larger ones take seconds to.
constexpr int64_t kMeasureFrom = 1 << 20;
constexpr int64_t kMeasureUpTo = int64_t{4} << 30;

// Bytes that one core brings of the filters before the next core takes its turn; a fraction of a GMEM
// channel's interleave.
constexpr int64_t kPieceBytes = 8192;

// A plan with what follows from it for a layer and a machine.
class Layout {
 public:
  Layout(const ConvCase& k, const isa::Machine& machine, const Plan& plan)
      : k_(k), machine_(machine), plan_(plan) {
    cluster_columns_ = std::gcd(plan.cluster_columns, machine.clusters());
    core_columns_ = std::gcd(plan.core_columns, machine.cores_per_cluster());
    grid_rows_ =
        machine.clusters() / cluster_columns_ * (machine.cores_per_cluster() / core_columns_);
    grid_columns_ = cluster_columns_ * core_columns_;
  }

  // Chooses the largest block of channels and the largest pass that fit. False: none does.
  bool Fit() {
    const int64_t groups =
        std::min(BankBytes(machine_) / k_.filter_pitch(), CeilDiv(k_.co, kLanes));
    for (block_ = std::min(groups * kLanes, k_.co); block_ > 0;
         block_ = (block_ - 1) / kLanes * kLanes) {
      if (block_ * FilterBytes() > machine_.smem_bytes()) continue;
      for (pass_columns_ = CeilDiv(k_.wo, grid_columns_); pass_columns_ > 0; pass_columns_ /= 2) {
        for (pass_rows_ = CeilDiv(k_.ho, grid_rows_); pass_rows_ > 0; pass_rows_ /= 2) {
          tile_rows_ = std::min(plan_.rows, pass_rows_);
          if (NmemBytes() <= machine_.nmem_bytes()) return true;
        }
      }
    }
    return false;
  }

  // The constants of expert_conv2d.nasm.
  std::string Numbers() const;
  // Of the last plan that Fit tried: what it needs at least.
  int64_t NmemBytes() const { return ImageBytes() + TileLanes() * (4 + 2 * 2); }
  int64_t FilterBytes() const { return k_.filter_elements() * k_.bytes; }

 private:
  int64_t PixelBytes() const { return k_.ci * k_.bytes; }
  // The tensor unit wants the image of a tile, and of a row of the filters, to start at a multiple of
  // 64 bytes: rows are as long as it takes.
  int64_t ImageWidth() const {
    const int64_t step = std::gcd(tile_rows_, Skew()) * k_.stride * PixelBytes();
    return RoundUp(k_.ImageColumns(pass_columns_), 64 / std::gcd<int64_t>(64, step));
  }
  int64_t ImageBytes() const {
    return RoundUp(k_.ImageRows(pass_rows_) * ImageWidth() * PixelBytes(), 128);
  }
  int64_t TileLanes() const { return tile_rows_ * pass_columns_ * RoundUp(block_, kLanes); }
  int64_t Skew() const { return plan_.skew % pass_rows_; }

  const ConvCase& k_;
  const isa::Machine& machine_;
  const Plan plan_;
  int64_t cluster_columns_ = 1, core_columns_ = 1, grid_rows_ = 1, grid_columns_ = 1;
  int64_t block_ = 0;  // output channels at a time
  int64_t pass_rows_ = 0, pass_columns_ = 0, tile_rows_ = 0;
};

std::string Layout::Numbers() const {
  const int64_t width = ImageWidth();
  const int64_t line_bytes = width * PixelBytes();
  const bool sliced =
      plan_.sliced && k_.kw * PixelBytes() % 64 == 0 && k_.dilation * line_bytes % 64 == 0;
  const int64_t slices = sliced ? k_.kh : 1;
  const int64_t slice = k_.filter_elements() / slices;
  const int64_t piece = kPieceBytes / k_.bytes;
  const int64_t pieces_line = piece * machine_.cores_per_cluster();
  const int64_t sums = ImageBytes();
  const int64_t y_half = sums + TileLanes() * 4;
  int64_t skews = 0;  // of clusters 0 to 3 and so on, 16 bits each
  for (int64_t i = 3; i >= 0; --i) skews = skews << 16 | i * Skew() % pass_rows_;
  const bool padded = k_.pad_h > 0 || k_.pad_w > 0;
  const std::pair<const char*, int64_t> numbers[] = {
      // The layer.
      {"H", k_.h},
      {"W", k_.w},
      {"CI", k_.ci},
      {"CO", k_.co},
      {"KH", k_.kh},
      {"KW", k_.kw},
      {"WO", k_.wo},
      {"STRIDE", k_.stride},
      {"DILATION", k_.dilation},
      {"PAD_H", k_.pad_h},
      {"PAD_W", k_.pad_w},
      {"SCALE", RegisterValue(ir::Type::kF32, k_.scale)},
      {"BYTES", k_.bytes},
      {"PIXEL_BYTES", PixelBytes()},
      {"REACH_H", k_.ImageRows(1)},  // rows of the image for one row of the output
      {"REACH_W", k_.ImageColumns(1)},
      {"IN_LINE", k_.w * k_.ci},
      {"IN_LINE_BYTES", k_.w * PixelBytes()},
      {"OUT_LINE", k_.wo * k_.co},
      {"OUT_LINE_BYTES", k_.wo * k_.co * 2},
      // Shares.
      {"CORES", machine_.cores_per_cluster()},
      {"CLUSTER_COLUMNS", cluster_columns_},
      {"CORE_ROWS", machine_.cores_per_cluster() / core_columns_},
      {"CORE_COLUMNS", core_columns_},
      {"SHARE_ROWS", k_.ho / grid_rows_},
      {"LONGER_ROWS", k_.ho % grid_rows_},  // shares that have a row more
      {"SHARE_COLUMNS", k_.wo / grid_columns_},
      {"LONGER_COLUMNS", k_.wo % grid_columns_},
      {"PASS_ROWS", pass_rows_},
      {"PASS_COLUMNS", pass_columns_},
      {"ROWS", tile_rows_},
      {"AHEAD", plan_.ahead},
      {"SKEWS", skews},
      {"BEGUN_ROWS", plan_.begun_rows},
      // Filters.
      {"BLOCK", block_},
      {"FILTER", k_.filter_elements()},
      {"FILTER_BYTES", FilterBytes()},
      {"FILTER_GROUP", k_.filter_elements() * kLanes},
      {"FILTER_GROUP_BYTES", FilterBytes() * kLanes},
      {"PITCH", k_.filter_pitch() / k_.bytes},
      {"PITCH_BYTES", k_.filter_pitch()},
      {"BANK", BankBytes(machine_) / k_.bytes},
      {"PIECE", piece},
      {"PIECES_LINE", pieces_line},
      {"PIECES_LINE_BYTES", pieces_line * k_.bytes},
      {"SLICES", slices},
      {"SLICE_ROWS", k_.kh / slices},
      {"SLICE", slice},
      {"SLICE_BYTES", slice * k_.bytes},
      {"SLICE_IMAGE_BYTES", k_.dilation * line_bytes},
      {"REACH_SLICE", sliced ? 1 : k_.ImageRows(1)},
      // NMEM: image, sums, two results.
      {"IMAGE_WIDTH", width},
      {"IMAGE_LINE", width * k_.ci},
      {"IMAGE_LINE_BYTES", line_bytes},
      {"TILE_BYTES", k_.stride * line_bytes},  // from one row of the output to the next
      {"FILL", padded ? sums / k_.bytes : 0},
      {"SUMS", sums},
      {"Y_HALF", y_half},
      {"Y_OTHER", y_half + TileLanes() * 2},
  };
  std::string text;
  for (const auto& [name, value] : numbers) StrAppend(&text, ".equ ", name, " ", value, "\n");
  return text;
}

}  // namespace

absl::StatusOr<HandWrittenKernel> FindExpertConv2d(const OperatorCase& c, const Target& target,
                                                   const MeasureKernel& measure) {
  ASSIGN_OR_RETURN(const ConvCase k, ReadConvCase(c, target, "the expert"));
  const int64_t macs = k.ho * k.wo * k.co * k.filter_elements();
  const bool measured = macs >= kMeasureFrom && macs <= kMeasureUpTo;
  std::optional<HandWrittenKernel> best;
  int64_t least = 0;
  for (const Plan& plan : kPlans) {
    Layout layout(k, *target.machine, plan);
    if (!layout.Fit()) continue;
    HandWrittenKernel kernel;
    ASSIGN_OR_RETURN(kernel.program, AssembleKernel(ExpertConv2dKernelText(), "",
                                                    {{"$TYPE", std::string(ir::TypeName(k.type))},
                                                     {"$NUMBERS", layout.Numbers()}},
                                                    "expert_conv2d.nasm", target));
    kernel.scalars.assign(kernel.program.params.size(), 0);
    if (!measured) return kernel;
    ASSIGN_OR_RETURN(const int64_t cycles, measure(kernel));
    if (best && cycles >= least) continue;
    best = std::move(kernel);
    least = cycles;
  }
  if (best) return *std::move(best);
  return absl::ResourceExhaustedError(
      StrCat("the expert's conv2d: no tile fits nmem, which has ", target.machine->nmem_bytes(),
             " bytes, with ", std::min(k.co, kLanes), " filters of ", k.filter_elements() * k.bytes,
             " bytes in smem, which has ", target.machine->smem_bytes()));
}

}  // namespace polynao::kernels
