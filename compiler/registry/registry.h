// The passes by name, and how a list of them runs.
#ifndef COMPILER_REGISTRY_REGISTRY_H_
#define COMPILER_REGISTRY_REGISTRY_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/pass.h"
#include "compiler/target/target.h"

namespace polynao {

// One use of a pass: its name and options, as in "loop_partition(max_pieces=4)".
struct PassSpec {
  std::string name;
  OptionValues options;
};

// Parses "a,b(c=1;d=2)". An error names the position, or what is wrong with the name of a pass or with
// an option, and lists the passes or options to choose from.
absl::StatusOr<std::vector<PassSpec>> ParsePasses(std::string_view text);

// All passes.
absl::Span<const PassInfo> Passes();
// Null if there is none of that name.
const PassInfo* FindPass(std::string_view name);

// "max_pieces=16", "k=2 (1 for cpu, c)": an option with its default, or the defaults of targets.
std::string DefaultText(const PassOption& option);

// "an integer from 0 to 16", "0 or 1", or the names "original, min, smart".
std::string ValuesText(const PassOption& option);

// The passes that compile for `target`, in order.
absl::StatusOr<std::vector<PassSpec>> PipelineFor(const Target& target);

struct PipelineOptions {
  // Runs the verifier after each pass.
  bool verify = true;
  // Interprets the function before and after each pass on random arguments and compares all buffers
  // (ir::CompareMeaning).
  bool check = false;
  uint64_t check_seed = 1;
  // Scalar parameters that the check does not draw, by name.
  std::map<std::string, ir::Argument> check_scalars = {};
  // Passes to leave out, and after how many to stop (-1: never).
  std::vector<std::string> skip = {};
  int stop_after = -1;
  // Called after each pass; also after one that fails the check, before RunPasses returns the error.
  struct Step {
    const PassSpec* pass;
    const ir::Function* function;
    bool changed;
    double milliseconds;
    std::vector<std::string> stats;
    std::vector<std::string> explanations;
    std::string wrong = {};  // how the check found other results; empty if it did not
  };
  std::function<void(const Step&)> on_step = {};
  bool stats = false;
  bool explain = false;
};

// Runs `passes` in order. An error names the pass, or an option that the pass does not take.
absl::Status RunPasses(ir::Function& function, absl::Span<const PassSpec> passes,
                       const Target& target, const PipelineOptions& options = {});

}  // namespace polynao

#endif  // COMPILER_REGISTRY_REGISTRY_H_
