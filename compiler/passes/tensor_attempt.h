// One try to match a nest with the pattern of an instruction, as tensor_match.h and
// tensor_conditions.h fill it in.
#ifndef COMPILER_PASSES_TENSOR_ATTEMPT_H_
#define COMPILER_PASSES_TENSOR_ATTEMPT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/affine.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/tensor_pattern.h"

namespace polynao {

// The pattern that came closest to a nest, and the nodes that differ: what --explain shows.
struct ClosestPattern {
  struct Difference {
    int progress = -1;  // how far the match came, a number below; -1: no pattern was tried
    std::string mnemonic;
    std::string why;
    std::string program;
    std::string pattern;
  };
  bool wanted = false;  // whether anybody asks
  Difference difference;

  // Returns true if a difference that the match meets after so much progress is worth describing.
  bool IsCloser(int progress) const { return wanted && progress > difference.progress; }
};

// Progress: the nodes of the value that matched, then these plus the loops, then these plus the
// number of the condition.
inline constexpr int kProgressLoops = 1000;
inline constexpr int kProgressConditions = 2000;

// Binds the values of pattern and nest to each other.
struct TensorBinding {
  ir::VarMap values = {};  // the pattern's scalar operands
  absl::flat_hash_map<ir::Buffer, const NestAccess*> buffers = {};
  // The same access in the pattern and in the nest.
  std::vector<std::pair<const ir::Affine*, const NestAccess*>> accesses = {};
};

// A match of one nest with one pattern.
struct TensorMatch {
  const TensorPattern* pattern = nullptr;
  std::vector<ir::Expr> arguments = {};
  size_t around = 0;  // the nest's loops that stay around the instruction
  int64_t cost = 0;
  // The smallest wins: few instructions, then cheap ones, then few operands.
  auto Rank() const { return std::tuple(around, cost, arguments.size()); }
  // By buffer: one more than the last element that the instruction reaches, where that is more than
  // the nest reaches.
  absl::flat_hash_map<ir::Buffer, int64_t> needed = {};
};

// A nest, a pattern, the number of loops that stay around, and what has been bound so far.
struct TensorAttempt {
  const TensorNest& nest;
  const TensorPattern& pattern;
  size_t around;
  ir::VarMap to_min = {};  // the first values of the loops that the instruction runs
  TensorBinding binding = {};
  // For each loop of the pattern the run [begin, end) of the nest's loops that it stands for; an
  // empty run is one iteration.
  std::vector<std::pair<size_t, size_t>> runs = {};
  int assignments = 0;
  std::optional<TensorMatch> match = {};
};

// A store as one line of a message.
std::string StoreText(ir::Stmt store);
// A stride or a count in a message: numbers without their type.
std::string NumberText(ir::Expr e);

}  // namespace polynao

#endif  // COMPILER_PASSES_TENSOR_ATTEMPT_H_
