#include "compiler/te/card/column_sums.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"
#include "isa/levels.h"

namespace polynao::te {
namespace {

using ir::Buffer;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// The store that is all that a nest of loops and branches does.
std::optional<Stmt> OnlyStore(Stmt s) {
  while (s.Is(StmtKind::kFor) || s.Is(StmtKind::kIf)) {
    if (s.Is(StmtKind::kIf) && !s.else_case().IsEmpty()) return std::nullopt;
    s = s.Is(StmtKind::kFor) ? s.body() : s.then_case();
  }
  return s.Is(StmtKind::kStore) ? std::optional(s) : std::nullopt;
}

// The variable of the innermost loop; empty if there is none.
Expr InnermostVar(Stmt s) {
  Expr var;
  while (s.Is(StmtKind::kFor) || s.Is(StmtKind::kIf)) {
    if (s.Is(StmtKind::kFor)) var = s.var();
    s = s.Is(StmtKind::kFor) ? s.body() : s.then_case();
  }
  return var;
}

// The nest with another store, and variables of its own.
class OtherStore : public ir::Mutator {
 public:
  OtherStore(Buffer to, const std::function<Expr(absl::Span<const Expr>)>& value)
      : to_(to), value_(value) {}
  using ir::Mutator::Mutate;
  Stmt Mutate(Stmt s) override {
    if (!s.Is(StmtKind::kStore)) return MutateChildren(s);
    const absl::Span<const Expr> at = s.value().operands();
    return s.context().Store(to_, at, value_(at));
  }

 private:
  const Buffer to_;
  const std::function<Expr(absl::Span<const Expr>)>& value_;
};

class Adder : public ir::Mutator {
 public:
  Adder(ir::Function& function, const std::vector<ColumnSum>& sums, bool is_stored,
        int64_t channel_clusters, int64_t across)
      : c_(*function.context),
        sums_(sums),
        output_(function.params.back().buffer),
        is_stored_(is_stored),
        channel_clusters_(channel_clusters),
        across_(across) {}

  absl::Status Run(ir::Function& function) {
    const Stmt body = Mutate(function.body);
    if (!is_done_) {
      return InvalidInput("the sums of ", output_->name, ": it is not stored tile by tile");
    }
    function.body = body;
    if (!is_stored_) function.params.pop_back();
    for (Buffer partial : partial_) {
      function.params.push_back(
          {.var = {}, .buffer = partial, .access = ir::Access::kOut, .scope = ""});
    }
    return absl::OkStatus();
  }

  using ir::Mutator::Mutate;
  Stmt Mutate(Stmt s) override {
    if (s.Is(StmtKind::kFor) && s.name() == isa::kClusterAxis) cluster_ = s;
    if (s.Is(StmtKind::kFor) && s.name() == isa::kCoreAxis) {
      const Stmt loop = MutateChildren(s);
      return is_found_ ? WithSums(loop) : loop;
    }
    if (s.Is(StmtKind::kPragma)) {
      const std::optional<Stmt> store = OnlyStore(s.body());
      if (store && store->buffer() == output_) return WithSteps(s, *store);
    }
    return MutateChildren(s);
  }

 private:
  Expr Index(int64_t value) const { return c_.Int(output_->extents[0].type(), value); }
  static int64_t ExtentOf(Expr e) { return e.Is(ExprKind::kIntImm) ? e.int_value() : -1; }

