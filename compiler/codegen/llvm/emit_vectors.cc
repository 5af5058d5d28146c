// Loops whose iterations run side by side, each in a lane of vectors.
//
// Every expression becomes either a scalar, if all lanes agree, or a vector. A load or store with a constant step from
// lane to lane goes to memory in whole vectors, and shuffles put the elements in their lanes; others gather. Conditions
// that differ from lane to lane become masks. A loop whose iterations can run twice ends with a vector that begins early,
// so that it needs no code for what is left over.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/status.h"
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
// What machines gather at least.
constexpr int64_t kWordBytes = 4;
// A run of fewer bytes does not go past the caches: each of its two ends, where a line is stored in part, takes an access to
// memory that nothing else overlaps with (some 0.1 us), as long as what 2 KB take that go past a cache instead of through it.
constexpr int64_t kFewestStreamed = 4096;
// Narrower vectors fill too little of a line.
constexpr int64_t kNarrowestStreamed = 16;
// So many iterations are emitted without a loop: LLVM then keeps local arrays in registers.
constexpr int64_t kMostUnrolled = 128;

llvm::FixedVectorType* VectorOf(llvm::Type* element, unsigned lanes) {
  return llvm::FixedVectorType::get(element, lanes);
}

std::optional<int64_t> ConstantOf(Value* value) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  if (constant == nullptr) return std::nullopt;
  return constant->getSExtValue();
}

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
  // Machines with vectors of 512 bits mask all types, those with 256 bits words.
  const bool has_masks =
      options_.vector_bytes >= 64 || (options_.vector_bytes >= 32 && loop.bytes >= kWordBytes);
  RETURN_IF_ERROR(has_masks ? EmitRest(s, lanes, begin, extent, min)
                            : EmitScalars(s, begin, extent, min));
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
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
    const int64_t fewest = bytes / ir::ByteSize(stream.store.buffer()->type);
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
  RETURN_IF_ERROR(EmitSideBySide(s, lanes, b_.CreateNSWAdd(min, at)));
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
  return stream;
}

absl::Status Emitter::EmitSideBySide(Stmt s, unsigned lanes, Value* first, Value* rest) {
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
    analyzer_.BindLoop(s.var(), s.min(), s.extent());
    status = EmitStmt(s.body());
    EmitWaiting();
  }
  lanes_ = nullptr;
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

void Emitter::NarrowIndices(Expr e, Value** a, Value** b) {
  const auto is_narrow = [&](Expr operand) {
    const arith::ConstRange range = analyzer_.Range(operand);
    return range.min >= std::numeric_limits<int32_t>::min() &&
           range.max <= std::numeric_limits<int32_t>::max();
  };
  if (!is_narrow(e.operand(0)) || !is_narrow(e.operand(1))) return;
  llvm::Type* narrow = VectorOf(b_.getInt32Ty(), lanes_->count);
  *a = b_.CreateTrunc(*a, narrow);
  *b = b_.CreateTrunc(*b, narrow);
}

