#include "isa/reference.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/text.h"

namespace polynao::isa {
namespace {

using Row = std::vector<const Instruction*>;

template <typename T, typename F>
std::string Join(const std::vector<T>& items, std::string_view separator, F text) {
  std::string joined;
  for (size_t i = 0; i < items.size(); ++i) {
    StrAppend(&joined, i == 0 ? "" : separator, text(items[i]));
  }
  return joined;
}

void AddUnique(std::vector<std::string>& items, std::string item) {
  if (std::find(items.begin(), items.end(), item) == items.end()) items.push_back(std::move(item));
}

// The instructions of each opcode, which are the variants of one row.
std::vector<Row> Rows(const InstructionSet& set) {
  std::vector<Row> rows;
  for (const Instruction& instruction : set.instructions()) {
    if (rows.empty() || rows.back()[0]->opcode != instruction.opcode) rows.emplace_back();
    rows.back().push_back(&instruction);
  }
  return rows;
}

// "`memcpy.{i8, f16}` with `.nmem.gmem`, `.gmem.nmem`": mnemonics that differ in the first part of
// their variant are one item, and so are items that differ in what follows it.
std::string Mnemonics(const Row& row) {
  using Strings = std::vector<std::string>;
  std::vector<std::pair<std::pair<std::string, std::string>, Strings>> by_rest;
  for (const Instruction* instruction : row) {
    std::string rest;
    for (size_t v = 1; v < instruction->variant.size(); ++v) {
      StrAppend(&rest, ".", instruction->variant[v]);
    }
    // `sync` stands beside sync.io, not among its suffixes.
    const std::string family = instruction->variant.empty() && row.size() > 1
                                   ? instruction->family + " "
                                   : instruction->family;
    const std::pair key(family, rest);
    auto group =
        std::find_if(by_rest.begin(), by_rest.end(), [&](auto& g) { return g.first == key; });
    if (group == by_rest.end()) group = by_rest.insert(by_rest.end(), {key, {}});
    if (!instruction->variant.empty()) group->second.push_back(instruction->variant[0]);
  }
  std::vector<std::pair<std::string, Strings>> by_head;  // "memcpy.{i8, f16}" and its rests
  for (const auto& [key, firsts] : by_rest) {
    std::string head = key.first.substr(0, key.first.find(' '));
    if (firsts.size() == 1) StrAppend(&head, ".", firsts[0]);
    if (firsts.size() > 1) {
      StrAppend(&head, ".{", Join(firsts, ", ", [](auto& f) { return f; }), "}");
    }
    auto group =
        std::find_if(by_head.begin(), by_head.end(), [&](auto& g) { return g.first == head; });
    if (group == by_head.end()) group = by_head.insert(by_head.end(), {head, {}});
    group->second.push_back(key.second);
  }
  return Join(by_head, ", ", [](const auto& group) {
    const auto& [head, rests] = group;
    if (rests.size() == 1) return StrCat("`", head, rests[0], "`");
    return StrCat("`", head, "` with ", Join(rests, ", ", [](auto& rest) {
                    return rest.empty() ? std::string("nothing") : StrCat("`", rest, "`");
                  }));
  });
}

std::string OperandKindText(const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::kWritten:
      return StrCat("register, receives ", TypeName(operand.type));
    case OperandKind::kValue:
      return StrCat("register with ", TypeName(operand.type));
    case OperandKind::kAddress:
      return StrCat("register with an address of ", TypeName(operand.type), " in ",
                    SpaceName(operand.space), operand.is_read ? ", read" : "",
                    operand.is_written ? ", written" : "");
    case OperandKind::kImmediate:
      return StrCat(operand.is_target ? "index of an instruction, " : "constant, ",
                    TypeName(operand.type));
  }
  POLYNAO_UNREACHABLE(static_cast<int>(operand.kind));
}

void AppendRow(const Row& row, std::string* page) {
  const Instruction& first = *row[0];
  std::vector<std::string> families, units;
  for (const Instruction* instruction : row) {
    AddUnique(families, instruction->family);
    AddUnique(units, StrCat(UnitName(instruction->unit), instruction->waits ? " (waits)" : ""));
  }
  StrAppend(page, "### ", Join(families, ", ", [](auto& f) { return f; }), "\n\n", first.doc,
            "\n\n");
  StrAppend(page, "- Variants: ", Mnemonics(row), "\n");
  StrAppend(page, "- Unit: ", Join(units, ", ", [](auto& u) { return u; }), "\n");
  StrAppend(page, "- Encoding: opcode ", first.opcode, ", variant ",
            row.size() == 1 ? "0"
                            : StrCat("0 to ", row.size() - 1,
                                     ", counting the row's @variants with the last fastest"),
            "\n");
  std::vector<std::string> requirements, costs;
  for (const Constraint& constraint : first.constraints) {
    requirements.push_back(StrCat("`", constraint.text, "`"));
  }
  for (const Instruction* instruction : row) {
    // Other types differ in the size of an element only.
    if (!first.variant.empty() && !instruction->variant.empty() &&
        instruction->variant[0] != first.variant[0]) {
      continue;
    }
    AddUnique(costs, StrCat("`", ir::Print(instruction->cost), "`"));
  }
  if (!requirements.empty()) {
    StrAppend(page, "- Requires: ", Join(requirements, ", ", [](auto& r) { return r; }), "\n");
  }
  StrAppend(page, "- Cycles: ", Join(costs, " or ", [](auto& c) { return c; }), "\n");
  if (!first.form_of.empty()) {
    StrAppend(page, "- Form of `", first.form_of,
              "`: the compiler may choose it for nests marked with that family\n");
  }
  if (first.lanewise) StrAppend(page, "- Element by element: operands may coincide\n");
  if (row.size() > 1) StrAppend(page, "\nShown for `", first.mnemonic, "`:\n");
  if (!first.operands.empty()) {
    StrAppend(page, "\n| operand | bits | what it is |\n|---|---|---|\n");
    for (const Operand& operand : first.operands) {
      StrAppend(page, "| ", operand.name, " | ", operand.bit, "..", operand.bit + operand.bits - 1,
                " | ", OperandKindText(operand), " |\n");
    }
  }
  ir::Function meaning = first.meaning;
  meaning.attributes.clear();
  StrAppend(page, "\n```\n", ir::Print(meaning), "```\n\n");
}

}  // namespace

