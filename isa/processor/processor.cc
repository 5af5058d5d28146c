#include "isa/processor/processor.h"

#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "isa/processor/processor_text.h"

namespace polynao::isa {
namespace {

const auto& ValueOf(const ir::Function& function, std::string_view key) {
  const ir::Attribute* attribute = function.FindAttribute(key);
  POLYNAO_CHECK(attribute != nullptr && attribute->values.size() == 1)
      << function.name << " has no @" << key;
  return attribute->values[0];
}

std::string Word(const ir::Function& function, std::string_view key) {
  return std::get<std::string>(ValueOf(function, key));
}

int64_t Number(const ir::Function& function, std::string_view key) {
  return std::get<ir::Expr>(ValueOf(function, key)).int_value();
}

// Calls of functions that the table declares become what these mean, with the arguments bound by lets.
class Expanded : public ir::Mutator {
 public:
  using Mutator::Mutate;
  ir::Expr Mutate(ir::Expr e) override {
    const ir::Expr call = MutateOperands(e);
    if (!call.Is(ir::ExprKind::kCall) || call.callee() == nullptr) return call;
    ir::Context& c = call.context();
    ir::VarMap vars;
    std::vector<std::pair<ir::Var, ir::Expr>> lets;
    for (size_t i = 0; i < call.operands().size(); ++i) {
      const ir::Var parameter = call.callee()->params[i].var;
      if (call.operand(i).Is(ir::ExprKind::kVar)) {
        vars.emplace(parameter, call.operand(i));
        continue;
      }
      lets.emplace_back(c.NewVar(parameter.name(), parameter.type()), call.operand(i));
      vars.emplace(parameter, lets.back().first);
    }
    // Functions that this one calls are declared above it, and have no lets of their own.
    ir::Expr value = Mutate(ir::Substitute(call.callee()->value, vars));
    for (size_t i = lets.size(); i-- > 0;) value = c.Let(lets[i].first, lets[i].second, value);
    return value;
  }
};

ProcessorInstruction ReadRow(ir::Function function) {
  function.body = Expanded().Mutate(function.body);
  POLYNAO_CHECK(ir::Verify(function).ok()) << function.name;
  POLYNAO_CHECK(function.params.size() == 3) << function.name;
  ProcessorInstruction row{.name = function.name,
                           .doc = Word(function, "doc"),
                           .feature = Word(function, "feature"),
                           .intrinsic = Word(function, "intrinsic"),
                           .meaning = function,
                           .sums = function.params[0].buffer,
                           .a = function.params[1].buffer,
                           .b = function.params[2].buffer};
  const size_t rank = row.b->extents.size();
  row.lanes = row.b->extents.at(rank - 2).int_value();
  row.group = row.b->extents.at(rank - 1).int_value();
  if (function.FindAttribute("cycles") != nullptr) {
    const auto cycles = std::get<ir::Expr>(ValueOf(function, "cycles"));
    row.cycles = cycles.Is(ir::ExprKind::kFloatImm) ? cycles.float_value()
                                                    : static_cast<double>(cycles.int_value());
  }
  if (rank == 2) return row;
  row.rows = row.sums->extents.at(0).int_value();
  row.steps = row.b->extents.at(0).int_value();
  row.registers = Number(function, "registers");
  return row;
}

}  // namespace

std::vector<ProcessorInstruction> ReadProcessorRows(std::string_view text,
                                                    const std::string& file) {
  const absl::StatusOr<ir::Module> module = ir::ParseModule(text, file);
  POLYNAO_CHECK(module.ok()) << module.status().message();
  std::vector<ProcessorInstruction> rows;
  for (const ir::Function& function : module->functions) rows.push_back(ReadRow(function));
  return rows;
}

const std::vector<ProcessorInstruction>& ProcessorInstructions() {
  static const auto& rows = *new std::vector<ProcessorInstruction>(
      ReadProcessorRows(ProcessorText(), "isa/processor/instructions.nir"));
  return rows;
}

}  // namespace polynao::isa
