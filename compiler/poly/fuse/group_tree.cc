#include "compiler/poly/fuse/group_tree.h"

#include <isl/aff.h>
#include <isl/id.h>
#include <isl/map.h>
#include <isl/schedule_node.h>
#include <isl/set.h>
#include <isl/union_set.h>
#include <isl/val.h>

#include <algorithm>
#include <climits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/type.h"
#include "compiler/poly/arrange/slots.h"
#include "compiler/poly/fuse/slide.h"
#include "compiler/poly/fuse/stage_loops.h"
#include "compiler/poly/generate/loops_around.h"
#include "compiler/poly/isl/tree.h"

namespace polynao::poly {

namespace {

using Node = isl::schedule_node;

constexpr const char* kTileMark = "tile";  // around what a tile does
constexpr const char* kParallelMark = "parallel";

// Its first store.
const Access& WriteOf(const Statement& statement) {
  const auto it = std::find_if(statement.accesses.begin(), statement.accesses.end(),
                               [](const Access& a) { return a.is_write; });
  POLYNAO_CHECK(it != statement.accesses.end()) << statement.name;
  return *it;
}

// { S[i] -> [f] }: the index of the element that each instance of the stage stores, along dimension `d`. Nothing if it
// is not affine.
std::optional<isl::union_pw_aff> IndexAlong(const Stage& stage, size_t d) {
  std::optional<isl::union_pw_aff> all;
  for (const Statement* s : stage.statements) {
    const Access& access = WriteOf(*s);
    if (access.indices.size() <= d) return std::nullopt;
    const isl::pw_multi_aff element =
        isl::manage(isl_pw_multi_aff_from_map(access.map.intersect_domain(s->domain).release()));
    const isl::union_pw_aff one =
        isl::manage(isl_union_pw_aff_from_pw_aff(element.at(static_cast<int>(d)).release()));
    all = all ? isl::manage(isl_union_pw_aff_union_add(all->copy(), one.copy())) : one;
  }
  return all;
}

// A map that has all of `map` and is simple enough for loops without conditions: producers may compute more than is
// needed.
isl::map Simple(const isl::map& map) {
  isl_basic_map* hull = isl_map_simple_hull(isl_map_coalesce(map.copy()));
  return isl::manage(isl_map_from_basic_map(isl_basic_map_remove_divs(hull)));
}

class CpuLoops : public GroupLoops {
 public:
  CpuLoops(const Scop& part, const Group& group, std::map<std::string, LoopMark>& marks)
      : part_(part), group_(group), marks_(marks) {}

  Node BelowTiles(Node band, const isl::union_map&) override {
    if (group_.parallel < 0) return band.child(0);
    marks_[kParallelMark] = {.kind = ir::ForKind::kParallel, .depth = 0};
    return band.insert_mark(kParallelMark).child(0).child(0);
  }
  Node StageLoops(Node leaf, int around, const Stage& stage, const isl::union_map&) override {
    return WithStageLoops(leaf, around, part_, stage, marks_);
  }

 private:
  const Scop& part_;
  const Group& group_;
  std::map<std::string, LoopMark>& marks_;
};

class TreeMaker {
 public:
  TreeMaker(const Scop& part, const std::vector<Stage>& stages, const Group& group,
            GroupLoops* loops)
      : part_(part),
        stages_(stages),
        group_(group),
        cpu_(part, group, tree_.marked.marks),
        loops_(loops != nullptr ? *loops : cpu_),
        is_cpu_(loops == nullptr) {}

