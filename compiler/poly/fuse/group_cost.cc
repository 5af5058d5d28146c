#include "compiler/poly/fuse/group_cost.h"

#include <isl/ilp.h>
#include <isl/set.h>
#include <isl/val.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/arrange/loop_model.h"
#include "compiler/poly/arrange/slots.h"
#include "compiler/poly/fuse/part_variants.h"
#include "compiler/poly/fuse/stage_loops.h"

namespace polynao::poly {

namespace {

using ir::Expr;
using ir::ExprKind;
using Range = arith::ConstRange;

// Cycles of a start of an innermost loop, and of what is left over behind its last vector.
constexpr double kRowCycles = 20;
// What the code generator stores past the caches (codegen/llvm/compile.h): bytes of a row and of an array, at least;
// and the bytes that the two ends of such a row, which do not fill a line, take as long as.
constexpr double kStreamedRow = 4096, kStreamedArray = 4 << 20, kRowEndBytes = 3072;
// Until the processor has seen that a run of elements of memory goes on, and fetches ahead.
constexpr double kRunCycles = 20;
// To find out what a row needs of a producer beyond the rows before, and rows for which that is done at least.
constexpr double kStageCycles = 10;
constexpr int64_t kFewestRows = 8;
// Tiles may take so much longer than the fastest ones to compute less twice. The model is not more exact.
constexpr double kIdleSlack = 1.1;
// Terms of a sum that is no contraction.
constexpr double kMostTerms = 64;
// Parts of the caches that a tile's own arrays may fill: what it reads and stores goes through both.
constexpr double kNearFill = 0.8, kFill = 0.3;
// Longer dimensions than that of colours or channels are no planes that take turns.
constexpr double kMostPlanes = 8;
// Part of the second cache from which what has been touched is not driven out.
constexpr double kKept = 0.5;

int64_t Number(isl_val* value, int64_t otherwise) {
  const isl::val owner = isl::manage(value);
  return owner.is_int() ? isl_val_get_num_si(value) : otherwise;
}

bool Loads(Expr index) {
  bool loads = false;
  ir::ForEachExpr(index, [&](Expr e) { loads |= e.Is(ExprKind::kLoad); });
  return loads;
}

bool Stores(const Stage& stage, ir::Buffer buffer) {
  return std::find(stage.buffers.begin(), stage.buffers.end(), buffer) != stage.buffers.end();
}

int64_t CountOf(const Range& range) { return range.IsEmpty() ? 0 : range.Count().value_or(1); }

}  // namespace

GroupModel::GroupModel(const Scop& scop, const std::vector<Stage>& stages,
                       const CpuMachine& machine)
    : stages_(stages), machine_(machine), assumed_(AssumeParameters(scop, machine.assumed_extent)) {
  for (const Stage& stage : stages) {
    StageInfo info;
    for (const Statement* s : stage.statements) {
      StatementInfo one{.statement = s, .uses = UsesOf(*s), .domain = {}};
      const isl::set sized = AtAssumed(s->domain, scop, assumed_);
      for (size_t i = 0; i < s->iterators.size(); ++i) {
        const int position = static_cast<int>(i);
        one.domain[s->iterators[i]] = {
            .min = Number(isl_set_dim_min_val(sized.copy(), position), 0),
            .max = Number(isl_set_dim_max_val(sized.copy(), position), machine.assumed_extent)};
      }
      one.arithmetic = ArithmeticCycles(*s);
      one.vector = VectorIterator(stage, *s);
      for (Use& use : one.uses) {
        use.whole = WholeOf(use.buffer);
        // Where the innermost loop jumps through an array, or the data say where, each lane has an access of its own.
        const auto jumps = [&](Expr index) {
          return Loads(index) || ir::UsesVar(index, s->iterators[At(one.vector)]);
        };
        use.is_along = one.vector >= 0 && !use.indices.empty() &&
                       std::none_of(use.indices.begin(), use.indices.end() - 1, jumps) &&
                       !Loads(use.indices.back());
        if (use.is_write) use.slopes = SlopesOf(use, one.domain);
      }
      info.statements.push_back(std::move(one));
    }
    if (HaveOneRank(stage.buffers)) {
      info.tileable = TileableDimensions(stage);
      info.box.assign(stage.buffers[0]->extents.size(), Range::Nothing());
      for (const StatementInfo& s : info.statements) {
        for (const Use& use : s.uses) {
          for (size_t d = 0; use.is_write && d < info.box.size(); ++d) {
            info.box[d] =
                Union(info.box[d], Intersect(RangeOf(use.indices[d], s.domain), use.whole[d]));
          }
        }
      }
      for (const Range& range : info.box) info.extents.push_back(CountOf(range));
    }
    info_.push_back(std::move(info));
  }
}

std::vector<GroupModel::Use> GroupModel::UsesOf(const Statement& statement) {
  std::vector<Use> uses;
  absl::flat_hash_set<ir::Buffer> own;  // allocated in the statement: no stage's
  ir::ForEachStmt(statement.code, [&](ir::Stmt s) {
    if (s.Is(ir::StmtKind::kAllocate)) own.insert(s.buffer());
    if (!s.Is(ir::StmtKind::kStore) || own.contains(s.buffer())) return true;
    uses.push_back({.buffer = s.buffer(), .indices = {}, .is_write = true});
    uses.back().indices.assign(s.indices().begin(), s.indices().end());
    return true;
  });
  ir::ForEachExprIn(statement.code, [&](Expr e) {
    if (!e.Is(ExprKind::kLoad) || own.contains(ir::Buffer(e.buffer()))) return;
    uses.push_back({.buffer = ir::Buffer(e.buffer()), .indices = {}, .is_write = false});
    uses.back().indices.assign(e.operands().begin(), e.operands().end());
  });
  return uses;
}

// The array that it stores first.
ir::Buffer GroupModel::StoredBy(const StatementInfo& info) {
  const auto it =
      std::find_if(info.uses.begin(), info.uses.end(), [](const Use& use) { return use.is_write; });
  POLYNAO_CHECK(it != info.uses.end()) << info.statement->name;
  return it->buffer;
}

bool GroupModel::CanBeRoot(int stage) const {
  const std::vector<bool>& tileable = info_[At(stage)].tileable;
  return std::find(tileable.begin(), tileable.end(), true) != tileable.end();
}

bool GroupModel::IsContraction(int stage) const {
  for (const StatementInfo& s : info_[At(stage)].statements) {
    if (!s.statement->reduction) continue;
    double terms = 1;
    bool is_affine = true;
    for (const auto& [var, range] : s.domain) {
      bool moves = false;
      for (const Use& use : s.uses) {
        for (Expr index : use.indices) {
          is_affine &= !Loads(index);
          moves |= use.is_write && ir::UsesVar(index, var);
        }
      }
      if (!moves) terms *= static_cast<double>(CountOf(range));
    }
    if (is_affine && terms > kMostTerms) return true;
  }
  return false;
}

GroupModel::Box GroupModel::WholeOf(ir::Buffer buffer) const {
  Box box;
  for (Expr extent : buffer->extents) {
    const Range range = RangeOf(extent, {});
    box.push_back({.min = 0, .max = std::max<int64_t>(range.max - 1, 0)});
  }
  return box;
}

// The values that an index may have. Other variables than iterators have the value that is assumed of parameters.
Range GroupModel::RangeOf(Expr e, const Ranges& ranges) const {
  const auto of = [&](size_t i) { return RangeOf(e.operand(i), ranges); };
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return Range::Point(e.int_value());
    case ExprKind::kVar: {
      const auto it = ranges.find(e);
      if (it != ranges.end()) return it->second;
      const auto assumed = assumed_.variables.find(e);
      return Range::Point(assumed != assumed_.variables.end() ? assumed->second
                                                              : machine_.assumed_extent);
    }
    case ExprKind::kCast:
      return ir::IsInt(e.operand(0).type()) ? of(0) : Range::Everything();
    case ExprKind::kAdd:
      return of(0) + of(1);
    case ExprKind::kSub:
      return of(0) - of(1);
    case ExprKind::kMul:
      return of(0) * of(1);
    case ExprKind::kDiv:
      return FloorDiv(of(0), of(1));
    case ExprKind::kMod:
      return FloorMod(of(0), of(1));
    case ExprKind::kMin:
      return Min(of(0), of(1));
    case ExprKind::kMax:
      return Max(of(0), of(1));
    case ExprKind::kSelect:
      return Union(of(1), of(2));
    default:
      return Range::Everything();
  }
}

