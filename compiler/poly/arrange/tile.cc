#include "compiler/poly/arrange/tile.h"

#include <isl/aff.h>
#include <isl/constraint.h>
#include <isl/id.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/schedule_node.h>
#include <isl/set.h>
#include <isl/union_set.h>
#include <isl/val.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "compiler/poly/isl/tree.h"
#include "compiler/poly/order/band_info.h"

namespace polynao::poly {

namespace {

using Node = isl::schedule_node;

// A member that cannot run as a vector costs as much innermost as this many times its accesses.
constexpr double kNotVectorCost = 4;
// Iterations of a parallel loop that is cut in two, so that its inner part is a vector loop.
constexpr int64_t kVectorChunk = 1024;
// Full tiles in more convex pieces than this are not told apart: each piece is a copy of the code.
constexpr unsigned kMaxFullPieces = 2;

isl::multi_union_pw_aff ScheduleOf(const Node& node) {
  return node.as<isl::schedule_node_band>().partial_schedule();
}

int MembersOf(const Node& node) {
  return static_cast<int>(node.as<isl::schedule_node_band>().n_member());
}

isl::multi_val Sizes(const Node& band, const std::vector<int64_t>& sizes) {
  isl_space* space = isl_schedule_node_band_get_space(band.get());
  isl_multi_val* values = isl_multi_val_zero(space);
  isl_ctx* ctx = band.ctx().release();
  for (size_t i = 0; i < sizes.size(); ++i) {
    values = isl_multi_val_set_val(values, static_cast<int>(i), isl_val_int_from_si(ctx, sizes[i]));
  }
  return isl::manage(values);
}

// The band with another schedule in its place.
Node WithSchedule(const Node& band, const isl::multi_union_pw_aff& schedule) {
  Node node = isl::manage(isl_schedule_node_delete(band.copy()));
  node = node.insert_partial_schedule(schedule);
  return isl::manage(isl_schedule_node_band_set_permutable(node.copy(), 1));
}

// { S[i] -> [f(i), g(i)] } as a map from instances.
isl::map MapOf(const isl::multi_union_pw_aff& schedule, const isl::set& domain) {
  return isl::union_map::from(schedule).intersect_domain(domain.to_union_set()).as_map();
}

bool HasConstantMember(const isl::multi_union_pw_aff& schedule, const isl::set& domain) {
  for (unsigned i = 0; i < schedule.size(); ++i) {
    const isl::map one = isl::manage(
        isl_map_project_out(isl_map_project_out(MapOf(schedule, domain).release(), isl_dim_out,
                                                i + 1, schedule.size() - i - 1),
                            isl_dim_out, 0, i));
    if (one.range().is_singleton()) return true;
  }
  return false;
}

// The member of a band with these rows that is the original member `i`, or is it plus another one, whose
// place comes second (else -1).
std::pair<int, int> Solve(const std::vector<std::vector<int>>& rows, int i) {
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row] == std::vector<int>{i}) return {static_cast<int>(row), -1};
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].size() != 2 || rows[row][0] != i) continue;
    return {static_cast<int>(row), Solve(rows, rows[row][1]).first};
  }
  POLYNAO_UNREACHABLE(i);
}

