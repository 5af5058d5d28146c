#include "compiler/passes/sync.h"

#include <array>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/storage.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// Buffers that instructions in one queue may still read or write.
struct Pending {
  absl::flat_hash_set<Buffer> reads;
  absl::flat_hash_set<Buffer> writes;
  bool operator==(const Pending& other) const {
    return reads == other.reads && writes == other.writes;
  }
  void Merge(const Pending& other) {
    reads.insert(other.reads.begin(), other.reads.end());
    writes.insert(other.writes.begin(), other.writes.end());
  }
};

using State = std::array<Pending, isa::kQueueCount>;

void MergeInto(State& state, const State& other) {
  for (int q = 0; q < isa::kQueueCount; ++q) state[q].Merge(other[q]);
}

// The memory that one statement touches itself.
struct Touched {
  std::vector<Buffer> reads;
  std::vector<Buffer> writes;
};

class Syncer {
 public:
  Syncer(const ir::Function& function, const Target& target)
      : target_(target), addresses_(CollectAddresses(function.body)), c_(*function.context) {}

  absl::StatusOr<Stmt> Top(Stmt s) {
    State state;
    if (!s.Is(StmtKind::kSeq) || !HasThreadLoop(s)) return Walk(s, state);
    // Nests of thread loops one after the other run on the same cores, but not in step.
    std::vector<Stmt> result;
    Touched before;
    for (Stmt child : s.children()) {
      const Touched touched = TouchedGmem(child);
      if (Conflict(before.writes, touched.reads) || Conflict(before.writes, touched.writes) ||
          Conflict(before.reads, touched.writes)) {
        result.push_back(c_.Evaluate(c_.Call(ir::Type::kI32, "barrier.global", {})));
        before = {};
        state = {};  // a barrier drains the queues
      }
      before.reads.insert(before.reads.end(), touched.reads.begin(), touched.reads.end());
      before.writes.insert(before.writes.end(), touched.writes.begin(), touched.writes.end());
      ASSIGN_OR_RETURN(Stmt synced, Walk(child, state));
      result.push_back(synced);
    }
    return c_.Rebuild(s, {}, result);
  }

 private:
  static bool HasThreadLoop(Stmt root) {
    bool found = false;
    ir::ForEachStmt(root, [&](Stmt s) {
      found = found || (s.Is(StmtKind::kFor) && s.for_kind() == ir::ForKind::kThread);
      return !found;
    });
    return found;
  }

  bool Overlap(Buffer a, Buffer b) const {
    if (a == b) return true;
    if (a->scope != b->scope) return false;
    auto x = addresses_.find(a);
    auto y = addresses_.find(b);
    if (x == addresses_.end() || y == addresses_.end()) return false;
    return x->second < y->second + Bytes(b) && y->second < x->second + Bytes(a);
  }

  static int64_t Bytes(Buffer buffer) {
    int64_t bytes = ir::ByteSize(buffer->type);
    for (Expr extent : buffer->extents) bytes *= extent.int_value();
    return bytes;
  }

  template <typename A, typename B>
  bool Conflict(const A& a, const B& b) const {
    for (Buffer x : a) {
      for (Buffer y : b) {
        if (Overlap(x, y)) return true;
      }
    }
    return false;
  }

  absl::StatusOr<const isa::Instruction*> InstructionOf(Stmt s) const {
    const isa::Instruction* instruction = target_.instructions->Find(s.value().name());
    if (instruction == nullptr) {
      return InvalidInput("sync: no instruction is named '", s.value().name(), "'");
    }
    return instruction;
  }

  // What the statement's own expressions (and its call or store) touch; not its children's.
  absl::StatusOr<Touched> TouchedBy(Stmt s) const {
    Touched touched;
    if (s.Is(StmtKind::kEvaluate)) {
      ASSIGN_OR_RETURN(const isa::Instruction* instruction, InstructionOf(s));
      for (const isa::Operand& operand : instruction->operands) {
        if (operand.kind != isa::OperandKind::kAddress) continue;
        const Buffer buffer(s.value().operand(operand.param).buffer());
        if (operand.is_read) touched.reads.push_back(buffer);
        if (operand.is_written) touched.writes.push_back(buffer);
      }
      return touched;
    }
    if (s.Is(StmtKind::kStore)) touched.writes.push_back(s.buffer());
    for (Expr e : s.operands()) {
      ir::ForEachExpr(e, [&](Expr x) {
        if (x.Is(ExprKind::kLoad)) touched.reads.push_back(Buffer(x.buffer()));
      });
    }
    return touched;
  }

