// Computes equal values once, and cheaply.
#ifndef COMPILER_CODEGEN_DIANNAO_VALUE_NUMBERING_H_
#define COMPILER_CODEGEN_DIANNAO_VALUE_NUMBERING_H_

#include "compiler/codegen/diannao/code.h"

namespace polynao::diannao {

// Rewrites the code that floats (code.h):
//   - a value that depends on constants alone becomes a constant, by the meaning in the
//     instruction table;
//   - sums of products with constants are collected, `((i + 1) * 4 + j) * 2` as 8 i + 2 j + 8, and
//     computed beginning with the terms of the outermost loops: so prefixes can leave loops, and
//     addresses that differ in a constant share the rest;
//   - a value computed on every path to an instruction is not computed again: value numbering
//     scoped by dominators (Briggs, Cooper, Simpson, "Value Numbering", 1997).
// Values that nothing reads any longer remain; RemoveDeadCode removes them.
void NumberValues(Code& code);

}  // namespace polynao::diannao

#endif  // COMPILER_CODEGEN_DIANNAO_VALUE_NUMBERING_H_
