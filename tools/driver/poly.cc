#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/poly/calculator/calculator.h"
#include "compiler/poly/order/strategies.h"
#include "compiler/poly/tools/count_program.h"
#include "compiler/poly/tools/describe.h"
#include "compiler/poly/tools/picture.h"
#include "kernels/pipelines/pipelines.h"
#include "nlohmann/json.hpp"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

using Json = nlohmann::ordered_json;

struct PolyFlags {
  const CLI::App* command = nullptr;
  std::string file;
  std::string eval;
  std::vector<std::string> show;
  std::string function;
  std::vector<std::string> args;
  std::string shape;
  std::string tile = "32";
  bool has_tile = false;
  std::string strategy;
  std::string statement;
  std::string loops = "0,1";
  std::string schedule;
  unsigned long max_operations = poly::CalculatorOptions().max_operations;
  bool json = false;
  std::string output;
};

absl::Status Print(const PolyFlags& flags, const std::string& text) {
  if (!flags.output.empty()) return WriteFile(flags.output, text);
  std::cout << text;
  return absl::OkStatus();
}

absl::Status Calculate(const PolyFlags& flags) {
  poly::CalculatorOptions options;
  options.max_operations = flags.max_operations;
  std::string text = flags.eval;
  if (!flags.file.empty()) {
    ASSIGN_OR_RETURN(text, ReadFile(flags.file));
    options.name = flags.file;
  }
  ASSIGN_OR_RETURN(const std::string printed, poly::Evaluate(text, options));
  if (!flags.json) return Print(flags, printed);
  Json values = Json::array();
  for (absl::string_view line : absl::StrSplit(printed, '\n', absl::SkipEmpty())) {
    values.push_back(std::string(line));
  }
  return Print(flags, Json{{"values", values}}.dump(2) + "\n");
}

absl::StatusOr<std::map<std::string, int64_t>> ParseArguments(
    const std::vector<std::string>& args) {
  std::map<std::string, int64_t> values;
  for (const std::string& arg : args) {
    const std::vector<std::string> parts = absl::StrSplit(arg, absl::MaxSplits('=', 1));
    int64_t value = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &value)) {
      return InvalidInput("--arg: expected NAME=INTEGER, found '", arg, "'");
    }
    if (!values.emplace(parts[0], value).second) {
      return InvalidInput("--arg ", arg, ": '", parts[0], "' has a value already");
    }
  }
  return values;
}

// "32x8" or "0,1".
absl::StatusOr<std::vector<int64_t>> ParseNumbers(const std::string& option,
                                                  const std::string& text, char separator) {
  std::vector<int64_t> numbers;
  for (absl::string_view part : absl::StrSplit(text, separator)) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number)) {
      return InvalidInput(option, ": expected integers with '", std::string(1, separator),
                          "' between them, found '", text, "'");
    }
    numbers.push_back(number);
  }
  return numbers;
}

Json CountJson(const poly::SymbolicCount& count) {
  Json json{{"symbolic", count.text}};
  if (count.value) json["value"] = *count.value;
  return json;
}

Json CountsJson(const std::vector<poly::PartCount>& parts) {
  Json list = Json::array();
  for (const poly::PartCount& part : parts) {
    Json statements = Json::array(), arrays = Json::array();
    for (const poly::StatementCount& s : part.statements) {
      statements.push_back(
          {{"name", s.name}, {"instances", CountJson(s.instances)}, {"tiles", CountJson(s.tiles)}});
    }
    for (const poly::ArrayCount& a : part.arrays) {
      Json array{{"name", a.name},
                 {"element_bytes", a.element_bytes},
                 {"reads", CountJson(a.reads)},
                 {"writes", CountJson(a.writes)},
                 {"footprint", CountJson(a.footprint)},
                 {"tile_volume", CountJson(a.tile_volume)}};
      if (const auto bytes = a.FootprintBytes()) array["footprint_bytes"] = *bytes;
      if (const auto bytes = a.VolumeBytes()) array["tile_volume_bytes"] = *bytes;
      if (const auto reuse = a.Reuse()) array["reuse"] = *reuse;
      arrays.push_back(std::move(array));
    }
    Json flows = Json::array();
    for (const poly::FlowCount& f : part.flows) {
      flows.push_back({{"producer", f.producer},
                       {"consumer", f.consumer},
                       {"needed", CountJson(f.needed)},
                       {"recomputed", CountJson(f.recomputed)}});
    }
    list.push_back(
        {{"name", part.name}, {"statements", statements}, {"arrays", arrays}, {"flows", flows}});
  }
  return list;
}

