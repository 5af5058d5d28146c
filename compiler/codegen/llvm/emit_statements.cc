// Statements and the memory that they allocate, load and store.
#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/order.h"
#include "compiler/codegen/llvm/emitter.h"
#include "compiler/codegen/loop_work.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/visit.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"

namespace polynao::codegen {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using llvm::BasicBlock;
using llvm::Value;

namespace {

// An allocation of constant size goes on the stack if it is at most this large and the function's
// stack allocations together stay within the second limit.
constexpr int64_t kMaxStackAllocation = int64_t{48} << 10;
constexpr int64_t kMaxStack = int64_t{128} << 10;
// A loop of so many iterations, or a multiple, is a number of whole vectors.
constexpr int64_t kVectorIterations = 8;
// Longer ones stay loops.
constexpr int64_t kMostUnrolled = 128;
constexpr int64_t kHeapAlignment = 64;  // a cache line and the widest vector
// A parallel loop with less to do (LoopWork) runs on the calling thread: to start the others, to move its data to their
// caches and to wait for them takes about as long.
constexpr double kParallelWork = 120000;

}  // namespace

// ---- memory -------------------------------------------------------------------------------------

absl::Status Emitter::EmitExtents(Buffer buffer) {
  ScopedCache scope(this);
  std::vector<Value*> extents;
  for (Expr extent : buffer->extents) {
    ASSIGN_OR_RETURN(Value * value, EmitIndex(extent));
    extents.push_back(value);
  }
  buffers_[buffer].extents = std::move(extents);
  return absl::OkStatus();
}

std::optional<int64_t> Emitter::BytesOf(Buffer buffer) const {
  int64_t bytes = ir::ByteSize(buffer->type);
  for (Value* extent : buffers_.at(buffer).extents) {
    const std::optional<int64_t> constant = ConstantOf(extent);
    if (!constant || __builtin_mul_overflow(bytes, std::max<int64_t>(*constant, 0), &bytes))
      return std::nullopt;
  }
  return bytes;
}

void Emitter::EmitFree(Value* block) {
  b_.CreateCall(module_.getOrInsertFunction("free", b_.getVoidTy(), b_.getPtrTy()), {block});
}

absl::Status Emitter::EmitAllocate(Stmt s) {
  const Buffer buffer = s.buffer();
  RETURN_IF_ERROR(EmitExtents(buffer));
  BufferInfo& info = buffers_[buffer];
  Value* bytes = b_.getInt64(ir::ByteSize(buffer->type));
  for (Value* extent : info.extents) {
    // The builder does not fold this for constants.
    auto* constant = llvm::dyn_cast<llvm::ConstantInt>(extent);
    Value* positive =
        constant != nullptr
            ? b_.getInt64(static_cast<uint64_t>(std::max<int64_t>(constant->getSExtValue(), 0)))
            : b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, extent, b_.getInt64(0));
    bytes = b_.CreateMul(bytes, positive, "", /*HasNUW=*/true, /*HasNSW=*/true);
  }
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(bytes);
  const int64_t size = constant != nullptr ? constant->getSExtValue() : 0;
  if (constant != nullptr && size <= kMaxStackAllocation && stack_used_ + size <= kMaxStack) {
    stack_used_ += size;
    auto* block =
        new llvm::AllocaInst(b_.getInt8Ty(), 0, b_.getInt64(std::max<int64_t>(size, 1)),
                             llvm::Align(kHeapAlignment), buffer->name, entry_end_->getIterator());
    info.base = block;
    b_.CreateLifetimeStart(block);
    RETURN_IF_ERROR(EmitStmt(s.body()));
    b_.CreateLifetimeEnd(block);
    buffers_[buffer].base = nullptr;
    return absl::OkStatus();
  }
  // aligned_alloc takes a multiple of the alignment, and at least one.
  Value* padded =
      b_.CreateAnd(b_.CreateAdd(bytes, b_.getInt64(kHeapAlignment)), b_.getInt64(-kHeapAlignment));
  llvm::FunctionCallee allocate =
      module_.getOrInsertFunction("aligned_alloc", b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty());
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

absl::StatusOr<Value*> Emitter::ElementAddress(Buffer buffer, absl::Span<const Expr> indices) {
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

void Emitter::MarkAccess(Buffer buffer, llvm::Instruction* access) {
  const BufferInfo& info = buffers_.at(buffer);
  if (info.alias_scope == nullptr) return;
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, info.alias_scope);
  if (info.noalias->getNumOperands() > 0) {
    access->setMetadata(llvm::LLVMContext::MD_noalias, info.noalias);
  }
}

absl::Status Emitter::EmitStore(Stmt s) {
  const Buffer buffer = s.buffer();
  ScopedCache scope(this);
  ASSIGN_OR_RETURN(Value * address, ElementAddress(buffer, s.indices()));
  ASSIGN_OR_RETURN(Value * value, EmitValue(s.value()));
  MarkAccess(buffer, b_.CreateAlignedStore(ops_.ToMemory(value, buffer->type), address,
                                           AlignmentOf(buffer)));
  return absl::OkStatus();
}

absl::StatusOr<Value*> Emitter::EmitLoad(Expr e) {
  const Buffer buffer(e.buffer());
  ASSIGN_OR_RETURN(Value * address, ElementAddress(buffer, e.operands()));
  llvm::LoadInst* load = b_.CreateAlignedLoad(ops_.MemoryType(buffer->type), address,
                                              AlignmentOf(buffer), buffer->name);
  MarkAccess(buffer, load);
  return ops_.FromMemory(load, buffer->type);
}

// ---- statements ---------------------------------------------------------------------------------

absl::Status Emitter::EmitStmt(Stmt s) {
  switch (s.kind()) {
    case StmtKind::kFor:
      return s.for_kind() == ForKind::kParallel && !in_parallel_ ? EmitParallelFor(s) : EmitFor(s);
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
      return lanes_ != nullptr ? EmitVectorStore(s) : EmitStore(s);
    case StmtKind::kPragma: {
      const bool had_few = std::exchange(has_few_iterations_,
                                         has_few_iterations_ || s.name() == pragma::kFewIterations);
      const absl::Status status = EmitStmt(s.body());
      has_few_iterations_ = had_few;
      return status;
    }
    case StmtKind::kEvaluate:
      return EmitAlone(s.value(), Want::kValue).status();
    case StmtKind::kSeq:
      for (size_t i = 0; i < s.children().size(); ++i) {
        // Zeros that tiles begin with need not go through memory.
        const auto tiles =
            i + 1 < s.children().size() ? FindTiles(s.children()[i + 1]) : std::nullopt;
        if (tiles && FillsWithZeros(s.children()[i], *tiles, analyzer_)) {
          RETURN_IF_ERROR(EmitTileLoop(*tiles, /*from_zero=*/true));
          ++i;
          continue;
        }
        RETURN_IF_ERROR(EmitStmt(s.children()[i]));
      }
      return absl::OkStatus();
  }
  POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
}

absl::StatusOr<Emitter::VarInfo> Emitter::EmitLetValue(Stmt s) {
  const Type type = s.var().type();
  bool calls = false;  // extern functions, once
  ir::ForEachExpr(s.value(), [&](Expr e) { calls |= e.callee() != nullptr; });
  if ((IsMathematical(type) || type == Type::kI1) && !calls && !analyzer_.CanOverflow(s.value())) {
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

absl::Status Emitter::EmitIf(Stmt s) {
  ASSIGN_OR_RETURN(Value * condition, EmitAlone(s.cond(), Want::kCondition));
  if (IsVector(condition)) {
    RETURN_IF_ERROR(EmitMasked(condition, true, s.then_case()));
    return s.else_case().IsEmpty() ? absl::OkStatus() : EmitMasked(condition, false, s.else_case());
  }
  EmitWaiting();
  BasicBlock* then_block = NewBlock("then");
  BasicBlock* else_block = s.else_case().IsEmpty() ? nullptr : NewBlock("else");
  BasicBlock* join = NewBlock("join");
  b_.CreateCondBr(condition, then_block, else_block != nullptr ? else_block : join);
  b_.SetInsertPoint(then_block);
  RETURN_IF_ERROR(EmitStmt(s.then_case()));
  EmitWaiting();
  b_.CreateBr(join);
  if (else_block != nullptr) {
    b_.SetInsertPoint(else_block);
    RETURN_IF_ERROR(EmitStmt(s.else_case()));
    EmitWaiting();
    b_.CreateBr(join);
  }
  b_.SetInsertPoint(join);
  return absl::OkStatus();
}

absl::Status Emitter::EmitCountedLoop(Stmt s, Value* begin, Value* end, Value* min,
                                      const std::function<absl::Status()>& emit_body) {
  EmitWaiting();
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
    arith::BindLoopWithParts(analyzer_, s);
    around_.push_back(s);
    auto outer = std::exchange(asked_, {});
    const absl::Status status = emit_body ? emit_body() : EmitStmt(s.body());
    asked_ = std::move(outer);
    around_.pop_back();
    RETURN_IF_ERROR(status);
    EmitWaiting();
  }
  vars_.erase(s.var());
  Value* next = b_.CreateNSWAdd(counter, b_.getInt64(1));
  counter->addIncoming(next, b_.GetInsertBlock());
  llvm::BranchInst* back = b_.CreateCondBr(b_.CreateICmpSLT(next, end), loop, done);
  // Instructions on tiles take longer than the loop around them.
  llvm::MDNode* hints =
      emit_body ? LoopNode({nullptr, LoopHint("llvm.loop.unroll.disable", {})}) : LoopHints(s);
  if (hints != nullptr) back->setMetadata(llvm::LLVMContext::MD_loop, hints);
  b_.SetInsertPoint(done);
  return absl::OkStatus();
}

namespace {

bool HasVectors(Stmt s) {
  return ir::AnyStmt(
      s, [](Stmt t) { return t.Is(StmtKind::kFor) && t.for_kind() == ForKind::kVectorize; });
}

// Whether a loop that stays one is in `s`, with vectors inside.
bool HasLoopOfVectors(Stmt s) {
  return ir::AnyStmt(s, [](Stmt t) {
    return t.Is(StmtKind::kFor) && t.for_kind() == ForKind::kSerial && HasVectors(t.body());
  });
}

}  // namespace

llvm::MDNode* Emitter::LoopHints(Stmt s) {
  std::vector<llvm::Metadata*> rows = {nullptr};
  if (has_few_iterations_) {
    rows.push_back(
        LoopHint("llvm.loop.vectorize.enable", {llvm::ConstantAsMetadata::get(b_.getFalse())}));
    rows.push_back(LoopHint("llvm.loop.unroll.disable", {}));
    return LoopNode(rows);
  }
  const bool is_constant = s.extent().Is(ExprKind::kIntImm);
  if (s.for_kind() == ForKind::kVectorize) {
    if (MayLoseChecks(s, aliases_, analyzer_)) return nullptr;
    rows.push_back(
        LoopHint("llvm.loop.vectorize.enable", {llvm::ConstantAsMetadata::get(b_.getTrue())}));
    if (is_constant && s.extent().int_value() % kVectorIterations == 0 &&
        s.extent().int_value() <= kMostUnrolled) {
      // Short loops would be unrolled before they are vectorized, and their statements put together to vectors again,
      // in several times the time.
      rows.push_back(LoopHint("llvm.loop.unroll.disable", {}));
      rows.push_back(
          LoopHint("llvm.loop.vectorize.followup_all", {LoopHint("llvm.loop.unroll.full", {})}));
    }
  } else if (s.for_kind() == ForKind::kUnroll) {
    rows.push_back(LoopHint(is_constant ? "llvm.loop.unroll.full" : "llvm.loop.unroll.enable", {}));
  } else if (HasLoopOfVectors(s.body())) {
    // LLVM would unroll loops over a window, one in the other.
    rows.push_back(LoopHint("llvm.loop.unroll.disable", {}));
  } else {
    return nullptr;
  }
  return LoopNode(rows);
}

llvm::Metadata* Emitter::LoopHint(const char* name, std::vector<llvm::Metadata*> values) {
  values.insert(values.begin(), llvm::MDString::get(context_, name));
  return llvm::MDNode::get(context_, values);
}

// A loop's metadata is a distinct node whose first operand is itself.
llvm::MDNode* Emitter::LoopNode(const std::vector<llvm::Metadata*>& rows) {
  llvm::MDNode* node = llvm::MDNode::getDistinct(context_, rows);
  node->replaceOperandWith(0, node);
  return node;
}

absl::Status Emitter::EmitFor(Stmt s) {
  if (const auto tiles = FindTiles(s)) return EmitTileLoop(*tiles, /*from_zero=*/false);
  ASSIGN_OR_RETURN(Value * min, EmitAlone(s.min(), Want::kIndex));
  ASSIGN_OR_RETURN(Value * extent, EmitAlone(s.extent(), Want::kIndex));
  if (s.for_kind() == ForKind::kVectorize && lanes_ == nullptr && !has_few_iterations_ &&
      !options_.checks) {
    const DotLoop dot = FindDotLoop(s, options_.instructions, analyzer_);
    if (dot.instruction != nullptr) return EmitDotLoop(dot);
    if (const std::optional<VectorLoop> loop = FindVectorLoop(s, aliases_, analyzer_)) {
      return EmitVectorLoop(s, *loop, extent, min);
    }
  }
  return EmitCountedLoop(s, b_.getInt64(0), extent, min);
}

absl::StatusOr<Value*> Emitter::EmitThreads(Stmt parallel_loop) {
  ASSIGN_OR_RETURN(Value * work, EmitAlone(LoopWork(parallel_loop), Want::kValue));
  Value* is_small = b_.CreateFCmpOLT(work, llvm::ConstantFP::get(work->getType(), kParallelWork));
  return b_.CreateSelect(is_small, b_.getInt32(1), b_.getInt32(options_.threads));
}

absl::Status Emitter::EmitParallelFor(Stmt s) {
  ASSIGN_OR_RETURN(Value * min, EmitAlone(s.min(), Want::kIndex));
  ASSIGN_OR_RETURN(Value * extent, EmitAlone(s.extent(), Want::kIndex));

  std::vector<Value**> captured = {&min};
  auto saved_vars = vars_;
  auto saved_buffers = buffers_;
  // A map's own order differs from run to run.
  std::map<uint32_t, VarInfo*> vars;
  for (auto& [var, info] : vars_) vars[var.id()] = &info;
  for (const auto& [id, info] : vars) {
    captured.push_back(&info->value);
    if (info->wide != nullptr) captured.push_back(&info->wide);
  }
  std::map<uint32_t, BufferInfo*> buffers;
  for (auto& [buffer, info] : buffers_) buffers[buffer->id] = &info;
  for (const auto& [id, info] : buffers) {
    if (info->base == nullptr) continue;
    captured.push_back(&info->base);
    for (Value*& e : info->extents) captured.push_back(&e);
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
  const bool caller_streams = std::exchange(has_streamed_, false);
  const bool caller_tiles = std::exchange(has_tiles_, false);
  auto caller_calls = std::exchange(parallel_calls_, {});
  in_parallel_ = true;

  StartFunction(body);
  for (size_t i = 0; i < captured.size(); ++i) {
    Value* address = b_.CreateStructGEP(closure_type, body->getArg(0), i);
    llvm::LoadInst* load = b_.CreateLoad(types[i], address);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    *captured[i] = load;
  }
  const absl::Status status = EmitCountedLoop(s, body->getArg(1), body->getArg(2), min);
  if (status.ok()) EmitReturn();

  in_parallel_ = false;
  heap_ = std::move(caller_heap);
  has_streamed_ = caller_streams;
  has_tiles_ = caller_tiles;
  parallel_calls_ = std::move(caller_calls);
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
  ASSIGN_OR_RETURN(Value * threads, EmitThreads(s));
  llvm::CallInst* code = b_.CreateCall(run, {body, closure, extent, threads}, "code");
  parallel_calls_.push_back(code);
  LeaveIf(b_.CreateICmpNE(code, b_.getInt32(0)), code);
  return absl::OkStatus();
}

}  // namespace polynao::codegen
