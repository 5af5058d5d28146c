// The text form of loop IR (.nir). Grammar: docs/ir.md.
//
//   func scale(A: f32[4, n] in, B: f32[4, n] out, n: i32) {
//     for (i, 0, 4) {
//       for (j, 0, n) {
//         B[i, j] = select(i < 2, A[i, j] * 2.0, A[i, j])
//       }
//     }
//   }
//
// Printing and parsing are inverse: Parse(Print(f)) is structurally equal to f.
#ifndef COMPILER_IR_TEXT_H_
#define COMPILER_IR_TEXT_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// Parses a whole file. `file` only names the text in errors: "add.nir:3:7: expected ... found ...".
// The functions belong to `context`, or to a new one.
absl::StatusOr<Module> ParseModule(std::string_view text, std::string_view file,
                                   std::shared_ptr<Context> context = nullptr);

// The same for text that holds exactly one function.
absl::StatusOr<Function> ParseFunction(std::string_view text, std::string_view file = "<text>",
                                       std::shared_ptr<Context> context = nullptr);

// Declarations of the extern functions that are called stand in front.
std::string Print(const Function& function);
std::string Print(const Module& module);
std::string PrintExtern(const ExternNode& declared);
std::string Print(Stmt s);
std::string Print(Expr e);
// The first line of Print(s), for messages: "for (i, 0, 4) {". Does not look at the rest.
std::string PrintFirstLine(Stmt s);

}  // namespace polynao::ir

#endif  // COMPILER_IR_TEXT_H_
