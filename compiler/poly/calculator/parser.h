// The two parsers of the calculator share this: expressions (calculator_parser.cc) and the literals
// in them (calculator_literal_parser.cc). Private to them.
#ifndef COMPILER_POLY_CALCULATOR_PARSER_H_
#define COMPILER_POLY_CALCULATOR_PARSER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/poly/calculator/syntax.h"

namespace polynao::poly::calculator {

// The tokens, and the position in them. Parsers that try two ways set the position back; the error
// that got furthest is the one to report.
class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, std::string_view file)
      : tokens_(std::move(tokens)), file_(file) {}

  const Token& Peek(int ahead = 0) const;
  Token Next();
  bool Accept(std::string_view mark);
  absl::Status Expect(std::string_view mark, std::string_view expected);
  // The error that `expected` stands nowhere at the position, unless an earlier try got further.
  absl::Status Expected(std::string_view expected);
  absl::Status ErrorAt(Place place, std::string_view expected, std::string_view found) const;

  size_t position() const { return position_; }
  void set_position(size_t position) { position_ = position; }

  // Nesting, which has a limit because the parsers recurse.
  absl::Status Enter();
  void Leave() { --depth_; }
  // The same for chains of operators, whose trees are as deep as they are long.
  absl::Status CheckLength(int operands) const;

 private:
  const std::vector<Token> tokens_;
  const std::string file_;
  size_t position_ = 0;
  int depth_ = 0;
  size_t furthest_ = 0;
  absl::Status furthest_error_;
};

// Parses "[n] -> { ... }" at the stream's position.
absl::StatusOr<Literal> ParseLiteral(TokenStream& tokens);

}  // namespace polynao::poly::calculator

#endif  // COMPILER_POLY_CALCULATOR_PARSER_H_