// { [outer.., tile..] }: the tiles all of whose points are instances of each statement that moves along
// every member of the band. `outer` ends with the tile members, `points` are in units of iterations.
// `rows[i]` tells which tile members the member i of the innermost tile band is the sum of, by their
// places among `points`.
isl::set FullTiles(const Place& place, const isl::multi_union_pw_aff& outer,
                   const isl::multi_union_pw_aff& points, const std::vector<int64_t>& sizes,
                   const std::vector<std::vector<int>>& rows) {
  const unsigned before = outer.size() - points.size();
  std::optional<isl::set> tiles, partial;
  for (const isl::set& domain : SetsOf(place.domain)) {
    if (HasConstantMember(points, domain)) continue;
    // { [outer, tile] -> [point] } of the instances
    const isl::map image = MapOf(outer, domain).reverse().apply_range(MapOf(points, domain));
    isl_map* box = isl_map_universe(image.space().release());
    for (unsigned i = 0; i < points.size(); ++i) {
      // 0 <= point - size * tile < size
      isl_local_space* space = isl_local_space_from_space(isl_map_get_space(box));
      isl_constraint* low = isl_constraint_alloc_inequality(isl_local_space_copy(space));
      low = isl_constraint_set_coefficient_si(low, isl_dim_out, i, 1);
      // The tile is member `from`, less member `less` where that is a sum with another one.
      const auto [from, less] = Solve(rows, static_cast<int>(i));
      const int size = static_cast<int>(sizes[i]);
      low = isl_constraint_set_coefficient_si(low, isl_dim_in, before + from, -size);
      if (less >= 0) low = isl_constraint_set_coefficient_si(low, isl_dim_in, before + less, size);
      isl_constraint* high = isl_constraint_alloc_inequality(space);
      high = isl_constraint_set_coefficient_si(high, isl_dim_out, i, -1);
      high = isl_constraint_set_coefficient_si(high, isl_dim_in, before + from, size);
      if (less >= 0)
        high = isl_constraint_set_coefficient_si(high, isl_dim_in, before + less, -size);
      high = isl_constraint_set_constant_si(high, size - 1);
      box = isl_map_add_constraint(isl_map_add_constraint(box, low), high);
    }
    const isl::set mine = image.domain().coalesce();
    const isl::set missing =
        isl::manage(box).intersect_domain(mine).subtract(image).domain().coalesce();
    tiles = tiles ? tiles->unite(mine) : mine;
    partial = partial ? partial->unite(missing) : missing;
  }
  if (!tiles)
    return isl::set::empty(
        isl::manage(isl_space_set_alloc(place.domain.ctx().release(), 0, outer.size())));
  return tiles->subtract(*partial).coalesce();
}

class Tiler {
 public:
  Tiler(const Scop& scop, const Dependences& dependences, const TileOptions& options,
        TileReport* report)
      : scop_(scop), dependences_(dependences), options_(options), report_(*report) {}

  MarkedSchedule Run(const isl::schedule& schedule) {
    isl_options_set_tile_scale_tile_loops(scop_.isl->get(), 0);
    isl_options_set_tile_shift_point_loops(scop_.isl->get(), 0);
    result_.schedule = Visit(schedule.root(), {}).schedule();
    return std::move(result_);
  }

 private:
  struct Around {
    bool parallel = false;  // a parallel loop is around
    int loops = 0;
  };
  using Copies = std::optional<std::vector<ir::Buffer>>;  // nothing: not parallel

  // Each function that takes a node returns the one at the same place in the new tree.
  Node Visit(Node node, Around around) {
    if (!IsBand(node)) return VisitChildren(node, around);
    // The members of a band that is not permutable stay in order: one band for each.
    if (MembersOf(node) > 1 && !node.as<isl::schedule_node_band>().permutable()) {
      node = node.as<isl::schedule_node_band>().split(1);
    }
    return VisitBand(node, around);
  }

  Node VisitChildren(Node node, Around around) {
    for (unsigned i = 0; i < node.n_children(); ++i) {
      node = Visit(node.child(static_cast<int>(i)), around).parent();
    }
    return node;
  }

  std::vector<int64_t> SizesOf(size_t level, int members) const {
    std::vector<int64_t> sizes = options_.sizes[level];
    if (sizes.empty()) sizes = {1};
    while (static_cast<int>(sizes.size()) < members) sizes.push_back(sizes.back());
    sizes.resize(static_cast<size_t>(members));
    for (int64_t& size : sizes) size = std::max<int64_t>(size, 1);
    return sizes;
  }

