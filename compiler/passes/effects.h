// Says what executing a part of a program may read, write and stop: the questions that every pass
// asks before it moves, shares or drops something.
#ifndef COMPILER_PASSES_EFFECTS_H_
#define COMPILER_PASSES_EFFECTS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/container/node_hash_map.h"
#include "absl/container/node_hash_set.h"
#include "absl/types/span.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/expr_map.h"
#include "compiler/ir/instruction_meanings.h"
#include "compiler/ir/ir.h"

namespace polynao {

// A set of buffers, numbered by Effects, or all buffers there are.
class BufferSet {
 public:
  static BufferSet Everything();

  bool empty() const { return !everything_ && words_.empty(); }
  bool Contains(size_t number) const;
  bool Intersects(const BufferSet& other) const;
  void Add(size_t number);
  void Add(const BufferSet& other);
  bool is_everything() const { return everything_; }
  // Calls `visit(number)` for each member, in ascending order, of a set that is not everything.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
        visit(i * kWordBits + static_cast<size_t>(std::countr_zero(word)));
      }
    }
  }
  bool operator==(const BufferSet&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const BufferSet& set) {
    return H::combine(std::move(h), set.everything_, set.words_);
  }

 private:
  static constexpr size_t kWordBits = 64;
  bool everything_ = false;
  absl::InlinedVector<uint64_t, 1> words_;  // the last one is not 0
};

// Effects of the statements and expressions of one function. Answers are remembered by node, so
// asking about every part of a program takes time linear in its size (times one machine word for
// each 64 buffers). Nodes that a pass makes later can be asked about, too.
//
//   Effects effects(function, &target.instructions->intrinsics());
//   effects.MayChange(A[i] + 1, store to A)   // true
//   effects.MayChange(A[i] + 1, store to B)   // false: buffers never alias, unless declared
//   effects.MayTrap(A[i / n], facts)          // unless the facts say n != 0 and 0 <= i / n < ...
//
// Calls. A pure intrinsic (exp, ...) has no effect, nor has a pure extern function. One that reads is
// a load of the buffers that it has addresses of and of the state outside of the program; one that
// writes may write them too, where they are not declared `in`; an opaque one reads and writes
// everything (compiler/ir/externs.h). Any other call is an instruction: it reads and writes what it is
// given addresses of, as the accesses (`in`, `out`) in its meaning declare. An instruction without a
// known meaning reads and writes those; one that is given no address at all, such as a barrier, may
// stand for what others do, and reads and writes everything.
//
// Aliases. A store to a buffer that may overlap others (compiler/ir/aliases.h) is one to all of them.
class Effects {
 public:
  // `intrinsics` knows the meanings of instructions; null knows none. Both must outlive this.
  explicit Effects(const ir::Function& function, const ir::Intrinsics* intrinsics = nullptr);

  // Buffers with elements that evaluating `e` may load.
  const BufferSet& Loads(ir::Expr e);
  // Returns true if the value of `e` depends on its variables and on the elements that it loads
  // alone, and evaluating it does nothing else: no call of an instruction, no address but as an
  // argument of an extern function that reads.
  bool IsPure(ir::Expr e);

  // Buffers with elements that executing `s` may read or write.
  const BufferSet& Reads(ir::Stmt s);
  const BufferSet& Writes(ir::Stmt s);

  // Returns true if `set` has `buffer`, or one that it may alias.
  bool Contains(const BufferSet& set, ir::Buffer buffer) const {
    return set.Contains(Number(buffer));
  }
  // The buffer's number in sets; buffers that may alias have one number. Numbers are dense.
  size_t Number(ir::Buffer buffer) const;
  // Returns true if executing `s` may change what `e` evaluates to. (Variables never change;
  // whether they are in scope is the caller's question.)
  bool MayChange(ir::Expr e, ir::Stmt s) { return Loads(e).Intersects(Writes(s)); }
  // Returns true if `a` and `b` must stay in order: one writes what the other reads or writes.
  bool Conflict(ir::Stmt a, ir::Stmt b);

  // Returns true if evaluating `e` may stop the program where `facts` hold: a divisor may be zero, an index may leave
  // its extent, arithmetic may wrap in an index or in a condition (for the whole of `e` if `mode` is kIndex), or memory
  // is used that may never have been stored, which is so of any load of an allocation. Conditions inside of `e` count
  // as facts for what they guard. A "false" is certain.
  bool MayTrap(ir::Expr e, arith::Analyzer& facts, arith::Mode mode = arith::Mode::kIndex);
  // The same for executing `s`. Calls of instructions may always stop the program.
  bool MayTrap(ir::Stmt s, arith::Analyzer& facts);
  // Returns true if MayTrap is false whatever the facts are: nothing loaded, no integer division but by a constant, and
  // no i32 or i64 arithmetic in an index or condition (anywhere, if `mode` is kIndex).
  bool NeverTraps(ir::Expr e, arith::Mode mode = arith::Mode::kIndex);

 private:
  struct ExprInfo {
    const BufferSet* loads = nullptr;  // one of load_sets_
    bool pure = true;
    bool never_traps_as_data = true;
    bool never_traps_as_index = true;
  };
  const ExprInfo& Info(ir::Expr e);
  ExprInfo Compute(ir::Expr e);
  // Returns true if `e` is the address of an element whose indices are pure.
  bool IsPureAddress(ir::Expr e) const;
  BufferSet CallAccess(ir::Expr call, bool write) const;
  // The number of the state outside of the program, which no buffer has.
  size_t Outside() const;
  bool MayTrapBelow(ir::Expr e, arith::Analyzer& facts, arith::Mode mode,
                    absl::flat_hash_set<ir::Expr>& safe);

  const ir::Intrinsics* const intrinsics_;
  const ir::Aliases aliases_;
  mutable absl::flat_hash_map<const ir::BufferNode*, size_t> numbers_;
  mutable size_t next_number_;
  mutable std::optional<size_t> outside_;
  absl::flat_hash_set<const ir::BufferNode*> parameters_;
  // Most expressions load what others do, too.
  absl::node_hash_set<BufferSet> load_sets_;
  const BufferSet* const no_loads_;  // the empty one of them
  ir::ExprMap<ExprInfo> exprs_;
  std::vector<std::pair<ir::Expr, size_t>> stack_;  // of Info
  // Node maps: answers are given out by reference. Apart, as what is written can be told without a
  // look at expressions.
  absl::node_hash_map<const ir::StmtNode*, BufferSet> reads_;
  absl::node_hash_map<const ir::StmtNode*, BufferSet> writes_;
};

}  // namespace polynao

#endif  // COMPILER_PASSES_EFFECTS_H_
