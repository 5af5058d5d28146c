#include "kernels/topi/operators.h"

#include <utility>

#include "kernels/topi/batch_to_space.h"
#include "kernels/topi/convolution.h"
#include "kernels/topi/deformable.h"
#include "kernels/topi/depthwise_gradient.h"
#include "kernels/topi/image.h"
#include "kernels/topi/linear.h"
#include "kernels/topi/reduction.h"
#include "kernels/topi/winograd.h"

namespace polynao::kernels {

std::vector<Operator> TopiOperators() {
  std::vector<Operator> all;
  for (auto more : {TopiBatchToSpaceOperators, TopiConvolutionOperators, TopiDeformableOperators,
                    TopiDepthwiseGradientOperators, TopiImageOperators, TopiLinearOperators,
                    TopiReductionOperators, TopiWinogradOperators}) {
    for (Operator& op : more()) all.push_back(std::move(op));
  }
  return all;
}

}  // namespace polynao::kernels
