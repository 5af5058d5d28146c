#include "cases/program_file.h"

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "cases/case_json.h"
#include "compiler/ir/tensor.h"
#include "nlohmann/json.hpp"

namespace polynao::cases {

using Json = nlohmann::ordered_json;

std::string ProgramFileText(const ProgramFile& file) {
  nlohmann::json json;  // of sorted keys
  json["name"] = file.name;
  json["impl"] = file.impl;
  json["arguments"] = file.arguments;
  if (!file.scalars.empty()) json["scalars"] = file.scalars;
  if (file.operator_case) json["case"] = nlohmann::json(CaseJson(*file.operator_case));
  if (!file.error.empty()) json["error"] = file.error;
  return json.dump(2) + "\n";
}

absl::StatusOr<ProgramFile> ParseProgramFile(std::string_view text, std::string_view path) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return InvalidInput(path, ": expected the JSON object that nao compile --name writes");
  }
  ProgramFile file;
  for (const auto& [name, member] : {std::pair("name", &file.name), {"impl", &file.impl}}) {
    if (!json.contains(name) || !json[name].is_string()) {
      return InvalidInput(path, ": '", name, "': expected a text, found ",
                          json.contains(name) ? json[name].dump() : "none");
    }
    *member = json[name].get<std::string>();
  }
  if (json.contains("error")) {
    if (!json["error"].is_string()) return InvalidInput(path, ": 'error': expected a text");
    file.error = json["error"].get<std::string>();
  }
  for (const auto& [member, texts] :
       {std::pair("arguments", &file.arguments), {"scalars", &file.scalars}}) {
    const Json values = json.value(member, Json::object());
    if (!values.is_object()) return InvalidInput(path, ": '", member, "': expected an object");
    for (const auto& [name, value] : values.items()) {
      if (!value.is_string()) {
        return InvalidInput(path, ": '", member, "': '", name, "': expected a text, found ",
                            value.dump());
      }
      (*texts)[name] = value.get<std::string>();
    }
  }
  if (json.contains("case")) {
    ASSIGN_OR_RETURN(file.operator_case, ParseCaseJson(json["case"], StrCat(path, ": 'case'")));
  }
  return file;
}

std::map<std::string, std::string> ArgumentsOf(const BuiltProgram& built,
                                               absl::Span<const kernels::TensorSpec> specs) {
  std::map<std::string, std::string> arguments;
  size_t next = 0;
  for (size_t i = 0; i < built.program.params.size(); ++i) {
    const isa::ProgramParam& param = built.program.params[i];
    if (param.is_temporary) continue;
    if (!param.is_tensor) {
      arguments[param.name] = StrCat(built.scalars[i]);
      continue;
    }
    POLYNAO_CHECK(next < specs.size()) << built.program.name;
    const kernels::TensorSpec& spec = specs[next++];
    if (!param.any_shape) continue;
    // The host may give a tensor another shape.
    const bool is_prepared = next == built.prepared_input + 1 && built.prepare;
    arguments[param.name] = absl::StrJoin(
        is_prepared ? built.prepare(ir::Tensor(spec.type, spec.shape)).shape : spec.shape, "x");
  }
  return arguments;
}

}  // namespace polynao::cases
