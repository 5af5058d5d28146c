#include "compiler/codegen/cuda/emit_cuda.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/c/function_emitter.h"
#include "compiler/codegen/c/prelude.h"
#include "compiler/codegen/cuda/lanes.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {
namespace {

using ir::ExprKind;
using ir::ForKind;
using ir::StmtKind;
using ir::Type;
using ir::Var;

// The widest access of a thread.
constexpr int64_t kMaxWideBytes = 16;

std::string ExtentsText(const Extents& extents, const std::array<ir::Expr, 3>& others = {}) {
  std::string text;
  for (size_t i = 0; i < 3; ++i) {
    StrAppend(&text, i > 0 ? " x " : "");
    if (others[i]) {
      StrAppend(&text, ir::Print(others[i]));
    } else {
      StrAppend(&text, extents[i]);
    }
  }
  return text;
}

// The type of `bytes` bytes that one instruction moves.
std::string_view WideType(int64_t bytes) {
  if (bytes == 16) return "int4";
  return bytes == 8 ? "int2" : "int32_t";
}

class KernelEmitter : public FunctionEmitter {
 public:
  KernelEmitter(const Kernel& kernel, std::string name)
      : FunctionEmitter(kernel.function, "cuda", false), kernel_(kernel), name_(std::move(name)) {
    for (const auto& [buffer, dimensions] : kernel.private_dimensions) {
      dropped_dimensions_[buffer.node()] = dimensions;
    }
  }

  absl::StatusOr<std::string> Emit() {
    CollectUses();
    const std::string parameters = absl::StrJoin(Parameters("* ", "* __restrict__ "), ", ");
    const int64_t threads = kernel_.block[0] * kernel_.block[1] * kernel_.block[2];
    Line(StrCat("// Grid ", ExtentsText(kernel_.grid, kernel_.grid_extents), ", block ",
                ExtentsText(kernel_.block), "."));
    Line(StrCat("extern \"C\" __global__ void __launch_bounds__(", threads, ") ", name_, "("));
    indent_ += 2;
    Line(StrCat(parameters, ") {"));
    --indent_;
    for (const ir::Param& param : function_.params) {
      if (param.buffer) RETURN_IF_ERROR(EmitExtents(param.buffer));
    }
    RETURN_IF_ERROR(EmitBlockLevel(function_.body));
    --indent_;
    Line("}");
    return Lines();
  }

  int barriers() const { return barriers_; }

 private:
  // ---- the block's structure

  bool HasThreadLoop(Stmt s) {
    if (auto it = has_thread_loop_.find(s); it != has_thread_loop_.end()) return it->second;
    bool found = IsThreadLoop(s) || IsBlockLoop(s);
    for (Stmt child : s.children()) found = HasThreadLoop(child) || found;
    has_thread_loop_.emplace(s, found);
    return found;
  }

  // A statement that all threads of the block reach.
  absl::Status EmitBlockLevel(Stmt s) {
    if (kernel_.barrier_before.contains(s)) {
      Line("__syncthreads();");
      ++barriers_;
    }
    if (IsThreadLoop(s) || !HasThreadLoop(s)) {
      if (s.IsEmpty()) return absl::OkStatus();
      Line("{");
      ++indent_;
      const auto outer = in_scope_;
      RETURN_IF_ERROR(EmitRegion(s));
      in_scope_ = outer;
      --indent_;
      Line("}");
      return absl::OkStatus();
    }
    if (s.Is(StmtKind::kSeq)) {
      for (Stmt child : s.children()) {
        const bool declares = !IsThreadLoop(child) && HasThreadLoop(child) &&
                              (child.Is(StmtKind::kLet) || child.Is(StmtKind::kAllocate) ||
                               child.Is(StmtKind::kPragma));
        if (!declares || child == s.children().back()) {
          RETURN_IF_ERROR(EmitBlockLevel(child));
          continue;
        }
        Line("{");
        RETURN_IF_ERROR(EmitBlock(child));
        Line("}");
      }
      return absl::OkStatus();
    }
    return FunctionEmitter::EmitStmt(s);
  }

