// Extern functions: what a program may call that stands elsewhere, and what such a call may do.
//
//   extern pure func gelu(x: f32) -> f32
//   extern reads func mean(A: f32[n] in, n: i32) -> f32
//   extern writes func shuffle(A: f32[n], n: i32)
//   extern opaque func checkpoint(step: i32)
//
// A declaration may say what the function computes, for the interpreter and for tests: a value after
// '=', over the parameters, if there is a result, and a block if there is none. docs/ir.md has the
// grammar and the meaning.
#ifndef COMPILER_IR_EXTERNS_H_
#define COMPILER_IR_EXTERNS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/ir/type.h"

namespace polynao::ir {

// An effect says what a call may depend on and change besides its arguments' values and its result. Each kind may do
// all that the ones before it may.
enum class Effect : uint8_t {
  kPure,    // nothing: equal arguments give equal results, and the call always returns
  kReads,   // reads the buffers that it has addresses of, and state outside of the program
  kWrites,  // reads and writes those
  kOpaque,  // reads and writes every buffer, too
};

std::string_view EffectName(Effect effect);  // "pure", "reads", "writes", "opaque"
std::optional<Effect> ParseEffect(std::string_view name);

struct ExternNode {
  std::string name;  // an identifier of C
  Effect effect = Effect::kOpaque;
  // Scalars, and views of the elements from an address on. Pure functions have scalars alone.
  std::vector<Param> params;
  std::optional<Type> result;  // exactly if it is pure or reads; such a call is an expression
  // The function does this; neither is set if only the declaration is known.
  Expr value;        // with a result
  Stmt body;         // without one
  std::string text;  // as printed; within a context two functions of one text are one node
  Context* context = nullptr;
};

// Says what is wrong with a declaration's parameters and result; empty if nothing is.
std::string SignatureFault(const ExternNode& declared);

inline bool HasMeaning(const ExternNode& callee) { return callee.value || callee.body; }

// Returns the meaning of `callee`, which has one, as a function: a result is stored to a last
// parameter, `result: T[] out`. The function must not outlive the context of `callee`.
Function MeaningOf(const ExternNode& callee);

// Returns true if the value of `call`, a Call, depends on its arguments alone and evaluating it does nothing else: a
// pure intrinsic, or a pure extern function.
bool IsPureCall(Expr call);

// Returns true if evaluating `call` over arguments that have values surely goes on: so do pure intrinsics, and pure
// functions unless they have a meaning in which an integer division or arithmetic in a condition may stop the program.
bool SurelyReturns(Expr call);

}  // namespace polynao::ir

#endif  // COMPILER_IR_EXTERNS_H_