  // The tile's store, and the steps of the sums behind it.
  Stmt WithSteps(Stmt pragma, Stmt store) {
    if (is_found_ || !store.value().Is(ExprKind::kLoad) || !cluster_) return pragma;
    if (!InnermostVar(pragma.body())) return pragma;
    const Buffer tile(store.value().buffer());
    is_found_ = true;
    channel_ = store.indices().back();
    column_ = InnermostVar(pragma.body());
    extents_.assign(tile->extents.begin(), tile->extents.end());
    std::vector<Stmt> stmts;
    if (is_stored_) stmts.push_back(pragma);
    std::vector<Buffer> temporaries;
    const auto nest = [&](std::string_view instruction, Buffer to,
                          const std::function<Expr(absl::Span<const Expr>)>& value) {
      stmts.push_back(
          c_.Pragma(instruction, {},
                    ir::CloneWithFreshBindings(OtherStore(to, value).Mutate(pragma.body()))));
    };
    // What several sums compute is computed once.
    absl::flat_hash_map<Expr, Buffer> known;
    const absl::Span<const Expr> here = store.value().operands();
    for (const ColumnSum& sum : sums_) {
      std::vector<Buffer> values;
      for (const Step& step : sum.steps.list) {
        if (step.tensor != nullptr) {
          values.push_back(tile);
          continue;
        }
        const auto value = [&](absl::Span<const Expr> at) {
          absl::flat_hash_map<Expr, Expr> elements;
          for (size_t o = 0; o < step.operands.size(); ++o) {
            elements[step.elements[o]] = c_.Load(values[step.operands[o]], at);
          }
          return ir::Replace(step.value, elements);
        };
        const auto [it, is_new] = known.try_emplace(value(here));
        if (is_new) {
          it->second =
              c_.NewBuffer(StrCat(sum.name, ".", values.size()), step.type, extents_, isa::kNmem);
          temporaries.push_back(it->second);
          nest(step.instruction->family, it->second, value);
        }
        values.push_back(it->second);
      }
      const Buffer value = values[sum.steps.result];
      sums_of_tiles_.push_back(
          c_.NewBuffer(StrCat(sum.name, ".tile"), value->type, extents_, isa::kNmem));
      const Buffer to = sums_of_tiles_.back();
      nest("add", to,
           [&](absl::Span<const Expr> at) { return c_.Load(to, at) + c_.Load(value, at); });
    }
    Stmt body = c_.Seq(stmts);
    for (Buffer buffer : temporaries) body = c_.Allocate(buffer, body);
    return body;
  }

  // for (i) for (j) .. body(indices), one loop for each of the first `count` dimensions of a tile.
  Stmt Loops(size_t count, const std::function<Stmt(std::vector<Expr>)>& body) {
    std::vector<Expr> vars;
    for (size_t d = 0; d < count; ++d) vars.push_back(c_.NewVar("s", extents_[d].type()));
    Stmt s = body(vars);
    for (size_t d = count; d-- > 0;) s = c_.For(vars[d], Index(0), extents_[d], s);
    return s;
  }

  // The loop over cores, in which each adds up what it has.
  Stmt WithSums(Stmt loop) {
    const size_t rank = extents_.size();
    const int64_t cores = ExtentOf(loop.extent());
    const int64_t clusters = ExtentOf(cluster_.extent());
    const int64_t runs = CeilDiv(cores, across_);  // of rows, in a cluster
    const int64_t parts = CeilDiv(clusters, channel_clusters_) * runs;
    const Expr channels = output_->extents.back();
    std::vector<Stmt> before, behind;
    std::vector<Buffer> buffers;
    for (size_t i = 0; i < sums_.size(); ++i) {
      const Buffer tile = sums_of_tiles_[i];
      const Expr zero = c_.Const(tile->type, 0);
      const Buffer row =
          c_.NewBuffer(StrCat(sums_[i].name, ".row"), tile->type, {extents_.back()}, isa::kNmem);
      const Buffer partial =
          c_.NewBuffer(StrCat(sums_[i].name, ".parts"), tile->type, {Index(parts), channels});
      partial_.push_back(partial);
      buffers.insert(buffers.end(), {tile, row});
      before.push_back(c_.Pragma("fill", {}, Loops(rank, [&](const std::vector<Expr>& at) {
                                   return c_.Store(tile, at, zero);
                                 })));
      const auto along_row = [&](std::string_view instruction,
                                 const std::function<Stmt(Expr)>& body) {
        const Expr at = c_.NewVar("c", extents_.back().type());
        return c_.Pragma(instruction, {}, c_.For(at, Index(0), extents_.back(), body(at)));
      };
      behind.push_back(along_row("fill", [&](Expr at) { return c_.Store(row, {at}, zero); }));
      behind.push_back(Loops(rank - 1, [&](const std::vector<Expr>& pixel) {
        return along_row("add", [&](Expr at) {
          std::vector<Expr> element = pixel;
          element.push_back(at);
          return c_.Store(row, {at}, c_.Load(row, {at}) + c_.Load(tile, element));
        });
      }));
      behind.push_back(along_row("memcpy", [&](Expr at) {
        const Expr channel = ir::Substitute(channel_, {{column_, at}});
        const Expr part =
            c_.Binary(ExprKind::kDiv, cluster_.var(), Index(channel_clusters_)) * Index(runs) +
            c_.Binary(ExprKind::kDiv, loop.var(), Index(across_));
        return c_.If(channel < channels, c_.Store(partial, {part, channel}, c_.Load(row, {at})));
      }));
    }
    before.push_back(loop.body());
    before.insert(before.end(), behind.begin(), behind.end());
    Stmt body = c_.Seq(before);
    for (Buffer buffer : buffers) body = c_.Allocate(buffer, body);
    is_done_ = true;
    is_found_ = false;
    return c_.For(loop.var(), loop.min(), loop.extent(), body, loop.for_kind(), loop.name());
  }

