#include "compiler/poly/card/part_stores.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/stage_graph.h"

namespace polynao::poly {
namespace {

using ir::Expr;
using ir::ExprKind;

class PartStores {
 public:
  PartStores(ir::Context& c, NestStages& stages) : c_(c), stages_(stages) {}

  void Run() {
    std::vector<NestStage> list;
    // Of these elements may be read that nothing has stored: of a box that is larger than what is stored.
    std::vector<ir::Buffer> read = std::exchange(stages_.read_first, {});
    for (NestStage& stage : stages_.list) {
      if (stage.condition) {
        read.push_back(stages_.WholeOf(stage.target));
        for (const ir::Buffer buffer : ReadsOf(stage)) read.push_back(stages_.WholeOf(buffer));
        TakeIn(list, stage);
        if (stage.reduction) list.push_back(TakeReductionOut(stage));
      }
      list.push_back(std::move(stage));
    }
    stages_.list = std::move(list);
    absl::flat_hash_set<ir::Buffer> done;
    for (const ir::Buffer buffer : read) {
      if (done.insert(buffer).second) MakeDefined(buffer);
    }
    for (NestStage& stage : std::exchange(stages_.list, {})) {
      if (stage.condition && ReadsOthers(stage)) stages_.list.push_back(TakeValueOut(stage));
      if (stage.condition) Select(stage);
      stages_.list.push_back(std::move(stage));
    }
  }

 private:
  bool Reads(const NestStage& stage, ir::Buffer whole) const {
    for (const ir::Buffer read : ReadsOf(stage)) {
      if (stages_.WholeOf(read) == whole) return true;
    }
    return false;
  }

  // If the last stage before that touches the target stores the same part, `stage` computes what that one would store,
  // and the list goes without it.
  void TakeIn(std::vector<NestStage>& list, NestStage& stage) const {
    const ir::Buffer whole = stages_.WholeOf(stage.target);
    size_t k = list.size();
    while (k > 0 && stages_.WholeOf(list[k - 1].target) != whole && !Reads(list[k - 1], whole)) --k;
    if (k-- == 0) return;
    const NestStage& before = list[k];
    if (before.target != stage.target || before.low != stage.low ||
        before.extents != stage.extents || !before.condition) {
      return;
    }
    // The stages in between may store nothing that it reads.
    for (size_t i = k + 1; i < list.size(); ++i) {
      if (Reads(before, stages_.WholeOf(list[i].target))) return;
    }
    ir::VarMap by;
    for (size_t d = 0; d < stage.axes.size(); ++d) by[before.axes[d]] = stage.axes[d];
    if (ir::Substitute(before.condition, by) != stage.condition) return;
    const Expr stored = ir::Substitute(before.value, by);
    absl::flat_hash_map<Expr, Expr> taken;
    for (const Expr e : {stage.value, stage.element}) {
      if (!e) continue;
      bool is_own = true;
      ir::ForEachExpr(e, [&](Expr part) {
        if (!part.Is(ExprKind::kLoad)) return;
        const ir::Buffer read(part.buffer());
        if (read == stage.target && IsOwn(part, stage)) {
          taken[part] = stored;
        } else if (stages_.WholeOf(read) == whole) {
          is_own = false;
        }
      });
      if (!is_own) return;
    }
    for (Expr* e : {&stage.value, &stage.element}) {
      if (*e) *e = ir::Replace(*e, taken);
    }
    list.erase(list.begin() + static_cast<ptrdiff_t>(k));
  }

  // Whether a load reads the element that the stage stores.
  static bool IsOwn(Expr load, const NestStage& stage) {
    for (size_t d = 0; d < stage.axes.size(); ++d) {
      arith::LinearForm form = arith::Decompose(load.operand(d));
      if (!form.AddConstant(-stage.low[d]) || !form.IsAtom(stage.axes[d])) return false;
    }
    return true;
  }

  // A local of a box, and the stage that stores all of it.
  NestStage Local(const NestStage& stage, const std::string& name, const std::vector<ir::Var>& axes,
                  const std::vector<int64_t>& box) {
    std::vector<Expr> extents;
    for (size_t d = 0; d < axes.size(); ++d) extents.push_back(c_.Int(axes[d].type(), box[d]));
    const ir::Buffer local =
        c_.NewBuffer(StrCat(stage.target->name, ".", name), stage.target->type, extents);
    stages_.locals.push_back(local);
    NestStage result = {.name = StrCat(stage.name, ".", name),
                        .place = stage.place,
                        .target = local,
                        .axes = {},
                        .low = std::vector<int64_t>(axes.size()),
                        .extents = box,
                        .value = {}};
    for (const ir::Var& axis : axes) result.axes.push_back(c_.NewVar(axis.name(), axis.type()));
    return result;
  }
  static ir::VarMap AxesBy(const std::vector<ir::Var>& from, const std::vector<ir::Var>& to) {
    ir::VarMap by;
    for (size_t d = 0; d < from.size(); ++d) by[from[d]] = to[d];
    return by;
  }
  Expr Load(ir::Buffer buffer, const std::vector<ir::Var>& axes) const {
    return c_.Load(buffer, std::vector<Expr>(axes.begin(), axes.end()));
  }

