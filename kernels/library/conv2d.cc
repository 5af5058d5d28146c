#include "kernels/library/conv2d.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/numbers.h"
#include "base/math.h"
#include "base/status.h"
#include "isa/granularity.h"
#include "kernels/library/conv_shares.h"
#include "kernels/library/kernels_text.h"

namespace polynao::kernels {
namespace {

// `image` with zeros around it.
ir::Tensor Padded(const ir::Tensor& image, int64_t pad_h, int64_t pad_w) {
  const int64_t h = image.shape[0], w = image.shape[1], ci = image.shape[2];
  ir::Tensor padded(image.type, {h + 2 * pad_h, w + 2 * pad_w, ci});
  const int64_t pixel = ci * ir::ByteSize(image.type);
  for (int64_t y = 0; y < h; ++y) {
    std::memcpy(&padded.bytes[((y + pad_h) * (w + 2 * pad_w) + pad_w) * pixel],
                &image.bytes[y * w * pixel], w * pixel);
  }
  return padded;
}

// How the library's kernel goes through a layer.
struct LibraryPlan {
  ConvShares shares = {};
  int64_t rows = 0, columns = 0;  // of a tile
  int64_t block = 0;              // output channels
};

int64_t NmemBytes(const ConvCase& k, const LibraryPlan& p) {
  const int64_t image =
      RoundUp(k.ImageRows(p.rows) * k.ImageColumns(p.columns) * k.ci * k.bytes, kOnChipAlignment);
  return 2 * image + p.rows * p.columns * RoundUp(p.block, isa::kTensorLanes) * (4 + 2 * 2);
}

// The largest block of channels whose filters fit WMEM (and SMEM, twice if there are several blocks) with the
// largest tile of at most kTileRows rows beside it. Whole rows of the share if possible. Tiles are small so
// that computation starts early: the image of a tile comes behind the filters.
constexpr int64_t kTileRows = 2;

bool ChooseTile(const ConvCase& k, const isa::Machine& machine, LibraryPlan& p) {
  const int64_t channels = ShareChannels(k, p.shares, machine);
  const int64_t groups =
      std::min(BankBytes(machine) / k.filter_pitch(), CeilDiv(channels, isa::kTensorLanes));
  const int64_t share_columns = ShareColumns(k, p.shares);
  for (p.block = std::min(groups * isa::kTensorLanes, channels); p.block > 0;
       p.block = (p.block - 1) / isa::kTensorLanes * isa::kTensorLanes) {
    const int64_t slots = p.block < channels ? 2 : 1;
    if (p.shares.by_smem &&
        slots * p.block * k.filter_elements() * k.bytes > machine.smem_bytes()) {
      continue;
    }
    for (p.columns = share_columns; p.columns > 0; p.columns /= 2) {
      for (p.rows = std::min(kTileRows, ShareRows(k, p.shares)); p.rows > 0; --p.rows) {
        if (NmemBytes(k, p) <= machine.nmem_bytes()) return true;
      }
    }
  }
  return false;
}

}  // namespace

int64_t ConvCase::filter_pitch() const {
  return RoundUp(filter_elements() * bytes, isa::kTensorUnitAlignment);
}

int64_t BankBytes(const isa::Machine& machine) {
  return machine.wmem_bytes() / isa::kTensorLanes / isa::kTensorUnitAlignment *
         isa::kTensorUnitAlignment;
}

absl::StatusOr<ConvCase> ReadConvCase(const OperatorCase& c, const Target& target,
                                      std::string_view who) {
  ASSIGN_OR_RETURN(const Operator* op, FindOperator(c));
  if (op->name != "conv2d") {
    return absl::NotFoundError(StrCat(who, " has no kernel for '", c.op, "'"));
  }
  if (c.dtype != ir::Type::kI8 && c.dtype != ir::Type::kI16) {
    return absl::NotFoundError(
        StrCat(who, " has no conv2d of ", ir::TypeName(c.dtype), ", only of i8 and i16"));
  }
  for (const auto& [name, only] :
       {std::pair{"groups", "1"}, {"bias", "0"}, {"relu", "0"}, {"out", "f16"}}) {
    if (AttributeWord(*op, c, name) == only) continue;
    return absl::NotFoundError(StrCat(who, " has no conv2d with ", name, "=",
                                      AttributeWord(*op, c, name), ", only with ", name, "=",
                                      only));
  }
  ConvCase k;
  k.type = c.dtype;
  k.bytes = ir::ByteSize(c.dtype);
  const std::vector<TensorSpec> specs = op->tensors(c);
  k.h = specs[0].shape[0], k.w = specs[0].shape[1], k.ci = specs[0].shape[2];
  k.co = specs[1].shape[0], k.kh = specs[1].shape[1], k.kw = specs[1].shape[2];
  k.ho = specs[2].shape[0], k.wo = specs[2].shape[1];
  k.stride = *AttributeInt(*op, c, "stride");
  k.dilation = *AttributeInt(*op, c, "dilation");
  const std::optional<int64_t> pad = AttributeInt(*op, c, "pad");
  k.pad_h = pad.value_or(k.dilation * (k.kh - 1) / 2);
  k.pad_w = pad.value_or(k.dilation * (k.kw - 1) / 2);
  if (!absl::SimpleAtod(AttributeWord(*op, c, "scale"), &k.scale)) k.scale = 0x1p-6;
  if (k.filter_pitch() > BankBytes(*target.machine)) {
    return absl::ResourceExhaustedError(StrCat(who, "'s conv2d: a filter needs ", k.filter_pitch(),
                                               " bytes of a bank of wmem, which has ",
                                               BankBytes(*target.machine)));
  }
  return k;
}

absl::StatusOr<HandWrittenKernel> LibraryConv2d(const ConvCase& k, const Target& target,
                                                const ConvShares& shares) {
  const isa::Machine& machine = *target.machine;
  LibraryPlan plan = {.shares = shares};
  if (!ChooseTile(k, machine, plan)) {
    return absl::ResourceExhaustedError(StrCat("the library's conv2d: a tile of one pixel needs ",
                                               NmemBytes(k, {.rows = 1, .columns = 1, .block = 1}),
                                               " bytes of nmem, which has ", machine.nmem_bytes()));
  }
  HandWrittenKernel kernel;
  ASSIGN_OR_RETURN(kernel.program, AssembleKernel(Conv2dKernelText(), "",
                                                  {{"$TYPE", std::string(ir::TypeName(k.type))},
                                                   {"$BYTES", StrCat(k.bytes)}},
                                                  "conv2d.nasm", target));
  kernel.scalars = {0,
                    0,
                    0,
                    k.ho,
                    k.wo,
                    k.co,
                    k.w + 2 * k.pad_w,
                    k.ci,
                    k.kh,
                    k.kw,
                    k.stride,
                    k.dilation,
                    RegisterValue(ir::Type::kF32, k.scale),
                    shares.cluster_columns,
                    shares.cluster_channels,
                    shares.core_rows,
                    shares.core_columns,
                    shares.core_channels,
                    ShareRows(k, shares),
                    ShareColumns(k, shares),
                    ShareChannels(k, shares, machine),
                    plan.rows,
                    plan.columns,
                    plan.block,
                    shares.by_smem ? 1 : 0,
                    shares.clusters()};
  if (k.pad_h > 0 || k.pad_w > 0) {
    kernel.host_step = "puts zeros around the image";
    kernel.prepare = [k](const ir::Tensor& image) { return Padded(image, k.pad_h, k.pad_w); };
  }
  return kernel;
}

absl::StatusOr<HandWrittenKernel> FindLibraryConv2d(const OperatorCase& c, const Target& target) {
  ASSIGN_OR_RETURN(const ConvCase k, ReadConvCase(c, target, "the library"));
  absl::StatusOr<HandWrittenKernel> kernel;
  for (const ConvShares& shares : AllShares(k, *target.machine, kTileRows)) {
    kernel = LibraryConv2d(k, target, shares);
    if (kernel.ok() || !absl::IsResourceExhausted(kernel.status())) break;
  }
  return kernel;
}

}  // namespace polynao::kernels
