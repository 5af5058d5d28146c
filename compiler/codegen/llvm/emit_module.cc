// Method: statements are emitted in order. Variables and values are LLVM values from the start, so
// that no pass has to promote memory to registers. Three choices matter for speed.
//
//   * A loop counts in i64. Indices, bounds and conditions, where the IR's integers are mathematical
//     (ir.h), are computed in i64 without wrapping. LLVM then recognises addresses such as
//     A + 4 * i, which wrapping i32 arithmetic would hide.
//   * Each buffer has its own alias scope, so that loops vectorise without run-time tests.
//   * An operand that && || or select evaluates conditionally is evaluated always, if that cannot
//     trap and is cheap ("speculatable"). Otherwise it is emitted behind a branch.
//
// scalar_ops.h emits single operations.
#include "compiler/codegen/llvm/emit_module.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/codegen/llvm/scalar_ops.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/visit.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"

namespace polynao::codegen {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using llvm::BasicBlock;
using llvm::Value;

// An allocation of constant size goes on the stack if it is at most this large and the function's
// stack allocations together stay within the second limit.
constexpr int64_t kMaxStackAllocation = int64_t{16} << 10;
constexpr int64_t kMaxStack = int64_t{128} << 10;
constexpr int64_t kHeapAlignment = 64;  // a cache line and the widest vector
// Evaluating this many operations is cheaper than a mispredicted branch.
constexpr int kMaxSpeculatedOperations = 24;
// With more buffers the rest get no alias scope: the metadata grows with the square of their number.
constexpr size_t kMaxAliasScopes = 64;

// Types whose arithmetic in indices, bounds and conditions never wraps.
bool IsMathematical(Type type) { return type == Type::kI32 || type == Type::kI64; }

// A buffer or variable in scope. It does not change, so that the body of a parallel loop can get a
// copy.
struct BufferInfo {
  Value* base = nullptr;
  std::vector<Value*> extents;  // i64
  llvm::MDNode* alias_scope = nullptr;
  llvm::MDNode* noalias = nullptr;
};
struct VarInfo {
  Value* value = nullptr;  // of the variable's own type
  Value* wide = nullptr;   // as an i64, for loop variables and lets that do not wrap
};

class Emitter {
 public:
  Emitter(const ir::Function& function, const EmitOptions& options, llvm::Module* module,
          std::vector<std::string>* failures)
      : function_(function),
        aliases_(function),
        options_(options),
        module_(*module),
        context_(module->getContext()),
        failures_(*failures),
        b_(context_),
        ops_(b_, module_, options.native_half),
        analyzer_(*function.context) {}

