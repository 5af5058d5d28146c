// Loops whose iterations run side by side, each in a lane of vectors.
//
// Every expression becomes either a scalar, if all lanes agree, or a vector. A load or store with a constant step from
// lane to lane goes to memory in whole vectors, and shuffles put the elements in their lanes; others permute or gather
// (emit_vector_memory.cc). Conditions that differ from lane to lane become masks. A loop whose iterations can run twice
// ends with a vector that begins early, so that it needs no code for what is left over.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/math.h"
#include "base/status.h"
#include "compiler/arith/order.h"
#include "compiler/codegen/llvm/emitter.h"
#include "compiler/ir/visit.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

namespace polynao::codegen {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using llvm::BasicBlock;
using llvm::Value;

namespace {

// A vector of fewer lanes is not worth its shuffles.
constexpr unsigned kFewestLanes = 2;
// A run of fewer bytes does not go past the caches: each of its two ends, where a line is stored in part, takes an
// access to memory that nothing else overlaps with (some 0.1 us), as long as what 2 KB take that go past a cache
// instead of through it.
constexpr int64_t kFewestStreamed = 4096;
// Narrower vectors fill too little of a line.
constexpr int64_t kNarrowestStreamed = 16;
// So many iterations are emitted without a loop: LLVM then keeps local arrays in registers.
constexpr int64_t kMostUnrolled = 128;
constexpr int64_t kLineBytes = 64;
// Lines from the second cache wait for the same buffers as stores that go past the caches do, which keep them longer: a
// loop that reads more than the nearest cache holds of what is in the second one stores through them.
constexpr int64_t kMostReadAgain = 64 << 10;

}  // namespace

// ---- loops --------------------------------------------------------------------------------------

absl::Status Emitter::EmitVectorLoop(Stmt s, const VectorLoop& loop, Value* extent, Value* min) {
  const bool can_run_twice = !loop.reads_what_it_stores;
  auto lanes = static_cast<unsigned>(std::max<int64_t>(options_.vector_bytes / loop.bytes, 1));
  if (const std::optional<int64_t> count = ConstantOf(extent)) {
    // What is left of whole vectors goes to smaller ones.
    int64_t done = 0;
    for (; lanes >= kFewestLanes && done < *count; lanes /= 2) {
      const int64_t left = *count - done;
      if (left < lanes) continue;
      const int64_t now = can_run_twice ? left : left / lanes * lanes;
      RETURN_IF_ERROR(
          EmitLanes(s, lanes, can_run_twice, b_.getInt64(done), b_.getInt64(done + now), min));
      done += now;
    }
    if (done == *count) return absl::OkStatus();
    return EmitScalars(s, b_.getInt64(done), extent, min);
  }
  if (lanes < kFewestLanes) return EmitCountedLoop(s, b_.getInt64(0), extent, min);
  BasicBlock* vectors = NewBlock("vectors");
  BasicBlock* rest = NewBlock("rest");
  BasicBlock* done = NewBlock("done");
  BasicBlock* before = b_.GetInsertBlock();
  b_.CreateCondBr(b_.CreateICmpSGE(extent, b_.getInt64(lanes)), vectors, rest);
  b_.SetInsertPoint(vectors);
  Value* whole = can_run_twice ? extent : b_.CreateAnd(extent, -static_cast<int64_t>(lanes));
  RETURN_IF_ERROR(EmitLanes(s, lanes, can_run_twice, b_.getInt64(0), whole, min));
  BasicBlock* after = b_.GetInsertBlock();
  b_.CreateBr(can_run_twice ? done : rest);
  b_.SetInsertPoint(rest);
  Value* begin = b_.getInt64(0);
  if (!can_run_twice) {
    llvm::PHINode* phi = b_.CreatePHI(b_.getInt64Ty(), 2);
    phi->addIncoming(begin, before);
    phi->addIncoming(whole, after);
    begin = phi;
  }
  // Machines with vectors of 512 bits mask all types, those with 256 bits words. Without gathers, what is no run of
  // words takes a branch for each lane.
  const bool has_masks =
      options_.vector_bytes >= 64 || (options_.vector_bytes >= 32 && loop.bytes >= kWordBytes &&
                                      (options_.has_gathers || loop.has_word_runs));
  RETURN_IF_ERROR(has_masks ? EmitRest(s, lanes, begin, extent, min)
                            : EmitScalars(s, begin, extent, min));
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  return absl::OkStatus();
}

absl::Status Emitter::EmitDotLoop(const DotLoop& loop) {
  const auto& [instruction, store, a, b, lane, q, first_q, iterations] = loop;
  EmitWaiting();
  const auto lanes = static_cast<unsigned>(instruction->lanes);
  llvm::FixedVectorType* vector = VectorOf(b_.getInt32Ty(), lanes);
  vars_[q] = {.value = b_.getInt64(first_q), .wide = b_.getInt64(first_q)};
  const llvm::Intrinsic::ID id = llvm::Function::lookupIntrinsicID(instruction->intrinsic);
  POLYNAO_CHECK(id != llvm::Intrinsic::not_intrinsic) << instruction->intrinsic;
  llvm::Function* function = llvm::Intrinsic::getDeclaration(&module_, id);
  for (int64_t at = 0; at < iterations; at += instruction->lanes) {
    ScopedCache scope(this);
    vars_[lane] = {.value = b_.getInt64(at), .wide = b_.getInt64(at)};
    const auto load = [&](Expr e, llvm::Type* type) -> absl::StatusOr<Value*> {
      const Buffer buffer(e.buffer());
      ASSIGN_OR_RETURN(Value * address, ElementAddress(buffer, e.operands()));
      llvm::LoadInst* value = b_.CreateAlignedLoad(type, address, AlignmentOf(buffer));
      MarkAccess(buffer, value);
      return value;
    };
    ASSIGN_OR_RETURN(Value * word, load(a, b_.getInt32Ty()));
    ASSIGN_OR_RETURN(Value * words, load(b, vector));
    ASSIGN_OR_RETURN(Value * address, ElementAddress(store.buffer(), store.indices()));
    // Of which types vectors of words are differs from version to version of LLVM.
    const llvm::FunctionType& types = *function->getFunctionType();
    const bool adds = types.getNumParams() == 3;
    const auto operand = [&](Value* value, unsigned i) {
      return b_.CreateBitCast(value, types.getParamType(adds ? i + 1 : i));
    };
    llvm::LoadInst* sums =
        b_.CreateAlignedLoad(function->getReturnType(), address, AlignmentOf(store.buffer()));
    MarkAccess(store.buffer(), sums);
    std::vector<Value*> operands = {operand(b_.CreateVectorSplat(lanes, word), 0),
                                    operand(words, 1)};
    if (adds) operands.insert(operands.begin(), sums);
    Value* result = b_.CreateCall(function, operands);
    if (!adds) result = b_.CreateAdd(sums, result);
    MarkAccess(store.buffer(), b_.CreateAlignedStore(result, address, AlignmentOf(store.buffer())));
  }
  vars_.erase(lane);
  vars_.erase(q);
  return absl::OkStatus();
}

absl::Status Emitter::EmitRest(Stmt s, unsigned lanes, Value* begin, Value* end, Value* min) {
  BasicBlock* some = NewBlock("some");
  BasicBlock* join = NewBlock("join");
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), some, join);
  b_.SetInsertPoint(some);
  std::vector<llvm::Constant*> numbers;
  for (unsigned i = 0; i < lanes; ++i) numbers.push_back(b_.getInt32(i));
  Value* left = b_.CreateTrunc(b_.CreateSub(end, begin), b_.getInt32Ty());
  Value* mask =
      b_.CreateICmpULT(llvm::ConstantVector::get(numbers), b_.CreateVectorSplat(lanes, left));
  RETURN_IF_ERROR(EmitSideBySide(s, lanes, b_.CreateNSWAdd(min, begin), mask));
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  return absl::OkStatus();
}