// What `emit` makes is for the lanes where the condition is `truth`.
template <typename Emit>
auto Emitter::UnderMask(Value* condition, bool truth, Emit emit) {
  ScopedCache scope(this);
  Value* outer = lanes_->mask;
  Value* runs = truth ? condition : b_.CreateNot(condition);
  lanes_->mask = outer == nullptr ? runs : b_.CreateAnd(outer, runs);
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

// ---- memory -------------------------------------------------------------------------------------

bool Emitter::VariesByLane(Expr e) {
  bool varies = false;
  ir::ForEachExpr(e, [&](Expr part) {
    if (!part.Is(ExprKind::kVar)) return;
    const auto it = vars_.find(part);
    varies |= it != vars_.end() && IsVector(it->second.value);
  });
  return varies;
}

absl::StatusOr<Value*> Emitter::EmitFirst(const arith::LinearForm& form) {
  Value* sum = b_.getInt64(form.constant());
  for (const arith::LinearForm::Term& term : form.terms()) {
    Value* atom = lanes_->first;
    if (term.atom != lanes_->var) {
      ASSIGN_OR_RETURN(atom, EmitIndex(term.atom));
    }
    sum = b_.CreateNSWAdd(sum, b_.CreateNSWMul(atom, b_.getInt64(term.coefficient)));
  }
  return sum;
}

absl::StatusOr<Emitter::Place> Emitter::PlaceOf(Buffer buffer, absl::Span<const Expr> indices) {
  const BufferInfo info = buffers_.at(buffer);
  POLYNAO_CHECK(info.base != nullptr) << buffer->name << " is used outside its scope";
  llvm::Type* element = ops_.MemoryType(buffer->type);
  // The step in elements, as far as extents are constant.
  std::optional<int64_t> stride = 0;
  std::vector<arith::LinearForm> forms;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (d > 0 && stride && *stride != 0) {
      const std::optional<int64_t> extent = ConstantOf(info.extents[d]);
      int64_t product = 0;
      if (!extent || __builtin_mul_overflow(*stride, *extent, &product)) {
        stride.reset();
      } else {
        stride = product;
      }
    }
    forms.push_back(analyzer_.Form(indices[d]));
    std::optional<int64_t> slope = SlopeIn(forms.back(), lanes_->var);
    for (const arith::LinearForm::Term& term : forms.back().terms()) {
      if (term.atom != lanes_->var && VariesByLane(term.atom)) slope.reset();
    }
    if (!slope) stride.reset();
    if (stride) *stride += *slope;
  }
  Place place;
  place.stride = stride;
  place.indices = std::move(forms);
  Value* offset = nullptr;
  if (stride && std::abs(*stride) <= kMostStride) {
    for (size_t d = 0; d < indices.size(); ++d) {
      ASSIGN_OR_RETURN(Value * index, EmitFirst(place.indices[d]));
      offset = d == 0 ? index : b_.CreateNSWAdd(b_.CreateNSWMul(offset, info.extents[d]), index);
    }
    if (offset == nullptr) offset = b_.getInt64(0);
    place.first = b_.CreateInBoundsGEP(element, info.base, {offset});
    return place;
  }
  place.stride.reset();
  // An array of less than 2^31 elements has offsets of 32 bits, whatever their summands wrap around to.
  int64_t elements = 1;
  bool is_small = true;
  for (Value* extent : info.extents) {
    const std::optional<int64_t> constant = ConstantOf(extent);
    is_small &= constant && !__builtin_mul_overflow(elements, *constant, &elements) &&
                elements <= std::numeric_limits<int32_t>::max();
  }
  const auto narrow = [&](Value* value) {
    return is_small ? b_.CreateTrunc(value, ScalarOps::Like(value, b_.getInt32Ty())) : value;
  };
  for (size_t d = 0; d < indices.size(); ++d) {
    ASSIGN_OR_RETURN(Value * index, EmitIndex(indices[d]));
    index = narrow(index);
    if (d == 0) {
      offset = index;
      continue;
    }
    Value* extent = narrow(info.extents[d]);
    MakeAlike({&offset, &extent});
    offset = b_.CreateMul(offset, extent);
    MakeAlike({&offset, &index});
    offset = b_.CreateAdd(offset, index);
  }
  place.base = info.base;
  place.offsets = Splat(offset);
  return place;
}

Value* Emitter::LoadRun(Buffer buffer, Value* first, unsigned offset) {
  llvm::Type* element = ops_.MemoryType(buffer->type);
  Value* address = b_.CreateInBoundsGEP(element, first, {b_.getInt64(offset)});
  llvm::LoadInst* load = b_.CreateAlignedLoad(VectorOf(element, lanes_->count), address,
                                              AlignmentOf(buffer), buffer->name);
  MarkAccess(buffer, load);
  return load;
}

