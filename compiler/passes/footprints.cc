#include "compiler/passes/footprints.h"

#include <algorithm>
#include <iterator>

#include "base/status.h"
#include "compiler/arith/const_range.h"
#include "compiler/ir/visit.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using arith::ConstRange;
using arith::LinearForm;
using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// a * b, if one is constant.
std::optional<LinearForm> Product(const LinearForm& a, const LinearForm& b) {
  if (!a.IsConstant() && !b.IsConstant()) return std::nullopt;
  LinearForm product = a.IsConstant() ? b : a;
  if (!product.Scale(a.IsConstant() ? a.constant() : b.constant())) return std::nullopt;
  return product;
}

// `e`, of an instruction's meaning, over the forms of the instruction's arguments.
std::optional<LinearForm> FormOver(Expr e, const absl::flat_hash_map<Expr, LinearForm>& arguments) {
  if (e.Is(ExprKind::kIntImm)) return LinearForm::Constant(e.int_value());
  if (auto it = arguments.find(e); it != arguments.end()) return it->second;
  const bool is_sum = e.Is(ExprKind::kAdd) || e.Is(ExprKind::kSub);
  if (!is_sum && !e.Is(ExprKind::kMul)) return std::nullopt;
  std::optional<LinearForm> a = FormOver(e.operand(0), arguments);
  const std::optional<LinearForm> b = FormOver(e.operand(1), arguments);
  if (!a || !b) return std::nullopt;
  if (!is_sum) return Product(*a, *b);
  if (!a->Add(*b, e.Is(ExprKind::kAdd) ? 1 : -1)) return std::nullopt;
  return a;
}

}  // namespace

// ---- accesses

void Accesses::Add(const Accesses& other) {
  reads.Add(other.reads);
  writes.Add(other.writes);
  if (other.variable.empty()) return;
  std::vector<const VariableBytes*> all;
  std::set_union(variable.begin(), variable.end(), other.variable.begin(), other.variable.end(),
                 std::back_inserter(all),
                 [](const VariableBytes* a, const VariableBytes* b) { return a->id < b->id; });
  variable = std::move(all);
}

void Accesses::ForgetVariables() {
  for (const VariableBytes* bytes : variable) Add(bytes->range, bytes->is_write);
  variable.clear();
}

// ---- what statements access

Footprints::Footprints(const ir::Function& function, const Target& target)
    : target_(target),
      addresses_(CollectAddresses(function.body)),
      c_(*function.context),
      analyzer_(c_),
      ranges_(analyzer_) {}

absl::StatusOr<std::unique_ptr<Footprints>> Footprints::Compute(const ir::Function& function,
                                                                const Target& target) {
  std::unique_ptr<Footprints> footprints(new Footprints(function, target));
  RETURN_IF_ERROR(footprints->Visit(function.body));
  return footprints;
}

absl::Status Footprints::Visit(Stmt s) {
  arith::Analyzer::Scope scope(analyzer_);
  if (s.Is(StmtKind::kFor)) {
    analyzer_.BindLoop(s.var(), s.min(), s.extent());
    ranges_.BindLoop(s.var(), s.min(), s.extent());
  } else if (s.Is(StmtKind::kLet) && ir::IsInt(s.var().type())) {
    analyzer_.BindLet(s.var(), s.value());
    ranges_.BindLet(s.var(), s.value());
  }
  ASSIGN_OR_RETURN(accesses_[s], AccessesOf(s));
  const bool surrounds = s.Is(StmtKind::kFor) || s.Is(StmtKind::kIf) || s.Is(StmtKind::kLet);
  for (size_t i = 0; i < s.children().size(); ++i) {
    if (surrounds) enclosing_.emplace_back(s, i == 0);
    RETURN_IF_ERROR(Visit(s.children()[i]));
    if (surrounds) enclosing_.pop_back();
  }
  return absl::OkStatus();
}

absl::StatusOr<StatementAccesses> Footprints::AccessesOf(Stmt s) {
  StatementAccesses result;
  for (Expr e : s.operands()) {
    ir::ForEachExpr(e, [&](Expr x) {
      if (x.Is(ExprKind::kLoad)) AddElement(Buffer(x.buffer()), x.operands(), false, result.scalar);
    });
  }
  if (s.Is(StmtKind::kStore)) AddElement(s.buffer(), s.indices(), true, result.scalar);
  if (!s.Is(StmtKind::kEvaluate)) return result;
  const Expr call = s.value();
  result.instruction = target_.instructions->Find(call.name());
  if (result.instruction == nullptr) {
    return InvalidInput("sync: no instruction is named '", call.name(), "'");
  }
  result.queue = result.instruction->queue;
  AddOperands(*result.instruction, call, result.queued);
  return result;
}

