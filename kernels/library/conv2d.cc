#include "kernels/library/conv2d.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/numbers.h"
#include "base/status.h"
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

// A tile of the library's kernel.
struct LibraryTile {
  int64_t rows = 0, columns = 0;
  int64_t block = 0;  // output channels
};

int64_t NmemBytes(const ConvCase& k, const LibraryTile& t) {
  const int64_t image =
      RoundUp(k.ImageRows(t.rows) * k.ImageColumns(t.columns) * k.ci * k.bytes, 128);
  return 2 * image + t.rows * t.columns * RoundUp(t.block, kLanes) * (4 + 2 * 2);
}

// As many rows as fit, whole ones if possible, but no more than half of a core's, so that there is
// something to overlap with; as many channels as fit WMEM.
absl::StatusOr<LibraryTile> ChooseTile(const ConvCase& k, const isa::Machine& machine,
                                       int64_t core_rows) {
  const int64_t groups = std::min(BankBytes(machine) / k.filter_pitch(), CeilDiv(k.co, kLanes));
  LibraryTile t = {.rows = CeilDiv(core_rows, 2), .columns = k.wo};
  for (t.block = std::min(groups * kLanes, k.co); t.block > 0;
       t.block = (t.block - 1) / kLanes * kLanes) {
    for (t.columns = k.wo; t.columns > 0; t.columns /= 2) {
      for (t.rows = CeilDiv(core_rows, 2); t.rows > 0; --t.rows) {
        if (NmemBytes(k, t) <= machine.nmem_bytes()) return t;
      }
    }
  }
  return absl::ResourceExhaustedError(StrCat("the library's conv2d: a tile of one pixel needs ",
                                             NmemBytes(k, {.rows = 1, .columns = 1, .block = 1}),
                                             " bytes of nmem, which has ", machine.nmem_bytes()));
}

}  // namespace

int64_t ConvCase::filter_pitch() const { return RoundUp(filter_elements() * bytes, 64); }

int64_t BankBytes(const isa::Machine& machine) { return machine.wmem_bytes() / kLanes / 64 * 64; }

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

absl::StatusOr<HandWrittenKernel> FindLibraryConv2d(const OperatorCase& c, const Target& target) {
  ASSIGN_OR_RETURN(const ConvCase k, ReadConvCase(c, target, "the library"));
  const int64_t core_rows = CeilDiv(k.ho, target.machine->cores());
  ASSIGN_OR_RETURN(const LibraryTile tile, ChooseTile(k, *target.machine, core_rows));
  const std::string type(ir::TypeName(c.dtype));
  HandWrittenKernel kernel;
  ASSIGN_OR_RETURN(kernel.program, AssembleKernel(Conv2dKernelText(), "",
                                                  {{"$TYPE", type}, {"$BYTES", StrCat(k.bytes)}},
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
                    core_rows,
                    tile.rows,
                    tile.columns,
                    tile.block};
  if (k.pad_h > 0 || k.pad_w > 0) {
    kernel.host_step = "puts zeros around the image";
    kernel.prepare = [k](const ir::Tensor& image) { return Padded(image, k.pad_h, k.pad_w); };
  }
  return kernel;
}

}  // namespace polynao::kernels