  // Statements reach here from the base class; those of a block go their own way.
  absl::Status EmitStmt(Stmt s) override { return in_region_ ? EmitRegion(s) : EmitBlockLevel(s); }

  // A statement inside thread loops, down to the statements that contain no more such loops.
  absl::Status EmitRegion(Stmt s) {
    const bool outer = std::exchange(in_region_, true);
    absl::Status status;
    if (HasThreadLoop(s)) {
      status = IsThreadLoop(s) ? EmitThreads(s) : FunctionEmitter::EmitStmt(s);
    } else {
      status = EmitByOneThread(s);
    }
    in_region_ = outer;
    return status;
  }

  // `s` by the first thread of each axis that no loop around it has.
  absl::Status EmitByOneThread(Stmt s) {
    std::string condition;
    for (int i = 0; i < 3; ++i) {
      if (kernel_.block[i] == 1 || bound_[i]) continue;
      StrAppend(&condition, condition.empty() ? "" : " && ", "threadIdx.", std::string(1, "xyz"[i]),
                " == 0");
    }
    if (condition.empty()) return FunctionEmitter::EmitStmt(s);
    Line(StrCat("if (", condition, ") {"));
    const auto bound = std::exchange(bound_, {true, true, true});
    RETURN_IF_ERROR(EmitBlock(s));
    bound_ = bound;
    Line("}");
    return absl::OkStatus();
  }

  // A loop over blocks or threads: its variable is the number of this one.
  absl::Status EmitThreads(Stmt s) {
    const int axis = AxisNumber(s.name());
    const bool is_block = IsBlockLoop(s);
    const int64_t all = is_block ? kernel_.grid[axis] : kernel_.block[axis];
    const bool is_part = s.extent().IsConst() && s.extent().int_value() < all;
    const std::string name = Bind(s.var().node(), s.var().name());
    arith::Analyzer::Scope scope(analyzer_);
    analyzer_.BindLoop(s.var(), s.min(), s.extent());
    if (used_.contains(s.var().node()) || is_part) {
      Line(StrCat("const ", ValueType(s.var().type()), " ", name, " = (", ValueType(s.var().type()),
                  ")", s.name(), ";"));
    }
    const bool outer = std::exchange(bound_[axis], is_block ? bound_[axis] : true);
    if (is_part) Line(StrCat("if (", name, " < ", s.extent().int_value(), ") {"));
    absl::Status status;
    if (is_part) {
      status = EmitBlock(s.body());
      Line("}");
    } else {
      status = EmitStmt(s.body());
    }
    bound_[axis] = outer;
    return status;
  }

  absl::Status EmitFor(Stmt s) override {
    if (IsThreadLoop(s) || IsBlockLoop(s)) return EmitThreads(s);
    if (s.for_kind() == ForKind::kThread) {
      return InvalidInput(function_.name, ": loop over thread axis '", s.name(),
                          "': expected blockIdx.x, .y, .z or threadIdx.x, .y, .z");
    }
    if (in_region_) {
      ASSIGN_OR_RETURN(const bool is_dot, EmitDotOfFour(s));
      if (is_dot) return absl::OkStatus();
      ASSIGN_OR_RETURN(const bool is_wide, EmitWide(s));
      if (is_wide) return absl::OkStatus();
    }
    std::vector<std::string> pragmas;
    if (s.for_kind() == ForKind::kUnroll || s.for_kind() == ForKind::kVectorize) {
      pragmas.push_back("#pragma unroll");
    }
    return EmitLoop(s, pragmas, "");
  }

