#include "isa/table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
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

// A comment would swallow what follows it once lines are joined.
bool IsComment(const Token& token) {
  return token.kind == TokenKind::kSpace && !absl::ascii_isspace(token.text[0]);
}

std::string Join(const std::vector<Token>& tokens, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) {
    if (!IsComment(tokens[i])) StrAppend(&text, tokens[i].text);
  }
  return std::string(absl::StripAsciiWhitespace(text));
}

// The tokens between the commas of [begin, end), outside of brackets.
std::vector<std::pair<size_t, size_t>> SplitAtCommas(const std::vector<Token>& tokens, size_t begin,
                                                     size_t end) {
  std::vector<std::pair<size_t, size_t>> parts;
  int depth = 0;
  size_t start = begin;
  for (size_t i = begin; i < end; ++i) {
    if (IsOpening(tokens[i])) ++depth;
    if (IsClosing(tokens[i])) --depth;
    if (depth == 0 && tokens[i].Is(",")) {
      parts.push_back({start, i});
      start = i + 1;
    }
  }
  parts.push_back({start, end});
  return parts;
}

std::vector<std::string> TextsBetweenCommas(const std::vector<Token>& tokens, size_t begin,
                                            size_t end) {
  std::vector<std::string> texts;
  for (const auto& [first, last] : SplitAtCommas(tokens, begin, end)) {
    texts.push_back(Join(tokens, first, last));
  }
  return texts;
}

// One @variants line: names, and for each alternative as many values.
struct Axis {
  int line;
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> alternatives;
};

struct Row {
  int line;
  size_t begin, end;          // tokens
  size_t name;                // the token of the function's name
  std::vector<bool> removed;  // of its tokens: @variants lines
  std::vector<std::pair<size_t, size_t>> requirements;
  std::vector<Axis> axes;
};

absl::StatusOr<std::vector<std::string>> SplitTuple(const std::string& text, std::string_view file,
                                                    int line) {
  if (text.empty()) return InvalidInput(file, ":", line, ": @variants has an empty value");
  if (text.front() != '(') return std::vector<std::string>{text};
  ASSIGN_OR_RETURN(const std::vector<Token> tokens, Tokenize(text, file));
  if (SkipBrackets(tokens, 0) != tokens.size()) return std::vector<std::string>{text};
  return TextsBetweenCommas(tokens, 1, tokens.size() - 1);
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
    Row row{.line = tokens[i].line,
            .begin = i,
            .end = 0,
            .name = 0,
            .removed = {},
            .requirements = {},
            .axes = {}};
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
                           ParseAxis(TextsBetweenCommas(tokens, open + 1, i - 1), file, key.line));
          row.axes.push_back(std::move(axis));
          row.removed.resize(i - row.begin);
          std::fill(row.removed.begin() + (start - row.begin), row.removed.end(), true);
        }
        if (key.Is("require")) {
          const auto parts = SplitAtCommas(tokens, open + 1, i - 1);
          row.requirements.insert(row.requirements.end(), parts.begin(), parts.end());
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
    row.removed.resize(row.end - row.begin);
    rows.push_back(std::move(row));
  }
  return rows;
}

using Replacements = absl::flat_hash_map<std::string, std::string>;

std::string_view Replace(const Token& token, const Replacements& replacements) {
  if (token.kind != TokenKind::kIdentifier) return token.text;
  const auto it = replacements.find(ToAbsl(token.text));
  return it == replacements.end() ? token.text : std::string_view(it->second);
}

// Whether `name` stands among `tokens` as a word.
bool IsUsed(std::string_view name, const std::vector<Token>& tokens, size_t begin, size_t end) {
  return std::any_of(tokens.begin() + begin, tokens.begin() + end, [&](const Token& token) {
    return token.kind == TokenKind::kIdentifier && token.text == name;
  });
}

// Each name of the row's @variants lines must replace something. (Of several names in one line some
// may be there for the mnemonic alone.)
absl::Status CheckNames(const Row& row, const std::vector<Token>& tokens, std::string_view file) {
  for (const Axis& axis : row.axes) {
    if (axis.names.size() > 1) continue;
    const std::string& name = axis.names[0];
    // Its own line does not count.
    int uses = 0;
    for (size_t i = row.begin; i < row.end; ++i) uses += IsUsed(name, tokens, i, i + 1) ? 1 : 0;
    if (uses < 2) {
      return InvalidInput(file, ":", axis.line, ": @variants: the row does not use ", name);
    }
  }
  return absl::OkStatus();
}

// The values of the names in the variant that takes alternative `chosen[a]` of each axis.
absl::StatusOr<Replacements> Resolve(const Row& row, const std::vector<size_t>& chosen,
                                     std::string_view file) {
  Replacements replacements;
  for (size_t a = 0; a < row.axes.size(); ++a) {
    const Axis& axis = row.axes[a];
    Replacements added;
    for (size_t n = 0; n < axis.names.size(); ++n) {
      // A value may use the names of earlier lines: sizeof(T).
      const std::string& value = axis.alternatives[chosen[a]][n];
      ASSIGN_OR_RETURN(const std::vector<Token> tokens, Tokenize(value, file));
      for (const Token& token : tokens)
        StrAppend(&added[axis.names[n]], Replace(token, replacements));
    }
    for (auto& [name, value] : added) replacements[name] = std::move(value);
  }
  return replacements;
}

}  // namespace

absl::StatusOr<std::vector<TableVariant>> ExpandTable(std::string_view text,
                                                      std::string_view file) {
  ASSIGN_OR_RETURN(const std::vector<Token> tokens, Tokenize(text, file));
  ASSIGN_OR_RETURN(const std::vector<Row> rows, SplitRows(tokens, file));
  std::vector<TableVariant> variants;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    RETURN_IF_ERROR(CheckNames(row, tokens, file));
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
      // The last axis varies fastest.
      std::vector<size_t> chosen(row.axes.size());
      size_t rest = code;
      for (size_t a = row.axes.size(); a-- > 0;) {
        chosen[a] = rest % row.axes[a].alternatives.size();
        rest /= row.axes[a].alternatives.size();
      }
      ASSIGN_OR_RETURN(const Replacements replacements, Resolve(row, chosen, file));
      variant.family = std::string(Replace(tokens[row.name], replacements));
      for (size_t a = 0; a < row.axes.size(); ++a) {
        for (size_t n = 0; n < row.axes[a].names.size(); ++n) {
          const std::string& value = row.axes[a].alternatives[chosen[a]][n];
          if (value != "_" && row.axes[a].names[n][0] != '_') variant.values.push_back(value);
        }
      }
      variant.text.assign(row.line - 1, '\n');
      for (size_t i = row.begin; i < row.end; ++i) {
        if (i == row.name) {
          variant.text += kFunctionName;
        } else if (!row.removed[i - row.begin]) {
          variant.text += Replace(tokens[i], replacements);
        } else {
          variant.text.append(std::count(tokens[i].text.begin(), tokens[i].text.end(), '\n'), '\n');
        }
      }
      for (const std::pair<size_t, size_t>& range : row.requirements) {
        std::string text;
        for (size_t i = range.first; i < range.second; ++i) {
          if (!IsComment(tokens[i])) StrAppend(&text, Replace(tokens[i], replacements));
        }
        variant.requirements.push_back(std::string(absl::StripAsciiWhitespace(text)));
      }
      variants.push_back(std::move(variant));
    }
  }
  return variants;
}

}  // namespace polynao::isa
