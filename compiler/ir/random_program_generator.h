// Makes the programs of random_program.h.
//
// Method: integers that may become indices, bounds or conditions carry a range [low, high] that
// holds in every run, so that nothing in those places wraps and an index is in bounds because of
// its range, because of `%` or clamping, or because of a guard. Values are free to wrap and
// overflow.
//
// The iterations of a parallel loop over p are independent because inside it a buffer from outside
// is either only read, or accessed only at p in one dimension that is "pinned" to it.
#ifndef COMPILER_IR_RANDOM_PROGRAM_GENERATOR_H_
#define COMPILER_IR_RANDOM_PROGRAM_GENERATOR_H_

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_program.h"

namespace polynao::ir::random_program {

// The most that an extent of an allocation with `edges` is.
inline constexpr int64_t kMaxLocalExtent = 14;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed * 2 + 1) {}
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Percent(int chance) { return Between(1, 100) <= chance; }
  template <typename List>
  auto& Pick(List& list) {
    return list[Between(0, static_cast<int64_t>(std::size(list)) - 1)];
  }
  template <typename T>
  T OneOf(std::initializer_list<T> list) {
    return list.begin()[Between(0, static_cast<int64_t>(list.size()) - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

// A number at an end of its type, or near 0.
int64_t EdgeInt(Random& random, Type type);

class Generator {
 public:
  Generator(uint64_t seed, const RandomProgramOptions& options)
      : options_(options), random_(seed), context_(std::make_shared<Context>()), c_(*context_) {}

  Function Make();

 private:
  struct Ranged {
    Expr e;
    int64_t low = 0;
    int64_t high = 0;
  };
  struct IntVar {
    Var var;
    int64_t low;
    int64_t high;
    Expr below;  // the variable is below this expression, if given
  };
  // first <= var < first + count, where no sum of var surely fits its type but var - first.
  struct EdgeVar {
    Var var;
    Expr first;
    int64_t count;
  };
  struct BufferState {
    Buffer buffer;
    bool readable = true;
    bool writable = true;
    std::vector<Var> pins = std::vector<Var>(buffer->extents.size());
  };

  // Holds what was made so far; every variable and buffer of it is in scope.
  struct Made {
    std::vector<Ranged> ranged;
    struct Value {
      Expr e;
      bool must_not_wrap;
    };
    std::vector<Value> values;
  };

  // Forgets at its end what was made during its life. In a loop of independent iterations nothing
  // from outside is repeated, as it may load what other iterations store.
  class MadeScope {
   public:
    explicit MadeScope(Generator& generator, bool independent = false)
        : made_(generator.made_), outer_(made_) {
      if (independent) made_ = {};
    }
    ~MadeScope() { made_ = std::move(outer_); }
    MadeScope(const MadeScope&) = delete;
    MadeScope& operator=(const MadeScope&) = delete;

   private:
    Made& made_;
    Made outer_;
  };

  // One of `made` for which `fits`, or null.
  template <typename T, typename Fits>
  const T* Repeated(const std::vector<T>& made, const Fits& fits) {
    if (options_.repetition == 0 || !random_.Percent(options_.repetition)) return nullptr;
    std::vector<const T*> fitting;
    for (const T& one : made) {
      if (fits(one)) fitting.push_back(&one);
    }
    return fitting.empty() ? nullptr : random_.Pick(fitting);
  }

  std::string Name(std::string_view stem) { return StrCat(stem, next_name_++); }
  Expr CastTo(Type type, Expr e) { return c_.Cast(type, e); }

  // ---- random_program.cc

  Type RandomType();
  bool IsWanted(Type type) const;
  Type LoopType();
  Buffer RandomBuffer(std::string name, int max_dimensions, std::string_view scope,
                      bool is_local = false);
  Stmt Statement(int depth);
  Stmt Store();
  std::optional<Stmt> ExternStatement();
  Stmt LetStatement(int depth);
  // A buffer of known contents, used in a statement.
  Stmt Allocation(int depth);
  Stmt Loop(int depth);
  // The extent of a buffer as an extent of a loop over `type`.
  Ranged RangeOfExtent(Type type, Expr extent);
  // Makes each buffer from outside a parallel loop either readable or writable at the loop's own
  // elements only. False if nothing stays writable.
  bool Pin(const IntVar& loop);

  // ---- random_program_indices.cc

  // An integer of `type` (i32 or i64) that never wraps.
  Ranged RandomRanged(Type type, int depth);
  Ranged NewRanged(Type type, int depth);
  static Ranged Checked(Ranged result, Ranged otherwise);
  // An index that lies within `extent` whenever `guard`, if there is one, holds.
  struct Index {
    Expr e;
    Expr guard;
  };
  Index RandomIndex(Expr extent);
  // Indices of an element of `buffer`, and what must hold for them to be in bounds (or null).
  std::pair<std::vector<Expr>, Expr> RandomIndices(const BufferState& state);

  // ---- random_program_expressions.cc

  Expr RandomConstant(Type type);
  // A load of `type`, guarded where its index may be out of bounds.
  std::optional<Expr> RandomLoad(Type type, int depth);
  Expr RandomLeaf(Type type);
  // A condition whose i32 and i64 arithmetic does not wrap.
  Expr RandomCondition(int depth);
  Expr RandomBool(int depth);
  Expr RandomValue(Type type, int depth);
  Expr NewValue(Type type, int depth);
  Expr BitOperation(Type type, int depth);
  Expr FloatDivision(Type type, int depth);
  Expr IntDivision(Type type, int depth);
  Expr Intrinsic(Type type, int depth);
  const ExternNode* PickExtern(std::optional<Type> result);
  struct ExternCall {
    Expr call;
    Expr guard;  // what must hold for the addresses to exist, or null
  };
  // A call of `callee` with values and addresses of elements; none if there is no fitting buffer.
  std::optional<ExternCall> RandomCall(const ExternNode* callee, int depth);
  std::optional<Expr> ExternValue(Type type, int depth);

  // ---- random_program_edges.cc

  void AddEdgeScalars(Function& f);
  // Of a loop's variable: any integer type that the options leave.
  Type AnyLoopType();
  // A scalar parameter between small numbers, as an integer of `type`; nothing if there is none.
  std::optional<Ranged> ClampedScalar(Type type);
  // A number of `type`, i32 or i64, divided by -1 and cut to low .. high. The quotient that wraps is cut like others.
  Ranged ClampedQuotient(Type type, int64_t low, int64_t high);
  // A comparison of what may be at the ends of its type, without arithmetic but quotients by -1.
  Expr EdgeComparison();
  Expr EdgeComparison(Expr x, const std::vector<Expr>& others);
  // A loop at an end of its variable's type, or with a scalar parameter in its bounds.
  Stmt EdgeLoop(int depth);
  struct EdgeBounds {
    Type type;      // of the variable
    int64_t count;  // iterations, at most
    Expr min = {}, extent = {};
    std::optional<IntVar> small = {};  // given where sums of the variable fit its type
  };
  EdgeBounds AnyEdgeBounds();
  Stmt EdgeLoopBody(Var var, int depth);
  // An extent of an allocation that depends on what stands around it, or null.
  Expr LocalExtent();

  const RandomProgramOptions& options_;
  Random random_;
  std::shared_ptr<Context> context_;
  Context& c_;
  std::vector<IntVar> ints_;
  std::vector<EdgeVar> edge_vars_;
  std::vector<Var> sizes_;
  std::vector<Var> counts_, starts_, anys_;  // EdgeScalars
  std::vector<Expr> local_extents_;          // of allocations, if they are not those of parameters
  std::vector<Expr> values_;
  std::vector<BufferState> buffers_;
  std::vector<const ExternNode*> externs_;
  Made made_;
  bool must_not_wrap_ = false;
  int nested_loads_ = 0;
  int stores_left_ = 0;
  int64_t iterations_ = 1;
  size_t threads_ = 0;
  int next_name_ = 0;
};

}  // namespace polynao::ir::random_program

#endif  // COMPILER_IR_RANDOM_PROGRAM_GENERATOR_H_
