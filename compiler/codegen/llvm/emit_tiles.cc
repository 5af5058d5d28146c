// Loops whose sums stay in registers of tiles (tile_loop.h), and what a function around them does: it asks the system
// for the registers, tells the processor how large tiles are, and gives them back.
#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "compiler/arith/order.h"
#include "compiler/codegen/llvm/emitter.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace polynao::codegen {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;
using llvm::BasicBlock;
using llvm::Value;

namespace {

// What ldtilecfg reads (Intel SDM): the palette, and for each register the bytes of a row, and the rows.
constexpr size_t kConfigBytes = 64, kRowBytesPlace = 16, kRowsPlace = 48;

// Tile registers that hold operands: the one that was used longest ago is loaded next.
class OperandRegisters {
 public:
  OperandRegisters(int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) registers_.push_back({i, {}});
  }

  // The register for the operand that has this key, and whether the operand is there.
  std::pair<int64_t, bool> Find(const std::vector<int64_t>& key) {
    const auto found = std::find_if(registers_.begin(), registers_.end(),
                                    [&](const auto& one) { return one.second == key; });
    const bool is_there = found != registers_.end();
    const auto used = is_there ? found : registers_.begin();
    used->second = key;
    std::rotate(used, used + 1, registers_.end());
    return {registers_.back().first, is_there};
  }

 private:
  std::vector<std::pair<int64_t, std::vector<int64_t>>> registers_;
};

}  // namespace

void Emitter::SetVar(ir::Var var, int64_t value) {
  vars_[var] = {.value = llvm::ConstantInt::getSigned(ops_.ValueType(var.type()), value),
                .wide = b_.getInt64(static_cast<uint64_t>(value))};
}

// tileloadd or tilestored of the tile whose first element is buffer[indices].
absl::Status Emitter::MoveTile(llvm::Intrinsic::ID move, int64_t tile, Buffer buffer,
                               absl::Span<const Expr> indices, int64_t pitch) {
  ASSIGN_OR_RETURN(Value * address, ElementAddress(buffer, indices));
  const auto bytes = static_cast<uint64_t>(pitch * ir::ByteSize(buffer->type));
  b_.CreateIntrinsic(move, {},
                     {b_.getInt8(static_cast<uint8_t>(tile)), address, b_.getInt64(bytes)});
  return absl::OkStatus();
}

absl::Status Emitter::EmitTileProducts(const TileLoop& loop) {
  const std::vector<std::vector<int64_t>> positions = PositionsOf(loop);
  const llvm::Intrinsic::ID id = llvm::Function::lookupIntrinsicID(loop.instruction->intrinsic);
  POLYNAO_CHECK(id != llvm::Intrinsic::not_intrinsic) << loop.instruction->intrinsic;
  OperandRegisters registers(static_cast<int64_t>(positions.size()), loop.instruction->registers);
  for (size_t sum = 0; sum < positions.size(); ++sum) {
    ScopedCache scope(this);
    std::vector<Value*> tiles = {b_.getInt8(static_cast<uint8_t>(sum))};
    for (const auto& [operand, pitch] :
         {std::pair(loop.a, loop.a_pitch), std::pair(loop.b, loop.b_pitch)}) {
      // The operand, and the positions that select its tile.
      std::vector<int64_t> key = {operand == loop.b};
      for (size_t i = 0; i < loop.positions.size(); ++i) {
        const ir::Var var = loop.positions[i].var();
        SetVar(var, positions[sum][i]);
        key.push_back(ir::UsesVar(operand, var) ? positions[sum][i] : -1);
      }
      const auto [tile, is_there] = registers.Find(key);
      if (!is_there) {
        RETURN_IF_ERROR(MoveTile(llvm::Intrinsic::x86_tileloadd64, tile, Buffer(operand.buffer()),
                                 operand.operands(), pitch));
      }
      tiles.push_back(b_.getInt8(static_cast<uint8_t>(tile)));
    }
    b_.CreateIntrinsic(id, {}, tiles);
  }
  return absl::OkStatus();
}

std::optional<TileLoop> Emitter::FindTiles(Stmt s) {
  if (!s.Is(ir::StmtKind::kFor) || lanes_ != nullptr || options_.checks || may_overlap_ ||
      calls_externs_) {
    return std::nullopt;
  }
  return FindTileLoop(s, options_.instructions, aliases_, analyzer_);
}

absl::Status Emitter::EmitTileLoop(const TileLoop& loop, bool from_zero) {
  EmitWaiting();
  has_tiles_ = true;
  for (const Stmt own : loop.own) SetVar(own.var(), 0);
  const std::vector<std::vector<int64_t>> positions = PositionsOf(loop);
  const auto for_sums = [&](llvm::Intrinsic::ID move) {
    for (size_t sum = 0; sum < positions.size(); ++sum) {
      ScopedCache scope(this);
      for (size_t i = 0; i < loop.positions.size(); ++i)
        SetVar(loop.positions[i].var(), positions[sum][i]);
      RETURN_IF_ERROR(MoveTile(move, static_cast<int64_t>(sum), loop.store.buffer(),
                               loop.store.indices(), loop.sums_pitch));
    }
    return absl::OkStatus();
  };
  if (from_zero) {
    for (size_t sum = 0; sum < positions.size(); ++sum)
      b_.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {},
                         {b_.getInt8(static_cast<uint8_t>(sum))});
  } else {
    RETURN_IF_ERROR(for_sums(llvm::Intrinsic::x86_tileloadd64));
  }
  if (loop.sum_loop) {
    ASSIGN_OR_RETURN(Value * min, EmitAlone(loop.sum_loop.min(), Want::kIndex));
    ASSIGN_OR_RETURN(Value * extent, EmitAlone(loop.sum_loop.extent(), Want::kIndex));
    RETURN_IF_ERROR(EmitCountedLoop(loop.sum_loop, b_.getInt64(0), extent, min,
                                    [&] { return EmitTileProducts(loop); }));
  } else {
    RETURN_IF_ERROR(EmitTileProducts(loop));
  }
  RETURN_IF_ERROR(for_sums(llvm::Intrinsic::x86_tilestored64));
  for (const Stmt own : loop.own) vars_.erase(own.var());
  for (const Stmt position : loop.positions) vars_.erase(position.var());
  return absl::OkStatus();
}

