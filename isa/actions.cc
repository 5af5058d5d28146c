#include "isa/actions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compiler/ir/visit.h"

namespace polynao::isa {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// The parameter of the machine in whose multiples slow operations are priced.
constexpr std::string_view kSlow = "vector.slow";

bool Contains(Expr root, ExprKind kind) {
  bool found = false;
  ir::ForEachExpr(root, [&](Expr e) { found |= e.Is(kind); });
  return found;
}

// `e` without the conversions around it.
Expr StripCasts(Expr e) {
  while (e.Is(ExprKind::kCast)) e = e.operand(0);
  return e;
}

}  // namespace

void ActionCounts::Add(const ActionCounts& other) {
  for (size_t t = 0; t < macs.size(); ++t) {
    macs[t] += other.macs[t];
    element_ops[t] += other.element_ops[t];
    slow_ops[t] += other.slow_ops[t];
  }
  for (size_t s = 0; s < bytes.size(); ++s) {
    for (size_t u = 0; u < bytes[s].size(); ++u) {
      bytes[s][u].read += other.bytes[s][u].read;
      bytes[s][u].written += other.bytes[s][u].written;
    }
  }
}

std::vector<std::pair<std::string, int64_t>> ActionCounts::Rows() const {
  std::vector<std::pair<std::string, int64_t>> rows;
  const auto add = [&](std::string name, int64_t value) {
    if (value != 0) rows.push_back({std::move(name), value});
  };
  const auto by_type = [&](const char* name, const ByType<int64_t>& values) {
    for (size_t t = 0; t < values.size(); ++t) {
      add(absl::StrCat(name, ".", std::string(ir::TypeName(ir::Type(t)))), values[t]);
    }
  };
  by_type("macs", macs);
  by_type("element_ops", element_ops);
  by_type("slow_ops", slow_ops);
  for (size_t s = 0; s < bytes.size(); ++s) {
    for (size_t u = 0; u < bytes[s].size(); ++u) {
      const std::string port =
          absl::StrCat(std::string(SpaceName(Space(s))), ".", std::string(UnitName(Unit(u))));
      add(port + ".read", bytes[s][u].read);
      add(port + ".written", bytes[s][u].written);
    }
  }
  return rows;
}

class ActionPlan::Builder {
 public:
  Builder(const Instruction& instruction, const ir::IntExpression::Resolver& resolver)
      : instruction_(instruction), resolver_(resolver) {}

  absl::StatusOr<ActionPlan> Build() {
    result_.unit_ = instruction_.unit;
    ir::ForEachExpr(instruction_.cost,
                    [&](Expr e) { is_slow_ |= e.Is(ExprKind::kVar) && e.name() == kSlow; });
    RETURN_IF_ERROR(Visit(instruction_.meaning.body));
    return std::move(result_);
  }

 private:
  struct Loop {
    ir::Var var;
    int extent;     // position in extents_
    bool is_lanes;  // its extent is a constant
    Expr last;      // the value of var in the last iteration
  };

  const Operand* FindOperand(const ir::BufferNode* buffer, int* index) const {
    for (size_t o = 0; o < instruction_.operands.size(); ++o) {
      const Operand& operand = instruction_.operands[o];
      if (operand.kind == OperandKind::kAddress &&
          instruction_.meaning.params[static_cast<size_t>(operand.param)].buffer.node() == buffer) {
        *index = static_cast<int>(o);
        return &operand;
      }
    }
    return nullptr;  // registers, pc, arguments: no memory
  }

  static bool AnyUses(absl::Span<const Expr> indices, ir::Var var) {
    return std::any_of(indices.begin(), indices.end(), [&](Expr e) { return ir::UsesVar(e, var); });
  }

  // An operand's element is read where the statement stands.
  void AddRead(const ir::BufferNode* buffer, absl::Span<const Expr> indices) {
    int index = -1;
    const Operand* operand = FindOperand(buffer, &index);
    if (operand == nullptr || operand->is_written) return;
    Term term{.kind = Term::Kind::kRead,
              .space = operand->space,
              .operand = index,
              .factor = ir::ByteSize(buffer->type),
              .loops = {}};
    for (const Loop& loop : loops_) {
      if (!loop.is_lanes || AnyUses(indices, loop.var)) term.loops.push_back(loop.extent);
    }
    result_.terms_.push_back(std::move(term));
  }

  void AddReads(Expr root) {
    // Once for each position, even where an expression stands twice: the unit fetches it once a pass.
    ir::ForEachExpr(root, [&](Expr e) {
      if (e.Is(ExprKind::kLoad)) AddRead(e.buffer(), e.operands());
    });
  }

