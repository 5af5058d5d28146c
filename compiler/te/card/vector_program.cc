// The tensors of a vector group under a tiling, and their schedule.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/te/card/vector_group.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"
#include "isa/levels.h"

namespace polynao::te {

using Kind = VectorNode::Kind;
using Operand = VectorNode::Operand;

class VectorGroup::Builder {
 public:
  Builder(const VectorGroup& group, const Tiling& tiling)
      : group_(group),
        t_(tiling),
        layout_(group.LayoutOf(tiling)),
        list_(group.nodes_.list),
        graph_(group.output_.graph()) {}

  absl::StatusOr<ir::Function> Build() {
    for (size_t i = 0; i < list_.size(); ++i) tensors_.push_back(Make(i));
    const Operand& result = group_.nodes_.result;
    Tensor spread;
    if (layout_.spreads_result) {
      std::vector<bool> has(t_.tile.size());
      for (int d : result.dimensions) {
        if (d >= 0) has[d] = true;
      }
      spread = Spread(list_[result.node].name, group_.output_.shape(), t_.tile, has, {},
                      [&](const Axes& at) { return Element(result, at); });
    }
    const std::string& name = group_.output_.name();
    const Shape& shape = group_.output_.shape();
    shared_ = Compute(t_.smem ? StrCat(name, ".cluster") : name, shape,
                      [&](const Axes& at) { return spread ? spread(at) : Element(result, at); });
    const Tensor y =
        t_.smem ? Compute(name, shape, [&](const Axes& at) { return shared_(at); }) : shared_;
    // A tensor may be too large under this tiling.
    RETURN_IF_ERROR(graph_.state()->status);
    Schedule s(y);
    return Program(s, y);
  }

 private:
  // A compute besides the nodes: where it is computed and by which instruction.
  struct Extra {
    Tensor tensor = {};
    int reduction = -1;  // in whose loops; -1: once for a tile
    bool is_same = false;
    bool is_parted = false;  // with each part of what is reduced
    bool pads = false;
    int64_t run = 0;  // elements that a copy repeats; 0: one of each
  };

  Expr Zero() const { return graph_.context().Int(graph_.index_type(), 0); }
  static Shape AtLeastOne(Shape shape) {
    if (shape.empty()) shape.push_back(1);
    return shape;
  }

  // A compute of the graph; which inputs it reads is written down.
  template <typename F>
  Tensor Compute(const std::string& name, const Shape& shape, const F& f) {
    read_.clear();
    const Tensor tensor = graph_.Compute(name, shape, f);
    for (size_t i : read_) readers_[i].push_back(tensor);
    return tensor;
  }

  // The element that a reader at `at`, in its domain, reads.
  Expr Element(const Operand& operand, const Axes& at) {
    Axes own;
    for (int d : operand.dimensions) own.push_back(d < 0 ? Zero() : at[d]);
    return At(operand.node, own, at);
  }
  // `at`: of the reader; scalars are read by the axis of scalars.
  Expr At(size_t i, const Axes& own, const Axes& at) {
    if (layout_.nodes[i].is_inlined) return CopyElement(i, own);
    if (list_[i].kind == Kind::kInput) read_.insert(i);
    if (!own.empty()) return tensors_[i](own);
    const bool is_scalar = at.size() == 1 && list_[i].shape.empty() && scalar_reader_;
    return tensors_[i](Axes{is_scalar ? at[0] : Zero()});
  }

  // A copy's element at `own`.
  Expr CopyElement(size_t i, const Axes& own) {
    const VectorNode& node = list_[i];
    ir::VarMap by;
    for (size_t d = 0; d < node.axes.size(); ++d) {
      if (node.axes[d].Is(ir::ExprKind::kVar)) by[node.axes[d]] = own[d];
    }
    Axes indices;
    for (Expr index : node.load.operands()) indices.push_back(ir::Substitute(index, by));
    const Expr element = At(node.operands[0].node, indices, {});
    if (!node.pads()) return element;
    // select(condition, load, constant)
    return Select(ir::Substitute(node.value.operand(0), by), element, node.value.operand(2));
  }

