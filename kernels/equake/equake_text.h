#ifndef KERNELS_EQUAKE_EQUAKE_TEXT_H_
#define KERNELS_EQUAKE_EQUAKE_TEXT_H_

#include <string_view>

namespace polynao::kernels {

// kernels/equake/NAME.nir; empty if there is none.
std::string_view EquakeText(std::string_view name);

}  // namespace polynao::kernels

#endif  // KERNELS_EQUAKE_EQUAKE_TEXT_H_
