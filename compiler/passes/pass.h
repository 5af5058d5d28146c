// A pass as the registry and the command line see it: name, typed options, and how to run it.
#ifndef COMPILER_PASSES_PASS_H_
#define COMPILER_PASSES_PASS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// A pass may use this besides the function and its options. A pass appends lines to `stats`, and to
// `explanations` why parts of the program stay as they are (several lines each), only if they are not
// null.
struct PassEnvironment {
  const Target& target;
  std::vector<std::string>* stats = nullptr;
  std::vector<std::string>* explanations = nullptr;
};

// Values by the names of options; a bool is 0 or 1.
using OptionValues = std::map<std::string, int64_t>;

struct PassOption {
  enum class Type : uint8_t { kBool, kInt };
  std::string_view name;
  Type type;
  int64_t least, most;   // of the value, both included
  std::string_view doc;  // half a line
  std::function<int64_t(const Target&)> default_value;
  // Of the values 0, 1, ...; empty: the values are numbers.
  std::vector<std::string_view> names = {};
};

struct PassInfo {
  std::string_view name;
  std::string_view doc;  // one line
  std::vector<PassOption> options = {};
  // Empty if a run on its own result changes nothing; else the reason why it changes something. (A
  // test runs every pass twice.)
  std::string_view second_run_changes = "";
  // Returns whether the function changed; if not, its body is the same node as before. Values are in
  // their ranges; options without a value have their default.
  std::function<absl::StatusOr<bool>(ir::Function&, const PassEnvironment&, const OptionValues&)>
      run = {};
};

// An option that is a field of the pass's own struct of options.
template <typename Options>
struct OptionField {
  std::string_view name;
  std::variant<bool Options::*, int Options::*> field;
  int64_t least, most;
  std::string_view doc;
  std::vector<std::string_view> names = {};
};

template <typename Options>
OptionField<Options> BoolOption(std::string_view name, bool Options::* field,
                                std::string_view doc) {
  return {name, field, 0, 1, doc};
}

template <typename Options>
OptionField<Options> IntOption(std::string_view name, int Options::* field, int64_t least,
                               int64_t most, std::string_view doc) {
  return {name, field, least, most, doc};
}

// An int that has names for its values 0, 1, ...
template <typename Options>
OptionField<Options> ChoiceOption(std::string_view name, int Options::* field,
                                  std::vector<std::string_view> names, std::string_view doc) {
  const int64_t most = static_cast<int64_t>(names.size()) - 1;
  return {name, field, 0, most, doc, std::move(names)};
}

// Gives `info` options that fill a struct, and a `run` that gets the struct. Defaults are those that
// `defaults` returns.
template <typename Options>
PassInfo WithOptions(PassInfo info, std::vector<OptionField<Options>> fields,
                     Options (*defaults)(const Target&),
                     absl::StatusOr<bool> (*run)(ir::Function&, const PassEnvironment&,
                                                 Options options)) {
  for (const OptionField<Options>& row : fields) {
    const bool is_bool = std::holds_alternative<bool Options::*>(row.field);
    info.options.push_back(
        {.name = row.name,
         .type = is_bool ? PassOption::Type::kBool : PassOption::Type::kInt,
         .least = row.least,
         .most = row.most,
         .doc = row.doc,
         .default_value =
             [field = row.field, defaults](const Target& target) {
               const Options options = defaults(target);
               return std::visit([&](auto f) { return static_cast<int64_t>(options.*f); }, field);
             },
         .names = row.names});
  }
  info.run = [fields = std::move(fields), defaults, run](ir::Function& function,
                                                         const PassEnvironment& environment,
                                                         const OptionValues& values) {
    Options options = defaults(environment.target);
    for (const OptionField<Options>& row : fields) {
      const auto it = values.find(std::string(row.name));
      if (it == values.end()) continue;
      if (const auto* flag = std::get_if<bool Options::*>(&row.field)) {
        options.*(*flag) = it->second != 0;
      } else {
        options.*std::get<int Options::*>(row.field) = static_cast<int>(it->second);
      }
    }
    return run(function, environment, std::move(options));
  };
  return info;
}

// The same defaults for every target: those of the struct.
template <typename Options>
Options FixedDefaults(const Target&) {
  return Options();
}

}  // namespace polynao

#endif  // COMPILER_PASSES_PASS_H_