// The elements 0, stride, 2 stride ..: of vectors of neighbours, the last of which ends with the last element, so that
// nothing is read behind it.
Value* Emitter::LoadSteps(Buffer buffer, Value* first, int64_t stride) {
  const unsigned lanes = lanes_->count;
  const auto step = static_cast<unsigned>(stride);
  const unsigned length = step * (lanes - 1) + 1;
  const unsigned pieces = (length + lanes - 1) / lanes;
  std::vector<Value*> loads;
  std::vector<unsigned> starts;
  for (unsigned k = 0; k < pieces; ++k) {
    starts.push_back(k + 1 < pieces ? k * lanes : length - lanes);
    loads.push_back(LoadRun(buffer, first, starts.back()));
  }
  const auto piece_of = [&](unsigned lane) { return std::min(step * lane / lanes, pieces - 1); };
  // Two at a time, then the pairs' elements next to each other.
  Value* result = nullptr;
  for (unsigned k = 0; k < pieces; k += 2) {
    std::vector<int> mask(lanes, -1);
    for (unsigned i = 0; i < lanes; ++i) {
      const unsigned piece = piece_of(i);
      if (piece / 2 != k / 2) continue;
      mask[i] = static_cast<int>(step * i - starts[piece] + (piece - k) * lanes);
    }
    Value* second = k + 1 < pieces ? loads[k + 1] : llvm::PoisonValue::get(loads[k]->getType());
    Value* pair = b_.CreateShuffleVector(loads[k], second, mask);
    if (result == nullptr) {
      result = pair;
      continue;
    }
    std::vector<int> blend(lanes);
    for (unsigned i = 0; i < lanes; ++i) {
      blend[i] = static_cast<int>(piece_of(i) / 2 == k / 2 ? lanes + i : i);
    }
    result = b_.CreateShuffleVector(result, pair, blend);
  }
  return result;
}

// Whether all lanes may load and store these elements of a local array, whatever their masks: they exist, and no other thread
// uses them. Under masks LLVM would keep the array in memory.
bool Emitter::IsPrivate(Buffer buffer, absl::Span<const Expr> indices) {
  const BufferInfo& info = buffers_.at(buffer);
  auto* block = llvm::dyn_cast<llvm::AllocaInst>(info.base);
  if (block == nullptr || block->getFunction() != current_ || lanes_->rest != nullptr) return false;
  for (size_t d = 0; d < indices.size(); ++d) {
    const std::optional<int64_t> extent = ConstantOf(info.extents[d]);
    const arith::ConstRange range = analyzer_.Range(indices[d]);
    if (!extent || range.min < 0 || range.max >= *extent) return false;
  }
  return true;
}

// Machines gather elements of 32 bits and more. Narrower ones come in words that hold them, which begin early at the array's
// end; null if it is shorter than a word, or of unknown size.
Value* Emitter::GatherNarrow(Buffer buffer, const Place& place, Value* mask) {
  const int64_t size = ir::ByteSize(buffer->type);
  if (place.base == nullptr || size >= kWordBytes || options_.vector_bytes < 32) return nullptr;
  int64_t bytes = size;
  for (Value* extent : buffers_.at(buffer).extents) {
    const std::optional<int64_t> constant = ConstantOf(extent);
    if (!constant || __builtin_mul_overflow(bytes, *constant, &bytes)) return nullptr;
  }
  if (bytes < kWordBytes || bytes > std::numeric_limits<int32_t>::max()) return nullptr;
  llvm::Type* words = VectorOf(b_.getInt32Ty(), lanes_->count);
  const auto number = [&](int64_t value) { return llvm::ConstantInt::get(words, value); };
  Value* at = b_.CreateMul(b_.CreateTrunc(place.offsets, words), number(size));
  Value* begin = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, at, number(bytes - kWordBytes));
  Value* addresses = b_.CreateGEP(b_.getInt8Ty(), place.base, {begin});
  llvm::CallInst* load = b_.CreateMaskedGather(words, addresses, llvm::Align(1), mask,
                                               llvm::Constant::getNullValue(words), buffer->name);
  MarkAccess(buffer, load);
  Value* shift = b_.CreateShl(b_.CreateSub(at, begin), number(3));
  return b_.CreateTrunc(b_.CreateLShr(load, shift),
                        VectorOf(ops_.MemoryType(buffer->type), lanes_->count));
}