  Touched TouchedGmem(Stmt root) const {
    Touched all;
    ir::ForEachStmt(root, [&](Stmt s) {
      absl::StatusOr<Touched> touched = TouchedBy(s);
      if (!touched.ok()) return false;  // Walk reports it
      for (Buffer b : touched->reads) {
        if (b->scope == "gmem") all.reads.push_back(b);
      }
      for (Buffer b : touched->writes) {
        if (b->scope == "gmem") all.writes.push_back(b);
      }
      return true;
    });
    return all;
  }

  // `s` with syncs before what needs them. On entry `state` is what may be pending before it, on
  // exit after it.
  absl::StatusOr<Stmt> Walk(Stmt s, State& state) {
    ASSIGN_OR_RETURN(Touched touched, TouchedBy(s));
    isa::Queue own = isa::Queue::kNone;
    if (s.Is(StmtKind::kEvaluate)) {
      ASSIGN_OR_RETURN(const isa::Instruction* instruction, InstructionOf(s));
      if (instruction->unit == isa::Unit::kControl) {
        for (isa::Queue queue : instruction->drains) state[static_cast<int>(queue)] = {};
        return s;
      }
      own = instruction->queue;
    }
    std::vector<Stmt> syncs;
    for (int q = 0; q < isa::kQueueCount; ++q) {
      if (q == static_cast<int>(own)) continue;
      const Pending& pending = state[q];
      if (Conflict(pending.writes, touched.reads) || Conflict(pending.writes, touched.writes) ||
          Conflict(pending.reads, touched.writes)) {
        const std::string name = StrCat("sync.", isa::QueueName(static_cast<isa::Queue>(q)));
        syncs.push_back(c_.Evaluate(c_.Call(ir::Type::kI32, name, {})));
        state[q] = {};
      }
    }
    if (own != isa::Queue::kNone) {
      Pending& pending = state[static_cast<int>(own)];
      pending.reads.insert(touched.reads.begin(), touched.reads.end());
      pending.writes.insert(touched.writes.begin(), touched.writes.end());
    }
    ASSIGN_OR_RETURN(Stmt result, WalkChildren(s, state));
    if (syncs.empty()) return result;
    syncs.push_back(result);
    return c_.Seq(syncs);
  }

  // A loop over cores of which each core runs at most one iteration.
  bool RunsOnce(Stmt loop) const {
    if (loop.for_kind() != ir::ForKind::kThread || !loop.extent().Is(ExprKind::kIntImm))
      return false;
    const int64_t extent = loop.extent().int_value();
    return (loop.name() == "cid" && extent <= target_.machine->clusters()) ||
           (loop.name() == "tid" && extent <= target_.machine->cores_per_cluster());
  }

  absl::StatusOr<Stmt> WalkChildren(Stmt s, State& state) {
    switch (s.kind()) {
      case StmtKind::kFor: {
        // The body starts with what is pending before the loop or after an iteration. Pending sets
        // only grow from one round to the next, so this ends; two rounds are the rule.
        State entry = state;
        while (true) {
          State exit = entry;
          ASSIGN_OR_RETURN(Stmt body, Walk(s.body(), exit));
          State next = entry;
          MergeInto(next, exit);
          if (next == entry || RunsOnce(s)) {
            state = entry;  // the loop may run no iteration
            MergeInto(state, exit);
            return c_.Rebuild(s, s.operands(), {body});
          }
          entry = next;
        }
      }
      case StmtKind::kIf: {
        State other = state;
        ASSIGN_OR_RETURN(Stmt then_case, Walk(s.then_case(), state));
        ASSIGN_OR_RETURN(Stmt else_case, Walk(s.else_case(), other));
        MergeInto(state, other);
        return c_.Rebuild(s, s.operands(), {then_case, else_case});
      }
      default: {
        std::vector<Stmt> children;
        for (Stmt child : s.children()) {
          ASSIGN_OR_RETURN(Stmt walked, Walk(child, state));
          children.push_back(walked);
        }
        return c_.Rebuild(s, s.operands(), children);
      }
    }
  }

  const Target& target_;
  const AddressMap addresses_;
  ir::Context& c_;
};

}  // namespace

absl::StatusOr<bool> Sync(ir::Function& function, const Target& target) {
  Syncer syncer(function, target);
  ASSIGN_OR_RETURN(Stmt body, syncer.Top(function.body));
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

}  // namespace polynao
