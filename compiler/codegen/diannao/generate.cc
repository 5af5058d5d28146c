#include "compiler/codegen/diannao/generate.h"

#include <bit>
#include <cstring>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/storage.h"
#include "compiler/target/control.h"

namespace polynao::diannao {
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
    code_.name = function.name;
    code_.set = &set_;
    code_.blocks.emplace_back();
  }

  absl::StatusOr<Code> Run(isa::Program& program) {
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
    return std::move(code_);
  }

 private:
  // ---- emission

  absl::Status Emit(std::string_view mnemonic, absl::Span<const int64_t> fields) {
    const isa::Instruction* instruction = set_.Find(mnemonic);
    if (instruction == nullptr) {
      return InvalidInput("the instruction set has no '", mnemonic, "'");
    }
    POLYNAO_CHECK(instruction->operands.size() == fields.size())
        << mnemonic << " takes " << instruction->operands.size() << " operands, not "
        << fields.size();
    code_.blocks.back().ops.push_back({instruction, {fields.begin(), fields.end()}});
    return absl::OkStatus();
  }

  // Emits an instruction that writes a new register behind which `operands` follow.
  absl::StatusOr<int> Value(std::string_view mnemonic, std::initializer_list<int64_t> operands) {
    absl::InlinedVector<int64_t, 4> fields = {code_.NewRegister()};
    fields.insert(fields.end(), operands.begin(), operands.end());
    RETURN_IF_ERROR(Emit(mnemonic, fields));
    return static_cast<int>(fields[0]);
  }

  absl::StatusOr<int> Constant(int64_t value) { return Value("li", {value}); }

  // The block being filled.
  int Here() const { return static_cast<int>(code_.blocks.size()) - 1; }

  // Ends a block that branches to `target`, which a call of ContinueFrom can set later; returns it.
  absl::StatusOr<int> BranchTo(std::string_view mnemonic, std::initializer_list<int64_t> compared,
                               int64_t target = 0) {
    absl::InlinedVector<int64_t, 4> fields(compared);
    fields.push_back(target);
    RETURN_IF_ERROR(Emit(mnemonic, fields));
    code_.blocks.emplace_back();
    return Here() - 1;
  }

  // Begins a new block; the one being filled continues there.
  absl::Status NewBlock() {
    const int64_t next = Here() + 1;
    RETURN_IF_ERROR(Emit("jump", {next}));
    code_.blocks.emplace_back();
    return absl::OkStatus();
  }

  // Makes these blocks' branches continue here.
  absl::Status ContinueFrom(absl::Span<const int> branches) {
    if (branches.empty()) return absl::OkStatus();
    if (!code_.blocks.back().ops.empty()) RETURN_IF_ERROR(NewBlock());
    for (int block : branches) *BranchTarget(code_.blocks[block].ops.back()) = Here();
    return absl::OkStatus();
  }

  void Label(std::string name) {
    // Names are for readers: loops of one name get numbers.
    for (char& c : name) {
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    }
    std::string unique = name;
    for (int i = 2; !label_names_.insert(unique).second; ++i) unique = StrCat(name, "_", i);
    code_.blocks.back().label = unique;
  }

  // ---- values that have been computed
  //
  // Every block of statements has a cache of the pure values computed in it; inner blocks see those
  // of outer ones, since control enters a block only through the code before it.

  void PushCache() { caches_.emplace_back(); }
  void PopCache() { caches_.pop_back(); }
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

  absl::StatusOr<int> Get(Expr e, bool data) {
    if (e.Is(ExprKind::kVar)) {
      auto it = vars_.find(e);
      if (it == vars_.end()) return InvalidInput("variable '", e.name(), "' has no register");
      return it->second;
    }
    if (std::optional<int> reg = Cached(e)) return *reg;
    ASSIGN_OR_RETURN(int reg, Compute(e, data));
    // What wraps as data may be wanted unwrapped as an index only where both are the same.
    if (!ReadsMemory(e)) caches_.back()[e] = reg;
    return reg;
  }

  absl::StatusOr<int> Op(std::string_view mnemonic, absl::Span<const Expr> operands, bool data) {
    absl::InlinedVector<int64_t, 4> fields = {0};
    for (Expr operand : operands) {
      ASSIGN_OR_RETURN(int value, Get(operand, data));
      fields.push_back(value);
    }
    fields[0] = code_.NewRegister();
    RETURN_IF_ERROR(Emit(mnemonic, fields));
    return static_cast<int>(fields[0]);
  }

  absl::StatusOr<int> Zero() { return Get(function_.context->I64(0), false); }

  // Writes the value of `e` to a variable, in a block of its own for what it computes.
  absl::Status Assign(int variable, Expr e, bool data) {
    PushCache();
    ASSIGN_OR_RETURN(int value, Get(e, data));
    PopCache();
    return Emit("mov", {variable, value});
  }

  absl::StatusOr<int> Wrap(int value, Type type, bool data) {
    if (type == Type::kI64 || (type == Type::kI32 && !data)) return value;
    return Value(StrCat("wrap.", ir::TypeName(type)), {value});
  }

  absl::StatusOr<int> Compute(Expr e, bool data) {
    const Type type = e.type();
    if (type == Type::kU16 || type == Type::kU32 || type == Type::kU64) {
      return InvalidInput("a value of ", ir::TypeName(type),
                          ", which the scalar unit of a DianNao core does not have");
    }
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return Constant(e.int_value());
      case ExprKind::kFloatImm:
        return Constant(FloatBits(type, e.float_value()));
      case ExprKind::kCast:
        return Cast(e, data);
      case ExprKind::kNot: {
        ASSIGN_OR_RETURN(int value, Get(e.operand(0), data));
        ASSIGN_OR_RETURN(int zero, Zero());
        return Value("seq", {value, zero});
      }
      case ExprKind::kAnd:
      case ExprKind::kOr: {
        if (!MayTrap(e.operand(1))) {
          return Op(e.Is(ExprKind::kAnd) ? "and" : "or", e.operands(), data);
        }
        const int result = code_.NewRegister(Here());
        ASSIGN_OR_RETURN(int first, Get(e.operand(0), data));
        RETURN_IF_ERROR(Emit("mov", {result, first}));
        ASSIGN_OR_RETURN(int zero, Zero());
        ASSIGN_OR_RETURN(int skip, BranchTo(e.Is(ExprKind::kAnd) ? "beq" : "bne", {first, zero}));
        RETURN_IF_ERROR(Assign(result, e.operand(1), data));
        RETURN_IF_ERROR(ContinueFrom({skip}));
        code_.home[result] = Here();
        return result;
      }
      case ExprKind::kSelect: {
        if (!MayTrap(e.operand(1)) && !MayTrap(e.operand(2))) {
          return Op("select", e.operands(), data);
        }
        const int result = code_.NewRegister(Here());
        ASSIGN_OR_RETURN(int condition, Get(e.operand(0), data));
        ASSIGN_OR_RETURN(int zero, Zero());
        ASSIGN_OR_RETURN(int to_else, BranchTo("beq", {condition, zero}));
        RETURN_IF_ERROR(Assign(result, e.operand(1), data));
        ASSIGN_OR_RETURN(int to_end, BranchTo("jump", {}));
        RETURN_IF_ERROR(ContinueFrom({to_else}));
        RETURN_IF_ERROR(Assign(result, e.operand(2), data));
        RETURN_IF_ERROR(ContinueFrom({to_end}));
        code_.home[result] = Here();
        return result;
      }
      case ExprKind::kLet: {
        ASSIGN_OR_RETURN(vars_[e.var()], Get(e.operand(0), data));
        PushCache();  // what depends on the variable may depend on memory
        ASSIGN_OR_RETURN(int body, Get(e.operand(1), data));
        PopCache();
        return body;
      }
      case ExprKind::kLoad: {
        ASSIGN_OR_RETURN(std::string mnemonic, AccessMnemonic("load", e.buffer()));
        ASSIGN_OR_RETURN(int address, Address(Buffer(e.buffer()), e.operands()));
        return Value(mnemonic, {address});
      }
      case ExprKind::kAddress:
        return ComputeAddress(Buffer(e.buffer()), e.operands());
      case ExprKind::kCall:
        return Op(StrCat("math.", e.name(), ".", ir::TypeName(type)), e.operands(), data);
      default:
        break;
    }
    if ((e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod)) && IsPowerOfTwo(e.operand(1))) {
      // Rounded down, as division is: a shift and a mask take an eighth of its time.
      const int64_t divisor = e.operand(1).int_value();
      const bool is_div = e.Is(ExprKind::kDiv);
      const int64_t other = is_div ? std::countr_zero(static_cast<uint64_t>(divisor)) : divisor - 1;
      ASSIGN_OR_RETURN(int value, Get(e.operand(0), data));
      ASSIGN_OR_RETURN(int constant, Get(e.context().I64(other), false));
      return Value(is_div ? "shr" : "and", {value, constant});
    }
    const Type operand_type = e.operand(0).type();
    const std::string suffix = StrCat(".", ir::TypeName(operand_type));
    const bool is_float = ir::IsFloat(operand_type);
    const auto op = [&](std::string_view int_name, std::string_view float_name) {
      return Op(is_float ? StrCat(float_name, suffix) : std::string(int_name), e.operands(), data);
    };
    const auto arithmetic = [&](std::string_view int_name,
                                std::string_view float_name) -> absl::StatusOr<int> {
      ASSIGN_OR_RETURN(int value, op(int_name, float_name));
      return is_float ? value : Wrap(value, type, data);
    };
    switch (e.kind()) {
      case ExprKind::kBitAnd:
        return op("and", "");
      case ExprKind::kBitOr:
        return op("or", "");
      case ExprKind::kBitXor:
        return op("xor", "");
      case ExprKind::kShiftLeft:
      case ExprKind::kShiftRight: {
        // The unit's shifts take counts from 0 to 63 and know one width.
        const Expr count = e.operand(1);
        if (!count.Is(ExprKind::kIntImm) || count.int_value() < 0 ||
            count.int_value() >= ir::BitWidth(type)) {
          return InvalidInput("a shift by a count that is no constant from 0 to ",
                              ir::BitWidth(type) - 1,
                              ", which the DianNao target does not generate");
        }
        if (e.Is(ExprKind::kShiftRight)) return op("shr", "");
        ASSIGN_OR_RETURN(const int shifted, op("shl", ""));
        return Wrap(shifted, type, /*data=*/true);  // in indices too
      }
      case ExprKind::kAdd:
        return arithmetic("add", "fadd");
      case ExprKind::kSub:
        return arithmetic("sub", "fsub");
      case ExprKind::kMul:
        return arithmetic("mul", "fmul");
      case ExprKind::kDiv:
        return arithmetic("div", "fdiv");
      case ExprKind::kMod:
        return arithmetic("mod", "");
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
  }

  absl::StatusOr<int> Cast(Expr e, bool data) {
    const Expr source = e.operand(0);
    const Type to = e.type();
    const Type from = source.type();
    ASSIGN_OR_RETURN(int value, Get(source, data));
    const std::string to_name(ir::TypeName(to));
    const std::string from_name(ir::TypeName(from));
    if (ir::IsFloat(to)) {
      return Value(StrCat("convert.", to_name, ".", ir::IsFloat(from) ? from_name : "i64"),
                   {value});
    }
    if (to == Type::kI1) {
      ASSIGN_OR_RETURN(int zero, Get(e.context().Const(from, 0), false));
      if (!ir::IsFloat(from)) return Value("sne", {value, zero});
      // Below or above 0: a NaN is neither, and gives 0 as in every cast to an integer.
      const std::string less = StrCat("flt.", from_name);
      ASSIGN_OR_RETURN(int above, Value(less, {zero, value}));
      ASSIGN_OR_RETURN(int below, Value(less, {value, zero}));
      return Value("or", {below, above});
    }
    if (ir::IsFloat(from)) return Value(StrCat("convert.", to_name, ".", from_name), {value});
    if (to == Type::kI64) return value;
    return Value(StrCat("wrap.", to_name), {value});
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
  absl::StatusOr<int> Address(Buffer buffer, absl::Span<const Expr> indices) {
    return Get(buffer->context->Address(buffer, indices), false);
  }

  absl::StatusOr<int> ComputeAddress(Buffer buffer, absl::Span<const Expr> indices) {
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
    ASSIGN_OR_RETURN(int element, Get(index, false));
    ASSIGN_OR_RETURN(int offset, Value("muli", {element, bytes}));
    return param == param_registers_.end() ? Value("addi", {offset, address->second})
                                           : Value("add", {offset, param->second});
  }

  absl::Status Parameter(const ir::Param& param, size_t index, isa::Program& program) {
    isa::ProgramParam out;
    out.name = std::string(param.name());
    ASSIGN_OR_RETURN(int reg, Value("arg", {isa::kFirstParam + static_cast<int64_t>(index)}));
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
    return absl::OkStatus();
  }

  // ---- statements

  bool IsBarrier(Stmt s) const { return polynao::IsBarrier(s, target_); }
  bool IsGlobalBarrier(Stmt s) const {
    return IsBarrier(s) && InstructionOf(s, target_)->barrier == isa::Instruction::Barrier::kGlobal;
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
    std::vector<int> skips;
    PushCache();
    for (const auto& [axis, slot] :
         {std::pair<std::string, int64_t>("cid", isa::kClusterId), {"tid", isa::kCoreId}}) {
      if (used_axes_.contains(axis)) continue;
      ASSIGN_OR_RETURN(int id, Value("arg", {slot}));
      ASSIGN_OR_RETURN(int zero, Zero());
      ASSIGN_OR_RETURN(int skip, BranchTo("bne", {id, zero}));
      skips.push_back(skip);
    }
    RETURN_IF_ERROR(Statement(s));
    PopCache();
    return ContinueFrom(skips);
  }

  // Runs `stmts` on the memory core, skipping them on the cluster's cores.
  absl::Status OnMemoryCore(absl::Span<const Stmt> stmts) {
    PushCache();
    ASSIGN_OR_RETURN(int is_memory_core, Value("arg", {isa::kIsMemoryCore}));
    ASSIGN_OR_RETURN(int zero, Zero());
    ASSIGN_OR_RETURN(int skip, BranchTo("beq", {is_memory_core, zero}));
    runs_on_ = RunsOn::kMemoryCore;
    for (Stmt s : stmts) RETURN_IF_ERROR(Statement(s));
    runs_on_ = RunsOn::kCluster;
    PopCache();
    return ContinueFrom({skip});
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
        ASSIGN_OR_RETURN(vars_[s.var()], Get(s.value(), true));
        return Block(s.body());
      }
      case StmtKind::kFor:
        return s.for_kind() == ir::ForKind::kThread ? ThreadLoop(s) : Loop(s);
      case StmtKind::kIf:
        return Branch(s);
      case StmtKind::kStore: {
        RETURN_IF_ERROR(InsideThreadLoops(s));
        ASSIGN_OR_RETURN(std::string mnemonic, AccessMnemonic("store", s.buffer().node()));
        ASSIGN_OR_RETURN(int value, Get(s.value(), true));
        ASSIGN_OR_RETURN(int address, Address(s.buffer(), s.indices()));
        return Emit(mnemonic, {address, value});
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
    const bool global = IsGlobalBarrier(s);
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
      if (IsBarrier(s) && !IsGlobalBarrier(s)) barriers.push_back(s);
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
    absl::InlinedVector<int64_t, 16> fields;
    for (const isa::Operand& operand : instruction->operands) {
      const Expr argument = call.operand(operand.param);
      if (operand.kind == isa::OperandKind::kImmediate) {
        if (!argument.Is(ExprKind::kIntImm)) {
          return InvalidInput(call.name(), ": operand '", operand.name, "' must be a constant");
        }
        fields.push_back(argument.int_value());
        continue;
      }
      ASSIGN_OR_RETURN(int value, Get(argument, false));
      fields.push_back(value);
    }
    return Emit(instruction->mnemonic, fields);
  }

  absl::Status Branch(Stmt s) {
    ASSIGN_OR_RETURN(int condition, Get(s.cond(), false));
    ASSIGN_OR_RETURN(int zero, Zero());
    ASSIGN_OR_RETURN(int to_else, BranchTo("beq", {condition, zero}));
    RETURN_IF_ERROR(Block(s.then_case()));
    if (s.else_case().IsEmpty()) return ContinueFrom({to_else});
    ASSIGN_OR_RETURN(int to_end, BranchTo("jump", {}));
    RETURN_IF_ERROR(ContinueFrom({to_else}));
    RETURN_IF_ERROR(Block(s.else_case()));
    return ContinueFrom({to_end});
  }

  absl::Status Loop(Stmt s) {
    const bool constant_extent = s.extent().Is(ExprKind::kIntImm);
    if (constant_extent && s.extent().int_value() <= 0) return absl::OkStatus();
    PushCache();
    ASSIGN_OR_RETURN(int min, Get(s.min(), false));
    ASSIGN_OR_RETURN(int end, Op("add", {s.min(), s.extent()}, false));
    std::vector<int> skips;
    if (!constant_extent) {
      ASSIGN_OR_RETURN(int skip, BranchTo("bge", {min, end}));
      skips.push_back(skip);
    }
    const int var = code_.NewRegister(Here() + 1);
    RETURN_IF_ERROR(Emit("mov", {var, min}));
    RETURN_IF_ERROR(NewBlock());
    const int head = Here();
    Label(std::string(s.var().name()));
    vars_[s.var()] = var;
    RETURN_IF_ERROR(Block(s.body()));
    RETURN_IF_ERROR(Emit("addi", {var, var, 1}));
    RETURN_IF_ERROR(BranchTo("blt", {var, end}, head).status());
    PopCache();
    return ContinueFrom(skips);
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
    std::vector<int> skips;
    const bool constant = s.min().IsInt(0) && s.extent().Is(ExprKind::kIntImm);
    const bool exact = constant && s.extent().int_value() == count;
    const bool once = constant && s.extent().int_value() <= count;
    const std::vector<Stmt> barriers =
        axis == "tid" && exact ? BarriersFor(s) : std::vector<Stmt>();
    shared_barriers_.insert(barriers.begin(), barriers.end());
    ASSIGN_OR_RETURN(int var, Value("arg", {slot}));
    if (axis == "tid") {
      // The memory core has the number behind the last core, and runs no iteration.
      ASSIGN_OR_RETURN(int cores, Get(s.context().I64(count), false));
      ASSIGN_OR_RETURN(int skip, BranchTo("bge", {var, cores}));
      skips.push_back(skip);
    }
    if (!s.min().IsInt(0)) {
      ASSIGN_OR_RETURN(int min, Get(s.min(), false));
      ASSIGN_OR_RETURN(var, Value("add", {var, min}));
    }
    int end = -1;
    if (!exact) {
      ASSIGN_OR_RETURN(end, Op("add", {s.min(), s.extent()}, false));
      ASSIGN_OR_RETURN(int skip, BranchTo("bge", {var, end}));
      skips.push_back(skip);
    }
    if (!once) {
      const int counter = code_.NewRegister(Here() + 1);
      RETURN_IF_ERROR(Emit("mov", {counter, var}));
      var = counter;
    }
    RETURN_IF_ERROR(NewBlock());
    const int head = Here();
    Label(std::string(s.var().name()));
    vars_[s.var()] = var;
    open_axes_.insert(axis);
    const RunsOn outside = runs_on_;
    if (axis == "tid") runs_on_ = RunsOn::kCore;
    if (axis == "cid" && HasCoreLoop(s.body())) runs_on_ = RunsOn::kCluster;
    RETURN_IF_ERROR(Block(s.body()));
    runs_on_ = outside;
    open_axes_.erase(axis);
    if (!once) {
      RETURN_IF_ERROR(Emit("addi", {var, var, count}));
      RETURN_IF_ERROR(BranchTo("blt", {var, end}, head).status());
    }
    PopCache();
    if (!barriers.empty()) {
      ASSIGN_OR_RETURN(int behind, BranchTo("jump", {}));
      RETURN_IF_ERROR(ContinueFrom(std::exchange(skips, {behind})));
      for (Stmt barrier : barriers) {
        RETURN_IF_ERROR(Emit(std::string(barrier.value().name()), {}));
      }
    }
    return ContinueFrom(skips);
  }

  const ir::Function& function_;
  const Target& target_;
  const isa::InstructionSet& set_;
  const AddressMap addresses_;
  Code code_;
  std::set<std::string> label_names_;
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

absl::StatusOr<Code> Generate(const ir::Function& function, const Target& target,
                              isa::Program& program) {
  return Generator(function, target).Run(program);
}

}  // namespace polynao::diannao
