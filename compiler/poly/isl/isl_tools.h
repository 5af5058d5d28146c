// isl inside this folder: who owns its context, what it may spend, and how its errors become a Status.
//
// Objects of isl/cpp.h have value semantics and throw isl::exception. No function that other folders call
// lets one through: they run their work on a context in `Guarded`. Functions that exist in isl's C interface only
// are wrapped here, or called as `isl::manage(isl_f(x.copy()))`.
#ifndef COMPILER_POLY_ISL_ISL_TOOLS_H_
#define COMPILER_POLY_ISL_ISL_TOOLS_H_

#include <isl/cpp.h>
#include <isl/ctx.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/text.h"

namespace polynao::poly {

// Owns an isl context. Every object made in it must go first; a struct that holds isl objects
// declares a shared_ptr to their context as its first member, which is destroyed last.
class IslContext {
 public:
  IslContext();
  ~IslContext();
  IslContext(const IslContext&) = delete;
  IslContext& operator=(const IslContext&) = delete;

  isl_ctx* get() const { return context_; }
  isl::ctx ctx() const { return isl::ctx(context_); }

  // From here on isl may do `operations` steps (its own count); then it throws. 0: no limit.
  void Allow(unsigned long operations);
  // Returns true if they are done. Every further function of isl fails then, each with an error of
  // its own.
  bool IsSpent() const;

 private:
  isl_ctx* context_;
};

// `work()`, with objects of `isl`, or an error if isl throws: ResourceExhausted if the operations allowed were
// not enough; else Internal, a mistake in this folder or in isl.
absl::Status StatusOf(const IslContext& isl, const isl::exception& error);
template <typename Work>
auto Guarded(const IslContext& isl, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const isl::exception& error) {
    return StatusOf(isl, error);
  }
}

// isl's text of a set, map, schedule, ...
template <typename T>
std::string Text(const T& object) {
  std::ostringstream out;
  out << object;
  return out.str();
}

std::vector<isl::set> SetsOf(const isl::union_set& set);
std::vector<isl::map> MapsOf(const isl::union_map& map);

// "S0" of { S0[i, j] }; "" if the tuple has no name.
std::string TupleName(const isl::set& set);
std::string DomainName(const isl::map& map);
std::string RangeName(const isl::map& map);

// Dimensions of a set; parameters of a map or set.
int Dimensions(const isl::set& set);

// { S[i] -> [f(i)] } for each set: the coordinate `position` of its elements.
isl::multi_union_pw_aff Coordinate(const isl::union_set& domain, int position);

// The members `order[0]`, `order[1]`, ... of a schedule { S[i] -> [t0, t1, ...] }, in that order.
isl::multi_union_pw_aff Members(const isl::multi_union_pw_aff& schedule,
                                const std::vector<int>& order);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ISL_ISL_TOOLS_H_