  // The reduction by itself; `stage` adds what it begins with.
  NestStage TakeReductionOut(NestStage& stage) {
    NestStage all = Local(stage, "all", stage.axes, stage.extents);
    all.reduction = std::exchange(stage.reduction, std::nullopt);
    all.ranges = std::exchange(stage.ranges, {});
    all.element =
        ir::Substitute(std::exchange(stage.element, Expr()), AxesBy(stage.axes, all.axes));
    const Expr result = Load(all.target, stage.axes);
    stage.value = stage.value ? c_.Binary(*all.reduction, stage.value, result) : result;
    return all;
  }

  // Whether it reads other elements of its target than the one that it stores.
  bool ReadsOthers(const NestStage& stage) const {
    const ir::Buffer whole = stages_.WholeOf(stage.target);
    bool reads_others = false;
    ir::ForEachExpr(stage.value, [&](Expr part) {
      if (!part.Is(ExprKind::kLoad) || stages_.WholeOf(ir::Buffer(part.buffer())) != whole) return;
      const bool is_own = ir::Buffer(part.buffer()) == stage.target && IsOwn(part, stage);
      reads_others = reads_others || !is_own;
    });
    return reads_others;
  }

  // All elements of the box, which `stage` copies then.
  NestStage TakeValueOut(NestStage& stage) {
    NestStage box = Local(stage, "box", stage.axes, stage.extents);
    box.value = ir::Substitute(stage.value, AxesBy(stage.axes, box.axes));
    stage.value = Load(box.target, stage.axes);
    return box;
  }

  static std::vector<int64_t> ExtentsOf(ir::Buffer buffer) {
    return buffer->extents.empty() ? std::vector<int64_t>() : ShapeOf(buffer);
  }

  // Makes all elements of a buffer ones that may be read: an allocation begins with zeros, a result with what the
  // caller left there.
  void MakeDefined(ir::Buffer whole) {
    const auto first =
        std::find_if(stages_.list.begin(), stages_.list.end(), [&](const NestStage& stage) {
          return stages_.WholeOf(stage.target) == whole || Reads(stage, whole);
        });
    if (first == stages_.list.end()) return;
    const bool is_local = std::count(stages_.locals.begin(), stages_.locals.end(), whole) > 0;
    if (IsWhole(*first) && !Reads(*first, whole) && stages_.WholeOf(first->target) == whole) {
      // Nobody needs what an allocation holds before.
      if (is_local) first->condition = Expr();
      if (!first->condition) return;
    }
    if (!is_local) {
      stages_.read_first.push_back(whole);
      return;
    }
    NestStage zeros = {.name = StrCat(first->name, ".zeros"),
                       .place = StrCat(whole->name, " = 0"),
                       .target = whole,
                       .axes = {},
                       .low = std::vector<int64_t>(whole->extents.size()),
                       .extents = ExtentsOf(whole),
                       .value = c_.Const(whole->type, 0)};
    for (const Expr extent : whole->extents) zeros.axes.push_back(c_.NewVar("one", extent.type()));
    stages_.list.insert(first, std::move(zeros));
  }

  // Adds the stages of the mask, and of what was there before: tiles may load more of it than they store, while others
  // store that.
  void Select(NestStage& stage) {
    std::vector<ir::Var> axes;
    std::vector<int64_t> box;
    for (size_t d = 0; d < stage.axes.size(); ++d) {
      if (!ir::UsesVar(stage.condition, stage.axes[d])) continue;
      axes.push_back(stage.axes[d]);
      box.push_back(stage.extents[d]);
    }
    const ir::Type type = stage.target->type;
    NestStage ones = Local(stage, "ones", axes, box), mask = Local(stage, "mask", axes, box);
    const Expr zero = c_.Const(type, 0);
    ones.value = c_.Const(type, 1);
    mask.value = c_.Select(ir::Substitute(stage.condition, AxesBy(axes, mask.axes)),
                           Load(ones.target, mask.axes), zero);
    NestStage kept = Local(stage, "kept", stage.axes, stage.extents);
    std::vector<Expr> own;
    for (size_t d = 0; d < kept.axes.size(); ++d) {
      own.push_back(stage.low[d] == 0 ? Expr(kept.axes[d]) : kept.axes[d] + stage.low[d]);
    }
    kept.value = c_.Load(stage.target, own);
    const Expr before = Load(kept.target, stage.axes);
    absl::flat_hash_map<Expr, Expr> by;
    ir::ForEachExpr(stage.value, [&](Expr part) {
      const bool reads = part.Is(ExprKind::kLoad) && ir::Buffer(part.buffer()) == stage.target;
      if (reads) by[part] = before;
    });
    stage.value =
        c_.Select(ir::Ne(Load(mask.target, axes), zero), ir::Replace(stage.value, by), before);
    stage.condition = Expr();
    stages_.list.push_back(std::move(kept));
    stages_.list.push_back(std::move(ones));
    stages_.list.push_back(std::move(mask));
  }

  ir::Context& c_;
  NestStages& stages_;
};

}  // namespace

void StoreParts(ir::Context& c, NestStages& stages) { PartStores(c, stages).Run(); }

}  // namespace polynao::poly
