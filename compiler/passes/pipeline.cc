#include "compiler/passes/pipeline.h"

#include <array>
#include <functional>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

constexpr std::string_view kDoubleBuffer = "double_buffer";

// A loop body taken apart.
struct Body {
  std::vector<Buffer> buffers;  // allocated in it, outermost first
  std::vector<Stmt> loads;
  std::vector<Stmt> computations;
  std::vector<Stmt> stores;
};

class Pipeliner {
 public:
  Pipeliner(const Target& target, std::vector<PipelineDecision>* decisions)
      : target_(target), decisions_(decisions) {}

  Stmt Walk(Stmt s) {
    if (s.Is(StmtKind::kFor) && HasDoubleBuffer(s.body())) {
      std::string reason;
      const std::optional<Stmt> pipelined = Pipelined(s, reason);
      if (decisions_ != nullptr) {
        const std::string text = ir::Print(s);
        decisions_->push_back({text.substr(0, text.find('\n')), pipelined.has_value(), reason});
      }
      if (pipelined) return *pipelined;
    }
    // Allocations around a loop take their share of the memory.
    const bool allocates = s.Is(StmtKind::kAllocate) && IsOnChip(s.buffer()->scope);
    if (allocates) around_[s.buffer()->scope] += AlignedBytes(s.buffer());
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Walk(child));
    if (allocates) around_[s.buffer()->scope] -= AlignedBytes(s.buffer());
    return s.context().Rebuild(s, s.operands(), children);
  }

 private:
  // Whether the allocations at the start of a body ask for two copies.
  static bool HasDoubleBuffer(Stmt s) {
    while (s.Is(StmtKind::kAllocate) || s.Is(StmtKind::kPragma)) {
      if (s.Is(StmtKind::kPragma) && s.name() == kDoubleBuffer) return true;
      s = s.body();
    }
    return false;
  }

  static bool IsConstantSize(Buffer buffer) {
    for (Expr extent : buffer->extents) {
      if (!extent.Is(ExprKind::kIntImm)) return false;
    }
    return true;
  }

  static int64_t AlignedBytes(Buffer buffer) {
    int64_t bytes = ir::ByteSize(buffer->type);
    for (Expr extent : buffer->extents) {
      if (extent.Is(ExprKind::kIntImm)) bytes *= extent.int_value();
    }
    return (bytes + kOnChipAlignment - 1) / kOnChipAlignment * kOnChipAlignment;
  }

  // The parts of a body, or why it has not the form.
  std::optional<Body> TakeApart(Stmt s, std::string& reason) const {
    Body body;
    while (s.Is(StmtKind::kAllocate) || (s.Is(StmtKind::kPragma) && s.name() == kDoubleBuffer)) {
      if (s.Is(StmtKind::kAllocate)) {
        if (!IsOnChip(s.buffer()->scope) || !IsConstantSize(s.buffer())) {
          reason = StrCat("'", s.buffer()->name, "' is not on chip or not of constant size");
          return std::nullopt;
        }
        body.buffers.push_back(s.buffer());
      }
      s = s.body();
    }
    std::vector<Stmt> calls = {s};
    if (s.Is(StmtKind::kSeq)) calls.assign(s.children().begin(), s.children().end());
    absl::flat_hash_set<Buffer> loaded;
    absl::flat_hash_set<Buffer> stored;
    for (Stmt call : calls) {
      const isa::Instruction* instruction =
          call.Is(StmtKind::kEvaluate) ? target_.instructions->Find(call.value().name()) : nullptr;
      if (instruction == nullptr || instruction->waits || instruction->queue == isa::Queue::kNone) {
        const std::string text = ir::Print(call);
        reason = StrCat("no queued instruction: ", text.substr(0, text.find('\n')));
        return std::nullopt;
      }
      bool reads_gmem = false;
      bool writes_gmem = false;
      for (const isa::Operand& operand : instruction->operands) {
        if (operand.kind != isa::OperandKind::kAddress) continue;
        const Buffer buffer(call.value().operand(operand.param).buffer());
        if (buffer->scope != "gmem") continue;
        if (operand.is_read) loaded.insert(buffer);
        if (operand.is_written) stored.insert(buffer);
        reads_gmem = reads_gmem || operand.is_read;
        writes_gmem = writes_gmem || operand.is_written;
      }
      std::vector<Stmt>& stage = reads_gmem    ? body.loads
                                 : writes_gmem ? body.stores
                                               : body.computations;
      const bool in_order =
          !(reads_gmem && writes_gmem) &&
          (&stage != &body.loads || (body.computations.empty() && body.stores.empty())) &&
          (&stage != &body.computations || body.stores.empty()) &&
          (reads_gmem || writes_gmem) == (instruction->queue == isa::Queue::kIo);
      if (!in_order) {
        reason = StrCat(call.value().name(), " stands before a load, or behind a store");
        return std::nullopt;
      }
      stage.push_back(call);
    }
    for (Buffer buffer : loaded) {
      if (stored.contains(buffer)) {
        reason = StrCat("'", buffer->name, "' is loaded and stored");
        return std::nullopt;
      }
    }
    return body;
  }

  bool Fits(const Body& body, std::string& reason) const {
    std::map<std::string, int64_t> needed = around_;
    for (Buffer buffer : body.buffers) needed[buffer->scope] += 2 * AlignedBytes(buffer);
    for (const auto& [scope, bytes] : needed) {
      if (bytes <= target_.MemoryBytes(scope)) continue;
      reason = StrCat("two copies take ", bytes, " bytes of ", scope, ", which has ",
                      target_.MemoryBytes(scope));
      return false;
    }
    return true;
  }

  std::optional<Stmt> Pipelined(Stmt loop, std::string& reason) const {
    if (loop.for_kind() != ir::ForKind::kSerial || !loop.extent().Is(ExprKind::kIntImm) ||
        loop.extent().int_value() < 2) {
      reason = StrCat("it has ", ir::Print(loop.extent()), " iterations");
      return std::nullopt;
    }
    const std::optional<Body> body = TakeApart(loop.body(), reason);
    if (!body || !Fits(*body, reason)) return std::nullopt;

    ir::Context& c = loop.context();
    std::array<ir::BufferMap, 2> copies;
    std::vector<Buffer> all;
    for (Buffer buffer : body->buffers) {
      for (int parity = 0; parity < 2; ++parity) {
        const Buffer copy = c.NewBuffer(StrCat(buffer->name, ".", parity), buffer->type,
                                        buffer->extents, buffer->scope);
        copies[parity][buffer] = copy;
        all.push_back(copy);
      }
    }
    const int64_t n = loop.extent().int_value();
    const ir::Type type = loop.var().type();
    std::vector<Stmt> out;
    // Appends the calls of iteration min + first + step to `to`, on the copies of that parity.
    const auto add = [&](std::vector<Stmt>& to, absl::Span<const Stmt> calls, Expr iteration,
                         int64_t offset, int64_t parity) {
      const Expr index = offset == 0 ? iteration : iteration + offset;
      for (Stmt call : calls) {
        to.push_back(ir::Substitute(call, {{loop.var(), index}}, copies[parity & 1]));
      }
    };
    const Stmt sync = c.Evaluate(c.Call(ir::Type::kI32, "sync", {}));
    // Step number `at` + s, of which s gives the parity; the bounds say which parts it has.
    const auto step = [&](std::vector<Stmt>& to, Expr at, int64_t s, bool stores, bool loads,
                          bool computes) {
      to.push_back(sync);
      if (stores) add(to, body->stores, at, s - 2, s);
      if (loads) add(to, body->loads, at, s, s);
      if (computes) add(to, body->computations, at, s - 1, s - 1);
    };
    const Expr min = loop.min();
    for (int64_t s = 0; s < 2; ++s) step(out, min, s, false, s < n, s > 0);
    out.erase(out.begin());  // nothing is pending before the first load
    const int64_t pairs = n <= 4 ? 0 : (n - 2) / 2;
    if (pairs > 0) {
      const ir::Var pair = c.NewVar(loop.var().name(), type);
      const Expr at = min + pair * 2;
      std::vector<Stmt> steady;
      for (int64_t s = 2; s < 4; ++s) step(steady, at, s, true, true, true);
      out.push_back(c.For(pair, c.Int(type, 0), c.Int(type, pairs), c.Seq(steady)));
    }
    for (int64_t s = 2 + 2 * pairs; s < n + 2; ++s) step(out, min, s, true, s < n, s <= n);
    Stmt result = c.Seq(out);
    for (size_t i = all.size(); i-- > 0;) result = c.Allocate(all[i], result);
    return result;
  }

  const Target& target_;
  std::vector<PipelineDecision>* const decisions_;
  std::map<std::string, int64_t> around_;  // bytes of allocations outside, by memory
};

}  // namespace

absl::StatusOr<bool> Pipeline(ir::Function& function, const Target& target,
                              std::vector<PipelineDecision>* decisions) {
  if (target.instructions == nullptr || target.machine == nullptr) {
    return InvalidInput("pipeline: target '", target.name, "' has no instruction queues");
  }
  const Stmt body = Pipeliner(target, decisions).Walk(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

}  // namespace polynao
