#include "tests/end_to_end/random_layer_for_test.h"

#include <algorithm>

#include "base/text.h"

namespace polynao {
namespace {

int64_t Extent(Draw& draw) { return draw.Number(0, 5) == 0 ? 1 : draw.Number(1, 20); }

int64_t Channels(Draw& draw) {
  return draw.Number(0, 1) == 0   ? 64 * draw.Number(1, 8)
         : draw.Number(0, 3) == 0 ? draw.Number(1, 9)
                                  : draw.Number(1, 200);
}

}  // namespace

cases::CaseText RandomLayer(Draw& draw) {
  cases::CaseText text;
  const int64_t kh = draw.Number(1, 5), kw = draw.Number(1, 5), ci = Channels(draw);
  const int64_t h = Extent(draw), w = Extent(draw);
  text.dtype = draw.OneOf<std::string>({"i8", "i8", "i16", "f16"});
  const auto flag = [&](const char* name) {
    text.attributes.push_back(StrCat(name, "=", draw.Number(0, 1)));
  };
  switch (draw.Number(0, 6)) {
    case 0:
    case 1:
      text.op = "conv2d";
      text.shape = StrCat(h, "x", w, "x", ci, ",", Channels(draw), "x", kh, "x", kw, "x", ci);
      text.attributes = {StrCat("stride=", draw.Number(1, 3)),
                         StrCat("dilation=", draw.Number(1, 2)), StrCat("pad=", draw.Number(4, 5))};
      flag("bias");
      flag("relu");
      break;
    case 2: {
      text.op = "conv2d";
      const int64_t groups = draw.Number(2, 150), in = draw.OneOf<int64_t>({1, 1, 2, 4, 16});
      const int64_t out = in == 1 ? draw.OneOf<int64_t>({1, 1, 2}) : draw.Number(1, 8);
      text.shape =
          StrCat(h, "x", w, "x", groups * in, ",", groups * out, "x", kh, "x", kw, "x", in);
      text.attributes = {StrCat("groups=", groups), StrCat("stride=", draw.Number(1, 2)), "pad=4"};
      flag("bias");
      break;
    }
    case 3:
      text.op = "matmul";
      text.shape = StrCat(draw.Number(1, 300), "x", ci, ",", Channels(draw), "x", ci);
      flag("bias");
      break;
    case 4:
      text.op = "conv2d_bn";
      text.shape = StrCat(h, "x", w, "x", ci, ",", Channels(draw), "x", kh, "x", kh, "x", ci);
      text.attributes = {StrCat("stride=", draw.Number(1, 2)), "pad=4"};
      flag("residual");
      flag("relu");
      break;
    case 5:
      text.op = "conv2d_transpose";
      text.dtype = draw.OneOf<std::string>({"f16", "f32"});
      text.shape = StrCat(h, "x", w, "x", ci, ",", Channels(draw), "x", kh, "x", kw, "x", ci);
      // Less than half of the window, so that pixels are left.
      text.attributes = {StrCat("stride=", draw.Number(1, 4)),
                         StrCat("pad=", draw.Number(0, (std::min(kh, kw) - 1) / 2))};
      break;
    default:
      text.op = draw.OneOf<std::string>({"add", "relu", "gelu", "add_relu"});
      text.dtype = "f16";
      text.shape = StrCat(draw.Number(1, 40), "x", draw.Number(1, 40), "x", draw.Number(1, 130));
  }
  return text;
}

std::vector<std::string> RandomCard(Draw& draw) {
  return {StrCat("card.clusters=", draw.Number(1, 6)),
          StrCat("cluster.cores=", draw.OneOf<int64_t>({1, 2, 3, 4, 4, 6})),
          StrCat("core.nmem_kib=", 32 << draw.Number(0, 4)),
          StrCat("core.wmem_kib=", 16 << draw.Number(0, 6)),
          StrCat("cluster.smem_kib=", 32 << draw.Number(0, 6))};
}

}  // namespace polynao