  absl::StatusOr<GroupTree> Make() {
    const Stage& root = stages_[static_cast<size_t>(group_.root)];
    const isl::multi_union_pw_aff band = Tiles(root);
    tree_.tiles = isl::union_map::from(band).intersect_domain(root.Domain());
    tree_.rows = tree_.tiles;
    dimensions_ = static_cast<int>(band.size());
    std::optional<isl::multi_union_pw_aff> rows;
    if (group_.slides >= 0) {
      rows = ToMulti(*IndexAlong(root, static_cast<size_t>(group_.slides)));
      tree_.rows =
          isl::union_map::from(band.flat_range_product(*rows)).intersect_domain(root.Domain());
      ++dimensions_;
      before_ = RowsBefore(tree_.rows.range().as_set());
    }
    RETURN_IF_ERROR(FindFootprints());
    // Loops of the tiles, then those inside: a tree below which something is grafted takes no more bands.
    Node node = isl::schedule::from_domain(root.Domain()).root().child(0);
    node = node.insert_partial_schedule(band);
    for (unsigned i = 0; i < band.size(); ++i) {
      node = node.as<isl::schedule_node_band>().member_set_ast_loop_atomic(static_cast<int>(i));
    }
    node = loops_.BelowTiles(node, tree_.tiles).insert_mark(kTileMark).child(0);
    if (rows) {
      node = node.insert_partial_schedule(*rows);
      node = node.as<isl::schedule_node_band>().member_set_ast_loop_atomic(0).child(0);
    }
    node = loops_.StageLoops(node, 0, root, tree_.rows.reverse());
    // Each one in front of those that read it.
    for (size_t i = group_.producers.size(); i-- > 0;) {
      node = Grafted(node, stages_[static_cast<size_t>(group_.producers[i])]);
    }
    tree_.marked.schedule = node.schedule();
    return std::move(tree_);
  }

 private:
  isl::multi_union_pw_aff Tiles(const Stage& root) const {
    std::vector<size_t> order;
    if (group_.parallel >= 0) order.push_back(static_cast<size_t>(group_.parallel));
    for (size_t d = 0; d < group_.sizes.size(); ++d) {
      if (group_.sizes[d] > 0 && static_cast<int>(d) != group_.parallel) order.push_back(d);
    }
    POLYNAO_CHECK(!order.empty());
    std::optional<isl::multi_union_pw_aff> band;
    for (const size_t d : order) {
      const isl::multi_union_pw_aff one = ToMulti(TileOf(*IndexAlong(root, d), group_.sizes[d]));
      band = band ? band->flat_range_product(one) : one;
    }
    return *band;
  }

  // What each tile needs of the producers: footprints of the reads, then back to the instances that store them.
  absl::Status FindFootprints() {
    const isl::union_map reads = part_.Reads();
    isl::union_map needed = tree_.rows.reverse().apply_range(reads);  // { [t] -> A[a] }
    const isl::set tiles = tree_.rows.range().as_set();
    for (size_t i = group_.producers.size(); i-- > 0;) {
      const Stage& stage = stages_[static_cast<size_t>(group_.producers[i])];
      const ir::Buffer buffer = stage.buffers[0];
      std::optional<isl::map> stored, stored_first;
      bool is_all_new = true;  // each row stores all that it reads
      for (const Statement* s : stage.statements) {
        const isl::map write = WriteOf(*s).map.intersect_domain(s->domain);
        const isl::union_map all = needed.apply_range(write.reverse().to_union_map());
        if (all.is_empty()) continue;
        const isl::map window =
            Simple(all.as_map()).intersect_range(s->domain).intersect_domain(tiles);
        const isl::map instances = before_ ? NewIn(window, *before_) : window;
        if (before_) is_all_new = is_all_new && instances.is_equal(window);
        tree_.instances.emplace(s->name, instances);
        needed = needed.unite(
            instances.to_union_map().apply_range(reads.intersect_domain(s->domain.to_union_set())));
        const isl::map elements = window.apply_range(write);
        stored = stored ? stored->unite(elements) : elements;
        if (!before_) continue;
        // An element's first value and its updates belong to one row.
        const isl::map first = instances.apply_range(write);
        if (stored_first && !first.is_equal(*stored_first)) return NoWindow(buffer);
        stored_first = first;
      }
      needed = needed.coalesce();
      if (!stored) continue;
      if (before_) {
        const std::optional<SlidingBox> box = SlidingBoxOf(stored->coalesce(), *before_);
        if (!box) return NoWindow(buffer);
        tree_.locals.push_back(
            {.buffer = buffer,
             .box = box->box,
             .slides = box->slides,
             .life = !is_all_new
                         ? Lifetime{.first = 0, .last = static_cast<int>(group_.producers.size())}
                         : LifetimeOf(stages_, group_, group_.producers[i])});
        continue;
      }
      std::optional<Box> box = BoxOf(stored->coalesce());
      if (!box && is_cpu_) box = ParametricBoxOf(stored->coalesce());
      if (!box) {
        return absl::FailedPreconditionError(
            StrCat("what a tile needs of '", buffer->name, "' is in no box of constant size"));
      }
      tree_.locals.push_back({.buffer = buffer,
                              .box = *box,
                              .life = LifetimeOf(stages_, group_, group_.producers[i])});
    }
    std::reverse(tree_.locals.begin(), tree_.locals.end());
    return absl::OkStatus();
  }

