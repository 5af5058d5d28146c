#include "isa/table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/status.h"
#include "base/text.h"

namespace polynao::isa {
namespace {

constexpr int kMaxVariants = 256;
// Stands in for the mnemonic, which may be a word that the IR's text form reserves (max).
constexpr std::string_view kFunctionName = "instruction";

enum class TokenKind { kIdentifier, kOther, kSpace };  // kSpace: comments too

struct Token {
  TokenKind kind;
  std::string_view text;
  int line;
  bool Is(std::string_view other) const { return kind != TokenKind::kSpace && text == other; }
};

bool StartsIdentifier(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool ContinuesWord(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; }

// The tokens of `text`; their texts joined give `text` again.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view text, std::string_view file) {
  std::vector<Token> tokens;
  int line = 1;
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    size_t end = at + 1;
    TokenKind kind = TokenKind::kOther;
    if (absl::ascii_isspace(c)) {
      kind = TokenKind::kSpace;
      while (end < text.size() && absl::ascii_isspace(text[end])) ++end;
    } else if (c == '#' || (c == '/' && end < text.size() && text[end] == '/')) {
      kind = TokenKind::kSpace;
      end = std::min(text.find('\n', at), text.size());
    } else if (c == '"') {
      while (end < text.size() && text[end] != '"' && text[end] != '\n') {
        end += text[end] == '\\' ? 2 : 1;
      }
      if (end >= text.size() || text[end] != '"') {
        return InvalidInput(file, ":", line, ": expected '\"' at the end of the string");
      }
      ++end;
    } else if (StartsIdentifier(c) || absl::ascii_isdigit(c)) {
      kind = StartsIdentifier(c) ? TokenKind::kIdentifier : TokenKind::kOther;
      while (end < text.size() && ContinuesWord(text[end])) ++end;
    }
    tokens.push_back({kind, text.substr(at, end - at), line});
    line += static_cast<int>(std::count(text.begin() + at, text.begin() + end, '\n'));
    at = end;
  }
  return tokens;
}

bool IsOpening(const Token& token) { return token.Is("(") || token.Is("[") || token.Is("{"); }
bool IsClosing(const Token& token) { return token.Is(")") || token.Is("]") || token.Is("}"); }

// One past the bracket that closes the one at `open`; none if none does.
std::optional<size_t> SkipBrackets(const std::vector<Token>& tokens, size_t open) {
  int depth = 0;
  for (size_t i = open; i < tokens.size(); ++i) {
    if (IsOpening(tokens[i])) ++depth;
    if (IsClosing(tokens[i]) && --depth == 0) return i + 1;
  }
  return std::nullopt;
}

std::string Join(const std::vector<Token>& tokens, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) {
    // A comment would swallow what follows it once lines are joined.
    const bool comment =
        tokens[i].kind == TokenKind::kSpace && !absl::ascii_isspace(tokens[i].text[0]);
    if (!comment) StrAppend(&text, tokens[i].text);
  }
  return std::string(absl::StripAsciiWhitespace(text));
}

// The texts between the commas of tokens [begin, end), outside of brackets.
std::vector<std::string> SplitAtCommas(const std::vector<Token>& tokens, size_t begin, size_t end) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t start = begin;
  for (size_t i = begin; i < end; ++i) {
    if (IsOpening(tokens[i])) ++depth;
    if (IsClosing(tokens[i])) --depth;
    if (depth == 0 && tokens[i].Is(",")) {
      parts.push_back(Join(tokens, start, i));
      start = i + 1;
    }
  }
  parts.push_back(Join(tokens, start, end));
  return parts;
}

// One @variants line: names, and for each alternative as many values.
struct Axis {
  int line;
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> alternatives;
};

struct Row {
  int line;
  size_t begin, end;                               // tokens
  size_t name;                                     // the token of the function's name
  std::vector<std::pair<size_t, size_t>> removed;  // its @variants lines, as tokens
  std::vector<Axis> axes;
};

