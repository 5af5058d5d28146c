#include "kernels/topi/operators.h"

#include <utility>

#include "kernels/topi/convolution.h"

namespace polynao::kernels {

std::vector<Operator> TopiOperators() {
  std::vector<Operator> all;
  for (auto more : {TopiConvolutionOperators}) {
    for (Operator& op : more()) all.push_back(std::move(op));
  }
  return all;
}

}  // namespace polynao::kernels
