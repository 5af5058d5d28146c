#include "compiler/poly/gpu_group.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/schedule_node.h>
#include <isl/set.h>
#include <isl/union_map.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/fuse/stage_loops.h"
#include "compiler/poly/gpu_emit.h"
#include "compiler/poly/gpu_map.h"
#include "compiler/poly/local_copies.h"
#include "compiler/poly/loops_around.h"
#include "compiler/poly/shared_slots.h"
#include "compiler/poly/tree.h"

namespace polynao::poly {

namespace {

using ir::Expr;
using ir::ForKind;
using ir::Stmt;
using ir::Type;
using Node = isl::schedule_node;

constexpr size_t kMaxAxes = 3;
constexpr int64_t kMaxOuterBlocks = 65535;
// Elements of a producer that a thread keeps.
constexpr int64_t kMaxOwn = 16;
// Iterations of a loop over the same elements that a thread runs.
constexpr int64_t kMaxRepetitions = 4;

size_t At(int i) { return static_cast<size_t>(i); }

std::string LoopName(int depth) { return StrCat("c", depth); }

// The loops of a component: those that threads share, and marks around them.
struct ThreadLoops {
  const Stage* stage;
  isl::union_map instances;  // { [t..] -> S[i] }
  isl::union_map
      members;    // { S[i] -> [m0, m1, ..] }: the shared loops; of no dimension if there are none
  int depth = 0;  // of the first one
  Box box;        // of [m0, m1, ..] in each tile
  int64_t elements() const { return box.elements(); }
};

const char* const kThreads = "threads";       // around the shared loops
const char* const kInThreads = "in_threads";  // below them

class KernelLoops : public GroupLoops {
 public:
  KernelLoops(const Scop& part, const std::vector<Stage>& stages, const Group& group)
      : part_(part) {
    for (const int p : group.producers) handed_on_.insert(stages[At(p)].buffers[0]);
  }

  Node BelowTiles(Node band, const isl::union_map& tiles) override {
    const auto n = static_cast<size_t>(band.as<isl::schedule_node_band>().n_member());
    GpuMark blocks{.kind = GpuMark::Kind::kBlocks, .depth = DepthOf(band)};
    isl_set* all = tiles.range().as_set().coalesce().release();
    for (size_t i = 0; i < n; ++i) {
      blocks.shape.axes.emplace_back(1, "xyz"[n - 1 - i]);
      blocks.shape.sizes.push_back(1);
      const int position = static_cast<int>(i);
      blocks.first.push_back(isl::manage(isl_set_dim_min(isl_set_copy(all), position)));
      blocks.last.push_back(isl::manage(isl_set_dim_max(isl_set_copy(all), position)));
    }
    isl_set_free(all);
    mapping_.marks["in_blocks"] = {.kind = GpuMark::Kind::kInBlocks,
                                   .loops = tiles,
                                   .depth = blocks.depth,
                                   .shape = blocks.shape};
    mapping_.marks["blocks"] = std::move(blocks);
    return band.insert_mark("blocks").child(0).child(0).insert_mark("in_blocks").child(0);
  }

  Node StageLoops(Node leaf, int around, const Stage& stage,
                  const isl::union_map& instances) override {
    return WithComponents(leaf, stage, [&](const Node& node, const Component& component) {
      return WithThreads(node, around, stage, component, instances);
    });
  }

  const GpuMapping& mapping() const { return mapping_; }
  const std::map<std::string, ThreadLoops>& components() const { return components_; }

