// The tensors of a vector group under a tiling, and their schedule.
#include <algorithm>
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
      for (int d : result.dimensions) has[d] = true;
      spread = Spread(list_[result.node].name, group_.output_.shape(), t_.tile, has, {},
                      [&](const Axes& at) { return Element(result, at); });
    }
    const Tensor y = Compute(group_.output_.name(), group_.output_.shape(), [&](const Axes& at) {
      return spread ? spread(at) : Element(result, at);
    });
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
  Tensor MakeLane(size_t i);
  Tensor MakeReduce(size_t i);
  absl::StatusOr<ir::Function> Program(Schedule& s, const Tensor& y);
  // The loops of the output in which all else is computed: of a core, and of its tiles.
  struct OutputLoops {
    Axis core, tile;
  };
  OutputLoops ShareOutput(Stage& y) const;
  void ComputeIn(Schedule& s, const Tensor& tensor, Stage& y, const Axis& loop, int reduction,
                 bool is_parted, std::string_view instruction) const;
  void PlaceReduction(size_t i, Schedule& s, Stage& y, const OutputLoops& loops);
  void PlaceNode(size_t i, Schedule& s, Stage& y, const OutputLoops& loops) const;
  void DoubleBufferMoved(Schedule& s) const;

  const VectorGroup& group_;
  const Tiling& t_;
  const Layout layout_;
  const std::vector<VectorNode>& list_;
  Graph graph_;
  std::vector<Tensor> tensors_;  // empty: an inlined copy
  std::vector<Tensor> on_chip_;  // the same, inputs as they are in NMEM
  std::set<size_t> read_;        // inputs, by the compute that is being made
  std::map<size_t, std::vector<Tensor>> readers_;
  std::vector<Extra> extras_;
  bool scalar_reader_ = false;
  std::map<int, Axis> inner_;  // the innermost reduced loop of each reduction
  Axis part_;
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
    case Kind::kInput:
      return Tensor(graph_.state(), node.input, node.output);
    case Kind::kCopy:
      if (layout_.nodes[i].is_inlined) return Tensor();
      return Compute(StrCat(node.name, ".", i), node.shape,
                     [&](const Axes& own) { return CopyElement(i, own); });
    case Kind::kLane:
      return MakeLane(i);
    case Kind::kReduce:
      return MakeReduce(i);
  }
  return Tensor();
}

Tensor VectorGroup::Builder::MakeLane(size_t i) {
  const VectorNode& node = list_[i];
  const Placed& placed = layout_.nodes[i];
  std::vector<Tensor> spreads(node.operands.size());
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
          elements[node.step.elements[o]] =
              spreads[o] ? spreads[o](at) : Element(node.operands[o], at);
        }
        return Replace(node.step.value, elements);
      });
  scalar_reader_ = false;
  return lane;
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

absl::StatusOr<ir::Function> VectorGroup::Builder::Program(Schedule& s, const Tensor& y) {
  on_chip_ = tensors_;
  for (size_t i = 0; i < list_.size(); ++i) {
    if (!layout_.nodes[i].is_loaded) continue;
    on_chip_[i] = s.CacheRead(tensors_[i], isa::kNmem, readers_[i]);
  }
  const OutputLoops loops = ShareOutput(s[y]);
  // Reductions first: others are computed in their loops.
  for (size_t i = list_.size(); i-- > 0;) {
    if (list_[i].kind == Kind::kReduce) PlaceReduction(i, s, s[y], loops);
  }
  for (size_t i = 0; i < list_.size(); ++i) PlaceNode(i, s, s[y], loops);
  for (const Extra& extra : extras_) {
    if (extra.run > 0) s[extra.tensor].Split(s[extra.tensor].leaves().back(), extra.run);
    ComputeIn(s, extra.tensor, s[y], extra.is_same ? loops.core : loops.tile, extra.reduction,
              extra.is_parted, extra.pads ? pragma::kPad : std::string_view("memcpy"));
  }
  DoubleBufferMoved(s);
  return Lower(s);
}

