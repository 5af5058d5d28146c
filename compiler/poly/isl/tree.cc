#include "compiler/poly/isl/tree.h"

#include <isl/aff.h>
#include <isl/schedule_node.h>
#include <isl/val.h>

namespace polynao::poly {

bool IsBand(const isl::schedule_node& node) { return node.isa<isl::schedule_node_band>(); }

bool HasBandBelow(const isl::schedule_node& node) {
  for (unsigned i = 0; i < node.n_children(); ++i) {
    const isl::schedule_node child = node.child(static_cast<int>(i));
    if (IsBand(child) || HasBandBelow(child)) return true;
  }
  return false;
}

int DepthOf(const isl::schedule_node& node) {
  return static_cast<int>(isl_schedule_node_get_schedule_depth(node.get()));
}

isl::multi_union_pw_aff ToMulti(const isl::union_pw_aff& f) {
  return isl::manage(isl_multi_union_pw_aff_from_union_pw_aff(f.copy()));
}

isl::union_pw_aff TileOf(const isl::union_pw_aff& f, int64_t size) {
  if (size == 1) return f;
  isl_val* value = isl_val_int_from_si(f.ctx().release(), size);
  return isl::manage(isl_union_pw_aff_floor(isl_union_pw_aff_scale_down_val(f.copy(), value)));
}

}  // namespace polynao::poly
