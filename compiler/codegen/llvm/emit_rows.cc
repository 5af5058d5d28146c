// Vectors whose lanes take elements of one short row (emit_vector_memory.cc): the row is loaded and permuted, and what
// is computed of such rows is computed before it is permuted.
#include <algorithm>
#include <numeric>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/llvm/emitter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace polynao::codegen {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using llvm::Value;

// Where each lane takes an element of one row, so short that two vectors of words hold it, the row is loaded and
// permuted: a gather takes as long as a load for each lane. Null if the load is none of these.
absl::StatusOr<Value*> Emitter::PermuteRow(Buffer buffer, absl::Span<const Expr> indices) {
  const int64_t words = options_.vector_bytes / kWordBytes;
  const BufferInfo& info = buffers_.at(buffer);
  // No other machine of vectors of 256 bits and more than x86 is emitted for.
  if (options_.vector_bytes < 32 || ir::ByteSize(buffer->type) > kWordBytes ||
      lanes_->count > words || indices.empty() || lanes_->mask != lanes_->rest) {
    return nullptr;
  }
  const std::optional<int64_t> length = ConstantOf(info.extents[indices.size() - 1]);
  const bool is_row = std::none_of(indices.begin(), indices.end() - 1,
                                   [&](Expr index) { return VariesByLane(index); });
  if (!length || *length < 1 || *length > 2 * words || !is_row) return nullptr;
  Value* number = b_.getInt64(0);
  for (size_t d = 0; d < indices.size(); ++d) {
    number = b_.CreateNSWMul(number, info.extents[d]);
    if (d + 1 == indices.size()) break;
    ASSIGN_OR_RETURN(Value * index, EmitIndex(indices[d]));
    number = b_.CreateNSWAdd(number, index);
  }
  ASSIGN_OR_RETURN(Value * numbers, EmitIndex(indices.back()));
  const auto count = static_cast<unsigned>(words);
  llvm::Type* element = ops_.MemoryType(buffer->type);
  llvm::FixedVectorType* type = VectorOf(element, count);
  std::vector<Value*> row;
  for (int64_t first = 0; first < *length; first += words) {
    std::vector<llvm::Constant*> is_there;
    for (int64_t i = 0; i < words; ++i) is_there.push_back(b_.getInt1(first + i < *length));
    Value* address =
        b_.CreateInBoundsGEP(element, info.base, {b_.CreateNSWAdd(number, b_.getInt64(first))});
    llvm::CallInst* load =
        b_.CreateMaskedLoad(type, address, AlignmentOf(buffer), llvm::ConstantVector::get(is_there),
                            llvm::Constant::getNullValue(type), buffer->name);
    MarkAccess(buffer, load);
    row.push_back(load);
  }
  Value* value = Permute(row, numbers);
  if (buffer->type == ir::Type::kF32) rows_[value] = {.row = row, .numbers = numbers};
  return value;
}

// The elements of `row`, one or two vectors of words or narrower elements, with the lanes' numbers.
Value* Emitter::Permute(absl::Span<Value* const> row, Value* numbers) {
  auto* type = llvm::cast<llvm::FixedVectorType>(row[0]->getType());
  const unsigned count = type->getNumElements();
  std::vector<int> own(lanes_->count);
  std::iota(own.begin(), own.end(), 0);
  std::vector<int> widened = own;
  widened.resize(count, -1);
  llvm::FixedVectorType* words = VectorOf(b_.getInt32Ty(), count);
  Value* index = b_.CreateShuffleVector(
      b_.CreateTrunc(Splat(numbers), VectorOf(b_.getInt32Ty(), lanes_->count)), widened);
  const auto bits = static_cast<unsigned>(type->getScalarSizeInBits());
  const auto part = [&](size_t i) {
    return b_.CreateZExt(b_.CreateBitCast(row[i], VectorOf(b_.getIntNTy(bits), count)), words);
  };
  const bool is_wide = options_.vector_bytes >= 64;
  const auto permute = [&](Value* from) -> Value* {
    const auto id =
        is_wide ? llvm::Intrinsic::x86_avx512_permvar_si_512 : llvm::Intrinsic::x86_avx2_permd;
    return b_.CreateIntrinsic(id, {}, {from, index});
  };
  Value* value = nullptr;
  if (row.size() == 1) {
    value = permute(part(0));
  } else if (is_wide) {
    value = b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_d_512, {},
                               {part(0), index, part(1)});
  } else {
    Value* is_first = b_.CreateICmpULT(index, llvm::ConstantInt::get(words, count));
    value = b_.CreateSelect(is_first, permute(part(0)), permute(part(1)));
  }
  value = b_.CreateShuffleVector(value, own);
  value = b_.CreateTrunc(value, VectorOf(b_.getIntNTy(bits), lanes_->count));
  return b_.CreateBitCast(value, VectorOf(type->getElementType(), lanes_->count));
}

// What is computed of elements of rows with the same numbers, and of values that all lanes share, is the element of a
// row that is computed so: f(A[n], B[n], s) = C[n], C = f(A, B, s). Two permutations become one. Null if there is no
// such row.
Value* Emitter::BinaryOfRows(ExprKind kind, Value* a, Value* b) {
  const auto x = rows_.find(a), y = rows_.find(b);
  const bool is_cheap = kind == ExprKind::kAdd || kind == ExprKind::kSub ||
                        kind == ExprKind::kMul || kind == ExprKind::kMin || kind == ExprKind::kMax;
  if (!is_cheap || (x == rows_.end() && y == rows_.end())) return nullptr;
  const auto combine = [&, flags = b_.getFastMathFlags()](const std::vector<Value*>& of_a,
                                                          const std::vector<Value*>& of_b) {
    llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
    b_.setFastMathFlags(flags);
    std::vector<Value*> row;
    for (size_t i = 0; i < std::max(of_a.size(), of_b.size()); ++i) {
      const auto operand = [&](const std::vector<Value*>& own, const std::vector<Value*>& other,
                               Value* shared) {
        if (!own.empty()) return own[i];
        auto* type = llvm::cast<llvm::FixedVectorType>(other[i]->getType());
        return b_.CreateVectorSplat(type->getNumElements(), shared);
      };
      row.push_back(
          ops_.FloatBinary(kind, ir::Type::kF32, operand(of_a, of_b, a), operand(of_b, of_a, b)));
    }
    return row;
  };
  if (x != rows_.end() && y != rows_.end()) {
    const PermutedRow left = x->second, right = y->second;
    if (left.numbers != right.numbers || left.row.size() != right.row.size()) return nullptr;
    const std::vector<Value*> row = combine(left.row, right.row);
    Value* value = Permute(row, left.numbers);
    rows_[value] = {.row = row, .numbers = left.numbers};
    return value;
  }
  // As cheap without the row, which is there for what combines it with another one; LLVM drops it otherwise.
  const PermutedRow row = x != rows_.end() ? x->second : y->second;
  Value* shared = x != rows_.end() ? b : a;
  if (IsVector(shared)) return nullptr;
  Value* left = a;
  Value* right = b;
  MakeAlike({&left, &right});
  Value* value = ops_.FloatBinary(kind, ir::Type::kF32, left, right);
  rows_[value] = {.row = x != rows_.end() ? combine(row.row, {}) : combine({}, row.row),
                  .numbers = row.numbers};
  return value;
}

}  // namespace polynao::codegen