// An index a i + b j + c: the iterator i has the step a, and its base is b j + c for any j.
std::vector<GroupModel::Slope> GroupModel::SlopesOf(const Use& store, const Ranges& domain) const {
  std::vector<Slope> slopes;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    const Expr index = store.indices[d];
    for (const auto& [var, range] : domain) {
      if (!ir::UsesVar(index, var)) continue;
      // The index with this iterator at a value, and the others anywhere, or at their first ones.
      const auto at = [&](int64_t value, bool anywhere) {
        Ranges ranges = domain;
        if (!anywhere) {
          for (auto& [other, its] : ranges) its = Range::Point(its.min);
        }
        ranges[var] = Range::Point(value);
        return RangeOf(index, ranges);
      };
      const Range first = at(range.min, false), second = at(range.min + 1, false),
                  last = at(range.max, false), base = at(range.min, true);
      if (!first.IsPoint() || !second.IsPoint() || !last.IsPoint() || !base.IsBounded()) continue;
      const int64_t step = second.min - first.min;
      if (step <= 0 || last.min != first.min + step * (range.max - range.min)) continue;
      slopes.push_back({.iterator = var, .d = d, .step = step, .base = base});
    }
  }
  return slopes;
}

// The iterations that store elements of the box `stored`: an index bounds an iterator by what is left of it for any of
// the others.
GroupModel::Ranges GroupModel::IteratorsFor(const StatementInfo& info, ir::Buffer buffer,
                                            const Box& stored) const {
  Ranges result = info.domain;
  for (const Use& use : info.uses) {
    if (!use.is_write || use.buffer != buffer) continue;
    for (const Slope& slope : use.slopes) {
      const int64_t first = info.domain.at(slope.iterator).min, step = slope.step;
      const Range wanted = {
          .min = first + ir::FloorDiv(stored[slope.d].min - slope.base.max + step - 1, step),
          .max = first + ir::FloorDiv(stored[slope.d].max - slope.base.min, step)};
      result[slope.iterator] = Intersect(result[slope.iterator], wanted);
    }
  }
  return result;
}

