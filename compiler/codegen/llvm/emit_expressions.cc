// Expressions: as values, as indices and as conditions, each once per statement.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "compiler/arith/logic.h"
#include "compiler/codegen/llvm/emitter.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/float_rules.h"
#include "compiler/ir/intrinsics.h"
#include "llvm/IR/IRBuilder.h"

namespace polynao::codegen {

using ir::Expr;
using ir::ExprKind;
using ir::Type;
using llvm::BasicBlock;
using llvm::Value;

namespace {

// Evaluating this many operations is cheaper than a mispredicted branch.
constexpr int kMaxSpeculatedOperations = 24;

}  // namespace

absl::StatusOr<Value*> Emitter::EmitAlone(Expr e, Want want) {
  ScopedCache scope(this);
  return EmitCached(e, want);
}

absl::StatusOr<Value*> Emitter::EmitCached(Expr e, Want want) {
  const CacheKey key(e, want);
  if (auto it = cache_.find(key); it != cache_.end()) return it->second;
  absl::StatusOr<Value*> value = want == Want::kValue   ? EmitUncached(e)
                                 : want == Want::kIndex ? EmitIndexUncached(e)
                                                        : EmitConditionUncached(e);
  if (!value.ok()) return value;
  cache_[key] = *value;
  log_.push_back(key);
  return value;
}

Value* Emitter::Widen(Value* value, Type type) {
  llvm::Type* wide = ScalarOps::Like(value, b_.getInt64Ty());
  return ir::IsUnsigned(type) ? b_.CreateZExt(value, wide) : b_.CreateSExt(value, wide);
}

absl::StatusOr<Value*> Emitter::EmitIndexUncached(Expr e) {
  if (e.Is(ExprKind::kIntImm)) return b_.getInt64(e.int_value());
  if (e.Is(ExprKind::kVar)) {
    const VarInfo& info = vars_.at(e);
    return info.wide != nullptr ? info.wide : Widen(info.value, e.type());
  }
  if (e.Is(ExprKind::kCast) && e.type() == Type::kI64 && ir::IsInt(e.operand(0).type())) {
    return EmitIndex(e.operand(0));
  }
  // Division by a variable keeps its type: 64-bit division is slower. So does division by -1: the one quotient that
  // does not fit the type wraps, in an index too.
  const bool division = e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod);
  if (IsMathematical(e.type()) &&
      (!division || (e.operand(1).Is(ExprKind::kIntImm) && !e.operand(1).IsInt(-1)))) {
    if (e.Is(ExprKind::kSelect)) return EmitSelect(e, Want::kIndex);
    if (IsBinary(e.kind()) && !ir::IsBitOperation(e.kind())) {
      ASSIGN_OR_RETURN(Value * a, EmitIndex(e.operand(0)));
      ASSIGN_OR_RETURN(Value * b, EmitIndex(e.operand(1)));
      MakeAlike({&a, &b});
      // Of vectors of i64 a register holds half as many lanes.
      if (IsVector(a) && IsNarrow(e) && NarrowIndices(e, &a, &b)) {
        return Widen(IntBinary(e, Type::kI32, a, b, /*wraps=*/false), Type::kI32);
      }
      return IntBinary(e, Type::kI64, a, b, /*wraps=*/false);
    }
  }
  ASSIGN_OR_RETURN(Value * value, EmitValue(e));
  return Widen(value, e.type());
}

absl::StatusOr<Value*> Emitter::EmitConditionUncached(Expr e) {
  if (IsComparison(e.kind()) && IsMathematical(e.operand(0).type())) {
    ASSIGN_OR_RETURN(Value * a, EmitIndex(e.operand(0)));
    ASSIGN_OR_RETURN(Value * b, EmitIndex(e.operand(1)));
    MakeAlike({&a, &b});
    if (IsVector(a)) NarrowIndices(e, &a, &b);
    return ops_.Compare(e.kind(), Type::kI64, a, b);
  }
  if (e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr)) return EmitAndOr(e, Want::kCondition);
  if (e.Is(ExprKind::kSelect)) return EmitSelect(e, Want::kCondition);
  if (e.Is(ExprKind::kNot)) {
    ASSIGN_OR_RETURN(Value * value, EmitCondition(e.operand(0)));
    return b_.CreateNot(value);
  }
  return EmitValue(e);
}

