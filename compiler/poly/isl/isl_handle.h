// Ownership of isl's objects, for the files of this folder; no header that others include needs it.
//
// isl's C interface says of each argument and result who owns it: a function consumes what it takes
// (__isl_take), borrows what it keeps (__isl_keep) and gives what it returns (__isl_give). After an
// error isl passes null through, and so do these.
#ifndef COMPILER_POLY_ISL_ISL_HANDLE_H_
#define COMPILER_POLY_ISL_ISL_HANDLE_H_

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/polynomial.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/union_map.h>
#include <isl/union_set.h>
#include <isl/val.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace polynao::poly {

// Owns one object. `copy()` and `take()` give what isl consumes, `get()` what it borrows.
template <typename T, T* (*Copy)(T*), T* (*Free)(T*)>
class IslHandle {
 public:
  IslHandle() = default;
  explicit IslHandle(T* object) : object_(object) {}
  IslHandle(const IslHandle& other) : object_(Copy(other.object_)) {}
  IslHandle(IslHandle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  IslHandle& operator=(IslHandle other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~IslHandle() { Free(object_); }

  explicit operator bool() const { return object_ != nullptr; }
  T* get() const { return object_; }
  T* copy() const { return Copy(object_); }
  T* take() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

using IslSet = IslHandle<isl_set, isl_set_copy, isl_set_free>;
using IslMap = IslHandle<isl_map, isl_map_copy, isl_map_free>;
using IslSpace = IslHandle<isl_space, isl_space_copy, isl_space_free>;
using IslVal = IslHandle<isl_val, isl_val_copy, isl_val_free>;
using IslUnionSet = IslHandle<isl_union_set, isl_union_set_copy, isl_union_set_free>;
using IslUnionMap = IslHandle<isl_union_map, isl_union_map_copy, isl_union_map_free>;
using IslPwAff = IslHandle<isl_pw_aff, isl_pw_aff_copy, isl_pw_aff_free>;
using IslUnionFunction =
    IslHandle<isl_union_pw_multi_aff, isl_union_pw_multi_aff_copy, isl_union_pw_multi_aff_free>;
using IslPwQuasiPolynomial =
    IslHandle<isl_pw_qpolynomial, isl_pw_qpolynomial_copy, isl_pw_qpolynomial_free>;
using IslUnionQuasiPolynomial = IslHandle<isl_union_pw_qpolynomial, isl_union_pw_qpolynomial_copy,
                                          isl_union_pw_qpolynomial_free>;

// Takes the text that isl allocated.
inline std::string TakeIslText(char* text) {
  std::string result = text == nullptr ? "" : text;
  std::free(text);
  return result;
}

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ISL_ISL_HANDLE_H_
