// Convolutions of volumes as products of planes, which are added up behind them.
#ifndef COMPILER_POLY_CARD_PLANE_PRODUCTS_H_
#define COMPILER_POLY_CARD_PLANE_PRODUCTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// The places of windows along a third dimension are channels of a convolution of planes, and each sum is one of these
// channels of several planes. So the planes of the image are not copied for each place.
//
//   Y[z, y, x, c] += X[z + q, y + r, x + s, i] * F[c, q, r, s, i]
//     -->  P[p, y, x, q, c] += X[p, y + r, x + s, i] * F[c, q, r, s, i]     Y[z, y, x, c] += P[z + q, y, x, q, c]
//
// Where windows are several planes apart, some of the products are nobody's.
struct PlaneProducts {
  NestStage
      products;  // P, of which the axes are those of the stage, with the places in front of the channels
  size_t plane, place;  // which of its axes
  int64_t places;
  int64_t stride, dilation;  // of planes
};

// None of a stage that is no convolution with windows of three dimensions. `before`: stages without a reduction that
// compute what it reads.
std::optional<PlaneProducts> ProductsOfPlanes(const NestStage& stage,
                                              const std::vector<const NestStage*>& before,
                                              ir::Context& c);

// The stage as sums of products that stand in `results`, whose dimensions are the axes of the products that `axes`
// says; -1: a single element.
NestStage SumsOfPlanes(const NestStage& stage, const PlaneProducts& planes, ir::Buffer results,
                       const std::vector<int>& axes, ir::Context& c);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_PLANE_PRODUCTS_H_
