#include "compiler/passes/preprocess_facts.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/visit.h"

namespace polynao {
namespace {

using arith::Analyzer;
using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Function;
using ir::Stmt;
using ir::StmtKind;

class Collector {
 public:
  Collector(const Target& target, Analyzer& analyzer) : target_(target), analyzer_(analyzer) {}

  std::optional<PreprocessFacts> Run(const Function& function) {
    if (!HasWork(function)) return std::nullopt;
    Walk(function.body);
    for (size_t n = 0; n < facts_.nests.size(); ++n) NoteAccesses(n);
    NoteDiagonals();
    return std::move(facts_);
  }

 private:
  const InstructionFamily* FindFamily(std::string_view name) {
    auto [it, added] = facts_.families.try_emplace(std::string(name));
    if (added) it->second = FindInstructionFamily(*target_.instructions, name);
    return it->second ? &*it->second : nullptr;
  }

  bool HasWork(const Function& function) {
    bool found = false;
    ir::ForEachStmt(function.body, [&](Stmt s) {
      if (found || !s.Is(StmtKind::kPragma)) return !found;
      const InstructionFamily* family = FindFamily(s.name());
      found = s.name() == pragma::kPad || s.name() == pragma::kRagged ||
              (family != nullptr && family->reduces);
      return !found;
    });
    return found;
  }

  OnChipBuffer* Find(Buffer buffer) {
    auto it = facts_.buffers.find(buffer);
    return it == facts_.buffers.end() ? nullptr : &it->second;
  }

  void Walk(Stmt s) {
    Analyzer::Scope scope(analyzer_);
    const int position = position_++;
    if (s.Is(StmtKind::kFor)) {
      loop_ = s.for_kind() == ir::ForKind::kSerial ? s : Stmt();
    } else if (!s.Is(StmtKind::kAllocate)) {
      loop_ = {};
    }
    switch (s.kind()) {
      case StmtKind::kPragma:
        if (s.name() == pragma::kSlidingWindow && s.body().Is(StmtKind::kAllocate)) {
          facts_.windows[s.body().buffer()] = {};
        }
        if (Nest(s)) return;
        break;
      case StmtKind::kFor:
        facts_.bound_at[s.var()] = position;
        analyzer_.BindLoop(s.var(), s.min(), s.extent());
        break;
      case StmtKind::kLet:
        facts_.bound_at[s.var()] = position;
        if (ir::IsInt(s.var().type())) analyzer_.BindLet(s.var(), s.value());
        break;
      case StmtKind::kIf:
        for (const bool truth : {true, false}) {
          Analyzer::Scope branch(analyzer_);
          analyzer_.Assume(s.cond(), truth);
          Walk(truth ? s.then_case() : s.else_case());
        }
        return;
      case StmtKind::kAllocate:
        if (IsOnChip(s.buffer()->scope)) {
          Allocation(s, position);
          return;
        }
        break;
      case StmtKind::kStore:
        if (OnChipBuffer* buffer = Find(s.buffer())) buffer->other_writers = true;
        break;
      case StmtKind::kEvaluate:
        for (Expr operand : s.value().operands()) {
          if (!operand.Is(ExprKind::kAddress)) continue;
          if (OnChipBuffer* buffer = Find(Buffer(operand.buffer()))) {
            buffer->other_writers = true;
            buffer->has_address = true;
          }
        }
        break;
      case StmtKind::kSeq:
        break;
    }
    for (Stmt child : s.children()) Walk(child);
  }

  // Notes the nest under a pragma. False if the pragma marks none, or one of another form.
  bool Nest(Stmt pragma) {
    const InstructionFamily* family = FindFamily(pragma.name());
    if (family == nullptr && pragma.name() != pragma::kPad) return false;
    const auto is_allocated = [&](Buffer buffer) { return facts_.buffers.contains(buffer); };
    const NestContext context = {.analyzer = analyzer_,
                                 .family = family,
                                 .fill_family = FindFamily("fill"),
                                 .is_allocated = is_allocated};
    std::string why;
    std::optional<GuardedNest> nest = ParseGuardedNest(pragma, context, why);
    if (!nest) {
      facts_.rejected.emplace_back(pragma.body(), std::move(why));
      return false;
    }
    NoteWindow(*nest);
    facts_.nests.push_back(*std::move(nest));
    return true;
  }

