// States what a function allows code generators and schedules to do with floats beyond the meaning of docs/ir.md, where
// each operation is rounded once and nothing changes order. The interpreter ignores it: results then agree within a
// tolerance, no longer bit for bit.
#ifndef COMPILER_IR_FLOAT_RULES_H_
#define COMPILER_IR_FLOAT_RULES_H_

#include "compiler/ir/ir.h"

namespace polynao::ir {

struct FloatRules {
  // a * b + c may be rounded once. Attribute `@contract`.
  bool contract = false;
  // Chains of + and - and chains of * may be computed in any order, for example as partial sums; the sign of a zero
  // that comes out of one is open. Attribute `@reassociate`.
  bool reassociate = false;
  // x / y may be computed as x * (1 / y). Attribute `@reciprocal`.
  bool reciprocal = false;
  // Sums of products of narrower floats may be made by a processor's instructions that add several products
  // (isa/processor), in the order of these and with zeros in place of subnormal numbers. Attribute `@dots`.
  bool dots = false;

  bool operator==(const FloatRules&) const = default;
};

// The rules of the function's attributes.
FloatRules FloatRulesOf(const Function& function);

// Gives `function` the attributes of `rules` that it lacks.
void Allow(Function& function, const FloatRules& rules);

// Whether the function adds up floats in another order than what it was made of (an operator's expression): results
// agree with that within a tolerance. Attribute `@reassociated`.
bool IsReassociated(const Function& function);
void SayReassociated(Function& function);

}  // namespace polynao::ir

#endif  // COMPILER_IR_FLOAT_RULES_H_