absl::Status Emitter::EmitScalars(Stmt s, Value* begin, Value* end, Value* min) {
  const bool had_few = std::exchange(has_few_iterations_, true);
  const absl::Status status = EmitCountedLoop(s, begin, end, min);
  has_few_iterations_ = had_few;
  return status;
}

absl::Status Emitter::EmitLanes(Stmt s, unsigned lanes, bool can_run_twice, Value* begin,
                                Value* end, Value* min) {
  const std::optional<int64_t> from = ConstantOf(begin), to = ConstantOf(end);
  Stream stream = can_run_twice ? FindStream(s, lanes) : Stream();
  const bool streams = static_cast<bool>(stream.store);
  if (from && to && *to - *from <= kMostUnrolled && !streams) {
    for (int64_t at = *from; at < *to; at += lanes) {
      RETURN_IF_ERROR(EmitSideBySide(
          s, lanes, b_.CreateNSWAdd(min, b_.getInt64(std::min<int64_t>(at, *to - lanes)))));
    }
    return absl::OkStatus();
  }
  if (streams) {
    const int64_t bytes = std::min(kFewestStreamed, options_.stream_bytes);
    const int64_t step = *SlopeIn(analyzer_.Form(stream.store.indices().back()), s.var());
    const int64_t fewest = CeilDiv(bytes, step * ir::ByteSize(stream.store.buffer()->type));
    stream.is_long = b_.CreateICmpSGE(b_.CreateNSWSub(end, begin), b_.getInt64(fewest));
  }
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* loop = NewBlock("lanes");
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* counter = b_.CreatePHI(b_.getInt64Ty(), 2);
  counter->addIncoming(begin, before);
  Value* at = counter;
  if (can_run_twice && (streams || !(from && to && (*to - *from) % lanes == 0))) {
    Value* last = b_.CreateNSWSub(end, b_.getInt64(lanes));
    at = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, counter, last);
  }
  if (streams) {
    stream.can_align = b_.CreateAnd(b_.CreateICmpEQ(counter, begin), stream.is_long);
    stream.begin = b_.CreateNSWSub(counter, at);
    stream_ = std::move(stream);
  }
  RETURN_IF_ERROR(
      EmitSideBySide(s, lanes, b_.CreateNSWAdd(min, at), nullptr, NewRowsAhead(s, lanes)));
  Value* next = b_.CreateNSWAdd(counter, b_.getInt64(lanes));
  if (streams) next = b_.CreateNSWSub(next, stream_.behind);
  stream_ = {};
  counter->addIncoming(next, b_.GetInsertBlock());
  BasicBlock* done = NewBlock("done");
  llvm::BranchInst* back = b_.CreateCondBr(b_.CreateICmpSLT(next, end), loop, done);
  llvm::Metadata* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
  back->setMetadata(llvm::LLVMContext::MD_loop,
                    LoopNode({nullptr, LoopHint("llvm.loop.isvectorized", {one}),
                              LoopHint("llvm.loop.unroll.disable", {})}));
  b_.SetInsertPoint(done);
  return absl::OkStatus();
}

