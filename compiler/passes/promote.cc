#include "compiler/passes/promote.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/order.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

// All accesses to one buffer in a loop.
struct Accesses {
  std::vector<Expr> indices;  // of the first store; of the first load if there is none
  bool same_indices = true;   // of all
  bool is_stored = false;
  // A store that every iteration of the loop executes for all values of the inner loops around it.
  bool stores_all = false;
};

// What stands in a loop.
class Body {
 public:
  explicit Body(Stmt loop) : loop_(loop) { Visit(loop.body(), /*always=*/true); }

  // False if statements of the loop may run at the same time or have other effects than loads and stores.
  bool plain() const { return plain_; }
  // In the order of the first access.
  const std::vector<Buffer>& buffers() const { return order_; }
  const Accesses& accesses(Buffer buffer) const { return accesses_.at(buffer); }
  // The loops inside, outer ones first, with unroll and vectorize loops of constant bounds apart.
  const std::vector<Stmt>& fixed_loops() const { return fixed_loops_; }
  bool Binds(Var var) const { return var == loop_.var() || bound_.contains(var); }
  bool IsLocal(Buffer buffer) const { return local_.contains(buffer); }

 private:
  void Add(Buffer buffer, absl::Span<const Expr> indices, bool is_store, bool always) {
    const auto [it, is_new] = accesses_.try_emplace(buffer);
    Accesses& a = it->second;
    if (is_new) {
      a.indices.assign(indices.begin(), indices.end());
      order_.push_back(buffer);
    }
    const bool is_same = absl::Span<const Expr>(a.indices) == indices;
    a.same_indices = a.same_indices && is_same;
    if (!is_store) return;
    if (!a.is_stored) a.indices.assign(indices.begin(), indices.end());
    a.is_stored = true;
    a.stores_all = a.stores_all || always;
  }

  void Visit(Stmt s, bool always) {
    for (Expr e : s.operands()) {
      ir::ForEachExpr(e, [&](Expr part) {
        if (part.Is(ExprKind::kLoad)) Add(Buffer(part.buffer()), part.operands(), false, always);
        if (part.Is(ExprKind::kAddress)) plain_ = false;
        if (part.Is(ExprKind::kLet)) bound_.insert(part.var());
      });
    }
    switch (s.kind()) {
      case StmtKind::kStore:
        Add(s.buffer(), s.indices(), true, always);
        return;
      case StmtKind::kEvaluate:
        plain_ = false;
        return;
      case StmtKind::kAllocate:
        local_.insert(s.buffer());
        break;
      case StmtKind::kLet:
        bound_.insert(s.var());
        break;
      case StmtKind::kIf:
        always = false;
        break;
      case StmtKind::kFor: {
        bound_.insert(s.var());
        const bool constant = s.min().IsConst() && s.extent().IsConst();
        const bool in_lanes =
            s.for_kind() == ForKind::kUnroll || s.for_kind() == ForKind::kVectorize;
        if (s.for_kind() == ForKind::kParallel || s.for_kind() == ForKind::kThread) plain_ = false;
        always = always && constant && s.extent().int_value() > 0;
        if (constant && in_lanes) fixed_loops_.push_back(s);
        break;
      }
      default:
        break;
    }
    for (Stmt child : s.children()) Visit(child, always);
  }

  Stmt loop_;
  bool plain_ = true;
  std::vector<Buffer> order_;
  absl::flat_hash_map<Buffer, Accesses> accesses_;
  std::vector<Stmt> fixed_loops_;
  absl::flat_hash_set<Var> bound_;
  absl::flat_hash_set<Buffer> local_;
};