// Clusters and cores share the output, each goes through its part tile by tile.
VectorGroup::Builder::OutputLoops VectorGroup::Builder::ShareOutput(Stage& y) const {
  const int64_t used = CeilDiv(group_.output_.shape()[t_.split], t_.core[t_.split]);
  const int64_t runs = std::min(group_.machine_->cores_per_cluster() / t_.across, used);
  Axis cid, core, side;
  std::vector<Axis> tiles, elements;
  const std::vector<Axis> axes = y.leaves();
  for (size_t d = 0; d < axes.size(); ++d) {
    Axis rest = axes[d];
    if (d == t_.split) {
      std::tie(cid, rest) = y.Split(rest, t_.core[d] * runs);
      std::tie(core, rest) = y.Split(rest, t_.core[d]);
    } else if (t_.across > 1 && d == t_.apart) {
      std::tie(side, rest) = y.Split(rest, t_.core[d]);
    }
    const auto [tile, element] = y.Split(rest, t_.tile[d]);
    tiles.push_back(tile);
    elements.push_back(element);
  }
  std::vector<Axis> order = {cid, core};
  if (side) order.push_back(side);
  order.insert(order.end(), tiles.begin(), tiles.end());
  order.insert(order.end(), elements.begin(), elements.end());
  y.Reorder(order);
  OutputLoops loops;
  loops.core = side ? y.Fuse(core, side) : core;
  loops.tile = y.Fuse(tiles);
  y.Bind(cid, isa::kClusterAxis).Bind(loops.core, isa::kCoreAxis).Pragma(elements[0], "memcpy");
  return loops;
}

// In the loops of node `reduction`, with each part of what is reduced, or else at `loop` of the output.
void VectorGroup::Builder::ComputeIn(Schedule& s, const Tensor& tensor, Stage& y, const Axis& loop,
                                     int reduction, bool is_parted,
                                     std::string_view instruction) const {
  Stage& stage = s[tensor];
  if (reduction >= 0) {
    stage.ComputeAt(s[on_chip_[reduction]], inner_.at(reduction));
  } else if (part_ && is_parted) {
    stage.ComputeAt(s[on_chip_[group_.parted_]], part_);
  } else {
    stage.ComputeAt(y, loop);
  }
  stage.SetScope(isa::kNmem);
  if (!instruction.empty()) stage.Pragma(stage.leaves()[0], instruction);
}

void VectorGroup::Builder::PlaceReduction(size_t i, Schedule& s, Stage& y,
                                          const OutputLoops& loops) {
  Stage& stage = s[on_chip_[i]];
  stage.ComputeAt(y, layout_.nodes[i].is_same ? loops.core : loops.tile).SetScope(isa::kNmem);
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

void VectorGroup::Builder::PlaceNode(size_t i, Schedule& s, Stage& y,
                                     const OutputLoops& loops) const {
  const Placed& placed = layout_.nodes[i];
  const VectorNode& node = list_[i];
  const Axis& loop = placed.is_same ? loops.core : loops.tile;
  const int reduction = placed.in_loop ? node.reduction : -1;
  switch (node.kind) {
    case Kind::kInput:
      if (!placed.is_loaded) break;
      ComputeIn(s, on_chip_[i], y, loop, -1, static_cast<int>(i) < group_.parted_, "memcpy");
      break;
    case Kind::kCopy:
      if (placed.is_inlined) break;
      ComputeIn(s, on_chip_[i], y, loop, reduction, false,
                node.pads() ? pragma::kPad : std::string_view("memcpy"));
      break;
    case Kind::kLane:
      ComputeIn(s, on_chip_[i], y, loop, reduction, node.reduction >= 0, placed.form->family);
      if (placed.place >= 0) s[on_chip_[i]].InPlace(on_chip_[placed.place]);
      break;
    case Kind::kReduce:
      break;
  }
}

// What is loaded or stored has two copies: one is moved while the other is used.
void VectorGroup::Builder::DoubleBufferMoved(Schedule& s) const {
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
