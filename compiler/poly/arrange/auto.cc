#include "compiler/poly/arrange/auto.h"

#include <isl/aff.h>
#include <isl/id.h>
#include <isl/schedule_node.h>
#include <isl/set.h>
#include <isl/union_set.h>
#include <isl/val.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "compiler/poly/arrange/plan.h"
#include "compiler/poly/isl/tree.h"
#include "compiler/poly/model/assumed.h"
#include "compiler/poly/order/band_info.h"

namespace polynao::poly {

namespace {

using Node = isl::schedule_node;

class Arranger {
 public:
  Arranger(const Scop& scop, const Dependences& dependences, const CpuMachine& machine)
      : scop_(scop),
        dependences_(dependences),
        machine_(machine),
        assumed_(AssumeParameters(scop, machine.assumed_extent)) {}

  AutoSchedule Run(const isl::schedule& schedule) {
    result_.marked.schedule = schedule;  // isl's objects must not be null when they are copied
    result_.marked.schedule = Visit(schedule.root(), false).schedule();
    return std::move(result_);
  }

 private:
  // Each function that takes a node returns the one at the same place in the new tree.
  Node Visit(Node node, bool is_parallel) {
    if (!IsBand(node)) return VisitChildren(node, is_parallel);
    isl::schedule_node_band band = node.as<isl::schedule_node_band>();
    if (band.n_member() > 1 && !band.permutable()) node = band.split(1);
    ++result_.report.bands;
    return HasBandBelow(node) ? VisitOuter(node, is_parallel) : VisitLeaf(node, is_parallel);
  }

  Node VisitChildren(Node node, bool is_parallel) {
    for (unsigned i = 0; i < node.n_children(); ++i) {
      node = Visit(node.child(static_cast<int>(i)), is_parallel).parent();
    }
    return node;
  }

  // Loops around others. Of those that can be parallel the first one comes first, or goes to the innermost bands,
  // whichever is cheaper.
  //
  //   for (j) { for (i) { x[j] += .. A[i, j] }  for (i) { B[i, j] .. x[j] } }      walks through columns
  //   for (i) for (j) { x[j] += .. A[i, j] }  for (i) for (j) { B[i, j] .. x[j] }  walks through rows
  Node VisitOuter(const Node& node, bool is_parallel) {
    const isl::multi_union_pw_aff band = node.as<isl::schedule_node_band>().partial_schedule();
    const int n = static_cast<int>(band.size());
    const Place place = PlaceOf(node);
    std::optional<std::vector<ir::Buffer>> copies;
    int first = -1;
    for (int m = 0; m < n && first < 0; ++m) {
      copies = CopiesForParallel(dependences_, place, band.at(m));
      if (copies) first = m;
    }
    const bool can_sink = copies && copies->empty();
    const bool makes_parallel = first >= 0 && !is_parallel && machine_.cores > 1;
    if (first < 0) first = 0;
    Node below = isl::manage(isl_schedule_node_delete(node.copy()));
    if (n > 1) {
      std::vector<int> rest;
      for (int m = 0; m < n; ++m) {
        if (m != first) rest.push_back(m);
      }
      below = Permutable(below.insert_partial_schedule(Members(band, rest)));
    }
    const AutoSchedule before = result_;
    const Buffers warm_before = std::exchange(warm_, {});
    Line(StrCat("a loop around others",
                makes_parallel ? StrCat(", parallel", OwnText(*copies)) : ""));
    Node outside = WholeLoop(below, band.at(first));
    if (makes_parallel) outside = MarkParallel(outside, 0, *copies).child(0);
    outside = Visit(outside.child(0), is_parallel || makes_parallel).parent();
    if (makes_parallel) outside = outside.parent();
    warm_.clear();
    if (!can_sink) return outside;
    AutoSchedule kept = std::exchange(result_, before);
    warm_ = warm_before;
    Node inside = Visit(Sink(below, band.at(first)), is_parallel);
    if (result_.cycles < kept.cycles) return inside;
    result_ = std::move(kept);
    warm_.clear();
    return outside;
  }

  static Node Permutable(const Node& band) {
    return isl::manage(isl_schedule_node_band_set_permutable(band.copy(), 1));
  }

