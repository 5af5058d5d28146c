// What a cost model says of a schedule: its cycles by what takes them, and the memory that it needs.
#ifndef COMPILER_MAPPING_ESTIMATE_H_
#define COMPILER_MAPPING_ESTIMATE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace polynao::mapping {

// Resources of CostParts. Move-DMAs are bound by their ports or by SMEM; waits are latencies, start-up and barriers.
inline constexpr std::string_view kGmem = "GMEM", kLink = "cluster link", kIoDma = "IO-DMA",
                                  kMemoryCore = "memory core", kMoveDma = "Move-DMA",
                                  kTensorUnit = "tensor unit", kVectorUnit = "vector unit",
                                  kWaits = "waits", kScalarUnit = "scalar code", kFactor = "factor";

// Cycles as a sum. Phases follow one another, each of them `times` times. The lanes of a phase go on at the same time,
// so it takes as long as its longest lane. The parts of a lane follow one another:
//
//   CostParts cost;
//   cost.Phase("first load", 1), cost.Lane(), cost.Add("image", kGmem, 300);
//   cost.Phase("steps", 7);                                     cost.cycles() == 300 + 7 * max(90 + 20, 100) == 1070
//   cost.Lane(), cost.Add("sums", kTensorUnit, 90), cost.Add("relu", kVectorUnit, 20);
//   cost.Lane(), cost.Add("image", kGmem, 100);
//
// Names must outlive the object: they are literals. A search computes thousands of these, so nothing is allocated.
class CostParts {
 public:
  struct Part {
    std::string_view what, resource;
    double cycles = 0;
  };

  void Phase(std::string_view name, double times);
  void Lane();
  // A part of 0 cycles is left out.
  void Add(std::string_view what, std::string_view resource, double cycles);
  // A lane of all parts that make `other` as long as it is.
  void LaneOfLongest(const CostParts& other);
  // The phases of `other` behind these.
  void Append(const CostParts& other);

  // The only place where the total is computed.
  double cycles() const;

  struct LaneOf {
    std::vector<Part> parts;
    double cycles = 0;
  };
  struct PhaseOf {
    std::string_view name;
    double times = 1;
    std::vector<LaneOf> lanes;  // the longest first; none is empty
    double cycles() const { return lanes.empty() ? 0 : times * lanes[0].cycles; }
  };
  std::vector<PhaseOf> Phases() const;
  // For how many cycles a resource works, and for how many it does so in the longest lane: these add up to cycles().
  struct Share {
    std::string_view resource;
    double busy = 0, decides = 0;
  };
  // Those that decide most first.
  std::vector<Share> Shares() const;
  // The resource that decides most; "" without parts.
  std::string_view Binds() const;

 private:
  struct PhaseBegin {
    std::string_view name;
    double times = 1;
    size_t first_lane = 0;
  };
  size_t LanesEnd(size_t phase) const {
    return phase + 1 < phases_.size() ? phases_[phase + 1].first_lane : lanes_.size();
  }
  size_t PartsEnd(size_t lane) const {
    return lane + 1 < lanes_.size() ? lanes_[lane + 1] : parts_.size();
  }
  double LaneCycles(size_t lane) const;

  absl::InlinedVector<PhaseBegin, 8> phases_;
  absl::InlinedVector<size_t, 16> lanes_;  // the first part of each
  absl::InlinedVector<Part, 24> parts_;
};

// Bytes of the memories that a schedule takes.
struct Needs {
  int64_t nmem = 0, wmem = 0, smem = 0;
};

struct Estimate {
  std::string_view kind;  // of schedules, where an operator has several: "weights stream"
  CostParts cost;
  Needs needs;
};

}  // namespace polynao::mapping

#endif  // COMPILER_MAPPING_ESTIMATE_H_