absl::StatusOr<Value*> Emitter::EmitVectorLoad(Expr e) {
  const Buffer buffer(e.buffer());
  EmitWaiting(buffer);
  const bool varies = std::any_of(e.operands().begin(), e.operands().end(),
                                  [&](Expr index) { return VariesByLane(index); });
  // Outside of conditions the first lane always runs.
  if (!varies && lanes_->mask == lanes_->rest) return EmitLoad(e);
  ASSIGN_OR_RETURN(const Place place, PlaceOf(buffer, e.operands()));
  llvm::Type* element = ops_.MemoryType(buffer->type);
  llvm::FixedVectorType* type = VectorOf(element, lanes_->count);
  const auto last = static_cast<int>(lanes_->count) - 1;
  Value* value = nullptr;
  if (place.stride && lanes_->mask == nullptr && *place.stride != 0) {
    const int64_t stride = *place.stride;
    Value* first = place.first;
    if (stride < 0) first = b_.CreateInBoundsGEP(element, first, {b_.getInt64(stride * last)});
    value = std::abs(stride) == 1 ? LoadRun(buffer, first, 0)
                                  : LoadSteps(buffer, first, std::abs(stride));
    if (stride < 0) value = b_.CreateVectorReverse(value);
  } else if (place.stride == 1 && IsPrivate(buffer, e.operands())) {
    value = LoadRun(buffer, place.first, 0);
  } else if (place.stride == 1) {
    llvm::CallInst* load = b_.CreateMaskedLoad(type, place.first, AlignmentOf(buffer), lanes_->mask,
                                               llvm::Constant::getNullValue(type), buffer->name);
    MarkAccess(buffer, load);
    value = load;
  } else {
    Value* base = place.base;
    Value* offsets = place.offsets;
    if (place.stride) {
      base = place.first;
      std::vector<llvm::Constant*> numbers;
      for (int i = 0; i <= last; ++i) {
        numbers.push_back(llvm::ConstantInt::getSigned(b_.getInt32Ty(), i * *place.stride));
      }
      offsets = llvm::ConstantVector::get(numbers);
    }
    Value* mask = lanes_->mask != nullptr ? lanes_->mask : Splat(b_.getTrue());
    if (Value* narrow = GatherNarrow(buffer, place, mask)) {
      return ops_.FromMemory(narrow, buffer->type);
    }
    Value* addresses = b_.CreateGEP(element, base, {offsets});
    llvm::CallInst* load = b_.CreateMaskedGather(type, addresses, AlignmentOf(buffer), mask,
                                                 llvm::Constant::getNullValue(type), buffer->name);
    MarkAccess(buffer, load);
    value = load;
  }
  return ops_.FromMemory(value, buffer->type);
}

