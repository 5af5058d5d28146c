#include "compiler/codegen/llvm/module_parts.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace polynao::codegen {
namespace {

// Below this part of all instructions beside the largest part nothing is gained.
constexpr double kLeastBeside = 0.1;

bool IsBody(const llvm::Function& function) {
  if (function.isDeclaration() || !function.hasLocalLinkage() || function.use_empty()) return false;
  return std::none_of(function.use_begin(), function.use_end(), [](const llvm::Use& use) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(use.getUser());
    return call != nullptr && call->isCallee(&use);
  });
}

}  // namespace

std::vector<std::unique_ptr<llvm::Module>> ModuleParts(llvm::Module& module, size_t most,
                                                       int64_t few_instructions) {
  std::vector<std::pair<int64_t, llvm::Function*>> bodies;  // and minus their instructions
  int64_t others = 0, all = 0;
  for (llvm::Function& function : module) {
    const auto count = static_cast<int64_t>(function.getInstructionCount());
    all += count;
    if (IsBody(function)) {
      bodies.emplace_back(-count, &function);
    } else {
      others += count;
    }
  }
  if (bodies.empty() || all < few_instructions) return {};
  // The longest first.
  std::ranges::sort(bodies, {},
                    [](const auto& body) { return std::pair(body.first, body.second->getName()); });
  std::vector<int64_t> instructions(std::min(most, bodies.size() + 1));
  if (instructions.size() < 2) return {};
  instructions[0] = others;
  absl::flat_hash_map<const llvm::GlobalValue*, size_t> part_of;
  for (const auto& [minus_count, body] : bodies) {
    const auto least = std::min_element(instructions.begin(), instructions.end());
    part_of[body] = static_cast<size_t>(least - instructions.begin());
    *least -= minus_count;
  }
  const int64_t largest = *std::max_element(instructions.begin(), instructions.end());
  if (static_cast<double>(all - largest) < kLeastBeside * static_cast<double>(all)) return {};
  for (const auto& [minus_count, body] : bodies)
    body->setLinkage(llvm::GlobalValue::ExternalLinkage);
  std::vector<std::unique_ptr<llvm::Module>> parts;
  for (size_t part = 0; part < instructions.size(); ++part) {
    llvm::ValueToValueMapTy values;
    parts.push_back(llvm::CloneModule(module, values, [&](const llvm::GlobalValue* value) {
      const auto it = part_of.find(value);
      if (it != part_of.end()) return it->second == part;
      return part == 0 || value->hasLocalLinkage();
    }));
  }
  return parts;
}

}  // namespace polynao::codegen
