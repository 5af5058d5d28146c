#include "compiler/ir/aliases.h"

#include <variant>

namespace polynao::ir {

Aliases::Aliases(const Function& function) {
  for (const Attribute& attribute : function.attributes) {
    if (attribute.key != "may_alias") continue;
    const size_t group = group_count_++;
    for (const AttributeValue& value : attribute.values) {
      const auto* name = std::get_if<std::string>(&value);
      if (name == nullptr) continue;
      const auto [it, added] = group_of_name_.try_emplace(*name, group);
      if (added) continue;
      const size_t joined = it->second;
      for (auto& [other, other_group] : group_of_name_) {
        if (other_group == joined) other_group = group;
      }
    }
  }
}

std::optional<size_t> Aliases::Group(Buffer buffer) const {
  const auto it = group_of_name_.find(buffer->name);
  return it == group_of_name_.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace polynao::ir
