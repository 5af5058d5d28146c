#include "compiler/poly/pack/dot.h"

#include <algorithm>
#include <memory>

#include "compiler/ir/visit.h"

namespace polynao::poly {

namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

// What is cast to the type of the sums.
Expr Uncast(Expr operand) { return operand.Is(ExprKind::kCast) ? operand.operand(0) : operand; }

// All values of `narrow` are values of `wide`.
bool Holds(Type wide, Type narrow) {
  if (wide == narrow) return true;
  return ir::IsInt(wide) && ir::IsInt(narrow) && ir::ByteSize(wide) > ir::ByteSize(narrow) &&
         (!ir::IsUnsigned(wide) || ir::IsUnsigned(narrow));
}

// How the operands of the instruction's own product, in the order of its meaning, are made of these types.
enum class Fit { kNone, kWidened, kAsTheyAre };
Fit Takes(const isa::ProcessorInstruction& row, Type a, Type b, bool* shifts) {
  *shifts = row.a->type == Type::kU8 && a == Type::kI8 && !row.IsTile();
  if ((row.a->type == a || *shifts) && row.b->type == b) return Fit::kAsTheyAre;
  *shifts = false;
  return Holds(row.a->type, a) && Holds(row.b->type, b) ? Fit::kWidened : Fit::kNone;
}

// Sums of products: no differences.
bool AddsProducts(const Contraction& contraction) {
  const Expr value = contraction.statement->code.value();
  return value.Is(ExprKind::kAdd) || value.Is(ExprKind::kCall);
}

class Instance : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Instance(const ir::Function& meaning, const DotElements& elements)
      : sums_(meaning.params[0].buffer),
        a_(meaning.params[1].buffer),
        b_(meaning.params[2].buffer),
        elements_(elements) {}

  Expr Mutate(Expr e) override {
    e = MutateOperands(e);
    if (!e.Is(ExprKind::kLoad)) return e;
    const ir::Buffer buffer(e.buffer());
    if (buffer == sums_) return elements_.sum(e.operands());
    if (buffer == a_) return elements_.a(e.operands());
    return buffer == b_ ? elements_.b(e.operands()) : e;
  }

  ir::Stmt Mutate(ir::Stmt s) override {
    s = MutateChildren(s);
    const bool is_sum = s.Is(ir::StmtKind::kStore) && s.buffer() == sums_;
    return is_sum ? elements_.store(s.indices(), s.value()) : s;
  }

 private:
  const ir::Buffer sums_, a_, b_;
  const DotElements& elements_;
};

// The context outlives the copy, which need not own it.
ir::Function MeaningIn(ir::Context& context, const isa::ProcessorInstruction& instruction) {
  return ir::CloneInto(instruction.meaning,
                       std::shared_ptr<ir::Context>(&context, [](ir::Context*) {}));
}

}  // namespace

ir::Stmt InstanceOf(const isa::ProcessorInstruction& instruction, ir::Context& context,
                    const DotElements& elements) {
  const ir::Function meaning = MeaningIn(context, instruction);
  return Instance(meaning, elements).Mutate(meaning.body);
}

ir::Stmt InstanceAt(const isa::ProcessorInstruction& instruction, Expr lane,
                    const DotElements& elements) {
  const ir::Function meaning = MeaningIn(lane.context(), instruction);
  const ir::Stmt lanes = meaning.body;
  return Instance(meaning, elements)
      .Mutate(ir::Substitute(lanes.body(), {{ir::Var(lanes.var()), lane}}));
}

std::vector<Dot> FindDots(const Contraction& contraction, const CpuMachine& machine,
                          bool takes_floats) {
  std::vector<Dot> dots, widened;
  if (!AddsProducts(contraction)) return dots;
  const Expr row = Uncast(contraction.row_operand), column = Uncast(contraction.column_operand);
  for (const isa::ProcessorInstruction& instruction : isa::ProcessorInstructions()) {
    Dot dot{.instruction = &instruction, .row_operand = row, .column_operand = column};
    const bool has_feature =
        std::count(machine.features.begin(), machine.features.end(), instruction.feature) > 0;
    const int64_t bytes = instruction.lanes * instruction.group * ir::ByteSize(instruction.b->type);
    if ((!instruction.IsExact() && !takes_floats) || !has_feature ||
        bytes != machine.vector_bytes || contraction.element.type() != instruction.sums->type) {
      continue;
    }
    const Fit fit = Takes(instruction, row.type(), column.type(), &dot.shifts_rows);
    if (fit != Fit::kNone) (fit == Fit::kAsTheyAre ? dots : widened).push_back(dot);
  }
  // Narrow elements are more products of an instruction.
  return dots.empty() ? widened : dots;
}

}  // namespace polynao::poly
