#include "isa/instruction_row.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"

namespace polynao::isa {
namespace {

using ir::Attribute;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

int TypeBits(ir::Type type) { return type == ir::Type::kI1 ? 1 : 8 * ByteSize(type); }

// The word of an attribute such as @unit(vector), which the parser reads as a variable or a string.
std::optional<std::string_view> AttributeWord(const ir::AttributeValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const Expr e = std::get<Expr>(value);
  if (e.Is(ExprKind::kVar)) return e.name();
  return std::nullopt;
}

template <typename E, size_t n>
std::optional<E> FindName(const std::string_view (&names)[n], std::string_view name) {
  for (size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

std::string Alternatives(absl::Span<const std::string_view> names) {
  std::string text;
  for (std::string_view name : names) StrAppend(&text, text.empty() ? "" : ", ", name);
  return text;
}

// Turns one variant of a row into an Instruction.
class RowReader {
 public:
  RowReader(const TableVariant& row, std::string_view file) : row_(row), file_(file) {}

  absl::StatusOr<Instruction> Read(std::shared_ptr<ir::Context> context) {
    ASSIGN_OR_RETURN(ir::Function meaning, ir::ParseFunction(row_.text, file_, std::move(context)));
    return Read(std::move(meaning), /*is_verified=*/false);
  }

  absl::StatusOr<Instruction> Read(ir::Function meaning, bool is_verified) {
    instruction_.family = row_.family;
    instruction_.variant = row_.values;
    instruction_.mnemonic = row_.family;
    for (const std::string& value : row_.values) StrAppend(&instruction_.mnemonic, ".", value);
    instruction_.meaning = std::move(meaning);
    instruction_.meaning.name = instruction_.mnemonic;
    instruction_.variant_code = static_cast<uint8_t>(row_.code);
    RETURN_IF_ERROR(ReadAttributes());
    RETURN_IF_ERROR(ReadOperands());
    if (!is_verified) {
      const absl::Status status = ir::Verify(instruction_.meaning);
      if (!status.ok()) return Error(status.message());
    }
    instruction_.lanewise = IsLanewise();
    return std::move(instruction_);
  }

 private:
  template <typename... Args>
  absl::Status Error(const Args&... args) const {
    return InvalidInput(file_, ":", row_.line, ": ", instruction_.mnemonic, ": ", args...);
  }

  absl::StatusOr<std::string_view> OneWord(const Attribute& attribute,
                                           std::string_view expected) const {
    const std::optional<std::string_view> word =
        attribute.values.size() == 1 ? AttributeWord(attribute.values[0]) : std::nullopt;
    if (!word) return Error("expected @", attribute.key, "(", expected, ")");
    return *word;
  }

  absl::StatusOr<Expr> OneExpr(const Attribute& attribute, std::string_view expected) const {
    const Expr* e =
        attribute.values.size() == 1 ? std::get_if<Expr>(&attribute.values[0]) : nullptr;
    if (e == nullptr) return Error("expected @", attribute.key, "(", expected, ")");
    return *e;
  }

  absl::Status ReadAttributes() {
    bool has_opcode = false, has_unit = false, has_cost = false, has_doc = false;
    size_t requirements = 0;
    for (const Attribute& attribute : instruction_.meaning.attributes) {
      const std::string& key = attribute.key;
      const auto once = [&](bool& seen) -> absl::Status {
        if (seen) return Error("@", key, " is given twice");
        seen = true;
        return absl::OkStatus();
      };
      if (key == "doc") {
        RETURN_IF_ERROR(once(has_doc));
        ASSIGN_OR_RETURN(const std::string_view text, OneWord(attribute, "\"text\""));
        instruction_.doc = std::string(text);
      } else if (key == "opcode") {
        RETURN_IF_ERROR(once(has_opcode));
        ASSIGN_OR_RETURN(const Expr e, OneExpr(attribute, "number"));
        if (!e.Is(ExprKind::kIntImm) || e.int_value() < 0 || e.int_value() > 255) {
          return Error("expected @opcode(0 .. 255), found ",
                       e.Is(ExprKind::kIntImm) ? StrCat(e.int_value()) : ir::Print(e));
        }
        instruction_.opcode = static_cast<uint8_t>(e.int_value());
      } else if (key == "unit") {
        RETURN_IF_ERROR(once(has_unit));
        ASSIGN_OR_RETURN(const std::string_view word, OneWord(attribute, Alternatives(kUnitNames)));
        const std::optional<Unit> unit = FindName<Unit>(kUnitNames, word);
        if (!unit) {
          return Error("expected @unit(", Alternatives(kUnitNames), "), found ", word);
        }
        instruction_.unit = *unit;
        instruction_.queue = QueueOf(*unit);
      } else if (key == "cost") {
        RETURN_IF_ERROR(once(has_cost));
        ASSIGN_OR_RETURN(instruction_.cost, OneExpr(attribute, "cycles"));
      } else if (key == "require") {
        for (const ir::AttributeValue& value : attribute.values) {
          const Expr* e = std::get_if<Expr>(&value);
          const std::string& text = row_.requirements[requirements++];
          if (e == nullptr || e->type() != ir::Type::kI1) {
            return Error("expected a condition in @require, found ", text);
          }
          instruction_.constraints.push_back({*e, text});
        }
      } else if (key == "wait") {
        instruction_.waits = true;
        if (!attribute.values.empty()) {
          ASSIGN_OR_RETURN(const Expr e, OneExpr(attribute, "0 or 1"));
          if (!e.IsInt(0) && !e.IsInt(1)) return Error("expected @wait(0 or 1)");
          instruction_.waits = e.IsInt(1);
        }
      } else if (key == "drains") {
        for (const ir::AttributeValue& value : attribute.values) {
          RETURN_IF_ERROR(AddDrain(AttributeWord(value).value_or("")));
        }
      } else if (key == "barrier") {
        ASSIGN_OR_RETURN(const std::string_view word, OneWord(attribute, "cluster or global"));
        if (word != "cluster" && word != "global") {
          return Error("expected @barrier(cluster or global), found ", word);
        }
        instruction_.barrier =
            word == "cluster" ? Instruction::Barrier::kCluster : Instruction::Barrier::kGlobal;
      } else if (key == "form") {
        ASSIGN_OR_RETURN(const std::string_view word, OneWord(attribute, "family"));
        instruction_.form_of = std::string(word);
      } else {
        return Error(
            "@", key,
            " is no attribute of an instruction (doc, opcode, variants, unit, require, cost, "
            "wait, drains, barrier, form)");
      }
    }
    if (!has_doc) return Error("the row lacks @doc");
    if (!has_opcode) return Error("the row lacks @opcode");
    if (!has_unit) return Error("the row lacks @unit");
    if (!has_cost) return Error("the row lacks @cost");
    if (instruction_.unit != Unit::kControl &&
        (!instruction_.drains.empty() || instruction_.barrier != Instruction::Barrier::kNone)) {
      return Error("@drains and @barrier need @unit(control)");
    }
    if (instruction_.queue == Queue::kNone && !instruction_.form_of.empty()) {
      return Error("@form needs a unit with a queue: loop nests become queued instructions only");
    }
    return absl::OkStatus();
  }

  absl::Status AddDrain(std::string_view word) {
    const std::optional<Queue> queue = FindName<Queue>(kQueueNames, word);
    if (word == "all") {
      instruction_.drains = {Queue::kCompute, Queue::kIo, Queue::kMove};
    } else if (queue && *queue != Queue::kNone) {
      instruction_.drains.push_back(*queue);
    } else {
      return Error("expected @drains(all, or some of compute, io, move), found ", word);
    }
    return absl::OkStatus();
  }

  absl::Status ReadOperands() {
    int bit = kFirstOperandBit;
    const std::vector<ir::Param>& params = instruction_.meaning.params;
    if (params.size() > kMaxParams) return Error("more than ", kMaxParams, " parameters");
    for (size_t p = 0; p < params.size(); ++p) {
      const ir::Param& param = params[p];
      Operand operand{.name = std::string(param.name()), .kind = OperandKind::kValue, .type = {}};
      operand.param = static_cast<int>(p);
      operand.bits = kRegisterBits;
      if (param.buffer) {
        const std::string& scope = param.buffer->scope;
        operand.type = param.buffer->type;
        if (scope == kPcScope || scope == kArgScope) {
          if (operand.type != ir::Type::kI64) {
            return Error("'", operand.name, "' in @", scope, " must hold i64");
          }
          continue;
        }
        if (scope == kRegisterScope) {
          operand.kind = OperandKind::kWritten;
        } else if (const std::optional<Space> space = ParseSpace(scope)) {
          operand.kind = OperandKind::kAddress;
          operand.space = *space;
          RETURN_IF_ERROR(FindAccesses(param, operand));
        } else {
          return Error("'", operand.name, "' is in @", scope, ", expected one of reg, pc, arg, ",
                       Alternatives(kSpaceNames));
        }
      } else {
        operand.type = param.var.type();
        if (param.scope == kImmediateScope) {
          if (IsFloat(operand.type)) {
            return Error("the immediate '", operand.name, "' must be an integer");
          }
          operand.kind = OperandKind::kImmediate;
          operand.bits = TypeBits(operand.type);
          operand.is_target = IsTarget(param.var);
        } else if (!param.scope.empty()) {
          return Error("'", operand.name, "' is @", param.scope,
                       ", expected @imm or nothing (a register)");
        }
      }
      operand.bit = bit;
      bit += operand.bits;
      instruction_.operands.push_back(std::move(operand));
    }
    if (bit > kWordBits) {
      return Error("operands need ", bit, " bits with opcode and variant; a word has ", kWordBits);
    }
    return absl::OkStatus();
  }

  absl::Status FindAccesses(const ir::Param& param, Operand& operand) const {
    ir::ForEachStmt(instruction_.meaning.body, [&](Stmt s) {
      if (s.Is(StmtKind::kStore)) operand.is_written |= s.buffer() == param.buffer;
      return true;
    });
    ir::ForEachExprIn(instruction_.meaning.body, [&](Expr e) {
      if (e.Is(ExprKind::kLoad)) operand.is_read |= e.buffer() == param.buffer.node();
    });
    if (operand.is_written && param.access == ir::Access::kIn) {
      return Error("the meaning writes '", operand.name, "', which is declared `in`");
    }
    // An instruction reads of an `out` operand only what it has written itself.
    if (param.access == ir::Access::kOut) operand.is_read = false;
    return absl::OkStatus();
  }

  // Whether the immediate is the target of a branch.
  bool IsTarget(Expr var) const {
    bool is_target = false;
    ir::ForEachStmt(instruction_.meaning.body, [&](Stmt s) {
      is_target |= s.Is(StmtKind::kStore) && s.buffer()->scope == kPcScope && s.value() == var;
      return true;
    });
    return is_target;
  }

  // Whether the meaning is for (i, 0, n) { dst[i] = f(a[i], b[i], ...) } and nothing else.
  bool IsLanewise() const {
    const Stmt loop = instruction_.meaning.body;
    if (!loop.Is(StmtKind::kFor) || !loop.min().IsInt(0) || !loop.body().Is(StmtKind::kStore)) {
      return false;
    }
    const auto at_loop_var = [&](absl::Span<const Expr> indices) {
      return indices.size() == 1 && indices[0] == loop.var();
    };
    bool lanewise = at_loop_var(loop.body().indices());
    ir::ForEachExpr(loop.body().value(), [&](Expr e) {
      if (e.Is(ExprKind::kLoad)) lanewise &= at_loop_var(e.operands());
    });
    return lanewise;
  }

  const TableVariant& row_;
  const std::string_view file_;
  Instruction instruction_;
};

}  // namespace

absl::StatusOr<Instruction> ReadRow(const TableVariant& row, std::string_view file,
                                    std::shared_ptr<ir::Context> context) {
  return RowReader(row, file).Read(std::move(context));
}

absl::StatusOr<Instruction> ReadParsedRow(const ParsedVariant& variant, std::string_view file) {
  return RowReader(variant.row, file).Read(variant.meaning, /*is_verified=*/true);
}

}  // namespace polynao::isa