absl::StatusOr<Value*> Emitter::EmitUncached(Expr e) {
  const Type type = e.type();
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return llvm::ConstantInt::getSigned(ops_.ValueType(type), e.int_value());
    case ExprKind::kFloatImm:
      return llvm::ConstantFP::get(ops_.ValueType(type), e.float_value());
    case ExprKind::kVar:
      return vars_.at(e).value;
    case ExprKind::kCast: {
      ASSIGN_OR_RETURN(Value * value, EmitValue(e.operand(0)));
      return ops_.Cast(value, e.operand(0).type(), type);
    }
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return EmitAndOr(e, Want::kValue);
    case ExprKind::kNot: {
      ASSIGN_OR_RETURN(Value * value, EmitValue(e.operand(0)));
      return b_.CreateNot(value);
    }
    case ExprKind::kSelect:
      return EmitSelect(e, Want::kValue);
    case ExprKind::kLet: {
      ASSIGN_OR_RETURN(Value * value, EmitValue(e.operand(0)));
      ScopedCache scope(this);
      vars_[e.var()] = {.value = value};
      absl::StatusOr<Value*> body = EmitValue(e.operand(1));
      vars_.erase(e.var());
      return body;
    }
    case ExprKind::kLoad:
      return lanes_ != nullptr ? EmitVectorLoad(e) : EmitLoad(e);
    case ExprKind::kAddress:
      return InvalidInput(function_.name, ": the address of an element of '", e.buffer()->name,
                          "' is an argument of tensor instructions, which the cpu target does not "
                          "have");
    case ExprKind::kCall:
      return EmitCall(e);
    default:
      break;
  }
  POLYNAO_CHECK(IsBinary(e.kind())) << ExprKindName(e.kind());
  const Type operand_type = e.operand(0).type();
  ASSIGN_OR_RETURN(Value * a, EmitValue(e.operand(0)));
  ASSIGN_OR_RETURN(Value * b, EmitValue(e.operand(1)));
  const bool is_float = !IsComparison(e.kind()) && !ir::IsInt(operand_type);
  llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
  if (is_float && !e.Is(ExprKind::kMin) && !e.Is(ExprKind::kMax)) b_.setFastMathFlags(FloatFlags());
  if (is_float) {
    if (Value* value = BinaryOfRows(e.kind(), a, b)) return value;
  }
  MakeAlike({&a, &b});
  if (IsComparison(e.kind())) return ops_.Compare(e.kind(), operand_type, a, b);
  if (ir::IsInt(operand_type)) return IntBinary(e, operand_type, a, b, /*wraps=*/true);
  return ops_.FloatBinary(e.kind(), operand_type, a, b);
}

llvm::FastMathFlags Emitter::FloatFlags() const {
  const ir::FloatRules rules = ir::FloatRulesOf(function_);
  llvm::FastMathFlags flags;
  flags.setAllowContract(options_.float_rules.contract || rules.contract);
  flags.setAllowReassoc(options_.float_rules.reassociate || rules.reassociate);
  flags.setAllowReciprocal(options_.float_rules.reciprocal || rules.reciprocal);
  // A reordered sum may give the other zero, and LLVM reorders few sums that must not.
  flags.setNoSignedZeros(flags.allowReassoc());
  return flags;
}

Value* Emitter::IntBinary(Expr e, Type type, Value* a, Value* b, bool wraps) {
  const bool divides = e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod);
  if (divides && options_.checks) {
    auto* constant = llvm::dyn_cast<llvm::ConstantInt>(b);
    if (constant == nullptr || constant->isZero()) {
      FailIf(b_.CreateIsNull(b), "division by zero");
    }
  }
  return ops_.IntBinary(e.kind(), type, a, b, wraps);
}

