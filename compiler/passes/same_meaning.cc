#include "compiler/passes/same_meaning.h"

#include <string>

#include "base/status.h"

namespace polynao {

ir::MeaningOptions MeaningOptionsFor(const Target& target) {
  ir::MeaningOptions options;
  if (target.instructions != nullptr) options.instructions = &target.instructions->intrinsics();
  return options;
}

absl::Status CheckSameMeaning(const ir::Function& before, const ir::Function& after,
                              const Target& target, uint64_t seed) {
  const std::string wrong = ir::CompareMeaning(before, after, seed, MeaningOptionsFor(target));
  return wrong.empty() ? absl::OkStatus() : absl::InternalError(wrong);
}

}  // namespace polynao
