#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/math.h"
#include "base/status.h"
#include "isa/granularity.h"
#include "kernels/library/conv2d.h"
#include "kernels/library/conv_shares.h"
#include "kernels/library/kernels_text.h"

namespace polynao::kernels {
namespace {

// What expert_conv2d.nasm leaves open, besides who computes what.
struct Style {
  int64_t rows = 2;        // of a tile
  int64_t ahead = 0;       // rows of the output whose image comes before it is needed
  int64_t skew = 0;        // rows: how much lower than the cluster before a cluster begins
  int64_t begun_rows = 0;  // of the image, that come behind the filters, before the barrier
  bool sliced = false;     // the first tile row by row of the filters
};

// Chosen from 384 combinations of these choices with shares of rows and columns, on 11 of the 16 convolutions of
// tensorize48 and mlu270. Tried besides and not faster: tiles of 1 row, stores after all loads, filters by the
// memory core. The styles weigh filters first against image first, and long copies against an early start. Tiles
// of many rows serve layers whose filters take longer to come than the image.
constexpr Style kStyles[] = {
    {.ahead = 2, .skew = 1, .sliced = true},
    {.begun_rows = 2},
    {.skew = 1, .sliced = true},
    {.ahead = 2, .skew = 1, .begun_rows = 2},
    {.skew = 1},
    {.rows = 3, .ahead = 2, .begun_rows = 2},
    {.rows = 8, .sliced = true},
};
// Rows of a tile, for the estimate. This many shares, the best by the estimate, are measured with the first style,
// and the fastest of them with all other styles.
constexpr int64_t kTileRows = 2;
constexpr size_t kShares = 8;
constexpr size_t kStyledShares = 3;

struct Schedule {
  ConvShares shares = {};
  Style style = {};
};

// In multiplications. Smaller layers gain nothing by measuring; measuring larger ones takes seconds.
constexpr int64_t kMeasureFrom = 1 << 20;
constexpr int64_t kMeasureUpTo = int64_t{4} << 30;

// The cores of a cluster take turns in loading the filters into SMEM, a piece of this many bytes each: a fraction
// of a GMEM channel's interleave.
constexpr int64_t kPieceBytes = 8192;

// A plan with what follows from it for a layer and a machine.
class Layout {
 public:
  Layout(const ConvCase& k, const isa::Machine& machine, const Schedule& plan)
      : k_(k), machine_(machine), shares_(plan.shares), style_(plan.style) {}

  // Chooses the largest block of channels and the largest pass that fit. False: none does.
  bool Fit() {
    const int64_t channels = ShareChannels(k_, shares_, machine_);
    const int64_t groups =
        std::min(BankBytes(machine_) / k_.filter_pitch(), CeilDiv(channels, isa::kTensorLanes));
    for (block_ = std::min(groups * isa::kTensorLanes, channels); block_ > 0;
         block_ = (block_ - 1) / isa::kTensorLanes * isa::kTensorLanes) {
      if (shares_.by_smem && block_ * FilterBytes() > machine_.smem_bytes()) continue;
      for (pass_columns_ = ShareColumns(k_, shares_); pass_columns_ > 0; pass_columns_ /= 2) {
        for (pass_rows_ = ShareRows(k_, shares_); pass_rows_ > 0; pass_rows_ /= 2) {
          tile_rows_ = std::min(style_.rows, pass_rows_);
          if (NmemBytes() <= machine_.nmem_bytes()) return true;
        }
      }
    }
    return false;
  }
  // Where cores copy filters from.
  const char* FiltersFrom() const { return shares_.by_smem ? "smem" : "gmem"; }

  // The constants of expert_conv2d.nasm.
  std::string Numbers() const;
  // Of the last plan that Fit tried: what it needs at least.
  int64_t NmemBytes() const { return ImageBytes() + TileLanes() * (4 + 2 * 2); }
  int64_t FilterBytes() const { return k_.filter_elements() * k_.bytes; }

 private:
  int64_t PixelBytes() const { return k_.ci * k_.bytes; }
  // The image of a tile, and of a row of the filters, must start at a multiple of kTensorUnitAlignment
  // bytes: rows are as long as that takes.
  int64_t ImageWidth() const {
    const int64_t step = std::gcd(tile_rows_, Skew()) * k_.stride * PixelBytes();
    return RoundUp(k_.ImageColumns(pass_columns_),
                   isa::kTensorUnitAlignment / std::gcd(isa::kTensorUnitAlignment, step));
  }
  int64_t ImageBytes() const {
    return RoundUp(k_.ImageRows(pass_rows_) * ImageWidth() * PixelBytes(), kOnChipAlignment);
  }
  int64_t TileLanes() const {
    return tile_rows_ * pass_columns_ * RoundUp(block_, isa::kTensorLanes);
  }
  int64_t Skew() const { return style_.skew % pass_rows_; }