// Whether the loop stores no element of the buffer but those at `indices`, and loads from other places only what these
// never are: rows above, when it updates row c2 by all rows k < c2.
//
//   for (k, k0, min(c2 - k0, 8)) { for (j, 0, 32) { A[c2, j] = A[c2, j] - A[c2, k] * A[k, j] } }
class OtherPlaces {
 public:
  // `lanes`: the loops inside whose variables the indices have; they have no other variable of the body.
  OtherPlaces(ir::Context& context, Buffer buffer, absl::Span<const Expr> indices,
              absl::Span<const Stmt> lanes)
      : buffer_(buffer), indices_(indices), analyzer_(context) {
    // The elements of all iterations, whichever one loads.
    ir::VarMap fresh;
    for (Stmt lane : lanes) {
      const Var var = context.NewVar(lane.var().name(), lane.var().type());
      analyzer_.BindLoop(var, lane.min(), lane.extent());
      fresh.emplace(lane.var(), var);
    }
    for (Expr index : indices) stored_.push_back(ir::Substitute(index, fresh));
  }

  bool NeverMeet(Stmt loop) {
    arith::Analyzer::Scope scope(analyzer_);
    arith::BindLoopWithParts(analyzer_, loop);
    return Visit(loop.body());
  }

 private:
  bool Visit(Stmt s) {
    arith::Analyzer::Scope scope(analyzer_);
    bool separate = true;
    for (Expr e : s.operands()) {
      ir::ForEachExpr(e, [&](Expr part) {
        if (part.Is(ExprKind::kLoad) && Buffer(part.buffer()) == buffer_)
          separate = separate && IsElsewhere(part.operands());
      });
    }
    if (s.Is(StmtKind::kStore) && s.buffer() == buffer_)
      separate = separate && s.indices() == indices_;
    if (s.Is(StmtKind::kLet)) analyzer_.BindLet(s.var(), s.value());
    if (s.Is(StmtKind::kFor)) arith::BindLoopWithParts(analyzer_, s);
    for (Stmt child : s.children()) separate = separate && Visit(child);
    return separate;
  }

  bool IsElsewhere(absl::Span<const Expr> load) {
    if (load == indices_) return true;
    for (size_t d = 0; d < load.size(); ++d) {
      if (load[d].type() != stored_[d].type()) continue;
      if (arith::IsLess(analyzer_, load[d], stored_[d]) ||
          arith::IsLess(analyzer_, stored_[d], load[d]))
        return true;
    }
    return false;
  }

  const Buffer buffer_;
  const absl::Span<const Expr> indices_;
  std::vector<Expr> stored_;  // the indices
  arith::Analyzer analyzer_;
};

// By how much an index grows with a variable, if that is a constant; index arithmetic does not wrap.
class Slopes {
 public:
  explicit Slopes(Var var) : var_(var) {}

  std::optional<int64_t> Of(Expr e) {
    if (e == var_) return 1;
    if (e.operands().empty()) return 0;
    if (const auto it = known_.find(e); it != known_.end()) return it->second;
    const std::optional<int64_t> slope = Compute(e);
    known_.emplace(e, slope);
    return slope;
  }

 private:
  std::optional<int64_t> Compute(Expr e) {
    const bool is_sum = e.Is(ExprKind::kAdd) || e.Is(ExprKind::kSub);
    if (!is_sum && !e.Is(ExprKind::kMul)) {
      return ir::UsesVar(e, var_) ? std::nullopt : std::optional<int64_t>(0);
    }
    const std::optional<int64_t> a = Of(e.operand(0));
    const std::optional<int64_t> b = Of(e.operand(1));
    if (!a || !b) return std::nullopt;
    if (*a == 0 && *b == 0) return 0;
    int64_t result = 0;
    bool overflows = false;
    if (e.Is(ExprKind::kMul)) {
      const Expr factor = e.operand(*a == 0 ? 0 : 1);
      if (!factor.Is(ExprKind::kIntImm)) return std::nullopt;
      overflows = __builtin_mul_overflow(*a == 0 ? *b : *a, factor.int_value(), &result);
    } else if (e.Is(ExprKind::kAdd)) {
      overflows = __builtin_add_overflow(*a, *b, &result);
    } else {
      overflows = __builtin_sub_overflow(*a, *b, &result);
    }
    return overflows ? std::nullopt : std::optional(result);
  }

  Var var_;
  absl::flat_hash_map<Expr, std::optional<int64_t>> known_;
};

// The elements of one buffer that a loop updates.
struct Tile {
  Buffer buffer;
  std::vector<Expr> indices;
  std::vector<Stmt> loops;  // whose variables the indices have, outer ones first
  int64_t bytes = 0;
  Buffer local;
};

