// Schedules: how the computes of a graph turn into loops. A schedule changes order, place and
// storage, never which values are computed (up to the order in which a reduction adds).
//
//   Schedule s(c);
//   Axis x = s[c].axis(0), y = s[c].axis(1), k = s[c].reduce_axis(0);
//   auto [xo, yo, xi, yi] = s[c].Tile(x, y, 32, 32);
//   auto [ko, ki] = s[c].Split(k, 32);
//   s[c].Reorder({xo, yo, ko, ki, xi, yi});
//   absl::StatusOr<ir::Function> function = Lower(s);
//
// Every compute is a stage with one loop per axis, outermost first: spatial axes, then reduce axes.
// Primitives replace these leaf axes by others. A wrong use is recorded, everything after it does
// nothing, and Lower() returns the first one: "stage C: Split: axis yy is no leaf axis".
#ifndef COMPILER_TE_SCHEDULE_H_
#define COMPILER_TE_SCHEDULE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ir/ir.h"
#include "compiler/te/graph.h"

namespace polynao::te {

class Schedule;
class Stage;

struct AxisPragma {
  std::string key;
  std::vector<Expr> arguments;
};

// A loop of a stage, or what was one before it was split or fused. Its extent is known only after
// bounds inference.
struct AxisData {
  const Stage* stage;
  std::string name;
  bool is_reduce = false;
  ir::ForKind kind = ir::ForKind::kSerial;
  std::string thread;  // kThread: "tid", ...
  std::vector<AxisPragma> pragmas;
  std::vector<AxisPragma> init_pragmas;
};

// A handle on an axis; empty after a mistake.
class Axis {
 public:
  Axis() = default;
  explicit Axis(AxisData* data) : data_(data) {}
  explicit operator bool() const { return data_ != nullptr; }
  friend bool operator==(Axis a, Axis b) { return a.data_ == b.data_; }
  const std::string& name() const { return data_->name; }
  AxisData* data() const { return data_; }

 private:
  AxisData* data_ = nullptr;
};

// outer, inner <-- parent, by Split or SplitParts;   fused <-- outer, inner, by Fuse;
// inner <-- parent, by Rotate.
struct AxisRelation {
  enum class Kind : uint8_t { kSplit, kSplitParts, kFuse, kRotate };
  Kind kind;
  AxisData* parent;  // kFuse: the fused axis
  AxisData* outer;   // kRotate: the axis that says by how much
  AxisData* inner;
  int64_t amount = 0;  // factor, number of parts, or places for each step of `outer`
  int64_t before = 0;  // kSplit: by so many places the first run is cut at its beginning
};

struct StorageAlignment {
  size_t dimension;
  int64_t factor;
  int64_t offset;
};

// Lower reads this of a stage.
struct StageData {
  const Operation* operation = nullptr;  // names the stage and its results
  // The computation; CacheWrite and CacheRead make it differ from the operation's.
  Axes axes;
  std::vector<Body> bodies;
  std::vector<AxisData*> spatial;       // root axes, one per dimension
  std::vector<AxisData*> reduce;        // root axes, one per axis of the reduction
  std::vector<AxisRelation> relations;  // in the order of the primitives
  std::vector<AxisData*> leaves;        // the loops, outermost first
  bool is_output = false;
  bool is_inlined = false;
  const Stage* attach_stage = nullptr;  // null: at the function's top level
  const AxisData* attach_axis = nullptr;
  const AxisData* store_axis = nullptr;  // StoreAt
  int64_t ahead = 1;
  std::string scope = "gmem";
  int copies = 1;                          // of its storage, at most
  const Operation* in_place_of = nullptr;  // whose storage the stage computes in
  std::vector<int64_t> at_least;           // elements along each dimension, of ComputeAtLeast
  std::vector<StorageAlignment> alignments;
};

// The loops of one compute. Made by its Schedule; lives as long as that.
class Stage {
 public:
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const std::string& name() const { return data_.operation->name; }
  const StageData& data() const { return data_; }

  // Root axis i of the compute's dimensions, or of its reduction.
  Axis axis(size_t i);
  Axis reduce_axis(size_t i);
  // All current loops, outermost first.
  std::vector<Axis> leaves() const;

