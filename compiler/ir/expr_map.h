// A map from expressions to values, for what passes remember of each expression.
#ifndef COMPILER_IR_EXPR_MAP_H_
#define COMPILER_IR_EXPR_MAP_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// Like a hash map with expressions of one context as keys, which it finds by their dense ids: in two
// loads, and next to those that were made at the same time. There is no erasing and no iterating.
// References to values stay valid until Clear(). Takes 64 values of memory for each 64 neighbouring
// ids of which there is a key, and a pointer for each 64 ids that the context had so far.
template <typename T>
class ExprMap {
 public:
  // Null if there is none.
  T* Find(Expr e) { return const_cast<T*>(std::as_const(*this).Find(e)); }
  const T* Find(Expr e) const {
    const size_t page = e.id() / kPageSize;
    if (page >= pages_.size() || pages_[page] == nullptr) return nullptr;
    const size_t slot = e.id() % kPageSize;
    return (pages_[page]->present >> slot & 1) != 0 ? &pages_[page]->values[slot] : nullptr;
  }
  bool Contains(Expr e) const { return Find(e) != nullptr; }
  const T& At(Expr e) const {
    const T* value = Find(e);
    POLYNAO_CHECK(value != nullptr) << "expression " << e.id();
    return *value;
  }
  // Adds `value` unless there is a value for `e`; the value, and whether it was added.
  std::pair<T&, bool> TryAdd(Expr e, T value) {
    Page& page = PageOf(e);
    const size_t slot = e.id() % kPageSize;
    const bool added = (page.present >> slot & 1) == 0;
    if (added) {
      page.present |= uint64_t{1} << slot;
      page.values[slot] = std::move(value);
    }
    return {page.values[slot], added};
  }
  T& Set(Expr e, T value) {
    Page& page = PageOf(e);
    const size_t slot = e.id() % kPageSize;
    page.present |= uint64_t{1} << slot;
    return page.values[slot] = std::move(value);
  }
  // Takes time for each 64 neighbouring ids of which there is a key.
  void Clear() {
    for (const size_t page : used_) pages_[page]->present = 0;
    used_.clear();
  }

 private:
  static constexpr size_t kPageSize = 64;
  struct Page {
    uint64_t present = 0;
    std::array<T, kPageSize> values;
  };

  Page& PageOf(Expr e) {
    const size_t page = e.id() / kPageSize;
    if (page >= pages_.size()) pages_.resize(std::bit_ceil(page + 1));
    if (pages_[page] == nullptr) pages_[page] = std::make_unique<Page>();
    if (pages_[page]->present == 0) used_.push_back(page);
    return *pages_[page];
  }

  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<size_t> used_;  // pages with a key
};

}  // namespace polynao::ir

#endif  // COMPILER_IR_EXPR_MAP_H_
