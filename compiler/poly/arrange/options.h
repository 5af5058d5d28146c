// Options of a scheduler say what it is asked for, its report says what it has done.
#ifndef COMPILER_POLY_ARRANGE_OPTIONS_H_
#define COMPILER_POLY_ARRANGE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/machine.h"

namespace polynao::poly {

// Says whether tiles run row by row (fuse/slide.h): where the cost model finds that faster, nowhere, or wherever there
// are rows.
enum class Windows : uint8_t { kByCost, kNone, kAll };

// Says which products and convolutions have packed tiles (pack/pack_part.h): those for which the cost model finds that
// faster, none, or all.
enum class Packing : uint8_t { kByCost, kNone, kAll };

struct ScheduleOptions {
  // "none", "original", "min", "smart", "max" (schedule.h), "text": the order in `text`; or "auto": what the cost
  // model finds fastest on `machine`, tiles included (auto.h).
  std::string strategy = "auto";
  // isl's text of a schedule (ParseSchedule), for functions with one part.
  std::string text = {};
  // Other strategies' sizes of tiles, one vector per level, outermost first; the last size of a level counts for all
  // further loops. Empty: no tiles.
  std::vector<std::vector<int64_t>> tile = {{32}};
  // For "fuse" and "overlap", instead of what they choose: sizes of tiles along the dimensions of a group's last array,
  // outermost first (0, or none given: all elements), and whether stages join groups wherever that is legal.
  std::vector<int64_t> group_tile = {};
  bool join_all = false;
  Windows windows = Windows::kByCost;
  // For both: arrays that are cheaper to compute again than to store are computed where they are read.
  bool inline_stages = true;
  bool parallel = true;
  bool vectorize = true;
  // Sums of floats may change their order.
  bool reassociate = false;
  // Sums of products of narrower floats may be made by instructions that add several products (isa/processor), in the
  // order of these and with zeros in place of subnormal numbers.
  bool takes_dots = false;
  Packing packing = Packing::kByCost;  // of "auto", and of what "fuse" leaves to it
  // Buffer parameters whose elements are known before the run, as weights are, by name. Panels of theirs are packed by
  // a function of its own (ScheduleReport::before), and become parameters in their place.
  std::vector<std::string> constants = {};
  CpuMachine machine = {};
  // isl's count of its own steps for one part. A part that needs more stays as it is. 0: no limit.
  int64_t max_operations = 10'000'000;
  // For "fuse" and "overlap": the report has exact numbers of instances, and the bytes that the stages as written move.
  bool count = false;
};

// Instances of statements.
struct InstanceCount {
  int64_t run = 0;    // that run, as often as they do
  int64_t exist = 0;  // that the function has

  double Redundancy() const {
    return exist > 0 ? static_cast<double>(run) / static_cast<double>(exist) : 1;
  }
};

// Stages that "fuse" or "overlap" run together: in the tiles of the last one, or as by "auto".
struct GroupReport {
  std::string name = {};  // of the arrays that the last stage stores
  int stages = 0;
  bool is_tiled = false;
  // By the cost model.
  double redundancy = 1;    // instances that run, by those that exist
  double memory_bytes = 0;  // to and from memory
  int64_t local_bytes = 0;  // of a tile's local arrays
  // Exactly, if it was asked for; or why not.
  std::optional<InstanceCount> instances = {};
  std::string not_counted = {};
  std::string tree = {};  // the schedule tree, isl's text
};

// Panels of packed tiles that need nothing but constants, and the code that fills them.
struct PackedBefore {
  std::vector<ir::Buffer> panels;
  ir::Stmt code;
};

struct PartReport {
  std::string name = {};
  bool changed = false;
  std::string why_not = {};  // if it is not
  int statements = 0, bands = 0, tiled_bands = 0;
  int parallel_loops = 0, vector_loops = 0, wavefronts = 0;
  bool has_register_tiles = false;
  double cycles = 0;  // of "auto", by the cost model
  // CPU time of the steps, in milliseconds.
  double dependences_ms = 0, schedule_ms = 0, tile_ms = 0, generate_ms = 0, count_ms = 0;
  std::vector<std::string> lines =
      {};                 // one per band: sizes, parallel and vector loops, or why none
  std::string tree = {};  // the new schedule tree, isl's text; "" if the groups have trees
  std::vector<GroupReport> groups = {};  // in the order in which they run
  std::vector<PackedBefore> before = {};
  // Instances of the part, if counted. Those of groups are more or fewer where several have copies of a statement, each
  // of what it needs.
  std::optional<int64_t> exist = {};

  // Adds what was done to the loops of `one`, a part of this part, and what is packed before; neither its times nor its
  // tree.
  void AddLoops(const PartReport& one);
};

struct ScheduleReport {
  bool changed = false;
  // Packs panels of constants: its parameters are these, and the panels. Nothing if there are none.
  std::optional<ir::Function> before = {};
  std::vector<PartReport> parts;
  std::vector<std::string> remarks;  // what is not affine, where, and what that costs
  // Mistakes of the scheduler's own, in which the code stays as it is. Tests fail on them.
  std::vector<std::string> internal_errors;
  // If counts were asked for: stages of the function as it was, and the bytes that move to and from memory when each of
  // them runs alone. What counting took is CPU time, in milliseconds.
  int stages_before = 0;
  double bytes_before = 0, count_ms = 0;

  // Of "fuse" and "overlap", for tables: "stages", "groups", "redundancy" (exactly, all groups together; not there if
  // one was not counted), "redundancy_model", "bytes_before", "bytes_after", "tile_bytes" (local arrays of the largest
  // tile).
  std::vector<std::pair<std::string, double>> Figures() const;
  // "part 'f, for (i, 0, n) {': 2 statements, smart; 3 loops, tiles of 32 x 32 x 32, ..."
  std::string ToString() const;
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_OPTIONS_H_