  // for (x, 0, n)  -->  for (xo, 0, ceil(n / factor)) for (xi, 0, factor),  x = xo*factor + xi,
  // under `if (x < n)` where factor does not divide n. factor >= 1. The new axes are named after
  // the old one: x -> xo, xi.
  // Here and below an axis that is split or fused must be a leaf that nothing has been done with:
  // not bound, vectorized, ... , no pragma, and nothing computed at it.
  // Where `before` places of the first run lie before the axis: x = xo*factor + xi - before, xo runs to
  // ceil((n + before) / factor), under `if (0 <= x && x < n)`. before >= 0.
  std::pair<Axis, Axis> Split(Axis axis, int64_t factor, int64_t before = 0);
  // for (x, 0, n)  -->  for (xo, 0, parts) for (xi, 0, ceil(n / parts)). parts >= 1.
  std::pair<Axis, Axis> SplitParts(Axis axis, int64_t parts);
  // for (x) for (y)  -->  for (xo) for (yo) for (xi) for (yi): splits x and y and reorders.
  std::array<Axis, 4> Tile(Axis x, Axis y, int64_t x_factor, int64_t y_factor);
  // for (x, 0, n) for (y, 0, m)  -->  for (x_y, 0, n*m),  x = x_y / m,  y = x_y % m.
  // y is the leaf right inside x; both spatial or both of the reduction.
  Axis Fuse(Axis outer, Axis inner);
  // All of these, outermost first, into one. None at all makes a loop of one iteration outside the
  // others, so that programs for any rank also serve scalars.
  Axis Fuse(const std::vector<Axis>& axes);
  // for (t) for (x, 0, n)  -->  for (t) for (xr, 0, n),  x = (xr + t*amount) % n: iterations in an
  // order that starts elsewhere for each t, so that threads that share a memory do not all ask for
  // neighbouring data at the same time. `by` is a leaf outside `axis`; amount >= 0.
  Axis Rotate(Axis axis, Axis by, int64_t amount);
  // for (a) for (b) for (c)  -->  for (c) for (b) for (a) after Reorder({c, a}): the named leaves
  // in the named order, on the places that they had. No axis twice. Reordering reduce axes changes
  // the order of a reduction's additions.
  Stage& Reorder(const std::vector<Axis>& axes);

  // for (x) { ... T[f(x)] ... } -->  for (x) { allocate T'; T' = the part of T that the rest of the
  // body reads; ... }: this stage is computed at the start of the body of `axis`, a leaf of
  // `consumer`, in storage of the size of that part. All stages that read this one must be inside
  // `axis`. Not for outputs.
  Stage& ComputeAt(Stage& consumer, Axis axis);
  // ... .ComputeAt(C, x).StoreAt(w, ahead) with x the serial loop right inside w, both leaves of C:
  //
  //   for (w) for (x) { allocate T'; T' = what this x reads; ... }   -->
  //   for (w) { allocate T'; T' = what the first `ahead` iterations of x read;
  //             for (x) { T' = what iteration x + ahead reads first, if there is one; ... } }
  //
  // A sliding window (store_at of Halide): what iterations have in common is computed once and
  // kept. What an iteration reads must move along one dimension by a constant step of at most its
  // size, or not at all (a mistake otherwise); if x is rotated it begins anew where x's values do. ahead >= 1. The
  // allocation stands under a pragma "sliding_window" (ahead): what an iteration stores, guards left
  // aside, only the `ahead`th one behind it uses first. Nothing is computed at this stage's own loops.
  Stage& StoreAt(Axis axis, int64_t ahead = 1);
  // Of dimension `d` all is computed, also where readers need a part: a copy of whole pixels is one long segment, of a
  // part of each pixel's channels it is many short ones. Not with StoreAt.
  Stage& ComputeWhole(size_t d);
  // Along dimension `d` at least `size` elements are computed from where readers' part begins, as many as the tensor
  // has at most: rows of 22 pixels as rows of 24, each of which begins where an instruction may. Not with StoreAt.
  Stage& ComputeAtLeast(size_t d, int64_t size);
  // Undoes ComputeAt: the whole tensor is computed before its readers.
  Stage& ComputeRoot();
  // C[i] = T[i - 1] + ...  -->  C[i] = (value of T at i - 1) + ...: every read is replaced by the
  // expression. Not for outputs and reductions.
  Stage& ComputeInline();

  // for (x)  -->  for (x) thread("tid"): one of cid, tid, blockIdx.{x,y,z}, threadIdx.{x,y,z}.
  // A spatial leaf, bound once; a thread axis once in a stage and once in a nest of stages: a stage
  // computed inside a loop over tid is computed by each of these threads for itself, and what all
  // threads share is computed outside, by a loop over tid of its own. Except scope "shared" of a GPU:
  // a stage there may be computed inside loops over threadIdx and have loops over threadIdx too. It
  // then is computed once for all threads of the block, in one place, with room for what all of them
  // read; the pass thread_regions makes one loop over threads after the other of the two.
  Stage& Bind(Axis axis, std::string_view thread);
  // for (x)  -->  for (x) vectorize / unroll / parallel. Vectorize and Parallel: spatial leaves.
  Stage& Vectorize(Axis axis);
  Stage& Unroll(Axis axis);
  Stage& Parallel(Axis axis);
  // for (x) {...}  -->  pragma key(arguments) for (x) {...}: a hint for a pass, such as the tensor
  // instruction that the loop is to become.
  Stage& Pragma(Axis axis, std::string_view key, std::vector<Expr> arguments = {});
  // The same on the copy of a spatial axis that initialises a reduction (x.init); there is one for
  // each spatial leaf inside the outermost reduce leaf.
  Stage& PragmaInit(Axis axis, std::string_view key, std::vector<Expr> arguments = {});

