#include "compiler/ir/externs.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace polynao::ir {
namespace {

constexpr std::string_view kEffects[] = {"pure", "reads", "writes", "opaque"};

}  // namespace

std::string_view EffectName(Effect effect) { return kEffects[static_cast<int>(effect)]; }

std::optional<Effect> ParseEffect(std::string_view name) {
  for (size_t i = 0; i < std::size(kEffects); ++i) {
    if (kEffects[i] == name) return static_cast<Effect>(i);
  }
  return std::nullopt;
}

std::string SignatureFault(const ExternNode& declared) {
  const bool gives = declared.effect <= Effect::kReads;
  if (gives != declared.result.has_value()) {
    return gives ? "a function that is pure or only reads has a result"
                 : "a function that writes or is opaque has no result: it stores to a buffer";
  }
  for (const Param& param : declared.params) {
    if (!param.buffer) continue;
    if (declared.effect == Effect::kPure) {
      return absl::StrCat("a pure function has no buffers, found '", param.buffer->name, "'");
    }
    if (declared.effect == Effect::kReads && param.access != Access::kIn) {
      return absl::StrCat("a function that reads has its buffers 'in', found '", param.buffer->name,
                          "' without");
    }
  }
  return "";
}

Function MeaningOf(const ExternNode& callee) {
  Context& c = *callee.context;
  Function meaning;
  meaning.name = callee.name;
  meaning.params = callee.params;
  // Not an owner: the context owns `callee`.
  meaning.context = std::shared_ptr<Context>(std::shared_ptr<void>(), &c);
  meaning.body = callee.body;
  if (callee.value) {
    const Buffer result = c.NewBuffer("result", *callee.result, {});
    meaning.params.push_back({.var = {}, .buffer = result, .access = Access::kOut, .scope = ""});
    meaning.body = c.Store(result, {}, callee.value);
  }
  POLYNAO_CHECK(meaning.body) << callee.name;
  return meaning;
}

bool IsPureCall(Expr call) {
  if (call.callee() != nullptr) return call.callee()->effect == Effect::kPure;
  return IsPureIntrinsic(call.name());
}

namespace {

// `strict`: `e` is evaluated where + - * of i32 and i64 must not wrap.
bool MayStop(Expr e, bool strict) {
  switch (e.kind()) {
    case ExprKind::kCall:
      if (!SurelyReturns(e)) return true;
      strict = strict || e.callee() != nullptr;
      break;
    case ExprKind::kDiv:
    case ExprKind::kMod:
      if (IsInt(e.type()) && !(e.operand(1).Is(ExprKind::kIntImm) && !e.operand(1).IsInt(0))) {
        return true;
      }
      break;
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul:
      if (strict && (e.type() == Type::kI32 || e.type() == Type::kI64)) return true;
      break;
    default:
      break;
  }
  for (size_t i = 0; i < e.operands().size(); ++i) {
    if (MayStop(e.operand(i), strict || (e.Is(ExprKind::kSelect) && i == 0))) return true;
  }
  return false;
}

}  // namespace

bool SurelyReturns(Expr call) {
  if (!IsPureCall(call)) return false;
  const ExternNode* callee = call.callee();
  return callee == nullptr || !callee->value || !MayStop(callee->value, /*strict=*/false);
}

}  // namespace polynao::ir
