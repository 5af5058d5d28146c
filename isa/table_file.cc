#include "isa/table_file.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "isa/instructions_text.h"
#include "isa/table.h"

namespace polynao::isa {
namespace {

// The row's opcode; 0 if it states none.
int OpcodeOf(const TableVariant& variant) {
  constexpr std::string_view kAttribute = "@opcode(";
  const size_t at = variant.text.find(kAttribute);
  if (at == std::string::npos) return 0;
  return std::atoi(variant.text.c_str() + at + kAttribute.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<InstructionSet>> LoadTableFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(const std::vector<TableVariant> variants, ExpandTable(text, path));
  const auto built_in = DianNao().instructions();
  const bool is_alone =
      std::any_of(variants.begin(), variants.end(), [&](const TableVariant& variant) {
        const int opcode = OpcodeOf(variant);
        return std::any_of(built_in.begin(), built_in.end(), [&](const Instruction& instruction) {
          return instruction.opcode == opcode;
        });
      });
  std::vector<std::pair<std::string, std::string>> texts;
  if (!is_alone) texts.emplace_back("isa/instructions.nir", InstructionsText());
  texts.emplace_back(path, text);
  return InstructionSet::Load(texts);
}

std::string TableName(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(".nir")) name.resize(name.size() - 4);
  return name;
}

}  // namespace polynao::isa
