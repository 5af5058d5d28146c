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

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/llvm/emitter.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/visit.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

namespace polynao::codegen {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using llvm::BasicBlock;
using llvm::Value;

namespace {

// With more buffers the rest get no alias scope: the metadata grows with the square of their number.
constexpr size_t kMaxAliasScopes = 64;

}  // namespace

absl::Status Emitter::Emit() {
  // What may reach all buffers by a way of its own may change one through no address that is seen here.
  const std::vector<const ir::ExternNode*> called = ir::ExternsOf(function_);
  may_overlap_ = options_.is_meaning ||
                 std::any_of(called.begin(), called.end(), [](const ir::ExternNode* callee) {
                   return callee->effect == ir::Effect::kOpaque;
                 });
  calls_externs_ = !called.empty();
  if (!may_overlap_) MakeAliasScopes();
  std::vector<llvm::Type*> types;
  for (const ir::Param& param : function_.params) {
    types.push_back(param.buffer ? static_cast<llvm::Type*>(b_.getPtrTy())
                                 : ops_.ValueType(param.var.type()));
  }
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), types, false);
  function_value_ =
      options_.is_meaning ? llvm::Function::Create(type, llvm::Function::InternalLinkage,
                                                   MeaningName(function_.name), module_)
      : options_.is_exported
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
      if (!may_overlap_) {
        if (!aliases_.Group(param.buffer)) argument->addAttr(llvm::Attribute::NoAlias);
        argument->addAttr(llvm::Attribute::NoCapture);
      }
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
  FindStreams();
  RETURN_IF_ERROR(EmitStmt(function_.body));
  EmitReturn();
  if (!options_.is_meaning) EmitRawEntry();
  return absl::OkStatus();
}

void Emitter::MakeAliasScopes() {
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

void Emitter::FindStreams() {
  if (options_.stream_bytes <= 0 || !llvm::Triple(module_.getTargetTriple()).isX86()) return;
  for (const ir::Param& param : function_.params) {
    if (!param.buffer || aliases_.Group(param.buffer)) continue;
    if (IsFar(param.buffer)) streams_.insert(param.buffer);
  }
  ir::ForEachExprIn(function_.body, [&](Expr e) {
    if (e.Is(ExprKind::kLoad) || e.Is(ExprKind::kAddress)) streams_.erase(Buffer(e.buffer()));
  });
}

void Emitter::EmitReturn() {
  // Otherwise other threads might see what comes next before what went past the caches.
  if (std::exchange(has_streamed_, false))
    b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  b_.CreateRet(b_.getInt32(0));
  FinishTiles();
}

void Emitter::StartFunction(llvm::Function* f) {
  current_ = f;
  entry_ = BasicBlock::Create(context_, "entry", f);
  // Allocas go to the end of the entry block, outside all loops.
  BasicBlock* start = BasicBlock::Create(context_, "start", f);
  b_.SetInsertPoint(entry_);
  entry_end_ = b_.CreateBr(start);
  b_.SetInsertPoint(start);
  stack_used_ = 0;
}

void Emitter::EmitRawEntry() {
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
      arguments.push_back(ops_.Cast(b_.CreateLoad(b_.getDoubleTy(), address), Type::kF64, scalar));
    } else {
      arguments.push_back(
          b_.CreateTrunc(b_.CreateLoad(b_.getInt64Ty(), address), ops_.ValueType(scalar)));
    }
  }
  b_.CreateRet(b_.CreateCall(function_value_, arguments));
}

void Emitter::LeaveIf(Value* failed, Value* code) {
  BasicBlock* leave = NewBlock("fail");
  BasicBlock* go_on = NewBlock("ok");
  llvm::MDBuilder metadata(context_);
  b_.CreateCondBr(failed, leave, go_on, metadata.createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(leave);
  for (Value* block : heap_) EmitFree(block);
  b_.CreateRet(code);
  b_.SetInsertPoint(go_on);
}

void Emitter::FailIf(Value* failed, std::string what) {
  failures_.push_back(StrCat(function_.name, ": ", what));
  LeaveIf(failed, b_.getInt32(failures_.size()));
}

std::string MeaningName(std::string_view name) { return StrCat(name, ".meaning"); }

std::string RawEntryName(std::string_view name) { return StrCat(name, "_entry"); }

absl::Status EmitFunction(const ir::Function& function, const EmitOptions& options,
                          llvm::Module* module, std::vector<std::string>* failures) {
  return Emitter(function, options, module, failures).Emit();
}

}  // namespace polynao::codegen
