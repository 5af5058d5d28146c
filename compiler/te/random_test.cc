// Random graphs under random schedules compute what they compute unscheduled.
//
// A failure prints its seed and the schedule; POLYNAO_TE_SEED=n runs that case alone.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "gtest/gtest.h"

namespace polynao::te {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // 0 ... n - 1.
  int64_t Below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  template <typename T>
  T Pick(const std::vector<T>& values) {
    return values[Below(values.size())];
  }

 private:
  std::mt19937_64 engine_;
};

// A graph of up to six computes. Integers wrap, so that every order of a reduction gives the same.
class RandomGraph {
 public:
  explicit RandomGraph(Random& random) : random_(random), g_("random") {
    const int64_t inputs = 1 + random_.Below(2);
    for (int64_t i = 0; i < inputs; ++i) {
      Shape shape;
      const int64_t rank = random_.OneIn(12) ? 0 : 1 + random_.Below(3);
      for (int64_t d = 0; d < rank; ++d) {
        shape.push_back(random_.Pick<int64_t>({1, 2, 3, 4, 5, 7, 8, 9}));
      }
      if (rank > 0 && random_.OneIn(25)) shape[random_.Below(rank)] = 0;
      all_.push_back(g_.Placeholder(absl::StrCat("A", i), shape, Type::kI32));
    }
    const int64_t computes = 1 + random_.Below(5);
    for (int64_t i = 0; i < computes; ++i) {
      for (const Tensor& t : Make(absl::StrCat("T", i))) all_.push_back(t);
      computed_.push_back(all_.back());
    }
  }

  // The last compute, sometimes another one too.
  std::vector<Tensor> Outputs() {
    std::vector<Tensor> outputs = {computed_.back()};
    const Tensor other = random_.Pick(computed_);
    if (random_.OneIn(3) && !(other == outputs[0])) outputs.push_back(other);
    return outputs;
  }

  const Graph& graph() const { return g_; }

