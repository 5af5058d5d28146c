#include "compiler/poly/fuse/slide.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/space.h>

#include <bit>

namespace polynao::poly {

isl::map RowsBefore(const isl::set& rows) {
  const int last = static_cast<int>(isl_set_dim(rows.get(), isl_dim_set)) - 1;
  isl_space* space = isl_space_map_from_set(isl_set_get_space(rows.get()));
  isl_map* before = isl_map_universe(space);
  for (int i = 0; i < last; ++i) before = isl_map_equate(before, isl_dim_in, i, isl_dim_out, i);
  before = isl_map_order_gt(before, isl_dim_in, last, isl_dim_out, last);
  return isl::manage(before).intersect_domain(rows).intersect_range(rows);
}

isl::map NewIn(const isl::map& window, const isl::map& before) {
  return window.subtract(before.apply_range(window)).coalesce();
}

std::optional<SlidingBox> SlidingBoxOf(const isl::map& window, const isl::map& before) {
  const std::optional<Box> of_row = BoxOf(window);
  if (!of_row) return std::nullopt;
  const int x = static_cast<int>(isl_map_dim(window.get(), isl_dim_in)) - 1;
  const std::optional<Box> of_tile = BoxOf(
      isl::manage(isl_map_project_out(window.copy(), isl_dim_in, static_cast<unsigned>(x), 1)));
  if (!of_tile) return std::nullopt;
  SlidingBox result{.box = *of_tile};
  for (size_t d = 0; d < of_row->first.size(); ++d) {
    const isl::pw_aff& first = of_row->first[d];
    if (!isl_pw_aff_involves_dims(first.get(), isl_dim_in, static_cast<unsigned>(x), 1)) continue;
    if (result.slides >= 0) return std::nullopt;
    result.slides = static_cast<int>(d);
    // { the first element of a row -> that of a row before it }
    const isl::map at = isl::manage(isl_map_from_pw_aff(first.copy()));
    const isl::map moves = before.apply_domain(at).apply_range(at);
    const isl::map back = isl::manage(isl_map_order_lt(
        isl_map_universe(isl_map_get_space(moves.get())), isl_dim_in, 0, isl_dim_out, 0));
    if (!moves.intersect(back).is_empty()) return std::nullopt;
    const isl::pw_aff& place = of_tile->first[d];
    result.box.first[d] = isl::manage(isl_pw_aff_sub(place.copy(), place.copy()));
    result.box.sizes[d] =
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(of_row->sizes[d])));
  }
  return result;
}

}  // namespace polynao::poly