  absl::Status EmitAllocate(Stmt s) override {
    const ir::Buffer buffer = s.buffer();
    if (!used_.contains(buffer.node())) return EmitStmt(s.body());
    RETURN_IF_ERROR(EmitExtents(buffer));
    int64_t elements = 1;
    for (size_t d = DroppedDimensions(buffer); d < buffer->extents.size(); ++d) {
      elements *= std::max<int64_t>(0, buffer->extents[d].int_value());
    }
    // An allocation made by one thread is private to it, whatever its scope.
    const bool shared = !in_region_ && buffer->scope == "shared";
    const std::string name = Bind(buffer.node(), buffer->name);
    const bool aligned = elements * ir::ByteSize(buffer->type) >= 4;
    Line(StrCat(shared ? "__shared__ " : "", aligned ? "__align__(16) " : "",
                MemoryType(buffer->type), " ", name, "[", std::max<int64_t>(1, elements), "];"));
    if (!read_.contains(buffer.node())) Line(StrCat("(void)", name, ";"));
    RETURN_IF_ERROR(EmitStmt(s.body()));
    Unbind(name);
    return absl::OkStatus();
  }

  // ---- wide accesses

  // The body of a loop that consists of one store, possibly under conditions.
  struct OnlyStore {
    std::vector<Expr> conditions;
    Stmt store;
  };

  // `body` in that form, with its lets replaced by their values, so that an index shows how it depends on
  // the loop. None if it does more, or if a let may wrap, which an index must not.
  std::optional<OnlyStore> OnlyStoreOf(Stmt body) {
    OnlyStore result;
    ir::VarMap lets;
    while (true) {
      if (body.Is(StmtKind::kLet)) {
        const Expr value = ir::Substitute(body.value(), lets);
        if (analyzer_.CanOverflow(value)) return std::nullopt;
        lets.emplace(body.var(), value);
        body = body.body();
      } else if (body.Is(StmtKind::kIf) && body.else_case().IsEmpty()) {
        result.conditions.push_back(ir::Substitute(body.cond(), lets));
        body = body.then_case();
      } else {
        break;
      }
    }
    if (!body.Is(StmtKind::kStore)) return std::nullopt;
    result.store = ir::Substitute(body, lets);
    return result;
  }

  // Loads that are evaluated whenever `e` is.
  static void CollectUnconditionalLoads(Expr e, absl::flat_hash_set<Expr>& seen,
                                        std::vector<Expr>& loads) {
    if (!seen.insert(e).second) return;
    if (e.Is(ExprKind::kLoad)) loads.push_back(e);
    const bool first_only = e.Is(ExprKind::kSelect) || e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr);
    for (size_t i = 0; i < (first_only ? 1 : e.operands().size()); ++i) {
      CollectUnconditionalLoads(e.operand(i), seen, loads);
    }
  }

  // The element at `indices` as `type`.
  absl::StatusOr<std::string> As(std::string_view type, bool is_const, ir::Buffer buffer,
                                 const std::vector<Expr>& indices) {
    ASSIGN_OR_RETURN(const std::string element, Element(buffer, indices));
    return StrCat("*reinterpret_cast<", is_const ? "const " : "", type, "*>(&", element, ")");
  }

  // A loop over the lanes of a vector: for (v, 0, 4) { A[.. + v] = .. B[.. + v] .. }.
  struct WideStore {
    Var lane;
    int64_t lanes = 0, bytes = 0;
    std::vector<Expr> conditions;  // that all lanes have in common
    Stmt store;
    std::vector<Expr> target;  // of lane 0
    std::vector<Expr> loads;   // that every lane makes
  };

