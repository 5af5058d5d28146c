#include "isa/instruction_set.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/flat_index.h"
#include "compiler/ir/int_expression.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "isa/actions.h"
#include "isa/footprint.h"
#include "isa/instruction_row.h"
#include "isa/native.h"
#include "isa/packed_instructions.h"
#include "isa/packed_table.h"
#include "isa/table.h"

namespace polynao::isa {
namespace {

using ir::Attribute;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kCodes = int64_t{1} << (kOpcodeBits + kVariantBits);

uint64_t Mask(int bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

uint64_t GetBits(const Word& word, int bit, int bits) {
  uint64_t value = bit < 64 ? word.low >> bit : word.high >> (bit - 64);
  if (bit < 64 && bit + bits > 64) value |= word.high << (64 - bit);
  return value & Mask(bits);
}

void SetBits(Word& word, int bit, int bits, uint64_t value) {
  value &= Mask(bits);
  if (bit >= 64) {
    word.high |= value << (bit - 64);
    return;
  }
  word.low |= value << bit;
  if (bit + bits > 64) word.high |= value >> (64 - bit);
}

class MeaningsByMnemonic : public ir::Intrinsics {
 public:
  explicit MeaningsByMnemonic(const InstructionSet& set) : set_(set) {}
  const ir::Function* FindMeaning(std::string_view name) const override {
    const Instruction* instruction = set_.Find(name);
    return instruction == nullptr ? nullptr : &instruction->meaning;
  }

 private:
  const InstructionSet& set_;
};

}  // namespace

std::string_view UnitName(Unit unit) { return kUnitNames[static_cast<int>(unit)]; }
std::string_view QueueName(Queue queue) { return kQueueNames[static_cast<int>(queue)]; }

Queue QueueOf(Unit unit) {
  switch (unit) {
    case Unit::kScalar:
    case Unit::kControl:
      return Queue::kNone;
    case Unit::kVector:
    case Unit::kTensor:
      return Queue::kCompute;
    case Unit::kIoDma:
      return Queue::kIo;
    case Unit::kMoveDma:
      return Queue::kMove;
  }
  POLYNAO_UNREACHABLE(static_cast<int>(unit));
}

// What is compiled once for each instruction.
struct InstructionSet::Prepared {
  std::vector<IntExpression> constraints;
  IntExpression cost;
  std::vector<int> cost_parameters;  // which of parameter_names() it reads
  FootprintPlan footprint;
  ActionPlan actions;
  // Pairs (written, other) of operands in one memory, and whether they may coincide.
  struct Overlap {
    int written, other;
    bool may_coincide;
  };
  std::vector<Overlap> overlaps;
  std::unique_ptr<NativeRoutine> native;
  int pc_param = -1;
  int arg_param = -1;
  IntExpression arg_extent;

