#include "compiler/poly/calculator_lexer.h"

#include <cctype>
#include <cstdio>
#include <utility>

#include "base/status.h"

namespace polynao::poly::calculator {
namespace {

struct Spelling {
  std::string_view written;
  std::string_view mark;
};

// The longer ones first where one begins with another. Those of the document are Unicode.
constexpr Spelling kMarks[] = {
    {"<<=", "<<="},    {">>=", ">>="},   {":=", ":="}, {"->", "->"}, {"<<", "<<"},  {">>", ">>"},
    {"<=", "<="},      {">=", ">="},     {"!=", "!="}, {"==", "="},  {"&&", "and"}, {"||", "or"},
    {"=>", "implies"}, {"<", "<"},       {">", ">"},   {"=", "="},   {"+", "+"},    {"-", "-"},
    {"*", "*"},        {"/", "/"},       {"%", "%"},   {"^", "^"},   {"!", "not"},  {".", "."},
    {",", ","},        {";", ";"},       {":", ":"},   {"(", "("},   {")", ")"},    {"[", "["},
    {"]", "]"},        {"{", "{"},       {"}", "}"},   {"\\", "\\"}, {"≤", "<="},   {"≥", ">="},
    {"≠", "!="},       {"∧", "and"},     {"∨", "or"},  {"¬", "not"}, {"→", "->"},   {"∃", "exists"},
    {"∀", "forall"},   {"⇒", "implies"}, {"∪", "+"},   {"∩", "*"},   {"∖", "\\"},   {"−", "-"},
    {"×", "×"},        {"⊆", "<="},      {"⊇", ">="},  {"⊂", "<"},   {"⊃", ">"},    {"∅", "∅"},
    {"⌊", "⌊"},        {"⌋", "⌋"},       {"≺", "<<"},  {"≼", "<<="}, {"≻", ">>"},   {"≽", ">>="},
    {"∘", "after"},    {"（", "("},      {"）", ")"},  {"，", ","},  {"；", ";"},   {"：", ":"},
};

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Bytes of the character (UTF-8) at the beginning of the text.
size_t CharacterBytes(std::string_view text) {
  size_t bytes = 1;
  while (bytes < text.size() && (text[bytes] & 0xC0) == 0x80) ++bytes;
  return bytes;
}

// The character as it is, or its code if printing it would not show it.
std::string Visible(std::string_view character) {
  const unsigned char first = character[0];
  const bool is_whole = first < 0x80    ? character.size() == 1
                        : first >= 0xF0 ? character.size() == 4
                        : first >= 0xE0 ? character.size() == 3
                                        : first >= 0xC2 && character.size() == 2;
  if (is_whole && first >= 0x20 && first != 0x7F) return StrCat("'", character, "'");
  char code[16];
  std::snprintf(code, sizeof code, "byte 0x%02X", first);
  return code;
}

}  // namespace

absl::Status ErrorAt(std::string_view file, Place place, std::string_view expected,
                     std::string_view found) {
  return InvalidInput(file, ":", place.line, ":", place.column, ": expected ", expected, ", found ",
                      found);
}

std::string Describe(const Token& token) {
  return token.kind == TokenKind::kEnd ? "the end of the text" : StrCat("'", token.found, "'");
}

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view text, std::string_view file) {
  std::vector<Token> tokens;
  Place place;
  size_t at = 0;
  auto add = [&](TokenKind kind, std::string_view mark, size_t bytes) {
    const std::string_view written = text.substr(at, bytes);
    tokens.push_back({kind, std::string(mark), std::string(written), place});
    for (size_t i = 0; i < bytes; i += CharacterBytes(written.substr(i))) ++place.column;
    at += bytes;
  };
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n') {
      ++place.line;
      place.column = 1;
      ++at;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++place.column;
      ++at;
    } else if (c == '#') {
      while (at < text.size() && text[at] != '\n') ++at;
    } else if (IsDigit(c)) {
      size_t bytes = 1;
      while (at + bytes < text.size() && IsDigit(text[at + bytes])) ++bytes;
      add(TokenKind::kNumber, text.substr(at, bytes), bytes);
    } else if (IsNameStart(c)) {
      size_t bytes = 1;
      while (at + bytes < text.size() && (IsNameStart(text[at + bytes]) ||
                                          IsDigit(text[at + bytes]) || text[at + bytes] == '\'')) {
        ++bytes;
      }
      add(TokenKind::kName, text.substr(at, bytes), bytes);
    } else {
      const Spelling* found = nullptr;
      for (const Spelling& spelling : kMarks) {
        if (text.substr(at, spelling.written.size()) == spelling.written) {
          found = &spelling;
          break;
        }
      }
      if (found == nullptr) {
        return ErrorAt(file, place, "a name, a number or an operator",
                       Visible(text.substr(at, CharacterBytes(text.substr(at)))));
      }
      add(TokenKind::kMark, found->mark, found->written.size());
    }
  }
  tokens.push_back({TokenKind::kEnd, "", "", place});
  return tokens;
}

}  // namespace polynao::poly::calculator
