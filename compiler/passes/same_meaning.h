// Comparing two functions by running them: the check of --check and of the tests.
#ifndef COMPILER_PASSES_SAME_MEANING_H_
#define COMPILER_PASSES_SAME_MEANING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// Interprets both functions on the same random arguments (scalars are 1 to 5) and compares all
// buffers bit for bit. Parameters may differ in shape if their element counts agree. OK, or what
// differs; a function that stops with an error must do so in both.
absl::Status CheckSameMeaning(const ir::Function& before, const ir::Function& after,
                              const Target& target, uint64_t seed);

}  // namespace polynao

#endif  // COMPILER_PASSES_SAME_MEANING_H_