std::optional<Tile> FindTile(const Body& body, Stmt around, Buffer buffer) {
  const Accesses& accesses = body.accesses(buffer);
  if (!accesses.stores_all || body.IsLocal(buffer)) return std::nullopt;
  Tile tile = {.buffer = buffer, .indices = accesses.indices, .loops = {}, .local = {}};
  absl::flat_hash_set<Var> free;
  for (Expr index : tile.indices) {
    bool depends_on_memory = false;
    ir::ForEachExpr(index, [&](Expr part) {
      depends_on_memory |= part.Is(ExprKind::kLoad) || part.Is(ExprKind::kCall);
    });
    if (depends_on_memory) return std::nullopt;
    const auto of_index = ir::FreeVars(index);
    free.insert(of_index.begin(), of_index.end());
  }
  for (Stmt loop : body.fixed_loops()) {
    if (free.erase(loop.var()) > 0) tile.loops.push_back(loop);
  }
  if (tile.loops.empty()) return std::nullopt;
  for (Var var : free) {
    if (body.Binds(var)) return std::nullopt;
  }
  // Each variable moves a dimension that no other one moves.
  for (Stmt loop : tile.loops) {
    Slopes slopes(loop.var());
    bool found = false;
    for (Expr index : tile.indices) {
      const bool alone = std::none_of(tile.loops.begin(), tile.loops.end(), [&](Stmt other) {
        return other != loop && ir::UsesVar(index, other.var());
      });
      const std::optional<int64_t> slope = slopes.Of(index);
      found = found || (alone && slope && *slope != 0);
    }
    if (!found) return std::nullopt;
  }
  tile.bytes = ir::ByteSize(buffer->type);
  for (Stmt loop : tile.loops) {
    if (__builtin_mul_overflow(tile.bytes, loop.extent().int_value(), &tile.bytes))
      return std::nullopt;
  }
  // A buffer of this size is one that this pass, or somebody with the same purpose, has made.
  const bool has_constant_extents = std::all_of(buffer->extents.begin(), buffer->extents.end(),
                                                [](Expr extent) { return extent.IsConst(); });
  if (has_constant_extents) {
    int64_t bytes = ir::ByteSize(buffer->type);
    for (Expr extent : buffer->extents) {
      // Past all that a register tile has.
      if (__builtin_mul_overflow(bytes, extent.int_value(), &bytes)) bytes = tile.bytes + 1;
      if (bytes > tile.bytes) break;
    }
    if (bytes <= tile.bytes) return std::nullopt;
  }
  if (accesses.same_indices) return tile;
  OtherPlaces others(around.context(), buffer, tile.indices, tile.loops);
  if (!others.NeverMeet(around)) return std::nullopt;
  return tile;
}

// Replaces accesses to the buffers of tiles by accesses to the local buffers.
class UseLocal : public ir::Mutator {
 public:
  explicit UseLocal(const std::vector<Tile>& tiles) {
    for (const Tile& tile : tiles) tiles_.emplace(tile.buffer, &tile);
  }

  Expr Mutate(Expr e) override {
    if (e.Is(ExprKind::kLoad)) {
      const auto it = tiles_.find(Buffer(e.buffer()));
      if (it != tiles_.end() && e.operands() == absl::Span<const Expr>(it->second->indices))
        return e.context().Load(it->second->local, Places(*it->second));
    }
    return ir::Mutator::Mutate(e);
  }
  Stmt Mutate(Stmt s) override {
    if (s.Is(StmtKind::kStore)) {
      const auto it = tiles_.find(s.buffer());
      if (it != tiles_.end()) {
        return s.context().Store(it->second->local, Places(*it->second), Mutate(s.value()));
      }
    }
    return ir::Mutator::Mutate(s);
  }

  static std::vector<Expr> Places(const Tile& tile) {
    std::vector<Expr> places;
    for (Stmt loop : tile.loops) {
      places.push_back(loop.min().IsInt(0) ? loop.var() : loop.var() - loop.min());
    }
    return places;
  }

