// The bytes that each statement of a function reads and writes.
#ifndef COMPILER_PASSES_FOOTPRINTS_H_
#define COMPILER_PASSES_FOOTPRINTS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/variable_ranges.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/byte_set.h"
#include "compiler/passes/storage.h"
#include "compiler/target/target.h"

namespace polynao {

// The loops, lets and branches around a statement, outermost first; of a branch also which side.
using EnclosingStmts = std::vector<std::pair<ir::Stmt, bool>>;

// A run of bytes whose place depends on variables: [begin, end) in memory range.memory. Whatever the
// variables are, it lies inside `range`.
struct VariableBytes {
  ByteRange range;
  bool is_write = false;
  arith::LinearForm begin;
  arith::LinearForm end;
  int id = 0;
  EnclosingStmts enclosing;
};

// Bytes that somebody reads and writes.
struct Accesses {
  ByteSet reads;
  ByteSet writes;
  // Further bytes, at the values that the variables had when they were accessed. Ordered by id.
  std::vector<const VariableBytes*> variable = {};

  bool operator==(const Accesses&) const = default;
  bool IsEmpty() const { return *this == Accesses(); }
  void Add(const Accesses& other);
  void Add(ByteRange range, bool is_write) { (is_write ? writes : reads).Add(range); }
  // The variables get other values, as in the next iteration of a loop: variable bytes may then lie
  // anywhere in their ranges.
  void ForgetVariables();
  // The part in memories for which wanted(memory) holds, with variable bytes anywhere in their ranges.
  template <typename Wanted>
  Accesses In(const Wanted& wanted) const {
    Accesses result;
    reads.ForEach([&](ByteRange r) {
      if (wanted(r.memory)) result.reads.Add(r);
    });
    writes.ForEach([&](ByteRange r) {
      if (wanted(r.memory)) result.writes.Add(r);
    });
    for (const VariableBytes* bytes : variable) {
      if (wanted(bytes->range.memory)) result.Add(bytes->range, bytes->is_write);
    }
    return result;
  }
};

// Lists the accesses of one statement, without the statements below it.
struct StatementAccesses {
  // By the scalar unit, before it goes on: operands, indices, stores.
  Accesses scalar;
  // By the instruction that the statement calls.
  Accesses queued;
  const isa::Instruction* instruction = nullptr;
  isa::Queue queue = isa::Queue::kNone;
};

// Addresses come from storage: buffers that share bytes meet in the memory that they lie in. A buffer
// without an address is a memory of its own. An instruction accesses the bytes that its meaning says if
// its scalar operands are constant; else as many as the extents of its operands, which may depend on
// variables; else whole buffers.
class Footprints {
 public:
  // `function` has been through storage; it and `target` outlive this. Error: a call of an instruction
  // that the target does not have.
  static absl::StatusOr<std::unique_ptr<Footprints>> Compute(const ir::Function& function,
                                                             const Target& target);

  const StatementAccesses& Of(ir::Stmt s) const { return accesses_.at(s); }

  // Returns true if both must keep their order: they may share a byte, and one of them writes it.
  // Variable bytes of both are compared at equal values of the variables.
  bool Conflict(const Accesses& a, const Accesses& b);

  // The accesses of `root` and all statements below it, in memories for which wanted(memory) holds.
  template <typename Wanted>
  Accesses Below(ir::Stmt root, const Wanted& wanted) const;

  // SMEM and GMEM, which other cores see.
  static bool IsShared(int64_t memory) { return memory != kNmem && memory != kWmem; }
  // GMEM. Every buffer there is a memory of its own.
  static bool IsGmem(int64_t memory) { return memory >= kFirstBuffer; }

 private:
  static constexpr int64_t kSmem = 0;
  static constexpr int64_t kNmem = 1;
  static constexpr int64_t kWmem = 2;
  static constexpr int64_t kFirstBuffer = 3;  // plus the buffer's number

  Footprints(const ir::Function& function, const Target& target);

  absl::Status Visit(ir::Stmt s);
  absl::StatusOr<StatementAccesses> AccessesOf(ir::Stmt s);
  ByteRange WholeBuffer(ir::Buffer buffer) const;
  void AddOperands(const isa::Instruction& instruction, ir::Expr call, Accesses& accesses);
  void AddElement(ir::Buffer buffer, absl::Span<const ir::Expr> indices, bool is_write,
                  Accesses& accesses);
  void AddBytes(ir::Buffer buffer, absl::Span<const ir::Expr> indices,
                const arith::LinearForm& begin, const std::optional<arith::LinearForm>& end,
                bool is_write, Accesses& accesses);
  arith::LinearForm FormOfArgument(ir::Expr e);
  bool AreApart(const VariableBytes& a, const VariableBytes& b);
  bool MeetsVariable(const Accesses& a, const Accesses& variable) const;
  void Assume(const EnclosingStmts& enclosing);

  const Target& target_;
  const AddressMap addresses_;
  ir::Context& c_;
  arith::Analyzer analyzer_;
  arith::VariableRanges ranges_;
  std::deque<VariableBytes> variable_;
  EnclosingStmts enclosing_;  // of the statement that Visit is at
  absl::flat_hash_map<ir::Stmt, StatementAccesses> accesses_;
};

// ---- inline definitions

template <typename Wanted>
Accesses Footprints::Below(ir::Stmt root, const Wanted& wanted) const {
  Accesses all;
  ir::ForEachStmt(root, [&](ir::Stmt s) {
    const StatementAccesses& own = Of(s);
    all.Add(own.scalar.In(wanted));
    all.Add(own.queued.In(wanted));
    return true;
  });
  return all;
}

}  // namespace polynao

#endif  // COMPILER_PASSES_FOOTPRINTS_H_