absl::StatusOr<Value*> Emitter::EmitExternCall(Expr e) {
  const ir::ExternNode& callee = *e.callee();
  const bool has_meaning = ir::HasMeaning(callee);
  // A function that stands elsewhere has the types of C: f16 and bf16 are floats.
  const auto abi_type = [&](Type type) {
    const bool is_narrow = type == Type::kF16 || type == Type::kBF16;
    return is_narrow && !has_meaning ? Type::kF32 : type;
  };
  std::vector<Value*> arguments;
  std::vector<llvm::Type*> types;
  for (Expr operand : e.operands()) {
    Value* value = nullptr;
    if (operand.Is(ExprKind::kAddress)) {
      ASSIGN_OR_RETURN(value, ElementAddress(ir::Buffer(operand.buffer()), operand.operands()));
    } else {
      ASSIGN_OR_RETURN(value, EmitValue(operand));
      const Type type = abi_type(operand.type());
      if (type != operand.type()) value = ops_.Cast(value, operand.type(), type);
    }
    arguments.push_back(value);
    types.push_back(value->getType());
  }
  if (has_meaning) {
    llvm::Function* meaning = module_.getFunction(MeaningName(callee.name));
    POLYNAO_CHECK(meaning != nullptr) << callee.name;
    llvm::AllocaInst* result = nullptr;
    if (callee.result) {
      result = new llvm::AllocaInst(ops_.MemoryType(*callee.result), 0, callee.name,
                                    entry_end_->getIterator());
      arguments.push_back(result);
    }
    Value* code = b_.CreateCall(meaning, arguments);
    LeaveIf(b_.CreateIsNotNull(code), code);
    if (!callee.result) return code;
    return ops_.FromMemory(b_.CreateLoad(ops_.MemoryType(*callee.result), result), *callee.result);
  }
  const Type result = abi_type(e.type());
  llvm::Type* type = callee.result ? ops_.ValueType(result) : b_.getVoidTy();
  llvm::FunctionCallee declared = module_.getOrInsertFunction(
      callee.name, llvm::FunctionType::get(type, types, /*isVarArg=*/false));
  auto* function = llvm::cast<llvm::Function>(declared.getCallee());
  const auto extension = [](Type small) {
    return ir::IsUnsigned(small) || small == Type::kI1 ? llvm::Attribute::ZExt
                                                       : llvm::Attribute::SExt;
  };
  const auto is_small = [](Type t) { return ir::IsInt(t) && ir::BitWidth(t) < 32; };
  llvm::CallInst* call = b_.CreateCall(declared, arguments);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_address = e.operand(i).Is(ExprKind::kAddress);
    const Type argument = e.operand(i).type();
    if (is_address) function->addParamAttr(i, llvm::Attribute::NoCapture);
    if (is_address || !is_small(argument)) continue;
    function->addParamAttr(i, extension(argument));
    call->addParamAttr(i, extension(argument));
  }
  if (callee.result && is_small(e.type())) {
    function->addRetAttr(extension(e.type()));
    call->addRetAttr(extension(e.type()));
  }
  function->setDoesNotThrow();
  if (callee.effect <= ir::Effect::kReads) function->setWillReturn();
  if (callee.effect == ir::Effect::kPure) function->setDoesNotAccessMemory();
  if (callee.effect == ir::Effect::kReads) function->setOnlyReadsMemory();
  if (result == e.type() || !callee.result) return call;
  return ops_.Cast(call, result, e.type());
}

absl::StatusOr<Value*> Emitter::EmitCall(Expr e) {
  if (e.callee() != nullptr) return EmitExternCall(e);
  const ir::PureIntrinsic* intrinsic = ir::FindPureIntrinsic(e.name());
  if (intrinsic == nullptr) {
    return InvalidInput(function_.name, ": call of '", std::string(e.name()),
                        "': the cpu target has no tensor instructions; expected a pure intrinsic "
                        "such as exp");
  }
  std::vector<Value*> arguments;
  for (Expr operand : e.operands()) {
    ASSIGN_OR_RETURN(Value * value, EmitValue(operand));
    arguments.push_back(value);
  }
  if (arguments.size() == 2) MakeAlike({&arguments[0], &arguments[1]});
  if (arguments.size() == 3) MakeAlike({&arguments[0], &arguments[1], &arguments[2]});
  return ops_.Intrinsic(*intrinsic, e.type(), arguments);
}

// ---- conditional evaluation ---------------------------------------------------------------------

