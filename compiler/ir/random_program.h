// Random well-formed functions, for tests that compare two ways of running or rewriting a program.
//
//   for (uint64_t seed = 0; seed < 200; ++seed) {
//     const Function f = RandomProgram(seed);
//     RandomArguments arguments(f, seed);
//     ... run f and its rewritten twin on copies of `arguments`, compare, print the seed ...
//   }
#ifndef COMPILER_IR_RANDOM_PROGRAM_H_
#define COMPILER_IR_RANDOM_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"

namespace polynao::ir {

struct RandomProgramOptions {
  // About how many stores a program has, and how deep loops, ifs and lets nest around them.
  int stores = 6;
  int depth = 4;
  // How deep expressions nest.
  int expression_depth = 3;
  // Types other than i1, i32, i64 and f32.
  bool all_types = true;
  // u16, u32 and u64, if all_types; shifts by values, or by constants outside of 0 to the width.
  bool wide_unsigned = true;
  bool variable_shifts = true;
  // Intrinsics whose last bits depend on a mathematical library: exp, log, tanh, pow, ...
  bool inexact_intrinsics = true;
  // Loops other than serial ones. Iterations of parallel and thread loops are independent.
  bool loop_kinds = true;
  // A few indices, divisors and reads may stop the program. Otherwise a program never stops, for
  // any contents of its buffers and any integer scalars from 0 to kMaxRandomSize.
  bool may_stop = false;
  // Bounds the product of the extents of nested loops.
  int64_t max_iterations = 4000;
  // How often, in percent, an expression is one that stands elsewhere already: with the loads,
  // guarded divisions and conditions that it has.
  int repetition = 0;
  // Calls of extern functions of every kind (random_externs.h).
  bool extern_calls = false;
  // Also loop variables of every integer type that a loop may have, some up to the ends of their type; scalar
  // parameters of these types in bounds (EdgeScalars); allocations of extents that depend on loop variables and
  // scalars; quotients by -1.
  bool edges = false;
};

// A function named "random", that ir::Verify accepts; the same for the same seed and options. It
// has every kind of statement and expression but calls of instructions, over buffers of 0 to 3
// dimensions with extents from 0 up, some of them parameters.
Function RandomProgram(uint64_t seed, const RandomProgramOptions& options = {});

// Values of the scalar parameters that programs with `edges` have, from the ends of their types most often, by
// name, for RandomArgumentOptions::scalars. By these values too the program does not stop:
//   count0 ..  at most kMaxRandomSize, down to the type's least value
//   start0 ..  from there 16 more values fit the type
//   any0 ..    any value
// The same for the same seed; other parameters have none.
std::map<std::string, Argument> EdgeScalars(const Function& function, uint64_t seed);

// A smaller function that `fails` still holds for: statements are dropped, loops, branches and lets
// replaced by what is inside them, expressions by constants or by one of their operands, for as
// long as that makes `function` smaller. `fails` is called with well-formed functions only, at most
// `max_calls` times; it must hold for `function`.
Function ShrinkProgram(const Function& function, const std::function<bool(const Function&)>& fails,
                       int max_calls = 2000);

}  // namespace polynao::ir

#endif  // COMPILER_IR_RANDOM_PROGRAM_H_