  ir::Context& c_;
  const std::vector<ColumnSum>& sums_;
  const Buffer output_;
  const bool is_stored_;
  const int64_t channel_clusters_, across_;
  Stmt cluster_;
  bool is_found_ = false, is_done_ = false;
  Expr channel_, column_;      // of the output, over the loops; of the tile, a loop
  std::vector<Expr> extents_;  // of a tile
  std::vector<Buffer> sums_of_tiles_, partial_;
};

}  // namespace

bool IsColumnSum(const Operation& operation) {
  if (operation.kind != Operation::Kind::kCompute || operation.bodies.size() != 1) return false;
  const Body& body = operation.bodies[0];
  if (body.reducer != Reducer::kSum || operation.axes.size() != 1 ||
      body.value.type() != Type::kF32) {
    return false;
  }
  Operation elements = operation;
  elements.axes.assign(body.axes.begin(), body.axes.end());
  elements.axes.push_back(operation.axes[0]);
  elements.bodies = {Body(body.value)};
  return IsElementwise(elements) &&
         std::all_of(body.axes.begin(), body.axes.end(),
                     [](const ReduceAxis& axis) { return axis.min == 0 && axis.extent > 0; });
}

absl::Status AddColumnSums(ir::Function& function, const std::vector<ColumnSum>& sums,
                           bool is_stored, int64_t channel_clusters, int64_t across) {
  return Adder(function, sums, is_stored, channel_clusters, across).Run(function);
}

absl::StatusOr<ir::Function> AddParts(Graph graph, const Tensor& partial, const Target& target) {
  const int64_t parts = partial.shape()[0], channels = partial.shape()[1];
  const ReduceAxis part = graph.ReduceAxisOf("p", parts);
  const Tensor sum =
      graph.Compute("S", {channels}, [&](Expr c) { return ReduceSum(partial(part, c), part); });
  const int64_t tile = RoundUp(CeilDiv(channels, target.machine->cores()), isa::kVectorGroup);
  Schedule s(sum);
  const Tensor from = s.CacheRead(partial, isa::kNmem);
  const Tensor result = s.CacheWrite(sum, isa::kNmem);
  auto [core, element] = s[sum].Split(s[sum].axis(0), tile);
  auto [cid, tid] = s[sum].Split(core, target.machine->cores_per_cluster());
  s[sum].Bind(cid, isa::kClusterAxis).Bind(tid, isa::kCoreAxis).Pragma(element, "memcpy");
  Stage& rows = s[result];
  rows.ComputeAt(s[sum], tid).SetScope(isa::kNmem);
  rows.Reorder({rows.reduce_axis(0), rows.axis(0)});
  rows.Pragma(rows.axis(0), "add").PragmaInit(rows.axis(0), "fill");
  s[from].ComputeAt(s[sum], tid).SetScope(isa::kNmem).Pragma(s[from].axis(0), "memcpy");
  return Lower(s);
}

}  // namespace polynao::te