absl::StatusOr<std::vector<std::string>> SplitTuple(const std::string& text, std::string_view file,
                                                    int line) {
  if (text.empty()) return InvalidInput(file, ":", line, ": @variants has an empty value");
  if (text.front() != '(') return std::vector<std::string>{text};
  ASSIGN_OR_RETURN(const std::vector<Token> tokens, Tokenize(text, file));
  if (SkipBrackets(tokens, 0) != tokens.size()) return std::vector<std::string>{text};
  return SplitAtCommas(tokens, 1, tokens.size() - 1);
}

absl::StatusOr<Axis> ParseAxis(const std::vector<std::string>& arguments, std::string_view file,
                               int line) {
  Axis axis{.line = line, .names = {}, .alternatives = {}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    ASSIGN_OR_RETURN(std::vector<std::string> parts, SplitTuple(arguments[i], file, line));
    if (i == 0) {
      axis.names = std::move(parts);
      continue;
    }
    if (parts.size() != axis.names.size()) {
      return InvalidInput(file, ":", line, ": @variants: expected ", axis.names.size(),
                          " values, found ", parts.size(), " in ", arguments[i]);
    }
    axis.alternatives.push_back(std::move(parts));
  }
  if (axis.alternatives.empty()) {
    return InvalidInput(file, ":", line, ": expected @variants(NAME, value, ...), found no value");
  }
  return axis;
}

absl::StatusOr<std::vector<Row>> SplitRows(const std::vector<Token>& tokens,
                                           std::string_view file) {
  std::vector<Row> rows;
  size_t i = 0;
  while (i < tokens.size()) {
    if (tokens[i].kind == TokenKind::kSpace) {
      ++i;
      continue;
    }
    Row row{.line = tokens[i].line, .begin = i, .end = 0, .name = 0, .removed = {}, .axes = {}};
    // Attributes, up to the word `func`.
    while (i < tokens.size() && !tokens[i].Is("func")) {
      if (tokens[i].kind == TokenKind::kSpace) {
        ++i;
        continue;
      }
      if (!tokens[i].Is("@") || i + 1 >= tokens.size()) {
        return InvalidInput(file, ":", tokens[i].line, ": expected an attribute or 'func', found '",
                            tokens[i].text, "'");
      }
      const size_t start = i;
      const Token& key = tokens[i + 1];
      i += 2;
      if (i < tokens.size() && tokens[i].Is("(")) {
        const size_t open = i;
        const std::optional<size_t> after = SkipBrackets(tokens, open);
        if (!after) return InvalidInput(file, ":", key.line, ": expected ')' after @", key.text);
        i = *after;
        if (key.Is("variants")) {
          ASSIGN_OR_RETURN(Axis axis,
                           ParseAxis(SplitAtCommas(tokens, open + 1, i - 1), file, key.line));
          row.axes.push_back(std::move(axis));
          row.removed.push_back({start, i});
        }
      }
    }
    row.name = i + 1;
    while (row.name < tokens.size() && tokens[row.name].kind == TokenKind::kSpace) ++row.name;
    if (row.name >= tokens.size() || tokens[row.name].kind != TokenKind::kIdentifier) {
      return InvalidInput(file, ":", row.line,
                          ": expected a function with a name after the attributes");
    }
    while (i < tokens.size() && !tokens[i].Is("{")) ++i;
    const std::optional<size_t> after = i < tokens.size() ? SkipBrackets(tokens, i) : std::nullopt;
    if (!after) {
      return InvalidInput(file, ":", row.line,
                          ": expected a function's body, found the end of the table");
    }
    i = row.end = *after;
    rows.push_back(std::move(row));
  }
  return rows;
}

// `tokens` with each identifier `name` replaced; sets `*used` if there is one.
absl::StatusOr<std::string> ReplaceIdentifier(const std::string& text, std::string_view name,
                                              std::string_view value, std::string_view file,
                                              bool* used) {
  ASSIGN_OR_RETURN(const std::vector<Token> tokens, Tokenize(text, file));
  std::string result;
  for (const Token& token : tokens) {
    const bool match = token.kind == TokenKind::kIdentifier && token.text == name;
    *used |= match;
    StrAppend(&result, match ? value : token.text);
  }
  return result;
}