  Node VisitBand(Node node, Around around) {
    ++report_.bands;
    const int n = MembersOf(node);
    const Place place = PlaceOf(node);
    const bool is_leaf = !HasBandBelow(node);
    std::string line = StrCat(n, n == 1 ? " loop" : " loops");
    bool is_vector = false;
    std::vector<ir::Buffer> vector_copies;
    if (is_leaf) {
      node = InnermostLast(node, place);
      is_vector = options_.vectorize && CanVectorize(node, place, &vector_copies);
    }
    const isl::multi_union_pw_aff members = ScheduleOf(node);
    std::vector<Copies> copies;
    for (int i = 0; i < n; ++i) {
      copies.push_back(CopiesForParallel(dependences_, place, members.at(i)));
    }
    const bool wants_parallel = options_.parallel && !around.parallel;
    // An outermost loop that is all there is: parallel chunks of a vector loop.
    const bool is_chunked = n == 1 && is_vector && wants_parallel && around.loops == 0 &&
                            copies[0] && !options_.sizes.empty();
    const size_t levels = is_chunked ? 1 : n > 1 ? options_.sizes.size() : 0;
    // Which loop is parallel. An inner vector loop alone would be too little work for each start.
    int parallel = -1;
    if (wants_parallel && !(levels == 0 && is_vector && n == 1 && around.loops > 0)) {
      for (int i = 0; i < n && parallel < 0; ++i) {
        if (copies[static_cast<size_t>(i)] && !(levels == 0 && is_vector && n > 1 && i == n - 1))
          parallel = i;
      }
    }
    const bool is_wave =
        wants_parallel && parallel < 0 && options_.wavefront && levels > 0 && n > 1;
    Around below{.parallel = around.parallel || parallel >= 0 || is_wave,
                 .loops = around.loops + n};
    // Members of the outer band, each a sum of members of this one.
    std::vector<std::vector<int>> rows;
    if (parallel >= 0) rows.push_back({parallel});
    for (int i = 0; i < n; ++i) {
      if (i != parallel) rows.push_back({i});
    }
    if (levels > 0) ++report_.tiled;
    const std::vector<int64_t> chunk = {kVectorChunk};
    Copies wave_copies;
    for (size_t level = 0; level < levels; ++level) {
      const std::vector<int64_t> sizes = is_chunked ? chunk : SizesOf(level, n);
      StrAppend(&line, level == 0 ? ", tiles of " : " of ", absl::StrJoin(sizes, " x "));
      node = node.as<isl::schedule_node_band>().tile(Sizes(node, sizes));
      if (level == 0) {
        if (is_wave) wave_copies = WaveCopies(node);
        if (wave_copies) rows[0].push_back(1);
        node = WithRows(node, rows);
      }
      node = node.child(0);
    }
    if (levels == 0) node = WithRows(node, rows);
    // The border of skewed tiles has so many pieces that their code would take seconds to make.
    if (levels > 0 && options_.full_tiles && is_leaf && !wave_copies) {
      if (levels > 1) {
        for (int i = 0; i < n; ++i) rows[static_cast<size_t>(i)] = {i};
      }
      node = Isolate(node, place, is_chunked ? chunk : SizesOf(levels - 1, n), rows);
    }
    node = is_leaf && is_vector ? MarkVector(node, vector_copies) : VisitChildren(node, below);
    if (is_leaf && is_vector) StrAppend(&line, ", innermost a vector");
    for (size_t level = 0; level < levels; ++level) node = node.parent();
    if (parallel >= 0) {
      const std::vector<ir::Buffer>& needed = *copies[static_cast<size_t>(parallel)];
      node = MarkMember(node, 0, needed);
      StrAppend(&line, levels > 0 ? ", tile loop " : ", loop ", parallel, " parallel");
      for (ir::Buffer buffer : needed) StrAppend(&line, " with its own ", buffer->name);
    } else if (wave_copies) {
      ++report_.wavefronts;
      StrAppend(&line, ", diagonals of tiles 0 and 1 parallel");
      node = MarkMember(node, 1, *wave_copies);
    } else if (wants_parallel) {
      StrAppend(&line, ", none parallel: each carries a dependence");
    }
    report_.lines.push_back(line);
    return node;
  }

  // The band with the member last that costs least innermost.
  Node InnermostLast(const Node& node, const Place& place) {
    const isl::multi_union_pw_aff members = ScheduleOf(node);
    const int n = static_cast<int>(members.size());
    if (n == 1) return node;
    int best = -1;
    double best_cost = 0;
    for (int i = 0; i < n; ++i) {
      Place inside = place;
      for (int other = 0; other < n; ++other) {
        if (other != i) inside = Inside(inside, members.at(other));
      }
      double cost = InnermostCost(scop_, place, members, i);
      if (!CopiesForParallel(dependences_, inside, members.at(i))) {
        cost = (cost + 1) * kNotVectorCost;
      }
      if (best < 0 || cost <= best_cost) {
        best = i;
        best_cost = cost;
      }
    }
    if (best == n - 1) return node;
    std::vector<int> order;
    for (int i = 0; i < n; ++i) {
      if (i != best) order.push_back(i);
    }
    order.push_back(best);
    return WithSchedule(node, Members(members, order));
  }

  // Whether the last member carries nothing when it is innermost. Copies of single elements are free.
  bool CanVectorize(const Node& node, const Place& place, std::vector<ir::Buffer>* copies) {
    const isl::multi_union_pw_aff members = ScheduleOf(node);
    const int n = static_cast<int>(members.size());
    Place inside = place;
    for (int i = 0; i + 1 < n; ++i) inside = Inside(inside, members.at(i));
    const Copies needed = CopiesForParallel(dependences_, inside, members.at(n - 1));
    if (!needed) return false;
    for (ir::Buffer buffer : *needed) {
      if (!buffer->extents.empty()) return false;
    }
    *copies = *needed;
    return true;
  }

