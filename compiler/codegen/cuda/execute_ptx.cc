#include "compiler/codegen/cuda/execute_ptx.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "compiler/ir/random_value.h"

namespace polynao::codegen {
namespace {

using Wide = __int128;

// "s32", "u64", "b16"; predicates are one bit, whatever else there is is none.
struct PtxType {
  bool is_signed = false;
  int bits = 0;
};

std::optional<PtxType> ParsePtxType(std::string_view text) {
  if (text == "pred") return PtxType{.is_signed = false, .bits = 1};
  int bits = 0;
  if (text.size() < 2 || !absl::SimpleAtoi(ToAbsl(text.substr(1)), &bits)) return std::nullopt;
  if (text[0] != 's' && text[0] != 'u' && text[0] != 'b') return std::nullopt;
  return PtxType{.is_signed = text[0] == 's', .bits = bits};
}

struct Operand {
  int register_number = -1;  // otherwise a value, if it is known
  uint64_t value = 0;
  bool known = false;
};

enum class Effect { kCompute, kBranch, kReturn, kNothing };

struct Instruction {
  Effect effect = Effect::kNothing;
  std::string kind;                // as CountPtx counts it
  std::vector<std::string> words;  // of the mnemonic: "mad", "lo", "s32"
  PtxType type;                    // of the operands
  std::vector<int> results;
  std::vector<Operand> operands;
  int guard = -1;  // a predicate
  bool guard_is_negated = false;
  std::string label;  // of a branch
  size_t target = 0;

