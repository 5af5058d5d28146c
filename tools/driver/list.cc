#include <iomanip>
#include <iostream>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compiler/poly/order/strategies.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "isa/dram_presets.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"
#include "kernels/equake/equake.h"
#include "kernels/operators.h"
#include "kernels/pipelines/pipelines.h"
#include "kernels/topi_cases/cases.h"
#include "simulator/configs/configs_text.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

void Row(std::string_view name, std::string_view text, int width = 24) {
  std::cout << std::left << std::setw(width) << name << " " << text << "\n";
}

void ListRows(const std::vector<isa::MachineParameter>& parameters) {
  for (const isa::MachineParameter& p : parameters) {
    const std::string value = p.text.empty() ? StrCat(p.value) : StrCat("\"", p.text, "\"");
    Row(StrCat("  ", p.name),
        StrCat(value, p.unit.empty() ? "" : StrCat(" ", p.unit), "  (", p.source, ")"), 40);
  }
}

absl::Status List(const std::string& what) {
  if (what == "ops") {
    for (const kernels::Operator& op : kernels::Operators()) {
      Row(op.name, op.doc);
      if (op.shapes.size() > 1) Row("", StrCat("--shape=", absl::StrJoin(op.shapes, ",")));
      if (!op.optional_shapes.empty()) {
        Row("", StrCat("--shape=", absl::StrJoin(op.shapes, ","), "[,",
                       absl::StrJoin(op.optional_shapes, ","), "]"));
      }
      for (const kernels::OperatorAttribute& a : op.attributes) {
        Row("", StrCat("--attr ", a.name, "=", a.default_value, ": ", a.doc,
                       a.words.empty() ? "" : StrCat(" (", absl::StrJoin(a.words, ", "), ")")));
      }
    }
    for (const kernels::Pipeline& pipeline : kernels::Pipelines()) {
      Row(pipeline.name, pipeline.doc);
      Row("", StrCat("--shape=ROWSxCOLS (", pipeline.default_rows, "x", pipeline.default_cols,
                     "), not for the card"));
    }
    for (const kernels::Equake& equake : kernels::Equakes()) {
      Row(equake.name, equake.doc);
      Row("", "--shape=NODES, or test, train, ref (test); not for the card");
    }
  } else if (what == "cases") {
    for (const kernels::TopiCase& c : kernels::TopiCases()) {
      for (const kernels::OperatorCase& f : c.functions) {
        Row(StrCat(c.op, " --case=", c.id),
            StrCat(kernels::ShapesText(f), " ", ir::TypeName(f.dtype), " ",
                   absl::StrJoin(f.attributes, " ", absl::PairFormatter("="))),
            36);
      }
    }
  } else if (what == "passes") {
    for (const PassInfo& pass : Passes()) {
      Row(pass.name, pass.doc);
      for (const PassOption& option : pass.options) {
        Row("", StrCat(DefaultText(option), ": ", option.doc, ": ", ValuesText(option)));
      }
    }
  } else if (what == "instructions") {
    for (const isa::Instruction& instruction : isa::DianNao().instructions()) {
      std::string doc = instruction.doc.substr(0, instruction.doc.find('\n'));
      Row(instruction.mnemonic, StrCat(isa::UnitName(instruction.unit), ": ", doc), 34);
    }
  } else if (what == "configs") {
    for (const simulator::ConfigText& config : simulator::ConfigTexts()) {
      ASSIGN_OR_RETURN(const isa::ParameterFile file,
                       isa::ReadMachineFile(config.text, config.name));
      std::cout << config.name << "\n";
      ListRows(file.parameters);
    }
    for (const isa::DramPresetText& preset : isa::DramPresetTexts()) {
      ASSIGN_OR_RETURN(const isa::ParameterFile file, isa::ReadDramPreset(preset.name));
      std::cout << "gmem.dram=" << preset.name << "\n";
      ListRows(file.parameters);
    }
  } else if (what == "targets") {
    for (const TargetFacts& facts : Targets()) {
      Row(facts.name, facts.doc, 8);
      Row("", StrCat("writes ", facts.writes), 8);
    }
  } else if (what == "strategies") {
    for (const poly::NamedStrategy& strategy : poly::Strategies()) {
      Row(strategy.name, StrCat(strategy.doc, strategy.is_for_gpu ? "" : "; not for cuda"), 8);
    }
  } else if (what == "suites") {
    for (const SuiteText& suite : SuiteTexts()) Row(suite.name, suite.doc);
  } else {
    return InvalidInput(
        "list: expected ops, cases, passes, instructions, configs, targets, strategies or suites, "
        "found '",
        what, "'");
  }
  return absl::OkStatus();
}

}  // namespace

void AddListCommand(CLI::App& app, Action& action) {
  auto what = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "list", "lists operators, passes, instructions, machines, targets, strategies and suites");
  command
      ->add_option("WHAT", *what,
                   "ops, cases, passes, instructions, configs, targets, strategies or suites")
      ->required();
  command->callback([&action, what] {
    action = [what] { return Outcome{.status = List(*what), .values_agree = true}; };
  });
}

}  // namespace polynao::driver
