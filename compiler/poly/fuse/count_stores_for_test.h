// How often a function stores to each array, found by running it.
#ifndef COMPILER_POLY_FUSE_COUNT_STORES_FOR_TEST_H_
#define COMPILER_POLY_FUSE_COUNT_STORES_FOR_TEST_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {

class StoreCounter : public ir::Mutator {
 public:
  // Stores that the interpreter executes, by the array's name; those to a tile's copy "b.tile" count for "b".
  static std::map<std::string, int64_t> Count(const ir::Function& function, uint64_t seed) {
    ir::Context& c = *function.context;
    StoreCounter counter(c);
    ir::Function counted = function;
    counted.body = counter.Mutate(function.body);
    std::vector<ir::Stmt> body;
    for (const auto& [name, cell] : counter.cells_) {
      body.push_back(c.Store(cell, {}, c.I64(0)));
      counted.params.push_back(
          {.var = {}, .buffer = cell, .access = ir::Access::kInOut, .scope = {}});
    }
    body.push_back(counted.body);
    counted.body = c.Seq(body);
    const ir::RandomArguments arguments(counted, seed);
    const absl::Status status = ir::Interpret(counted, arguments.arguments());
    POLYNAO_CHECK(status.ok()) << status;
    std::map<std::string, int64_t> counts;
    size_t next = arguments.tensors().size() - counter.cells_.size();
    for (const auto& [name, cell] : counter.cells_)
      counts[name] = arguments.tensors()[next++].Int(0);
    return counts;
  }

  using Mutator::Mutate;
  ir::Stmt Mutate(ir::Stmt s) override {
    if (!s.Is(ir::StmtKind::kStore)) return Mutator::Mutate(s);
    const std::string name(s.buffer()->name.substr(0, s.buffer()->name.find('.')));
    ir::Buffer& cell = cells_[name];
    if (!cell) cell = context_.NewBuffer("stores." + name, ir::Type::kI64, {});
    const ir::Expr one_more = context_.Load(cell, {}) + 1;
    return context_.Seq({s, context_.Store(cell, {}, one_more)});
  }

 private:
  explicit StoreCounter(ir::Context& context) : context_(context) {}

  ir::Context& context_;
  std::map<std::string, ir::Buffer> cells_;
};

inline int64_t Sum(const std::map<std::string, int64_t>& counts) {
  int64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_COUNT_STORES_FOR_TEST_H_