  // Copies of elements along the dimensions that `has` lacks, by way of runs of them where that pays.
  template <typename F>
  Tensor Spread(const std::string& name, const Shape& shape, const Shape& box,
                const std::vector<bool>& has, const Extra& where, const F& element);

  Tensor Make(size_t i);
  // An operand of a lane as a longer row; the dimensions of the lane that it has.
  std::pair<Tensor, std::vector<size_t>> Repeat(size_t i, size_t o);
  Tensor MakeLane(size_t i);
  Tensor MakeTurned(size_t i);
  Tensor MakeReduce(size_t i);
  Tensor MakeProduct(size_t i);
  // Brings the weights of product i to the cores' WMEM: before the loop `tid` of the output's stage, inside `outer`.
  void PlaceWeights(Schedule& s, const Tensor& y, size_t i, Axis outer, Axis tid);
  // Puts an input or a copy inside the loop over parts of weights in SMEM; false if it does not belong there.
  bool MadeByParts(Schedule& s, size_t i) {
    const auto it = parts_.find(i);
    if (it == parts_.end()) return false;
    Stage& stage = s[on_chip_[i]];
    stage.ComputeAt(*it->second.first, it->second.second).SetScope(isa::kNmem);
    if (IsTransposed(i)) {
      TransposeEach(stage, *layout_.nodes[i].turn);
      return true;
    }
    stage.Pragma(stage.leaves()[0], list_[i].pads() && list_[i].kind == Kind::kCopy
                                        ? pragma::kPad
                                        : std::string_view("memcpy"));
    return true;
  }
  // Whether the copy itself is what an instruction transposes.
  bool IsTransposed(size_t i) const { return layout_.nodes[i].turn.has_value(); }
  // The loops of a copy that repeats runs of elements along its rows. A last, shorter run of each comes behind the
  // others of all rows, so that neither is an instruction for each row.
  static void CopyRuns(Stage& stage, int64_t length, int64_t run) {
    std::vector<Axis> axes = stage.leaves();
    const auto [runs, element] = stage.Split(axes.back(), run);
    if (length % run == 0) return;
    axes.pop_back();
    axes.insert(axes.begin(), runs);
    axes.push_back(element);
    stage.Reorder(axes);
  }
  // Loops along which a copy reads backwards come first: of each iteration it is one instruction.
  void BackwardsFirst(Stage& stage, size_t i) const;
  absl::StatusOr<ir::Function> Program(Schedule& s, const Tensor& y);
  // Loops of the output: what the cores of a cluster share, a core's part, its tiles.
  struct Loops {
    Axis around, core, tile;
  };
  // Clusters and cores share the output, each goes through its part tile by tile.
  Loops ShareOutput(Stage& y, bool has_clusters = true) const;
  // The loops over clusters and over their turns of an output that comes from SMEM, where cores share the results.
  std::pair<Axis, Axis> ShareByClusters(Schedule& s, const Tensor& y) const;
  // Computes a tensor in the loops of a reduction, with each part of what is reduced, or at `loop` of the output; by a
  // copy if no instruction is named.
  void Place(Schedule& s, const Tensor& y, const Axis& loop, const Extra& what,
             std::string_view instruction = "") const;
  void PlaceReduction(Schedule& s, const Tensor& y, const Loops& loops, size_t i);
  void PlaceNode(Schedule& s, const Tensor& y, const Loops& loops, size_t i);
  void PlaceTurned(Schedule& s, const Tensor& y, const Loops& loops, size_t i);
  void DoubleBufferMoved(Schedule& s) const;

