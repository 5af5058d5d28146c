#include "isa/check/access_list.h"

#include <algorithm>
#include <utility>

#include "isa/ranges.h"

namespace polynao::isa {

bool Access::operator==(const Access& other) const {
  return pc == other.pc && is_uncertain == other.is_uncertain &&
         ranges.space == other.ranges.space && ranges.is_write == other.ranges.is_write &&
         ranges.operand == other.ranges.operand && ranges.begin == other.ranges.begin &&
         ranges.run == other.ranges.run && ranges.dims == other.ranges.dims;
}

const Access& AccessList::Canonical(const Item& item) {
  if (!item.is_current) {
    item.canonical.ranges = isa::Canonical(item.merged);
    item.is_current = true;
  }
  return item.canonical;
}

bool AccessList::Merge(Item& item, const Item& next) {
  ByteRanges& a = item.merged;
  const ByteRanges& b = next.merged;
  if (a.run != b.run) return false;
  const int64_t distance = b.begin - a.begin;
  if (a.dims == b.dims) {
    // Two of a kind, or the same bytes once more.
    if (distance != 0) a.dims.insert(a.dims.begin(), {2, distance});
    item.is_current = item.is_current && distance == 0;
    return true;
  }
  if (a.dims.size() != b.dims.size() + 1 ||
      !std::equal(b.dims.begin(), b.dims.end(), a.dims.begin() + 1)) {
    return false;
  }
  auto& [count, stride] = a.dims.front();
  if (distance == count * stride) {
    ++count;
    item.is_current = false;
    return true;
  }
  return distance % stride == 0 && distance / stride >= 0 && distance / stride < count;
}

void AccessList::Add(Access access) {
  const Key key = {access.pc, access.ranges.operand, access.ranges.is_write, access.is_uncertain};
  const auto [it, is_new] = places_.try_emplace(key, series_.size());
  if (is_new) series_.emplace_back();
  std::vector<Item>& items = series_[it->second].items;
  ByteRanges merged = access.ranges;
  items.push_back(
      {.merged = std::move(merged), .canonical = std::move(access), .is_current = true});
  while (items.size() > 1 && Merge(items[items.size() - 2], items.back())) items.pop_back();
}

bool AccessList::Contains(const Access& access) const {
  bool is_in = false;
  ForEach([&](const Access& own) {
    is_in = own == access;
    return !is_in;
  });
  return is_in;
}

bool AccessList::Join(const AccessList& other) {
  AccessList joined;
  const auto add_all = [&](const AccessList& from, const AccessList& against) {
    from.ForEach([&](Access access) {
      access.is_uncertain = access.is_uncertain || !against.Contains(access);
      joined.Add(std::move(access));
      return true;
    });
  };
  add_all(*this, other);
  add_all(other, *this);
  bool has_changed = false;
  joined.ForEach([&](const Access& access) {
    has_changed = !Contains(access);
    return !has_changed;
  });
  if (has_changed) *this = std::move(joined);
  return has_changed;
}

void AccessList::Clear() {
  series_.clear();
  places_.clear();
}

}  // namespace polynao::isa
