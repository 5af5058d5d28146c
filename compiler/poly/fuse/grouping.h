// Groups of a part's stages, with arrays that several last stages read.
//
// A stage runs in the tiles of one root, so all of its readers must be in that group. Two things let several roots
// share it:
//
//   y[i] = a[i] + a[i + 1]    z[i] = a[i] * a[i + 1]    equal footprints: y and z become one stage with two arrays. A tile has
//                                                       elements of one index of both, and computes a for both.
//   y[i] = a[0, i]            z[i] = a[1, i]            disjoint ones: a becomes a.0 and a.1, each with what one of them reads.
//
// So nothing is computed twice that would not be with one root. Source: Zhao and Di, MICRO 2020, section 4.3, which
// names these two cases; in the corrected form of TOCS 2024 what no root takes in stays.
//
//   A[i] = f(A[i])   C[i] = A[i] + A[i + 1]             an array that lives on: tiles of C compute what they read of it for themselves,
//                                                       from the old values, and the stage itself runs behind them (part_variants.h).
//
// That computes f twice, which pays where tiles read less from memory for it.
#ifndef COMPILER_POLY_FUSE_GROUPING_H_
#define COMPILER_POLY_FUSE_GROUPING_H_

#include <functional>
#include <memory>
#include <vector>

#include "compiler/poly/arrange/options.h"
#include "compiler/poly/fuse/group_cost.h"
#include "compiler/poly/fuse/groups.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// Its members refer to each other: it stays where it is.
struct Grouping {
  Grouping() = default;
  Grouping(const Grouping&) = delete;
  Grouping& operator=(const Grouping&) = delete;

  Scop scop;  // the part, or a variant of it
  std::vector<Stage> stages;
  std::unique_ptr<GroupModel> model;
  std::vector<PlannedGroup> groups;
};

using ModelMaker =
    std::function<std::unique_ptr<GroupModel>(const Scop& scop, const std::vector<Stage>& stages)>;

// The stages of the part in groups (groups.h). Roots are joined and arrays split where the model finds that cheaper;
// with `join_all`, where that leaves fewer groups. Stages that store what lives on run behind tiles that compute it,
// too, where the model finds that cheaper, or wherever tiles are asked for. Throws isl::exception.
std::unique_ptr<Grouping> GroupStages(const Scop& scop, const ScheduleOptions& options,
                                      const ModelMaker& model);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_GROUPING_H_
