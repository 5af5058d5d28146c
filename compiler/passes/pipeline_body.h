// The body of a loop to be pipelined, as a list of instructions with their stages.
#ifndef COMPILER_PASSES_PIPELINE_BODY_H_
#define COMPILER_PASSES_PIPELINE_BODY_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao::pipelining {

inline constexpr int kDefaultCopies = 2;
inline constexpr int kMostCopies = 3;

enum class Stage : uint8_t { kPrepare, kLoad, kFetch, kCompute, kStore };
inline constexpr size_t kStageCount = 5;
inline constexpr std::array<Stage, kStageCount> kStages = {
    Stage::kPrepare, Stage::kLoad, Stage::kFetch, Stage::kCompute, Stage::kStore};
inline constexpr std::array<std::string_view, kStageCount> kStageNames = {
    "prepare", "load", "fetch", "compute", "store"};
constexpr size_t Index(Stage stage) { return static_cast<size_t>(stage); }

// A queued instruction; or, in the body of a loop of a cluster, a nest: a loop over its cores. A nest
// counts as an instruction of the compute queue; one that only copies from the body's buffers in smem to others of the
// body as one of the move queue, one that only stores these as one of the io queue.
struct Unit {
  std::string name;
  bool is_nest = false;
  isa::Queue queue = isa::Queue::kCompute;
  Stage stage = Stage::kCompute;
  int inner_loop = 0;  // number of the outermost loop around it inside the body; 0: none
  std::vector<std::pair<ir::Stmt, bool>> branches;  // ifs around it; true: on the then side
  std::vector<ir::Buffer> reads;
  std::vector<ir::Buffer> writes;
};

struct Body {
  ir::Stmt stmt;
  std::vector<ir::Buffer> buffers;  // allocated in it, outermost first
  std::vector<Unit> units;          // in program order
  int copies = kDefaultCopies;      // of a buffer, at most
  bool of_cluster = false;          // the cluster's memory core loads and its cores compute
};

// Returns true if only one of the two runs in an iteration.
bool AreAlternatives(const Unit& a, const Unit& b);

// Calls visit(buffer) for every buffer that both access and one writes.
template <typename Visit>
void ForEachConflict(const Unit& a, const Unit& b, const Visit& visit) {
  const auto contains = [](const std::vector<ir::Buffer>& buffers, ir::Buffer x) {
    return std::find(buffers.begin(), buffers.end(), x) != buffers.end();
  };
  for (ir::Buffer x : a.writes) {
    if (contains(b.reads, x) || contains(b.writes, x)) visit(x);
  }
  for (ir::Buffer x : a.reads) {
    if (contains(b.writes, x)) visit(x);
  }
}

// Absent if the body cannot be pipelined; `reason` then says why.
std::optional<Body> ReadBody(ir::Stmt body, const Target& target, std::string& reason);

// Makes computation of the stage kFetch. Returns whether there was any.
bool ComputeWhatIsFetched(Body& body);

}  // namespace polynao::pipelining

#endif  // COMPILER_PASSES_PIPELINE_BODY_H_