absl::StatusOr<ir::Function> LoadFunction(const PolyFlags& flags) {
  if (const kernels::Pipeline* pipeline = kernels::FindPipeline(flags.file)) {
    ASSIGN_OR_RETURN(const kernels::PipelineSize size,
                     kernels::ParsePipelineSize(*pipeline, flags.shape));
    return kernels::PipelineFunction(*pipeline, size.rows, size.cols);
  }
  if (!flags.shape.empty()) return InvalidInput("--shape is for pipelines");
  ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.file));
  ASSIGN_OR_RETURN(ir::Module module, ir::ParseModule(text, flags.file));
  std::string names;
  for (ir::Function& function : module.functions) {
    const bool is_only = flags.function.empty() && module.functions.size() == 1;
    if (is_only || function.name == flags.function) {
      RETURN_IF_ERROR(WithContext(flags.file, ir::Verify(function)));
      return std::move(function);
    }
    StrAppend(&names, names.empty() ? "" : ", ", function.name);
  }
  if (flags.function.empty()) {
    return InvalidInput(flags.file, ": expected --function with one of ", names, ", found none");
  }
  return InvalidInput(flags.file, ": expected --function with one of ", names, ", found '",
                      flags.function, "'");
}

// The text of --schedule, or of the file that it names.
absl::StatusOr<std::string> ScheduleText(const PolyFlags& flags) {
  if (flags.schedule.empty()) return "";
  if (!flags.strategy.empty()) return InvalidInput("expected --strategy or --schedule, found both");
  std::error_code error;
  if (!std::filesystem::is_regular_file(flags.schedule, error)) return flags.schedule;
  return ReadFile(flags.schedule);
}

// Errors: an option that nothing of what is shown reads.
absl::Status CheckShown(const PolyFlags& flags, const std::vector<std::string>& show) {
  std::string options = "--show --json -o";
  StrAppend(&options, kernels::FindPipeline(flags.file) != nullptr ? " --shape" : " --function");
  for (const std::string& what : show) {
    if (what == "card") options += " --arg --tile";
    if (what == "picture") options += " --arg --statement --loops";
    if (what != "domain" && what != "accesses" && what != "deps" && what != "context" &&
        what != "remarks" && what != "card") {
      options += " --tile --strategy --schedule";
    }
  }
  return command_line::CheckRead(*flags.command, flags.file,
                                 StrCat("--show=", absl::StrJoin(show, ",")), options);
}

absl::Status Show(const PolyFlags& flags) {
  std::vector<std::string> known = {"card", "picture", "trees"};
  for (std::string_view name : poly::Descriptions()) known.emplace_back(name);
  std::vector<std::string> show = flags.show;
  if (show.empty()) show = {"domain", "accesses", "deps"};
  for (const std::string& what : show) {
    if (std::find(known.begin(), known.end(), what) == known.end()) {
      return InvalidInput("--show: expected some of ", absl::StrJoin(known, ", "), ", found '",
                          what, "'");
    }
    if ((what == "picture" || what == "trees") && (show.size() > 1 || flags.json)) {
      return InvalidInput("--show=", what, " makes a file of its own: expected no other --show",
                          flags.json ? " and no --json" : "");
    }
  }
  RETURN_IF_ERROR(CheckShown(flags, show));
  ASSIGN_OR_RETURN(const ir::Function function, LoadFunction(flags));
  ASSIGN_OR_RETURN(const std::vector<int64_t> tile, ParseNumbers("--tile", flags.tile, 'x'));
  if (*std::min_element(tile.begin(), tile.end()) < 0) {
    return InvalidInput("--tile: expected sizes from 1, or 0, found '", flags.tile, "'");
  }
  poly::ScheduleOptions schedule{.strategy = flags.strategy.empty() ? "none" : flags.strategy};
  ASSIGN_OR_RETURN(schedule.text, ScheduleText(flags));
  if (!schedule.text.empty()) schedule.strategy = "text";
  schedule.tile.clear();
  if (tile != std::vector<int64_t>{0}) schedule.tile = {tile};
  if (flags.has_tile) schedule.group_tile = tile;
  poly::PictureOptions picture;
  ASSIGN_OR_RETURN(picture.arguments, ParseArguments(flags.args));
  picture.statement = flags.statement;
  picture.order = schedule;
  if (flags.strategy.empty() && schedule.text.empty()) picture.order.strategy = "smart";
  ASSIGN_OR_RETURN(const std::vector<int64_t> loops, ParseNumbers("--loops", flags.loops, ','));
  if (loops.size() != 2 || loops[0] == loops[1]) {
    return InvalidInput("--loops: expected two different loops, as 0,1, found '", flags.loops, "'");
  }
  picture.dimensions = {static_cast<int>(loops[0]), static_cast<int>(loops[1])};
  poly::ProgramCountOptions counts;
  counts.arguments = picture.arguments;
  counts.tile = tile;

  std::string text;
  Json json{{"function", function.name}};
  for (const std::string& what : show) {
    std::string shown;
    absl::Status status;
    auto take = [&](absl::StatusOr<std::string> found) {
      status = found.status();
      if (found.ok()) shown = *std::move(found);
    };
    if (what == "picture") {
      take(poly::InstancesSvg(function, picture));
    } else if (what == "trees") {
      take(poly::TreesHtml(function, picture.order));
    } else if (what == "card") {
      const auto parts = poly::CountProgram(function, counts);
      status = parts.status();
      if (parts.ok()) {
        shown = poly::ToString(*parts);
        json["card"] = CountsJson(*parts);
      }
    } else {
      take(poly::Describe(function, what, schedule));
    }
    RETURN_IF_ERROR(WithContext(StrCat(flags.file, ": function '", function.name, "'"), status));
    if (!json.contains(what)) json[what] = shown;
    if (show.size() > 1) StrAppend(&text, "# ", what, "\n");
    text += shown;
  }
  return Print(flags, flags.json ? json.dump(2) + "\n" : text);
}