  // The loop `s` as such a store, if all lanes can be computed before any is stored. Its variable is bound.
  std::optional<WideStore> FindWideStore(Stmt s) {
    WideStore wide;
    wide.lane = s.var(), wide.lanes = s.extent().int_value();
    const std::optional<OnlyStore> only = OnlyStoreOf(s.body());
    if (!only) return std::nullopt;
    wide.conditions = only->conditions;
    for (Expr condition : wide.conditions) {
      if (ir::UsesVar(condition, wide.lane)) return std::nullopt;
    }
    wide.store = only->store;
    const ir::Buffer buffer = wide.store.buffer();
    wide.bytes = wide.lanes * ir::ByteSize(buffer->type);
    if (wide.lanes < 2 || (wide.bytes != 4 && wide.bytes != 8 && wide.bytes != kMaxWideBytes)) {
      return std::nullopt;
    }
    if (!IsWideAt(wide, buffer, wide.store.indices(), &wide.target)) return std::nullopt;
    absl::flat_hash_set<Expr> seen;
    CollectUnconditionalLoads(wide.store.value(), seen, wide.loads);
    // Lanes must not read what other lanes store.
    bool independent = true;
    ir::ForEachExpr(wide.store.value(), [&](Expr e) {
      if (!e.Is(ExprKind::kLoad) || !MayOverlap(ir::Buffer(e.buffer()), buffer)) return;
      independent &=
          ir::Buffer(e.buffer()) == buffer &&
          std::equal(e.operands().begin(), e.operands().end(), wide.store.indices().begin());
    });
    if (!independent) return std::nullopt;
    return wide;
  }

  // Returns true if the lanes' elements lie side by side, and lane 0's `first`.
  template <typename Indices>
  bool IsWideAt(const WideStore& wide, ir::Buffer buffer, const Indices& indices,
                std::vector<Expr>* first) {
    return IsWide(buffer, indices, DroppedDimensions(buffer), wide.lane, wide.lanes, exact_lets_,
                  first);
  }

  // Emits a wide store as one load of all lanes for each such load, a computation of each lane, and one store. Returns
  // false, and emits nothing, if `s` is none.
  absl::StatusOr<bool> EmitWide(Stmt s) {
    if (s.for_kind() != ForKind::kVectorize || !s.min().IsInt(0) || !s.extent().IsConst()) {
      return false;
    }
    arith::Analyzer::Scope known(analyzer_);
    analyzer_.BindLoop(s.var(), s.min(), s.extent());
    const std::optional<WideStore> wide = FindWideStore(s);
    if (!wide) return false;

    ScopedNames scope(this);
    for (Expr condition : wide->conditions) {
      ASSIGN_OR_RETURN(const Text text, Operand(condition, true));
      Line(StrCat("if (", text.text, ") {"));
      ++indent_;
    }
    Line("{");
    ++indent_;
    const auto outer = in_scope_;
    CountUses(wide->target);
    ASSIGN_OR_RETURN(const std::string target,
                     As(WideType(wide->bytes), false, wide->store.buffer(), wide->target));
    ASSIGN_OR_RETURN(const bool is_copy, EmitWideCopy(*wide, target));
    if (!is_copy) RETURN_IF_ERROR(EmitLanes(*wide, target));
    in_scope_ = outer;
    for (size_t i = 0; i < wide->conditions.size() + 1; ++i) {
      --indent_;
      Line("}");
    }
    return true;
  }

  // A store of elements that lie side by side elsewhere, as one assignment. Returns false, and emits nothing, if it is
  // none.
  absl::StatusOr<bool> EmitWideCopy(const WideStore& wide, const std::string& target) {
    const Expr value = wide.store.value();
    if (!value.Is(ExprKind::kLoad) || value.type() != wide.store.buffer()->type) return false;
    const ir::Buffer source(value.buffer());
    std::vector<Expr> from;
    if (!IsWideAt(wide, source, value.operands(), &from)) return false;
    CountUses(from);
    ASSIGN_OR_RETURN(const std::string loaded, As(WideType(wide.bytes), true, source, from));
    Line(StrCat(target, " = ", loaded, ";"));
    return true;
  }