 private:
  Node WithThreads(Node node, int around, const Stage& stage, const Component& component,
                   const isl::union_map& all) {
    std::optional<isl::union_set> domain;
    for (const Statement* s : component) {
      const isl::union_set one = s->domain.to_union_set();
      domain = domain ? domain->unite(one) : one;
    }
    const isl::union_map instances = all.intersect_range(*domain);
    if (instances.is_empty()) return node;
    ThreadLoops loops{.stage = &stage, .instances = instances, .members = {}, .box = {}};
    loops.depth = around + DepthOf(node);
    std::vector<int> shared, own;
    const std::optional<isl::multi_union_pw_aff> band = LoopsOf(part_, component);
    const int n = band ? static_cast<int>(band->size()) : 0;
    const int last = component.size() == 1 ? VectorIterator(stage, *component[0]) : -1;
    for (int i = 0; i < n; ++i) {
      if (i == last) continue;
      if (IsRepetition(component, i, last)) {
        const std::optional<Box> box = BoxOfLoop(loops, *band, i);
        if (box && box->sizes[0] <= kMaxRepetitions) {
          own.push_back(i);
          continue;
        }
      }
      (Box1(loops, stage, component, *band, i) ? shared : own).push_back(i);
    }
    if (last >= 0) (Box1(loops, stage, component, *band, last) ? shared : own).push_back(last);
    if (last >= 0 && !own.empty()) std::sort(own.begin(), own.end());
    const std::string number = StrCat(components_.size());
    if (!own.empty()) node = node.insert_partial_schedule(Members(*band, own));
    if (!shared.empty()) {
      const isl::multi_union_pw_aff members = Members(*band, shared);
      loops.members = isl::union_map::from(members).intersect_domain(*domain);
      node = node.insert_mark(StrCat(kInThreads, number));
      node = node.insert_partial_schedule(members);
      for (size_t i = 0; i < shared.size(); ++i) {
        // isl must not spread an iteration over several loops.
        node = node.as<isl::schedule_node_band>().member_set_ast_loop_atomic(static_cast<int>(i));
      }
    }
    node = node.insert_mark(StrCat(kThreads, number));
    components_.emplace(number, std::move(loops));
    return node;
  }

  // Whether all iterations of loop `i` read the same elements of what the group's stages hand on, and store far from each other: a
  // thread runs them one after the other and has these elements at hand.
  bool IsRepetition(const Component& component, int i, int last) const {
    if (component.size() > 1 || last < 0) return false;
    const ir::Var var = component[0]->iterators[At(i)];
    bool reads = false;
    for (const Access& access : component[0]->accesses) {
      if (access.is_write && (access.indices.empty() || ir::UsesVar(access.indices.back(), var)))
        return false;
      if (access.is_write || !handed_on_.contains(access.buffer)) continue;
      if (access.indices.empty()) return false;
      reads = true;
      for (Expr index : access.indices) {
        if (ir::UsesVar(index, var)) return false;
      }
    }
    return reads;
  }

  static std::optional<Box> BoxOfLoop(const ThreadLoops& loops, const isl::multi_union_pw_aff& band,
                                      int i) {
    const isl::union_map member = isl::union_map::from(ToMulti(band.at(i)));
    return BoxOf(loops.instances.apply_range(member).as_map().coalesce());
  }

  // Whether threads may share loop `i`; its box is added.
  static bool Box1(ThreadLoops& loops, const Stage& stage, const Component& component,
                   const isl::multi_union_pw_aff& band, int i) {
    if (!IsParallel(stage, component, band.at(i))) return false;
    const std::optional<Box> box = BoxOfLoop(loops, band, i);
    if (!box) return false;
    loops.box.first.push_back(box->first[0]);
    loops.box.sizes.push_back(box->sizes[0]);
    return true;
  }

  const Scop& part_;
  absl::flat_hash_set<ir::Buffer> handed_on_;  // what producers store
  GpuMapping mapping_;
  std::map<std::string, ThreadLoops> components_;
};

// Where a tile's arrays are.
struct Storage {
  int slot = -1;               // in shared memory
  bool is_own = false;         // each thread has the elements that it stores
  std::vector<size_t> kept;    // the dimensions of an own array besides thread and round
  std::vector<int64_t> sizes;  // of these
  int64_t rounds = 1;
};

class KernelHandler : public TileHandler {
 public:
  KernelHandler(const GroupTree& tree, const KernelLoops& loops, int64_t threads,
                const std::vector<Storage>& storage, const SharedSlots& slots)
      : TileHandler(tree),
        loops_(loops),
        blocks_(MakeGpuHandler(loops.mapping())),
        threads_(threads),
        storage_(storage),
        slots_(slots),
        slot_buffers_(slots.slots.size()) {}

  bool Handles(const std::string& mark) const override {
    return TileHandler::Handles(mark) || blocks_->Handles(mark) || ComponentOf(mark).second;
  }

