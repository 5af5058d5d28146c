// Programs for the tests of passes: parsing, running before and after, and random affine programs.
#ifndef COMPILER_PASSES_AFFINE_PROGRAM_FOR_TEST_H_
#define COMPILER_PASSES_AFFINE_PROGRAM_FOR_TEST_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/ir/ir.h"

namespace polynao {

// The one function of `text`, which must be well-formed.
ir::Function ParseProgram(std::string_view text);

// ir::CompareMeaning with `scalar` for every scalar parameter. `may_stop`: `before` may stop with it.
std::string CompareMeaning(const ir::Function& before, const ir::Function& after,
                           int64_t scalar = 0, bool may_stop = false);

// ir::CompareMeaning on one list of arguments, with integer scalars as random programs want them.
// `stops`, if not null, is set to whether `before` stops; if it is null, `before` must not.
std::string CompareMeaningOnRandomArguments(const ir::Function& before, const ir::Function& after,
                                            uint64_t seed, bool* stops = nullptr);

struct RandomAffineProgramOptions {
  int max_depth = 4;   // of loops and ifs
  int max_extent = 7;  // of loops
  bool thread_loops = true;
  bool symbolic = false;  // bounds may use the scalar parameter n
  // Most loops end at n, an outer variable, or a min or max of one, and half of the ifs have a second
  // if inside about the same sum.
  bool symbolic_bounds = false;
  bool pragmas = true;
  // Besides A and B: a square P, a row of floats S, and cells that live for an iteration. Most indices are a
  // loop variable and a constant; sums, copies between buffers and lets of loads; two or three nests.
  bool several_buffers = false;
  // With several buffers: an allocation takes the place of P in all of this. A nest in front copies the middle of P to
  // it, and one behind copies that back, so that its border is undefined, and a few programs load it and stop.
  bool workspace = false;
};

// A function over affine loop nests: loops of all kinds (triangular ones too), guards in ifs and
// selects,
// && || min max / %, lets. Loads and stores stay in bounds. Equal seeds, equal programs.
ir::Function RandomAffineProgram(uint64_t seed, const RandomAffineProgramOptions& options = {});

}  // namespace polynao

#endif  // COMPILER_PASSES_AFFINE_PROGRAM_FOR_TEST_H_