 private:
  std::vector<Tensor> Make(const std::string& name) {
    // Rather a recent tensor, so that graphs get deep.
    const Tensor t = random_.OneIn(3) ? random_.Pick(all_) : all_.back();
    const Shape& shape = t.shape();
    const size_t rank = shape.size();
    const size_t d = rank == 0 ? 0 : random_.Below(rank);
    // t at `axes` with dimension d replaced.
    auto at = [&](Axes axes, Expr index) {
      axes[d] = index;
      return t(axes);
    };
    switch (rank == 0 ? random_.Below(3) : random_.Below(13)) {
      case 0: {
        const Tensor other = random_.Pick(all_);
        if (other.shape() == shape) {
          return {g_.Compute(name, shape, [&](const Axes& i) { return t(i) * 2 + other(i); })};
        }
        return {g_.Compute(name, shape, [&](const Axes& i) { return t(i) + 1; })};
      }
      case 1:
        return {g_.Reshape(t, {ElementCount(shape)})};
      case 2:  // broadcast of one element, if there is one
        return {g_.Compute(name, {3}, [&](Expr i) {
          return ElementCount(shape) > 0 ? t(Axes(rank, g_.context().I32(0))) + i : i * 3;
        })};
      case 3:  // padded stencil
        return {g_.Compute(name, shape, [&](const Axes& i) {
          const Expr before = Select(g_.context().I32(1) <= i[d], at(i, i[d] - 1), 0);
          const Expr after = Select(i[d] + 2 < shape[d], at(i, i[d] + 2), 0);
          return before + t(i) * 3 - after;
        })};
      case 4:  // clamped stencil
        return {g_.Compute(name, shape, [&](const Axes& i) {
          const Expr low = ir::Max(i[d] - 1, g_.context().I32(0));
          const Expr high = ir::Min(i[d] + 1, g_.context().I32(shape[d] - 1));
          return at(i, low) + at(i, high) * 2;
        })};
      case 5: {  // stencil without borders
        Shape smaller = shape;
        smaller[d] = std::max<int64_t>(0, shape[d] - 2);
        return {g_.Compute(name, smaller, [&](const Axes& i) {
          return t(i) + at(i, i[d] + 1) * 2 + at(i, i[d] + 2) * 3;
        })};
      }
      case 6: {  // every other element
        Shape half = shape;
        half[d] = (shape[d] + 1) / 2;
        return {g_.Compute(name, half, [&](const Axes& i) { return at(i, i[d] * 2) + 1; })};
      }
      case 7: {  // every element twice
        Shape twice = shape;
        twice[d] = shape[d] * 2 - (shape[d] > 0 ? 1 : 0);
        return {g_.Compute(name, twice, [&](const Axes& i) { return at(i, i[d] / 2) - i[d] % 2; })};
      }
      case 8: {  // reduction of a dimension
        Shape rest = shape;
        rest.erase(rest.begin() + d);
        const ReduceAxis k = g_.ReduceAxisOf("k", shape[d]);
        const int64_t kind = random_.Below(4);
        return {g_.Compute(name, rest, [&](const Axes& i) {
          Axes axes = i;
          axes.insert(axes.begin() + d, k);
          const Expr e = t(axes) + k;
          return kind == 0   ? ReduceSum(e, k)
                 : kind == 1 ? ReduceProd(e, k)
                 : kind == 2 ? ReduceMin(e, k)
                             : ReduceMax(e, k);
        })};
      }
      case 9: {  // window sums, the window from -1 to 1, padded
        const ReduceAxis r = g_.ReduceAxisOf("r", -1, 3);
        return {g_.Compute(name, shape, [&](const Axes& i) {
          const Expr index = i[d] + r;
          const Expr inside = ir::And(g_.context().I32(0) <= index, index < shape[d]);
          return ReduceSum(Select(inside, at(i, index), 1), r);
        })};
      }
      case 10: {  // matmul with itself transposed
        if (rank != 2) return {g_.Compute(name, shape, [&](const Axes& i) { return t(i) - 3; })};
        const ReduceAxis k = g_.ReduceAxisOf("k", shape[1]);
        return {g_.Compute(name, {shape[0], shape[0]},
                           [&](Expr x, Expr y) { return ReduceSum(t(x, k) * t(y, k), k); })};
      }
      case 11:  // a place that depends on data
        return {g_.Compute(name, shape, [&](const Axes& i) {
          return at(i, t(i) % std::max<int64_t>(1, shape[d])) + i[d];
        })};
      default: {  // reversed, and two results
        return g_.ComputeMany(name, shape, [&](const Axes& i) {
          return std::vector<Body>{at(i, g_.context().I32(shape[d] - 1) - i[d]), t(i) * 5};
        });
      }
    }
  }

  Random& random_;
  Graph g_;
  std::vector<Tensor> all_;
  std::vector<Tensor> computed_;
};

// Applies random primitives; `log` tells which.
class RandomSchedule {
 public:
  RandomSchedule(Random& random, Schedule& s) : random_(random), s_(s) {}

  void Apply() {
    Caches();
    for (Stage* stage : Stages()) Loops(*stage);
    for (Stage* stage : Stages()) Place(*stage);
    for (Stage* stage : Stages()) Annotate(*stage);
  }
  const std::string& log() const { return log_; }

 private:
  std::vector<Stage*> Stages() const {
    std::vector<Stage*> stages;
    for (const auto& stage : s_.stages()) stages.push_back(stage.get());
    return stages;
  }

  template <typename... Args>
  void Log(const Args&... args) {
    absl::StrAppend(&log_, "  ", args..., "\n");
  }