absl::Status Emitter::EmitVectorStore(Stmt s) {
  const Buffer buffer = s.buffer();
  ScopedCache scope(this);
  ASSIGN_OR_RETURN(const Place place, PlaceOf(buffer, s.indices()));
  ASSIGN_OR_RETURN(Value * value, EmitValue(s.value()));
  value = ops_.ToMemory(Splat(value), buffer->type);
  POLYNAO_CHECK(place.stride && *place.stride != 0) << buffer->name;
  if (stream_.store && s == stream_.store) {
    const int64_t size = ir::ByteSize(buffer->type);
    Value* address = b_.CreatePtrToInt(place.first, b_.getInt64Ty());
    Value* offset = b_.CreateAnd(address, size * lanes_->count - 1);
    Value* behind = b_.CreateUDiv(offset, b_.getInt64(size * *place.stride));
    stream_.behind = b_.CreateSelect(stream_.can_align, behind, b_.getInt64(0));
    stream_.end = b_.CreateNSWSub(b_.getInt64(lanes_->count), stream_.behind);
  }
  const bool waits = lanes_->mask == nullptr && *place.stride > 1;
  if (!waits) EmitWaiting(buffer);
  if (*place.stride == 1) {
    Value* mask = lanes_->mask;
    if (mask != nullptr && IsPrivate(buffer, s.indices())) {
      value = b_.CreateSelect(mask, value, LoadRun(buffer, place.first, 0));
      mask = nullptr;
    }
    if (mask == nullptr) {
      StoreRun(buffer, value, place.first, 0, 1);
    } else {
      MarkAccess(buffer, b_.CreateMaskedStore(value, place.first, AlignmentOf(buffer), mask));
    }
    return absl::OkStatus();
  }
  WaitingStore store = {.buffer = buffer,
                        .indices = place.indices,
                        .stride = *place.stride,
                        .first = place.first,
                        .value = value};
  if (waits) {
    waiting_.push_back(std::move(store));
  } else {
    EmitScatter(store, lanes_->mask);
  }
  return absl::OkStatus();
}

void Emitter::EmitScatter(const WaitingStore& store, Value* mask) {
  std::vector<llvm::Constant*> numbers;
  for (unsigned i = 0; i < lanes_->count; ++i) {
    numbers.push_back(llvm::ConstantInt::getSigned(b_.getInt32Ty(), int64_t{i} * store.stride));
  }
  Value* addresses = b_.CreateGEP(ops_.MemoryType(store.buffer->type), store.first,
                                  {llvm::ConstantVector::get(numbers)});
  MarkAccess(store.buffer,
             b_.CreateMaskedScatter(store.value, addresses, AlignmentOf(store.buffer), mask));
}

void Emitter::EmitWaiting(Buffer buffer) {
  const bool waits = std::any_of(waiting_.begin(), waiting_.end(),
                                 [&](const WaitingStore& s) { return s.buffer == buffer; });
  if (waits) EmitWaiting();
}

// A[2 i] and A[2 i + 1], in any order.
void Emitter::EmitWaiting() {
  std::vector<WaitingStore> waiting = std::exchange(waiting_, {});
  const auto distance = [](const WaitingStore& a, const WaitingStore& b) -> std::optional<int64_t> {
    if (a.buffer != b.buffer || a.stride != b.stride) return std::nullopt;
    const size_t last = a.indices.size() - 1;
    for (size_t d = 0; d < last; ++d) {
      if (!(a.indices[d] == b.indices[d])) return std::nullopt;
    }
    arith::LinearForm difference = b.indices[last];
    if (!difference.Add(a.indices[last], -1) || !difference.IsConstant()) return std::nullopt;
    return difference.constant();
  };
  std::vector<bool> done(waiting.size(), false);
  for (size_t i = 0; i < waiting.size(); ++i) {
    // The stores behind waiting[i], by their distance; it is the first of its run if none is missing.
    const auto count = static_cast<size_t>(waiting[i].stride);
    std::vector<std::optional<size_t>> found(count);
    bool is_once = true;
    for (size_t j = 0; j < waiting.size(); ++j) {
      const std::optional<int64_t> at = distance(waiting[i], waiting[j]);
      if (!at || *at < 0 || *at >= waiting[i].stride) continue;
      is_once &= !found[static_cast<size_t>(*at)];
      found[static_cast<size_t>(*at)] = j;
    }
    std::vector<WaitingStore> run;
    for (const std::optional<size_t>& j : found) {
      if (j && !done[*j]) run.push_back(waiting[*j]);
    }
    if (!is_once || run.size() != count) continue;
    for (const std::optional<size_t>& j : found) done[*j] = true;
    EmitRun(run);
  }
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (!done[i]) EmitScatter(waiting[i], nullptr);
  }
}

