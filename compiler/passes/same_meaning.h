// ir::CompareMeaning with the instructions of a target.
#ifndef COMPILER_PASSES_SAME_MEANING_H_
#define COMPILER_PASSES_SAME_MEANING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/target/target.h"

namespace polynao {

// Options with the instructions that `target` has.
ir::MeaningOptions MeaningOptionsFor(const Target& target);

// OK, or what ir::CompareMeaning says.
absl::Status CheckSameMeaning(const ir::Function& before, const ir::Function& after,
                              const Target& target, uint64_t seed);

}  // namespace polynao

#endif  // COMPILER_PASSES_SAME_MEANING_H_
