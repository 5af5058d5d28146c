#include <cctype>
#include <charconv>
#include <optional>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "base/status.h"
#include "base/text.h"
#include "isa/program.h"

namespace polynao::isa {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c) || c == '.'; }

// Whether `text` may be the name of a label, a constant, a register or a parameter.
bool IsIdentifier(std::string_view text) {
  if (text.empty() || !IsWordStart(text[0])) return false;
  for (const char c : text) {
    if (!IsWordPart(c)) return false;
  }
  return true;
}

// The number of "r7"; none if `text` names no register of the machine.
std::optional<int64_t> ParseRegister(std::string_view text) {
  if (text.size() < 2 || text.size() > 3 || text[0] != 'r') return std::nullopt;
  int64_t number = 0;
  for (const char c : text.substr(1)) {
    if (!IsDigit(c)) return std::nullopt;
    number = number * 10 + (c - '0');
  }
  // r07 would be a second name of r7.
  if ((text.size() == 3 && text[1] == '0') || number >= kRegisterCount) return std::nullopt;
  return number;
}

std::string_view AccessName(ir::Access access) {
  switch (access) {
    case ir::Access::kIn:
      return "in";
    case ir::Access::kOut:
      return "out";
    case ir::Access::kInOut:
      return "inout";
  }
  POLYNAO_UNREACHABLE(static_cast<int>(access));
}

