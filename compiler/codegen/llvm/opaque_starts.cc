#include "compiler/codegen/llvm/opaque_starts.h"

#include <cstddef>
#include <utility>

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"

namespace polynao::codegen {
namespace {

using llvm::Instruction;
using llvm::Value;

// Half of the registers that x86 has for addresses.
constexpr size_t kMostStarts = 7;

bool ComputesAddress(const Instruction& i) {
  return llvm::isa<llvm::GetElementPtrInst>(i) ||
         (llvm::isa<llvm::BinaryOperator>(i) && i.getType()->isIntegerTy());
}

// Without vectors of addresses, of which LLVM knows no sums.
llvm::SmallSetVector<Instruction*, 16> StartsOf(const llvm::Loop& loop,
                                                llvm::ScalarEvolution& evolution) {
  llvm::SmallSetVector<Instruction*, 16> starts;
  for (llvm::BasicBlock* block : loop.blocks()) {
    for (const Instruction& i : *block) {
      if (!ComputesAddress(i)) continue;
      for (Value* operand : i.operands()) {
        auto* start = llvm::dyn_cast<Instruction>(operand);
        if (start != nullptr && !loop.contains(start) && ComputesAddress(*start) &&
            evolution.isSCEVable(start->getType())) {
          starts.insert(start);
        }
      }
    }
  }
  return starts;
}

// Starts that lie so far apart from the first one.
struct Group {
  Instruction* first;
  llvm::SmallVector<std::pair<Instruction*, const llvm::ConstantInt*>> others;
};

llvm::SmallVector<Group> GroupsOf(llvm::ArrayRef<Instruction*> starts,
                                  llvm::ScalarEvolution& evolution) {
  llvm::SmallVector<Group> groups;
  for (Instruction* start : starts) {
    bool is_there = false;
    for (Group& group : groups) {
      if (group.first->getType() != start->getType()) continue;
      const auto* apart = llvm::dyn_cast<llvm::SCEVConstant>(
          evolution.getMinusSCEV(evolution.getSCEV(start), evolution.getSCEV(group.first)));
      if (apart == nullptr) continue;
      group.others.emplace_back(start, apart->getValue());
      is_there = true;
      break;
    }
    if (!is_there) groups.push_back({start, {}});
  }
  return groups;
}

void HideStartsOf(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
  llvm::BasicBlock* before = loop.getLoopPreheader();
  if (before == nullptr) return;
  const llvm::SmallVector<Group> groups =
      GroupsOf(StartsOf(loop, evolution).getArrayRef(), evolution);
  if (groups.size() > kMostStarts) return;
  llvm::IRBuilder<> builder(before->getTerminator());
  const auto replace = [&](Instruction* start, Value* by) {
    start->replaceUsesWithIf(by, [&](const llvm::Use& use) {
      const auto* user = llvm::cast<Instruction>(use.getUser());
      return loop.contains(user) && ComputesAddress(*user);
    });
  };
  for (const Group& group : groups) {
    Value* hidden = builder.CreateFreeze(group.first, "start");
    replace(group.first, hidden);
    for (const auto& [start, apart] : group.others) {
      auto* constant = llvm::ConstantInt::get(builder.getContext(), apart->getValue());
      replace(start, start->getType()->isPointerTy() ? builder.CreatePtrAdd(hidden, constant)
                                                     : builder.CreateAdd(hidden, constant));
    }
  }
}

}  // namespace

void HideStarts(const llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution) {
  for (const llvm::Loop* loop : loops.getLoopsInPreorder()) {
    if (loop->isInnermost()) HideStartsOf(*loop, evolution);
  }
}

}  // namespace polynao::codegen