  // The loop as the first one of all innermost bands below.
  static Node Sink(Node node, const isl::union_pw_aff& f) {
    if (IsBand(node) && !HasBandBelow(node)) {
      const isl::schedule_node_band band = node.as<isl::schedule_node_band>();
      const isl::multi_union_pw_aff all = ToMulti(f).flat_range_product(band.partial_schedule());
      const bool can_swap = band.n_member() == 1 || band.permutable();
      node = isl::manage(isl_schedule_node_delete(node.copy())).insert_partial_schedule(all);
      return can_swap ? Permutable(node) : node;
    }
    if (node.n_children() == 0) return node.insert_partial_schedule(ToMulti(f));
    for (unsigned i = 0; i < node.n_children(); ++i)
      node = Sink(node.child(static_cast<int>(i)), f).parent();
    return node;
  }

  Node VisitLeaf(const Node& node, bool is_parallel) {
    const isl::multi_union_pw_aff band = node.as<isl::schedule_node_band>().partial_schedule();
    const Place place = PlaceOf(node);
    const BandPlan plan =
        MakePlan(scop_, dependences_, machine_, assumed_, place, band, is_parallel, warm_);
    result_.cycles += plan.cycles;
    if (plan.warm.empty()) warm_.clear();
    warm_.insert(plan.warm.begin(), plan.warm.end());
    band_ = band;
    line_ = StrCat(band.size(), band.size() == 1 ? " loop" : " loops");
    std::vector<int> members(band.size());
    for (size_t i = 0; i < members.size(); ++i) members[i] = static_cast<int>(i);
    const Node result = Apply(isl::manage(isl_schedule_node_delete(node.copy())), plan, members);
    Line(line_);
    return result;
  }

  void Line(std::string text) { result_.report.lines.push_back(std::move(text)); }

  static std::string OwnText(const std::vector<ir::Buffer>& copies) {
    std::string text;
    for (ir::Buffer buffer : copies) StrAppend(&text, " with its own ", buffer->name);
    return text;
  }

  // ---- loops around a node: each returns the topmost new node

  std::string NewMark(LoopMark mark, int depth, const char* what) {
    mark.depth = depth;
    const std::string name = StrCat(what, result_.marked.marks.size());
    result_.marked.marks[name] = mark;
    return name;
  }

  Node Loop(const Node& node, const isl::union_pw_aff& f) {
    return node.insert_partial_schedule(ToMulti(f));
  }

  // A loop that is one for all statements inside: isl would take it apart where their bounds differ, into a number of
  // pieces that grows with each such loop around.
  Node WholeLoop(const Node& node, const isl::union_pw_aff& f) {
    return Loop(node, f).as<isl::schedule_node_band>().member_set_ast_loop_atomic(0);
  }

  // A mark over a band.
  Node MarkParallel(const Node& band, int member, const std::vector<ir::Buffer>& copies) {
    ++result_.report.parallel_loops;
    const LoopMark mark{.kind = ir::ForKind::kParallel, .depth = 0, .copies = copies};
    return band.insert_mark(NewMark(mark, DepthOf(band) + member, "parallel"));
  }

  // A band over a mark, which names the innermost loop that comes of the band.
  Node Vector(const Node& node, const isl::union_pw_aff& f, const std::vector<ir::Buffer>& copies) {
    ++result_.report.vector_loops;
    const LoopMark mark{.kind = ir::ForKind::kVectorize, .depth = 0, .copies = copies};
    const Node marked = node.insert_mark(NewMark(mark, DepthOf(node), "vector"));
    Node band = Loop(marked, f);
    if (!copies.empty()) band = band.as<isl::schedule_node_band>().member_set_ast_loop_atomic(0);
    return band;
  }

  static Node Up(Node node, int levels) {
    while (levels-- > 0) node = node.parent();
    return node;
  }

  Node Apply(const Node& node, const BandPlan& plan, const std::vector<int>& members) {
    switch (plan.kind) {
      case BandPlan::Kind::kTile:
        return ApplyTiles(node, plan, members);
      case BandPlan::Kind::kSequence: {
        std::vector<isl::union_set> filters;
        isl_union_set_list* list =
            isl_union_set_list_alloc(scop_.isl->get(), static_cast<int>(plan.groups.size()));
        const isl::union_set domain = isl::manage(isl_schedule_node_get_domain(node.get()));
        for (const Names& group : plan.groups) {
          std::optional<isl::union_set> filter;
          for (const std::string& name : group) {
            const isl::union_set one =
                isl::set::universe(scop_.Find(name)->domain.space()).to_union_set();
            filter = filter ? filter->unite(one) : one;
          }
          list = isl_union_set_list_add(list, filter->copy());
        }
        Node sequence = isl::manage(isl_schedule_node_insert_sequence(node.copy(), list));
        StrAppend(&line_, " {");
        for (size_t i = 0; i < plan.children.size(); ++i) {
          if (i > 0) StrAppend(&line_, ";");
          StrAppend(&line_, " ", absl::StrJoin(plan.groups[i], "+"));
          Node child = sequence.child(static_cast<int>(i)).child(0);
          sequence = Up(Apply(child, plan.children[i], members), 2);
        }
        StrAppend(&line_, " }");
        return sequence;
      }
      case BandPlan::Kind::kSerial: {
        std::vector<int> rest;
        for (const int m : members) {
          if (m != plan.serial) rest.push_back(m);
        }
        StrAppend(&line_, ", loop ", plan.serial, " serial");
        const Node band = WholeLoop(node, band_->at(plan.serial));
        return Apply(band.child(0), plan.children[0], rest).parent();
      }
      case BandPlan::Kind::kPoints:
        return ApplyPoints(node, plan, members);
    }
    POLYNAO_UNREACHABLE(static_cast<int>(plan.kind));
  }