double GroupModel::BytesOf(ir::Buffer buffer, const Box& box) {
  auto bytes = static_cast<double>(ir::ByteSize(buffer->type));
  for (const Range& range : box) bytes *= static_cast<double>(CountOf(range));
  return bytes;
}

GroupModel::Tally GroupModel::TileOf(const Group& group) const {
  Tally tile = WholeTileOf(group);
  if (group.slides < 0) return tile;
  Group row = group;
  row.sizes[At(group.slides)] = 1;
  Tally window = WholeTileOf(row);
  tile.local_bytes = window.local_bytes;
  tile.locals = std::move(window.locals);
  return tile;
}

GroupModel::Tally GroupModel::WholeTileOf(const Group& group) const {
  Tally tally;
  // What is needed of the group's own arrays, and read of others.
  absl::flat_hash_map<ir::Buffer, Box> needed;
  absl::flat_hash_map<ir::Buffer, Box>& read = tally.read;
  const auto is_own = [&](ir::Buffer buffer) {
    return std::any_of(group.producers.begin(), group.producers.end(),
                       [&](int p) { return stages_[At(p)].buffers[0] == buffer; });
  };
  const auto visit = [&](int number, const Box& stored, bool is_root) {
    for (const StatementInfo& s : info_[At(number)].statements) {
      const ir::Buffer buffer = StoredBy(s);
      const Ranges iterators = IteratorsFor(s, buffer, stored);
      double instances = 1, inner = 1;
      for (size_t i = 0; i < s.statement->iterators.size(); ++i) {
        const auto count = static_cast<double>(CountOf(iterators.at(s.statement->iterators[i])));
        instances *= count;
        if (static_cast<int>(i) == s.vector) inner = count;
      }
      if (instances == 0) continue;
      tally.instances += instances;
      tally.work.push_back(
          {.stage = number, .statement = &s, .iterators = iterators, .instances = instances});
      const double lanes = s.vector < 0
                               ? 1
                               : std::max(1.0, static_cast<double>(machine_.vector_bytes) /
                                                   static_cast<double>(ir::ByteSize(buffer->type)));
      double each = s.arithmetic * machine_.rates.operation / lanes;
      for (const Use& use : s.uses) {
        each += machine_.rates.load / (use.is_along ? lanes : 1);
        if (use.buffer == buffer && !is_root) continue;
        Box box;
        for (size_t d = 0; d < use.whole.size(); ++d)
          box.push_back(Intersect(RangeOf(use.indices[d], iterators), use.whole[d]));
        auto& boxes = is_own(use.buffer) ? needed : read;
        const auto [it, is_new] = boxes.emplace(use.buffer, box);
        for (size_t d = 0; !is_new && d < box.size(); ++d)
          it->second[d] = Union(it->second[d], box[d]);
      }
      tally.cycles += instances * each + instances / inner * (kRowCycles + lanes / 2 * each);
    }
  };
  const StageInfo& root = info_[At(group.root)];
  Box tile = root.box;
  for (size_t d = 0; d < tile.size(); ++d) {
    const int64_t size = group.sizes[d];
    if (size == 0 || size >= root.extents[d]) continue;
    const int64_t middle = root.extents[d] / size / 2;
    tile[d] = {.min = tile[d].min + middle * size, .max = tile[d].min + (middle + 1) * size - 1};
  }
  visit(group.root, tile, true);
  for (size_t i = group.producers.size(); i-- > 0;) {
    const int producer = group.producers[i];
    const ir::Buffer buffer = stages_[At(producer)].buffers[0];
    const auto it = needed.find(buffer);
    if (it == needed.end()) continue;
    const Box stored = it->second;
    tally.locals[producer] = static_cast<int64_t>(BytesOf(buffer, stored));
    tally.local_bytes += tally.locals[producer];
    visit(producer, stored, false);
  }
  tally.passed_bytes = tally.local_bytes;
  tally.local_bytes = PackedBytes(group, tally);
  return tally;
}