  void Caches() {
    for (Stage* stage : Stages()) {
      const Tensor t(s_.graph(), stage->data().operation);
      if (random_.OneIn(4)) {
        Log("CacheWrite ", t.name());
        s_.CacheWrite(t, "nmem");
      }
      if (!random_.OneIn(3)) continue;
      const std::vector<const Operation*> reads = ReadOperations(*s_.graph(), stage->data().bodies);
      if (reads.empty()) continue;
      const Tensor read(s_.graph(), random_.Pick(reads));
      // Results other than the first may not be read here.
      if (read.operation()->outputs.size() > 1) continue;
      Log("CacheRead ", read.name());
      s_.CacheRead(read, "smem", random_.OneIn(2) ? std::vector<Tensor>{t} : std::vector<Tensor>{});
    }
  }

  void Loops(Stage& stage) {
    for (int64_t i = random_.Below(4); i > 0; --i) {
      const std::vector<Axis> leaves = stage.leaves();
      if (leaves.empty()) return;
      const size_t position = random_.Below(leaves.size());
      const Axis axis = leaves[position];
      switch (random_.Below(4)) {
        case 0: {
          const int64_t factor = 1 + random_.Below(5);
          const int64_t before = random_.OneIn(4) && !axis.data()->is_reduce ? random_.Below(5) : 0;
          Log("Split ", stage.name(), " ", axis.name(), " ", factor, " ", before);
          stage.Split(axis, factor, before);
          break;
        }
        case 1: {
          const int64_t parts = 1 + random_.Below(5);
          Log("SplitParts ", stage.name(), " ", axis.name(), " ", parts);
          stage.SplitParts(axis, parts);
          break;
        }
        case 2:
          if (position + 1 < leaves.size() &&
              axis.data()->is_reduce == leaves[position + 1].data()->is_reduce) {
            Log("Fuse ", stage.name(), " ", axis.name(), " ", leaves[position + 1].name());
            stage.Fuse(axis, leaves[position + 1]);
          }
          break;
        default: {
          std::vector<Axis> order = leaves;
          for (size_t j = order.size(); j > 1; --j)
            std::swap(order[j - 1], order[random_.Below(j)]);
          std::string names;
          for (Axis a : order) absl::StrAppend(&names, " ", a.name());
          Log("Reorder ", stage.name(), names);
          stage.Reorder(order);
        }
      }
    }
  }

  void Place(Stage& stage) {
    const StageData& data = stage.data();
    if (data.is_output) return;
    if (random_.OneIn(6) && !data.bodies[0].reducer) {
      Log("ComputeInline ", stage.name());
      stage.ComputeInline();
      return;
    }
    std::vector<Stage*> readers;
    for (Stage* other : Stages()) {
      const std::vector<const Operation*> reads = ReadOperations(*s_.graph(), other->data().bodies);
      if (std::find(reads.begin(), reads.end(), data.operation) != reads.end()) {
        readers.push_back(other);
      }
    }
    // With more readers most places are wrong.
    if (readers.empty() || random_.OneIn(readers.size() == 1 ? 6 : 2)) return;
    Stage& reader = *random_.Pick(readers);
    if (reader.data().is_inlined || reader.leaves().empty()) return;
    const Axis axis = random_.Pick(reader.leaves());
    Log("ComputeAt ", stage.name(), " in ", reader.name(), " at ", axis.name());
    stage.ComputeAt(reader, axis);
    if (random_.OneIn(4)) stage.DoubleBuffer();
    if (random_.OneIn(4) && data.spatial.size() >= 2) {
      Log("StorageAlign ", stage.name());
      stage.StorageAlign(stage.axis(data.spatial.size() - 2), 4, random_.Below(4));
    }
  }

  void Annotate(Stage& stage) {
    if (stage.leaves().empty() || random_.OneIn(2)) return;
    const Axis axis = random_.Pick(stage.leaves());
    switch (axis.data()->is_reduce ? random_.Below(2) : random_.Below(5)) {
      case 0:
        stage.Unroll(axis);
        return;
      case 1:
        stage.Pragma(axis, "hint");
        return;
      case 2:
        stage.Vectorize(axis);
        return;
      case 3:
        stage.Parallel(axis);
        return;
      default:
        Log("Bind ", stage.name(), " ", axis.name());
        stage.Bind(axis, random_.OneIn(2) ? "tid" : "cid");
    }
  }

