// Loads and stores of vector loops (emit_vectors.cc): where the elements of all lanes are, and how they come from there
// and go there.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "compiler/codegen/llvm/emitter.h"
#include "compiler/codegen/llvm/lane_loads.h"
#include "compiler/codegen/llvm/meaning.h"
#include "compiler/ir/visit.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

namespace polynao::codegen {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using llvm::BasicBlock;
using llvm::Value;

bool Emitter::VariesByLane(Expr e) {
  bool varies = false;
  ir::ForEachExpr(e, [&](Expr part) {
    // EmitVectorLoad loads for each lane under a condition.
    if (part.Is(ExprKind::kLoad)) varies |= lanes_->mask != lanes_->rest;
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

std::optional<int64_t> Emitter::StepOfLanes(Buffer buffer, absl::Span<const Expr> indices) {
  const std::optional<arith::LinearForm> number = NumberOf(buffer, indices, analyzer_);
  if (!number) return std::nullopt;
  for (const arith::LinearForm::Term& term : number->terms()) {
    if (term.atom != lanes_->var && VariesByLane(term.atom)) return std::nullopt;
  }
  return SlopeIn(*number, lanes_->var);
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
  if (!stride) {
    // Quotients and remainders of one number, as in A[i / 3, i % 3], may cancel out.
    const std::optional<int64_t> step = StepOfLanes(buffer, indices);
    if (step && *step != 0 && std::abs(*step) <= kMostStride) {
      place.stride = step;
      place.indices = std::move(forms);
      Value* number = b_.getInt64(0);
      for (size_t d = 0; d < indices.size(); ++d) {
        ASSIGN_OR_RETURN(Value * index, EmitIndex(indices[d]));
        if (IsVector(index)) index = b_.CreateExtractElement(index, b_.getInt64(0));
        number = b_.CreateNSWAdd(b_.CreateNSWMul(number, info.extents[d]), index);
      }
      place.first = b_.CreateInBoundsGEP(element, info.base, {number});
      return place;
    }
  }
  place.stride = stride;
  place.indices = std::move(forms);
  Value* offset = nullptr;
  if (stride && std::abs(*stride) <= kMostStride) {
    const std::optional<arith::LinearForm> number = NumberOf(buffer, indices, analyzer_);
    if (number && !llvm::isa<llvm::Constant>(lanes_->first) &&
        SlopeIn(*number, lanes_->var) == stride) {
      // In this order all that stays the same in the loop, and then what accesses of one row share, is computed once;
      // constants become part of the instruction. Parts of the sum may wrap around where the element's number does not.
      Value* row = b_.getInt64(0);
      for (const arith::LinearForm::Term& term : number->terms()) {
        if (term.atom == lanes_->var) continue;
        ASSIGN_OR_RETURN(Value * atom, EmitIndex(term.atom));
        row = b_.CreateAdd(row, b_.CreateMul(atom, b_.getInt64(term.coefficient)));
      }
      Value* lane = b_.CreateMul(lanes_->first, b_.getInt64(*stride));
      place.first = info.base;
      for (Value* index : {row, lane, static_cast<Value*>(b_.getInt64(number->constant()))}) {
        place.first = b_.CreateGEP(element, place.first, {index});
      }
      return place;
    }
    for (size_t d = 0; d < indices.size(); ++d) {
      ASSIGN_OR_RETURN(Value * index, EmitFirst(place.indices[d]));
      offset = d == 0 ? index : b_.CreateNSWAdd(b_.CreateNSWMul(offset, info.extents[d]), index);
    }
    if (offset == nullptr) offset = b_.getInt64(0);
    place.first = b_.CreateInBoundsGEP(element, info.base, {offset});
    return place;
  }
  place.stride.reset();
  // An array of less than 2^31 bytes has offsets of 32 bits, whatever their summands wrap around to.
  const bool is_small = BytesOf(buffer).value_or(std::numeric_limits<int64_t>::max()) <=
                        std::numeric_limits<int32_t>::max();
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

// Whether the elements of all lanes exist, whatever their masks, so that all of them may load: what a lane gets that
// does not run is not used, even if another thread stores it meanwhile. Plain loads cost less than those under a mask,
// which machines do not have for all types.
bool Emitter::DoExist(Buffer buffer, absl::Span<const Expr> indices) {
  if (lanes_->rest != nullptr) return false;
  const BufferInfo& info = buffers_.at(buffer);
  for (size_t d = 0; d < indices.size(); ++d) {
    const std::optional<int64_t> extent = ConstantOf(info.extents[d]);
    const arith::ConstRange range =
        arith::Intersect(analyzer_.Range(indices[d]), analyzer_.Range(analyzer_.Form(indices[d])));
    if (!extent || range.min < 0 || range.max >= *extent) return false;
    // Where a lane does not run, an index that overflows is nothing.
    if (analyzer_.CanOverflow(indices[d])) return false;
  }
  return true;
}

// Whether these elements exist and are of a local array, so that all lanes may also store them: no other thread uses
// them. Under masks LLVM would keep the array in memory.
bool Emitter::IsPrivate(Buffer buffer, absl::Span<const Expr> indices) {
  auto* block = llvm::dyn_cast<llvm::AllocaInst>(buffers_.at(buffer).base);
  return block != nullptr && block->getFunction() == current_ && DoExist(buffer, indices);
}

// Machines gather elements of 32 bits and more. Narrower ones come in words that hold them, which begin early at the
// array's end; null if it is shorter than a word, or of unknown size.
Value* Emitter::GatherNarrow(Buffer buffer, const Place& place, Value* mask) {
  const int64_t size = ir::ByteSize(buffer->type);
  if (place.base == nullptr || size >= kWordBytes || !options_.has_gathers) return nullptr;
  const int64_t bytes = BytesOf(buffer).value_or(0);
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

// Each lane's element, base[offset], by a load of its own, where no instruction gathers them. Lanes that do not run
// load the first element: the array's or, behind a loop's end, that of the first lane. Null if it may not exist.
Value* Emitter::LoadLanes(Buffer buffer, const Place& place, Value* base, Value* offsets,
                          bool is_masked) {
  if (options_.has_gathers || place.stride.value_or(0) < 0) return nullptr;
  if (is_masked) {
    const bool has_first =
        place.stride ? lanes_->mask == lanes_->rest : BytesOf(buffer).value_or(0) > 0;
    if (!has_first) return nullptr;
    offsets =
        b_.CreateSelect(lanes_->mask, offsets, llvm::Constant::getNullValue(offsets->getType()));
  }
  llvm::CallInst* loads = CreateLaneLoads(b_, ops_.MemoryType(buffer->type), base, offsets);
  MarkAccess(buffer, loads);
  return loads;
}

absl::StatusOr<Value*> Emitter::EmitVectorLoad(Expr e) {
  const Buffer buffer(e.buffer());
  EmitWaiting(buffer);
  const bool varies = std::any_of(e.operands().begin(), e.operands().end(),
                                  [&](Expr index) { return VariesByLane(index); });
  const bool is_masked = lanes_->mask != nullptr && !DoExist(buffer, e.operands());
  // Outside of conditions the first lane always runs.
  if (!varies && (!is_masked || lanes_->mask == lanes_->rest)) return EmitLoad(e);
  ASSIGN_OR_RETURN(const Place place, PlaceOf(buffer, e.operands()));
  llvm::Type* element = ops_.MemoryType(buffer->type);
  llvm::FixedVectorType* type = VectorOf(element, lanes_->count);
  const auto last = static_cast<int>(lanes_->count) - 1;
  Value* value = nullptr;
  if (place.stride && !is_masked && *place.stride != 0) {
    const int64_t stride = *place.stride;
    Value* first = place.first;
    if (stride < 0) first = b_.CreateInBoundsGEP(element, first, {b_.getInt64(stride * last)});
    value = std::abs(stride) == 1 ? LoadRun(buffer, first, 0)
                                  : LoadSteps(buffer, first, std::abs(stride));
    if (stride < 0) value = b_.CreateVectorReverse(value);
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
    if (!place.stride) {
      ASSIGN_OR_RETURN(Value * permuted, PermuteRow(buffer, e.operands()));
      if (permuted != nullptr) return ops_.FromMemory(permuted, buffer->type);
    }
    if (Value* loads = LoadLanes(buffer, place, base, offsets, is_masked)) {
      return ops_.FromMemory(loads, buffer->type);
    }
    Value* mask = is_masked ? lanes_->mask : Splat(b_.getTrue());
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
