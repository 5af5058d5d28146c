// Comparing two functions by running them: the check of --check and of the tests.
#ifndef COMPILER_PASSES_SAME_MEANING_H_
#define COMPILER_PASSES_SAME_MEANING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/counts.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// Interprets both functions on the same random arguments (scalars are 1 to 5) and compares all
// buffers bit for bit. Parameters may differ in shape if their element counts agree. OK, or what
// differs; a function that stops with an error must do so in both.
absl::Status CheckSameMeaning(const ir::Function& before, const ir::Function& after,
                              const Target& target, uint64_t seed);

// What the interpreter executes when it runs `function` on such arguments; an error if the function
// stops with one, or takes more than `max_iterations` iterations of loops.
absl::StatusOr<ir::Counts> CountOperations(const ir::Function& function, const Target& target,
                                           uint64_t seed, int64_t max_iterations);

}  // namespace polynao

#endif  // COMPILER_PASSES_SAME_MEANING_H_