int Emitter::SpeculationCost(Expr e) {
  auto [it, added] = speculation_cost_.try_emplace(e, kMaxSpeculatedOperations + 1);
  if (!added) return it->second;
  const bool is_exact =
      !e.Is(ExprKind::kCall) || (ir::IsPureIntrinsic(e.name()) &&
                                 ir::FindPureIntrinsic(e.name())->accuracy == ir::Accuracy::kExact);
  const bool allowed = is_exact && !arith::IsTrap(e) && !e.Is(ExprKind::kAddress);
  if (!allowed) return kMaxSpeculatedOperations + 1;
  int cost = e.operands().empty() ? 0 : 1;
  for (Expr operand : e.operands()) {
    cost = std::min(cost + SpeculationCost(operand), kMaxSpeculatedOperations + 1);
  }
  return speculation_cost_[e] = cost;
}

bool Emitter::IsSpeculatable(Expr e) { return SpeculationCost(e) <= kMaxSpeculatedOperations; }

template <typename Then, typename Else>
absl::StatusOr<Value*> Emitter::Branch(Value* condition, Then emit_then, Else emit_else) {
  BasicBlock* then_block = NewBlock("then");
  BasicBlock* else_block = NewBlock("else");
  BasicBlock* join = NewBlock("join");
  b_.CreateCondBr(condition, then_block, else_block);
  b_.SetInsertPoint(then_block);
  Value* then_value = nullptr;
  {
    ScopedCache scope(this);
    ASSIGN_OR_RETURN(then_value, emit_then());
  }
  BasicBlock* then_end = b_.GetInsertBlock();
  b_.CreateBr(join);
  b_.SetInsertPoint(else_block);
  Value* else_value = nullptr;
  {
    ScopedCache scope(this);
    ASSIGN_OR_RETURN(else_value, emit_else());
  }
  BasicBlock* else_end = b_.GetInsertBlock();
  if (IsVector(then_value) != IsVector(else_value)) {
    else_value = Splat(else_value);
    b_.SetInsertPoint(then_end->getTerminator());
    then_value = Splat(then_value);
    b_.SetInsertPoint(else_end);
  }
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  llvm::PHINode* phi = b_.CreatePHI(then_value->getType(), 2);
  phi->addIncoming(then_value, then_end);
  phi->addIncoming(else_value, else_end);
  return phi;
}

absl::StatusOr<Value*> Emitter::EmitAndOr(Expr e, Want want) {
  const bool is_and = e.Is(ExprKind::kAnd);
  ASSIGN_OR_RETURN(Value * a, EmitCached(e.operand(0), want));
  const Expr second = e.operand(1);
  Value* decided = b_.getInt1(!is_and);
  if (IsSpeculatable(second) || IsVector(a)) {
    ASSIGN_OR_RETURN(Value * b, IsSpeculatable(second) ? EmitCached(second, want)
                                                       : EmitMasked(a, is_and, second, want));
    MakeAlike({&a, &b, &decided});
    return is_and ? b_.CreateSelect(a, b, decided) : b_.CreateSelect(a, decided, b);
  }
  auto emit_second = [&] { return EmitCached(second, want); };
  auto emit_decided = [&]() -> absl::StatusOr<Value*> { return decided; };
  return is_and ? Branch(a, emit_second, emit_decided) : Branch(a, emit_decided, emit_second);
}

absl::StatusOr<Value*> Emitter::EmitSelect(Expr e, Want want) {
  // In a stored value the condition's arithmetic wraps like the rest.
  ASSIGN_OR_RETURN(
      Value * condition,
      EmitCached(e.operand(0), want == Want::kValue ? Want::kValue : Want::kCondition));
  const bool is_free = IsSpeculatable(e.operand(1)) && IsSpeculatable(e.operand(2));
  if (is_free || IsVector(condition)) {
    ASSIGN_OR_RETURN(Value * a, is_free ? EmitCached(e.operand(1), want)
                                        : EmitMasked(condition, true, e.operand(1), want));
    ASSIGN_OR_RETURN(Value * b, is_free ? EmitCached(e.operand(2), want)
                                        : EmitMasked(condition, false, e.operand(2), want));
    MakeAlike({&a, &b});
    if (IsVector(condition)) MakeAlike({&condition, &a, &b});
    return b_.CreateSelect(condition, a, b);
  }
  return Branch(
      condition, [&] { return EmitCached(e.operand(1), want); },
      [&] { return EmitCached(e.operand(2), want); });
}

}  // namespace polynao::codegen