// Of its own arrays, where those that do not live at the same time share memory. Windows stay from row to row; a tile
// that slides has all of them at once.
int64_t GroupModel::PackedBytes(const Group& group, const Tally& tile) const {
  std::vector<LivingArray> arrays;
  for (const int p : group.producers) {
    const auto it = tile.locals.find(p);
    if (it == tile.locals.end()) continue;
    const ir::Type type = stages_[At(p)].buffers[0]->type;
    const Lifetime life = LifetimeOf(stages_, group, p);
    arrays.push_back({.type = type,
                      .elements = it->second / ir::ByteSize(type),
                      .first = group.slides >= 0 ? 0 : life.first,
                      .last = group.slides >= 0 ? INT_MAX : life.last});
  }
  return AssignSlots(arrays).bytes();
}

double GroupModel::BytesAlone(int stage) const {
  struct Touched {
    Box box;
    bool is_stored = false;
  };
  absl::flat_hash_map<ir::Buffer, Touched> touched;
  for (const StatementInfo& s : info_[At(stage)].statements) {
    for (const Use& use : s.uses) {
      Touched& all = touched[use.buffer];
      const Box whole = WholeOf(use.buffer);
      if (all.box.empty()) all.box.assign(whole.size(), Range::Nothing());
      for (size_t d = 0; d < whole.size(); ++d)
        all.box[d] = Union(all.box[d], Intersect(RangeOf(use.indices[d], s.domain), whole[d]));
      all.is_stored |= use.is_write;
    }
  }
  double bytes = 0;
  // A line that is stored is read before.
  for (const auto& [buffer, all] : touched)
    bytes += BytesOf(buffer, all.box) * (all.is_stored ? 2 : 1);
  return bytes;
}

