// Runs two forms of one function on the same random arguments and compares what they stored: a
// function before and after passes, or the interpreter and compiled code.
//
//   EXPECT_EQ(CompareMeaning(before, after, /*seed=*/7), "");
#ifndef COMPILER_IR_SAME_MEANING_H_
#define COMPILER_IR_SAME_MEANING_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/counts.h"
#include "compiler/ir/instruction_meanings.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"

namespace polynao::ir {

// Runs a function, interpreted or compiled, on arguments.
using Runner = std::function<absl::Status(absl::Span<const Argument>)>;

// Runs `function`, in the interpreter and by `run`, on copies of `arguments`. What is wrong: one of
// them stops, or the first element that differs (FirstDifference of compare.h) with its buffer, and
// the function's text. "" if nothing is.
std::string Disagreement(const Function& function, const RandomArguments& arguments,
                         const Runner& run, int64_t max_ulps = 0);

struct MeaningOptions {
  const Intrinsics* instructions = nullptr;
  RandomArgumentOptions arguments = {.small_integers = false};
  // How many lists of arguments are tried while integer scalars are free, and how many complete runs
  // are enough.
  int draws = 24;
  int runs = 4;
  // A function that stops proves nothing, so a comparison in which `before` stops is a failure, for
  // scalars of the caller's choice and for functions without scalars. Set by tests of functions that
  // stop on some arguments.
  bool may_stop = false;
  // Set to whether `before` stopped on all arguments, if not null.
  bool* stopped = nullptr;
};

// Interprets both functions on the same random arguments: "" if `after` is well-formed and stores
// what `before` stores, else what differs, with the buffer's name and the element. Parameters may
// differ in shape if their element counts agree.
//
// A function with integer scalars runs on several draws of them, small ones and extremes; draws on
// which `before` stops, or loops for too long, do not count, but one must not. Where `before` runs to
// its end, `after` must.
std::string CompareMeaning(const Function& before, const Function& after, uint64_t seed,
                           const MeaningOptions& options = {});

// Counts what the interpreter executes on the first such arguments that `function` runs to its end on, in at most
// `max_iterations` iterations of loops; an error if there are none.
absl::StatusOr<Counts> CountOperations(const Function& function, uint64_t seed,
                                       const MeaningOptions& options, int64_t max_iterations);

}  // namespace polynao::ir

#endif  // COMPILER_IR_SAME_MEANING_H_