  static absl::Status NoWindow(ir::Buffer buffer) {
    return absl::FailedPreconditionError(
        StrCat("what the rows of a tile need of '", buffer->name, "' is in no window that slides"));
  }

  Node Grafted(const Node& node, const Stage& stage) {
    std::optional<isl::union_map> extension;
    for (const Statement* s : stage.statements) {
      const auto it = tree_.instances.find(s->name);
      if (it == tree_.instances.end()) continue;
      const isl::union_map one = it->second.to_union_map();
      extension = extension ? extension->unite(one) : one;
    }
    if (!extension) return node;
    Node graft = isl::manage(isl_schedule_node_from_extension(extension->copy()));
    graft = loops_.StageLoops(graft.child(0), dimensions_, stage, *extension).parent();
    // Grafted in front of the node in whose place a sequence of both comes; later ones in front of its first child.
    const Node first = has_sequence_ ? node.child(0).child(0) : node;
    has_sequence_ = true;
    return first.graft_before(graft).parent().parent();
  }

  const Scop& part_;
  const std::vector<Stage>& stages_;
  const Group& group_;
  int dimensions_ = 0;              // of the loops around a tile's or row's instances
  std::optional<isl::map> before_;  // RowsBefore
  bool has_sequence_ = false;       // something has been grafted
  GroupTree tree_;
  CpuLoops cpu_;
  GroupLoops& loops_;
  const bool is_cpu_;
};

}  // namespace

bool HaveOneRank(const std::vector<ir::Buffer>& buffers) {
  return !buffers.empty() && std::all_of(buffers.begin(), buffers.end(), [&](ir::Buffer buffer) {
    return buffer->extents.size() == buffers[0]->extents.size();
  });
}

Lifetime LifetimeOf(const std::vector<Stage>& stages, const Group& group, int producer) {
  Lifetime life;
  for (size_t i = 0; i <= group.producers.size(); ++i) {
    const int stage = i < group.producers.size() ? group.producers[i] : group.root;
    const int place = static_cast<int>(i);
    if (stage == producer) life = {.first = place, .last = place};
    if (stages[static_cast<size_t>(stage)].reads.contains(producer)) life.last = place;
  }
  return life;
}

std::vector<bool> TileableDimensions(const Stage& stage) {
  std::vector<bool> result;
  if (!HaveOneRank(stage.buffers)) return result;
  for (size_t d = 0; d < stage.buffers[0]->extents.size(); ++d) {
    const std::optional<isl::union_pw_aff> index = IndexAlong(stage, d);
    bool is_tileable = index.has_value();
    if (is_tileable && !stage.pairs.is_empty()) {
      const isl::union_map at = isl::union_map::from(ToMulti(*index));
      const isl::union_map moves = stage.pairs.apply_domain(at).apply_range(at);
      if (!moves.is_empty()) {
        const isl::set deltas = moves.as_map().deltas();
        is_tileable = deltas.is_subset(isl::set(deltas.ctx(), "{ [0] }"));
      }
    }
    result.push_back(is_tileable);
  }
  return result;
}

absl::StatusOr<GroupTree> MakeGroupTree(const Scop& part, const std::vector<Stage>& stages,
                                        const Group& group, GroupLoops* loops) {
  return TreeMaker(part, stages, group, loops).Make();
}

bool TileHandler::Handles(const std::string& mark) const { return mark == kTileMark; }

std::vector<isl::ast_expr> TileHandler::Expressions(const std::string&,
                                                    const isl::ast_build& build) {
  const LoopsAround loops(build, tree_.tiles);
  std::vector<isl::ast_expr> result;
  for (const TileLocal& local : tree_.locals) {
    for (const isl::pw_aff& first : local.box.first) result.push_back(loops.Value(first));
  }
  for (const TileLocal& local : tree_.locals) {
    for (const isl::pw_aff& extent : local.box.extents) result.push_back(loops.Value(extent));
  }
  return result;
}

ir::Stmt TileHandler::Write(const std::string&, const std::vector<isl::ast_expr>& expressions,
                            MarkPlace& place) {
  ir::Context& c = place.context();
  Lets lets;
  std::vector<ir::Buffer> buffers;
  size_t next = 0, next_extent = 0;
  for (const TileLocal& local : tree_.locals) next_extent += local.box.first.size();
  extents_.clear();
  for (size_t i = 0; i < tree_.locals.size(); ++i) {
    const TileLocal& local = tree_.locals[i];
    const size_t n = local.box.first.size();
    extents_.emplace_back();
    for (const int64_t size : SizesOf(i)) extents_.back().push_back(c.I64(size));
    for (size_t d = 0; d < local.box.extents.size(); ++d) {
      // A tile may have no element of it.
      const ir::Expr extent = place.Value(expressions[next_extent++]);
      extents_.back().push_back(ir::Max(extent, c.I64(0)));
    }
    const ir::Buffer buffer = BufferFor(i, c);
    made_[local.buffer] = {
        .number = i,
        .buffer = buffer,
        .first = Named(expressions, next, n, StrCat(local.buffer->name, ".first"), place, lets),
        .slides = local.slides,
        .window = local.slides < 0 ? 0 : local.box.sizes[static_cast<size_t>(local.slides)]};
    next += n;
    if (std::find(buffers.begin(), buffers.end(), buffer) == buffers.end())
      buffers.push_back(buffer);
  }
  ir::Stmt result = place.Below({});
  for (size_t i = buffers.size(); i-- > 0;) result = c.Allocate(buffers[i], result);
  return WithLets(lets, result);
}

ir::Expr TileHandler::Load(const Statement&, ir::Expr load, const std::vector<ir::Expr>& indices) {
  const auto it = made_.find(ir::Buffer(load.buffer()));
  if (it == made_.end()) return ir::Expr();
  return load.context().Load(it->second.buffer, Inside(it->second, indices));
}

ir::Stmt TileHandler::Store(const Statement&, ir::Buffer buffer,
                            const std::vector<ir::Expr>& indices, ir::Expr value) {
  const auto it = made_.find(buffer);
  if (it == made_.end()) return ir::Stmt();
  return value.context().Store(it->second.buffer, Inside(it->second, indices), value);
}

ir::Buffer TileHandler::BufferFor(size_t i, ir::Context& c) {
  const TileLocal& local = tree_.locals[i];
  return c.NewBuffer(StrCat(local.buffer->name, ".tile"), local.buffer->type, extents_[i],
                     local.buffer->scope);
}

std::vector<ir::Expr> TileHandler::IndicesFor(size_t, std::vector<ir::Expr> inside) {
  return inside;
}

std::vector<ir::Expr> TileHandler::Inside(const Local& local,
                                          const std::vector<ir::Expr>& indices) {
  std::vector<ir::Expr> inside;
  for (size_t d = 0; d < indices.size(); ++d) {
    const ir::Expr first = local.first[d];
    if (static_cast<int>(d) == local.slides) {
      inside.push_back(indices[d] % local.window);
    } else {
      inside.push_back(first.IsInt(0) ? indices[d] : indices[d] - first);
    }
  }
  return IndicesFor(local.number, std::move(inside));
}

std::vector<ir::Expr> TileHandler::Named(const std::vector<isl::ast_expr>& values, size_t first,
                                         size_t count, const std::string& name, MarkPlace& place,
                                         Lets& lets) {
  std::vector<ir::Expr> result;
  for (size_t i = first; i < first + count; ++i) {
    ir::Expr value = place.Value(values[i]);
    if (!value.Is(ir::ExprKind::kIntImm) && !value.Is(ir::ExprKind::kVar)) {
      const ir::Var var = place.context().NewVar(name, ir::Type::kI64);
      lets.emplace_back(var, value);
      value = var;
    }
    result.push_back(value);
  }
  return result;
}

ir::Stmt TileHandler::WithLets(const Lets& lets, ir::Stmt body) {
  for (size_t i = lets.size(); i-- > 0;)
    body = body.context().LetStmt(lets[i].first, lets[i].second, body);
  return body;
}

namespace {

// Bytes of a line of the cache, which the widest vectors fill, and of a page, whose places have lines of their own in
// the nearest cache.
constexpr int64_t kLineBytes = 64, kPageBytes = 4096;

// Rows begin with a line, since a vector that is stored to two lines takes twice as long, but not all at the same place
// of a page.
std::vector<int64_t> WithWholeLines(std::vector<int64_t> sizes, ir::Type type) {
  const int64_t size = ir::ByteSize(type);
  if (sizes.size() < 2 || sizes.back() * size < kLineBytes) return sizes;
  int64_t bytes = CeilDiv(sizes.back() * size, kLineBytes) * kLineBytes;
  if (bytes % kPageBytes == 0) bytes += kLineBytes;
  sizes.back() = bytes / size;
  return sizes;
}

// Arrays of a tile that share memory lie in it row after row, from its first element on.
class PackedTiles : public TileHandler {
 public:
  explicit PackedTiles(const GroupTree& tree) : TileHandler(tree) {
    std::vector<LivingArray> arrays;
    for (size_t i = 0; i < tree.locals.size(); ++i) {
      const TileLocal& local = tree.locals[i];
      // A single element stays by itself, and so does an array of which the size is not known.
      const bool is_array = !local.box.sizes.empty();
      arrays.push_back({.type = local.buffer->type,
                        .elements = Box{.first = {}, .sizes = SizesOf(i)}.elements(),
                        .first = is_array ? local.life.first : 0,
                        .last = is_array ? local.life.last : INT_MAX});
    }
    slots_ = AssignSlots(arrays);
  }