ByteRange Footprints::WholeBuffer(Buffer buffer) const {
  const auto address = addresses_.find(buffer);
  const bool is_placed = address != addresses_.end();
  const int64_t memory = !is_placed                    ? kFirstBuffer + buffer->id
                         : buffer->scope == isa::kSmem ? kSmem
                         : buffer->scope == isa::kNmem ? kNmem
                                                       : kWmem;
  int64_t bytes = ir::ByteSize(buffer->type);
  for (Expr extent : buffer->extents) {
    if (!extent.Is(ExprKind::kIntImm)) return {memory, 0, arith::kInfinity};
    bytes *= extent.int_value();
  }
  const int64_t begin = is_placed ? address->second : 0;
  return {memory, begin, begin + bytes};
}

// A scalar access: the element at `indices`, for all values that they may have.
void Footprints::AddElement(Buffer buffer, absl::Span<const Expr> indices, bool is_write,
                            Accesses& accesses) {
  const ByteRange whole = WholeBuffer(buffer);
  if (indices.size() != 1) {
    accesses.Add(whole, is_write);
    return;
  }
  const int64_t size = ir::ByteSize(buffer->type);
  const ConstRange index = ranges_.Range(indices[0]);
  const ConstRange first = ConstRange::Point(whole.begin) + index * ConstRange::Point(size);
  const ConstRange bytes = first + ConstRange{0, size};
  ByteRange range = {whole.memory, bytes.min, bytes.max};
  if (!index.IsPoint()) {
    range.begin = std::max(range.begin, whole.begin);
    range.end = std::min(range.end, whole.end);
  }
  accesses.Add(range, is_write);
}

void Footprints::AddOperands(const isa::Instruction& instruction, Expr call, Accesses& accesses) {
  const auto argument = [&](const isa::Operand& operand) { return call.operand(operand.param); };
  bool is_constant = true;
  std::vector<int64_t> values;
  for (const isa::Operand& operand : instruction.operands) {
    // Addresses are 0, so that the footprint is relative to them. A float changes no address.
    const bool is_offset =
        operand.kind != isa::OperandKind::kAddress && ir::IsInt(argument(operand).type());
    is_constant = is_constant && (!is_offset || argument(operand).Is(ExprKind::kIntImm));
    values.push_back(is_constant && is_offset ? argument(operand).int_value() : 0);
  }
  if (is_constant) {
    for (const isa::ByteRanges& bytes : target_.instructions->Footprint(instruction, values)) {
      const Expr address = argument(instruction.operands[bytes.operand]);
      AddBytes(Buffer(address.buffer()), address.operands(), LinearForm::Constant(bytes.begin),
               LinearForm::Constant(bytes.end()), bytes.is_write, accesses);
    }
    return;
  }
  absl::flat_hash_map<Expr, LinearForm> arguments;
  for (const isa::Operand& operand : instruction.operands) {
    if (operand.kind == isa::OperandKind::kAddress || !ir::IsInt(argument(operand).type())) {
      continue;
    }
    arguments[instruction.meaning.params[operand.param].var] = FormOfArgument(argument(operand));
  }
  for (const isa::Operand& operand : instruction.operands) {
    if (operand.kind != isa::OperandKind::kAddress) continue;
    const ir::BufferNode& memory = *instruction.meaning.params[operand.param].buffer.node();
    std::optional<LinearForm> end = LinearForm::Constant(ir::ByteSize(memory.type));
    for (Expr extent : memory.extents) {
      const std::optional<LinearForm> form = FormOver(extent, arguments);
      end = end && form ? Product(*end, *form) : std::nullopt;
    }
    const Expr address = argument(operand);
    for (const bool is_write : {false, true}) {
      if (!(is_write ? operand.is_written : operand.is_read)) continue;
      AddBytes(Buffer(address.buffer()), address.operands(), LinearForm(), end, is_write, accesses);
    }
  }
}

