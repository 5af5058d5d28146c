#include "compiler/ir/float_rules.h"

namespace polynao::ir {
namespace {

constexpr char kContract[] = "contract";
constexpr char kReassociate[] = "reassociate";
constexpr char kReciprocal[] = "reciprocal";
constexpr char kDots[] = "dots";
constexpr char kReassociated[] = "reassociated";

}  // namespace

FloatRules FloatRulesOf(const Function& function) {
  return {.contract = function.FindAttribute(kContract) != nullptr,
          .reassociate = function.FindAttribute(kReassociate) != nullptr,
          .reciprocal = function.FindAttribute(kReciprocal) != nullptr,
          .dots = function.FindAttribute(kDots) != nullptr};
}

void Allow(Function& function, const FloatRules& rules) {
  const FloatRules own = FloatRulesOf(function);
  const auto allow = [&](bool wanted, bool there, const char* key) {
    if (wanted && !there) function.attributes.push_back({.key = key, .values = {}});
  };
  allow(rules.contract, own.contract, kContract);
  allow(rules.reassociate, own.reassociate, kReassociate);
  allow(rules.reciprocal, own.reciprocal, kReciprocal);
  allow(rules.dots, own.dots, kDots);
}

bool IsReassociated(const Function& function) {
  return function.FindAttribute(kReassociated) != nullptr;
}

void SayReassociated(Function& function) {
  if (!IsReassociated(function))
    function.attributes.push_back({.key = kReassociated, .values = {}});
}

}  // namespace polynao::ir
