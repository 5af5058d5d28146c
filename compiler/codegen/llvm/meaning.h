// What loops and meanings of instructions (isa/processor) have in common.
#ifndef COMPILER_CODEGEN_LLVM_MEANING_H_
#define COMPILER_CODEGEN_LLVM_MEANING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// What a meaning's names are in code that computes the same.
struct Likeness {
  absl::flat_hash_map<ir::Buffer, ir::Expr> loads;  // of the meaning's parameters
  absl::flat_hash_map<ir::Var, ir::Expr> vars;
  absl::flat_hash_map<ir::Buffer, ir::Buffer> locals;
  std::vector<ir::Stmt> loops;  // of the code, in the order of the meaning's
  ir::Stmt store;               // to what is a parameter in the meaning
};

// Returns true if `code` has the meaning's operations, on loads of the same types, which are added to `likeness`.
// Where in memory parameters are loaded is not compared.
bool IsAlike(ir::Expr meaning, ir::Expr code, Likeness& likeness);

// Returns true if `code` has the meaning's statements, with loops of the same constant ranges, and one store to a
// parameter.
bool IsAlike(ir::Stmt meaning, ir::Stmt code, Likeness& likeness);

// The number of the element in memory, of which a quotient and a remainder of one number cancel out, counted from where
// the first `outer` indices are; nothing if it is not known how large the array is.
std::optional<arith::LinearForm> NumberOf(ir::Buffer buffer, absl::Span<const ir::Expr> indices,
                                          arith::Analyzer& analyzer, size_t outer = 0);

// By how many elements an access moves with `var`, if that is a constant.
std::optional<int64_t> StepOf(ir::Buffer buffer, absl::Span<const ir::Expr> indices, ir::Var var,
                              arith::Analyzer& analyzer);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_MEANING_H_