  const VectorGroup& group_;
  const Tiling& t_;
  const Layout layout_;
  const std::vector<VectorNode>& list_;
  Graph graph_;
  std::vector<Tensor> tensors_;  // empty: an inlined copy
  std::set<size_t> read_;        // inputs, by the compute that is being made
  std::map<size_t, std::vector<Tensor>> readers_;
  std::vector<Extra> extras_;
  bool scalar_reader_ = false;
  std::map<size_t, Tensor> products_;  // their sums
  std::map<size_t, TurnedCopy> turned_;
  std::vector<Tensor> on_chip_;  // the nodes where their readers find them
  // Of what cores make together for weights in SMEM: the stage there and its loop over parts.
  std::map<size_t, std::pair<Stage*, Axis>> parts_;
  std::map<int, Axis> inner_;  // the innermost reduced loop of each reduction
  Axis part_;
  Tensor shared_;  // what the cores compute: the output, or the cluster's part of it in SMEM
};

template <typename F>
Tensor VectorGroup::Builder::Spread(const std::string& name, const Shape& shape, const Shape& box,
                                    const std::vector<bool>& has, const Extra& where,
                                    const F& element) {
  Extra extra = where;
  if (!RepeatsElements(box, has)) {
    extra.tensor = Compute(StrCat(name, ".full"), shape, element);
    extras_.push_back(extra);
    return extra.tensor;
  }
  // Each segment of a copy takes a cycle or more, so the first copies, of single elements, are few.
  Tensor from;
  for (const int64_t length : {kFirstRun, isa::kVectorGroup, shape.back()}) {
    if (from && length == from.shape().back()) break;
    Shape part = shape;
    part.back() = length;
    const int64_t run = from ? from.shape().back() : 0;
    const Tensor copies = Compute(StrCat(name, ".", length), part, [&](const Axes& own) -> Expr {
      if (run == 0) return element(own);
      Axes at = own;
      at.back() = at.back() % run;
      return from(at);
    });
    extra.tensor = copies;
    extra.run = run;
    extras_.push_back(extra);
    from = copies;
  }
  return from;
}

Tensor VectorGroup::Builder::Make(size_t i) {
  const VectorNode& node = list_[i];
  switch (node.kind) {
    case Kind::kInput: {
      const Tensor input(graph_.state(), node.input, node.output);
      return node.shape.empty() ? graph_.Reshape(input, {1}) : input;
    }
    case Kind::kCopy:
      if (layout_.nodes[i].is_inlined) return Tensor();
      if (layout_.nodes[i].turn) return MakeTurned(i);
      return Compute(StrCat(node.name, ".", i), node.shape,
                     [&](const Axes& own) { return CopyElement(i, own); });
    case Kind::kLane:
      return MakeLane(i);
    case Kind::kReduce:
      return MakeReduce(i);
    case Kind::kProduct:
      return MakeProduct(i);
  }
  return Tensor();
}

Tensor VectorGroup::Builder::MakeProduct(size_t i) {
  const VectorNode& node = list_[i];
  const Operand& rows = node.operands[0];
  const std::string name = StrCat(node.name, ".", i);
  Tensor dense;  // the rows without gaps
  if (layout_.nodes[i].has_copy) {
    dense = Compute(StrCat(name, ".rows"), list_[rows.node].shape,
                    [&](const Axes& own) { return At(rows.node, own, {}); });
    extras_.push_back({.tensor = dense, .is_same = layout_.nodes[i].is_same});
  }
  const ReduceAxis r = graph_.ReduceAxisOf("r", node.reduced[0]);
  products_[i] = Compute(name, node.shape, [&](const Axes& at) {
    Axes domain = at;
    domain.push_back(r);
    const auto factor = [&](const Operand& operand) {
      Axes own;
      for (int d : operand.dimensions) own.push_back(d < 0 ? Zero() : domain[d]);
      const Expr element = dense && &operand == &rows ? dense(own) : At(operand.node, own, {});
      return element.type() == node.type ? element : element.context().Cast(node.type, element);
    };
    return Body(Reducer::kSum, factor(rows) * factor(node.operands[1]), {r});
  });
  if (node.shape.back() > 1) return products_[i];
  // Sums of one channel stand apart by the unit's lanes, with nothing that says so to those who read them.
  const Tensor sums = products_[i];
  const Tensor channel = Compute(StrCat(name, ".channel"), node.shape, sums);
  extras_.push_back({.tensor = channel, .is_same = layout_.nodes[i].is_same});
  return channel;
}

std::pair<Tensor, std::vector<size_t>> VectorGroup::Builder::Repeat(size_t i, size_t o) {
  const VectorNode& node = list_[i];
  const Placed& placed = layout_.nodes[i];
  const Operand& operand = node.operands[o];
  const Placed& source = layout_.nodes[group_.SourceOfRows(layout_, operand.node)];
  // What loops of a reduction run over comes first, so that what is one row stands side by side.
  std::vector<size_t> order;
  for (const bool is_reduced : {true, false}) {
    for (size_t d = 0; d < node.shape.size(); ++d) {
      const bool has =
          std::count(operand.dimensions.begin(), operand.dimensions.end(), static_cast<int>(d)) > 0;
      if ((placed.in_loop && node.is_reduced[d]) != is_reduced) continue;
      if (has || (!is_reduced && static_cast<int>(d) >= placed.repeats[o])) order.push_back(d);
    }
  }
  Shape shape;
  for (size_t d : order) shape.push_back(node.shape[d]);
  const Tensor rows = Compute(StrCat(list_[operand.node].name, ".", i, ".", o, ".rows"), shape,
                              [&](const Axes& own) {
                                Axes at(node.shape.size());
                                for (size_t k = 0; k < order.size(); ++k) at[order[k]] = own[k];
                                return Element(operand, at);
                              });
  extras_.push_back({.tensor = rows,
                     .reduction = source.in_loop ? node.reduction : -1,
                     .is_same = source.in_loop ? placed.is_same : source.is_same,
                     .is_parted = node.reduction >= 0});
  return {rows, order};
}

Tensor VectorGroup::Builder::MakeLane(size_t i) {
  const VectorNode& node = list_[i];
  const Placed& placed = layout_.nodes[i];
  std::vector<Tensor> spreads(node.operands.size());
  std::vector<std::pair<Tensor, std::vector<size_t>>> rows(node.operands.size());
  for (size_t o = 0; o < node.operands.size(); ++o) {
    if (placed.repeats[o] >= 0) rows[o] = Repeat(i, o);
  }
  for (size_t o = 0; o < node.operands.size(); ++o) {
    if (placed.uses[o] != Use::kSpread) continue;
    std::vector<bool> has(node.shape.size());
    for (int d : node.operands[o].dimensions) {
      if (d >= 0) has[d] = true;
    }
    spreads[o] = Spread(StrCat(list_[node.operands[o].node].name, ".", i, ".", o),
                        AtLeastOne(node.shape), placed.box, has,
                        {.reduction = placed.in_loop ? node.reduction : -1,
                         .is_same = placed.is_same,
                         .is_parted = node.reduction >= 0},
                        [&](const Axes& at) { return Element(node.operands[o], at); });
  }
  scalar_reader_ = node.shape.empty();
  const Tensor lane =
      Compute(StrCat(node.name, ".", i), AtLeastOne(node.shape), [&](const Axes& at) {
        absl::flat_hash_map<Expr, Expr> elements;
        for (size_t o = 0; o < node.operands.size(); ++o) {
          if (rows[o].first) {
            Axes own;
            for (size_t d : rows[o].second) own.push_back(at[d]);
            elements[node.step.elements[o]] = rows[o].first(own);
            continue;
          }
          elements[node.step.elements[o]] =
              spreads[o] ? spreads[o](at) : Element(node.operands[o], at);
        }
        return ir::Replace(node.step.value, elements);
      });
  scalar_reader_ = false;
  return lane;
}

Tensor VectorGroup::Builder::MakeTurned(size_t i) {
  const VectorNode& node = list_[i];
  turned_[i] = MakeTurn(
      StrCat(node.name, ".", i), *layout_.nodes[i].turn,
      [&](const std::string& name, const Shape& shape,
          const std::function<Expr(const Axes&)>& element) {
        return Compute(name, shape, element);
      },
      [&](const Axes& at) { return CopyElement(i, at); });
  return turned_[i].result;
}

Tensor VectorGroup::Builder::MakeReduce(size_t i) {
  const VectorNode& node = list_[i];
  const Placed& placed = layout_.nodes[i];
  const size_t rank = node.shape.size();
  const Shape results = AtLeastOne(node.shape);
  // The element at `own` of the results and `r` of the reduced dimensions.
  const auto element = [&](const Axes& own, const Axes& r) {
    Axes at(own.begin(), own.begin() + static_cast<ptrdiff_t>(rank));
    at.insert(at.end(), r.begin(), r.end());
    return Element(node.operands[0], at);
  };
  const std::string name = StrCat(node.name, ".", i);
  if (t_.along) {
    int64_t count = 1;
    for (int64_t extent : node.reduced) count *= extent;
    const int64_t row = RoundUp(count, isa::kVectorGroup);
    // Position k of a row as places of the reduced dimensions.
    const auto places = [&](Expr k) {
      Axes r(node.reduced.size());
      for (size_t d = node.reduced.size(); d-- > 0;) {
        r[d] = d == 0 ? k : k % node.reduced[d];
        k = k / node.reduced[d];
      }
      return r;
    };
    Shape shape = results;
    shape.push_back(row);
    Tensor rows;
    if (placed.has_copy) {
      rows = Compute(StrCat(name, ".rows"), shape, [&](const Axes& at) {
        const Expr value = element(at, places(at.back()));
        const Expr nothing = te::Identity(node.reducer, graph_.context(), node.type);
        return row == count ? value : Select(at.back() < count, value, nothing);
      });
      extras_.push_back({.tensor = rows, .is_same = placed.is_same, .pads = row != count});
    }
    const ReduceAxis k = graph_.ReduceAxisOf("k", row);
    return Compute(name, results, [&](const Axes& at) {
      Axes own = at;
      own.push_back(k);
      return Body(node.reducer, rows ? rows(own) : element(at, places(k)), {k});
    });
  }
  std::vector<ReduceAxis> axes;
  for (size_t r = 0; r < node.reduced.size(); ++r) {
    axes.push_back(graph_.ReduceAxisOf(StrCat("r", r), node.reduced[r]));
  }
  Tensor gathered;
  if (placed.has_copy) {
    Shape shape = node.reduced;
    shape.insert(shape.end(), results.begin(), results.end());
    const auto count = static_cast<ptrdiff_t>(node.reduced.size());
    gathered = Compute(StrCat(name, ".at"), shape, [&](const Axes& at) {
      return element(Axes(at.begin() + count, at.end()), Axes(at.begin(), at.begin() + count));
    });
    extras_.push_back({.tensor = gathered, .reduction = static_cast<int>(i)});
  }
  return Compute(name, results, [&](const Axes& at) {
    Axes r(axes.begin(), axes.end());
    if (!gathered) return Body(node.reducer, element(at, r), axes);
    r.insert(r.end(), at.begin(), at.end());
    return Body(node.reducer, gathered(r), axes);
  });
}

void VectorGroup::Builder::PlaceWeights(Schedule& s, const Tensor& y, size_t i, Axis outer,
                                        Axis tid) {
  const size_t weights = list_[i].operands[1].node;
  const Tensor product = products_[i];
  Tensor from = on_chip_[weights];
  if (layout_.nodes[weights].by_smem) {
    from = s.CacheRead(from, isa::kSmem, {product});
    Stage& shared = s[from];
    // Of what is turned around each core makes some products' factors, of what is loaded it loads some channels.
    const size_t rank = from.rank(), d = layout_.nodes[weights].by_parts ? rank - 1 : rank - 2;
    const auto [part, rest] =
        shared.SplitParts(shared.axis(d), group_.machine_->cores_per_cluster());
    std::vector<Axis> order = {part};
    for (size_t k = 0; k < rank; ++k) order.push_back(k == d ? rest : shared.axis(k));
    shared.Reorder(order);
    shared.ComputeAt(s[y], outer)
        .SetScope(isa::kSmem)
        .Bind(part, isa::kCoreAxis)
        .Pragma(order[1], "memcpy");
    if (layout_.nodes[weights].by_parts) {
      parts_[weights] = parts_[list_[weights].operands[0].node] = {&shared, part};
    }
  }
  const Tensor near = s.CacheRead(from, isa::kWmem, {product});
  s[near].ComputeAt(s[y], tid).SetScope(isa::kWmem).Pragma(s[near].axis(0), "memcpy");
}

absl::StatusOr<ir::Function> VectorGroup::Builder::Program(Schedule& s, const Tensor& y) {
  on_chip_ = tensors_;
  std::vector<std::pair<Tensor, bool>> of_clusters;  // and whether it moves with the turns
  for (size_t i = 0; i < list_.size(); ++i) {
    Tensor from = tensors_[i];
    const bool is_read = list_[i].kind == Kind::kInput && !readers_[i].empty();
    if (t_.smem == 1 && is_read) {
      from = s.CacheRead(from, isa::kSmem, readers_[i]);
      of_clusters.emplace_back(from, group_.MovesWithTurns(t_, i));
    }
    if (layout_.nodes[i].is_loaded) on_chip_[i] = s.CacheRead(from, isa::kNmem, readers_[i]);
  }
  if (t_.smem) {
    const auto [cluster, turn] = ShareByClusters(s, y);
    for (const auto& [part, moves] : of_clusters) {
      s[part].ComputeAt(s[y], moves ? turn : cluster).SetScope(isa::kSmem);
      s[part].Pragma(s[part].axis(0), "memcpy");
      if (moves && group_.Turns(t_) > 1) s[part].DoubleBuffer();
    }
  }
  RETURN_IF_ERROR(s.status());
  const Loops loops = ShareOutput(s[shared_], !t_.smem);
  for (size_t i = 0; i < list_.size(); ++i) {
    if (list_[i].kind == Kind::kProduct) PlaceWeights(s, y, i, loops.around, loops.core);
  }
  // Reductions first: others are computed in their loops.
  for (size_t i = list_.size(); i-- > 0;) {
    if (list_[i].kind == Kind::kReduce) PlaceReduction(s, shared_, loops, i);
  }
  for (size_t i = 0; i < list_.size(); ++i) PlaceNode(s, shared_, loops, i);
  for (const Extra& extra : extras_) {
    if (extra.run > 0) CopyRuns(s[extra.tensor], extra.tensor.shape().back(), extra.run);
    Place(s, shared_, extra.is_same ? loops.core : loops.tile, extra);
  }
  DoubleBufferMoved(s);
  return Lower(s);
}

std::pair<Axis, Axis> VectorGroup::Builder::ShareByClusters(Schedule& s, const Tensor& y) const {
  const int64_t turns = group_.Turns(t_);
  auto [cid, rest] = s[y].Split(s[y].axis(t_.split), t_.core[t_.split] * group_.RunsOfCluster(t_));
  Axis turn = cid;
  if (turns > 1) std::tie(cid, turn) = s[y].Split(cid, turns);
  std::vector<Axis> order = {cid};
  if (turns > 1) order.push_back(turn);
  const size_t inside = order.size();
  for (size_t d = 0; d < y.rank(); ++d) order.push_back(d == t_.split ? rest : s[y].axis(d));
  s[y].Reorder(order).Bind(cid, isa::kClusterAxis).Pragma(order[inside], "memcpy");
  s[shared_].ComputeAt(s[y], turn).SetScope(isa::kSmem);
  if (turns > 1) s[shared_].DoubleBuffer();
  return {cid, turn};
}

VectorGroup::Builder::Loops VectorGroup::Builder::ShareOutput(Stage& y, bool has_clusters) const {
  const int64_t runs = group_.RunsOfCluster(t_);
  Axis cid, together, core, side;
  std::vector<Axis> outer, tiles, elements;
  const std::vector<Axis> axes = y.leaves();
  for (size_t d = 0; d < axes.size(); ++d) {
    Axis rest = axes[d];
    if (d == t_.split) {
      if (has_clusters) std::tie(cid, rest) = y.Split(rest, t_.core[d] * runs);
      std::tie(core, rest) = y.Split(rest, t_.core[d]);
    } else if (t_.across > 1 && d == t_.apart) {
      if (t_.across > group_.card_.cores) {
        std::tie(together, rest) = y.Split(rest, t_.core[d] * group_.card_.cores);
      }
      std::tie(side, rest) = y.Split(rest, t_.core[d]);
    }
    const auto [tile, element] = y.Split(rest, t_.tile[d]);
    (group_.IsOuter(d) ? outer : tiles).push_back(tile);
    elements.push_back(element);
  }
  if (tiles.empty()) {
    // One tile for each of the outer ones.
    tiles.resize(1);
    std::tie(tiles[0], elements[0]) = y.Split(elements[0], t_.tile[0]);
  }
  std::vector<Axis> order;
  if (has_clusters) order.push_back(cid);
  if (together) order.push_back(together);
  order.insert(order.end(), outer.begin(), outer.end());
  order.push_back(core);
  if (side) order.push_back(side);
  order.insert(order.end(), tiles.begin(), tiles.end());
  order.insert(order.end(), elements.begin(), elements.end());
  y.Reorder(order);
  if (together) cid = y.Fuse(cid, together);
  Loops loops;
  loops.core = side ? y.Fuse(core, side) : core;
  loops.tile = y.Fuse(tiles);
  loops.around = outer.empty() ? cid : y.Fuse(outer);
  if (has_clusters) y.Bind(cid, isa::kClusterAxis);
  y.Bind(loops.core, isa::kCoreAxis).Pragma(elements[0], "memcpy");
  return loops;
}

void VectorGroup::Builder::Place(Schedule& s, const Tensor& y, const Axis& loop, const Extra& what,
                                 std::string_view instruction) const {
  Stage& stage = s[what.tensor];
  if (what.reduction >= 0) {
    stage.ComputeAt(s[on_chip_[what.reduction]], inner_.at(what.reduction));
  } else if (part_ && what.is_parted) {
    stage.ComputeAt(s[on_chip_[group_.parted_]], part_);
  } else {
    stage.ComputeAt(s[y], loop);
  }
  stage.SetScope(isa::kNmem);
  if (instruction.empty()) instruction = what.pads ? pragma::kPad : std::string_view("memcpy");
  stage.Pragma(stage.leaves()[0], instruction);
}

void VectorGroup::Builder::PlaceReduction(Schedule& s, const Tensor& y, const Loops& loops,
                                          size_t i) {
  Stage& stage = s[on_chip_[i]];
  stage.ComputeAt(s[y], layout_.nodes[i].is_same ? loops.core : loops.tile).SetScope(isa::kNmem);
  if (t_.along) {
    stage.Pragma(stage.leaves()[0], group_.reducers_[i].row->family);
    return;
  }
  std::vector<Axis> order;
  for (size_t r = 0; r < list_[i].reduced.size(); ++r) {
    Axis axis = stage.reduce_axis(r);
    if (r == 0 && t_.part > 0) {
      std::tie(part_, axis) = stage.Split(axis, t_.part);
      order.push_back(part_);
    }
    order.push_back(axis);
  }
  inner_[static_cast<int>(i)] = order.back();
  const size_t rank = AtLeastOne(list_[i].shape).size();
  for (size_t d = 0; d < rank; ++d) order.push_back(stage.axis(d));
  stage.Reorder(order);
  stage.Pragma(stage.axis(0), group_.reducers_[i].combine->family)
      .PragmaInit(stage.axis(0), "fill");
}

void VectorGroup::Builder::BackwardsFirst(Stage& stage, size_t i) const {
  std::vector<Axis> backwards, others;
  for (size_t d = 0; d < list_[i].axes.size(); ++d) {
    const bool is_backwards =
        std::any_of(group_.indices_[i].begin(), group_.indices_[i].end(),
                    [d](const Index& index) { return index.coefficients[d] < 0; });
    (is_backwards ? backwards : others).push_back(stage.axis(d));
  }
  if (backwards.empty()) return;
  backwards.insert(backwards.end(), others.begin(), others.end());
  stage.Reorder(backwards);
}

void VectorGroup::Builder::PlaceNode(Schedule& s, const Tensor& y, const Loops& loops, size_t i) {
  const Placed& placed = layout_.nodes[i];
  const VectorNode& node = list_[i];
  const Axis& loop = placed.is_same ? loops.core : loops.tile;
  const int reduction = placed.in_loop ? node.reduction : -1;
  switch (node.kind) {
    case Kind::kInput:
      if (!placed.is_loaded || MadeByParts(s, i)) break;
      Place(s, y, loop, {.tensor = on_chip_[i], .is_parted = static_cast<int>(i) < group_.parted_});
      break;
    case Kind::kCopy:
      if (placed.turn) PlaceTurned(s, y, loops, i);
      if (placed.is_inlined || MadeByParts(s, i)) break;
      if (IsTransposed(i)) {
        s[on_chip_[i]].ComputeAt(s[y], loop).SetScope(isa::kNmem);
        TransposeEach(s[on_chip_[i]], *placed.turn);
        break;
      }
      BackwardsFirst(s[on_chip_[i]], i);
      Place(s, y, loop,
            {.tensor = on_chip_[i],
             .reduction = reduction,
             .is_parted = node.reduction >= 0,
             .pads = node.pads()});
      break;
    case Kind::kLane:
      Place(s, y, loop,
            {.tensor = on_chip_[i], .reduction = reduction, .is_parted = node.reduction >= 0},
            placed.form->family);
      if (placed.place >= 0) s[on_chip_[i]].InPlace(on_chip_[placed.place]);
      break;
    case Kind::kReduce:
      break;
    case Kind::kProduct:
      Place(s, y, loop, {.tensor = products_.at(i)}, node.product->family);
      break;
  }
}

void VectorGroup::Builder::PlaceTurned(Schedule& s, const Tensor& y, const Loops& loops, size_t i) {
  const Placed& placed = layout_.nodes[i];
  const TurnedCopy& turned = turned_.at(i);
  const auto of_parts = parts_.find(i);
  Stage& rows = s[turned.rows];
  if (of_parts != parts_.end()) {
    rows.ComputeAt(*of_parts->second.first, of_parts->second.second);
  } else {
    rows.ComputeAt(s[y], loops.tile);
  }
  rows.SetScope(isa::kNmem);
  rows.Pragma(rows.leaves()[0], "memcpy");
  const Turn& turn = *placed.turn;
  const bool loads_all = turn.box[turn.columns] == turn.shape[turn.columns];
  if (placed.loads_turned && loads_all) ComputeWholeRows(s, turn, turned);
  if (placed.loads_turned && !placed.is_same && !HasOneTile(t_)) rows.DoubleBuffer();
}

// What is loaded or stored has two copies: one is moved while the other is used.
void VectorGroup::Builder::DoubleBufferMoved(Schedule& s) const {
  if (HasOneTile(t_)) return;
  std::vector<bool> is_taken(list_.size()), is_moved(list_.size());
  is_moved[group_.nodes_.result.node] = true;
  for (size_t i = 0; i < list_.size(); ++i) {
    const Placed& placed = layout_.nodes[i];
    if (placed.is_loaded || placed.is_direct) is_moved[i] = true;
    if (placed.place < 0) continue;
    is_taken[placed.place] = true;
    if (is_moved[placed.place]) is_moved[i] = true;
  }
  for (size_t i = 0; i < list_.size(); ++i) {
    const Placed& placed = layout_.nodes[i];
    const bool has_storage =
        !placed.is_inlined && (list_[i].kind != Kind::kInput || placed.is_loaded);
    if (has_storage && is_moved[i] && !is_taken[i] && !placed.is_same) {
      s[on_chip_[i]].DoubleBuffer();
    }
  }
}

absl::StatusOr<ir::Function> VectorGroup::Build(const CardChoice& choice) const {
  const Tiling* t = Find(choice);
  if (t == nullptr) return InvalidInput("no such schedule of ", output_.name());
  return Builder(*this, *t).Build();
}

}  // namespace polynao::te