// The bytes from `begin` to `end` behind the element at `indices`; to the buffer's end if `end` is
// unknown.
void Footprints::AddBytes(Buffer buffer, absl::Span<const Expr> indices, const LinearForm& begin,
                          const std::optional<LinearForm>& end, bool is_write, Accesses& accesses) {
  const ByteRange whole = WholeBuffer(buffer);
  if (indices.size() != 1 || !end) {
    accesses.Add(whole, is_write);
    return;
  }
  const ConstRange element_size = ConstRange::Point(ir::ByteSize(buffer->type));
  const std::optional<LinearForm> at =
      Product(analyzer_.Form(indices[0]), LinearForm::Constant(ir::ByteSize(buffer->type)));
  LinearForm first = LinearForm::Constant(whole.begin);
  LinearForm last = LinearForm::Constant(whole.begin);
  if (!at || !first.Add(*at) || !first.Add(begin) || !last.Add(*at) || !last.Add(*end)) {
    accesses.Add(whole, is_write);
    return;
  }
  if (first.IsConstant() && last.IsConstant()) {
    accesses.Add({whole.memory, first.constant(), last.constant()}, is_write);
    return;
  }
  // The form cancels terms that begin and end share; the expression knows the ranges of remainders.
  const ConstRange start =
      ranges_.Range(indices[0]) * element_size + ConstRange::Point(whole.begin);
  const ByteRange range = {
      whole.memory,
      std::max({ranges_.Range(first).min, (start + ranges_.Range(begin)).min, whole.begin}),
      std::min({ranges_.Range(last).max, (start + ranges_.Range(*end)).max, whole.end})};
  if (range.IsEmpty()) return;
  variable_.push_back({.range = range,
                       .is_write = is_write,
                       .begin = first,
                       .end = last,
                       .id = static_cast<int>(variable_.size()),
                       .enclosing = enclosing_});
  accesses.variable.push_back(&variable_.back());
}

// An argument as a sum. Widening casts keep the value, so that sums below them are taken apart, too.
LinearForm Footprints::FormOfArgument(Expr e) {
  const LinearForm form = analyzer_.Form(e, arith::Mode::kData);
  LinearForm result = LinearForm::Constant(form.constant());
  for (const LinearForm::Term& term : form.terms()) {
    const Expr atom = term.atom;
    const bool widens = atom.Is(ExprKind::kCast) && ir::IsInt(atom.operand(0).type()) &&
                        atom.type() == ir::Type::kI64;
    const LinearForm part = widens ? FormOfArgument(atom.operand(0)) : LinearForm::Atom(atom);
    if (!result.Add(part, term.coefficient)) return form;
  }
  return result;
}

// ---- conflicts

void Footprints::Assume(const EnclosingStmts& enclosing) {
  for (const auto& [s, is_first] : enclosing) {
    if (s.Is(StmtKind::kFor)) analyzer_.BindLoop(s.var(), s.min(), s.extent());
    if (s.Is(StmtKind::kLet)) analyzer_.BindLet(s.var(), s.value());
    if (s.Is(StmtKind::kIf)) analyzer_.Assume(s.cond(), is_first);
  }
}

// Whether the two share no byte, whatever the variables are.
bool Footprints::AreApart(const VariableBytes& a, const VariableBytes& b) {
  LinearForm from_a_to_b = b.begin;  // bytes between the end of a and the begin of b
  LinearForm from_b_to_a = a.begin;
  if (!from_a_to_b.Add(a.end, -1) || !from_b_to_a.Add(b.end, -1)) return false;
  if (ranges_.Range(from_a_to_b).min >= 0 || ranges_.Range(from_b_to_a).min >= 0) return true;
  // The conditions around both may exclude the rest; asking about them takes longer.
  arith::Analyzer::Scope scope(analyzer_);
  Assume(a.enclosing);
  Assume(b.enclosing);
  const auto is_never_negative = [&](const LinearForm& form) {
    if (form.IsConstant()) return false;
    const ir::Type type = form.terms()[0].atom.type();
    for (const LinearForm::Term& term : form.terms()) {
      if (term.atom.type() != type) return false;
    }
    return analyzer_.CanProve(c_.Int(type, 0) <=
                              arith::SumExpr(c_, type, form.terms(), form.constant()));
  };
  return is_never_negative(from_a_to_b) || is_never_negative(from_b_to_a);
}

bool Footprints::MeetsVariable(const Accesses& a, const Accesses& variable) const {
  return std::any_of(variable.variable.begin(), variable.variable.end(),
                     [&](const VariableBytes* bytes) {
                       return a.writes.Overlaps(bytes->range) ||
                              (bytes->is_write && a.reads.Overlaps(bytes->range));
                     });
}

bool Footprints::Conflict(const Accesses& a, const Accesses& b) {
  if (a.writes.Overlaps(b.reads) || a.writes.Overlaps(b.writes) || a.reads.Overlaps(b.writes) ||
      MeetsVariable(a, b) || MeetsVariable(b, a)) {
    return true;
  }
  for (const VariableBytes* x : a.variable) {
    for (const VariableBytes* y : b.variable) {
      if ((x->is_write || y->is_write) && x->range.Overlaps(y->range) && !AreApart(*x, *y)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace polynao
