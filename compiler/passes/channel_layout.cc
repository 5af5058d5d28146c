#include "compiler/passes/channel_layout.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "base/math.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "isa/instruction_set.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using arith::Analyzer;
using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::Var;

// A buffer whose channels are rounded up.
struct Alignment {
  Buffer buffer;
  int64_t count;    // channels in use
  int64_t rounded;  // channels computed
};

class Planner {
 public:
  Planner(const PreprocessFacts& facts, PreprocessPlan& plan, Analyzer& analyzer,
          std::vector<PreprocessDecision>* decisions)
      : facts_(facts), plan_(plan), analyzer_(analyzer), decisions_(decisions) {}

  void Run() {
    for (size_t n = 0; n < facts_.nests.size(); ++n) {
      const GuardedNest& nest = facts_.nests[n];
      if (nest.IsPad() || nest.family->weights.empty()) continue;
      Analyzer::Scope scope(analyzer_);
      BindLoops(nest, analyzer_);
      const std::string why = SplitChannels(nest, plan_.nests[n]);
      if (!why.empty()) ReportDecision(decisions_, nest.pragma.body(), StrCat("kept: ", why));
    }
    AlignChannels();
  }

 private:
  // ---- LAYOUT

  // Splits the loop over channels of a reducing nest and lays out its weights. Returns why not.
  std::string SplitChannels(const GuardedNest& nest, NestPlan& nest_plan) {
    const Stmt update = nest.stores.back().store;
    Expr load;
    ir::ForEachExpr(update.value(), [&](Expr e) {
      if (e.Is(ExprKind::kLoad) && e.buffer()->scope == isa::kWmem) load = e;
    });
    if (!load || update.indices().empty()) return "it reads no weights in wmem";
    const Buffer weights_buffer(load.buffer());
    BufferPlan* weights = plan_.Find(weights_buffer);
    BufferPlan* result = plan_.Find(update.buffer());
    if (weights == nullptr || result == nullptr || weights->extents.size() < 2 ||
        result->extents.empty()) {
      return "weights or result are not allocated in constant size";
    }
    const OnChipBuffer& weights_facts = *facts_.Find(weights_buffer);
    const OnChipBuffer& result_facts = *facts_.Find(update.buffer());
    const auto layout = std::find_if(nest.family->weights.begin(), nest.family->weights.end(),
                                     [&](const WeightLayout& w) { return w.type == load.type(); });
    if (layout == nest.family->weights.end()) {
      return StrCat("no instruction has weights of ", ir::TypeName(load.type()));
    }
    const int64_t lanes = layout->lanes;
    const std::optional<ChannelIndex> channel =
        FindChannel(nest, update.indices().back(), analyzer_);
    if (!channel) return "the result's innermost index is more than a loop";
    // The dimension of the weights that the same loop runs through. A single channel has no loop.
    std::optional<ChannelIndex> filter;
    size_t dimension = 0;
    for (; dimension < load.operands().size(); ++dimension) {
      filter = FindChannel(nest, load.operand(dimension), analyzer_);
      if (filter && filter->var == channel->var &&
          (channel->var || (filter->base.IsInt(0) && weights->extents[dimension] == 1))) {
        break;
      }
    }
    if (dimension == load.operands().size()) return "the loop over channels is not the filters'";
    if (ChannelIndexesInput(update, load, channel->var)) {
      return "the channel's loop occurs in an input's index";
    }
    int64_t count = 1;
    if (channel->var) {
      const GuardedLoop* loop = LoopOf(nest, channel->var);
      const bool is_shared =
          loop - nest.loops.data() < static_cast<std::ptrdiff_t>(nest.shared_loops);
      if (!is_shared || !loop->min.IsInt(0) || !loop->extent.Is(ExprKind::kIntImm)) {
        return "the loop over channels has no constant bounds from 0 on";
      }
      count = loop->extent.int_value();
    }
    const int64_t rounded = RoundUp(count, lanes);
    if (weights_facts.has_address || result_facts.has_address) {
      return "an instruction uses them as they are";
    }
    if (rounded != count && (!channel->base.IsInt(0) || !filter->base.IsInt(0) ||
                             result_facts.other_writers || result_facts.used > count)) {
      return StrCat(count, " channels are no multiple of ", lanes,
                    ", and further ones of the result may be in use");
    }
    for (Expr base : {channel->base, filter->base}) {
      if (!analyzer_.CanProve(ir::Eq(base % lanes, ConstantLike(base, 0)))) {
        return StrCat("'", ir::Print(base), "' is not known to be a multiple of ", lanes);
      }
    }
    // The weights may have the layout already.
    if (count == lanes && dimension == 0 && weights->extents.size() == 2 &&
        weights->extents[0] == lanes && weights->extents[1] % layout->multiple == 0 &&
        filter->base.IsInt(0)) {
      return "";
    }
    const size_t leading = SetDimensions(nest, load, dimension);
    if (weights->layout && (weights->channel_dimension != dimension ||
                            weights->layout->lanes != lanes || weights->leading != leading)) {
      return "another nest reads the weights in another order";
    }
    if (!weights->layout) {
      weights->layout = *layout;
      weights->channel_dimension = dimension;
      weights->leading = leading;
      int64_t elements = 1;
      for (size_t d = leading; d < weights->extents.size(); ++d) {
        if (d != dimension) elements *= weights->extents[d];
      }
      weights->pitch = RoundUp(elements, layout->multiple);
    }
    nest_plan.lanes = lanes;
    nest_plan.groups = rounded / lanes;
    nest_plan.channel = channel->var;
    nest_plan.weights_base = analyzer_.Simplify(filter->base / lanes);
    nest_plan.channels = rounded;
    const int64_t width = RoundUp(result->extents.back(), lanes);
    result->extents.back() = std::max(result->extents.back(), width);
    if (rounded != count) to_align_.push_back({update.buffer(), count, rounded});
    return "";
  }

