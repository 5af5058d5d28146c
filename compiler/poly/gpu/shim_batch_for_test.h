// Kernels of many mapped functions in one file, for tests: compared with the functions that they came from, by the
// shim, with threads in three orders and with each barrier left out.
#ifndef COMPILER_POLY_GPU_SHIM_BATCH_FOR_TEST_H_
#define COMPILER_POLY_GPU_SHIM_BATCH_FOR_TEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "gtest/gtest.h"

namespace polynao::poly {

// The iterations of loops over blocks and threads in the other order.
class Backwards : public ir::Mutator {
 public:
  using Mutator::Mutate;
  ir::Expr Mutate(ir::Expr e) override { return e; }
  ir::Stmt Mutate(ir::Stmt s) override {
    s = Mutator::Mutate(s);
    if (!s.Is(ir::StmtKind::kFor) || s.for_kind() != ir::ForKind::kThread) return s;
    ir::Context& c = s.context();
    const ir::Var var = c.NewVar(s.var().name(), s.var().type());
    const ir::Expr value = s.extent() - 1 - var;
    return c.For(var, s.min(), s.extent(), ir::Substitute(s.body(), {{s.var(), value}}));
  }
};

class ShimBatch {
 public:
  // Functions of one file of C++.
  static constexpr size_t kMost = 50;

  // `after` is what became of `before`, with a name of its own.
  void Add(const ir::Function& before, const ir::Function& after, uint64_t seed) {
    before_.push_back(before);
    lowered_.push_back(after);
    lowered_.back().name += StrCat("_", seed);
    seeds_.push_back(seed);
    if (before_.size() == kMost) Check();
  }

  // Of all that came since the last time.
  void Check() {
    if (before_.empty()) return;
    // Behind the mapped functions those that they came from.
    std::vector<ir::Function> all = lowered_;
    for (size_t i = 0; i < before_.size(); ++i) {
      all.push_back(before_[i]);
      all.back().name = StrCat("before_", i);
    }
    auto compiled = codegen::ShimmedCuda::Create(all);
    ASSERT_TRUE(compiled.ok()) << compiled.status() << ir::Print(before_[0]);
    for (size_t i = 0; i < before_.size(); ++i) {
      for (const uint64_t order : {0, 1, 12345}) {
        EXPECT_EQ(Difference(**compiled, i, order, order), "")
            << "seed " << seeds_[i] << ", order " << order << "\n"
            << ir::Print(lowered_[i]);
      }
      for (size_t barrier = 0; barrier < (*compiled)->BarrierCount(i); ++barrier) {
        ++barriers_;
        needed_ += IsNeeded(**compiled, i, barrier);
      }
    }
    before_.clear();
    lowered_.clear();
    seeds_.clear();
  }

  int barriers() const { return barriers_; }
  // Without which a run computed other values, or loaded what nothing had stored.
  int needed() const { return needed_; }
  // Runs, and those besides that did not take place because the program stops.
  int ran() const { return ran_; }
  int stopped() const { return stopped_; }

 private:
  std::string Difference(const codegen::ShimmedCuda& compiled, size_t i, uint64_t draw,
                         uint64_t order, std::optional<size_t> left_out = {}) const {
    const auto arguments = ir::RandomArguments::Draw(before_[i], seeds_[i] + draw, {});
    EXPECT_TRUE(arguments.ok()) << arguments.status();
    // A program may load undefined elements of a workspace, on some arguments. (The interpreter lets it copy them to
    // another one.)
    const ir::RandomArguments unused = *arguments;
    if (!compiled.Run(before_.size() + i, unused.arguments()).ok()) {
      ++stopped_;
      return "";
    }
    ++ran_;
    return ir::Disagreement(before_[i], *arguments,
                            [&](auto a) { return compiled.Run(i, a, order, left_out); });
  }
  bool IsNeeded(const codegen::ShimmedCuda& compiled, size_t i, size_t barrier) const {
    return !Difference(compiled, i, 0, 0, barrier).empty() ||
           !Difference(compiled, i, 1, 1, barrier).empty();
  }

  std::vector<ir::Function> before_, lowered_;
  std::vector<uint64_t> seeds_;
  int barriers_ = 0, needed_ = 0;
  mutable int ran_ = 0, stopped_ = 0;
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GPU_SHIM_BATCH_FOR_TEST_H_
