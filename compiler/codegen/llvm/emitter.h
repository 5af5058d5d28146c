// The class that turns one function of loop IR into LLVM IR. Its parts: emit_module.cc (the function itself
// and its checks), emit_statements.cc (statements and memory), emit_expressions.cc, emit_vectors.cc (loops whose
// iterations run side by side), emit_vector_memory.cc (their loads and stores) and emit_tiles.cc (tiles of sums).
#ifndef COMPILER_CODEGEN_LLVM_EMITTER_H_
#define COMPILER_CODEGEN_LLVM_EMITTER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/arith/analyzer.h"
#include "compiler/codegen/llvm/dot_loop.h"
#include "compiler/codegen/llvm/emit_module.h"
#include "compiler/codegen/llvm/rows_ahead.h"
#include "compiler/codegen/llvm/scalar_ops.h"
#include "compiler/codegen/llvm/tile_loop.h"
#include "compiler/codegen/llvm/vector_loop.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/ir.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace polynao::codegen {

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
        ops_(b_, module_, options.native_half, options.native_fma),
        analyzer_(*function.context, kAnalyzerOptions) {}

  absl::Status Emit();

 private:
  // Where indices are and how loops run does not depend on what holds in conditions of selects: with these as facts,
  // loops whose bounds are minima of minima take a second to emit, and the same code comes out.
  static constexpr arith::AnalyzerOptions kAnalyzerOptions = {.max_nested_conditions = 0};

  // How an expression's value is used. An i32 or i64 in an index is computed as an i64 that does not
  // wrap; a condition compares such integers.
  enum class Want : uint8_t { kValue, kIndex, kCondition };

  // A buffer or variable in scope. It does not change, so that the body of a parallel loop can get a
  // copy.
  struct BufferInfo {
    llvm::Value* base = nullptr;
    std::vector<llvm::Value*> extents;  // i64
    llvm::MDNode* alias_scope = nullptr;
    llvm::MDNode* noalias = nullptr;
  };
  struct VarInfo {
    llvm::Value* value = nullptr;  // of the variable's own type
    llvm::Value* wide = nullptr;   // as an i64, for loop variables and lets that do not wrap
  };

  // ---- functions

  void MakeAliasScopes();
  // Finds the arrays that go past the caches.
  void FindStreams();
  void StartFunction(llvm::Function* f);
  void EmitReturn();
  llvm::BasicBlock* NewBlock(const char* name) {
    return llvm::BasicBlock::Create(context_, name, current_);
  }
  // The raw entry loads the function's arguments from two arrays and calls it.
  void EmitRawEntry();

  // ---- checks

  // Leaves the function with `code` (an i32) after freeing what is allocated, if `failed`.
  void LeaveIf(llvm::Value* failed, llvm::Value* code);
  void FailIf(llvm::Value* failed, std::string what);

  // ---- memory

  absl::Status EmitExtents(ir::Buffer buffer);
  void EmitFree(llvm::Value* block);
  absl::Status EmitAllocate(ir::Stmt s);
  // The address of buffer[indices], row-major.
  absl::StatusOr<llvm::Value*> ElementAddress(ir::Buffer buffer,
                                              absl::Span<const ir::Expr> indices);
  static llvm::Align AlignmentOf(ir::Buffer buffer) {
    return llvm::Align(ir::ByteSize(buffer->type));
  }
  static std::optional<int64_t> ConstantOf(llvm::Value* value) {
    auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
    if (constant == nullptr) return std::nullopt;
    return constant->getSExtValue();
  }
  // Of the array, if its extents are constants.
  std::optional<int64_t> BytesOf(ir::Buffer buffer) const;
  void MarkAccess(ir::Buffer buffer, llvm::Instruction* access);
  absl::Status EmitStore(ir::Stmt s);
  absl::StatusOr<llvm::Value*> EmitLoad(ir::Expr e);

  // ---- statements

  absl::Status EmitStmt(ir::Stmt s);
  // The arithmetic of a let wraps. If the ranges of the loop variables prove that it does not, it is
  // emitted like an index, so that LLVM sees which addresses computed from it differ by constants.
  absl::StatusOr<VarInfo> EmitLetValue(ir::Stmt s);
  absl::Status EmitIf(ir::Stmt s);
  // for (i64 k = begin; k < end; ++k) { variable = min + k; body }
  // With `emit_body`, what that emits is the body.
  absl::Status EmitCountedLoop(ir::Stmt s, llvm::Value* begin, llvm::Value* end, llvm::Value* min,
                               const std::function<absl::Status()>& emit_body = {});
  llvm::MDNode* LoopHints(ir::Stmt s);
  llvm::Metadata* LoopHint(const char* name, std::vector<llvm::Metadata*> values);
  llvm::MDNode* LoopNode(const std::vector<llvm::Metadata*>& rows);
  absl::Status EmitFor(ir::Stmt s);
  // The loop's body becomes a function of a range of iterations. It gets the values in scope in a
  // structure on the caller's stack; LLVM drops those that it does not use.
  absl::Status EmitParallelFor(ir::Stmt s);
  // How many threads the loop is given: one if it has little to do.
  absl::StatusOr<llvm::Value*> EmitThreads(ir::Stmt parallel_loop);

  // ---- tiles

  std::optional<TileLoop> FindTiles(ir::Stmt s);
  // With `from_zero`, the sums are zeros, whatever memory has.
  absl::Status EmitTileLoop(const TileLoop& loop, bool from_zero);
  absl::Status EmitTileProducts(const TileLoop& loop);
  absl::Status MoveTile(llvm::Intrinsic::ID move, int64_t tile, ir::Buffer buffer,
                        absl::Span<const ir::Expr> indices, int64_t pitch);
  void SetVar(ir::Var var, int64_t value);
  void ConfigureTiles();
  llvm::Function* AskForTiles();
  void FinishTiles();

  // ---- vectors

  // Iterations that run side by side: those of `var` from `first` on, one in each lane.
  struct Lanes {
    ir::Var var;
    unsigned count = 0;
    llvm::Value* first = nullptr;  // i64
    llvm::Value* rest = nullptr;   // those before the loop's end, if not all are; the first one is
    llvm::Value* mask = nullptr;   // of these, those that run, if not all do
  };
  // A vector loop of which stores go past the caches. The second vector begins where that of `store` is aligned, so
  // that it overlaps with the first one, and the last one with the one before. Of these two the lanes that others store
  // too stay out of memory: to store to a line that is on its way past the caches costs two accesses to memory.
  struct Stream {
    ir::Stmt store;
    absl::flat_hash_set<ir::Buffer> buffers;  // of which no element is stored twice in an iteration
    llvm::Value* is_long = nullptr;           // whether the run is long enough
    llvm::Value* can_align = nullptr;         // and this is its first vector
    llvm::Value* begin = nullptr;   // i64: the first lane that the vectors before have not stored
    llvm::Value* end = nullptr;     // i64: the lane behind the last that this one stores
    llvm::Value* behind = nullptr;  // i64: an aligned vector begins so many lanes earlier
  };
  // Where an access of all lanes goes: to elements from `first` on with steps of `stride`, or, without it, to
  // `offsets` from `base`.
  struct Place {
    llvm::Value* first = nullptr;
    std::optional<int64_t> stride = std::nullopt;
    llvm::Value* base = nullptr;
    llvm::Value* offsets = nullptr;
    std::vector<arith::LinearForm> indices;
  };

  // A store with steps, which others may fill the gaps of.
  struct WaitingStore {
    ir::Buffer buffer;
    std::vector<arith::LinearForm> indices;
    int64_t stride = 0;
    llvm::Value* first = nullptr;
    llvm::Value* value = nullptr;
  };

  // The loop as calls of the instruction's intrinsic.
  absl::Status EmitDotLoop(const DotLoop& loop);
  absl::Status EmitVectorLoop(ir::Stmt s, const VectorLoop& loop, llvm::Value* extent,
                              llvm::Value* min);
  // Iterations from `begin` to `end`, `lanes` at a time, which must be at least so many. If they can run twice, those
  // of the last vector do; otherwise they are a multiple.
  absl::Status EmitLanes(ir::Stmt s, unsigned lanes, bool can_run_twice, llvm::Value* begin,
                         llvm::Value* end, llvm::Value* min);
  // One iteration in each lane, from the loop variable's value `first` on.
  absl::Status EmitSideBySide(ir::Stmt s, unsigned lanes, llvm::Value* first,
                              llvm::Value* rest = nullptr, absl::Span<const RowAhead> ahead = {});
  // Fewer iterations than lanes, under a mask.
  absl::Status EmitRest(ir::Stmt s, unsigned lanes, llvm::Value* begin, llvm::Value* end,
                        llvm::Value* min);
  absl::Status EmitScalars(ir::Stmt s, llvm::Value* begin, llvm::Value* end, llvm::Value* min);
  // Machines gather words of at least this size.
  static constexpr int64_t kWordBytes = 4;
  static llvm::FixedVectorType* VectorOf(llvm::Type* element, unsigned lanes) {
    return llvm::FixedVectorType::get(element, lanes);
  }
  static bool IsVector(llvm::Value* value) { return value->getType()->isVectorTy(); }
  llvm::Value* Splat(llvm::Value* value);
  // Makes all of them vectors if one is.
  void MakeAlike(std::initializer_list<llvm::Value**> values);
  bool VariesByLane(ir::Expr e);
  absl::StatusOr<llvm::Value*> EmitFirst(const arith::LinearForm& form);
  Stream FindStream(ir::Stmt loop, unsigned lanes);
  // Whether the array is known to be larger than caches are.
  bool IsFar(ir::Buffer buffer) const {
    return BytesOf(buffer).value_or(0) >= options_.stream_bytes;
  }
  // Whether a loop reads much from the caches: of arrays of the function's own, or what iterations around have read.
  bool ReadsMuchAgain(ir::Stmt loop, unsigned lanes);
  // Of those that loops before have not asked for.
  std::vector<RowAhead> NewRowsAhead(ir::Stmt loop, unsigned lanes);
  // Asks for what is as far ahead of what all lanes read.
  absl::Status AskFor(const RowAhead& ahead);
  std::optional<int64_t> StepOfLanes(ir::Buffer buffer, absl::Span<const ir::Expr> indices);
  absl::StatusOr<Place> PlaceOf(ir::Buffer buffer, absl::Span<const ir::Expr> indices);
  absl::StatusOr<llvm::Value*> EmitVectorLoad(ir::Expr e);
  bool DoExist(ir::Buffer buffer, absl::Span<const ir::Expr> indices);
  bool IsPrivate(ir::Buffer buffer, absl::Span<const ir::Expr> indices);
  absl::StatusOr<llvm::Value*> PermuteRow(ir::Buffer buffer, absl::Span<const ir::Expr> indices);
  llvm::Value* Permute(absl::Span<llvm::Value* const> row, llvm::Value* numbers);
  llvm::Value* BinaryOfRows(ir::ExprKind kind, llvm::Value* a, llvm::Value* b);
  llvm::Value* LoadLanes(ir::Buffer buffer, const Place& place, llvm::Value* base,
                         llvm::Value* offsets, bool is_masked);
  llvm::Value* GatherNarrow(ir::Buffer buffer, const Place& place, llvm::Value* mask);
  llvm::Value* LoadRun(ir::Buffer buffer, llvm::Value* first, unsigned offset);
  llvm::Value* LoadSteps(ir::Buffer buffer, llvm::Value* first, int64_t stride);
  absl::Status EmitVectorStore(ir::Stmt s);
  // Emits the stores that wait; those that fill runs of elements together by whole vectors.
  void EmitWaiting();
  void EmitWaiting(ir::Buffer buffer);  // if one of them goes there
  void EmitRun(absl::Span<const WaitingStore> stores);
  // Neighbours, of which the first one is element `first` of what the lanes store, each of them `stride`.
  void StoreRun(ir::Buffer buffer, llvm::Value* value, llvm::Value* address, unsigned first,
                unsigned stride);
  // `mask`: null for all lanes.
  void EmitScatter(const WaitingStore& store, llvm::Value* mask);
  template <typename Emit>
  auto UnderMask(llvm::Value* condition, bool truth, Emit emit);
  absl::Status EmitMasked(llvm::Value* condition, bool truth, ir::Stmt s);
  absl::StatusOr<llvm::Value*> EmitMasked(llvm::Value* condition, bool truth, ir::Expr e,
                                          Want want);
  bool IsNarrow(ir::Expr index);
  // The two operands of `e`, vectors of i64, become vectors of i32 if their values fit; returns whether they do.
  bool NarrowIndices(ir::Expr e, llvm::Value** a, llvm::Value** b);

  // ---- expressions

  // Types whose arithmetic in indices, bounds and conditions never wraps.
  static bool IsMathematical(ir::Type type) {
    return type == ir::Type::kI32 || type == ir::Type::kI64;
  }
  using CacheKey = std::pair<ir::Expr, Want>;

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
  absl::StatusOr<llvm::Value*> EmitAlone(ir::Expr e, Want want);
  absl::StatusOr<llvm::Value*> EmitValue(ir::Expr e) { return EmitCached(e, Want::kValue); }
  // An integer as an i64.
  absl::StatusOr<llvm::Value*> EmitIndex(ir::Expr e) { return EmitCached(e, Want::kIndex); }
  absl::StatusOr<llvm::Value*> EmitCondition(ir::Expr e) { return EmitCached(e, Want::kCondition); }
  absl::StatusOr<llvm::Value*> EmitCached(ir::Expr e, Want want);
  llvm::Value* Widen(llvm::Value* value, ir::Type type);
  absl::StatusOr<llvm::Value*> EmitIndexUncached(ir::Expr e);
  absl::StatusOr<llvm::Value*> EmitConditionUncached(ir::Expr e);
  absl::StatusOr<llvm::Value*> EmitUncached(ir::Expr e);
  // Of sums, differences, products and quotients.
  llvm::FastMathFlags FloatFlags() const;
  llvm::Value* IntBinary(ir::Expr e, ir::Type type, llvm::Value* a, llvm::Value* b, bool wraps);
  absl::StatusOr<llvm::Value*> EmitCall(ir::Expr e);
  // A call of an extern function: of its meaning in this module, or of a symbol. A function without a
  // result gives a value that nothing uses.
  absl::StatusOr<llvm::Value*> EmitExternCall(ir::Expr e);

  // ---- conditional evaluation

  // The number of operations in `e` as a tree; more than kMaxSpeculatedOperations if it may trap or
  // calls a slow function.
  int SpeculationCost(ir::Expr e);
  bool IsSpeculatable(ir::Expr e);
  // `condition` ? `then_value` : `else_value` with branches; the two functions emit the values.
  template <typename Then, typename Else>
  absl::StatusOr<llvm::Value*> Branch(llvm::Value* condition, Then emit_then, Else emit_else);
  // Uses LLVM's `select` rather than and/or, because it ignores the operand that is not taken even if
  // that is poison (a nsw operation that overflowed).
  absl::StatusOr<llvm::Value*> EmitAndOr(ir::Expr e, Want want);
  absl::StatusOr<llvm::Value*> EmitSelect(ir::Expr e, Want want);

  Lanes* lanes_ = nullptr;  // null outside of vector loops
  // Of vectors of f32 whose lanes have elements of a row (PermuteRow), its vectors and the elements' numbers.
  struct PermutedRow {
    std::vector<llvm::Value*> row;
    llvm::Value* numbers = nullptr;
  };
  absl::flat_hash_map<llvm::Value*, PermutedRow> rows_;
  Stream stream_;                            // of the vector loop that is emitted
  std::vector<WaitingStore> waiting_;        // in the block that is emitted
  bool has_few_iterations_ = false;          // inside of pragma "few_iterations"
  absl::flat_hash_set<ir::Buffer> streams_;  // arrays that go past the caches
  std::vector<ir::Stmt> around_;             // loops around what is emitted, outermost first
  // Rows that are asked for in the body of the innermost of them: their array and first element.
  absl::flat_hash_set<std::pair<ir::Buffer, arith::LinearForm>> asked_;
  bool has_streamed_ = false;  // the function that is emitted has such stores
  bool has_tiles_ = false;     // and such sums
  std::vector<llvm::Instruction*>
      parallel_calls_;  // of parallel loops, in the function that is emitted
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
  llvm::BasicBlock* entry_ = nullptr;
  llvm::BranchInst* entry_end_ = nullptr;
  int64_t stack_used_ = 0;
  // This is true if buffers of the function may overlap, or be reached by other ways.
  bool may_overlap_ = false;
  bool calls_externs_ = false;
  bool in_parallel_ = false;
  std::vector<llvm::Value*> heap_;  // blocks to free when leaving early

  absl::flat_hash_map<ir::Expr, VarInfo> vars_;
  absl::flat_hash_map<ir::Buffer, BufferInfo> buffers_;
  absl::flat_hash_map<CacheKey, llvm::Value*> cache_;
  std::vector<CacheKey> log_;
  absl::flat_hash_map<ir::Expr, int> speculation_cost_;
};

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_EMITTER_H_