  // The first dimensions of the weights, before that of channels, in which a sum stays at one place: an instruction
  // reads one set of filters of them, so that each set begins where an instruction may begin.
  static size_t SetDimensions(const GuardedNest& nest, Expr load, size_t channel_dimension) {
    const auto is_of_sum = [&](Expr index) {
      return std::any_of(
          nest.loops.begin() + static_cast<std::ptrdiff_t>(nest.shared_loops), nest.loops.end(),
          [&](const GuardedLoop& loop) { return ir::UsesVar(index, loop.loop.var()); });
    };
    size_t count = 0;
    while (count < channel_dimension && !is_of_sum(load.operand(count))) ++count;
    return count;
  }

  // Whether the loop over channels occurs in an index of an input other than the weights.
  static bool ChannelIndexesInput(Stmt update, Expr weights_load, Var channel) {
    bool found = false;
    for (Expr operand : update.value().operands()) {
      ir::ForEachExpr(operand, [&](Expr e) {
        if (!e.Is(ExprKind::kLoad) || e == weights_load || Buffer(e.buffer()) == update.buffer()) {
          return;
        }
        for (Expr index : e.operands()) found = found || (channel && ir::UsesVar(index, channel));
      });
    }
    return found;
  }

  // ---- ALIGN

  // Widens the marked elementwise nests that share an innermost loop with a widened result.
  void AlignChannels() {
    absl::flat_hash_map<Buffer, int64_t> aligned;
    while (!to_align_.empty()) {
      const Alignment alignment = to_align_.front();
      to_align_.pop_front();
      if (!aligned.try_emplace(alignment.buffer, alignment.rounded).second) continue;
      BufferPlan& buffer_plan = *plan_.Find(alignment.buffer);
      buffer_plan.extents.back() = std::max(buffer_plan.extents.back(), alignment.rounded);
      const OnChipBuffer& buffer = *facts_.Find(alignment.buffer);
      for (const std::vector<size_t>* users : {&buffer.readers, &buffer.writers}) {
        for (size_t n : *users) Widen(facts_.nests[n], plan_.nests[n], alignment);
      }
    }
  }

  void Widen(const GuardedNest& nest, NestPlan& nest_plan, const Alignment& alignment) {
    if (!nest.IsComputing() || nest.family->reduces || nest_plan.channels != 0) return;
    Analyzer::Scope scope(analyzer_);
    BindLoops(nest, analyzer_);
    const Stmt store = nest.stores[0].store;
    if (store.indices().empty()) return;
    const std::optional<ChannelIndex> target = FindChannel(nest, store.indices().back(), analyzer_);
    if (!target || !target->base.IsInt(0)) return;
    const Var var = target->var;
    if (var) {
      const GuardedLoop* loop = LoopOf(nest, var);
      if (!loop->min.IsInt(0) || !loop->extent.IsInt(alignment.count)) return;
    } else if (alignment.count != 1) {
      return;
    }
    std::vector<Buffer> buffers;
    // Whether an access goes through the channels in its innermost dimension only.
    const auto access = [&](Buffer buffer, absl::Span<const Expr> indices) {
      for (size_t d = 0; d < indices.size(); ++d) {
        const bool is_last = d + 1 == indices.size();
        const BufferPlan* buffer_plan = plan_.Find(buffer);
        const bool may_grow = buffer_plan != nullptr && !buffer_plan->extents.empty() &&
                              !facts_.Find(buffer)->has_address;
        const bool follows = is_last && (var ? indices[d] == var : Has1Channel(buffer));
        if (follows && may_grow) {
          buffers.push_back(buffer);
        } else if (var && ir::UsesVar(indices[d], var)) {
          return false;
        }
      }
      return true;
    };
    bool fits = access(store.buffer(), store.indices()) && !buffers.empty();
    ir::ForEachExpr(store.value(), [&](Expr e) {
      if (e.Is(ExprKind::kLoad)) fits = fits && access(Buffer(e.buffer()), e.operands());
    });
    if (std::find(buffers.begin(), buffers.end(), alignment.buffer) == buffers.end()) return;
    // Null for a nest that stores off chip; such a nest does not fit.
    const OnChipBuffer* written = facts_.Find(store.buffer());
    if (!fits || written == nullptr || written->other_writers || written->used > alignment.count) {
      ReportDecision(decisions_, nest.pragma.body(),
                     StrCat("kept: it can not run over ", alignment.rounded,
                            " channels instead of ", alignment.count));
      return;
    }
    nest_plan.channel = var;
    nest_plan.channels = alignment.rounded;
    for (Buffer buffer : buffers) to_align_.push_back({buffer, alignment.count, alignment.rounded});
  }

  const PreprocessFacts& facts_;
  PreprocessPlan& plan_;
  Analyzer& analyzer_;
  std::vector<PreprocessDecision>* const decisions_;
  std::deque<Alignment> to_align_;
};

}  // namespace

void PlanChannels(const PreprocessFacts& facts, PreprocessPlan& plan, Analyzer& analyzer,
                  std::vector<PreprocessDecision>* decisions) {
  Planner(facts, plan, analyzer, decisions).Run();
}

bool Has1Channel(Buffer buffer) {
  return !buffer->extents.empty() && buffer->extents.back().IsInt(1);
}

}  // namespace polynao