Emitter::Stream Emitter::FindStream(Stmt loop, unsigned lanes) {
  // Each iteration runs these once.
  std::vector<Stmt> always, left = {loop.body()};
  while (!left.empty()) {
    const Stmt s = left.back();
    left.pop_back();
    if (s.Is(StmtKind::kStore)) always.push_back(s);
    if (s.Is(StmtKind::kLet) || s.Is(StmtKind::kPragma)) left.push_back(s.body());
    if (s.Is(StmtKind::kSeq)) left.insert(left.end(), s.children().rbegin(), s.children().rend());
  }
  absl::flat_hash_map<Buffer, int64_t> stores;
  ir::ForEachStmt(loop.body(), [&](Stmt s) {
    if (s.Is(StmtKind::kStore)) ++stores[s.buffer()];
    return true;
  });
  Stream stream;
  for (const Stmt s : always) {
    const int64_t size = ir::ByteSize(s.buffer()->type);
    const bool has_masks =
        options_.vector_bytes >= 64 || (options_.vector_bytes >= 32 && size >= kWordBytes);
    if (!streams_.contains(s.buffer()) || !has_masks || size * lanes < kNarrowestStreamed) continue;
    const std::optional<int64_t> stride = SlopeIn(analyzer_.Form(s.indices().back()), loop.var());
    const bool can_align = stride && (*stride == 1 || *stride == 2 || *stride == 4);
    const int64_t count = std::count_if(always.begin(), always.end(),
                                        [&](Stmt t) { return t.buffer() == s.buffer(); });
    if (!can_align || count != *stride || count != stores[s.buffer()]) continue;
    stream.buffers.insert(s.buffer());
    if (!stream.store) stream.store = s;
  }
  if (stream.store && ReadsMuchAgain(loop, lanes)) return {};
  return stream;
}

std::vector<RowAhead> Emitter::NewRowsAhead(Stmt loop, unsigned lanes) {
  if (options_.stream_bytes <= 0) return {};
  const auto is_far = [&](Buffer buffer) { return IsFar(buffer); };
  std::vector<RowAhead> rows =
      RowsAhead(RowsOf(loop, lanes, is_far, analyzer_), loop, lanes, around_);
  std::erase_if(rows, [&](const RowAhead& ahead) {
    bool is_ready = true;  // its place needs nothing that the body computes first
    for (const Expr index : ahead.row.load.operands()) {
      ir::ForEachExpr(index, [&](Expr part) {
        is_ready &= !part.Is(ExprKind::kLoad) && part.callee() == nullptr;
        is_ready &= !part.Is(ExprKind::kVar) || part == loop.var() || vars_.contains(part);
      });
    }
    return !is_ready || !asked_.emplace(ahead.row.buffer(), ahead.first).second;
  });
  return rows;
}

absl::Status Emitter::AskFor(const RowAhead& ahead) {
  const Buffer buffer = ahead.row.buffer();
  const int64_t size = ir::ByteSize(buffer->type);
  ASSIGN_OR_RETURN(const Place place, PlaceOf(buffer, ahead.row.load.operands()));
  if (place.first == nullptr) return absl::OkStatus();
  for (int64_t at = 0; at < lanes_->count * ahead.row.step * size; at += kLineBytes) {
    // There may be nothing at this address.
    Value* address =
        b_.CreateGEP(b_.getInt8Ty(), place.first, {b_.getInt64(ahead.elements * size + at)});
    Value* to_read = b_.getInt32(0);
    Value* into_second_cache = b_.getInt32(2);
    Value* is_data = b_.getInt32(1);
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {address->getType()},
                       {address, to_read, into_second_cache, is_data});
  }
  return absl::OkStatus();
}

