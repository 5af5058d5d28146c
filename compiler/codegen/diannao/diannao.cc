#include "compiler/codegen/diannao/diannao.h"

#include <bit>
#include <cstring>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/storage.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

// A float as its bit pattern in the low bits of a register.
int64_t FloatBits(Type type, double value) {
  uint8_t bytes[8] = {};
  ir::StoreFloat(type, bytes, value);
  int64_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

class Generator {
 public:
  Generator(const ir::Function& function, const Target& target)
      : function_(function),
        target_(target),
        set_(*target.instructions),
        addresses_(CollectAddresses(function.body)) {
    for (int r = isa::kRegisterCount - 1; r >= 0; --r) free_.push_back(r);
  }

  absl::StatusOr<isa::Program> Run() {
    isa::Program program;
    program.name = function_.name;
    caches_.emplace_back();
    for (size_t i = 0; i < function_.params.size(); ++i) {
      RETURN_IF_ERROR(Parameter(function_.params[i], i, program));
    }
    FindThreadLoops(function_.body);
    std::vector<Stmt> top = {function_.body};
    if (function_.body.Is(StmtKind::kSeq)) {
      top.assign(function_.body.children().begin(), function_.body.children().end());
    }
    for (Stmt s : top) {
      // A barrier is for all cores; the rest only for those that have work.
      if (IsBarrier(s)) {
        RETURN_IF_ERROR(Instruction(s));
      } else {
        RETURN_IF_ERROR(OnWorkingCores(s));
      }
    }
    RETURN_IF_ERROR(Emit("halt", {}));
    for (const Pending& pending : code_) {
      ASSIGN_OR_RETURN(isa::Word word, set_.Encode(*pending.instruction, pending.fields));
      program.code.push_back(word);
    }
    program.labels = labels_;
    return program;
  }

 private:
  struct Pending {
    const isa::Instruction* instruction;
    std::vector<int64_t> fields;
  };
  // A register with a value; one that belongs to its holder is freed by Release.
  struct Value {
    int reg;
    bool owned;
  };

  // ---- emission

  absl::Status Emit(std::string_view mnemonic, std::vector<int64_t> fields) {
    const isa::Instruction* instruction = set_.Find(mnemonic);
    if (instruction == nullptr) {
      return InvalidInput("the instruction set has no '", mnemonic, "'");
    }
    POLYNAO_CHECK(instruction->operands.size() == fields.size())
        << mnemonic << " takes " << instruction->operands.size() << " operands, not "
        << fields.size();
    code_.push_back({instruction, std::move(fields)});
    return absl::OkStatus();
  }

  int64_t Here() const { return static_cast<int64_t>(code_.size()); }

  // Makes the branch at `at` continue here.
  void PatchToHere(int64_t at) { code_[at].fields.back() = Here(); }

  void Label(std::string name) {
    // Names are for readers: loops of one name get numbers.
    for (char& c : name) {
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    }
    std::string unique = name;
    for (int i = 2; !label_names_.insert(unique).second; ++i) unique = StrCat(name, "_", i);
    labels_.try_emplace(Here(), unique);
  }

  absl::StatusOr<int> Allocate() {
    if (free_.empty()) {
      return absl::ResourceExhaustedError(StrCat("function '", function_.name, "': more than ",
                                                 isa::kRegisterCount, " values are live at once"));
    }
    const int reg = free_.back();
    free_.pop_back();
    return reg;
  }

  void Release(Value value) {
    if (value.owned) free_.push_back(value.reg);
  }

  // ---- values that stay in registers
  //
  // Every block of statements has a cache of the pure values computed in it; inner blocks see those
  // of outer ones, since control enters a block only through the code before it.

  static constexpr size_t kKeepFree = 28;  // registers that caching leaves to expressions

  void PushCache() { caches_.emplace_back(); }
  void PopCache() {
    for (const auto& [expr, reg] : caches_.back()) free_.push_back(reg);
    caches_.pop_back();
  }
  std::optional<int> Cached(Expr e) const {
    for (size_t i = caches_.size(); i-- > 0;) {
      auto it = caches_[i].find(e);
      if (it != caches_[i].end()) return it->second;
    }
    return std::nullopt;
  }

  static bool ReadsMemory(Expr e) {
    bool reads = false;
    ir::ForEachExpr(e, [&](Expr x) { reads = reads || x.Is(ExprKind::kLoad); });
    return reads;
  }

  // May stop the program if it is evaluated where the source does not.
  static bool MayTrap(Expr e) {
    bool may = false;
    ir::ForEachExpr(e, [&](Expr x) {
      may = may || x.Is(ExprKind::kLoad) ||
            ((x.Is(ExprKind::kDiv) || x.Is(ExprKind::kMod)) && ir::IsInt(x.type()) &&
             !(x.operand(1).Is(ExprKind::kIntImm) && x.operand(1).int_value() != 0));
    });
    return may;
  }

  static bool IsPowerOfTwo(Expr e) {
    return e.Is(ExprKind::kIntImm) && e.int_value() > 0 &&
           std::has_single_bit(static_cast<uint64_t>(e.int_value()));
  }

  // ---- expressions. `data`: in a stored value, where i32 and i64 wrap; elsewhere they do not.

  absl::StatusOr<Value> Get(Expr e, bool data) {
    if (e.Is(ExprKind::kVar)) {
      auto it = vars_.find(e);
      if (it == vars_.end()) return InvalidInput("variable '", e.name(), "' has no register");
      return Value{it->second, false};
    }
    if (std::optional<int> reg = Cached(e)) return Value{*reg, false};
    ASSIGN_OR_RETURN(int reg, Allocate());
    RETURN_IF_ERROR(Into(reg, e, data));
    // What wraps as data may be wanted unwrapped as an index only where both are the same.
    if (free_.size() > kKeepFree && !ReadsMemory(e)) {
      caches_.back()[e] = reg;
      return Value{reg, false};
    }
    return Value{reg, true};
  }

  absl::Status Op(std::string_view mnemonic, int rd, absl::Span<const Expr> operands, bool data) {
    std::vector<int64_t> fields = {rd};
    std::vector<Value> values;
    for (Expr operand : operands) {
      // Where registers are short, the first operand is computed in the result's, so that a long
      // sum takes one.
      if (fields.size() == 1 && free_.size() <= kKeepFree && !operand.Is(ExprKind::kVar) &&
          !Cached(operand)) {
        RETURN_IF_ERROR(Into(rd, operand, data));
        fields.push_back(rd);
        continue;
      }
      ASSIGN_OR_RETURN(Value value, Get(operand, data));
      values.push_back(value);
      fields.push_back(value.reg);
    }
    for (Value value : values) Release(value);
    return Emit(mnemonic, std::move(fields));
  }

  absl::Status Constant(int rd, int64_t value) { return Emit("li", {rd, value}); }

  absl::Status Wrap(int rd, Type type, bool data) {
    if (type == Type::kI64 || (type == Type::kI32 && !data)) return absl::OkStatus();
    return Emit(StrCat("wrap.", ir::TypeName(type)), {rd, rd});
  }

  absl::Status Into(int rd, Expr e, bool data) {
    const Type type = e.type();
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return Constant(rd, e.int_value());
      case ExprKind::kFloatImm:
        return Constant(rd, FloatBits(type, e.float_value()));
      case ExprKind::kVar: {
        ASSIGN_OR_RETURN(Value value, Get(e, data));
        return Emit("mov", {rd, value.reg});
      }
      case ExprKind::kCast:
        return CastInto(rd, e, data);
      case ExprKind::kNot: {
        ASSIGN_OR_RETURN(Value value, Get(e.operand(0), data));
        ASSIGN_OR_RETURN(Value zero, Get(e.context().I64(0), false));
        Release(value);
        return Emit("seq", {rd, value.reg, zero.reg});
      }
      case ExprKind::kAnd:
      case ExprKind::kOr: {
        if (!MayTrap(e.operand(1))) {
          return Op(e.Is(ExprKind::kAnd) ? "and" : "or", rd, e.operands(), data);
        }
        RETURN_IF_ERROR(Into(rd, e.operand(0), data));
        ASSIGN_OR_RETURN(Value zero, Get(e.context().I64(0), false));
        const int64_t skip = Here();
        RETURN_IF_ERROR(Emit(e.Is(ExprKind::kAnd) ? "beq" : "bne", {rd, zero.reg, 0}));
        PushCache();
        RETURN_IF_ERROR(Into(rd, e.operand(1), data));
        PopCache();
        PatchToHere(skip);
        return absl::OkStatus();
      }
      case ExprKind::kSelect: {
        if (!MayTrap(e.operand(1)) && !MayTrap(e.operand(2))) {
          return Op("select", rd, e.operands(), data);
        }
        ASSIGN_OR_RETURN(Value condition, Get(e.operand(0), data));
        ASSIGN_OR_RETURN(Value zero, Get(e.context().I64(0), false));
        const int64_t to_else = Here();
        Release(condition);
        RETURN_IF_ERROR(Emit("beq", {condition.reg, zero.reg, 0}));
        PushCache();
        RETURN_IF_ERROR(Into(rd, e.operand(1), data));
        PopCache();
        const int64_t to_end = Here();
        RETURN_IF_ERROR(Emit("jump", {0}));
        PatchToHere(to_else);
        PushCache();
        RETURN_IF_ERROR(Into(rd, e.operand(2), data));
        PopCache();
        PatchToHere(to_end);
        return absl::OkStatus();
      }
      case ExprKind::kLet: {
        ASSIGN_OR_RETURN(int reg, Allocate());
        RETURN_IF_ERROR(Into(reg, e.operand(0), data));
        vars_[e.var()] = reg;
        PushCache();
        RETURN_IF_ERROR(Into(rd, e.operand(1), data));
        PopCache();
        free_.push_back(reg);
        return absl::OkStatus();
      }
      case ExprKind::kLoad: {
        ASSIGN_OR_RETURN(std::string mnemonic, AccessMnemonic("load", e.buffer()));
        ASSIGN_OR_RETURN(Value address, Address(Buffer(e.buffer()), e.operands()));
        Release(address);
        return Emit(mnemonic, {rd, address.reg});
      }
      case ExprKind::kAddress:
        return AddressInto(rd, Buffer(e.buffer()), e.operands());
      case ExprKind::kCall:
        return Op(StrCat("math.", e.name(), ".", ir::TypeName(type)), rd, e.operands(), data);
      default:
        break;
    }
    if ((e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod)) && IsPowerOfTwo(e.operand(1))) {
      // Rounded down, as division is: a shift and a mask take an eighth of its time.
      const int64_t divisor = e.operand(1).int_value();
      const bool is_div = e.Is(ExprKind::kDiv);
      const int64_t other = is_div ? std::countr_zero(static_cast<uint64_t>(divisor)) : divisor - 1;
      ASSIGN_OR_RETURN(Value value, Get(e.operand(0), data));
      ASSIGN_OR_RETURN(Value constant, Get(e.context().I64(other), false));
      Release(constant);
      Release(value);
      return Emit(is_div ? "shr" : "and", {rd, value.reg, constant.reg});
    }
    const Type operand_type = e.operand(0).type();
    const std::string suffix = StrCat(".", ir::TypeName(operand_type));
    const bool is_float = ir::IsFloat(operand_type);
    const auto op = [&](std::string_view int_name, std::string_view float_name) {
      return Op(is_float ? StrCat(float_name, suffix) : std::string(int_name), rd, e.operands(),
                data);
    };
    switch (e.kind()) {
      case ExprKind::kAdd:
        RETURN_IF_ERROR(op("add", "fadd"));
        break;
      case ExprKind::kSub:
        RETURN_IF_ERROR(op("sub", "fsub"));
        break;
      case ExprKind::kMul:
        RETURN_IF_ERROR(op("mul", "fmul"));
        break;
      case ExprKind::kDiv:
        RETURN_IF_ERROR(op("div", "fdiv"));
        break;
      case ExprKind::kMod:
        RETURN_IF_ERROR(op("mod", ""));
        break;
      case ExprKind::kMin:
        return op("min", "fmin");
      case ExprKind::kMax:
        return op("max", "fmax");
      case ExprKind::kEq:
        return op("seq", "feq");
      case ExprKind::kNe:
        return op("sne", "fne");
      case ExprKind::kLt:
        return op("slt", "flt");
      case ExprKind::kLe:
        return op("sle", "fle");
      default:
        POLYNAO_UNREACHABLE(ir::ExprKindName(e.kind()));
    }
    return is_float ? absl::OkStatus() : Wrap(rd, type, data);
  }

  absl::Status CastInto(int rd, Expr e, bool data) {
    const Expr source = e.operand(0);
    const Type to = e.type();
    const Type from = source.type();
    ASSIGN_OR_RETURN(Value value, Get(source, data));
    const std::string to_name(ir::TypeName(to));
    const std::string from_name(ir::TypeName(from));
    if (to != Type::kI1) Release(value);  // there another register is needed first
    if (ir::IsFloat(to)) {
      return Emit(StrCat("convert.", to_name, ".", ir::IsFloat(from) ? from_name : "i64"),
                  {rd, value.reg});
    }
    if (to == Type::kI1) {
      ASSIGN_OR_RETURN(Value zero, Get(e.context().Const(from, 0), false));
      if (!ir::IsFloat(from)) {
        Release(zero);
        Release(value);
        return Emit("sne", {rd, value.reg, zero.reg});
      }
      // Below or above 0: a NaN is neither, and gives 0 as in every cast to an integer.
      ASSIGN_OR_RETURN(int above, Allocate());
      Release(zero);
      Release(value);
      free_.push_back(above);
      const std::string less = StrCat("flt.", from_name);
      RETURN_IF_ERROR(Emit(less, {above, zero.reg, value.reg}));
      RETURN_IF_ERROR(Emit(less, {rd, value.reg, zero.reg}));
      return Emit("or", {rd, rd, above});
    }
    if (ir::IsFloat(from)) {
      return Emit(StrCat("convert.", to_name, ".", from_name), {rd, value.reg});
    }
    if (to == Type::kI64) return Emit("mov", {rd, value.reg});
    return Emit(StrCat("wrap.", to_name), {rd, value.reg});
  }

  // ---- memory

  absl::StatusOr<std::string> AccessMnemonic(std::string_view op, const ir::BufferNode* buffer) {
    if (!isa::ParseSpace(buffer->scope) || buffer->scope == "wmem") {
      return InvalidInput("'", buffer->name, "' is in '", buffer->scope,
                          "', which the scalar unit of a DianNao core does not reach (gmem, smem, "
                          "nmem)");
    }
    const Type type = buffer->type == Type::kI1 ? Type::kU8 : buffer->type;
    return StrCat(op, ".", ir::TypeName(type), ".", buffer->scope);
  }

  // The byte address of an element.
  absl::StatusOr<Value> Address(Buffer buffer, absl::Span<const Expr> indices) {
    return Get(buffer->context->Address(buffer, indices), false);
  }

  absl::Status AddressInto(int rd, Buffer buffer, absl::Span<const Expr> indices) {
    if (indices.size() != 1) {
      return InvalidInput("'", buffer->name, "' has ", indices.size(),
                          " dimensions; flatten first");
    }
    const int64_t bytes = ir::ByteSize(buffer->type);
    const Expr index = indices[0];
    auto param = param_registers_.find(buffer);
    auto address = addresses_.find(buffer);
    if (param == param_registers_.end() && address == addresses_.end()) {
      return InvalidInput("'", buffer->name, "' in '", buffer->scope, "' has no address");
    }
    if (index.Is(ExprKind::kIntImm)) {
      const int64_t offset = index.int_value() * bytes;
      return param == param_registers_.end() ? Constant(rd, address->second + offset)
                                             : Emit("addi", {rd, param->second, offset});
    }
    ASSIGN_OR_RETURN(Value value, Get(index, false));
    Release(value);
    RETURN_IF_ERROR(Emit("muli", {rd, value.reg, bytes}));
    return param == param_registers_.end() ? Emit("addi", {rd, rd, address->second})
                                           : Emit("add", {rd, rd, param->second});
  }

  absl::Status Parameter(const ir::Param& param, size_t index, isa::Program& program) {
    isa::ProgramParam out;
    out.name = std::string(param.name());
    ASSIGN_OR_RETURN(int reg, Allocate());
    if (param.var) {
      out.is_tensor = false;
      out.type = param.var.type();
      vars_[param.var] = reg;
    } else {
      if (param.buffer->scope != "gmem") {
        return InvalidInput("parameter '", out.name, "' is in '", param.buffer->scope,
                            "'; parameters of a program are in gmem");
      }
      out.type = param.buffer->type;
      out.access = param.access;
      for (Expr extent : param.buffer->extents) {
        if (extent.Is(ExprKind::kIntImm)) {
          out.shape.push_back(extent.int_value());
        } else {
          out.any_shape = true;
        }
      }
      if (out.any_shape) out.shape.clear();
      param_registers_[param.buffer] = reg;
    }
    program.params.push_back(std::move(out));
    return Emit("arg", {reg, isa::kFirstParam + static_cast<int64_t>(index)});
  }

  // ---- statements

  static bool IsBarrier(Stmt s) {
    return s.Is(StmtKind::kEvaluate) && s.value().name().substr(0, 8) == "barrier.";
  }

  // Notes the axes in use, and which statements contain a loop over cores or a barrier.
  bool FindThreadLoops(Stmt s) {
    const bool is_axis = s.Is(StmtKind::kFor) && s.for_kind() == ir::ForKind::kThread;
    if (is_axis) used_axes_.insert(std::string(s.name()));
    bool found = IsBarrier(s) || (is_axis && s.name() == "tid");
    for (Stmt child : s.children()) found |= FindThreadLoops(child);
    if (found) for_all_cores_.insert(s);
    return found;
  }

  static bool HasCoreLoop(Stmt root) {
    bool found = false;
    ir::ForEachStmt(root, [&](Stmt s) {
      found = found ||
              (s.Is(StmtKind::kFor) && s.for_kind() == ir::ForKind::kThread && s.name() == "tid");
      return !found;
    });
    return found;
  }

  // Runs `s` where the numbers on axes without a loop are 0, skipping it on all other cores.
  absl::Status OnWorkingCores(Stmt s) {
    std::vector<int64_t> skips;
    PushCache();
    for (const auto& [axis, slot] :
         {std::pair<std::string, int64_t>("cid", isa::kClusterId), {"tid", isa::kCoreId}}) {
      if (used_axes_.contains(axis)) continue;
      ASSIGN_OR_RETURN(int id, Allocate());
      RETURN_IF_ERROR(Emit("arg", {id, slot}));
      ASSIGN_OR_RETURN(Value zero, Get(s.context().I64(0), false));
      skips.push_back(Here());
      RETURN_IF_ERROR(Emit("bne", {id, zero.reg, 0}));
      free_.push_back(id);
    }
    RETURN_IF_ERROR(Statement(s));
    PopCache();
    for (int64_t skip : skips) PatchToHere(skip);
    return absl::OkStatus();
  }

  // Runs `stmts` on the memory core, skipping them on the cluster's cores.
  absl::Status OnMemoryCore(absl::Span<const Stmt> stmts) {
    PushCache();
    ASSIGN_OR_RETURN(int is_memory_core, Allocate());
    RETURN_IF_ERROR(Emit("arg", {is_memory_core, isa::kIsMemoryCore}));
    ASSIGN_OR_RETURN(Value zero, Get(function_.context->I64(0), false));
    const int64_t skip = Here();
    RETURN_IF_ERROR(Emit("beq", {is_memory_core, zero.reg, 0}));
    Release(zero);
    free_.push_back(is_memory_core);
    runs_on_ = RunsOn::kMemoryCore;
    for (Stmt s : stmts) RETURN_IF_ERROR(Statement(s));
    runs_on_ = RunsOn::kCluster;
    PopCache();
    PatchToHere(skip);
    return absl::OkStatus();
  }

  // A statement between the loop over clusters and those over cores: what contains such a loop (or
  // a barrier) is for all cores of the cluster, the rest for its memory core.
  absl::Status InCluster(Stmt s) {
    if (!for_all_cores_.contains(s)) return OnMemoryCore({s});
    if (!s.Is(StmtKind::kSeq)) return StatementHere(s);
    const absl::Span<const Stmt> children = s.children();
    for (size_t i = 0; i < children.size();) {
      if (for_all_cores_.contains(children[i])) {
        RETURN_IF_ERROR(InCluster(children[i++]));
        continue;
      }
      const size_t first = i;
      while (i < children.size() && !for_all_cores_.contains(children[i])) ++i;
      RETURN_IF_ERROR(OnMemoryCore(children.subspan(first, i - first)));
    }
    return absl::OkStatus();
  }

  // The memory core has no vector and tensor unit, no NMEM and no WMEM.
  absl::Status CheckMemoryCore(Stmt s) const {
    std::string missing;
    const auto touch = [&](const ir::BufferNode* buffer) {
      if (missing.empty() && buffer->scope != "gmem" && buffer->scope != "smem") {
        missing = StrCat(buffer->scope, " (of '", buffer->name, "')");
      }
    };
    if (s.Is(StmtKind::kStore)) touch(s.buffer().node());
    if (s.Is(StmtKind::kEvaluate)) {
      const isa::Instruction* instruction = set_.Find(s.value().name());
      if (instruction != nullptr && instruction->queue == isa::Queue::kCompute) {
        missing = StrCat(isa::UnitName(instruction->unit), " unit");
      }
    }
    for (Expr e : s.operands()) {
      ir::ForEachExpr(e, [&](Expr x) {
        if (x.Is(ExprKind::kLoad) || x.Is(ExprKind::kAddress)) touch(x.buffer());
      });
    }
    if (missing.empty()) return absl::OkStatus();
    return InvalidInput("'", FirstLine(s),
                        "' stands in a loop over clusters (cid), but in none over their cores "
                        "(tid): the cluster's memory core runs it, and has no ",
                        missing);
  }

  absl::Status Block(Stmt s) {
    PushCache();
    RETURN_IF_ERROR(Statement(s));
    PopCache();
    return absl::OkStatus();
  }

  absl::Status Statement(Stmt s) {
    return runs_on_ == RunsOn::kCluster ? InCluster(s) : StatementHere(s);
  }

  // The code of `s` for whoever gets here.
  absl::Status StatementHere(Stmt s) {
    if (runs_on_ != RunsOn::kCore) RETURN_IF_ERROR(CheckMemoryCore(s));
    switch (s.kind()) {
      case StmtKind::kSeq:
        for (Stmt child : s.children()) RETURN_IF_ERROR(Statement(child));
        return absl::OkStatus();
      case StmtKind::kPragma:
        return Statement(s.body());
      case StmtKind::kAllocate:
        if (!addresses_.contains(s.buffer())) {
          return InvalidInput("'", s.buffer()->name, "' is allocated in '", s.buffer()->scope,
                              "': a DianNao card allocates in nmem, smem and wmem, after storage");
        }
        return Statement(s.body());
      case StmtKind::kLet: {
        ASSIGN_OR_RETURN(int reg, Allocate());
        RETURN_IF_ERROR(Into(reg, s.value(), true));
        vars_[s.var()] = reg;
        RETURN_IF_ERROR(Block(s.body()));
        free_.push_back(reg);
        return absl::OkStatus();
      }
      case StmtKind::kFor:
        return s.for_kind() == ir::ForKind::kThread ? ThreadLoop(s) : Loop(s);
      case StmtKind::kIf:
        return Branch(s);
      case StmtKind::kStore: {
        RETURN_IF_ERROR(InsideThreadLoops(s));
        ASSIGN_OR_RETURN(std::string mnemonic, AccessMnemonic("store", s.buffer().node()));
        ASSIGN_OR_RETURN(Value value, Get(s.value(), true));
        ASSIGN_OR_RETURN(Value address, Address(s.buffer(), s.indices()));
        Release(value);
        Release(address);
        return Emit(mnemonic, {address.reg, value.reg});
      }
      case StmtKind::kEvaluate:
        if (IsBarrier(s)) RETURN_IF_ERROR(CheckBarrier(s));
        return Instruction(s);
    }
    POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
  }

  absl::Status InsideThreadLoops(Stmt s) const {
    if (open_axes_.size() == used_axes_.size() || runs_on_ == RunsOn::kMemoryCore) {
      return absl::OkStatus();
    }
    return InvalidInput("'", FirstLine(s),
                        "' stands outside a thread loop (cid, tid) that other parts of '",
                        function_.name, "' have: every core would run it");
  }

  static std::string FirstLine(Stmt s) {
    const std::string text = ir::Print(s);
    return text.substr(0, text.find('\n'));
  }

  // A barrier inside the function's statements (not one of its own) opens only if all members get
  // there.
  absl::Status CheckBarrier(Stmt s) const {
    if (open_axes_.contains("tid") && !shared_barriers_.contains(s)) {
      return InvalidInput(
          "'", FirstLine(s),
          "' stands in a loop over cores (tid) under a condition, in a loop, or not "
          "for all cores: the memory core, for which it waits, cannot follow");
    }
    const bool global = s.value().name() == "barrier.global";
    if (!used_axes_.contains("tid") || (global && !used_axes_.contains("cid"))) {
      return InvalidInput("'", FirstLine(s), "' waits for ", global ? "all cores" : "a cluster",
                          ", but only number 0 on axes without a loop gets there");
    }
    return absl::OkStatus();
  }

  // The barriers that each iteration of a loop over cores meets once: the memory core, which runs no
  // iteration, meets them as well.
  std::vector<Stmt> BarriersFor(Stmt loop) const {
    std::vector<Stmt> barriers;
    ir::ForEachStmt(loop.body(), [&](Stmt s) {
      if (IsBarrier(s) && s.value().name() == "barrier.cluster") barriers.push_back(s);
      return !s.Is(StmtKind::kFor) && !s.Is(StmtKind::kIf);
    });
    return barriers;
  }

  absl::Status Instruction(Stmt s) {
    const Expr call = s.value();
    const isa::Instruction* instruction = set_.Find(call.name());
    if (instruction == nullptr) {
      return InvalidInput("the instruction set has no '", call.name(), "'");
    }
    if (instruction->unit != isa::Unit::kControl) RETURN_IF_ERROR(InsideThreadLoops(s));
    std::vector<int64_t> fields;
    std::vector<Value> values;
    for (const isa::Operand& operand : instruction->operands) {
      const Expr argument = call.operand(operand.param);
      if (operand.kind == isa::OperandKind::kImmediate) {
        if (!argument.Is(ExprKind::kIntImm)) {
          return InvalidInput(call.name(), ": operand '", operand.name, "' must be a constant");
        }
        fields.push_back(argument.int_value());
        continue;
      }
      ASSIGN_OR_RETURN(Value value, Get(argument, false));
      values.push_back(value);
      fields.push_back(value.reg);
    }
    for (Value value : values) Release(value);
    code_.push_back({instruction, std::move(fields)});
    return absl::OkStatus();
  }

  absl::Status Branch(Stmt s) {
    ASSIGN_OR_RETURN(Value condition, Get(s.cond(), false));
    ASSIGN_OR_RETURN(Value zero, Get(s.context().I64(0), false));
    Release(condition);
    const int64_t to_else = Here();
    RETURN_IF_ERROR(Emit("beq", {condition.reg, zero.reg, 0}));
    RETURN_IF_ERROR(Block(s.then_case()));
    if (s.else_case().IsEmpty()) {
      PatchToHere(to_else);
      return absl::OkStatus();
    }
    const int64_t to_end = Here();
    RETURN_IF_ERROR(Emit("jump", {0}));
    PatchToHere(to_else);
    RETURN_IF_ERROR(Block(s.else_case()));
    PatchToHere(to_end);
    return absl::OkStatus();
  }

  // Constants of the body, loaded once before the loop.
  absl::Status LoadConstants(Stmt body) {
    std::vector<Expr> constants = {body.context().I64(0)};
    ir::ForEachExprIn(body, [&](Expr e) {
      if (e.IsConst()) constants.push_back(e);
    });
    for (Expr constant : constants) {
      if (free_.size() <= kKeepFree + 8) break;  // leave some to the body
      ASSIGN_OR_RETURN(Value value, Get(constant, false));
      Release(value);
    }
    return absl::OkStatus();
  }

  absl::Status Loop(Stmt s) {
    const bool constant_extent = s.extent().Is(ExprKind::kIntImm);
    if (constant_extent && s.extent().int_value() <= 0) return absl::OkStatus();
    PushCache();
    RETURN_IF_ERROR(LoadConstants(s.body()));
    ASSIGN_OR_RETURN(int var, Allocate());
    ASSIGN_OR_RETURN(int end, Allocate());
    RETURN_IF_ERROR(Into(var, s.min(), false));
    RETURN_IF_ERROR(Op("add", end, {s.min(), s.extent()}, false));
    vars_[s.var()] = var;
    int64_t skip = -1;
    if (!constant_extent) {
      skip = Here();
      RETURN_IF_ERROR(Emit("bge", {var, end, 0}));
    }
    Label(std::string(s.var().name()));
    const int64_t head = Here();
    RETURN_IF_ERROR(Block(s.body()));
    RETURN_IF_ERROR(Emit("addi", {var, var, 1}));
    RETURN_IF_ERROR(Emit("blt", {var, end, head}));
    if (skip >= 0) PatchToHere(skip);
    free_.push_back(var);
    free_.push_back(end);
    PopCache();
    return absl::OkStatus();
  }

  absl::Status ThreadLoop(Stmt s) {
    int64_t count;
    int64_t slot;
    if (s.name() == "cid") {
      count = target_.machine->clusters();
      slot = isa::kClusterId;
    } else if (s.name() == "tid") {
      count = target_.machine->cores_per_cluster();
      slot = isa::kCoreId;
    } else {
      return InvalidInput("thread axis '", s.name(),
                          "': a DianNao card has cid (clusters) and tid (cores of a cluster)");
    }
    const std::string axis(s.name());
    PushCache();
    ASSIGN_OR_RETURN(int var, Allocate());
    ASSIGN_OR_RETURN(int end, Allocate());
    std::vector<int64_t> skips;
    const bool constant = s.min().IsInt(0) && s.extent().Is(ExprKind::kIntImm);
    const bool exact = constant && s.extent().int_value() == count;
    const bool once = constant && s.extent().int_value() <= count;
    const std::vector<Stmt> barriers =
        axis == "tid" && exact ? BarriersFor(s) : std::vector<Stmt>();
    shared_barriers_.insert(barriers.begin(), barriers.end());
    RETURN_IF_ERROR(Emit("arg", {var, slot}));
    if (axis == "tid") {
      // The memory core has the number behind the last core, and runs no iteration.
      RETURN_IF_ERROR(Constant(end, count));
      skips.push_back(Here());
      RETURN_IF_ERROR(Emit("bge", {var, end, 0}));
    }
    if (!s.min().IsInt(0)) {
      ASSIGN_OR_RETURN(Value min, Get(s.min(), false));
      RETURN_IF_ERROR(Emit("add", {var, var, min.reg}));
      Release(min);
    }
    if (!exact) {
      RETURN_IF_ERROR(Op("add", end, {s.min(), s.extent()}, false));
      skips.push_back(Here());
      RETURN_IF_ERROR(Emit("bge", {var, end, 0}));
    }
    vars_[s.var()] = var;
    open_axes_.insert(axis);
    const RunsOn outside = runs_on_;
    if (axis == "tid") runs_on_ = RunsOn::kCore;
    if (axis == "cid" && HasCoreLoop(s.body())) runs_on_ = RunsOn::kCluster;
    Label(std::string(s.var().name()));
    const int64_t head = Here();
    RETURN_IF_ERROR(Block(s.body()));
    runs_on_ = outside;
    open_axes_.erase(axis);
    if (!once) {
      RETURN_IF_ERROR(Emit("addi", {var, var, count}));
      RETURN_IF_ERROR(Emit("blt", {var, end, head}));
    }
    if (!barriers.empty()) {
      const int64_t behind = Here();
      RETURN_IF_ERROR(Emit("beq", {var, var, 0}));
      for (int64_t skip : std::exchange(skips, {behind})) PatchToHere(skip);
      for (Stmt barrier : barriers) {
        RETURN_IF_ERROR(Emit(std::string(barrier.value().name()), {}));
      }
    }
    for (int64_t skip : skips) PatchToHere(skip);
    free_.push_back(var);
    free_.push_back(end);
    PopCache();
    return absl::OkStatus();
  }

  const ir::Function& function_;
  const Target& target_;
  const isa::InstructionSet& set_;
  const AddressMap addresses_;
  std::vector<Pending> code_;
  std::map<int64_t, std::string> labels_;
  std::set<std::string> label_names_;
  std::vector<int> free_;
  absl::flat_hash_map<Var, int> vars_;
  absl::flat_hash_map<Buffer, int> param_registers_;
  std::vector<absl::flat_hash_map<Expr, int>> caches_;
  // Who gets to the code being generated: cores that have an iteration; all cores of a cluster and
  // its memory core (in a cid loop, outside its tid loops); the memory core alone.
  enum class RunsOn : uint8_t { kCore, kCluster, kMemoryCore };
  RunsOn runs_on_ = RunsOn::kCore;
  absl::flat_hash_set<Stmt> shared_barriers_;  // in loops over tid, but met by memory cores
  absl::flat_hash_set<Stmt> for_all_cores_;    // contain a loop over tid or a barrier
  std::set<std::string> used_axes_;
  std::set<std::string> open_axes_;
};

}  // namespace

absl::StatusOr<isa::Program> GenerateDianNao(const ir::Function& function, const Target& target) {
  if (target.instructions == nullptr || target.machine == nullptr) {
    return InvalidInput("target '", target.name, "' is no DianNao card");
  }
  return Generator(function, target).Run();
}

}  // namespace polynao
