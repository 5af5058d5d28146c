// Tokens of the text form of loop IR.
#ifndef COMPILER_IR_LEXER_H_
#define COMPILER_IR_LEXER_H_

#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace polynao::ir {

enum class TokenKind { kEnd, kWord, kInt, kFloat, kString, kSymbol };

struct Token {
  TokenKind kind;
  std::string_view text;  // of a string: with its quotes
  int line;
  int column;
};

// Splits `text` into tokens; the last one is of kind kEnd. An error names `file`, line and column.
absl::Status Tokenize(std::string_view text, std::string_view file, std::vector<Token>& tokens);

}  // namespace polynao::ir

#endif  // COMPILER_IR_LEXER_H_
