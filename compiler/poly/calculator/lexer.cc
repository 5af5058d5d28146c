#include "compiler/poly/calculator/lexer.h"

#include <cctype>
#include <cstdio>
#include <utility>

#include "base/status.h"
#include "compiler/poly/calculator/syntax.h"

namespace polynao::poly::calculator {
namespace {

struct Spelling {
  std::string_view written;
  std::string_view mark;
};

// The longer ones first where one begins with another. Those of the document are Unicode.
constexpr Spelling kMarks[] = {
    {"<=>", "iff"},   {"<<=", "<<="}, {">>=", ">>="}, {":=", ":="},      {"->", "->"},
    {"<<", "<<"},     {">>", ">>"},   {"<=", "<="},   {">=", ">="},      {"!=", "!="},
    {"==", "="},      {"&&", "and"},  {"||", "or"},   {"=>", "implies"}, {"⇔", "iff"},
    {"<", "<"},       {">", ">"},     {"=", "="},     {"+", "+"},        {"-", "-"},
    {"*", "*"},       {"/", "/"},     {"%", "%"},     {"^", "^"},        {"!", "not"},
    {".", "."},       {",", ","},     {";", ";"},     {":", ":"},        {"(", "("},
    {")", ")"},       {"[", "["},     {"]", "]"},     {"{", "{"},        {"}", "}"},
    {"\\", "\\"},     {"≤", "<="},    {"≥", ">="},    {"≠", "!="},       {"∧", "and"},
    {"∨", "or"},      {"¬", "not"},   {"→", "->"},    {"∃", "exists"},   {"∀", "forall"},
    {"⇒", "implies"}, {"∪", "+"},     {"∩", "*"},     {"∖", "\\"},       {"−", "-"},
    {"×", "×"},       {"⊆", "<="},    {"⊇", ">="},    {"⊂", "<"},        {"⊃", ">"},
    {"∅", "∅"},       {"⌊", "⌊"},     {"⌋", "⌋"},     {"≺", "<<"},       {"≼", "<<="},
    {"≻", ">>"},      {"≽", ">>="},   {"∘", "after"}, {"（", "("},       {"）", ")"},
    {"，", ","},      {"；", ";"},    {"：", ":"},
};

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// "₀" to "₉" are E2 82 80 to E2 82 89.
bool IsSubscript(std::string_view text) {
  return text.size() >= 3 && text.substr(0, 2) == "\xE2\x82" && (text[2] & 0xF0) == 0x80 &&
         (text[2] & 0x0F) <= 9;
}

// Bytes of the name at the beginning of the text: "S1", "i'", "S₁". As in isl, primes end it.
size_t NameBytes(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    if (IsNameStart(text[bytes]) || IsDigit(text[bytes])) {
      ++bytes;
    } else if (IsSubscript(text.substr(bytes))) {
      bytes += 3;
    } else {
      break;
    }
  }
  while (bytes < text.size() && text[bytes] == '\'') ++bytes;
  return bytes;
}

// With plain digits: "S1" for "S₁".
std::string PlainName(std::string_view written) {
  std::string name;
  for (size_t i = 0; i < written.size(); ++i) {
    const bool is_subscript = IsSubscript(written.substr(i));
    if (is_subscript) i += 2;
    name += is_subscript ? static_cast<char>('0' + (written[i] & 0x0F)) : written[i];
  }
  return name;
}

// Whether '#' in front of this text is the sign of (2-30), the number of what follows, and begins no comment: variables
// or a tuple follow, then ':' or '}', all on one line.
//
//   {# i : 0 <= i < n}    { S(i) -> # T(j) : j < i }    but    { # all instances
bool CountsElements(std::string_view text) {
  bool has_tuple = false, wants_name = true;
  while (!text.empty() && text[0] != '\n') {
    size_t bytes = 1;
    if (text[0] == ':' || text[0] == '}' || text.substr(0, 3) == "：") return has_tuple;
    if (text[0] == ',') {
      wants_name = true;
    } else if (text[0] == '(' || text[0] == '[') {
      int depth = 0;
      for (bytes = 0; bytes < text.size() && text[bytes] != '\n'; ++bytes) {
        if (text[bytes] == '(' || text[bytes] == '[') ++depth;
        if ((text[bytes] == ')' || text[bytes] == ']') && --depth == 0) break;
      }
      if (depth != 0) return false;
      ++bytes;
      has_tuple = true;
    } else if (IsNameStart(text[0])) {
      if (!wants_name) return false;
      bytes = NameBytes(text);
      wants_name = false;
      has_tuple = true;
    } else if (!IsBlank(text[0]) && !IsDigit(text[0])) {
      return false;
    }
    text.remove_prefix(bytes);
  }
  return false;
}

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

// Words with a meaning of their own, which no number follows as a subscript.
bool IsWord(const std::string& name) {
  for (const char* word : {"print", "cross", "before", "after"}) {
    if (name == word) return true;
  }
  return IsKeyword(name) || FindFunction(name) != nullptr;
}

}  // namespace

bool IsKeyword(std::string_view name) {
  for (const char* keyword : {"and", "or", "not", "exists", "forall", "implies", "iff", "mod",
                              "true", "false", "min", "max", "floor", "ceil", "floord", "ceild"}) {
    if (name == keyword) return true;
  }
  return false;
}

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
  bool is_count = false;  // in a literal whose first part counts
  auto add = [&](TokenKind kind, std::string_view mark, size_t bytes) {
    const std::string_view written = text.substr(at, bytes);
    tokens.push_back({kind, std::string(mark), std::string(written), place});
    if (mark == "}" || mark == "{") is_count = false;
    for (size_t i = 0; i < bytes; i += CharacterBytes(written.substr(i))) ++place.column;
    at += bytes;
  };
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n') {
      ++place.line;
      place.column = 1;
      ++at;
    } else if (IsBlank(c)) {
      ++place.column;
      ++at;
    } else if (c == '#') {
      const bool may_count =
          !tokens.empty() && (tokens.back().Is("{") || tokens.back().Is("[") ||
                              tokens.back().Is("->") || (is_count && tokens.back().Is(";")));
      if (may_count && CountsElements(text.substr(at + 1))) {
        add(TokenKind::kMark, "#", 1);
        is_count = true;
        continue;
      }
      while (at < text.size() && text[at] != '\n') ++at;
    } else if (IsDigit(c)) {
      size_t bytes = 1;
      while (at + bytes < text.size() && IsDigit(text[at + bytes])) ++bytes;
      const std::string_view digits = text.substr(at, bytes);
      // Text has a subscript behind a blank: "S 1 (i)".
      const bool is_subscript = !tokens.empty() && tokens.back().kind == TokenKind::kName &&
                                tokens.back().place.line == place.line &&
                                !IsWord(tokens.back().text);
      add(TokenKind::kNumber, digits, bytes);
      if (!is_subscript) continue;
      tokens.pop_back();
      tokens.back().text += digits;
      StrAppend(&tokens.back().found, " ", digits);
    } else if (IsNameStart(c)) {
      const size_t bytes = NameBytes(text.substr(at));
      add(TokenKind::kName, PlainName(text.substr(at, bytes)), bytes);
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
