// The plan holds what preprocess decides; it does so by the facts of another file
// (preprocess_facts.h). Planning takes three steps: channel_layout.h, guard_removal.h, and buffers
// made to fit both; preprocess_rewrite.h then carries the plan out.
#ifndef COMPILER_PASSES_PREPROCESS_PLAN_H_
#define COMPILER_PASSES_PREPROCESS_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/guarded_nest.h"
#include "compiler/passes/instruction_layout.h"
#include "compiler/passes/preprocess_facts.h"

namespace polynao {

// Says what became of one nest or buffer, for --stats.
struct PreprocessDecision {
  std::string place;  // the first line of the nest, or the buffer
  std::string what;   // what was done; or "kept: " and why nothing was
};

enum class GuardFate : uint8_t {
  kStays,     // around the store, as an if
  kDropped,   // the nest computes elements that nobody uses
  kInBounds,  // expressed by the bounds of NestPlan::loops
  kOutside,   // an if around the nest (GuardBounds::outside)
};

struct NestPlan {
  std::vector<GuardFate> guards;   // by guard
  std::vector<GuardedLoop> loops;  // the nest's loops with their new bounds
  // The loop over channels; 0 channels: it stays as it is.
  int64_t channels = 0;  // its extent after ALIGN
  ir::Var channel;       // null: the nest has none and gets a new one
  int64_t lanes = 0;     // not 0: it is split into `groups` of so many
  int64_t groups = 0;
  ir::Expr weights_base;  // the group of the nest's first channel, in the weights
};

struct BufferPlan {
  std::vector<int64_t> extents;  // after ALIGN and COM; empty if not constant
  // LAYOUT: the dimension of output channels, and the elements of a filter with what pads them. The first `leading`
  // dimensions count sets of filters, which follow one another in the banks.
  std::optional<WeightLayout> layout;
  size_t channel_dimension = 0;
  size_t leading = 0;
  int64_t pitch = 0;
  ir::Buffer replacement;  // null: the buffer stays as it is
};

struct PreprocessPlan {
  std::vector<NestPlan> nests;                          // by nest of PreprocessFacts
  absl::flat_hash_map<ir::Buffer, BufferPlan> buffers;  // has the keys of PreprocessFacts::buffers

  // Null if `buffer` is not allocated on chip.
  BufferPlan* Find(ir::Buffer buffer);
  // Null if `buffer` stays as it is.
  const BufferPlan* Replaced(ir::Buffer buffer) const;
};

// The plan that keeps all layouts and all guards of computing nests, and puts the guards of copies
// and padding into the bounds of their loops.
PreprocessPlan MakePlan(const PreprocessFacts& facts);

// Makes the buffers that the plan asks for. Call it when all extents and layouts are decided.
void MakeBuffers(const PreprocessFacts& facts, PreprocessPlan& plan, ir::Context& context);

// Adds what was decided about `nest` to `decisions`, if there are any to be collected.
void ReportDecision(std::vector<PreprocessDecision>* decisions, ir::Stmt nest, std::string what);

}  // namespace polynao

#endif  // COMPILER_PASSES_PREPROCESS_PLAN_H_