  // isl may spread the statements of one iteration over several loops; not of this member, then.
  static Node Whole(const Node& node, int member) {
    return node.as<isl::schedule_node_band>().member_set_ast_loop_atomic(member);
  }

  // `depth`: of the loop.
  std::string NewMark(LoopMark mark, int depth, const char* what) {
    mark.depth = depth;
    const std::string name = StrCat(what, result_.marks.size());
    result_.marks[name] = mark;
    return name;
  }

  // Below the band, so that whatever loop is the innermost one becomes the vector.
  Node MarkVector(const Node& node, const std::vector<ir::Buffer>& copies) {
    ++report_.vector_loops;
    const LoopMark mark{.kind = ir::ForKind::kVectorize, .depth = 0, .copies = copies};
    const int depth = DepthOf(node) + MembersOf(node) - 1;
    return (copies.empty() ? node : Whole(node, MembersOf(node) - 1))
        .child(0)
        .insert_mark(NewMark(mark, depth, "vector"))
        .parent();
  }

  // The band under a mark that makes the loop of one member parallel. The band stays whole: alone, the first
  // member of diagonal tiles is a sum of floors, and isl needs a second for the bounds of its loop.
  Node MarkMember(Node node, int member, const std::vector<ir::Buffer>& copies) {
    ++report_.parallel_loops;
    if (!copies.empty()) node = Whole(node, member);
    const LoopMark mark{.kind = ir::ForKind::kParallel, .depth = 0, .copies = copies};
    return node.insert_mark(NewMark(mark, DepthOf(node) + member, "parallel"));
  }

  // The band over sums of its members. Must come before anything below is isolated.
  static Node WithRows(const Node& node, const std::vector<std::vector<int>>& rows) {
    const isl::multi_union_pw_aff members = ScheduleOf(node);
    std::optional<isl::multi_union_pw_aff> result;
    bool same = true;
    for (size_t i = 0; i < rows.size(); ++i) {
      same &= rows[i] == std::vector<int>{static_cast<int>(i)};
      isl::union_pw_aff sum = members.at(rows[i][0]);
      for (size_t k = 1; k < rows[i].size(); ++k) sum = sum.add(members.at(rows[i][k]));
      const isl::multi_union_pw_aff one =
          isl::manage(isl_multi_union_pw_aff_from_union_pw_aff(sum.copy()));
      result = result ? result->flat_range_product(one) : one;
    }
    return same ? node : WithSchedule(node, *result);
  }

  // Tiles [a, b, ..] in the order [a + b, b, ..]: every dependence goes forwards in both, so of two tiles
  // with one sum neither waits for the other. Nothing if they do.
  Copies WaveCopies(const Node& tiles) {
    const isl::multi_union_pw_aff members = ScheduleOf(tiles);
    const isl::union_pw_aff sum = members.at(0).add(members.at(1));
    return CopiesForParallel(dependences_, Inside(PlaceOf(tiles), sum), members.at(1));
  }

  // Point loops of full tiles apart from the others.
  Node Isolate(const Node& node, const Place& place, const std::vector<int64_t>& sizes,
               const std::vector<std::vector<int>>& rows) {
    const isl::multi_union_pw_aff points = ScheduleOf(node);
    const isl::multi_union_pw_aff outer = node.prefix_schedule_multi_union_pw_aff();
    const isl::set full = FullTiles(place, outer, points, sizes, rows);
    if (full.is_empty() || full.n_basic_set() > kMaxFullPieces) return node;
    isl_map* isolate = isl_map_from_domain(full.copy());
    isolate = isl_map_add_dims(isolate, isl_dim_out, points.size());
    isl_set* option = isl_set_set_tuple_name(isl_map_wrap(isolate), "isolate");
    return node.as<isl::schedule_node_band>().set_ast_build_options(
        isl::manage(isl_union_set_from_set(option)));
  }

  const Scop& scop_;
  const Dependences& dependences_;
  const TileOptions& options_;
  TileReport& report_;
  MarkedSchedule result_;
};

}  // namespace

MarkedSchedule Tile(const Scop& scop, const Dependences& dependences, const isl::schedule& schedule,
                    const TileOptions& options, TileReport* report) {
  return Tiler(scop, dependences, options, report).Run(schedule);
}

}  // namespace polynao::poly