  Random& random_;
  Schedule& s_;
  std::string log_;
};

std::vector<ir::Tensor> RunOn(const ir::Function& function, uint64_t seed, absl::Status* status) {
  std::vector<ir::Tensor> tensors;
  // Small values: loaded values become indices, whose arithmetic must not overflow.
  for (const ir::Param& param : function.params) {
    Shape shape;
    for (Expr extent : param.buffer->extents) shape.push_back(extent.int_value());
    tensors.push_back(
        param.access == ir::Access::kIn
            ? ir::RandomTensor(param.buffer->type, shape, seed + tensors.size(), ir::Values::kExact)
            : ir::Tensor(param.buffer->type, shape));
  }
  std::vector<ir::Argument> arguments;
  for (ir::Tensor& tensor : tensors) arguments.push_back(ir::Argument::Of(&tensor));
  // Computing deep inside many loops may recompute without end.
  ir::InterpreterOptions options;
  options.max_operations = 300'000;
  *status = ir::Interpret(function, arguments, nullptr, options);
  return tensors;
}

// Whether the schedule was a right one; a wrong one is refused with a message.
bool RunCase(uint64_t seed) {
  Random random(seed);
  RandomGraph random_graph(random);
  EXPECT_TRUE(random_graph.graph().status().ok()) << random_graph.graph().status();
  const std::vector<Tensor> outputs = [&] {
    std::vector<Tensor> tensors;
    for (const Tensor& t : random_graph.Outputs()) {
      if (t.operation()->kind == Operation::Kind::kCompute) tensors.push_back(t);
    }
    return tensors;
  }();
  if (outputs.empty()) return false;

  const absl::StatusOr<ir::Function> plain = Lower(Schedule(outputs));
  EXPECT_TRUE(plain.ok()) << plain.status();
  absl::Status status;
  const std::vector<ir::Tensor> expected = RunOn(*plain, seed, &status);
  EXPECT_TRUE(status.ok()) << status << "\n" << ir::Print(*plain);

  Schedule s(outputs);
  RandomSchedule random_schedule(random, s);
  random_schedule.Apply();
  const absl::StatusOr<ir::Function> function = Lower(s);
  if (!function.ok()) {
    // What the generator does not avoid; anything else is a mistake of ours.
    const std::string message(function.status().message());
    for (const char* known : {"outside that loop", "over the same threads", "is inlined",
                              "no padding of dimension", "does not read"}) {
      if (absl::StrContains(message, known)) return false;
    }
    ADD_FAILURE() << function.status() << "\n" << random_schedule.log();
    return false;
  }
  const absl::Status verified = ir::Verify(*function);
  EXPECT_TRUE(verified.ok()) << verified;
  const std::vector<ir::Tensor> found = RunOn(*function, seed, &status);
  if (absl::StrContains(status.message(), "more than 300000")) return false;
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size() && status.ok(); ++i) {
    EXPECT_EQ(ir::Compare(expected[i], found[i]).where, -1) << "parameter " << i;
  }
  if (::testing::Test::HasFailure()) {
    ADD_FAILURE() << "seed " << seed << "\n"
                  << random_schedule.log() << ir::Print(*plain) << ir::Print(*function);
  }
  return true;
}

TEST(RandomTest, ScheduledEqualsUnscheduled) {
  if (const char* seed = std::getenv("POLYNAO_TE_SEED")) {
    RunCase(std::strtoull(seed, nullptr, 10));
    return;
  }
  constexpr int kCases = 1000;
  int right = 0;
  for (uint64_t seed = 1; seed <= kCases && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    right += RunCase(seed) ? 1 : 0;
  }
  // Most random schedules must be right ones, or this test shows little.
  if (!HasFailure()) EXPECT_GT(right, kCases / 2);
  std::cout << right << " of " << kCases << " schedules were right ones\n";
}

}  // namespace
}  // namespace polynao::te
