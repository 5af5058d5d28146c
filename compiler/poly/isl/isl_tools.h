// isl inside this folder: who owns its context and objects, what it may spend, and how its errors become a Status.
//
// Objects have value semantics and throw isl::exception: those of isl/cpp.h, and IslOwner's of the types that it lacks.
// No function that other folders call lets one through: they run their work on a context in `Guarded`. Functions that
// exist in isl's C interface only are called as `isl::manage(isl_f(x.copy()))`. No pointer of isl's stays without an
// owner where something may throw, and nothing throws in a function that isl's C code calls.
#ifndef COMPILER_POLY_ISL_ISL_TOOLS_H_
#define COMPILER_POLY_ISL_ISL_TOOLS_H_

#include <isl/aff.h>
#include <isl/constraint.h>
#include <isl/cpp.h>
#include <isl/ctx.h>
#include <isl/local_space.h>
#include <isl/mat.h>
#include <isl/polynomial.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/text.h"

namespace polynao::poly {

// Returns true if isl did all operations that `context` allows. Every further function of isl fails then, each with an
// error of its own.
bool IsSpent(isl_ctx* context);

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
  bool IsSpent() const { return poly::IsSpent(context_); }

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

// Owns one object of a type that isl/cpp.h lacks, as its own types do.
template <typename T, T* (*Copy)(T*), T* (*Free)(T*)>
class IslOwner {
 public:
  // Takes what an isl function returned. Throws where that is null, which says that it failed.
  explicit IslOwner(T* object) : object_(object) {
    if (object == nullptr) isl::exception::throw_invalid("isl failed", __FILE__, __LINE__);
  }
  IslOwner(const IslOwner& other) : IslOwner(other.copy()) {}
  IslOwner(IslOwner&& other) noexcept : object_(other.release()) {}
  IslOwner& operator=(IslOwner other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~IslOwner() { Free(object_); }

  T* get() const { return object_; }
  T* copy() const { return Copy(object_); }
  T* release() { return std::exchange(object_, nullptr); }

 private:
  T* object_;
};

using IslConstraint = IslOwner<isl_constraint, isl_constraint_copy, isl_constraint_free>;
using IslConstraintList =
    IslOwner<isl_constraint_list, isl_constraint_list_copy, isl_constraint_list_free>;
using IslLocalSpace = IslOwner<isl_local_space, isl_local_space_copy, isl_local_space_free>;
using IslMatrix = IslOwner<isl_mat, isl_mat_copy, isl_mat_free>;
using IslQuasiPolynomial = IslOwner<isl_qpolynomial, isl_qpolynomial_copy, isl_qpolynomial_free>;
using IslPwQuasiPolynomial =
    IslOwner<isl_pw_qpolynomial, isl_pw_qpolynomial_copy, isl_pw_qpolynomial_free>;
using IslUnionQuasiPolynomial = IslOwner<isl_union_pw_qpolynomial, isl_union_pw_qpolynomial_copy,
                                         isl_union_pw_qpolynomial_free>;

// isl's text of a set, map, schedule, ...
template <typename T>
std::string Text(const T& object) {
  std::ostringstream out;
  out << object;
  return out.str();
}

std::vector<isl::set> SetsOf(const isl::union_set& set);
std::vector<isl::map> MapsOf(const isl::union_map& map);
std::vector<IslPwQuasiPolynomial> PartsOf(const IslUnionQuasiPolynomial& count);

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
