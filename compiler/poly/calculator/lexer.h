// The tokens of the calculator's language (calculator.h): of its expressions and of the literals.
#ifndef COMPILER_POLY_CALCULATOR_LEXER_H_
#define COMPILER_POLY_CALCULATOR_LEXER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace polynao::poly::calculator {

struct Place {
  int line = 1;
  int column = 1;  // in characters, from 1
};

enum class TokenKind { kEnd, kNumber, kName, kMark };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;   // a mark in its ASCII form: "<=" for ≤, "and" for ∧
  std::string found;  // as written
  Place place;

  bool Is(std::string_view mark) const { return kind != TokenKind::kEnd && text == mark; }
};

// The tokens of `text`, kEnd last. Blanks and comments ("#" to the end of the line) separate them. "#" before what is
// counted, as in "{# i : i < n}", is a mark.
// Error: a character that begins no token.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view text, std::string_view file);

// Returns true if a name is a word of the language inside of literals: "and", "floor", ...
bool IsKeyword(std::string_view name);

// "FILE:LINE:COLUMN: expected EXPECTED, found FOUND".
absl::Status ErrorAt(std::string_view file, Place place, std::string_view expected,
                     std::string_view found);
// "'<='", "the end of the text", ...
std::string Describe(const Token& token);

}  // namespace polynao::poly::calculator

#endif  // COMPILER_POLY_CALCULATOR_LEXER_H_
