#include "isa/processor/processor.h"

#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
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

ProcessorInstruction ReadRow(const ir::Function& function) {
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
  if (rank == 2) return row;
  row.rows = row.sums->extents.at(0).int_value();
  row.steps = row.b->extents.at(0).int_value();
  row.registers = Number(function, "registers");
  row.cycles = Number(function, "cycles");
  return row;
}

}  // namespace

const std::vector<ProcessorInstruction>& ProcessorInstructions() {
  static const auto* rows = [] {
    const absl::StatusOr<ir::Module> module =
        ir::ParseModule(ProcessorText(), "isa/processor/instructions.nir");
    POLYNAO_CHECK(module.ok()) << module.status().message();
    auto* list = new std::vector<ProcessorInstruction>;
    for (const ir::Function& function : module->functions) list->push_back(ReadRow(function));
    return list;
  }();
  return *rows;
}

}  // namespace polynao::isa