  std::vector<isl::ast_expr> Expressions(const std::string& mark,
                                         const isl::ast_build& build) override {
    if (blocks_->Handles(mark)) return blocks_->Expressions(mark, build);
    std::vector<isl::ast_expr> result;
    if (TileHandler::Handles(mark)) {
      result = TileHandler::Expressions(mark, build);
      const LoopsAround around(build, tree().tiles);
      for (const auto& [name, component] : loops_.components()) {
        for (const isl::pw_aff& first : component.box.first) result.push_back(around.Value(first));
      }
      return result;
    }
    const auto [number, component] = ComponentOf(mark);
    if (mark.starts_with(kInThreads)) {
      const LoopsAround around(build, component->members);
      for (unsigned i = 0; i < component->box.sizes.size(); ++i) result.push_back(around.Number(i));
    }
    return result;
  }

  Stmt Write(const std::string& mark, const std::vector<isl::ast_expr>& expressions,
             MarkPlace& place) override {
    if (blocks_->Handles(mark)) return blocks_->Write(mark, expressions, place);
    if (TileHandler::Handles(mark)) {
      Lets lets;
      size_t next = 0;
      for (const TileLocal& local : tree().locals) next += local.box.first.size();
      for (const auto& [name, component] : loops_.components()) {
        const size_t n = component.box.first.size();
        firsts_[name] = Named(expressions, next, n, "first", place, lets);
        next += n;
      }
      const Stmt body = TileHandler::Write(mark, expressions, place);
      return WithLets(lets, body);
    }
    const auto [number, component] = ComponentOf(mark);
    return mark.starts_with(kInThreads) ? WriteInside(*component, expressions, place)
                                        : WriteThreads(number, *component, place);
  }

 protected:
  ir::Buffer BufferFor(size_t i, ir::Context& c) override {
    const TileLocal& local = tree().locals[i];
    const Storage& storage = storage_[i];
    if (storage.is_own) {
      std::vector<Expr> extents = {c.I64(threads_), c.I64(storage.rounds)};
      for (const int64_t size : storage.sizes) extents.push_back(c.I64(size));
      return c.NewBuffer(StrCat(local.buffer->name, ".own"), local.buffer->type, extents, "local");
    }
    const SharedSlot& slot = slots_.slots[At(storage.slot)];
    ir::Buffer& buffer = slot_buffers_[At(storage.slot)];
    if (buffer) return buffer;
    std::vector<Expr> extents;
    if (slot.arrays == 1) {
      for (const int64_t size : local.box.sizes) extents.push_back(c.I64(size));
    } else {
      extents.push_back(c.I64(slot.elements));
    }
    const std::string name =
        slot.arrays == 1 ? StrCat(local.buffer->name, ".shared") : std::string("slot.shared");
    return buffer = c.NewBuffer(name, slot.type, extents, "shared");
  }

  std::vector<Expr> IndicesFor(size_t i, std::vector<Expr> inside) override {
    const Storage& storage = storage_[i];
    if (storage.is_own) {
      std::vector<Expr> indices = {thread_, round_};
      for (const size_t d : storage.kept) indices.push_back(inside[d]);
      return indices;
    }
    if (slots_.slots[At(storage.slot)].arrays == 1 || inside.empty()) return inside;
    const std::vector<int64_t>& sizes = tree().locals[i].box.sizes;
    Expr index = inside[0];
    for (size_t d = 1; d < inside.size(); ++d) index = index * sizes[d] + inside[d];
    return {index};
  }

 private:
  std::pair<std::string, const ThreadLoops*> ComponentOf(const std::string& mark) const {
    for (const char* prefix : {kThreads, kInThreads}) {
      if (!mark.starts_with(prefix)) continue;
      const auto it = loops_.components().find(mark.substr(std::string_view(prefix).size()));
      if (it != loops_.components().end()) return {it->first, &it->second};
    }
    return {"", nullptr};
  }

  int64_t RoundsOf(const Box& box) const { return (box.elements() + threads_ - 1) / threads_; }