void Emitter::EmitRun(absl::Span<const WaitingStore> stores) {
  const Buffer buffer = stores[0].buffer;
  llvm::Type* element = ops_.MemoryType(buffer->type);
  const unsigned lanes = lanes_->count;
  const auto step = static_cast<unsigned>(stores.size());
  for (unsigned k = 0; k < step; ++k) {
    // The elements k lanes .. of all of them, which lie in turn.
    Value* run = nullptr;
    for (unsigned first = 0; first < step; first += 2) {
      std::vector<int> mask(lanes, -1), blend(lanes);
      for (unsigned i = 0; i < lanes; ++i) {
        const unsigned place_in_all = k * lanes + i;
        const unsigned from = place_in_all % step;
        const bool is_here = from / 2 == first / 2;
        if (is_here) mask[i] = static_cast<int>(place_in_all / step + (from - first) * lanes);
        blend[i] = static_cast<int>(is_here ? lanes + i : i);
      }
      Value* value = stores[first].value;
      Value* second =
          first + 1 < step ? stores[first + 1].value : llvm::PoisonValue::get(value->getType());
      Value* pair = b_.CreateShuffleVector(value, second, mask);
      run = run == nullptr ? pair : b_.CreateShuffleVector(run, pair, blend);
    }
    Value* address =
        b_.CreateInBoundsGEP(element, stores[0].first, {b_.getInt64(int64_t{k} * lanes)});
    StoreRun(buffer, run, address, k * lanes, step);
  }
}

void Emitter::StoreRun(Buffer buffer, Value* value, Value* address, unsigned first,
                       unsigned stride) {
  if (!stream_.buffers.contains(buffer) || stream_.end == nullptr) {
    MarkAccess(buffer, b_.CreateAlignedStore(value, address, AlignmentOf(buffer)));
    return;
  }
  const unsigned lanes = lanes_->count;
  const int64_t size = ir::ByteSize(buffer->type) * lanes;
  Value* offset = b_.CreateAnd(b_.CreatePtrToInt(address, b_.getInt64Ty()), size - 1);
  Value* are_all = b_.CreateAnd(b_.CreateICmpEQ(stream_.begin, b_.getInt64(0)),
                                b_.CreateICmpEQ(stream_.end, b_.getInt64(lanes)));
  are_all = b_.CreateAnd(stream_.is_long, are_all);
  BasicBlock* whole = NewBlock("past_caches");
  BasicBlock* part = NewBlock("part");
  BasicBlock* stored = NewBlock("stored");
  b_.CreateCondBr(b_.CreateAnd(b_.CreateICmpEQ(offset, b_.getInt64(0)), are_all), whole, part);
  b_.SetInsertPoint(whole);
  llvm::StoreInst* store =
      b_.CreateAlignedStore(value, address, llvm::Align(static_cast<uint64_t>(size)));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(b_.getInt32(1))));
  MarkAccess(buffer, store);
  has_streamed_ = true;
  b_.CreateBr(stored);
  b_.SetInsertPoint(part);
  std::vector<llvm::Constant*> numbers;
  for (unsigned i = 0; i < lanes; ++i) numbers.push_back(b_.getInt32((first + i) / stride));
  Value* lane = llvm::ConstantVector::get(numbers);
  const auto all = [&](Value* bound) { return Splat(b_.CreateTrunc(bound, b_.getInt32Ty())); };
  Value* mask = b_.CreateAnd(b_.CreateICmpSGE(lane, all(stream_.begin)),
                             b_.CreateICmpSLT(lane, all(stream_.end)));
  MarkAccess(buffer, b_.CreateMaskedStore(value, address, AlignmentOf(buffer), mask));
  b_.CreateBr(stored);
  b_.SetInsertPoint(stored);
}

}  // namespace polynao::codegen
