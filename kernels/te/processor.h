// Operators on processors: an expression, without a schedule of its own.
#ifndef KERNELS_TE_PROCESSOR_H_
#define KERNELS_TE_PROCESSOR_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"

namespace polynao::kernels {

// `output` as the polyhedral scheduler arranges it for this machine and the target's compiler ("auto": tiles, vectors,
// packed tiles). What is elementwise before the first reduction is computed where it is read, and so is what one other
// elementwise compute of as many elements reads. A sum of products of floats rounds each product and its sum once:
//
//   S[y, c] = S[y, c] + X[y, i] * F[c, i]    -->    S[y, c] = fma(X[y, i], F[c, i], S[y, c])
//
// `takes_dots`: sums of bf16 may be made by instructions that add several products (ScheduleOptions::takes_dots).
absl::StatusOr<ir::Function> LowerForProcessor(const te::Tensor& output, const Target& target,
                                               bool takes_dots = false);

struct ProcessorOptions {
  bool has_tiles = true;  // as in poly::HostMachine
  int threads = 0;        // 0: as many as the machine runs at once
  bool takes_dots = false;
  std::vector<std::string> constants = {};  // placeholders whose values are known before the run
};
struct ProcessorFunctions {
  ir::Function run;
  // Packs panels of constants, which are parameters of `run` in their place. Nothing: `run` takes
  // all as they are.
  std::optional<ir::Function> before = {};
};
absl::StatusOr<ProcessorFunctions> LowerForProcessor(const te::Tensor& output,
                                                     const ProcessorOptions& options);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_PROCESSOR_H_