  // Number e of the box is thread e % threads_ in round e / threads_.
  Stmt WriteThreads(const std::string& number, const ThreadLoops& component, MarkPlace& place) {
    ir::Context& c = place.context();
    const Box& box = component.box;
    const int64_t rounds = RoundsOf(box), elements = box.elements();
    const ir::Var thread = c.NewVar("tx", Type::kI64), round = c.NewVar("r", Type::kI64);
    thread_ = thread;
    round_ = rounds > 1 ? Expr(round) : c.I64(0);
    Lets lets;
    Expr rest = thread;
    if (rounds > 1) {
      const ir::Var element = c.NewVar("e", Type::kI64);
      lets.emplace_back(element, round * threads_ + thread);
      rest = element;
    }
    const Expr element = rest;
    const std::vector<Expr>& first = firsts_.at(number);
    std::vector<Expr> values(box.sizes.size());
    size_t outermost = 0;  // of the dimensions of more than one element
    while (outermost < values.size() && box.sizes[outermost] == 1) ++outermost;
    for (size_t d = values.size(); d-- > 0;) {
      const bool is_last = d == outermost || d < outermost;
      const int64_t size = box.sizes[d];
      Expr at = size == 1 ? c.I64(0) : is_last ? rest : rest % size;
      if (size > 1 && !is_last) rest = rest / size;
      if (!first[d].IsInt(0)) at = at.IsInt(0) ? first[d] : first[d] + at;
      const ir::Var value = c.NewVar(LoopName(component.depth + static_cast<int>(d)), Type::kI64);
      lets.emplace_back(value, at);
      values[d] = value;
    }
    for (size_t d = 0; d < values.size(); ++d)
      place.Bind(LoopName(component.depth + static_cast<int>(d)), values[d]);
    values_ = values;
    Stmt body = place.Below({});
    for (size_t d = 0; d < values.size(); ++d)
      place.Bind(LoopName(component.depth + static_cast<int>(d)), Expr());
    // What is beyond the box is left out before its place is computed.
    const size_t element_lets = rounds > 1 ? 1 : 0;
    body =
        WithLets(Lets(lets.begin() + static_cast<std::ptrdiff_t>(element_lets), lets.end()), body);
    if (elements % threads_ != 0) body = c.If(element < elements, body);
    if (rounds > 1) {
      body = WithLets({lets[0]}, body);
      const ForKind kind = UsesOwn(component) ? ForKind::kUnroll : ForKind::kSerial;
      body = c.For(round, c.I64(0), c.I64(rounds), body, kind);
    }
    return c.For(thread, c.I64(0), c.I64(threads_), body, ForKind::kThread, "threadIdx.x");
  }

  // Of a loop that isl has left out.
  Stmt WriteInside(const ThreadLoops& component, const std::vector<isl::ast_expr>& expressions,
                   MarkPlace& place) const {
    Stmt body = place.Below({});
    for (size_t d = component.box.sizes.size(); d-- > 0;) {
      // All threads that get here have the only value there is.
      if (component.box.sizes[d] == 1) continue;
      const std::string loop = LoopName(component.depth + static_cast<int>(d));
      if (!place.IsLeftOut(loop)) continue;
      body = place.context().If(ir::Eq(values_[d], place.Value(expressions[d])), body);
    }
    return body;
  }

  bool UsesOwn(const ThreadLoops& component) const {
    for (size_t i = 0; i < storage_.size(); ++i) {
      if (!storage_[i].is_own) continue;
      for (const Statement* s : component.stage->statements) {
        for (const Access& access : s->accesses) {
          if (access.buffer == tree().locals[i].buffer) return true;
        }
      }
    }
    return false;
  }

  const KernelLoops& loops_;
  const std::unique_ptr<MarkHandler> blocks_;
  const int64_t threads_;
  const std::vector<Storage>& storage_;
  const SharedSlots& slots_;
  std::vector<ir::Buffer> slot_buffers_;
  std::map<std::string, std::vector<Expr>> firsts_;  // of each component's box
  // At the place that is being written.
  Expr thread_, round_;
  std::vector<Expr> values_;  // of the shared loops
};

// ---- where arrays are

class StoragePlanner {
 public:
  StoragePlanner(const std::vector<Stage>& stages, const Group& group, const GroupTree& tree,
                 const KernelLoops& loops, const GpuGroupOptions& options)
      : stages_(stages), group_(group), tree_(tree), loops_(loops), options_(options) {}