 protected:
  std::vector<int64_t> SizesOf(size_t i) const override {
    const TileLocal& local = tree().locals[i];
    return WithWholeLines(local.box.sizes, local.buffer->type);
  }

  ir::Buffer BufferFor(size_t i, ir::Context& c) override {
    const auto number = static_cast<size_t>(slots_.slot_of[i]);
    const Slot& slot = slots_.slots[number];
    if (slot.arrays == 1) return TileHandler::BufferFor(i, c);
    // The first of its arrays comes first.
    if (i == 0) shared_.clear();
    const auto it = shared_.find(number);
    if (it != shared_.end()) return it->second;
    const ir::Buffer first = tree().locals[i].buffer;
    const ir::Buffer buffer =
        c.NewBuffer(StrCat(first->name, ".tile"), slot.type, {c.I64(slot.elements)}, first->scope);
    shared_.emplace(number, buffer);
    return buffer;
  }

  std::vector<ir::Expr> IndicesFor(size_t i, std::vector<ir::Expr> inside) override {
    if (slots_.slots[static_cast<size_t>(slots_.slot_of[i])].arrays == 1) return inside;
    const std::vector<int64_t> sizes = SizesOf(i);
    ir::Expr index = inside[0];
    for (size_t d = 1; d < inside.size(); ++d) index = index * sizes[d] + inside[d];
    return {index};
  }

 private:
  Slots slots_;
  absl::flat_hash_map<size_t, ir::Buffer> shared_;  // of the tile that is written
};

}  // namespace

ir::Stmt GenerateGroup(const Scop& part, const GroupTree& tree) {
  PackedTiles handler(tree);
  return Generate(part, tree.marked, &handler);
}

}  // namespace polynao::poly