std::string Quote(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      StrAppend(&quoted, "\\", std::string_view(&c, 1));
    } else if (byte < 32 || byte >= 127) {
      quoted += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string NameText(std::string_view name) {
  return IsIdentifier(name) ? std::string(name) : Quote(name);
}

class Assembler {
 public:
  Assembler(const InstructionSet& set, std::string_view text, std::string_view file)
      : set_(set), text_(text), file_(file) {}

  absl::StatusOr<Program> Run() {
    // The first pass finds the labels, the second encodes.
    for (const bool encode : {false, true}) {
      encode_ = encode;
      program_ = Program();
      program_.labels = labels_;
      constants_.clear();
      aliases_.clear();
      count_ = 0;
      line_ = 0;
      has_name_ = false;
      size_t at = 0;
      while (at <= text_.size()) {
        const size_t end = std::min(text_.find('\n', at), text_.size());
        ++line_;
        line_text_ = text_.substr(at, end - at);
        RETURN_IF_ERROR(Line());
        at = end + 1;
      }
    }
    return std::move(program_);
  }

 private:
  enum class Kind { kEnd, kWord, kInt, kFloat, kString, kSymbol };
  struct Token {
    Kind kind = Kind::kEnd;
    std::string_view text;
    size_t column = 0;
    bool Is(char symbol) const { return kind == Kind::kSymbol && text[0] == symbol; }
  };

  // ---- tokens of a line

  template <typename... Args>
  absl::Status ErrorAt(const Token& token, const Args&... args) const {
    return InvalidInput(file_, ":", line_, ":", token.column + 1, ": ", args...);
  }

  absl::Status Expected(std::string_view what) const {
    return ErrorAt(
        token_, "expected ", what, ", found ",
        token_.kind == Kind::kEnd ? "the end of the line" : StrCat("'", token_.text, "'"));
  }

  absl::Status Next() {
    size_t at = next_;
    while (at < line_text_.size() &&
           (line_text_[at] == ' ' || line_text_[at] == '\t' || line_text_[at] == '\r')) {
      ++at;
    }
    token_ = Token();
    token_.column = at;
    next_ = at;
    if (at >= line_text_.size() || line_text_[at] == '#' || line_text_.substr(at, 2) == "//") {
      return absl::OkStatus();
    }
    const char c = line_text_[at];
    size_t end = at + 1;
    if (IsWordStart(c) || (c == '.' && end < line_text_.size() && IsWordStart(line_text_[end]))) {
      token_.kind = Kind::kWord;
      while (end < line_text_.size() && IsWordPart(line_text_[end])) ++end;
    } else if (IsDigit(c)) {
      token_.kind = Kind::kInt;
      const bool is_hex = line_text_.substr(at, 2) == "0x";
      while (end < line_text_.size() &&
             (IsWordPart(line_text_[end]) ||
              (!is_hex && (line_text_[end] == '-' || line_text_[end] == '+') &&
               line_text_[end - 1] == 'e'))) {
        ++end;
      }
      for (const char digit : line_text_.substr(at, end - at)) {
        if (!is_hex && (digit == '.' || digit == 'e')) token_.kind = Kind::kFloat;
      }
    } else if (c == '"') {
      token_.kind = Kind::kString;
      while (end < line_text_.size() && line_text_[end] != '"') {
        end += line_text_[end] == '\\' ? 2 : 1;
      }
      if (end >= line_text_.size()) return ErrorAt(token_, "a string that no quote ends");
      ++end;
    } else if (std::string_view(",:[]()+-").find(c) != std::string_view::npos) {
      token_.kind = Kind::kSymbol;
    } else {
      const uint8_t byte = static_cast<uint8_t>(c);
      return ErrorAt(token_, "a character that means nothing: ",
                     byte >= 32 && byte < 127 ? StrCat("'", line_text_.substr(at, 1), "'")
                                              : StrCat("byte ", static_cast<int>(byte)));
    }
    token_.text = line_text_.substr(at, end - at);
    next_ = end;
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Accept(char symbol) {
    if (!token_.Is(symbol)) return false;
    RETURN_IF_ERROR(Next());
    return true;
  }

  absl::Status Expect(char symbol) {
    if (!token_.Is(symbol)) return Expected(StrCat("'", std::string_view(&symbol, 1), "'"));
    return Next();
  }

  // Reads a name that the program has not used yet; messages call it `what`.
  absl::StatusOr<std::string> NewName(std::string_view what) {
    if (token_.kind != Kind::kWord || !IsIdentifier(token_.text)) return Expected(what);
    if (ParseRegister(token_.text)) return Expected(StrCat(what, " (this is a register)"));
    std::string name(token_.text);
    if (constants_.contains(name) || aliases_.contains(name) || places_.contains(name)) {
      return ErrorAt(token_, "'", name, "' is defined already");
    }
    RETURN_IF_ERROR(Next());
    return name;
  }

  // A word or a string.
  absl::StatusOr<std::string> AnyName(std::string_view what) {
    std::string name;
    if (token_.kind == Kind::kWord && IsIdentifier(token_.text)) {
      name = std::string(token_.text);
    } else if (token_.kind == Kind::kString) {
      ASSIGN_OR_RETURN(name, Unquote());
    } else {
      return Expected(what);
    }
    RETURN_IF_ERROR(Next());
    return name;
  }

  absl::StatusOr<std::string> Unquote() const {
    std::string text;
    const std::string_view quoted = token_.text;
    for (size_t i = 1; i + 1 < quoted.size(); ++i) {
      if (quoted[i] != '\\') {
        text += quoted[i];
      } else if (quoted[++i] == 'x') {
        uint8_t byte = 0;
        const char* digits = quoted.data() + i + 1;
        if (i + 3 >= quoted.size() ||
            std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
          return ErrorAt(token_, "expected two hexadecimal digits after \\x");
        }
        text += static_cast<char>(byte);
        i += 2;
      } else {
        text += quoted[i];
      }
    }
    return text;
  }

  // ---- lines

  absl::Status Line() {
    next_ = 0;
    RETURN_IF_ERROR(Next());
    while (token_.kind == Kind::kWord && token_.text[0] != '.' && IsLabel()) {
      if (encode_) {
        RETURN_IF_ERROR(Next());
      } else {
        ASSIGN_OR_RETURN(std::string name, NewName("a label"));
        // A place may have several labels; listings show the first one.
        labels_.try_emplace(count_, name);
        places_[name] = count_;
      }
      RETURN_IF_ERROR(Expect(':'));
    }
    if (token_.kind == Kind::kEnd) return absl::OkStatus();
    if (token_.kind != Kind::kWord) return Expected("a label, a directive or an instruction");
    if (token_.text[0] == '.') {
      RETURN_IF_ERROR(Directive());
    } else {
      RETURN_IF_ERROR(InstructionLine());
    }
    if (token_.kind != Kind::kEnd) return Expected("the end of the line");
    return absl::OkStatus();
  }

  // Whether the word is followed by a colon.
  bool IsLabel() const {
    size_t at = next_;
    while (at < line_text_.size() && (line_text_[at] == ' ' || line_text_[at] == '\t')) ++at;
    return at < line_text_.size() && line_text_[at] == ':';
  }

  absl::Status Directive() {
    const Token directive = token_;
    RETURN_IF_ERROR(Next());
    if (directive.text == ".program") {
      if (has_name_) return ErrorAt(directive, "a second .program");
      has_name_ = true;
      ASSIGN_OR_RETURN(program_.name, AnyName("the program's name"));
      return absl::OkStatus();
    }
    if (directive.text == ".machine") {
      const Token token = token_;
      ASSIGN_OR_RETURN(const std::string text, AnyName("\"name=value\" of a machine's parameter"));
      const size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0) {
        return ErrorAt(token, "expected \"name=value\" of a machine's parameter, found ",
                       Quote(text));
      }
      const bool is_new =
          program_.machine.try_emplace(text.substr(0, equals), text.substr(equals + 1)).second;
      if (!is_new && !encode_) return ErrorAt(token, "a second ", text.substr(0, equals));
      return absl::OkStatus();
    }
    if (directive.text == ".assert") {
      ASSIGN_OR_RETURN(std::string text, AnyName("a condition on the scalars, \"n % 64 == 0\""));
      program_.assertions.push_back(std::move(text));
      return absl::OkStatus();
    }
    if (directive.text == ".reassociated") {
      program_.is_reassociated = true;
      return absl::OkStatus();
    }
    if (directive.text == ".tensor") return Tensor(/*is_temporary=*/false);
    if (directive.text == ".temporary") return Tensor(/*is_temporary=*/true);
    if (directive.text == ".scalar") {
      ProgramParam param;
      param.is_tensor = false;
      ASSIGN_OR_RETURN(param.name, AnyName("the parameter's name"));
      ASSIGN_OR_RETURN(param.type, TypeWord());
      program_.params.push_back(std::move(param));
      return absl::OkStatus();
    }
    if (directive.text == ".equ") {
      ASSIGN_OR_RETURN(const std::string name, NewName("the constant's name"));
      ASSIGN_OR_RETURN(constants_[name], Value());
      return absl::OkStatus();
    }
    if (directive.text == ".reg") {
      ASSIGN_OR_RETURN(const std::string name, NewName("the register's new name"));
      ASSIGN_OR_RETURN(aliases_[name], Register());
      return absl::OkStatus();
    }
    return ErrorAt(directive,
                   "expected .program, .machine, .assert, .reassociated, .tensor, .scalar, "
                   ".temporary, .equ or "
                   ".reg, found '",
                   directive.text, "'");
  }

  absl::Status Tensor(bool is_temporary) {
    ProgramParam param;
    param.is_temporary = is_temporary;
    ASSIGN_OR_RETURN(param.name, AnyName("the parameter's name"));
    ASSIGN_OR_RETURN(param.type, TypeWord());
    if (!is_temporary && token_.kind == Kind::kWord && token_.text == "any") {
      param.any_shape = true;
      RETURN_IF_ERROR(Next());
    } else if (token_.Is('[')) {
      RETURN_IF_ERROR(Next());
      while (!token_.Is(']')) {
        if (!param.shape.empty()) RETURN_IF_ERROR(Expect(','));
        const Token place = token_;
        ASSIGN_OR_RETURN(const int64_t extent, Value());
        if (extent < 0) return ErrorAt(place, "expected an extent of at least 0, found ", extent);
        param.shape.push_back(extent);
      }
      RETURN_IF_ERROR(Next());
    } else {
      return Expected(is_temporary ? "a shape such as [4, 5]" : "a shape such as [4, 5], or any");
    }
    if (is_temporary) {
      param.access = ir::Access::kOut;
      program_.params.push_back(std::move(param));
      return absl::OkStatus();
    }
    bool found = false;
    for (const ir::Access access : {ir::Access::kIn, ir::Access::kOut, ir::Access::kInOut}) {
      if (token_.kind != Kind::kWord || token_.text != AccessName(access)) continue;
      param.access = access;
      found = true;
    }
    if (!found) return Expected("in, out or inout");
    RETURN_IF_ERROR(Next());
    if (token_.kind == Kind::kWord && token_.text == "parts") RETURN_IF_ERROR(Parts(param));
    program_.params.push_back(std::move(param));
    return absl::OkStatus();
  }

  // parts(ROWS, PARTS)
  absl::Status Parts(ProgramParam& param) {
    const Token place = token_;
    RETURN_IF_ERROR(Next());
    RETURN_IF_ERROR(Expect('('));
    ASSIGN_OR_RETURN(param.rows, Value());
    RETURN_IF_ERROR(Expect(','));
    ASSIGN_OR_RETURN(param.parts, Value());
    RETURN_IF_ERROR(Expect(')'));
    if (HasValidParts(param)) return absl::OkStatus();
    return ErrorAt(place,
                   "expected an input with a shape whose elements are so many rows of two or more "
                   "parts, found ",
                   "parts(", param.rows, ", ", param.parts, ") of '", param.name, "'");
  }

  absl::StatusOr<ir::Type> TypeWord() {
    const std::optional<ir::Type> type =
        token_.kind == Kind::kWord ? ir::ParseType(token_.text) : std::nullopt;
    if (!type) return Expected("a type (i8, u8, i16, i32, i64, f16, bf16, f32, ...)");
    RETURN_IF_ERROR(Next());
    return *type;
  }

  absl::Status InstructionLine() {
    const Token place = token_;
    const Instruction* instruction = set_.Find(token_.text);
    if (instruction == nullptr) return UnknownInstruction();
    RETURN_IF_ERROR(Next());
    std::vector<int64_t> fields;
    for (const Operand& operand : instruction->operands) {
      if (!fields.empty()) RETURN_IF_ERROR(Expect(','));
      if (token_.kind == Kind::kEnd) {
        return Expected(StrCat("operand ", operand.name, " of ", instruction->mnemonic));
      }
      absl::StatusOr<int64_t> field =
          operand.kind == OperandKind::kImmediate ? Value() : Register();
      if (!field.ok()) return field.status();
      fields.push_back(*field);
    }
    ++count_;
    if (!encode_) return absl::OkStatus();
    const absl::StatusOr<Word> word = set_.Encode(*instruction, fields);
    if (!word.ok()) return ErrorAt(place, word.status().message());
    program_.code.push_back(*word);
    return absl::OkStatus();
  }

  absl::Status UnknownInstruction() const {
    // The author probably meant a variant of the word's family.
    constexpr int kShown = 6;
    const std::string_view family = token_.text.substr(0, token_.text.find('.'));
    std::string known;
    int count = 0;
    for (const Instruction& instruction : set_.instructions()) {
      if (instruction.family != family) continue;
      if (++count <= kShown) StrAppend(&known, count == 1 ? "" : ", ", instruction.mnemonic);
    }
    if (count > kShown) StrAppend(&known, ", ...");
    return ErrorAt(token_, "expected an instruction", count > 0 ? StrCat(" (", known, ")") : "",
                   ", found '", token_.text, "'");
  }

  absl::StatusOr<int64_t> Register() {
    if (token_.kind == Kind::kWord) {
      std::optional<int64_t> number = ParseRegister(token_.text);
      const auto alias = aliases_.find(ToAbsl(token_.text));
      if (alias != aliases_.end()) number = alias->second;
      if (number) {
        RETURN_IF_ERROR(Next());
        return *number;
      }
    }
    return Expected(StrCat("a register (r0 to r", kRegisterCount - 1, ")"));
  }

  // A sum of terms.
  absl::StatusOr<int64_t> Value() {
    uint64_t sum = 0;
    bool minus = false;
    ASSIGN_OR_RETURN(minus, Accept('-'));
    while (true) {
      ASSIGN_OR_RETURN(const int64_t term, Term(minus));
      sum += static_cast<uint64_t>(term);
      ASSIGN_OR_RETURN(const bool plus, Accept('+'));
      if (plus) {
        minus = false;
        continue;
      }
      ASSIGN_OR_RETURN(minus, Accept('-'));
      if (!minus) return static_cast<int64_t>(sum);
    }
  }

  // A number, a constant, a label or a literal such as f16(-1.5); its negative if `minus`.
  absl::StatusOr<int64_t> Term(bool minus) {
    const auto negate = [&](uint64_t value) {
      return static_cast<int64_t>(minus ? 0 - value : value);
    };
    if (token_.kind == Kind::kInt) {
      const bool is_hex = token_.text.starts_with("0x");
      const std::string_view digits = is_hex ? token_.text.substr(2) : token_.text;
      uint64_t value = 0;
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value, is_hex ? 16 : 10);
      // Hexadecimal numbers are bit patterns and may use the highest bit.
      const uint64_t limit = is_hex ? UINT64_MAX : (uint64_t{1} << 63) - (minus ? 0 : 1);
      if (error != std::errc() || end != digits.data() + digits.size() || value > limit) {
        return Expected("an integer of 64 bits");
      }
      RETURN_IF_ERROR(Next());
      return negate(value);
    }
    if (token_.kind != Kind::kWord) return Expected("a number, a constant or a label");
    const Token word = token_;
    RETURN_IF_ERROR(Next());
    if (const std::optional<ir::Type> type = ir::ParseType(word.text); type && token_.Is('(')) {
      if (!IsFloat(*type)) return ErrorAt(word, "expected a float type, found ", word.text);
      RETURN_IF_ERROR(Next());
      ASSIGN_OR_RETURN(const bool is_negative, Accept('-'));
      double value = 0;
      const bool is_number =
          token_.kind == Kind::kInt || token_.kind == Kind::kFloat ||
          (token_.kind == Kind::kWord && (token_.text == "inf" || token_.text == "nan"));
      if (!is_number || !absl::SimpleAtod(ToAbsl(token_.text), &value)) {
        return Expected("a number");
      }
      RETURN_IF_ERROR(Next());
      RETURN_IF_ERROR(Expect(')'));
      uint64_t bits = 0;
      ir::StoreFloat(*type, &bits, is_negative ? -value : value);
      return negate(bits);
    }
    const std::string name(word.text);
    if (const auto constant = constants_.find(name); constant != constants_.end()) {
      return negate(static_cast<uint64_t>(constant->second));
    }
    if (const auto label = places_.find(name); label != places_.end()) {
      return negate(static_cast<uint64_t>(label->second));
    }
    // A label further down.
    if (!encode_ && IsIdentifier(name)) return 0;
    return ErrorAt(word, "expected a constant or a label, found '", word.text, "'");
  }

  const InstructionSet& set_;
  const std::string_view text_;
  const std::string_view file_;
  bool encode_ = false;
  Program program_;
  std::map<int64_t, std::string> labels_;
  absl::flat_hash_map<std::string, int64_t> places_, constants_, aliases_;
  int64_t count_ = 0;  // instructions so far
  int line_ = 0;
  std::string_view line_text_;
  size_t next_ = 0;
  Token token_;
  bool has_name_ = false;
};

}  // namespace

