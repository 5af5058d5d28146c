#include "compiler/passes/stagger.h"

#include "base/status.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

class Staggerer {
 public:
  Staggerer(const Target& target, std::vector<std::string>* decisions)
      : target_(target), decisions_(decisions) {}

  Stmt Walk(Stmt s) {
    const bool is_thread = s.Is(StmtKind::kFor) && s.for_kind() == ir::ForKind::kThread;
    if (is_thread && s.name() == "tid") return s;  // cores go their own ways
    if (s.Is(StmtKind::kEvaluate) && cluster_) return Copy(s);
    const Stmt outside = cluster_;
    if (is_thread && s.name() == "cid" && s.extent().Is(ir::ExprKind::kIntImm)) cluster_ = s;
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Walk(child));
    cluster_ = outside;
    return s.context().Rebuild(s, s.operands(), children);
  }

 private:
  Stmt Copy(Stmt s) const {
    const Expr call = s.value();
    const isa::Instruction* instruction = target_.instructions->Find(call.name());
    if (instruction == nullptr || instruction->family != "memcpy" ||
        instruction->queue != isa::Queue::kIo || !call.operand(2).Is(ir::ExprKind::kIntImm) ||
        !call.operand(3).IsInt(1)) {
      return s;
    }
    const Buffer to(call.operand(0).buffer());
    const Buffer from(call.operand(1).buffer());
    const int64_t clusters = cluster_.extent().int_value();
    const isa::Machine& machine = *target_.machine;
    const int64_t count = call.operand(2).int_value();
    const int64_t bytes = ir::ByteSize(to->type);
    if (to->scope != "smem" || from->scope != "gmem" || clusters < 2 ||
        ir::UsesVar(call, cluster_.var()) ||
        count * bytes < machine.Get("gmem.channels") * machine.Get("gmem.interleave")) {
      return s;
    }
    ir::Context& c = s.context();
    // Whole granules, which no two clusters' first parts share.
    const int64_t granule = machine.Get("gmem.granule") / bytes;
    const Expr part = c.I64(count / clusters / granule * granule);
    const Expr cluster = cluster_.var().type() == ir::Type::kI64
                             ? cluster_.var()
                             : c.Cast(ir::Type::kI64, cluster_.var());
    const Expr offset = (cluster - c.Cast(ir::Type::kI64, cluster_.min())) * part;
    const auto copy = [&](Expr first, Expr n) {
      std::vector<Expr> operands(call.operands().begin(), call.operands().end());
      for (int i = 0; i < 2; ++i) {
        const Buffer buffer(operands[i].buffer());
        const Expr index = operands[i].operand(0);
        const Expr wide = index.type() == ir::Type::kI64 ? index : c.Cast(ir::Type::kI64, index);
        operands[i] = c.Address(buffer, {wide + first});
      }
      operands[2] = n;
      return c.Evaluate(c.Call(call.type(), call.name(), operands));
    };
    if (decisions_ != nullptr) {
      decisions_->push_back(StrCat(ir::Print(s), ": cluster i of ", clusters, " starts at ",
                                   ir::Print(part), " * i"));
    }
    return c.Seq({copy(offset, c.I64(count) - offset), copy(c.I64(0), offset)});
  }

  const Target& target_;
  std::vector<std::string>* const decisions_;
  Stmt cluster_;  // the loop over cid around
};

}  // namespace

absl::StatusOr<bool> Stagger(ir::Function& function, const Target& target,
                             std::vector<std::string>* decisions) {
  if (target.instructions == nullptr || target.machine == nullptr) {
    return InvalidInput("stagger: target '", target.name, "' has no clusters");
  }
  const Stmt body = Staggerer(target, decisions).Walk(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

}  // namespace polynao