std::string ReferencePage(const InstructionSet& set) {
  std::string page =
      "# Tensor ISA: reference\n\n"
      "Generated from isa/instructions.nir by `bazel run //tools:isa_doc`; isa/README.md says how "
      "to "
      "read the\ntable, docs/add_an_instruction.md how to extend it. Do not edit.\n\n"
      "A core has 64 registers of 64 bits, r0 to r63; floats are bit patterns in their low bits. "
      "An\n"
      "instruction is one word of 128 bits: opcode in bits 0..7, variant in bits 8..15, then the "
      "operands in\norder (6 bits for a register); all further bits are zero. Cycles are those in "
      "the "
      "instruction's unit,\nover its operands and the machine's parameters (simulator/configs); "
      "docs/timing.md says what memories\nadd. What an instruction writes must not overlap its "
      "other "
      "operands, except that operands of\ninstructions that go element by element may be the "
      "same.\n\n";
  const std::vector<Row> rows = Rows(set);
  StrAppend(&page, set.instructions().size(), " instructions in ", rows.size(), " rows.\n\n");
  constexpr std::pair<Unit, std::string_view> kSections[] = {
      {Unit::kScalar, "Scalar unit"},      {Unit::kIoDma, "Copies"},
      {Unit::kVector, "Vector unit"},      {Unit::kTensor, "Tensor unit"},
      {Unit::kControl, "Synchronisation"},
  };
  for (const auto& [unit, title] : kSections) {
    std::string section;
    for (const Row& row : rows) {
      const Unit row_unit = row[0]->unit == Unit::kMoveDma ? Unit::kIoDma : row[0]->unit;
      if (row_unit == unit) AppendRow(row, &section);
    }
    if (!section.empty()) StrAppend(&page, "## ", title, "\n\n", section);
  }
  // One newline at the end.
  while (page.size() > 1 && page[page.size() - 2] == '\n') page.pop_back();
  return page;
}

}  // namespace polynao::isa
