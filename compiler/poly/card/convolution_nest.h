// A sum of products read as a convolution: which axes are rows, columns and channels, in any layout.
#ifndef COMPILER_POLY_CARD_CONVOLUTION_NEST_H_
#define COMPILER_POLY_CARD_CONVOLUTION_NEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// Sums over windows of an image that has rows, columns and channels on dimensions in any order:
//
//   Y[n, c, y, x] += X[n, i, 2y + r, 2x + s] * F[c, i, r, s]
//
// Rows and columns are dimensions of the image along which windows move, or others that the filters do not have;
// channels are axes that the image does not have, its depth is what windows take in besides. All else is a batch of
// images: groups of channels, and windows' third dimension, too.
struct ConvolutionNest {
  // None of a stage that is no such sum: other indices. With `peels`, and where `before`, stages
  // without a reduction, makes margins along rows and columns alone, select(1 <= y && y < n, X[.., y - 1, ..], 0), the
  // image is what stands in these; else what the sums read. Points to the stages.
  static std::optional<ConvolutionNest> Of(const NestStage& stage,
                                           const std::vector<const NestStage*>& before, bool peels);

  // An index of the image: stride * an axis + dilation * a reduced variable + a constant.
  struct Dimension {
    int axis = -1, range = -1;
    int64_t stride = 0, dilation = 0, constant = 0;
  };

  // Of dimensions of the image, -1 being one of a single element.
  int64_t AxisExtent(int d) const { return d < 0 ? 1 : stage->extents[dimensions[d].axis]; }
  int64_t RangeExtent(int d) const {
    return d < 0 || dimensions[d].range < 0 ? 1 : stage->ranges[dimensions[d].range].extent;
  }
  int64_t ImageExtent(int d) const;  // of the image's buffer
  // Where the first window begins along a dimension.
  int64_t First(int d) const;

  // Of rows (0) and columns (1): the dimension or -1.
  int Window(size_t i) const { return i < windows.size() ? windows[i] : -1; }
  int64_t Stride(size_t i) const { return Window(i) < 0 ? 1 : dimensions[Window(i)].stride; }
  int64_t Dilation(size_t i) const {
    return RangeExtent(Window(i)) == 1 ? 1 : dimensions[Window(i)].dilation;
  }
  // Rows or columns of an image that its windows reach.
  int64_t Reach(size_t i) const {
    return Stride(i) * (AxisExtent(Window(i)) - 1) + Dilation(i) * (RangeExtent(Window(i)) - 1) + 1;
  }
  // Whether windows read most rows and columns: a copy of all is one of whole pieces of memory.
  bool ReadsMostOfImage() const;

  // Products of the extents of channels, and of the image's depth.
  int64_t Channels() const;
  int64_t Depth() const;

  int64_t Images() const;
  bool IsOneImage() const { return Images() == 1; }
  bool HasGroups() const;  // axes of image and filters

  const NestStage* stage = nullptr;
  // The factors of the product, and the loads in them; `image_read`: what the sums read, image_load or its margins'
  // copy.
  ir::Expr image, weights, image_load, weights_load, image_read;
  const NestStage* margins = nullptr;  // none: nothing was peeled
  // Of windows, the axes of the copy with margins, and the place along them where an image's first row or column is.
  std::vector<ir::Var> margin_axes;
  std::vector<int64_t> margin_shifts;
  std::vector<size_t> channels;            // axes of the results' channels; none: a single filter
  std::vector<bool> is_shared;             // axes of both factors
  std::vector<Dimension> dimensions;       // of the image
  std::vector<int> windows, batch, depth;  // which of them; windows: at most two

 private:
  bool Read(size_t weights_factor, const std::vector<const NestStage*>* peeled);
  bool PeelMargins(const std::vector<const NestStage*>& before);
  bool ReadMargins();
  bool ReadImage();
  bool HasOneChannel() const;
  bool Choose();
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_CONVOLUTION_NEST_H_