  bool Has(std::string_view word) const {
    return std::find(words.begin(), words.end(), word) != words.end();
  }
};

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The parts of "a, {b, c}, [d+4]".
std::vector<std::string_view> SplitOperands(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '{' || text[i] == '[')) ++depth;
    if (i < text.size() && (text[i] == '}' || text[i] == ']')) --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    parts.push_back(Trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

// The body of a kernel as instructions, whose labels are places among them.
class Program {
 public:
  // None if `ptx` has no such kernel.
  static std::optional<Program> Parse(std::string_view ptx, std::string_view name) {
    Program program;
    bool inside = false, body = false, found = false;
    for (const absl::string_view line : absl::StrSplit(ToAbsl(ptx), '\n')) {
      std::string_view text(line.data(), line.size());
      text = Trim(text.substr(0, text.find("//")));
      if (const size_t entry = text.find(".entry "); entry != std::string_view::npos) {
        const std::string_view rest = text.substr(entry + 7);
        inside = rest.substr(0, rest.find_first_of("( \t")) == name;
        found = found || inside;
        body = false;
      }
      if (!inside || text.empty()) continue;
      if (text == "{") body = true;
      if (text == "}") inside = false;
      if (!body || text.starts_with('.')) continue;
      if (text.ends_with(':')) {
        program.labels_[std::string(text.substr(0, text.size() - 1))] = program.code_.size();
      } else if (text.ends_with(';')) {
        program.Add(text.substr(0, text.size() - 1));
      }
    }
    if (!found) return std::nullopt;
    for (Instruction& i : program.code_) {
      if (i.effect == Effect::kBranch) i.target = program.labels_[i.label];
    }
    return program;
  }

  const std::vector<Instruction>& code() const { return code_; }
  size_t register_count() const { return registers_.size(); }
  // The register for "%tid.x" and its like, if the kernel reads it.
  std::optional<int> Special(const std::string& name) const {
    const auto it = registers_.find(name);
    return it == registers_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  int Register(std::string_view name) {
    return registers_.try_emplace(std::string(name), static_cast<int>(registers_.size()))
        .first->second;
  }

  Operand ParseOperand(std::string_view text) {
    Operand operand;
    if (text.starts_with('%')) {
      operand.register_number = Register(text);
      return operand;
    }
    int64_t value = 0;
    operand.known = absl::SimpleAtoi(ToAbsl(text), &value) ||
                    absl::SimpleHexAtoi(ToAbsl(text.substr(0, text.find('U'))), &operand.value);
    // Floats are written "0f3F800000", which is no number; symbols and addresses are none either.
    if (operand.known && value != 0) operand.value = static_cast<uint64_t>(value);
    return operand;
  }

  void Add(std::string_view text) {
    Instruction i;
    if (text.starts_with('@')) {
      const size_t end = text.find_first_of(" \t");
      std::string_view guard = text.substr(1, end - 1);
      i.guard_is_negated = guard.starts_with('!');
      if (i.guard_is_negated) guard.remove_prefix(1);
      i.guard = Register(guard);
      text = Trim(text.substr(end));
    }
    const size_t end = std::min(text.size(), text.find_first_of(" \t"));
    const std::string_view mnemonic = text.substr(0, end);
    i.kind = PtxKind(mnemonic);
    for (const absl::string_view word : absl::StrSplit(ToAbsl(mnemonic), '.')) {
      i.words.emplace_back(word.data(), word.size());
    }
    const std::string_view rest = Trim(text.substr(end));
    const std::string& first = i.words[0];
    if (first == "bra") {
      i.effect = Effect::kBranch;
      i.label = std::string(rest);
    } else if (first == "ret" || first == "exit") {
      i.effect = Effect::kReturn;
    } else if (first != "st" && first != "bar" && first != "red") {
      i.effect = Effect::kCompute;
      i.type = ParsePtxType(i.words.back()).value_or(PtxType());
      const std::vector<std::string_view> parts = SplitOperands(rest);
      std::string_view results = parts[0];
      if (results.starts_with('{')) results = results.substr(1, results.size() - 2);
      for (const std::string_view result : SplitOperands(results)) {
        if (result.starts_with('%')) i.results.push_back(Register(result));
      }
      for (size_t k = 1; k < parts.size(); ++k) i.operands.push_back(ParseOperand(parts[k]));
    }
    code_.push_back(std::move(i));
  }

  std::vector<Instruction> code_;
  absl::flat_hash_map<std::string, size_t> labels_;
  absl::flat_hash_map<std::string, int> registers_;
};

uint64_t Cut(uint64_t value, int bits) {
  return bits >= 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

// The number that `bits` of `value` are.
Wide NumberOf(uint64_t value, PtxType type) {
  value = Cut(value, type.bits);
  const bool negative = type.is_signed && (value >> (type.bits - 1) & 1) != 0;
  return negative ? static_cast<Wide>(value) - (Wide{1} << type.bits) : static_cast<Wide>(value);
}

// A comparison by its word in PTX.
std::optional<bool> Compare(std::string_view word, Wide a, Wide b) {
  if (word == "eq") return a == b;
  if (word == "ne") return a != b;
  if (word == "lt" || word == "lo") return a < b;
  if (word == "le" || word == "ls") return a <= b;
  if (word == "gt" || word == "hi") return a > b;
  if (word == "ge" || word == "hs") return a >= b;
  return std::nullopt;
}

struct Value {
  uint64_t bits = 0;
  bool known = false;
};

// What an instruction computes of known operands; nothing for those that are not known here, such as all
// on floats, and for a division by 0.
std::optional<uint64_t> Compute(const Instruction& i, const std::vector<uint64_t>& operands) {
  const std::string& op = i.words[0];
  const PtxType type = i.type;
  if (type.bits == 0) return std::nullopt;
  std::array<Wide, 4> x = {};
  for (size_t k = 0; k < std::min(operands.size(), x.size()); ++k)
    x[k] = NumberOf(operands[k], type);
  const auto cut = [&](Wide value) { return Cut(static_cast<uint64_t>(value), type.bits); };
  const size_t count = operands.size();
  if (count == 1) {
    if (op == "mov" || op == "cvta") return cut(x[0]);
    if (op == "not") return cut(~x[0]);
    if (op == "neg") return cut(-x[0]);
    if (op == "abs") return cut(x[0] < 0 ? -x[0] : x[0]);
    if (op == "cvt" && i.words.size() >= 3) {
      // cvt.TO.FROM
      const std::optional<PtxType> to = ParsePtxType(i.words[i.words.size() - 2]);
      if (to) return Cut(static_cast<uint64_t>(x[0]), to->bits);
    }
    return std::nullopt;
  }
  if (op == "setp") {
    const std::optional<bool> result = Compare(i.words[1], x[0], x[1]);
    if (!result || count == 2) return result;
    const bool other = operands[2] != 0;
    return i.Has("and") ? *result && other : i.Has("or") ? *result || other : *result != other;
  }
  if (op == "selp" && count == 3) return cut(operands[2] != 0 ? x[0] : x[1]);
  if (op == "mul" || op == "mad") {
    const Wide sum = op == "mad" ? static_cast<Wide>(operands[2]) : 0;
    const Wide product = x[0] * x[1];
    if (i.Has("wide")) return Cut(static_cast<uint64_t>(product + sum), 2 * type.bits);
    if (i.Has("hi")) return cut((product >> type.bits) + sum);
    return cut(product + sum);
  }
  if (count != 2) return std::nullopt;
  const int shift = static_cast<int>(std::min<uint64_t>(Cut(operands[1], 32), type.bits));
  if (op == "add") return cut(x[0] + x[1]);
  if (op == "sub") return cut(x[0] - x[1]);
  if (op == "shl") return cut(x[0] << shift);
  if (op == "shr") return cut(x[0] >> shift);
  if (op == "and") return cut(x[0] & x[1]);
  if (op == "or") return cut(x[0] | x[1]);
  if (op == "xor") return cut(x[0] ^ x[1]);
  if (op == "min") return cut(std::min(x[0], x[1]));
  if (op == "max") return cut(std::max(x[0], x[1]));
  if (op == "div" && x[1] != 0) return cut(x[0] / x[1]);
  if (op == "rem" && x[1] != 0) return cut(x[0] % x[1]);
  return std::nullopt;
}

class Machine {
 public:
  explicit Machine(const Program& program)
      : program_(program), executed_(program.code().size(), 0) {}

  // Runs one thread. False if it takes more than `max_steps`.
  bool Run(const Extents& grid, const Extents& block, const Extents& block_index,
           const Extents& thread_index, int64_t max_steps) {
    registers_.assign(program_.register_count(), Value());
    for (int axis = 0; axis < 3; ++axis) {
      const std::string name(1, "xyz"[axis]);
      Set(StrCat("%nctaid.", name), grid[axis]);
      Set(StrCat("%ntid.", name), block[axis]);
      Set(StrCat("%ctaid.", name), block_index[axis]);
      Set(StrCat("%tid.", name), thread_index[axis]);
    }
    const std::vector<Instruction>& code = program_.code();
    size_t at = 0;
    while (at < code.size()) {
      if (max_steps-- == 0) return false;
      const Instruction& i = code[at];
      ++executed_[at];
      ++at;
      if (i.guard >= 0) {
        const Value guard = registers_[i.guard];
        if (!guard.known) {
          exact_ = false;
          Forget(i);
          continue;
        }
        if ((guard.bits != 0) == i.guard_is_negated) continue;
      }
      switch (i.effect) {
        case Effect::kReturn:
          return true;
        case Effect::kBranch:
          at = i.target;
          break;
        case Effect::kCompute:
          Execute(i);
          break;
        case Effect::kNothing:
          break;
      }
    }
    return true;
  }

  const std::vector<int64_t>& executed() const { return executed_; }
  bool exact() const { return exact_; }

 private:
  void Set(const std::string& special, int64_t value) {
    if (const std::optional<int> number = program_.Special(special)) {
      registers_[*number] = {static_cast<uint64_t>(value), true};
    }
  }

  void Forget(const Instruction& i) {
    for (int result : i.results) registers_[result].known = false;
  }

  void Execute(const Instruction& i) {
    bool known = i.results.size() == 1 && i.words[0] != "ld";
    operands_.clear();
    for (const Operand& operand : i.operands) {
      const Value value = operand.register_number >= 0 ? registers_[operand.register_number]
                                                       : Value{operand.value, operand.known};
      known = known && value.known;
      operands_.push_back(value.bits);
    }
    Forget(i);
    if (!known) return;
    if (const std::optional<uint64_t> result = Compute(i, operands_)) {
      registers_[i.results[0]] = {*result, true};
    }
  }

  const Program& program_;
  std::vector<int64_t> executed_;
  std::vector<Value> registers_;
  std::vector<uint64_t> operands_;
  bool exact_ = true;
};

}  // namespace

absl::StatusOr<PtxExecution> ExecutePtx(std::string_view ptx, std::string_view name,
                                        const Extents& grid, const Extents& block,
                                        const PtxExecutionOptions& options) {
  const std::optional<Program> program = Program::Parse(ptx, name);
  if (!program) return absl::NotFoundError(StrCat("PTX has no kernel '", name, "'"));
  Machine machine(*program);
  uint64_t draws = 0;
  const auto draw = [&](const Extents& extents) {
    Extents index;
    for (int axis = 0; axis < 3; ++axis) {
      index[axis] =
          static_cast<int64_t>(ir::Splitmix(1, draws++) % static_cast<uint64_t>(extents[axis]));
    }
    return index;
  };
  for (int sample = 0; sample < options.samples; ++sample) {
    const Extents block_index = draw(grid), thread_index = draw(block);
    if (!machine.Run(grid, block, block_index, thread_index, options.max_steps)) {
      return InvalidInput("kernel '", name, "': a thread takes more than ", options.max_steps,
                          " instructions");
    }
  }
  PtxExecution result;
  result.exact = machine.exact();
  double scale = 1.0 / options.samples;
  for (int axis = 0; axis < 3; ++axis) scale *= static_cast<double>(grid[axis] * block[axis]);
  for (size_t i = 0; i < program->code().size(); ++i) {
    const double count = static_cast<double>(machine.executed()[i]) * scale;
    if (count == 0) continue;
    result.counts[program->code()[i].kind] += count;
    result.counts["all"] += count;
  }
  return result;
}

}  // namespace polynao::codegen