// Where tiles are used: all registers hold whole ones.
void Emitter::ConfigureTiles() {
  constexpr const char* kName = "tiles.shape";
  llvm::GlobalVariable* config = module_.getNamedGlobal(kName);
  if (config == nullptr) {
    const auto tile = std::find_if(options_.instructions.begin(), options_.instructions.end(),
                                   [](const auto* row) { return row->IsTile(); });
    std::string bytes(kConfigBytes, '\0');
    bytes[0] = 1;
    for (int64_t i = 0; i < (*tile)->registers; ++i) {
      const int64_t row = (*tile)->lanes * ir::ByteSize((*tile)->sums->type);
      bytes[kRowBytesPlace + 2 * i] = static_cast<char>(row);
      bytes[kRowsPlace + i] = static_cast<char>((*tile)->rows);
    }
    llvm::Constant* value = llvm::ConstantDataArray::getString(context_, bytes, /*AddNull=*/false);
    config = new llvm::GlobalVariable(module_, value->getType(), /*isConstant=*/true,
                                      llvm::GlobalValue::InternalLinkage, value, kName);
    config->setAlignment(llvm::Align(kConfigBytes));
  }
  b_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {config});
}

// A function of the module that returns 0 if the process may use tiles. It asks the system once.
llvm::Function* Emitter::AskForTiles() {
  constexpr const char* kName = "tiles.ask";
  if (llvm::Function* made = module_.getFunction(kName)) return made;
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  auto* ask = llvm::Function::Create(llvm::FunctionType::get(b_.getInt64Ty(), false),
                                     llvm::Function::InternalLinkage, kName, module_);
  ask->setDoesNotThrow();
  ask->addFnAttr(llvm::Attribute::NoInline);
  auto* may =
      new llvm::GlobalVariable(module_, b_.getInt8Ty(), /*isConstant=*/false,
                               llvm::GlobalValue::InternalLinkage, b_.getInt8(0), "tiles.granted");
  auto* entry = BasicBlock::Create(context_, "entry", ask);
  auto* first = BasicBlock::Create(context_, "first", ask);
  auto* again = BasicBlock::Create(context_, "again", ask);
  b_.SetInsertPoint(entry);
  // Two threads may both ask: the answer is the same.
  llvm::LoadInst* known = b_.CreateAlignedLoad(b_.getInt8Ty(), may, llvm::Align(1));
  known->setAtomic(llvm::AtomicOrdering::Monotonic);
  b_.CreateCondBr(b_.CreateIsNull(known), first, again);
  b_.SetInsertPoint(first);
  llvm::Type* word = b_.getInt64Ty();
  auto* call = llvm::InlineAsm::get(llvm::FunctionType::get(word, {word, word, word}, false),
                                    "syscall", "={rax},{rax},{rdi},{rsi},~{rcx},~{r11},~{memory}",
                                    /*hasSideEffects=*/true);
  Value* answer = b_.CreateCall(call, {b_.getInt64(isa::kArchPrctl), b_.getInt64(isa::kAskForState),
                                       b_.getInt64(isa::kTileState)});
  llvm::StoreInst* store = b_.CreateAlignedStore(
      b_.CreateZExt(b_.CreateIsNull(answer), b_.getInt8Ty()), may, llvm::Align(1));
  store->setAtomic(llvm::AtomicOrdering::Monotonic);
  b_.CreateRet(answer);
  b_.SetInsertPoint(again);
  b_.CreateRet(b_.getInt64(0));
  return ask;
}

// The function that is emitted has tiles: before all else it asks for them and configures them; others that it called
// may have configured them in another way, or given them back.
void Emitter::FinishTiles() {
  const std::vector<llvm::Instruction*> calls = std::exchange(parallel_calls_, {});
  if (!std::exchange(has_tiles_, false)) return;
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  BasicBlock* start = entry_end_->getSuccessor(0);
  BasicBlock* ask = NewBlock("ask");
  BasicBlock* refused = NewBlock("refused");
  BasicBlock* configure = NewBlock("configure");
  b_.SetInsertPoint(ask);
  b_.CreateCondBr(b_.CreateIsNull(b_.CreateCall(AskForTiles())), configure, refused);
  b_.SetInsertPoint(configure);
  ConfigureTiles();
  b_.CreateBr(start);
  entry_end_->setSuccessor(0, ask);
  for (llvm::Instruction* call : calls) {
    b_.SetInsertPoint(call->getNextNode());
    ConfigureTiles();
  }
  for (BasicBlock& block : *current_) {
    if (!llvm::isa_and_nonnull<llvm::ReturnInst>(block.getTerminator())) continue;
    b_.SetInsertPoint(block.getTerminator());
    b_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
  }
  b_.SetInsertPoint(refused);
  failures_.push_back(function_.name +
                      ": the system does not let this process use the processor's tiles (AMX)");
  b_.CreateRet(b_.getInt32(failures_.size()));
}

}  // namespace polynao::codegen