  void Plan() {
    storage_.resize(tree_.locals.size());
    for (size_t i = 0; options_.registers && i < storage_.size(); ++i) FindOwn(i);
    // Phases in the order in which the stages run: a new one where a stage reads what was stored in this one.
    std::map<int, int> phase_of;
    int phase = 0;
    std::vector<int> order = group_.producers;
    order.push_back(group_.root);
    for (const int s : order) {
      for (const int before : stages_[At(s)].reads) {
        const auto it = phase_of.find(before);
        if (it != phase_of.end() && it->second == phase && !IsOwn(before)) ++phase;
      }
      phase_of[s] = phase;
    }
    phases_ = phase + 1;
    std::vector<BlockArray> arrays;
    std::vector<size_t> locals;
    for (size_t i = 0; i < tree_.locals.size(); ++i) {
      if (storage_[i].is_own) continue;
      const int stage = StageOf(i);
      int last = phase_of.at(stage);
      for (const int s : order) {
        if (stages_[At(s)].reads.contains(stage)) last = std::max(last, phase_of.at(s));
      }
      arrays.push_back({.type = tree_.locals[i].buffer->type,
                        .elements = tree_.locals[i].box.elements(),
                        .first = phase_of.at(stage),
                        .last = last});
      locals.push_back(i);
    }
    slots_ = AssignSlots(arrays);
    for (size_t i = 0; i < locals.size(); ++i) storage_[locals[i]].slot = slots_.slot_of[i];
  }

  const std::vector<Storage>& storage() const { return storage_; }
  const SharedSlots& slots() const { return slots_; }
  int phases() const { return phases_; }

 private:
  int StageOf(size_t local) const {
    for (const int p : group_.producers) {
      if (stages_[At(p)].buffers[0] == tree_.locals[local].buffer) return p;
    }
    POLYNAO_UNREACHABLE(static_cast<int>(local));
  }

  bool IsOwn(int stage) const {
    for (size_t i = 0; i < storage_.size(); ++i) {
      if (storage_[i].is_own && StageOf(i) == stage) return true;
    }
    return false;
  }

  // Whether all components that access the array number their instances in the same way, and each element belongs to one number.
  void FindOwn(size_t i) {
    const TileLocal& local = tree_.locals[i];
    Storage own;
    own.is_own = true;
    const ThreadLoops* numbering = nullptr;
    std::optional<isl::union_map> number_of;  // { [[t..] -> A[a]] -> [m..] }
    for (const auto& [name, component] : loops_.components()) {
      std::optional<isl::union_map> elements;
      for (const Statement* s : component.stage->statements) {
        for (const Access& access : s->accesses) {
          if (access.buffer != local.buffer) continue;
          const isl::union_map one =
              access.map.intersect_domain(s->domain).to_union_map().intersect_domain(
                  component.instances.range());
          elements = elements ? elements->unite(one) : one;
        }
      }
      if (!elements || elements->is_empty()) continue;
      if (component.box.sizes.empty()) return;
      if (numbering == nullptr) numbering = &component;
      if (component.box.sizes != numbering->box.sizes) return;
      for (size_t d = 0; d < component.box.first.size(); ++d) {
        if (isl_pw_aff_is_equal(component.box.first[d].get(), numbering->box.first[d].get()) !=
            isl_bool_true)
          return;
      }
      const isl::union_map by_tile = component.instances.reverse().range_product(*elements);
      const isl::union_map one = by_tile.reverse().apply_range(component.members);
      number_of = number_of ? number_of->unite(one) : one;
    }
    if (!number_of || !number_of->is_single_valued()) return;
    if (numbering->elements() > kMaxOwn * options_.threads) return;
    int64_t count = (numbering->elements() + options_.threads - 1) / options_.threads;
    // { [[t..] -> [m..]] -> A[a] }: along each dimension one element, or all that the tile has.
    const isl::map by_number = isl::manage(isl_map_uncurry(
        isl_map_range_reverse(isl_map_curry(number_of->as_map().coalesce().release()))));
    const std::optional<Box> box = BoxOf(by_number);
    if (!box) return;
    for (size_t d = 0; d < box->sizes.size(); ++d) {
      if (box->sizes[d] == 1) continue;
      own.kept.push_back(d);
      own.sizes.push_back(local.box.sizes[d]);
      if (__builtin_mul_overflow(count, local.box.sizes[d], &count) || count > kMaxOwn) return;
    }
    own.rounds = (numbering->elements() + options_.threads - 1) / options_.threads;
    storage_[i] = std::move(own);
  }