  // The interpreter has state of its own, so one thread at a time uses it.
  std::mutex mutex;
  std::unique_ptr<ir::Interpreter> interpreter;
};

InstructionSet::InstructionSet() { by_code_.assign(kCodes, -1); }

InstructionSet::~InstructionSet() {
  for (const std::atomic<Prepared*>& prepared : prepared_) delete prepared.load();
}

absl::StatusOr<std::unique_ptr<InstructionSet>> InstructionSet::Load(
    const std::vector<std::pair<std::string, std::string>>& files_and_texts) {
  auto set = std::unique_ptr<InstructionSet>(new InstructionSet());
  const auto context = std::make_shared<ir::Context>();
  std::map<int, std::string> opcode_places;
  for (const auto& [file, text] : files_and_texts) {
    ASSIGN_OR_RETURN(const std::vector<TableVariant> rows, ExpandTable(text, file));
    for (const TableVariant& row : rows) {
      ASSIGN_OR_RETURN(Instruction instruction, ReadRow(row, file, context));
      const std::string place = StrCat(file, ":", row.line);
      RETURN_IF_ERROR(set->Add(std::move(instruction), place, &opcode_places));
      // Here and not on first use, so that errors have their place.
      const Instruction& added = set->instructions_.back();
      absl::StatusOr<std::unique_ptr<Prepared>> prepared = set->Prepare(added);
      if (!prepared.ok()) {
        return WithContext(StrCat(place, ": ", added.mnemonic), prepared.status());
      }
      set->prepared_.back() = prepared->release();
    }
  }
  RETURN_IF_ERROR(set->Finish(opcode_places));
  return set;
}

absl::StatusOr<std::unique_ptr<InstructionSet>> InstructionSet::LoadPacked(std::string_view bytes,
                                                                           std::string_view file) {
  auto set = std::unique_ptr<InstructionSet>(new InstructionSet());
  std::map<int, std::string> opcode_places;
  const std::vector<ParsedVariant> variants = UnpackTable(bytes, std::make_shared<ir::Context>());
  set->instructions_.reserve(variants.size());
  for (const ParsedVariant& variant : variants) {
    ASSIGN_OR_RETURN(Instruction instruction, ReadParsedRow(variant, file));
    RETURN_IF_ERROR(
        set->Add(std::move(instruction), StrCat(file, ":", variant.row.line), &opcode_places));
  }
  RETURN_IF_ERROR(set->Finish(opcode_places));
  return set;
}

absl::Status InstructionSet::Add(Instruction instruction, const std::string& place,
                                 std::map<int, std::string>* opcode_places) {
  // The row of each opcode: two rows must not share one.
  const auto [other, is_new] = opcode_places->try_emplace(instruction.opcode, place);
  if (!is_new && other->second != place) {
    return InvalidInput(place, ": ", instruction.mnemonic, ": opcode ", instruction.opcode,
                        " is that of the row at ", other->second);
  }
  instruction.index = static_cast<int>(instructions_.size());
  if (!by_mnemonic_.try_emplace(instruction.mnemonic, instruction.index).second) {
    return InvalidInput(place, ": two instructions are named ", instruction.mnemonic);
  }
  by_code_[instruction.opcode << kVariantBits | instruction.variant_code] = instruction.index;
  AddParameterNames(instruction);
  instructions_.push_back(std::move(instruction));
  prepared_.emplace_back(nullptr);
  return absl::OkStatus();
}

absl::Status InstructionSet::Finish(const std::map<int, std::string>& opcode_places) {
  RETURN_IF_ERROR(CheckForms(opcode_places));
  intrinsics_ = std::make_unique<MeaningsByMnemonic>(*this);
  return absl::OkStatus();
}

// In a cost, any name that is no operand is a parameter of the machine.
void InstructionSet::AddParameterNames(const Instruction& instruction) {
  const auto is_operand = [&](Expr var) {
    return std::any_of(instruction.operands.begin(), instruction.operands.end(),
                       [&](const Operand& operand) {
                         return instruction.meaning.params[operand.param].var == var;
                       });
  };
  // Costs are small trees.
  const auto visit = [&](const auto& self, Expr e) -> void {
    for (Expr operand : e.operands()) self(self, operand);
    if (!e.Is(ExprKind::kVar) || is_operand(e)) return;
    if (std::find(parameter_names_.begin(), parameter_names_.end(), e.name()) ==
        parameter_names_.end()) {
      parameter_names_.emplace_back(e.name());
    }
  };
  visit(visit, instruction.cost);
}

InstructionSet::Prepared& InstructionSet::PreparedOf(const Instruction& instruction) const {
  std::atomic<Prepared*>& slot = prepared_[instruction.index];
  if (Prepared* prepared = slot.load(std::memory_order_acquire)) return *prepared;
  const std::lock_guard<std::mutex> lock(prepare_mutex_);
  if (Prepared* prepared = slot.load(std::memory_order_relaxed)) return *prepared;
  absl::StatusOr<std::unique_ptr<Prepared>> made = Prepare(instruction);
  POLYNAO_CHECK(made.ok()) << instruction.mnemonic << ": " << made.status().message();
  Prepared* prepared = made->release();
  slot.store(prepared, std::memory_order_release);
  return *prepared;
}

absl::Status InstructionSet::CheckForms(const std::map<int, std::string>& places) const {
  for (const Instruction& form : instructions_) {
    if (form.form_of.empty()) continue;
    const auto plain =
        std::find_if(instructions_.begin(), instructions_.end(), [&](const Instruction& other) {
          return other.family == form.form_of && other.queue != Queue::kNone;
        });
    if (plain == instructions_.end() || !plain->form_of.empty()) {
      return InvalidInput(places.at(form.opcode), ": ", form.mnemonic, ": @form(", form.form_of,
                          ") must name a family of queued instructions that is no form itself");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<InstructionSet::Prepared>> InstructionSet::Prepare(
    const Instruction& instruction) const {
  auto prepared = std::make_unique<Prepared>();
  const std::vector<ir::Param>& params = instruction.meaning.params;
  absl::flat_hash_map<Expr, int> operand_of_var;
  absl::flat_hash_map<const ir::BufferNode*, int> operand_of_buffer, param_of_buffer;
  for (size_t o = 0; o < instruction.operands.size(); ++o) {
    const ir::Param& param = params[instruction.operands[o].param];
    if (param.buffer) {
      operand_of_buffer[param.buffer.node()] = static_cast<int>(o);
    } else {
      operand_of_var[param.var] = static_cast<int>(o);
    }
  }
  for (size_t p = 0; p < params.size(); ++p) {
    if (!params[p].buffer) continue;
    param_of_buffer[params[p].buffer.node()] = static_cast<int>(p);
    if (params[p].buffer->scope == kPcScope) prepared->pc_param = static_cast<int>(p);
    if (params[p].buffer->scope == kArgScope) prepared->arg_param = static_cast<int>(p);
  }

  using Source = IntExpression::Source;
  IntExpression::Resolver resolver;
  resolver.variable = [&](Expr var) -> absl::StatusOr<Source> {
    const auto it = operand_of_var.find(var);
    if (it == operand_of_var.end()) {
      return InvalidInput("'", var.name(), "' is no scalar operand");
    }
    return Source{Source::Kind::kOperand, it->second};
  };
  resolver.address = [&](const ir::BufferNode* buffer) -> absl::StatusOr<Source> {
    const auto it = operand_of_buffer.find(buffer);
    if (it == operand_of_buffer.end() ||
        instruction.operands[it->second].kind != OperandKind::kAddress) {
      return InvalidInput("'", buffer->name, "' is no address operand");
    }
    return Source{Source::Kind::kOperand, it->second};
  };
  for (const Constraint& constraint : instruction.constraints) {
    absl::StatusOr<IntExpression> compiled = IntExpression::Compile(constraint.condition, resolver);
    if (!compiled.ok())
      return WithContext(StrCat("@require(", constraint.text, ")"), compiled.status());
    prepared->constraints.push_back(*std::move(compiled));
  }

  // AddParameterNames has found the others.
  IntExpression::Resolver with_machine = resolver;
  with_machine.variable = [&](Expr var) -> absl::StatusOr<Source> {
    const absl::StatusOr<Source> operand = resolver.variable(var);
    if (operand.ok()) return operand;
    const auto it = std::find(parameter_names_.begin(), parameter_names_.end(), var.name());
    if (it == parameter_names_.end()) return operand.status();
    const int parameter = static_cast<int>(it - parameter_names_.begin());
    prepared->cost_parameters.push_back(parameter);
    return Source{Source::Kind::kParameter, parameter};
  };
  absl::StatusOr<IntExpression> cost = IntExpression::Compile(instruction.cost, with_machine);
  if (!cost.ok()) return WithContext("@cost", cost.status());
  prepared->cost = *std::move(cost);

  ASSIGN_OR_RETURN(prepared->footprint, FootprintPlan::Create(instruction, resolver));
  ASSIGN_OR_RETURN(prepared->actions, ActionPlan::Create(instruction, resolver));
  for (size_t w = 0; w < instruction.operands.size(); ++w) {
    const Operand& written = instruction.operands[w];
    for (size_t o = 0; o < instruction.operands.size(); ++o) {
      const Operand& other = instruction.operands[o];
      // Two written operands are one pair.
      if (w == o || !written.is_written || (other.is_written && o < w)) continue;
      if (other.kind != OperandKind::kAddress || other.space != written.space) continue;
      prepared->overlaps.push_back(
          {static_cast<int>(w), static_cast<int>(o),
           prepared->footprint.MayCoincide(static_cast<int>(w), static_cast<int>(o))});
    }
  }

  IntExpression::Resolver with_buffers = resolver;
  with_buffers.load = [&](const ir::BufferNode* buffer) -> absl::StatusOr<Source> {
    const auto it = param_of_buffer.find(buffer);
    if (it == param_of_buffer.end()) return InvalidInput("'", buffer->name, "' is no parameter");
    return Source{Source::Kind::kBuffer, it->second};
  };
  prepared->native = NativeRoutine::Create(instruction, with_buffers);
  if (prepared->arg_param >= 0) {
    const ir::BufferNode* args = params[prepared->arg_param].buffer.node();
    if (args->extents.size() != 1) return InvalidInput("@arg has one dimension");
    ASSIGN_OR_RETURN(prepared->arg_extent,
                     IntExpression::Compile(FlatIndex(args, args->extents), resolver));
  }
  return prepared;
}

const Instruction* InstructionSet::Find(std::string_view mnemonic) const {
  const auto it = by_mnemonic_.find(ToAbsl(mnemonic));
  return it == by_mnemonic_.end() ? nullptr : &instructions_[it->second];
}

const Instruction* InstructionSet::FindCode(uint8_t opcode, uint8_t variant_code) const {
  const int index = by_code_[opcode << kVariantBits | variant_code];
  return index < 0 ? nullptr : &instructions_[index];
}

absl::StatusOr<Word> InstructionSet::Encode(const Instruction& instruction,
                                            absl::Span<const int64_t> fields) const {
  if (fields.size() != instruction.operands.size()) {
    return InvalidInput(instruction.mnemonic, ": expected ", instruction.operands.size(),
                        " operands, found ", fields.size());
  }
  Word word;
  SetBits(word, 0, kOpcodeBits, instruction.opcode);
  SetBits(word, kOpcodeBits, kVariantBits, instruction.variant_code);
  for (size_t o = 0; o < fields.size(); ++o) {
    const Operand& operand = instruction.operands[o];
    const int64_t field = fields[o];
    if (operand.kind == OperandKind::kImmediate) {
      if (!FitsInt(operand.type, field)) {
        return InvalidInput(instruction.mnemonic, ": operand ", operand.name, ": expected an ",
                            TypeName(operand.type), ", found ", field);
      }
    } else if (field < 0 || field >= kRegisterCount) {
      return InvalidInput(instruction.mnemonic, ": operand ", operand.name,
                          ": expected a register number below ", kRegisterCount, ", found ", field);
    }
    SetBits(word, operand.bit, operand.bits, static_cast<uint64_t>(field));
  }
  return word;
}

absl::StatusOr<InstructionSet::Decoded> InstructionSet::Decode(Word word) const {
  const uint8_t opcode = static_cast<uint8_t>(GetBits(word, 0, kOpcodeBits));
  const uint8_t variant = static_cast<uint8_t>(GetBits(word, kOpcodeBits, kVariantBits));
  Decoded decoded{.instruction = FindCode(opcode, variant), .fields = {}};
  if (decoded.instruction == nullptr) {
    return InvalidInput("no instruction has opcode ", opcode, " and variant ", variant);
  }
  int used = kOpcodeBits + kVariantBits;
  decoded.fields.reserve(decoded.instruction->operands.size());
  for (const Operand& operand : decoded.instruction->operands) {
    const uint64_t bits = GetBits(word, operand.bit, operand.bits);
    decoded.fields.push_back(operand.kind == OperandKind::kImmediate
                                 ? ir::WrapInt(operand.type, static_cast<int64_t>(bits))
                                 : static_cast<int64_t>(bits));
    used = operand.bit + operand.bits;
  }
  for (int bit = used; bit < kWordBits; bit += 64 - bit % 64) {
    const int bits = std::min(kWordBits - bit, 64 - bit % 64);
    if (GetBits(word, bit, bits) != 0) {
      return InvalidInput(decoded.instruction->mnemonic, ": bits ", used, " to ", kWordBits - 1,
                          " must be zero");
    }
  }
  return decoded;
}

namespace {

// "count is 100, which is no multiple of 64 (64 and 128 are)" for count % 64 == 0, else the values
// of the operands that occur.
std::string Explain(const Instruction& instruction, Expr condition, OperandValues values) {
  const auto value_of = [&](Expr e) -> std::optional<int64_t> {
    for (size_t o = 0; o < instruction.operands.size(); ++o) {
      const ir::Param& param = instruction.meaning.params[instruction.operands[o].param];
      if (e.Is(ExprKind::kVar) && param.var == e) return values[o];
      if (e.Is(ExprKind::kAddress) && param.buffer.node() == e.buffer()) return values[o];
    }
    return std::nullopt;
  };
  const auto name_of = [&](Expr e) -> std::string {
    return e.Is(ExprKind::kVar) ? std::string(e.name())
                                : StrCat("the address of ", e.buffer()->name);
  };
  if (condition.Is(ExprKind::kEq) && condition.operand(1).IsInt(0) &&
      condition.operand(0).Is(ExprKind::kMod)) {
    const Expr dividend = condition.operand(0).operand(0);
    const Expr divisor = condition.operand(0).operand(1);
    const std::optional<int64_t> value = value_of(dividend);
    if (value && divisor.Is(ExprKind::kIntImm) && divisor.int_value() > 0) {
      const int64_t multiple = divisor.int_value();
      const int64_t below = *value - ((*value % multiple) + multiple) % multiple;
      return StrCat(name_of(dividend), " is ", *value, ", which is no multiple of ", multiple, " (",
                    below, " and ", below + multiple, " are)");
    }
  }
  std::string text;
  ir::ForEachExpr(condition, [&](Expr e) {
    if (const std::optional<int64_t> value = value_of(e)) {
      StrAppend(&text, text.empty() ? "" : ", ", name_of(e), " is ", *value);
    }
  });
  return text;
}

absl::StatusOr<int64_t> ParameterOf(const isa::Machine& machine, std::string_view name) {
  if (const int64_t* value = machine.Find(name)) return *value;
  return InvalidInput("the machine lacks the parameter ", name,
                      ", which costs of instructions depend on");
}

}  // namespace

absl::Status InstructionSet::CheckConstraints(const Instruction& instruction,
                                              OperandValues values) const {
  const Prepared& prepared = PreparedOf(instruction);
  const IntInputs inputs{.operands = values.data()};
  for (size_t c = 0; c < prepared.constraints.size(); ++c) {
    int64_t holds = 0;
    if (prepared.constraints[c].Evaluate(inputs, &holds) && holds != 0) continue;
    const Constraint& constraint = instruction.constraints[c];
    return InvalidInput(instruction.mnemonic, ": requires ", constraint.text, ", but ",
                        Explain(instruction, constraint.condition, values));
  }
  for (const Prepared::Overlap& overlap : prepared.overlaps) {
    const auto a = prepared.footprint.Bounds(overlap.written, inputs);
    const auto b = prepared.footprint.Bounds(overlap.other, inputs);
    if (a.first >= b.second || b.first >= a.second) continue;
    if (overlap.may_coincide && a == b) continue;
    const std::string& written = instruction.operands[overlap.written].name;
    const std::string& other = instruction.operands[overlap.other].name;
    return InvalidInput(
        instruction.mnemonic, ": ", written, " [", a.first, ", ", a.second, ") overlaps ", other,
        " [", b.first, ", ", b.second, ") in ",
        SpaceName(instruction.operands[overlap.other].space),
        overlap.may_coincide ? "; they may be the same or disjoint" : "; they must be disjoint");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> InstructionSet::ResolveParameters(
    const isa::Machine& machine) const {
  std::vector<int64_t> values;
  for (const std::string& name : parameter_names_) {
    ASSIGN_OR_RETURN(const int64_t value, ParameterOf(machine, name));
    values.push_back(value);
  }
  return values;
}

absl::Span<const int> InstructionSet::CostParameters(const Instruction& instruction) const {
  return PreparedOf(instruction).cost_parameters;
}

absl::StatusOr<int64_t> InstructionSet::Cost(const Instruction& instruction, OperandValues values,
                                             absl::Span<const int64_t> parameters) const {
  POLYNAO_CHECK(parameters.size() == parameter_names_.size())
      << parameters.size() << " parameters, expected those of ResolveParameters";
  int64_t cycles = 0;
  const IntInputs inputs{.operands = values.data(), .parameters = parameters.data()};
  if (PreparedOf(instruction).cost.Evaluate(inputs, &cycles)) return cycles;
  std::string zeros;
  ir::ForEachExpr(instruction.cost, [&](Expr e) {
    const auto it = std::find(parameter_names_.begin(), parameter_names_.end(), e.name());
    if (!e.Is(ExprKind::kVar) || it == parameter_names_.end()) return;
    if (parameters[it - parameter_names_.begin()] == 0) StrAppend(&zeros, " (", *it, " is 0)");
  });
  return InvalidInput(instruction.mnemonic,
                      ": this machine can not execute it: its cost divides by zero", zeros);
}

absl::StatusOr<int64_t> InstructionSet::Cost(const Instruction& instruction, OperandValues values,
                                             const isa::Machine& machine) const {
  // Only what this instruction's cost names is read.
  std::vector<int64_t> parameters(parameter_names_.size());
  for (const int i : CostParameters(instruction)) {
    ASSIGN_OR_RETURN(parameters[i], ParameterOf(machine, parameter_names_[i]));
  }
  return Cost(instruction, values, parameters);
}

std::vector<ByteRanges> InstructionSet::Footprint(const Instruction& instruction,
                                                  OperandValues values) const {
  std::vector<ByteRanges> ranges;
  PreparedOf(instruction).footprint.Append({.operands = values.data()}, &ranges);
  return ranges;
}

void InstructionSet::CountActions(const Instruction& instruction, OperandValues values,
                                  ActionCounts* counts) const {
  PreparedOf(instruction).actions.Count({.operands = values.data()}, counts);
}

std::optional<std::vector<Flow>> InstructionSet::Flows(const Instruction& instruction,
                                                       OperandValues values) const {
  return PreparedOf(instruction).footprint.Flows({.operands = values.data()});
}

absl::Status InstructionSet::FillBuffers(const Instruction& instruction, OperandValues values,
                                         const CoreView& core, absl::Span<int64_t> written,
                                         uint8_t** buffers) const {
  const Prepared& prepared = PreparedOf(instruction);
  for (size_t o = 0; o < instruction.operands.size(); ++o) {
    const Operand& operand = instruction.operands[o];
    if (operand.kind == OperandKind::kWritten) {
      // Narrower values leave the register's upper bits zero.
      written[o] = 0;
      buffers[operand.param] = reinterpret_cast<uint8_t*>(&written[o]);
    } else if (operand.kind == OperandKind::kAddress) {
      uint8_t* memory = core.memory[static_cast<int>(operand.space)];
      buffers[operand.param] = memory == nullptr ? nullptr : memory + values[o];
    }
  }
  if (prepared.pc_param >= 0) {
    POLYNAO_CHECK(core.pc != nullptr) << instruction.mnemonic << " needs a pc";
    buffers[prepared.pc_param] = reinterpret_cast<uint8_t*>(core.pc);
  }
  if (prepared.arg_param >= 0) {
    int64_t extent = 0;
    if (!prepared.arg_extent.Evaluate({.operands = values.data()}, &extent) || extent < 1 ||
        extent > static_cast<int64_t>(core.args.size())) {
      return InvalidInput(instruction.mnemonic, ": argument ", extent - 1,
                          " does not exist; the program has ", core.args.size());
    }
    // The meaning only reads them.
    buffers[prepared.arg_param] =
        reinterpret_cast<uint8_t*>(const_cast<int64_t*>(core.args.data()));
  }
  return absl::OkStatus();
}

absl::Status InstructionSet::Execute(const Instruction& instruction, OperandValues values,
                                     const CoreView& core, absl::Span<int64_t> written) const {
  const Prepared& prepared = PreparedOf(instruction);
  if (prepared.native != nullptr) {
    uint8_t* buffers[kMaxParams];
    RETURN_IF_ERROR(FillBuffers(instruction, values, core, written, buffers));
    if (prepared.native->Run({.operands = values.data(), .buffers = buffers})) {
      return absl::OkStatus();
    }
  }
  return Interpret(instruction, values, core, written);
}

absl::Status InstructionSet::Interpret(const Instruction& instruction, OperandValues values,
                                       const CoreView& core, absl::Span<int64_t> written) const {
  Prepared& prepared = PreparedOf(instruction);
  uint8_t* buffers[kMaxParams] = {};
  RETURN_IF_ERROR(FillBuffers(instruction, values, core, written, buffers));
  const std::vector<ir::Param>& params = instruction.meaning.params;
  std::vector<ir::Interpreter::RawArgument> arguments(params.size());
  for (size_t p = 0; p < params.size(); ++p) arguments[p].address = buffers[p];
  for (size_t o = 0; o < instruction.operands.size(); ++o) {
    const Operand& operand = instruction.operands[o];
    if (operand.kind != OperandKind::kValue && operand.kind != OperandKind::kImmediate) continue;
    ir::Interpreter::RawArgument& argument = arguments[operand.param];
    if (IsFloat(operand.type)) {
      argument.float_value = ir::LoadFloat(operand.type, &values[o]);
    } else {
      argument.int_value = ir::WrapInt(operand.type, values[o]);
    }
  }
  const std::lock_guard<std::mutex> lock(prepared.mutex);
  if (prepared.interpreter == nullptr) {
    ASSIGN_OR_RETURN(prepared.interpreter, ir::Interpreter::Create(instruction.meaning));
  }
  return WithContext(instruction.mnemonic, prepared.interpreter->RunRaw(arguments));
}

bool InstructionSet::HasNativeRoutine(const Instruction& instruction) const {
  return PreparedOf(instruction).native != nullptr;
}

const ir::Intrinsics& InstructionSet::intrinsics() const { return *intrinsics_; }

const InstructionSet& DianNao() {
  static const InstructionSet* const set = [] {
    auto loaded = InstructionSet::LoadPacked(PackedInstructions(), "isa/instructions.nir");
    POLYNAO_CHECK(loaded.ok()) << loaded.status().message();
    return loaded->release();
  }();
  return *set;
}

}  // namespace polynao::isa