  void AddWrite(const ir::BufferNode* buffer, absl::Span<const Expr> indices) {
    int index = -1;
    const Operand* operand = FindOperand(buffer, &index);
    if (operand == nullptr) return;
    Term term{.kind = Term::Kind::kWrite,
              .space = operand->space,
              .operand = index,
              .factor = ir::ByteSize(buffer->type),
              .loops = {}};
    for (const Loop& loop : loops_) {
      if (AnyUses(indices, loop.var)) term.loops.push_back(loop.extent);
    }
    // A sum is set and then added to: one write of each element.
    const bool known =
        std::any_of(result_.terms_.begin(), result_.terms_.end(), [&](const Term& other) {
          return other.kind == Term::Kind::kWrite && other.operand == index;
        });
    if (known) return;
    if (operand->is_read) {
      Term read = term;
      read.kind = Term::Kind::kRead;
      result_.terms_.push_back(std::move(read));
    }
    result_.terms_.push_back(std::move(term));
  }

  void AddOperation(const ir::BufferNode* buffer, Expr value) {
    Term term{.kind = is_slow_ ? Term::Kind::kSlowOp : Term::Kind::kElementOp, .loops = {}};
    if (instruction_.unit == Unit::kTensor) {
      Expr product;
      ir::ForEachExpr(value, [&](Expr e) {
        if (e.Is(ExprKind::kMul) && Contains(e, ExprKind::kLoad)) product = e;
      });
      if (!product) return;
      term.kind = Term::Kind::kMac;
      term.type = StripCasts(product.operand(0)).type();
    } else if (instruction_.unit == Unit::kVector) {
      if (!Contains(value, ExprKind::kLoad) || value.Is(ExprKind::kLoad)) return;
      // A conversion is one in the wider of its types.
      term.type = buffer->type;
      ir::ForEachExpr(value, [&](Expr e) {
        if (e.Is(ExprKind::kLoad) && ir::ByteSize(e.type()) > ir::ByteSize(term.type)) {
          term.type = e.type();
        }
      });
    } else {
      return;
    }
    for (const Loop& loop : loops_) term.loops.push_back(loop.extent);
    result_.terms_.push_back(std::move(term));
  }

  absl::Status Visit(Stmt s) {
    if (s.Is(StmtKind::kLet)) return Visit(ir::Substitute(s.body(), {{s.var(), s.value()}}));
    if (s.Is(StmtKind::kStore)) {
      for (Expr operand : s.operands()) AddReads(operand);
      AddOperation(s.buffer().node(), s.value());
      AddWrite(s.buffer().node(), s.indices());
      return absl::OkStatus();
    }
    for (Expr operand : s.operands()) AddReads(operand);
    if (s.Is(StmtKind::kFor)) {
      // An extent that depends on the loops around counts as in their last iteration, one of loaded values as one.
      Expr count = s.extent();
      for (size_t k = loops_.size(); k-- > 0;) {
        count = ir::Substitute(count, {{loops_[k].var, loops_[k].last}});
      }
      absl::StatusOr<ir::IntExpression> compiled = ir::IntExpression::Compile(count, resolver_);
      if (!compiled.ok()) {
        compiled = ir::IntExpression::Compile(s.extent().context().I64(1), resolver_);
      }
      ASSIGN_OR_RETURN(ir::IntExpression extent, std::move(compiled));
      const Expr last = s.min() + s.extent() - s.context().Const(s.extent().type(), 1);
      loops_.push_back(
          {s.var(), static_cast<int>(result_.extents_.size()), s.extent().IsConst(), last});
      result_.extents_.push_back(std::move(extent));
      RETURN_IF_ERROR(Visit(s.body()));
      loops_.pop_back();
      return absl::OkStatus();
    }
    for (Stmt child : s.children()) RETURN_IF_ERROR(Visit(child));
    return absl::OkStatus();
  }

  const Instruction& instruction_;
  const ir::IntExpression::Resolver& resolver_;
  ActionPlan result_;
  bool is_slow_ = false;
  std::vector<Loop> loops_;
};

absl::StatusOr<ActionPlan> ActionPlan::Create(const Instruction& instruction,
                                              const ir::IntExpression::Resolver& resolver) {
  return Builder(instruction, resolver).Build();
}

void ActionPlan::Count(const ir::IntInputs& inputs, ActionCounts* counts) const {
  for (const Term& term : terms_) {
    int64_t count = term.factor;
    for (int loop : term.loops) {
      int64_t extent = 0;
      if (!extents_[static_cast<size_t>(loop)].Evaluate(inputs, &extent)) extent = 0;
      count *= std::max<int64_t>(0, extent);
    }
    const size_t type = static_cast<size_t>(term.type);
    ActionCounts::Bytes& bytes =
        counts->bytes[static_cast<size_t>(term.space)][static_cast<size_t>(unit_)];
    switch (term.kind) {
      case Term::Kind::kMac:
        counts->macs[type] += count;
        break;
      case Term::Kind::kElementOp:
        counts->element_ops[type] += count;
        break;
      case Term::Kind::kSlowOp:
        counts->slow_ops[type] += count;
        break;
      case Term::Kind::kRead:
        bytes.read += count;
        break;
      case Term::Kind::kWrite:
        bytes.written += count;
        break;
    }
  }
}

}  // namespace polynao::isa