  const ConvCase& k_;
  const isa::Machine& machine_;
  const ConvShares shares_;
  const Style style_;
  int64_t block_ = 0;  // output channels at a time
  int64_t pass_rows_ = 0, pass_columns_ = 0, tile_rows_ = 0;
};

std::string Layout::Numbers() const {
  const int64_t width = ImageWidth();
  const int64_t line_bytes = width * PixelBytes();
  const bool sliced = style_.sliced && shares_.by_smem &&
                      k_.kw * PixelBytes() % isa::kTensorUnitAlignment == 0 &&
                      k_.dilation * line_bytes % isa::kTensorUnitAlignment == 0;
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
      {"CLUSTERS", shares_.clusters()},  // that have a share
      {"CLUSTER_COLUMNS", shares_.cluster_columns},
      {"CLUSTER_CHANNELS", shares_.cluster_channels},
      {"CORE_ROWS", shares_.core_rows},
      {"CORE_COLUMNS", shares_.core_columns},
      {"CORE_CHANNELS", shares_.core_channels},
      {"GRID_CHANNELS", shares_.grid_channels()},
      {"SHARE_ROWS", k_.ho / shares_.grid_rows()},
      {"LONGER_ROWS", k_.ho % shares_.grid_rows()},  // shares that have a row more
      {"SHARE_COLUMNS", k_.wo / shares_.grid_columns()},
      {"LONGER_COLUMNS", k_.wo % shares_.grid_columns()},
      {"SHARE_CHANNELS", ShareChannels(k_, shares_, machine_)},
      {"BY_SMEM", shares_.by_smem ? 1 : 0},
      {"PASS_ROWS", pass_rows_},
      {"PASS_COLUMNS", pass_columns_},
      {"ROWS", tile_rows_},
      {"AHEAD", style_.ahead},
      {"SKEWS", skews},
      {"BEGUN_ROWS", style_.begun_rows},
      // Filters.
      {"BLOCK", block_},
      {"FILTER", k_.filter_elements()},
      {"FILTER_BYTES", FilterBytes()},
      {"FILTER_GROUP", k_.filter_elements() * isa::kTensorLanes},
      {"FILTER_GROUP_BYTES", FilterBytes() * isa::kTensorLanes},
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

// The kernel of a plan. ResourceExhausted: it does not fit.
absl::StatusOr<HandWrittenKernel> KernelOf(const ConvCase& k, const Target& target,
                                           const Schedule& plan) {
  Layout layout(k, *target.machine, plan);
  if (!layout.Fit()) {
    return absl::ResourceExhaustedError(StrCat("the expert's conv2d: no tile fits nmem, which has ",
                                               target.machine->nmem_bytes(), " bytes"));
  }
  HandWrittenKernel kernel;
  ASSIGN_OR_RETURN(kernel.program, AssembleKernel(ExpertConv2dKernelText(), "",
                                                  {{"$TYPE", std::string(ir::TypeName(k.type))},
                                                   {"$FROM", layout.FiltersFrom()},
                                                   {"$NUMBERS", layout.Numbers()}},
                                                  "expert_conv2d.nasm", target));
  kernel.scalars.assign(kernel.program.params.size(), 0);
  return kernel;
}

}  // namespace

absl::StatusOr<HandWrittenKernel> ExpertConv2d(const ConvCase& k, const Target& target,
                                               const ConvShares& shares) {
  return KernelOf(k, target, {.shares = shares, .style = kStyles[0]});
}

absl::StatusOr<HandWrittenKernel> FindExpertConv2d(const OperatorCase& c, const Target& target,
                                                   const MeasureKernel& measure) {
  ASSIGN_OR_RETURN(const ConvCase k, ReadConvCase(c, target, "the expert"));
  const int64_t macs = k.ho * k.wo * k.co * k.filter_elements();
  const bool measured = macs >= kMeasureFrom && macs <= kMeasureUpTo;
  absl::StatusOr<HandWrittenKernel> best;
  int64_t least = 0;
  // Cycles of a plan, or ResourceExhausted. Keeps the fastest kernel in `best`, else why there is none.
  const auto try_plan = [&](const Schedule& plan) -> absl::StatusOr<int64_t> {
    absl::StatusOr<HandWrittenKernel> kernel = KernelOf(k, target, plan);
    if (!kernel.ok()) {
      if (!best.ok()) best = kernel.status();
      return kernel.status();
    }
    int64_t cycles = 0;
    if (measured) {
      ASSIGN_OR_RETURN(cycles, measure(*kernel));
    }
    if (!best.ok() || cycles < least) {
      best = std::move(kernel);
      least = cycles;
    }
    return cycles;
  };
  // The shares that were measured, with their cycles.
  std::vector<std::pair<int64_t, ConvShares>> tried;
  for (const ConvShares& shares : AllShares(k, *target.machine, kTileRows)) {
    const absl::StatusOr<int64_t> cycles = try_plan({.shares = shares, .style = kStyles[0]});
    if (absl::IsResourceExhausted(cycles.status())) continue;
    RETURN_IF_ERROR(cycles.status());
    if (!measured) return best;
    tried.emplace_back(*cycles, shares);
    if (tried.size() == kShares) break;
  }
  std::sort(tried.begin(), tried.end());
  if (tried.size() > kStyledShares) tried.resize(kStyledShares);
  for (const auto& [cycles, shares] : tried) {
    for (size_t i = 1; i < std::size(kStyles); ++i) {
      const absl::Status status = try_plan({.shares = shares, .style = kStyles[i]}).status();
      if (!absl::IsResourceExhausted(status)) RETURN_IF_ERROR(status);
    }
  }
  return best;
}

}  // namespace polynao::kernels
