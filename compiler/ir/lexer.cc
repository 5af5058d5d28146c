#include "compiler/ir/lexer.h"

#include <cctype>
#include <string>

#include "base/status.h"

namespace polynao::ir {

absl::Status Tokenize(std::string_view text, std::string_view file, std::vector<Token>& tokens) {
  int line = 1;
  size_t line_start = 0;
  size_t i = 0;
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (true) {
    while (i < text.size()) {
      if (text[i] == '\n') {
        ++line;
        line_start = ++i;
      } else if (text[i] == ' ' || text[i] == '\t' || text[i] == '\r') {
        ++i;
      } else if (text[i] == '#' || text.substr(i, 2) == "//") {
        while (i < text.size() && text[i] != '\n') ++i;
      } else {
        break;
      }
    }
    const int column = static_cast<int>(i - line_start) + 1;
    auto add = [&](TokenKind kind, size_t end) {
      tokens.push_back({kind, text.substr(i, end - i), line, column});
      i = end;
    };
    if (i >= text.size()) {
      add(TokenKind::kEnd, i);
      return absl::OkStatus();
    }
    size_t end = i;
    if (is_digit(text[i])) {
      while (end < text.size() && is_digit(text[end])) ++end;
      bool is_float = false;
      if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
        is_float = true;
        ++end;
        while (end < text.size() && is_digit(text[end])) ++end;
      }
      if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
        size_t digits = end + 1;
        if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
        if (digits < text.size() && is_digit(text[digits])) {
          is_float = true;
          end = digits;
          while (end < text.size() && is_digit(text[end])) ++end;
        }
      }
      add(is_float ? TokenKind::kFloat : TokenKind::kInt, end);
    } else if (is_word(text[i])) {
      // A point inside a word belongs to it: i.outer, add.f16.
      while (end < text.size() &&
             (is_word(text[end]) ||
              (text[end] == '.' && end + 1 < text.size() && is_word(text[end + 1])))) {
        ++end;
      }
      add(TokenKind::kWord, end);
    } else if (text[i] == '"') {
      ++end;
      while (end < text.size() && text[end] != '"' && text[end] != '\n') {
        end += text[end] == '\\' ? 2 : 1;
      }
      if (end >= text.size() || text[end] != '"') {
        return InvalidInput(file, ":", line, ":", column, ": a string that no quote ends");
      }
      add(TokenKind::kString, end + 1);
    } else {
      for (std::string_view symbol : {"&&", "||", "==", "!=", "<=", ">=", "<<", ">>"}) {
        if (text.substr(i, 2) == symbol) end = i + 2;
      }
      if (end == i) {
        if (std::string_view("()[]{},:;=<>+-*/%!?&|^~@").find(text[i]) == std::string_view::npos) {
          const unsigned char c = static_cast<unsigned char>(text[i]);
          return InvalidInput(file, ":", line, ":", column, ": a character that means nothing: ",
                              std::isprint(c) ? StrCat("'", std::string(1, text[i]), "'")
                                              : StrCat("byte ", static_cast<int>(c)));
        }
        end = i + 1;
      }
      add(TokenKind::kSymbol, end);
    }
  }
}

}  // namespace polynao::ir