  const std::vector<Stage>& stages_;
  const Group& group_;
  const GroupTree& tree_;
  const KernelLoops& loops_;
  const GpuGroupOptions& options_;
  std::vector<Storage> storage_;
  SharedSlots slots_;
  int phases_ = 1;
};

}  // namespace

std::vector<int> PhasesOf(const std::vector<Stage>& stages, const Group& group, bool at_end) {
  std::vector<int> order = group.producers;
  order.push_back(group.root);
  std::vector<int> phases(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (stages[At(order[i])].after.contains(order[j]))
        phases[i] = std::max(phases[i], phases[j] + 1);
    }
  }
  if (!at_end) return phases;
  for (size_t i = order.size(); i-- > 0;) {
    int last = phases.back();
    for (size_t j = i + 1; j < order.size(); ++j) {
      if (stages[At(order[j])].after.contains(order[i])) last = std::min(last, phases[j] - 1);
    }
    phases[i] = last;
  }
  return phases;
}

std::string GridObstacle(const std::vector<int64_t>& tiles) {
  if (tiles.size() > kMaxAxes) {
    return StrCat("tiles along ", tiles.size(), " dimensions: a grid of blocks has at most ",
                  kMaxAxes);
  }
  for (size_t i = 0; i + 1 < tiles.size(); ++i) {
    if (tiles[i] <= kMaxOuterBlocks) continue;
    return StrCat(
        tiles[i],
        " tiles along a dimension that is not the last one to be cut: a grid has at most ",
        kMaxOuterBlocks, " blocks along y and z");
  }
  return "";
}

absl::StatusOr<GpuGroup> GenerateGpuGroup(const Scop& part, const std::vector<Stage>& stages,
                                          const Group& group, const GpuGroupOptions& options) {
  std::vector<int64_t> tiles;
  const ir::Buffer root = stages[At(group.root)].buffers[0];
  for (size_t d = 0; d < group.sizes.size(); ++d) {
    if (group.sizes[d] == 0) continue;
    const Expr extent = root->extents[d];
    // What is not known fits.
    tiles.push_back(extent.Is(ir::ExprKind::kIntImm)
                        ? (extent.int_value() + group.sizes[d] - 1) / group.sizes[d]
                        : 1);
  }
  if (const std::string obstacle = GridObstacle(tiles); !obstacle.empty())
    return absl::FailedPreconditionError(obstacle);
  struct Variant {
    Group group;
    std::unique_ptr<KernelLoops> loops;
    std::unique_ptr<GroupTree> tree;
    std::unique_ptr<StoragePlanner> storage;
  };
  std::optional<Variant> best;
  for (const bool at_end : {false, true}) {
    Variant one{.group = group, .loops = nullptr, .tree = nullptr, .storage = nullptr};
    const std::vector<int> phases = PhasesOf(stages, group, at_end);
    std::vector<size_t> order(group.producers.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(phases[a], a) < std::pair(phases[b], b);
    });
    for (size_t i = 0; i < order.size(); ++i) one.group.producers[i] = group.producers[order[i]];
    if (best && best->group.producers == one.group.producers) break;
    one.loops = std::make_unique<KernelLoops>(part, stages, group);
    ASSIGN_OR_RETURN(GroupTree tree, MakeGroupTree(part, stages, one.group, one.loops.get()));
    one.tree = std::make_unique<GroupTree>(std::move(tree));
    one.storage =
        std::make_unique<StoragePlanner>(stages, one.group, *one.tree, *one.loops, options);
    one.storage->Plan();
    if (!best || one.storage->slots().bytes() < best->storage->slots().bytes())
      best = std::move(one);
  }
  const int64_t bytes = best->storage->slots().bytes();
  if (bytes > options.shared_bytes) {
    return absl::ResourceExhaustedError(StrCat(
        "a tile needs ", bytes, " bytes of shared memory: a block has ", options.shared_bytes));
  }
  KernelHandler handler(*best->tree, *best->loops, options.threads, best->storage->storage(),
                        best->storage->slots());
  GpuGroup result{.code = {}, .phases = best->storage->phases(), .shared_bytes = bytes};
  for (const Storage& storage : best->storage->storage()) result.registers += storage.is_own;
  result.code = Generate(part, best->tree->marked, &handler);
  return result;
}

}  // namespace polynao::poly