// Tiles along dimension d; the last one is smaller.
double GroupModel::TilesAlong(const Group& group, size_t d) const {
  if (group.sizes[d] == 0) return 1;
  return static_cast<double>(Extents(group.root)[d]) / static_cast<double>(group.sizes[d]);
}

double GroupModel::TilesOf(const Group& group) const {
  double tiles = 1;
  for (size_t d = 0; d < group.sizes.size(); ++d) tiles *= TilesAlong(group, d);
  return tiles;
}

GroupModel::Traffic GroupModel::TrafficOf(const Group& group, const Tally& tile) const {
  double tiles = TilesOf(group);
  // Taken along one dimension after the other, as long as what is touched meanwhile stays in the cache.
  Group swept = group;
  Tally sweep = tile;
  for (size_t d = group.sizes.size(); d-- > 0;) {
    if (group.sizes[d] == 0) continue;
    auto bytes = static_cast<double>(tile.local_bytes);
    for (const auto& [buffer, box] : sweep.read) bytes += BytesOf(buffer, box);
    if (bytes > kKept * static_cast<double>(machine_.cache_bytes)) break;
    tiles /= TilesAlong(group, d);
    swept.sizes[d] = 0;
    sweep = TileOf(swept);
  }
  Traffic traffic;
  for (const auto& [buffer, box] : sweep.read) {
    const double bytes = BytesOf(buffer, box) * tiles;
    // What the tile that was taken does not read, others along the way do.
    const auto in_tile = tile.read.find(buffer);
    const Box& of_tile = in_tile == tile.read.end() ? box : in_tile->second;
    const double row = BytesOf(buffer, of_tile.empty() ? Box{} : Box{of_tile.back()});
    // A line that is stored is read before, but for long rows of large results.
    const bool is_past = row >= kStreamedRow && BytesOf(buffer, WholeOf(buffer)) >= kStreamedArray;
    traffic.bytes += bytes;
    if (Stores(stages_[At(group.root)], buffer))
      traffic.bytes += is_past ? bytes / row * kRowEndBytes : bytes;
    if (row > 0) traffic.runs += bytes / row;
  }
  return traffic;
}

double GroupModel::RedundancyOf(const Group& group, const Tally& tile) const {
  double instances = 0;
  const auto add = [&](int number) {
    for (const StatementInfo& s : info_[At(number)].statements) {
      if (IsSecondForm(*s.statement)) continue;
      double count = 1;
      for (const auto& [var, range] : s.domain) count *= static_cast<double>(CountOf(range));
      instances += count;
    }
  };
  add(group.root);
  for (const int p : group.producers) add(p);
  return instances > 0 ? tile.instances * TilesOf(group) / instances : 1;
}

