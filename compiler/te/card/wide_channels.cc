#include "compiler/te/card/wide_channels.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/te/card/graph_copy.h"

namespace polynao::te {
namespace {

using ir::ExprKind;

class Widener {
 public:
  Widener(const Tensor& output, int64_t channels, int64_t block)
      : whole_(*output.graph()),
        output_(output),
        own_channels_(output.shape().back()),
        channels_(channels),
        block_(block),
        state_(whole_.Empty()),
        g_(state_) {}

  std::optional<Tensor> Run(absl::Span<const Operation* const> computes) {
    for (const Operation& operation : whole_.operations) {
      if (operation.kind != Operation::Kind::kCompute) {
        CopyTo(*state_, operation, own_);
      } else if (std::find(computes.begin(), computes.end(), &operation) != computes.end()) {
        Widen(operation);
      }
      if (fails_) return std::nullopt;
    }
    const Tensor wide = wide_.at(output_.buffer());
    if (block_ > 0) return InBlocks(wide);
    return g_.Compute(output_.name(), output_.shape(), [&](const Axes& at) { return wide(at); });
  }

 private:
  Expr Index(int64_t i) const { return g_.context().Int(g_.index_type(), i); }
  Expr IsThere(Expr channel) const { return channel < Index(own_channels_); }

  // The output by way of blocks of channels.
  Tensor InBlocks(const Tensor& wide) {
    Shape shape = wide.shape();
    shape.back() /= block_;
    shape.push_back(block_);
    const Tensor blocks = g_.Compute(StrCat(output_.name(), ".blocks"), shape, [&](const Axes& at) {
      Axes own(at.begin(), at.end() - 1);
      own.back() = own.back() * Index(block_) + at.back();
      return wide(own);
    });
    return g_.Compute(output_.name(), output_.shape(), [&](const Axes& at) {
      Axes own = at;
      own.back() = at.back() / Index(block_);
      own.push_back(at.back() % Index(block_));
      return blocks(own);
    });
  }

  void Widen(const Operation& operation) {
    if (operation.bodies.size() != 1 || operation.shape.empty() ||
        operation.shape.back() != own_channels_) {
      fails_ = true;
      return;
    }
    Shape shape = operation.shape;
    shape.back() = channels_;
    const Body& body = operation.bodies[0];
    const Tensor wide = g_.Compute(
        StrCat(operation.name, ".wide"), shape,
        [&](const Axes& at) {
          ir::VarMap by;
          for (size_t d = 0; d < at.size(); ++d) by[operation.axes[d]] = at[d];
          const Expr value = Rewritten(ir::Substitute(body.value, by), at.back());
          return body.reducer ? Body(*body.reducer, value, body.axes) : Body(value);
        },
        operation.axis_names);
    wide_.emplace(operation.outputs[0], wide);
  }

  // `e` as the wider compute has it; `channel`: its own.
  Expr Rewritten(Expr e, Expr channel) {
    // A margin of zeros takes the added channels in.
    if (e.Is(ExprKind::kSelect) && e.operand(1).Is(ExprKind::kLoad) && e.operand(2).IsConst() &&
        !ir::UsesVar(e.operand(0), channel) && IsInput(e.operand(1)) &&
        ChannelOf(e.operand(1), channel) >= 0) {
      return g_.context().Select(ir::And(e.operand(0), IsThere(channel)), e.operand(1),
                                 e.operand(2));
    }
    if (e.Is(ExprKind::kLoad)) return Load(e, channel);
    if (e == channel) fails_ = true;
    if (e.operands().empty()) return e;
    std::vector<Expr> operands;
    for (const Expr operand : e.operands()) operands.push_back(Rewritten(operand, channel));
    return g_.context().Rebuild(e, operands);
  }

  bool IsInput(Expr load) const { return !wide_.contains(ir::Buffer(load.buffer())); }

  // Which index of a load is the channel, all of a dimension of so many elements; -1 if none has to do with it.
  int ChannelOf(Expr load, Expr channel) {
    const Shape& shape = whole_.producers.at(ir::Buffer(load.buffer())).first->shape;
    int found = -1;
    for (size_t d = 0; d < load.operands().size(); ++d) {
      const Expr index = load.operand(d);
      if (!ir::UsesVar(index, channel)) continue;
      if (index != channel || shape[d] != own_channels_ || found >= 0) fails_ = true;
      found = static_cast<int>(d);
    }
    return found;
  }

  Expr Load(Expr load, Expr channel) {
    const int found = ChannelOf(load, channel);
    const ir::Buffer buffer(load.buffer());
    const Axes at(load.operands().begin(), load.operands().end());
    const auto it = wide_.find(buffer);
    if (it != wide_.end()) {
      if (found + 1 != static_cast<int>(at.size())) fails_ = true;
      return fails_ ? load : it->second(at);
    }
    return found < 0 || fails_ ? load : WideInput(buffer, static_cast<size_t>(found))(at);
  }

  // An input with zeros behind its channels.
  Tensor WideInput(ir::Buffer buffer, size_t dimension) {
    Tensor& wide = inputs_[{buffer, dimension}];
    if (wide) return wide;
    const auto& [operation, index] = whole_.producers.at(buffer);
    const Tensor input(state_, own_.at(operation), index);
    Shape shape = input.shape();
    shape[dimension] = channels_;
    wide = g_.Compute(StrCat(buffer->name, ".wide"), shape, [&](const Axes& at) {
      return Select(IsThere(at[dimension]), input(at), 0.0);
    });
    return wide;
  }

  const GraphState& whole_;
  const Tensor output_;
  const int64_t own_channels_, channels_, block_;
  const std::shared_ptr<GraphState> state_;
  Graph g_;
  OwnOperations own_;                             // inputs
  absl::flat_hash_map<ir::Buffer, Tensor> wide_;  // of computes, by their results
  absl::flat_hash_map<std::pair<ir::Buffer, size_t>, Tensor> inputs_;
  bool fails_ = false;
};

}  // namespace

std::optional<Tensor> WidenChannels(const Tensor& output,
                                    absl::Span<const Operation* const> computes, int64_t channels,
                                    int64_t block) {
  return Widener(output, channels, block).Run(computes);
}

}  // namespace polynao::te
