#include "kernels/te/epilogue.h"

#include "absl/strings/numbers.h"
#include "kernels/te/schedule_util.h"

namespace polynao::kernels {

using ir::Expr;
using ir::Type;
using te::Tensor;

int64_t Epilogue::NmemBytes(int64_t results, int64_t channels) const {
  int64_t bytes = OnChipBytes(results, sum) + 2 * OnChipBytes(results, out);
  if (is_scaled() && sum != Type::kF32 && scale == 1) bytes += OnChipBytes(results, Type::kF32);
  if (bias) bytes += OnChipBytes(channels, sum);
  return bytes;
}

double Epilogue::Cycles(const isa::Machine& m, int64_t results) const {
  const int steps = bias + relu + (is_scaled() ? 1 + (sum != Type::kF32 && scale == 1) : 0);
  return steps * VectorCycles(m, results * 4);
}

std::vector<OperatorAttribute> EpilogueAttributes() {
  return {{"bias", "0", "1: a third input B (CO) is added to the sums"},
          {"relu", "0", "1: values below 0 become 0"},
          {"scale", "auto", "factor of the sums; auto: 1/64 of integers, 1 of floats"},
          {"out",
           "f16",
           "type of the output; i32: the sums of integers, not scaled",
           {"f16", "f32", "i8", "i16", "i32"}}};
}

Epilogue ReadEpilogue(const Operator& op, const OperatorCase& c) {
  Epilogue e;
  e.in = c.dtype;
  e.sum = ir::IsInt(c.dtype) ? Type::kI32 : Type::kF32;
  e.out = *ir::ParseType(AttributeWord(op, c, "out"));
  e.bias = AttributeInt(op, c, "bias") != 0;
  e.relu = AttributeInt(op, c, "relu") != 0;
  if (!absl::SimpleAtod(ToAbsl(AttributeWord(op, c, "scale")), &e.scale)) {
    e.scale = ir::IsInt(c.dtype) ? 0x1p-6 : 1;
  }
  return e;
}

absl::Status CheckEpilogue(const Operator& op, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckType(c, {Type::kI8, Type::kI16, Type::kF16, Type::kBF16, Type::kF32}));
  RETURN_IF_ERROR(CheckNumber(op, c, "bias", 0, 1));
  RETURN_IF_ERROR(CheckNumber(op, c, "relu", 0, 1));
  if (ir::IsFloat(c.dtype) && AttributeWord(op, c, "out") == "i32") {
    return WrongCase(c, "attribute out: the sum of floats is no i32");
  }
  return absl::OkStatus();
}

// [tensor-program conv begin]
EpilogueSteps Append(te::Graph& g, const Epilogue& e, const Tensor& sums, const Tensor& bias) {
  EpilogueSteps steps;
  const auto step = [&](const char* name, const char* instruction, const auto& value) {
    const Tensor last = steps.tensors.empty() ? sums : steps.tensors.back();
    steps.tensors.push_back(
        g.Compute(name, last.shape(), [&](const te::Axes& at) { return value(last(at), at); }));
    steps.instructions.push_back(instruction);
  };
  if (e.bias) {
    const bool is_whole = bias.rank() == sums.rank();
    step("SB", is_whole ? "add" : "row_add", [&](Expr v, const te::Axes& at) {
      return v + bias(te::Axes(at.end() - static_cast<ptrdiff_t>(bias.rank()), at.end()));
    });
  }
  const auto wide = [](Expr v) { return v.type() == Type::kF32 ? v : To(Type::kF32, v); };
  if (e.is_scaled() && e.sum != Type::kF32 && e.scale == 1) {
    step("R", "cast", [&](Expr v, const te::Axes&) { return wide(v); });
  }
  if (e.is_scaled() && (e.scale != 1 || e.out != Type::kF32)) {
    const char* scaling = e.sum == e.out ? "muls" : "rescale";
    step("Y", e.scale == 1 ? "cast" : scaling, [&](Expr v, const te::Axes&) {
      v = wide(v);
      if (e.scale != 1) v = v * ir::ConstantLike(v, e.scale);
      return e.out == Type::kF32 ? v : To(e.out, v);
    });
  }
  if (e.relu) {
    step("YR", "maxs", [](Expr v, const te::Axes&) { return ir::Max(v, ir::ConstantLike(v, 0)); });
  }
  return steps;
}

void ReusePlaces(te::Schedule& s, const Tensor& sums, const EpilogueSteps& steps) {
  for (size_t j = 0; j < steps.tensors.size(); ++j) {
    const Tensor& before = j == 0 ? sums : steps.tensors[j - 1];
    if (before.type() == steps.tensors[j].type()) s[steps.tensors[j]].InPlace(before);
  }
}
// [tensor-program conv end]

}  // namespace polynao::kernels
