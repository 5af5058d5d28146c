// How a meaning that is a nest of loops around stores runs natively: its loops, accesses, and a block
// program for each store.
#ifndef ISA_NATIVE_PLAN_H_
#define ISA_NATIVE_PLAN_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/int_expression.h"
#include "isa/instruction_set.h"
#include "isa/native_blocks.h"

namespace polynao::isa::native {

using ir::IntExpression;
using ir::IntInputs;

constexpr int kMaxAccesses = 12;
constexpr int kMaxLoops = 8;

// The value of an f16 function of one f16 argument, for all 65536 arguments.
struct HalfTable {
  std::once_flag once;
  std::vector<uint16_t> values;
};

// One store inside the loops, with its value as a block program over the innermost loop.
struct Leaf {
  enum class Kind : uint8_t {
    kCopy,   // dst = src, bytes
    kFill,   // dst = an operand or a constant
    kMap,    // dst = value
    kFold,   // dst = dst op value, and dst stays in place in the innermost loop
    kDot,    // dst += a * b in i32, and dst stays in place
    kTable,  // dst = table[src]
  };
  Kind kind = Kind::kMap;
  Type type = Type::kF32;  // of dst
  int dst = 0;             // access
  bool loads_dst = false;
  std::vector<BlockStep> steps;
  int result = 0;  // slot
  BlockOp fold = BlockOp::kAdd;
  bool dst_is_left = true;
  int a = 0, b = 0;  // kCopy, kTable, sums of products: accesses
  // kDot, and a kFold that is a sum in f32 of products: dst += a * b, with a and b of this type, each widened to dst's.
  std::optional<Type> factor;
  std::shared_ptr<HalfTable> table;
};

// The elements that one load or store goes through.
struct Access {
  int buffer = 0;  // of IntInputs
  int64_t bytes = 0;
  Type type = Type::kF32;
  IntExpression constant;
  std::vector<std::pair<int, IntExpression>> coefficients;  // (loop, elements per iteration)
};

// A loop or a leaf of the nest, as a tree.
struct Node {
  int loop = -1;  // -1: a leaf
  int leaf = -1;
  std::vector<Node> children;
  // A perfect nest down to one leaf: runs as one strided loop nest.
  bool is_chain = false;
  int chain = -1;
};

struct Loop {
  IntExpression min, extent;
};

// The loops of a perfect nest and the leaf in them.
struct Chain {
  int index;
  std::vector<int> loops;  // outermost first
  int leaf;
};

struct NestPlan {
  std::vector<Loop> loops;
  std::vector<Access> accesses;
  std::vector<Leaf> leaves;
  std::vector<Node> roots;
  std::vector<Chain> chains;
};

// None if the meaning is not such a nest. `resolver`: as for NativeRoutine::Create.
std::optional<NestPlan> PlanNest(const Instruction& instruction,
                                 const IntExpression::Resolver& resolver);

}  // namespace polynao::isa::native

#endif  // ISA_NATIVE_PLAN_H_