bool Emitter::ReadsMuchAgain(Stmt loop, unsigned lanes) {
  if (!loop.extent().Is(ExprKind::kIntImm)) return false;
  const auto is_own = [&](Buffer buffer) {
    const auto is_it = [&](const ir::Param& param) { return param.buffer == buffer; };
    return !IsFar(buffer) && BytesOf(buffer) &&
           std::none_of(function_.params.begin(), function_.params.end(), is_it);
  };
  const auto is_other = [&](Buffer buffer) { return !is_own(buffer); };
  std::vector<Row> again = RowsAgain(RowsOf(loop, lanes, is_other, analyzer_), lanes, around_);
  for (Row& row : RowsOf(loop, lanes, is_own, analyzer_)) again.push_back(std::move(row));
  const int64_t count = std::min(loop.extent().int_value(), kMostReadAgain);
  int64_t bytes = 0;
  for (const Row& row : again) bytes += count * row.step * ir::ByteSize(row.buffer()->type);
  return bytes > kMostReadAgain;
}

absl::Status Emitter::EmitSideBySide(Stmt s, unsigned lanes, Value* first, Value* rest,
                                     absl::Span<const RowAhead> ahead) {
  Lanes side_by_side{.var = s.var(), .count = lanes, .first = first, .rest = rest, .mask = rest};
  std::vector<llvm::Constant*> numbers;
  for (unsigned i = 0; i < lanes; ++i) numbers.push_back(b_.getInt64(i));
  Value* wide =
      b_.CreateNSWAdd(b_.CreateVectorSplat(lanes, first), llvm::ConstantVector::get(numbers));
  Value* value = b_.CreateTrunc(wide, VectorOf(ops_.ValueType(s.var().type()), lanes));
  vars_[s.var()] = {.value = value, .wide = wide};
  lanes_ = &side_by_side;
  absl::Status status = absl::OkStatus();
  {
    arith::Analyzer::Scope scope(analyzer_);
    // As FindVectorLoop did, which asked where accesses go.
    arith::BindLoopWithParts(analyzer_, s);
    for (const RowAhead& row : ahead) status.Update(AskFor(row));
    if (status.ok()) status = EmitStmt(s.body());
    EmitWaiting();
  }
  lanes_ = nullptr;
  rows_.clear();
  vars_.erase(s.var());
  return status;
}

// ---- values -------------------------------------------------------------------------------------

Value* Emitter::Splat(Value* value) {
  return IsVector(value) ? value : b_.CreateVectorSplat(lanes_->count, value);
}

void Emitter::MakeAlike(std::initializer_list<Value**> values) {
  if (lanes_ == nullptr) return;
  const bool has_vector =
      std::any_of(values.begin(), values.end(), [](Value** v) { return IsVector(*v); });
  for (Value** value : values) {
    if (has_vector) *value = Splat(*value);
  }
}

bool Emitter::IsNarrow(Expr index) {
  const arith::ConstRange range = analyzer_.Range(index);
  return range.min >= std::numeric_limits<int32_t>::min() &&
         range.max <= std::numeric_limits<int32_t>::max();
}

bool Emitter::NarrowIndices(Expr e, Value** a, Value** b) {
  if (!IsNarrow(e.operand(0)) || !IsNarrow(e.operand(1))) return false;
  llvm::Type* narrow = VectorOf(b_.getInt32Ty(), lanes_->count);
  *a = b_.CreateTrunc(*a, narrow);
  *b = b_.CreateTrunc(*b, narrow);
  return true;
}

// What `emit` makes is for the lanes where the condition is `truth`.
template <typename Emit>
auto Emitter::UnderMask(Value* condition, bool truth, Emit emit) {
  ScopedCache scope(this);
  Value* outer = lanes_->mask;
  Value* runs = truth ? condition : b_.CreateNot(condition);
  // In a lane that does not run the condition may be poison: its iteration is none of the loop's.
  lanes_->mask = outer == nullptr ? runs : b_.CreateLogicalAnd(outer, runs);
  auto result = emit();
  lanes_->mask = outer;
  return result;
}

absl::StatusOr<Value*> Emitter::EmitMasked(Value* condition, bool truth, Expr e, Want want) {
  return UnderMask(condition, truth, [&] { return EmitCached(e, want); });
}

absl::Status Emitter::EmitMasked(Value* condition, bool truth, Stmt s) {
  return UnderMask(condition, truth, [&] { return EmitStmt(s); });
}

}  // namespace polynao::codegen