  // The memory scope of an intermediate tensor ("gmem" unless a cache primitive said otherwise).
  Stage& SetScope(std::string_view scope);
  // S = ...; T[i] = f(S[i])  -->  T = ...; T[i] = f(T[i]): this stage T is computed in the storage
  // of `source` S, whose values are lost. T is the last that reads S, and reads element i of it for
  // its own element i only; both are of one type, in one scope, computed at the same loop, and
  // neither is an output or has several results. StorageAlign and DoubleBuffer are said of T.
  Stage& InPlace(const Tensor& source);
  // allocate T; ...  -->  pragma double_buffer allocate T; ...   Not for outputs. `copies`, 2 or 3,
  // is how many the card's pipeline may make of T and of what is allocated beside it; 3 is the
  // pragma's argument.
  Stage& DoubleBuffer(int copies = 2);
  // allocate T[4, 14]  -->  allocate T[4, 16] by StorageAlign(axis(0), 16, 0): pads the next
  // dimension until the distance in elements between neighbours along `axis` (a root axis, not the
  // last) is offset modulo factor; the last call for an axis counts. Not for outputs.
  // 0 <= offset < factor.
  Stage& StorageAlign(Axis axis, int64_t factor, int64_t offset);

 private:
  friend class Schedule;
  explicit Stage(Schedule& schedule) : schedule_(schedule) {}

  // Gives the stage a computation and its root axes.
  void Reset(const Operation* operation, Axes axes, std::vector<Body> bodies);
  Axis NewAxis(std::string name, bool is_reduce);
  // Returns true if no mistake was made so far and this one does not hold either; records it.
  bool Check(bool condition, std::string_view primitive, const std::string& message);
  bool CheckLeaf(Axis axis, std::string_view primitive);
  // A leaf that nothing has been done with.
  bool CheckPlainLeaf(Axis axis, std::string_view primitive);
  bool CheckStored(std::string_view primitive);
  std::pair<Axis, Axis> DoSplit(Axis axis, AxisRelation::Kind kind, int64_t amount, int64_t before,
                                std::string_view primitive);
  Stage& SetKind(Axis axis, ir::ForKind kind, std::string_view thread, std::string_view primitive);
  size_t LeafPosition(Axis axis) const;
  Stage& SetLeast(size_t d, int64_t size, std::string_view primitive);

  Schedule& schedule_;
  StageData data_;
  std::deque<AxisData> axis_pool_;
};

// The stages of all computes that the outputs need.
class Schedule {
 public:
  explicit Schedule(const Tensor& output) : Schedule(std::vector<Tensor>{output}) {}
  // The function's outputs in this order; computes of one graph, each named once.
  explicit Schedule(const std::vector<Tensor>& outputs);
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // The stage that computes `tensor`. A mistake if there is none (an input, another graph's).
  Stage& operator[](const Tensor& tensor);

  // ... = A[i] ...  -->  A.nmem[i] = A[i];  ... = A.nmem[i] ...: a new stage copies `tensor` to
  // `scope`; the `readers` (all that read it, if none are named) read the copy. The copy is a plain
  // loop nest with an axis per dimension; ComputeAt shrinks it to what a reader's loop needs.
  Tensor CacheRead(const Tensor& tensor, std::string_view scope,
                   const std::vector<Tensor>& readers = {}, std::string_view name = "");
  // C[i] = e  -->  C.nmem[i] = e;  C[i] = C.nmem[i]: a new stage computes `tensor` in `scope`; its
  // old stage becomes the copy. To be used before any other primitive on that stage. Of a compute
  // with several results all are cached: the returned tensor's output(i).
  Tensor CacheWrite(const Tensor& tensor, std::string_view scope, std::string_view name = "");

  // The first mistake, OK if none.
  const absl::Status& status() const;

  const std::shared_ptr<GraphState>& graph() const { return graph_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  const std::deque<std::unique_ptr<Stage>>& stages() const { return stages_; }

 private:
  friend class Stage;
  void Fail(const std::string& message);
  Stage& AddStage(const Operation* operation, Axes axes, std::vector<Body> bodies);
  Stage* Find(const Operation* operation) const;
  void AddReachable(const Operation* operation);
  // Returns true if a stage is computed at the axis.
  bool IsAttachedAt(const AxisData* axis) const;

  std::shared_ptr<GraphState> graph_;
  std::vector<Tensor> outputs_;
  std::deque<std::unique_ptr<Stage>> stages_;
  absl::flat_hash_map<const Operation*, Stage*> by_operation_;
  // Stands in for stages that do not exist, so that a program may go on after a mistake.
  std::unique_ptr<Stage> no_stage_;
  Operation no_operation_;
  absl::Status status_;
};

// The operations whose results `body` reads, in order of their first read, each once.
std::vector<const Operation*> ReadOperations(const GraphState& graph,
                                             absl::Span<const Body> bodies);

}  // namespace polynao::te

#endif  // COMPILER_TE_SCHEDULE_H_
