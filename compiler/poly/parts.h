// Schedulers for different machines share the walk over the static control parts of a function.
#ifndef COMPILER_POLY_PARTS_H_
#define COMPILER_POLY_PARTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/model/scop.h"
#include "compiler/poly/poly.h"

namespace polynao::poly {

// The new code of a part; completes its report.
using MakePart =
    std::function<absl::StatusOr<ir::Stmt>(const Extraction&, const Scop&, PartReport*)>;

// Puts what `make` returns in place of each part of `function`. A part for which it has an error stays, and the report
// has the reason, but InvalidArgument is an error of the whole: wrong options. With the strategy "text" there must be
// one part.
absl::StatusOr<ScheduleReport> ScheduleParts(ir::Function& function, const std::string& strategy,
                                             int64_t max_operations, const MakePart& make);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_PARTS_H_
