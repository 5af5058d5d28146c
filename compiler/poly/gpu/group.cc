#include "compiler/poly/gpu/group.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "compiler/poly/generate/loops_around.h"
#include "compiler/poly/gpu/emit.h"
#include "compiler/poly/gpu/kernel_loops.h"
#include "compiler/poly/gpu/storage.h"

namespace polynao::poly {

namespace {

using ir::Expr;
using ir::ForKind;
using ir::Stmt;
using ir::Type;

constexpr size_t kMaxAxes = 3;
constexpr int64_t kMaxOuterBlocks = 65535;

size_t At(int i) { return static_cast<size_t>(i); }

std::string LoopName(int depth) { return StrCat("c", depth); }

class KernelHandler : public TileHandler {
 public:
  KernelHandler(const GroupTree& tree, const KernelLoops& loops, int64_t threads,
                const StoragePlan& storage)
      : TileHandler(tree),
        loops_(loops),
        blocks_(MakeGpuHandler(loops.mapping())),
        threads_(threads),
        storage_(storage.arrays),
        slots_(storage.slots),
        slot_buffers_(storage.slots.slots.size()) {}

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
    if (mark.starts_with(kInThreadsMark)) {
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
    return mark.starts_with(kInThreadsMark) ? WriteInside(*component, expressions, place)
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
    const Slot& slot = slots_.slots[At(storage.slot)];
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
    for (const char* prefix : {kThreadsMark, kInThreadsMark}) {
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
  const Slots& slots_;
  std::vector<ir::Buffer> slot_buffers_;
  std::map<std::string, std::vector<Expr>> firsts_;  // of each component's box
  // At the place that is being written.
  Expr thread_, round_;
  std::vector<Expr> values_;  // of the shared loops
};

}  // namespace

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
  for (size_t d = 0; d < group.sizes.size(); ++d) {
    if (group.sizes[d] == 0) continue;
    // What is not known fits.
    int64_t most = 1;
    for (ir::Buffer root : stages[At(group.root)].buffers) {
      const Expr extent = root->extents[d];
      if (!extent.Is(ir::ExprKind::kIntImm)) continue;
      most = std::max(most, (extent.int_value() + group.sizes[d] - 1) / group.sizes[d]);
    }
    tiles.push_back(most);
  }
  if (const std::string obstacle = GridObstacle(tiles); !obstacle.empty())
    return absl::FailedPreconditionError(obstacle);
  struct Variant {
    Group group;
    std::unique_ptr<KernelLoops> loops;
    std::unique_ptr<GroupTree> tree;
    StoragePlan storage;
  };
  std::optional<Variant> best;
  for (const bool at_end : {false, true}) {
    Variant one{.group = group, .loops = nullptr, .tree = nullptr, .storage = {}};
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
        PlanStorage(stages, one.group, *one.tree, *one.loops, options.threads, options.registers);
    if (!best || one.storage.slots.bytes() < best->storage.slots.bytes()) best = std::move(one);
  }
  const int64_t bytes = best->storage.slots.bytes();
  if (bytes > options.shared_bytes) {
    return absl::ResourceExhaustedError(StrCat(
        "a tile needs ", bytes, " bytes of shared memory: a block has ", options.shared_bytes));
  }
  KernelHandler handler(*best->tree, *best->loops, options.threads, best->storage);
  GpuGroup result{.code = {}, .phases = best->storage.phases, .shared_bytes = bytes};
  for (const Storage& storage : best->storage.arrays) result.registers += storage.is_own;
  result.code = Generate(part, best->tree->marked, &handler);
  return result;
}

}  // namespace polynao::poly
