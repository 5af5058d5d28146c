#include "compiler/te/card/step_cycles.h"

#include <algorithm>

namespace polynao::te {

std::pair<int64_t, int64_t> RowsOf(const Shape& domain, const std::vector<bool>& varies) {
  std::pair<int64_t, int64_t> extents = {1, 1};
  for (size_t d = 0; d < domain.size(); ++d) {
    if (!varies[d]) continue;
    (d + 1 == domain.size() ? extents.second : extents.first) *= std::max<int64_t>(1, domain[d]);
  }
  return extents;
}

double CyclesOf(const Steps& steps, const LaneInstructions& instructions) {
  double cycles = 0;
  for (const Step& step : steps.list) {
    if (step.instruction == nullptr) continue;
    const auto [rows, count] = RowsOf(steps.domain, step.varies);
    std::vector<Type> lacking;
    const isa::Instruction* row_form = nullptr;
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const Step& operand = steps.list[step.operands[i]];
      if (operand.varies == step.varies) continue;
      lacking.push_back(operand.type);
      for (const Step::RowForm& form : step.row_forms) {
        if (form.operand == i) row_form = form.instruction;
      }
    }
    cycles += instructions.Cycles(*step.instruction, row_form, lacking, rows, count);
  }
  return cycles;
}

}  // namespace polynao::te