 private:
  absl::flat_hash_map<Buffer, const Tile*> tiles_;
};

class Promoter {
 public:
  Promoter(ir::Function& function, const PromoteOptions& options)
      : c_(*function.context), options_(options), aliases_(function) {}

  Stmt Visit(Stmt s) {
    if (s.Is(StmtKind::kFor) && s.for_kind() == ForKind::kSerial) s = AtLoop(s);
    return ir::MapChildren(s, [&](Stmt child) { return Visit(child); });
  }

 private:
  // The loop, with the tiles that its iterations share in local buffers.
  Stmt AtLoop(Stmt loop) {
    bool extent_loads = false;
    ir::ForEachExpr(loop.extent(), [&](Expr e) {
      extent_loads |= e.Is(ExprKind::kLoad) || e.Is(ExprKind::kCall);
    });
    if (extent_loads) return loop;
    const Body body(loop);
    if (!body.plain()) return loop;
    std::vector<Tile> tiles;
    int64_t room = options_.max_bytes;
    for (Buffer buffer : body.buffers()) {
      if (aliases_.Group(buffer)) continue;
      std::optional<Tile> tile = FindTile(body, loop, buffer);
      if (!tile || tile->bytes > room) continue;
      room -= tile->bytes;
      std::vector<Expr> extents;
      for (Stmt inner : tile->loops) extents.push_back(inner.extent());
      tile->local =
          c_.NewBuffer(StrCat(buffer->name, ".tile"), buffer->type, extents, buffer->scope);
      tiles.push_back(*std::move(tile));
    }
    if (tiles.empty()) return loop;
    std::vector<Stmt> steps;
    for (const Tile& tile : tiles) steps.push_back(Copy(tile, /*in=*/true));
    steps.push_back(UseLocal(tiles).Mutate(loop));
    for (const Tile& tile : tiles) steps.push_back(Copy(tile, /*in=*/false));
    Stmt result = c_.Seq(steps);
    if (!loop.extent().IsConst()) {
      result = c_.If(c_.Int(loop.extent().type(), 0) < loop.extent(), result);
    } else if (loop.extent().int_value() <= 0) {
      return loop;
    }
    for (const Tile& tile : tiles) result = c_.Allocate(tile.local, result);
    return result;
  }

  // local[..] = buffer[..] or the other way round, over all elements of the tile.
  Stmt Copy(const Tile& tile, bool in) {
    ir::VarMap fresh;
    std::vector<Expr> places;
    std::vector<Var> vars;
    for (Stmt loop : tile.loops) {
      vars.push_back(c_.NewVar(StrCat(loop.var().name(), in ? ".in" : ".out"), loop.var().type()));
      fresh.emplace(loop.var(), vars.back());
    }
    for (Expr place : UseLocal::Places(tile)) places.push_back(ir::Substitute(place, fresh));
    std::vector<Expr> indices;
    for (Expr index : tile.indices) indices.push_back(ir::Substitute(index, fresh));
    Stmt copy = in ? c_.Store(tile.local, places, c_.Load(tile.buffer, indices))
                   : c_.Store(tile.buffer, indices, c_.Load(tile.local, places));
    for (size_t i = tile.loops.size(); i-- > 0;) {
      const Stmt loop = tile.loops[i];
      copy = c_.For(vars[i], loop.min(), loop.extent(), copy, loop.for_kind());
    }
    return copy;
  }

  ir::Context& c_;
  const PromoteOptions& options_;
  const ir::Aliases aliases_;
};

}  // namespace

absl::StatusOr<bool> Promote(ir::Function& function, const PromoteOptions& options) {
  const Stmt body = Promoter(function, options).Visit(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

PassInfo PromotePass() {
  return WithOptions<PromoteOptions>(
      {.name = "promote", .doc = "keeps array elements that a loop updates in registers"},
      {IntOption("max_bytes", &PromoteOptions::max_bytes, 0, 1 << 20,
                 "the most bytes of one loop's promoted elements")},
      FixedDefaults<PromoteOptions>,
      [](ir::Function& function, const PassEnvironment&, PromoteOptions options) {
        return Promote(function, options);
      });
}

}  // namespace polynao