absl::StatusOr<Program> Assemble(const InstructionSet& set, std::string_view text,
                                 std::string_view file) {
  return Assembler(set, text, file).Run();
}

namespace {

std::string Operands(const InstructionSet::Decoded& decoded, const Program& program) {
  std::string text;
  for (size_t o = 0; o < decoded.fields.size(); ++o) {
    const Operand& operand = decoded.instruction->operands[o];
    const int64_t field = decoded.fields[o];
    StrAppend(&text, o == 0 ? " " : ", ");
    const auto label = operand.is_target ? program.labels.find(field) : program.labels.end();
    if (operand.kind != OperandKind::kImmediate) {
      StrAppend(&text, "r", field);
    } else if (label != program.labels.end()) {
      StrAppend(&text, label->second);
    } else {
      StrAppend(&text, field);
    }
  }
  return text;
}

}  // namespace

std::string DisassembleWord(const InstructionSet& set, const Program& program, int64_t pc) {
  POLYNAO_CHECK(pc >= 0 && pc < static_cast<int64_t>(program.code.size())) << pc;
  const auto decoded = set.Decode(program.code[pc]);
  if (!decoded.ok()) return StrCat("<bad word: ", decoded.status().message(), ">");
  return decoded->instruction->mnemonic + Operands(*decoded, program);
}