// The arguments of the @require attributes in a row's text.
absl::StatusOr<std::vector<std::string>> Requirements(const std::string& text,
                                                      std::string_view file) {
  ASSIGN_OR_RETURN(const std::vector<Token> tokens, Tokenize(text, file));
  std::vector<std::string> requirements;
  for (size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (!tokens[i].Is("@") || !tokens[i + 1].Is("require") || !tokens[i + 2].Is("(")) continue;
    for (std::string& part :
         SplitAtCommas(tokens, i + 3, SkipBrackets(tokens, i + 2).value_or(i + 4) - 1)) {
      requirements.push_back(std::move(part));
    }
  }
  return requirements;
}

}  // namespace

absl::StatusOr<std::vector<TableVariant>> ExpandTable(std::string_view text,
                                                      std::string_view file) {
  ASSIGN_OR_RETURN(const std::vector<Token> tokens, Tokenize(text, file));
  ASSIGN_OR_RETURN(const std::vector<Row> rows, SplitRows(tokens, file));
  std::vector<TableVariant> variants;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    std::string base(row.line - 1, '\n');
    for (size_t i = row.begin; i < row.end; ++i) {
      const bool removed = std::any_of(row.removed.begin(), row.removed.end(), [&](auto range) {
        return range.first <= i && i < range.second;
      });
      if (i == row.name) {
        base += kFunctionName;
      } else if (!removed) {
        StrAppend(&base, tokens[i].text);
      } else {
        base.append(std::count(tokens[i].text.begin(), tokens[i].text.end(), '\n'), '\n');
      }
    }
    int64_t count = 1;
    for (const Axis& axis : row.axes) {
      count *= static_cast<int64_t>(axis.alternatives.size());
      if (count > kMaxVariants) {
        return InvalidInput(file, ":", row.line, ": the row has more than ", kMaxVariants,
                            " variants");
      }
    }
    for (int code = 0; code < count; ++code) {
      TableVariant variant;
      variant.row = static_cast<int>(r);
      variant.line = row.line;
      variant.code = code;
      variant.family = std::string(tokens[row.name].text);
      variant.text = base;
      // The last axis varies fastest.
      std::vector<const std::vector<std::string>*> chosen(row.axes.size());
      int64_t rest = code;
      for (size_t a = row.axes.size(); a-- > 0;) {
        const auto& alternatives = row.axes[a].alternatives;
        chosen[a] = &alternatives[rest % alternatives.size()];
        rest /= static_cast<int64_t>(alternatives.size());
      }
      // Axes are replaced from the last to the first, because the values of a later axis may use
      // the names of an earlier one: sizeof(T).
      for (size_t a = row.axes.size(); a-- > 0;) {
        const Axis& axis = row.axes[a];
        for (size_t n = 0; n < axis.names.size(); ++n) {
          bool used = false;
          const std::string& value = (*chosen[a])[n];
          ASSIGN_OR_RETURN(variant.text,
                           ReplaceIdentifier(variant.text, axis.names[n], value, file, &used));
          if (variant.family == axis.names[n]) {
            variant.family = value;
            used = true;
          }
          // Of several names some may be there for the mnemonic alone.
          if (!used && axis.names.size() == 1) {
            return InvalidInput(file, ":", axis.line, ": @variants: the row does not use ",
                                axis.names[n]);
          }
        }
      }
      for (size_t a = 0; a < row.axes.size(); ++a) {
        for (size_t n = 0; n < row.axes[a].names.size(); ++n) {
          const std::string& value = (*chosen[a])[n];
          if (value != "_" && row.axes[a].names[n][0] != '_') variant.values.push_back(value);
        }
      }
      ASSIGN_OR_RETURN(variant.requirements, Requirements(variant.text, file));
      variants.push_back(std::move(variant));
    }
  }
  return variants;
}

}  // namespace polynao::isa