  Node ApplyTiles(Node node, const BandPlan& plan, const std::vector<int>& members) {
    // Loops over tiles, outermost first.
    std::vector<int> order;
    if (plan.parallel >= 0) order.push_back(plan.parallel);
    std::string sizes;
    bool has_tiles = false;
    for (const int m : members) {
      const int64_t size = plan.tiles.sizes[static_cast<size_t>(m)];
      StrAppend(&sizes, sizes.empty() ? "" : " x ", size == kWhole ? "all" : StrCat(size));
      has_tiles |= size != kWhole && size != 1;
      if (size != kWhole && m != plan.parallel && m != plan.tiles.last) order.push_back(m);
    }
    if (plan.tiles.last >= 0 && plan.tiles.last != plan.parallel) order.push_back(plan.tiles.last);
    if (plan.is_wave) order = WaveOrder(plan, members);
    if (has_tiles) {
      ++result_.report.tiled;
      StrAppend(&line_, ", tiles of ", sizes);
    }
    std::vector<int> inside;
    for (const int m : members) {
      if (plan.tiles.sizes[static_cast<size_t>(m)] != 1) inside.push_back(m);
    }
    const auto tile_of = [&](int m) {
      return TileOf(band_->at(m), plan.tiles.sizes[static_cast<size_t>(m)]);
    };
    if (order.empty()) return Apply(node, plan.children[0], inside);
    // One band for all of them: isl finds the bounds of a loop over sums of tiles in no time if it sees the next
    // loop as well, and in seconds if it does not.
    std::optional<isl::multi_union_pw_aff> tiles;
    for (size_t i = 0; i < order.size(); ++i) {
      isl::union_pw_aff f = tile_of(order[i]);
      if (plan.is_wave && i == 0) f = f.add(tile_of(order[1]));
      tiles = tiles ? tiles->flat_range_product(ToMulti(f)) : ToMulti(f);
    }
    int parallel = -1;
    std::vector<ir::Buffer> copies;
    if (plan.is_wave) {
      const auto needed =
          CopiesForParallel(dependences_, Inside(PlaceOf(node), tiles->at(0)), tiles->at(1));
      if (needed) {
        parallel = 1;
        copies = *needed;
        ++result_.report.wavefronts;
        StrAppend(&line_, ", diagonals of tiles ", order[0], " and ", order[1], " parallel",
                  OwnText(copies));
      }
    } else if (plan.parallel >= 0) {
      parallel = 0;
      copies = plan.copies;
      StrAppend(&line_, has_tiles ? ", tile loop " : ", loop ", plan.parallel, " parallel",
                OwnText(copies));
    }
    Node band = node.insert_partial_schedule(*tiles);
    for (int i = 0; i < static_cast<int>(order.size()); ++i)
      band = band.as<isl::schedule_node_band>().member_set_ast_loop_atomic(i);
    if (parallel >= 0) band = MarkParallel(band, parallel, copies).child(0);
    band = Apply(band.child(0), plan.children[0], inside).parent();
    return parallel >= 0 ? band.parent() : band;
  }

  static std::vector<int> WaveOrder(const BandPlan& plan, const std::vector<int>& members) {
    std::vector<int> order = {members[0], members[1]};
    for (size_t i = 2; i < members.size(); ++i) {
      if (plan.tiles.sizes[static_cast<size_t>(members[i])] != kWhole) order.push_back(members[i]);
    }
    return order;
  }

