// Sizes of packed tiles, and what they cost, from the machine's caches and registers.
//
// The model is that of Low, Igual, Smith and Quintana-Orti, "Analytical modeling is enough for high-performance BLIS",
// ACM TOMS 43(2), 2016:
//
//   registers   a tile of `rows` x `vectors` vectors of sums, one vector of each column operand, one of a row operand
//   L1          twice as much as fits of the column panel of a tile, `depth` x `vectors`; row panels stream through
//   L2          a block of row panels stays, `most_own` of them; column panels stream through
//   memory      the column panels of all sums, up to `most_common` at a time
//
// Where cores have columns of their own, and share the rows, the two sides of the last two lines change places.
#ifndef COMPILER_POLY_PACK_PACK_PLAN_H_
#define COMPILER_POLY_PACK_PACK_PLAN_H_

#include <cstdint>

#include "compiler/poly/arrange/machine.h"

namespace polynao::poly {

// Iterations along each side of a contraction; of parameters, what is assumed.
struct PackShape {
  double batch = 1;
  double rows = 1;
  double outer_columns = 1;   // of all loops over columns but the last
  double columns = 1;         // of the last one
  double outer_sums = 1;      // of all loops over sums but the last
  double sums = 1;            // of the last one
  int64_t bytes = 4;          // of a sum
  int64_t operand_bytes = 4;  // of an element of a panel
  int64_t group = 1;          // of sums that lie side by side in a column panel
  int64_t step = 1;           // sums that one instruction adds
  int64_t registers = 0;      // that hold tiles of sums and operands; 0: vectors do
  int64_t unit_rows = 1;      // of a tile register
  double unit_cycles = 0;     // from one instruction to the next; 0: it is a multiply-add of floats
  // Of rows that tiles may read without panels: iterations of the last loop of rows, else 0; elements of an image of
  // all; and elements from a row to the next one, in memory (0: as they are they are no operands) and in the image.
  int64_t last_rows = 0;
  double image_elements = 0;
  int64_t memory_step = 0, image_step = 0;
  bool is_known = false;        // the numbers of rows and columns are no guesses
  bool rows_in_place = false;   // there are no row panels
  bool columns_before = false;  // column panels are there before the run
  bool has_columns = true;      // there is a column operand
};

// Where tiles find their rows: copied for them, where the program has them, or in an array with padding (row_image.h).
enum class RowPlace { kPanels, kMemory, kImage };

struct PackPlan {
  int64_t lanes = 1;      // of a vector
  int64_t rows = 1;       // of a tile
  int64_t vectors = 1;    // of a row of a tile
  int64_t group = 1;      // of sums, which follow each other in a column panel
  int64_t step = 1;       // sums that one instruction adds
  int64_t unit_rows = 1;  // that one instruction has
  // A block of sums: of the last loop at most `run` iterations, for each of `runs` iterations of those around.
  int64_t run = 1, runs = 1;
  // All cores read the same column panels, and each has row panels of its own; or the other way round.
  bool shares_columns = true;
  // Each core has iterations of the batch of its own, and shares nothing with the others.
  bool shares_batch = false;
  // Of tiles in registers of their own: the nearest cache keeps a block of row panels, and column panels stream through
  // it from the next one. Else a column panel stays there.
  bool keeps_rows = false;
  // Without panels, a tile has rows of one iteration of the outer loops.
  RowPlace row_place = RowPlace::kPanels;
  int64_t image_pad = 0;    // elements behind each row of memory in the image
  int64_t most_own = 1;     // panels of a core's own in a block
  int64_t most_common = 1;  // panels, of all sums, that are packed for all cores at a time
  double cycles = 0;        // of all, on the machine's cores
  double least_cycles =
      0;  // of multiply-adds alone, if all lanes were of use: what loops without panels take at least

  int64_t width() const { return lanes * vectors; }
  int64_t depth() const { return run * runs; }
  // With whole steps.
  int64_t padded_depth() const { return (depth() + step - 1) / step * step; }
};

// The plan for vectors that are multiplied element by element: all sums at a time, and enough chains of additions.
PackPlan MakeLanewisePlan(const PackShape& shape, const CpuMachine& machine);

// The fastest plan. `cycles` has what arithmetic, loads, packing, elements in memory and starts of threads take. Cores
// share each iteration of the batch, or the iterations of all of it (12 products of 128 x 64 and 64 x 128).
PackPlan MakePackPlan(const PackShape& shape, const CpuMachine& machine);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_PACK_PACK_PLAN_H_