// Where rows of several planes, as of colours, take turns, what a tile reads again of what the tile before it in its
// plane has read comes from the second cache, as far as the nearest one holds what a plane needs but not all of them.
double GroupModel::PlaneCycles(const Group& group) const {
  const size_t n = group.sizes.size();
  const auto is_tiled = [&](int d) { return d >= 0 && group.sizes[At(d)] > 0; };
  int along = group.slides;
  if (along < 0 && is_tiled(group.parallel)) along = group.parallel;
  for (int d = static_cast<int>(n) - 2; along < 0 && d >= 0; --d) {
    if (is_tiled(d)) along = d;
  }
  if (along < 0 || along + 1 == static_cast<int>(n)) return 0;
  Group all = group, one = group;
  if (group.slides >= 0) all.sizes[At(along)] = one.sizes[At(along)] = 1;
  double turns = 1;  // of tiles
  bool has_planes = false;
  for (size_t d = 0; d + 1 < n; ++d) {
    const int64_t extent = Extents(group.root)[d];
    if (d == At(along) || extent > kMostPlanes || extent < 2) continue;
    // Other dimensions' tiles are inside of those that are parallel.
    const bool is_inside = group.slides < 0 && (group.parallel == along || d > At(along));
    if (group.sizes[d] == 0) {
      one.sizes[d] = 1;
      has_planes = true;
    } else if (is_inside) {
      turns *= TilesAlong(group, d);
    }
  }
  if (!has_planes && turns == 1) return 0;
  const auto read_of = [&](const Group& tiles) {
    double bytes = 0;
    for (const auto& [buffer, box] : WholeTileOf(tiles).read) bytes += BytesOf(buffer, box);
    return bytes;
  };
  const auto touched_of = [&](const Group& tiles) {
    return read_of(tiles) + static_cast<double>(TileOf(tiles).local_bytes);
  };
  Group two = all;
  two.sizes[At(along)] *= 2;
  const double again = std::max(0.0, 2 * read_of(all) - read_of(two));
  const auto missing = [&](double bytes) {
    return std::max(0.0, 1 - static_cast<double>(machine_.near_bytes) / bytes);
  };
  return TilesOf(all) * again / machine_.rates.next_bytes *
         std::max(0.0, missing(touched_of(all) * turns) - missing(touched_of(one)));
}

GroupCost GroupModel::CostOf(const Group& group) const {
  const Tally tile = TileOf(group);
  GroupCost cost;
  const double tiles = TilesOf(group);
  const double parallel = group.parallel < 0 ? 1 : TilesAlong(group, At(group.parallel));
  cost.redundancy = RedundancyOf(group, tile);
  cost.local_bytes = tile.local_bytes;
  const Traffic traffic = TrafficOf(group, tile);
  cost.memory_bytes = traffic.bytes;
  double cycles = tile.cycles * tiles + traffic.runs * kRunCycles + PlaneCycles(group);
  if (group.slides >= 0) {
    cycles += kStageCycles * static_cast<double>(group.producers.size()) * tiles /
              TilesAlong(group, At(group.slides)) *
              static_cast<double>(Extents(group.root)[At(group.slides)]);
  }
  const auto local = static_cast<double>(tile.local_bytes);
  const auto passed = static_cast<double>(tile.passed_bytes);
  double memory = cost.memory_bytes * machine_.cycles_per_byte;
  if (local > kFill * static_cast<double>(machine_.cache_bytes)) {
    memory += 2 * passed * tiles * machine_.cycles_per_byte;
  } else if (local > kNearFill * static_cast<double>(machine_.near_bytes)) {
    cycles += 2 * passed * tiles / machine_.rates.next_bytes;
  }
  const double cores =
      std::max(1.0, std::min(std::ceil(parallel), static_cast<double>(machine_.cores)));
  // All wait for the one that has a tile more.
  const double balance = std::ceil(std::ceil(parallel) / cores) * cores / parallel;
  cost.cycles = cycles / cores * balance + memory / std::min(cores, machine_.memory_scaling);
  if (cores > 1) cost.cycles += machine_.parallel_cycles;
  return cost;
}

// The first dimension with tiles for all cores is parallel, or else the one with most.
void GroupModel::ChooseParallel(Group& group) const {
  double most = 0;
  group.parallel = -1;
  for (size_t d = 0; d < group.sizes.size() && machine_.cores > 1; ++d) {
    if (group.sizes[d] == 0) continue;
    const double tiles =
        static_cast<double>(Extents(group.root)[d]) / static_cast<double>(group.sizes[d]);
    if (most >= 4 * machine_.cores || tiles <= most) continue;
    most = tiles;
    group.parallel = static_cast<int>(d);
  }
}