  Node ApplyPoints(Node node, const BandPlan& plan, const std::vector<int>& members) {
    const auto is_here = [&](int m) {
      return std::find(members.begin(), members.end(), m) != members.end();
    };
    std::vector<int> order;
    for (const int m : plan.points.order) {
      if (is_here(m)) order.push_back(m);
    }
    if (order.empty()) return node;
    if (!plan.points.jam.empty()) return ApplyJam(node, plan, order);
    const int last = order.back();
    const bool is_vector = plan.is_vector && last == plan.points.order.back();
    if (is_vector) {
      node = Vector(node, band_->at(last), plan.copies);
    } else if (plan.accumulates && last == plan.points.order.back()) {
      const LoopMark mark{
          .kind = ir::ForKind::kSerial, .depth = 0, .copies = {}, .accumulates = true};
      node = Loop(node.insert_mark(NewMark(mark, DepthOf(node), "sum")), band_->at(last));
    } else {
      node = Loop(node, band_->at(last));
    }
    for (size_t i = order.size() - 1; i-- > 0;) node = Loop(node, band_->at(order[i]));
    FixDepths(node);
    StrAppend(&line_, ", loop ", last,
              is_vector          ? " a vector"
              : plan.accumulates ? " adds up"
                                 : " innermost");
    return node;
  }

  // Loops over register tiles, the serial one last, then the tile itself.
  Node ApplyJam(Node node, const BandPlan& plan, const std::vector<int>& order) {
    const std::vector<int64_t>& jam = plan.points.jam;
    result_.has_register_tiles = true;
    std::vector<int> inner;
    for (const int m : order) {
      if (jam[static_cast<size_t>(m)] > 1) inner.push_back(m);
    }
    const int v = order.back();
    // [.., tile of u, tile of v, serial]
    std::optional<isl::multi_union_pw_aff> outer;
    std::vector<int> outer_order;
    for (const int m : order) {
      if (m != plan.points.serial && jam[static_cast<size_t>(m)] == 1) outer_order.push_back(m);
    }
    // What the vectors load stays in the nearest cache while the tiles along the other member follow each other.
    outer_order.push_back(v);
    for (const int m : inner) {
      if (m != v) outer_order.push_back(m);
    }
    outer_order.push_back(plan.points.serial);
    for (const int m : outer_order) {
      const auto one = ToMulti(TileOf(band_->at(m), jam[static_cast<size_t>(m)]));
      outer = outer ? outer->flat_range_product(one) : one;
    }
    std::string text;
    node = Vector(node, band_->at(v), {});
    for (size_t i = inner.size(); i-- > 0;) {
      const int m = inner[i];
      text = StrCat(jam[static_cast<size_t>(m)], text.empty() ? "" : " x ", text);
      if (m == v) continue;
      Node band = Loop(node, band_->at(m));
      const LoopMark mark{.kind = ir::ForKind::kUnroll, .depth = 0, .copies = {}};
      node = band.insert_mark(NewMark(mark, 0, "unroll"));
    }
    StrAppend(&line_, ", loop ", v, " a vector, ", text, " in registers over loop ",
              plan.points.serial);
    Node band = node.insert_partial_schedule(*outer);
    // Depths are known now.
    FixDepths(band);
    LoopMark mark;
    for (const int m : inner) mark.tile.push_back(jam[static_cast<size_t>(m)]);
    const int serial = DepthOf(band) + static_cast<int>(outer_order.size()) - 1;
    return band.insert_mark(NewMark(mark, serial, "tile"));
  }

  // Sets the depths of the marks below a band.
  void FixDepths(const Node& node) {
    for (unsigned i = 0; i < node.n_children(); ++i) {
      const Node child = node.child(static_cast<int>(i));
      if (child.isa<isl::schedule_node_mark>()) {
        const isl::id id = isl::manage(isl_schedule_node_mark_get_id(child.get()));
        LoopMark& mark = result_.marked.marks[isl_id_get_name(id.get())];
        const bool is_below = mark.kind == ir::ForKind::kVectorize || mark.accumulates;
        mark.depth = is_below ? DepthOf(child) - 1 : DepthOf(child);
      }
      FixDepths(child);
    }
  }

  const Scop& scop_;
  const Dependences& dependences_;
  const CpuMachine& machine_;
  const AssumedParameters assumed_;
  AutoSchedule result_;
  // Of which the cache holds what the bands before at this iteration of the loops around have touched.
  Buffers warm_;
  std::optional<isl::multi_union_pw_aff> band_;  // the leaf band at hand
  std::string line_;
};

}  // namespace

AutoSchedule Arrange(const Scop& scop, const Dependences& dependences,
                     const isl::schedule& schedule, const CpuMachine& machine) {
  return Arranger(scop, dependences, machine).Run(schedule);
}

}  // namespace polynao::poly