absl::Status Poly(const PolyFlags& flags) {
  if (flags.file.empty() == flags.eval.empty()) {
    return InvalidInput("poly: expected a file or --eval EXPR, found ",
                        flags.file.empty() ? "neither" : "both");
  }
  RETURN_IF_ERROR(command_line::CheckWritable("-o", flags.output));
  if (flags.file.empty() || absl::EndsWith(flags.file, ".poly")) {
    RETURN_IF_ERROR(command_line::CheckRead(*flags.command, flags.file, "a calculation",
                                            "--eval --max-operations --json -o"));
    return Calculate(flags);
  }
  if (absl::EndsWith(flags.file, ".nir") || kernels::FindPipeline(flags.file) != nullptr)
    return Show(flags);
  return InvalidInput("poly: expected FILE.poly, FILE.nir or a pipeline, found '", flags.file, "'");
}

}  // namespace

void AddPolyCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<PolyFlags>();
  CLI::App* command =
      app.add_subcommand("poly",
                         "compute with integer sets and affine maps; show those of a function "
                         "(docs/polyhedral.md)");
  command->add_option("FILE", flags->file,
                      "a script FILE.poly, loop IR FILE.nir, or a pipeline (nao list ops)");
  command->add_option("--shape", flags->shape, "of a pipeline: 1024x768");
  command->add_option("--eval", flags->eval, "statements: 'card { S(i) : 0 <= i < n }'");
  command
      ->add_option(
          "--show", flags->show,
          "of FILE.nir: domain, accesses, deps, schedule, tree, ast, loops, report, context, "
          "remarks, card, picture (SVG), trees (HTML)")
      ->delimiter(',');
  command->add_option("--function", flags->function, "the function, where the file has several");
  command->add_option("--arg", flags->args, "a parameter's value for card and picture: n=10");
  CLI::Option* tile = command->add_option(
      "--tile", flags->tile,
      "iterations of a tile along the loops, for card and a new order: 32x8; 0: no tiles; auto "
      "chooses its own, and so do fuse and overlap if nothing is given");
  tile->capture_default_str();
  command->add_option(
      "--strategy", flags->strategy,
      StrCat("the order of schedule, tree, ast, loops, report, picture, trees: none, ",
             poly::StrategyNames(&poly::NamedStrategy::is_search),
             "; default: none, for pictures smart"));
  command->add_option("--statement", flags->statement, "for picture: the statement, as S1");
  command->add_option("--loops", flags->loops, "for picture: which loops go down and to the right")
      ->capture_default_str();
  command->add_option(
      "--schedule", flags->schedule,
      "instead of --strategy: an order '{ S0[i, j] -> [i + j, j] }' or a schedule tree, "
      "or a file that has it");
  command
      ->add_option("--max-operations", flags->max_operations,
                   "what isl may do for a statement of a script; 0: no limit")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object");
  command->add_option("-o", flags->output, "file to write instead of stdout");
  command->callback([&action, flags, tile, command] {
    flags->command = command;
    flags->has_tile = tile->count() > 0;
    action = [flags] { return Outcome{.status = Poly(*flags), .values_agree = true}; };
  });
}

}  // namespace polynao::driver