  // Loads what lies side by side, computes one lane after the other, and stores all.
  absl::Status EmitLanes(const WideStore& wide, const std::string& target) {
    const int64_t n = wide.lanes;
    const std::string lane = Bind(wide.lane.node(), wide.lane.name());
    for (Expr load : wide.loads) RETURN_IF_ERROR(EmitWideLoad(wide, load, lane));
    const ir::Buffer buffer = wide.store.buffer();
    const std::string result = NewName(StrCat(buffer->name, "_lanes"));
    Line(StrCat("__align__(16) ", MemoryType(buffer->type), " ", result, "[", n, "];"));
    Line("#pragma unroll");
    Line(StrCat("for (", ValueType(wide.lane.type()), " ", lane, " = 0; ", lane, " < ", n, "; ++",
                lane, ") {"));
    ++indent_;
    {
      ScopedNames lane_scope(this);
      CountUses({wide.store.value()});
      ASSIGN_OR_RETURN(const std::string value, StoredValue(wide.store));
      Line(StrCat(result, "[", lane, "] = ", value, ";"));
    }
    --indent_;
    Line("}");
    Line(StrCat(target, " = *reinterpret_cast<const ", WideType(wide.bytes), "*>(", result, ");"));
    return absl::OkStatus();
  }

  // All lanes of `load` at once, if they lie side by side and are no more bytes than a thread loads at once.
  absl::Status EmitWideLoad(const WideStore& wide, Expr load, const std::string& lane) {
    const ir::Buffer source(load.buffer());
    const int64_t bytes = wide.lanes * ir::ByteSize(source->type);
    std::vector<Expr> from;
    if (bytes < 4 || bytes > kMaxWideBytes || !IsWideAt(wide, source, load.operands(), &from)) {
      return absl::OkStatus();
    }
    CountUses(from);
    ASSIGN_OR_RETURN(const std::string loaded, As(WideType(bytes), true, source, from));
    const std::string name = NewName(StrCat(source->name, "_lanes"));
    Line(StrCat("__align__(16) ", MemoryType(source->type), " ", name, "[", wide.lanes, "];"));
    Line(StrCat("*reinterpret_cast<", WideType(bytes), "*>(", name, ") = ", loaded, ";"));
    const Key key(load, false);
    variables_[key] = LoadedValue(source->type, StrCat(name, "[", lane, "]"));
    made_.push_back(key);
    return absl::OkStatus();
  }

  // Emits for (k, 0, 4) { S[i] = S[i] + i32(A[.. + k]) * i32(B[.. + k]) } of i8 A and B as dp4a. Returns
  // whether `s` is such a loop.
  absl::StatusOr<bool> EmitDotOfFour(Stmt s) {
    if (s.for_kind() == ForKind::kParallel || !s.min().IsInt(0) || !s.extent().IsInt(4)) {
      return false;
    }
    arith::Analyzer::Scope known(analyzer_);
    analyzer_.BindLoop(s.var(), s.min(), s.extent());
    const std::optional<OnlyStore> only = OnlyStoreOf(s.body());
    if (!only || !only->conditions.empty()) return false;
    const Stmt store = only->store;
    const ir::Buffer sum = store.buffer();
    const Expr value = store.value();
    if (sum->type != Type::kI32 || !value.Is(ExprKind::kAdd)) return false;
    for (Expr index : store.indices()) {
      if (ir::UsesVar(index, s.var())) return false;
    }
    const auto is_sum = [&](Expr e) {
      return e.Is(ExprKind::kLoad) && ir::Buffer(e.buffer()) == sum &&
             std::equal(e.operands().begin(), e.operands().end(), store.indices().begin());
    };
    const int place = is_sum(value.operand(0)) ? 0 : 1;
    const Expr product = value.operand(1 - place);
    if (!is_sum(value.operand(place)) || !product.Is(ExprKind::kMul)) return false;
    std::array<std::vector<Expr>, 2> first;
    std::array<ir::Buffer, 2> factors;
    for (int i = 0; i < 2; ++i) {
      const Expr cast = product.operand(i);
      if (!cast.Is(ExprKind::kCast) || !cast.operand(0).Is(ExprKind::kLoad) ||
          cast.operand(0).type() != Type::kI8) {
        return false;
      }
      const Expr load = cast.operand(0);
      factors[i] = ir::Buffer(load.buffer());
      if (MayOverlap(factors[i], sum)) return false;
      if (!IsWide(factors[i], load.operands(), DroppedDimensions(factors[i]), s.var(), 4,
                  exact_lets_, &first[i])) {
        return false;
      }
    }
    ScopedNames scope(this);
    std::vector<Expr> all(store.indices().begin(), store.indices().end());
    for (const std::vector<Expr>& indices : first) {
      all.insert(all.end(), indices.begin(), indices.end());
    }
    CountUses(all);
    ASSIGN_OR_RETURN(const std::string element, Element(sum, store.indices()));
    ASSIGN_OR_RETURN(const std::string a, As("int32_t", true, factors[0], first[0]));
    ASSIGN_OR_RETURN(const std::string b, As("int32_t", true, factors[1], first[1]));
    Line(StrCat(element, " = __dp4a(", a, ", ", b, ", ", element, ");"));
    return true;
  }