absl::StatusOr<std::string> Disassemble(const InstructionSet& set, const Program& program) {
  std::string text = StrCat(".program ", NameText(program.name), "\n");
  for (const auto& [name, value] : program.machine) {
    StrAppend(&text, ".machine ", Quote(StrCat(name, "=", value)), "\n");
  }
  for (const std::string& assertion : program.assertions) {
    StrAppend(&text, ".assert ", Quote(assertion), "\n");
  }
  if (program.is_reassociated) StrAppend(&text, ".reassociated\n");
  for (const ProgramParam& param : program.params) {
    StrAppend(&text,
              param.is_temporary ? ".temporary "
              : param.is_tensor  ? ".tensor "
                                 : ".scalar ",
              NameText(param.name), " ", TypeName(param.type));
    if (param.is_tensor) {
      StrAppend(&text, param.any_shape ? " any" : " [");
      for (size_t d = 0; d < param.shape.size(); ++d) {
        StrAppend(&text, d == 0 ? "" : ", ", param.shape[d]);
      }
      StrAppend(&text, param.any_shape ? "" : "]");
      if (!param.is_temporary) StrAppend(&text, " ", AccessName(param.access));
      if (param.parts > 1) StrAppend(&text, " parts(", param.rows, ", ", param.parts, ")");
    }
    text += '\n';
  }
  std::set<std::string> names;
  for (const auto& [pc, name] : program.labels) {
    if (pc < 0 || pc > static_cast<int64_t>(program.code.size()) || !IsIdentifier(name) ||
        ParseRegister(name) || !names.insert(name).second) {
      return InvalidInput(
          "label ", Quote(name), " at ", pc,
          " has no text form: expected one identifier for each place in the program");
    }
  }
  for (int64_t pc = 0; pc <= static_cast<int64_t>(program.code.size()); ++pc) {
    if (const auto label = program.labels.find(pc); label != program.labels.end()) {
      StrAppend(&text, label->second, ":\n");
    }
    if (pc == static_cast<int64_t>(program.code.size())) break;
    if (const auto decoded = set.Decode(program.code[pc]); !decoded.ok()) {
      return WithContext(StrCat("instruction ", pc), decoded.status());
    }
    StrAppend(&text, "  ", DisassembleWord(set, program, pc), "\n");
  }
  return text;
}

}  // namespace polynao::isa
