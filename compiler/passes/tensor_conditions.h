// The conditions under which an instruction may replace a nest whose values and loops match its
// pattern.
#ifndef COMPILER_PASSES_TENSOR_CONDITIONS_H_
#define COMPILER_PASSES_TENSOR_CONDITIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/tensor_attempt.h"
#include "compiler/passes/tensor_parameters.h"
#include "compiler/target/target.h"

namespace polynao {

// Describes the code around a nest in its function.
struct NestSurroundings {
  std::vector<ir::Stmt> loops;                        // outermost first
  std::vector<std::pair<ir::Expr, bool>> conditions;  // of ifs, with the branch taken
  absl::flat_hash_map<ir::Buffer, ir::Stmt> allocations;
};

class TensorConditions {
 public:
  TensorConditions(const Target& target, arith::Analyzer& analyzer,
                   const NestSurroundings& surroundings, ClosestPattern& closest)
      : target_(target),
        analyzer_(analyzer),
        c_(analyzer.context()),
        surroundings_(surroundings),
        closest_(closest) {}

  // Returns true if the instruction gives what the nest gives: no harmful overlap, strides that its
  // parameters can express, provable @require conditions, operands inside their buffers. Sets
  // a.match if so.
  bool Hold(TensorAttempt& a);

  // The iterations of the pattern's loop `j` (i64).
  ir::Expr Extent(const TensorAttempt& a, size_t j);

 private:
  bool Unproved(const TensorAttempt& a, int progress, std::string why);
  bool Aliasing(const TensorAttempt& a);
  bool Parameters(TensorAttempt& a);
  ir::Expr WithAddresses(const TensorAttempt& a, ir::Expr e);
  ir::Expr Base(const TensorAttempt& a, const NestAccess& access);
  bool Accept(TensorAttempt& a, const ParameterProblem& problem, absl::Span<const ir::Expr> texts,
              ir::VarMap values);
  bool RoundUpCount(const TensorAttempt& a, ir::Expr condition, ir::VarMap& values,
                    absl::flat_hash_map<ir::Buffer, int64_t>& needed, std::string& why);
  bool Reaches(const TensorAttempt& a, const ParameterProblem& problem, const ir::VarMap& values,
               absl::flat_hash_map<ir::Buffer, int64_t>& needed);
  bool NothingDefinedFrom(ir::Buffer buffer, int64_t begin, int64_t end);
  std::optional<int64_t> Cost(const TensorPattern& pattern, absl::Span<const ir::Expr> arguments);

  const Target& target_;
  arith::Analyzer& analyzer_;
  ir::Context& c_;
  const NestSurroundings& surroundings_;
  ClosestPattern& closest_;
};

}  // namespace polynao

#endif  // COMPILER_PASSES_TENSOR_CONDITIONS_H_
