// The steps after the sums of a matrix product or a convolution: bias, scale, relu, cast to the output's type.
#ifndef KERNELS_TE_EPILOGUE_H_
#define KERNELS_TE_EPILOGUE_H_

#include <vector>

#include "absl/status/status.h"
#include "compiler/te/graph.h"
#include "compiler/te/schedule.h"
#include "kernels/te/operator.h"

namespace polynao::kernels {

// Y = cast(f32(sum + bias) * scale), then the larger of that and 0 with `relu`; an i32 output is the sums
// (+ bias), not scaled.
struct Epilogue {
  bool bias = false;
  bool relu = false;
  double scale = 1;
  ir::Type in = ir::Type::kI8;    // of what is multiplied
  ir::Type sum = ir::Type::kI32;  // i32 of integers, f32 of floats
  ir::Type out = ir::Type::kF16;

  // Returns true if a step scales the sums or casts them to the output's type.
  bool is_scaled() const { return out != ir::Type::kI32 && (out != sum || scale != 1); }
  // Bytes of NMEM for a tile of so many results: sums, the output twice, and the biases of `channels` channels.
  int64_t NmemBytes(int64_t results, int64_t channels) const;
  // Cycles of the steps on so many sums.
  double Cycles(const isa::Machine& m, int64_t results) const;
  // The least number of operations of the vector unit for each result.
  int64_t VectorOperations() const { return bias + relu + (is_scaled() ? 1 : 0); }
};

// Operator::dots_tolerance of products and convolutions: thousands of sums, each rounded to f32.
inline constexpr double kDotsTolerance = 1e-4;

// bias, relu, scale and out, with the same meaning for all operators.
std::vector<OperatorAttribute> EpilogueAttributes();
Epilogue ReadEpilogue(const Operator& op, const OperatorCase& c);
// Types that are multiplied, and these attributes.
absl::Status CheckEpilogue(const Operator& op, const OperatorCase& c);

// The steps as tensors, each computed from the one before by one instruction on the card.
struct EpilogueSteps {
  std::vector<te::Tensor> tensors;
  std::vector<const char*> instructions;
};
// `bias` has the sums' last dimensions, or all of them; empty without one.
EpilogueSteps Append(te::Graph& g, const Epilogue& e, const te::Tensor& sums,
                     const te::Tensor& bias);

// A step that keeps its operand's type is computed in place.
void ReusePlaces(te::Schedule& s, const te::Tensor& sums, const EpilogueSteps& steps);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_EPILOGUE_H_