GroupCost GroupModel::Slide(Group& group, GroupCost cost, Windows windows) const {
  const StageInfo& root = info_[At(group.root)];
  if (!HasRows() || windows == Windows::kNone || group.producers.empty()) return cost;
  bool must = windows == Windows::kAll;
  for (size_t d = 0; d + 1 < root.extents.size(); ++d) {
    const int64_t rows = group.sizes[d] == 0 ? root.extents[d] : group.sizes[d];
    if (!root.tileable[d] || rows < (must ? 2 : kFewestRows)) continue;
    Group slid = group;
    slid.slides = static_cast<int>(d);
    const GroupCost with = CostOf(slid);
    if (with.cycles >= cost.cycles && !must) continue;
    must = false;
    cost = with;
    group = slid;
  }
  return cost;
}

GroupCost GroupModel::CostWith(Group& group, const std::vector<int64_t>& sizes) const {
  const StageInfo& root = info_[At(group.root)];
  group.slides = -1;
  group.sizes.assign(root.extents.size(), 0);
  for (size_t d = 0; d < root.extents.size() && d < sizes.size(); ++d) {
    // Of an extent that is not known, a tile is a part.
    const bool is_part = sizes[d] < root.extents[d] || !HasConstantExtent(group.root, d);
    if (root.tileable[d] && is_part) group.sizes[d] = sizes[d];
  }
  ChooseParallel(group);
  return CostOf(group);
}

bool GroupModel::HasConstantExtent(int stage, size_t d) const {
  const std::vector<ir::Buffer>& buffers = stages_[At(stage)].buffers;
  return std::all_of(buffers.begin(), buffers.end(),
                     [&](ir::Buffer buffer) { return buffer->extents[d].Is(ExprKind::kIntImm); });
}

std::vector<std::vector<int64_t>> GroupModel::Candidates(int stage) const {
  const StageInfo& root = info_[At(stage)];
  const size_t n = root.extents.size();
  std::vector<std::vector<int64_t>> candidates(n);
  for (size_t d = 0; d < n; ++d) {
    if (!root.tileable[d] || HasConstantExtent(stage, d)) candidates[d].push_back(0);
    if (!root.tileable[d]) continue;
    const bool is_last = d + 1 == n;
    for (int64_t size = is_last ? 64 : 1; size <= (is_last ? 1024 : 256) && size < root.extents[d];
         size *= 2) {
      // Small dimensions, as of colours, are taken one by one or whole.
      if (root.extents[d] <= 8 && size > 1) break;
      candidates[d].push_back(size);
    }
    if (candidates[d].empty()) candidates[d].push_back(0);
  }
  return candidates;
}

GroupCost GroupModel::Best(Group& group, Windows windows) const {
  const std::vector<std::vector<int64_t>> candidates = Candidates(group.root);
  const size_t n = candidates.size();
  GroupCost best;
  best.cycles = std::numeric_limits<double>::infinity();
  std::vector<std::pair<Group, GroupCost>> tried;
  Group at = group;
  at.sizes.assign(n, 0);
  std::vector<size_t> choice(n, 0);
  while (true) {
    bool has_tiles = false;
    for (size_t d = 0; d < n; ++d) {
      at.sizes[d] = candidates[d][choice[d]];
      has_tiles |= at.sizes[d] > 0;
    }
    if (has_tiles) {
      at.slides = -1;
      ChooseParallel(at);
      const GroupCost cost = Slide(at, CostOf(at), windows);
      if (cost.cycles < best.cycles) {
        best = cost;
        group = at;
      }
      tried.emplace_back(at, cost);
    }
    size_t d = 0;
    while (d < n && ++choice[d] == candidates[d].size()) choice[d++] = 0;
    if (d == n) break;
  }
  if (!best.is_idle) return best;
  const double most = best.cycles * kIdleSlack;
  for (const auto& [with, cost] : tried) {
    if (cost.cycles > most || cost.redundancy >= best.redundancy) continue;
    best = cost;
    group = with;
  }
  return best;
}

}  // namespace polynao::poly