  absl::Status Emit() {
    MakeAliasScopes();
    std::vector<llvm::Type*> types;
    for (const ir::Param& param : function_.params) {
      types.push_back(param.buffer ? static_cast<llvm::Type*>(b_.getPtrTy())
                                   : ops_.ValueType(param.var.type()));
    }
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), types, false);
    function_value_ =
        options_.is_exported
            ? llvm::Function::Create(type, llvm::Function::ExternalLinkage, function_.name, module_)
            : llvm::Function::Create(type, llvm::Function::InternalLinkage,
                                     StrCat(function_.name, ".body"), module_);
    function_value_->setDoesNotThrow();
    StartFunction(function_value_);
    for (size_t i = 0; i < function_.params.size(); ++i) {
      const ir::Param& param = function_.params[i];
      llvm::Argument* argument = function_value_->getArg(i);
      argument->setName(std::string(param.name()));
      if (param.buffer) {
        if (!aliases_.Group(param.buffer)) argument->addAttr(llvm::Attribute::NoAlias);
        argument->addAttr(llvm::Attribute::NoCapture);
        buffers_[param.buffer].base = argument;
        continue;
      }
      vars_[param.var].value = argument;
      if (ir::IsInt(param.var.type()) && ir::BitWidth(param.var.type()) < 32) {
        argument->addAttr(ir::IsUnsigned(param.var.type()) ? llvm::Attribute::ZExt
                                                           : llvm::Attribute::SExt);
      }
    }
    for (const ir::Param& param : function_.params) {
      if (param.buffer) RETURN_IF_ERROR(EmitExtents(param.buffer));
    }
    RETURN_IF_ERROR(EmitStmt(function_.body));
    b_.CreateRet(b_.getInt32(0));
    EmitRawEntry();
    return absl::OkStatus();
  }

 private:
  // ---- functions -----------------------------------------------------------------------------

  void MakeAliasScopes() {
    llvm::MDBuilder metadata(context_);
    llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain(function_.name);
    std::vector<std::pair<Buffer, llvm::MDNode*>> scopes;
    auto add = [&](Buffer buffer) {
      if (scopes.size() < kMaxAliasScopes && !aliases_.Group(buffer)) {
        scopes.emplace_back(buffer, metadata.createAnonymousAliasScope(domain, buffer->name));
      }
    };
    for (const ir::Param& param : function_.params) {
      if (param.buffer) add(param.buffer);
    }
    ForEachStmt(function_.body, [&](Stmt s) {
      if (s.Is(StmtKind::kAllocate)) add(s.buffer());
      return true;
    });
    for (const auto& [buffer, scope] : scopes) {
      std::vector<llvm::Metadata*> others;
      for (const auto& [other, other_scope] : scopes) {
        if (other != buffer) others.push_back(other_scope);
      }
      BufferInfo& info = buffers_[buffer];
      info.alias_scope = llvm::MDNode::get(context_, {scope});
      info.noalias = llvm::MDNode::get(context_, others);
    }
  }

  void StartFunction(llvm::Function* f) {
    current_ = f;
    entry_ = BasicBlock::Create(context_, "entry", f);
    // Allocas go to the end of the entry block, outside all loops.
    BasicBlock* start = BasicBlock::Create(context_, "start", f);
    b_.SetInsertPoint(entry_);
    entry_end_ = b_.CreateBr(start);
    b_.SetInsertPoint(start);
    stack_used_ = 0;
  }

  BasicBlock* NewBlock(const char* name) { return BasicBlock::Create(context_, name, current_); }

  // The raw entry loads the function's arguments from two arrays and calls it.
  void EmitRawEntry() {
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy()}, false);
    auto* entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                         RawEntryName(function_.name), module_);
    entry->setDoesNotThrow();
    StartFunction(entry);
    std::vector<Value*> arguments;
    int buffers = 0;
    int scalars = 0;
    for (const ir::Param& param : function_.params) {
      if (param.buffer) {
        Value* address = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), entry->getArg(0), buffers++);
        arguments.push_back(b_.CreateLoad(b_.getPtrTy(), address));
        continue;
      }
      Value* address = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), entry->getArg(1), scalars++);
      const Type scalar = param.var.type();
      if (ir::IsFloat(scalar)) {
        // The caller rounded the value, so narrowing it is exact.
        arguments.push_back(
            ops_.Cast(b_.CreateLoad(b_.getDoubleTy(), address), Type::kF64, scalar));
      } else {
        arguments.push_back(
            b_.CreateTrunc(b_.CreateLoad(b_.getInt64Ty(), address), ops_.ValueType(scalar)));
      }
    }
    b_.CreateRet(b_.CreateCall(function_value_, arguments));
  }

  // ---- checks --------------------------------------------------------------------------------

  // Leaves the function with `code` (an i32) after freeing what is allocated, if `failed`.
  void LeaveIf(Value* failed, Value* code) {
    BasicBlock* leave = NewBlock("fail");
    BasicBlock* go_on = NewBlock("ok");
    llvm::MDBuilder metadata(context_);
    b_.CreateCondBr(failed, leave, go_on, metadata.createBranchWeights(1, 1 << 20));
    b_.SetInsertPoint(leave);
    for (Value* block : heap_) EmitFree(block);
    b_.CreateRet(code);
    b_.SetInsertPoint(go_on);
  }

  void FailIf(Value* failed, std::string what) {
    failures_.push_back(StrCat(function_.name, ": ", what));
    LeaveIf(failed, b_.getInt32(failures_.size()));
  }

  // ---- memory --------------------------------------------------------------------------------

  absl::Status EmitExtents(Buffer buffer) {
    ScopedCache scope(this);
    std::vector<Value*> extents;
    for (Expr extent : buffer->extents) {
      ASSIGN_OR_RETURN(Value * value, EmitIndex(extent));
      extents.push_back(value);
    }
    buffers_[buffer].extents = std::move(extents);
    return absl::OkStatus();
  }

  void EmitFree(Value* block) {
    b_.CreateCall(module_.getOrInsertFunction("free", b_.getVoidTy(), b_.getPtrTy()), {block});
  }

  absl::Status EmitAllocate(Stmt s) {
    const Buffer buffer = s.buffer();
    RETURN_IF_ERROR(EmitExtents(buffer));
    BufferInfo& info = buffers_[buffer];
    Value* bytes = b_.getInt64(ir::ByteSize(buffer->type));
    for (Value* extent : info.extents) {
      Value* positive = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, extent, b_.getInt64(0));
      bytes = b_.CreateMul(bytes, positive, "", /*HasNUW=*/true, /*HasNSW=*/true);
    }
    auto* constant = llvm::dyn_cast<llvm::ConstantInt>(bytes);
    const int64_t size = constant != nullptr ? constant->getSExtValue() : 0;
    if (constant != nullptr && size <= kMaxStackAllocation && stack_used_ + size <= kMaxStack) {
      stack_used_ += size;
      auto* block = new llvm::AllocaInst(b_.getInt8Ty(), 0, b_.getInt64(std::max<int64_t>(size, 1)),
                                         llvm::Align(kHeapAlignment), buffer->name,
                                         entry_end_->getIterator());
      info.base = block;
      b_.CreateLifetimeStart(block);
      RETURN_IF_ERROR(EmitStmt(s.body()));
      b_.CreateLifetimeEnd(block);
      buffers_[buffer].base = nullptr;
      return absl::OkStatus();
    }
    // aligned_alloc takes a multiple of the alignment, and at least one.
    Value* padded = b_.CreateAnd(b_.CreateAdd(bytes, b_.getInt64(kHeapAlignment)),
                                 b_.getInt64(-kHeapAlignment));
    llvm::FunctionCallee allocate = module_.getOrInsertFunction("aligned_alloc", b_.getPtrTy(),
                                                                b_.getInt64Ty(), b_.getInt64Ty());
    llvm::CallInst* block =
        b_.CreateCall(allocate, {b_.getInt64(kHeapAlignment), padded}, buffer->name);
    block->addRetAttr(llvm::Attribute::NoAlias);
    FailIf(b_.CreateIsNull(block), StrCat("no memory for '", buffer->name, "'"));
    info.base = block;
    heap_.push_back(block);
    RETURN_IF_ERROR(EmitStmt(s.body()));
    heap_.pop_back();
    EmitFree(block);
    buffers_[buffer].base = nullptr;
    return absl::OkStatus();
  }

  // The address of buffer[indices], row-major.
  absl::StatusOr<Value*> ElementAddress(Buffer buffer, absl::Span<const Expr> indices) {
    const BufferInfo info = buffers_.at(buffer);
    POLYNAO_CHECK(info.base != nullptr) << buffer->name << " is used outside its scope";
    Value* offset = b_.getInt64(0);
    for (size_t i = 0; i < indices.size(); ++i) {
      ASSIGN_OR_RETURN(Value * index, EmitIndex(indices[i]));
      if (options_.checks) {
        FailIf(b_.CreateICmpUGE(index, info.extents[i]),
               StrCat("index ", i, " of '", buffer->name, "' is out of its extent"));
      }
      if (i > 0) offset = b_.CreateNSWMul(offset, info.extents[i]);
      offset = b_.CreateNSWAdd(offset, index);
    }
    return b_.CreateInBoundsGEP(ops_.MemoryType(buffer->type), info.base, {offset});
  }

  template <typename Access>
  void MarkAccess(Buffer buffer, Access* access) {
    const BufferInfo& info = buffers_.at(buffer);
    access->setAlignment(llvm::Align(ir::ByteSize(buffer->type)));
    if (info.alias_scope == nullptr) return;
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, info.alias_scope);
    if (info.noalias->getNumOperands() > 0) {
      access->setMetadata(llvm::LLVMContext::MD_noalias, info.noalias);
    }
  }

  absl::Status EmitStore(Stmt s) {
    const Buffer buffer = s.buffer();
    ScopedCache scope(this);
    ASSIGN_OR_RETURN(Value * address, ElementAddress(buffer, s.indices()));
    ASSIGN_OR_RETURN(Value * value, EmitValue(s.value()));
    MarkAccess(buffer, b_.CreateStore(ops_.ToMemory(value, buffer->type), address));
    return absl::OkStatus();
  }

  absl::StatusOr<Value*> EmitLoad(Expr e) {
    const Buffer buffer(e.buffer());
    ASSIGN_OR_RETURN(Value * address, ElementAddress(buffer, e.operands()));
    llvm::LoadInst* load = b_.CreateLoad(ops_.MemoryType(buffer->type), address, buffer->name);
    MarkAccess(buffer, load);
    return ops_.FromMemory(load, buffer->type);
  }

  // ---- statements ----------------------------------------------------------------------------

  absl::Status EmitStmt(Stmt s) {
    switch (s.kind()) {
      case StmtKind::kFor:
        return s.for_kind() == ForKind::kParallel && !in_parallel_ ? EmitParallelFor(s)
                                                                   : EmitFor(s);
      case StmtKind::kIf:
        return EmitIf(s);
      case StmtKind::kLet: {
        ASSIGN_OR_RETURN(vars_[s.var()], EmitLetValue(s));
        arith::Analyzer::Scope scope(analyzer_);
        analyzer_.BindLet(s.var(), s.value());
        RETURN_IF_ERROR(EmitStmt(s.body()));
        vars_.erase(s.var());
        return absl::OkStatus();
      }
      case StmtKind::kAllocate:
        return EmitAllocate(s);
      case StmtKind::kStore:
        return EmitStore(s);
      case StmtKind::kPragma:
        return EmitStmt(s.body());
      case StmtKind::kEvaluate:
        return EmitAlone(s.value(), Want::kValue).status();
      case StmtKind::kSeq:
        for (Stmt child : s.children()) RETURN_IF_ERROR(EmitStmt(child));
        return absl::OkStatus();
    }
    POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
  }

  // The arithmetic of a let wraps. If the ranges of the loop variables prove that it does not, it is
  // emitted like an index, so that LLVM sees which addresses computed from it differ by constants.
  absl::StatusOr<VarInfo> EmitLetValue(Stmt s) {
    const Type type = s.var().type();
    if ((IsMathematical(type) || type == Type::kI1) && !analyzer_.CanOverflow(s.value())) {
      if (type == Type::kI1) {
        ASSIGN_OR_RETURN(Value * condition, EmitAlone(s.value(), Want::kCondition));
        return VarInfo{.value = condition};
      }
      // The value is computed a second time, and removed if nothing uses it. Truncating the index
      // instead would add a use of it, and LLVM combines `i / 32 * 32 + i % 32` only if the parts
      // have no other uses.
      ASSIGN_OR_RETURN(Value * wide, EmitAlone(s.value(), Want::kIndex));
      ASSIGN_OR_RETURN(Value * value, EmitAlone(s.value(), Want::kValue));
      return VarInfo{.value = value, .wide = wide};
    }
    ASSIGN_OR_RETURN(Value * value, EmitAlone(s.value(), Want::kValue));
    return VarInfo{.value = value};
  }

  absl::Status EmitIf(Stmt s) {
    ASSIGN_OR_RETURN(Value * condition, EmitAlone(s.cond(), Want::kCondition));
    BasicBlock* then_block = NewBlock("then");
    BasicBlock* else_block = s.else_case().IsEmpty() ? nullptr : NewBlock("else");
    BasicBlock* join = NewBlock("join");
    b_.CreateCondBr(condition, then_block, else_block != nullptr ? else_block : join);
    b_.SetInsertPoint(then_block);
    RETURN_IF_ERROR(EmitStmt(s.then_case()));
    b_.CreateBr(join);
    if (else_block != nullptr) {
      b_.SetInsertPoint(else_block);
      RETURN_IF_ERROR(EmitStmt(s.else_case()));
      b_.CreateBr(join);
    }
    b_.SetInsertPoint(join);
    return absl::OkStatus();
  }

  // for (i64 k = begin; k < end; ++k) { variable = min + k; body }
  absl::Status EmitCountedLoop(Stmt s, Value* begin, Value* end, Value* min) {
    BasicBlock* before = b_.GetInsertBlock();
    BasicBlock* loop = NewBlock("loop");
    BasicBlock* done = NewBlock("done");
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), loop, done);
    b_.SetInsertPoint(loop);
    const std::string name(s.var().name());
    llvm::PHINode* counter = b_.CreatePHI(b_.getInt64Ty(), 2, name);
    counter->addIncoming(begin, before);
    Value* wide = b_.CreateNSWAdd(min, counter, name);
    vars_[s.var()] = {.value = b_.CreateTrunc(wide, ops_.ValueType(s.var().type()), name),
                      .wide = wide};
    {
      arith::Analyzer::Scope scope(analyzer_);
      analyzer_.BindLoop(s.var(), s.min(), s.extent());
      RETURN_IF_ERROR(EmitStmt(s.body()));
    }
    vars_.erase(s.var());
    Value* next = b_.CreateNSWAdd(counter, b_.getInt64(1));
    counter->addIncoming(next, b_.GetInsertBlock());
    llvm::BranchInst* back = b_.CreateCondBr(b_.CreateICmpSLT(next, end), loop, done);
    if (llvm::MDNode* hints = LoopHints(s)) back->setMetadata(llvm::LLVMContext::MD_loop, hints);
    b_.SetInsertPoint(done);
    return absl::OkStatus();
  }

  llvm::MDNode* LoopHints(Stmt s) {
    const char* hint = nullptr;
    llvm::Metadata* value = nullptr;
    if (s.for_kind() == ForKind::kVectorize) {
      hint = "llvm.loop.vectorize.enable";
      value = llvm::ConstantAsMetadata::get(b_.getTrue());
    } else if (s.for_kind() == ForKind::kUnroll) {
      hint = s.extent().Is(ExprKind::kIntImm) ? "llvm.loop.unroll.full" : "llvm.loop.unroll.enable";
    } else {
      return nullptr;
    }
    std::vector<llvm::Metadata*> row = {llvm::MDString::get(context_, hint)};
    if (value != nullptr) row.push_back(value);
    // A loop's metadata is a distinct node whose first operand is itself.
    llvm::MDNode* node =
        llvm::MDNode::getDistinct(context_, {nullptr, llvm::MDNode::get(context_, row)});
    node->replaceOperandWith(0, node);
    return node;
  }

  absl::Status EmitFor(Stmt s) {
    ASSIGN_OR_RETURN(Value * min, EmitAlone(s.min(), Want::kIndex));
    ASSIGN_OR_RETURN(Value * extent, EmitAlone(s.extent(), Want::kIndex));
    return EmitCountedLoop(s, b_.getInt64(0), extent, min);
  }

  // The loop's body becomes a function of a range of iterations. It gets the values in scope in a
  // structure on the caller's stack; LLVM drops those that it does not use.
  absl::Status EmitParallelFor(Stmt s) {
    ASSIGN_OR_RETURN(Value * min, EmitAlone(s.min(), Want::kIndex));
    ASSIGN_OR_RETURN(Value * extent, EmitAlone(s.extent(), Want::kIndex));

    std::vector<Value**> captured = {&min};
    auto saved_vars = vars_;
    auto saved_buffers = buffers_;
    for (auto& [var, info] : vars_) {
      captured.push_back(&info.value);
      if (info.wide != nullptr) captured.push_back(&info.wide);
    }
    for (auto& [buffer, info] : buffers_) {
      if (info.base == nullptr) continue;
      captured.push_back(&info.base);
      for (Value*& e : info.extents) captured.push_back(&e);
    }
    std::erase_if(captured, [](Value** v) { return llvm::isa<llvm::Constant>(*v); });
    std::vector<llvm::Type*> types;
    for (Value** value : captured) types.push_back((*value)->getType());
    auto* closure_type = llvm::StructType::get(context_, types);
    auto* closure = new llvm::AllocaInst(closure_type, 0, "closure", entry_end_->getIterator());
    for (size_t i = 0; i < captured.size(); ++i) {
      b_.CreateStore(*captured[i], b_.CreateStructGEP(closure_type, closure, i));
    }

    auto* body_type = llvm::FunctionType::get(
        b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
    auto* body = llvm::Function::Create(body_type, llvm::Function::InternalLinkage,
                                        StrCat(function_.name, ".parallel"), module_);
    body->setDoesNotThrow();

    llvm::Function* caller = current_;
    BasicBlock* caller_entry = entry_;
    llvm::BranchInst* caller_entry_end = entry_end_;
    const int64_t caller_stack = stack_used_;
    auto caller_place = b_.saveIP();
    auto caller_cache = std::exchange(cache_, {});
    auto caller_log = std::exchange(log_, {});
    auto caller_heap = std::exchange(heap_, {});
    in_parallel_ = true;

    StartFunction(body);
    for (size_t i = 0; i < captured.size(); ++i) {
      Value* address = b_.CreateStructGEP(closure_type, body->getArg(0), i);
      llvm::LoadInst* load = b_.CreateLoad(types[i], address);
      load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
      *captured[i] = load;
    }
    const absl::Status status = EmitCountedLoop(s, body->getArg(1), body->getArg(2), min);
    if (status.ok()) b_.CreateRet(b_.getInt32(0));

    in_parallel_ = false;
    heap_ = std::move(caller_heap);
    log_ = std::move(caller_log);
    cache_ = std::move(caller_cache);
    stack_used_ = caller_stack;
    entry_end_ = caller_entry_end;
    entry_ = caller_entry;
    current_ = caller;
    vars_ = std::move(saved_vars);
    buffers_ = std::move(saved_buffers);
    b_.restoreIP(caller_place);
    RETURN_IF_ERROR(status);

    llvm::FunctionCallee run =
        module_.getOrInsertFunction("polynao_parallel_for", b_.getInt32Ty(), b_.getPtrTy(),
                                    b_.getPtrTy(), b_.getInt64Ty(), b_.getInt32Ty());
    Value* code =
        b_.CreateCall(run, {body, closure, extent, b_.getInt32(options_.threads)}, "code");
    LeaveIf(b_.CreateICmpNE(code, b_.getInt32(0)), code);
    return absl::OkStatus();
  }

  // ---- expressions ---------------------------------------------------------------------------

  // How an expression's value is used. An i32 or i64 in an index is computed as an i64 that does not
  // wrap; a condition compares such integers.
  enum class Want : uint8_t { kValue, kIndex, kCondition };
  using CacheKey = std::pair<Expr, Want>;

  // Forgets, when it is destroyed, the values cached since its construction: their block may not
  // dominate the code that follows, or a store may make their loads stale.
  class ScopedCache {
   public:
    explicit ScopedCache(Emitter* emitter) : emitter_(*emitter), size_(emitter->log_.size()) {}
    ~ScopedCache() {
      while (emitter_.log_.size() > size_) {
        emitter_.cache_.erase(emitter_.log_.back());
        emitter_.log_.pop_back();
      }
    }

   private:
    Emitter& emitter_;
    size_t size_;
  };

  // An operand of a statement. Other statements do not share its loads, since a store may come
  // between.
  absl::StatusOr<Value*> EmitAlone(Expr e, Want want) {
    ScopedCache scope(this);
    return EmitCached(e, want);
  }

  absl::StatusOr<Value*> EmitValue(Expr e) { return EmitCached(e, Want::kValue); }
  // An integer as an i64.
  absl::StatusOr<Value*> EmitIndex(Expr e) { return EmitCached(e, Want::kIndex); }
  absl::StatusOr<Value*> EmitCondition(Expr e) { return EmitCached(e, Want::kCondition); }

  absl::StatusOr<Value*> EmitCached(Expr e, Want want) {
    const CacheKey key(e, want);
    if (auto it = cache_.find(key); it != cache_.end()) return it->second;
    absl::StatusOr<Value*> value = want == Want::kValue   ? EmitUncached(e)
                                   : want == Want::kIndex ? EmitIndexUncached(e)
                                                          : EmitConditionUncached(e);
    if (!value.ok()) return value;
    cache_[key] = *value;
    log_.push_back(key);
    return value;
  }

  Value* Widen(Value* value, Type type) {
    return ir::IsUnsigned(type) ? b_.CreateZExt(value, b_.getInt64Ty())
                                : b_.CreateSExt(value, b_.getInt64Ty());
  }

  absl::StatusOr<Value*> EmitIndexUncached(Expr e) {
    if (e.Is(ExprKind::kIntImm)) return b_.getInt64(e.int_value());
    if (e.Is(ExprKind::kVar)) {
      const VarInfo& info = vars_.at(e);
      return info.wide != nullptr ? info.wide : Widen(info.value, e.type());
    }
    if (e.Is(ExprKind::kCast) && e.type() == Type::kI64 && ir::IsInt(e.operand(0).type())) {
      return EmitIndex(e.operand(0));
    }
    // Division by a variable keeps its type: 64-bit division is slower.
    const bool division = e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod);
    if (IsMathematical(e.type()) && (!division || e.operand(1).Is(ExprKind::kIntImm))) {
      if (e.Is(ExprKind::kSelect)) return EmitSelect(e, Want::kIndex);
      if (IsBinary(e.kind()) && !ir::IsBitOperation(e.kind())) {
        ASSIGN_OR_RETURN(Value * a, EmitIndex(e.operand(0)));
        ASSIGN_OR_RETURN(Value * b, EmitIndex(e.operand(1)));
        return IntBinary(e, Type::kI64, a, b, /*wraps=*/false);
      }
    }
    ASSIGN_OR_RETURN(Value * value, EmitValue(e));
    return Widen(value, e.type());
  }

  absl::StatusOr<Value*> EmitConditionUncached(Expr e) {
    if (IsComparison(e.kind()) && IsMathematical(e.operand(0).type())) {
      ASSIGN_OR_RETURN(Value * a, EmitIndex(e.operand(0)));
      ASSIGN_OR_RETURN(Value * b, EmitIndex(e.operand(1)));
      return ops_.Compare(e.kind(), Type::kI64, a, b);
    }
    if (e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr)) return EmitAndOr(e, Want::kCondition);
    if (e.Is(ExprKind::kSelect)) return EmitSelect(e, Want::kCondition);
    if (e.Is(ExprKind::kNot)) {
      ASSIGN_OR_RETURN(Value * value, EmitCondition(e.operand(0)));
      return b_.CreateNot(value);
    }
    return EmitValue(e);
  }

  absl::StatusOr<Value*> EmitUncached(Expr e) {
    const Type type = e.type();
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return llvm::ConstantInt::getSigned(ops_.ValueType(type), e.int_value());
      case ExprKind::kFloatImm:
        return llvm::ConstantFP::get(ops_.ValueType(type), e.float_value());
      case ExprKind::kVar:
        return vars_.at(e).value;
      case ExprKind::kCast: {
        ASSIGN_OR_RETURN(Value * value, EmitValue(e.operand(0)));
        return ops_.Cast(value, e.operand(0).type(), type);
      }
      case ExprKind::kAnd:
      case ExprKind::kOr:
        return EmitAndOr(e, Want::kValue);
      case ExprKind::kNot: {
        ASSIGN_OR_RETURN(Value * value, EmitValue(e.operand(0)));
        return b_.CreateNot(value);
      }
      case ExprKind::kSelect:
        return EmitSelect(e, Want::kValue);
      case ExprKind::kLet: {
        ASSIGN_OR_RETURN(Value * value, EmitValue(e.operand(0)));
        ScopedCache scope(this);
        vars_[e.var()] = {.value = value};
        absl::StatusOr<Value*> body = EmitValue(e.operand(1));
        vars_.erase(e.var());
        return body;
      }
      case ExprKind::kLoad:
        return EmitLoad(e);
      case ExprKind::kAddress:
        return InvalidInput(
            function_.name, ": the address of an element of '", e.buffer()->name,
            "' is an argument of tensor instructions, which the cpu target does not "
            "have");
      case ExprKind::kCall:
        return EmitCall(e);
      default:
        break;
    }
    POLYNAO_CHECK(IsBinary(e.kind())) << ExprKindName(e.kind());
    const Type operand_type = e.operand(0).type();
    ASSIGN_OR_RETURN(Value * a, EmitValue(e.operand(0)));
    ASSIGN_OR_RETURN(Value * b, EmitValue(e.operand(1)));
    if (IsComparison(e.kind())) return ops_.Compare(e.kind(), operand_type, a, b);
    if (ir::IsInt(operand_type)) return IntBinary(e, operand_type, a, b, /*wraps=*/true);
    return ops_.FloatBinary(e.kind(), operand_type, a, b);
  }

  Value* IntBinary(Expr e, Type type, Value* a, Value* b, bool wraps) {
    const bool divides = e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod);
    if (divides && options_.checks) {
      auto* constant = llvm::dyn_cast<llvm::ConstantInt>(b);
      if (constant == nullptr || constant->isZero()) {
        FailIf(b_.CreateIsNull(b), "division by zero");
      }
    }
    return ops_.IntBinary(e.kind(), type, a, b, wraps);
  }

  absl::StatusOr<Value*> EmitCall(Expr e) {
    const ir::PureIntrinsic* intrinsic = ir::FindPureIntrinsic(e.name());
    if (intrinsic == nullptr) {
      return InvalidInput(function_.name, ": call of '", std::string(e.name()),
                          "': the cpu target has no tensor instructions; expected a pure intrinsic "
                          "such as exp");
    }
    std::vector<Value*> arguments;
    for (Expr operand : e.operands()) {
      ASSIGN_OR_RETURN(Value * value, EmitValue(operand));
      arguments.push_back(value);
    }
    return ops_.Intrinsic(*intrinsic, e.type(), arguments);
  }

  // ---- conditional evaluation ----------------------------------------------------------------

  // The number of operations in `e` as a tree; more than kMaxSpeculatedOperations if it may trap or
  // calls a slow function.
  int SpeculationCost(Expr e) {
    auto [it, added] = speculation_cost_.try_emplace(e, kMaxSpeculatedOperations + 1);
    if (!added) return it->second;
    bool allowed = true;
    switch (e.kind()) {
      case ExprKind::kLoad:
      case ExprKind::kAddress:
        allowed = false;
        break;
      case ExprKind::kCall:
        allowed = ir::IsPureIntrinsic(e.name()) &&
                  ir::FindPureIntrinsic(e.name())->accuracy == ir::Accuracy::kExact;
        break;
      case ExprKind::kDiv:
      case ExprKind::kMod:
        allowed = ir::IsFloat(e.type()) ||
                  (e.operand(1).Is(ExprKind::kIntImm) && e.operand(1).int_value() != 0);
        break;
      default:
        break;
    }
    if (!allowed) return kMaxSpeculatedOperations + 1;
    int cost = e.operands().empty() ? 0 : 1;
    for (Expr operand : e.operands()) {
      cost = std::min(cost + SpeculationCost(operand), kMaxSpeculatedOperations + 1);
    }
    return speculation_cost_[e] = cost;
  }
  bool IsSpeculatable(Expr e) { return SpeculationCost(e) <= kMaxSpeculatedOperations; }

  // `condition` ? `then_value` : `else_value` with branches; the two functions emit the values.
  template <typename Then, typename Else>
  absl::StatusOr<Value*> Branch(Value* condition, Then emit_then, Else emit_else) {
    BasicBlock* then_block = NewBlock("then");
    BasicBlock* else_block = NewBlock("else");
    BasicBlock* join = NewBlock("join");
    b_.CreateCondBr(condition, then_block, else_block);
    b_.SetInsertPoint(then_block);
    Value* then_value = nullptr;
    {
      ScopedCache scope(this);
      ASSIGN_OR_RETURN(then_value, emit_then());
    }
    BasicBlock* then_end = b_.GetInsertBlock();
    b_.CreateBr(join);
    b_.SetInsertPoint(else_block);
    Value* else_value = nullptr;
    {
      ScopedCache scope(this);
      ASSIGN_OR_RETURN(else_value, emit_else());
    }
    BasicBlock* else_end = b_.GetInsertBlock();
    b_.CreateBr(join);
    b_.SetInsertPoint(join);
    llvm::PHINode* phi = b_.CreatePHI(then_value->getType(), 2);
    phi->addIncoming(then_value, then_end);
    phi->addIncoming(else_value, else_end);
    return phi;
  }

  // Uses LLVM's `select` rather than and/or, because it ignores the operand that is not taken even if
  // that is poison (a nsw operation that overflowed).
  absl::StatusOr<Value*> EmitAndOr(Expr e, Want want) {
    const bool is_and = e.Is(ExprKind::kAnd);
    ASSIGN_OR_RETURN(Value * a, EmitCached(e.operand(0), want));
    const Expr second = e.operand(1);
    Value* decided = b_.getInt1(!is_and);
    if (IsSpeculatable(second)) {
      ASSIGN_OR_RETURN(Value * b, EmitCached(second, want));
      return is_and ? b_.CreateSelect(a, b, decided) : b_.CreateSelect(a, decided, b);
    }
    auto emit_second = [&] { return EmitCached(second, want); };
    auto emit_decided = [&]() -> absl::StatusOr<Value*> { return decided; };
    return is_and ? Branch(a, emit_second, emit_decided) : Branch(a, emit_decided, emit_second);
  }

  absl::StatusOr<Value*> EmitSelect(Expr e, Want want) {
    // In a stored value the condition's arithmetic wraps like the rest.
    ASSIGN_OR_RETURN(
        Value * condition,
        EmitCached(e.operand(0), want == Want::kValue ? Want::kValue : Want::kCondition));
    if (IsSpeculatable(e.operand(1)) && IsSpeculatable(e.operand(2))) {
      ASSIGN_OR_RETURN(Value * a, EmitCached(e.operand(1), want));
      ASSIGN_OR_RETURN(Value * b, EmitCached(e.operand(2), want));
      return b_.CreateSelect(condition, a, b);
    }
    return Branch(
        condition, [&] { return EmitCached(e.operand(1), want); },
        [&] { return EmitCached(e.operand(2), want); });
  }

  const ir::Function& function_;
  const ir::Aliases aliases_;
  const EmitOptions& options_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  std::vector<std::string>& failures_;
  llvm::IRBuilder<> b_;
  ScalarOps ops_;
  // Knows the ranges of the variables of enclosing loops and lets.
  arith::Analyzer analyzer_;

  llvm::Function* function_value_ = nullptr;
  llvm::Function* current_ = nullptr;
  BasicBlock* entry_ = nullptr;
  llvm::BranchInst* entry_end_ = nullptr;
  int64_t stack_used_ = 0;
  bool in_parallel_ = false;
  std::vector<Value*> heap_;  // blocks to free when leaving early

  absl::flat_hash_map<Expr, VarInfo> vars_;
  absl::flat_hash_map<Buffer, BufferInfo> buffers_;
  absl::flat_hash_map<CacheKey, Value*> cache_;
  std::vector<CacheKey> log_;
  absl::flat_hash_map<Expr, int> speculation_cost_;
};

}  // namespace

std::string RawEntryName(std::string_view name) { return StrCat(name, "_entry"); }

absl::Status EmitFunction(const ir::Function& function, const EmitOptions& options,
                          llvm::Module* module, std::vector<std::string>* failures) {
  return Emitter(function, options, module, failures).Emit();
}

}  // namespace polynao::codegen