  const Kernel& kernel_;
  const std::string name_;
  int barriers_ = 0;
  bool in_region_ = false;
  // Which of threadIdx.x, .y, .z have a loop around.
  std::array<bool, 3> bound_ = {false, false, false};
  absl::flat_hash_map<Stmt, bool> has_thread_loop_;
};

}  // namespace

absl::StatusOr<CudaModule> EmitCuda(absl::Span<const ir::Function> functions) {
  CudaModule module;
  std::string body;
  absl::flat_hash_set<std::string> names;
  for (const ir::Function& function : functions) {
    RETURN_IF_ERROR(ir::Verify(function));
    CudaFunction& made = module.functions.emplace_back();
    made.name = CName(function.name);
    made.context = function.context;
    if (!names.insert(made.name).second) {
      return InvalidInput("two functions of this file would be called '", made.name, "'");
    }
    ASSIGN_OR_RETURN(const KernelPlan plan, PlanKernels(function));
    using Kind = CudaValue::Kind;
    made.host = plan.host;
    for (const ir::Param& param : function.params) {
      made.values.push_back({param, Kind::kParameter});
    }
    for (ir::Buffer buffer : plan.workspaces) {
      made.values.push_back(
          {{.var = {}, .buffer = buffer, .access = ir::Access::kInOut, .scope = ""},
           Kind::kWorkspace});
    }
    StrAppend(&body, "\n// ", SignatureText(function), "\n");
    for (size_t i = 0; i < plan.kernels.size(); ++i) {
      const Kernel& kernel = plan.kernels[i];
      CudaKernel& row = made.kernels.emplace_back();
      row.name = StrCat(made.name, "_kernel", plan.kernels.size() > 1 ? StrCat(i) : "");
      row.grid = kernel.grid;
      row.grid_extents = kernel.grid_extents;
      row.block = kernel.block;
      row.shared_bytes = kernel.shared_bytes;
      for (const ir::Param& param : kernel.function.params) {
        const auto same = [&](const CudaValue& value) {
          return value.param.buffer == param.buffer && value.param.var == param.var;
        };
        auto it = std::find_if(made.values.begin(), made.values.end(), same);
        if (it == made.values.end()) {
          POLYNAO_CHECK(!param.buffer) << param.name();
          it = made.values.insert(it, {param, Kind::kHostVariable});
        }
        row.arguments.push_back(static_cast<int>(it - made.values.begin()));
      }
      KernelEmitter emitter(kernel, row.name);
      ASSIGN_OR_RETURN(const std::string text, emitter.Emit());
      row.barriers = emitter.barriers();
      StrAppend(&body, i > 0 ? "\n" : "", text);
    }
  }
  module.source = StrCat(CudaPrelude(body), body);
  return module;
}

absl::StatusOr<CudaModule> EmitCuda(const ir::Function& function) {
  return EmitCuda(absl::Span<const ir::Function>(&function, 1));
}

}  // namespace polynao::codegen