  void Allocation(Stmt s, int position) {
    facts_.in_order.push_back(s.buffer());
    OnChipBuffer& buffer = facts_.buffers[s.buffer()];
    buffer.allocation = s;
    buffer.loop = loop_;
    buffer.begin = position;
    for (Expr extent : s.buffer()->extents) {
      if (!extent.Is(ExprKind::kIntImm)) {
        buffer.extents.clear();
        break;
      }
      buffer.extents.push_back(extent.int_value());
    }
    Walk(s.body());
    facts_.buffers[s.buffer()].end = position_;
  }

  // Notes what a marked nest stores to a sliding window.
  void NoteWindow(const GuardedNest& nest) {
    const auto it = facts_.windows.find(nest.stores[0].store.buffer());
    if (it == facts_.windows.end()) return;
    Window& window = it->second;
    const bool pads = nest.IsPad() && nest.fill_value && !nest.bounds.some_outside.IsInt(0);
    window.other_writers = window.other_writers || !nest.IsPad() ||
                           (pads && window.fill_value && *window.fill_value != nest.fill_value);
    if (pads) window.fill_value = nest.fill_value;
  }

  void NoteAccesses(size_t n) {
    const GuardedNest& nest = facts_.nests[n];
    absl::flat_hash_set<Buffer> read;
    for (const GuardedStore& guarded : nest.stores) {
      ir::ForEachExpr(guarded.store.value(), [&](Expr e) {
        if (e.Is(ExprKind::kLoad)) read.insert(Buffer(e.buffer()));
      });
    }
    for (Buffer buffer : read) {
      if (OnChipBuffer* found = Find(buffer)) found->readers.push_back(n);
    }
    OnChipBuffer* written = Find(nest.stores[0].store.buffer());
    if (written == nullptr) return;
    written->writers.push_back(n);
    written->used = std::max(written->used, nest.used);
  }

  // Notes buffers whose diagonals are the same in each iteration.
  void NoteDiagonals() {
    OnChipBuffer anywhere;
    anywhere.begin = -1, anywhere.end = position_;
    for (const GuardedNest& nest : facts_.nests) {
      const OnChipBuffer* buffer = Find(nest.stores[0].store.buffer());
      if (!nest.is_diagonal || buffer == nullptr || !buffer->loop || buffer->writers.size() != 1 ||
          buffer->other_writers || !nest.guards.empty()) {
        continue;
      }
      const bool has_constant_loops = std::all_of(
          nest.loops.begin(), nest.loops.end(),
          [](const GuardedLoop& loop) { return loop.min.IsConst() && loop.extent.IsConst(); });
      const absl::Span<const Expr> indices = nest.stores[0].store.indices();
      const bool stays = std::none_of(indices.begin(), indices.end(),
                                      [&](Expr index) { return facts_.Changes(index, anywhere); });
      if (!has_constant_loops || !stays) continue;
      facts_.filled_before[buffer->loop].push_back(buffer->allocation.buffer());
      facts_.before_loops[buffer->allocation.buffer()] = nest.fill_value;
    }
  }

  const Target& target_;
  Analyzer& analyzer_;
  PreprocessFacts facts_;
  Stmt loop_;  // serial, if between it and the current statement nothing stands but allocations
  int position_ = 0;
};

}  // namespace

const OnChipBuffer* PreprocessFacts::Find(Buffer buffer) const {
  auto it = buffers.find(buffer);
  return it == buffers.end() ? nullptr : &it->second;
}

bool PreprocessFacts::Changes(Expr e, const OnChipBuffer& buffer) const {
  for (ir::Var var : ir::FreeVars(e)) {
    auto it = bound_at.find(var);
    if (it != bound_at.end() && buffer.begin < it->second && it->second < buffer.end) return true;
  }
  return false;
}

bool PreprocessFacts::IsFilled(const Window& window, Buffer buffer) const {
  const OnChipBuffer* found = Find(buffer);
  return window.fill_value && !window.other_writers && found != nullptr && !found->other_writers;
}

std::optional<PreprocessFacts> CollectPreprocessFacts(const Function& function,
                                                      const Target& target, Analyzer& analyzer) {
  return Collector(target, analyzer).Run(function);
}

}  // namespace polynao
