#include "compiler/mapping/estimate.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace polynao::mapping {

void CostParts::Phase(std::string_view name, double times) {
  phases_.push_back({name, times, lanes_.size()});
}

void CostParts::Lane() {
  POLYNAO_CHECK(!phases_.empty());
  lanes_.push_back(parts_.size());
}

void CostParts::Add(std::string_view what, std::string_view resource, double cycles) {
  POLYNAO_CHECK(!phases_.empty() && phases_.back().first_lane < lanes_.size()) << what.data();
  if (cycles != 0) parts_.push_back({what, resource, cycles});
}

void CostParts::LaneOfLongest(const CostParts& other) {
  Lane();
  for (const PhaseBegin& phase : other.phases_) {
    const size_t p = static_cast<size_t>(&phase - other.phases_.data());
    size_t longest = phase.first_lane;
    for (size_t lane = longest; lane < other.LanesEnd(p); ++lane) {
      if (other.LaneCycles(lane) > other.LaneCycles(longest)) longest = lane;
    }
    if (longest == other.LanesEnd(p)) continue;
    for (size_t i = other.lanes_[longest]; i < other.PartsEnd(longest); ++i) {
      const Part& part = other.parts_[i];
      Add(part.what, part.resource, phase.times * part.cycles);
    }
  }
}

void CostParts::Append(const CostParts& other) {
  for (const PhaseBegin& phase : other.phases_) {
    phases_.push_back({phase.name, phase.times, phase.first_lane + lanes_.size()});
  }
  const size_t parts = parts_.size();
  for (const size_t first : other.lanes_) lanes_.push_back(first + parts);
  parts_.insert(parts_.end(), other.parts_.begin(), other.parts_.end());
}

double CostParts::LaneCycles(size_t lane) const {
  double cycles = 0;
  for (size_t i = lanes_[lane]; i < PartsEnd(lane); ++i) cycles += parts_[i].cycles;
  return cycles;
}

double CostParts::cycles() const {
  double all = 0;
  for (size_t phase = 0; phase < phases_.size(); ++phase) {
    double longest = 0;
    for (size_t lane = phases_[phase].first_lane; lane < LanesEnd(phase); ++lane) {
      longest = std::max(longest, LaneCycles(lane));
    }
    all += phases_[phase].times * longest;
  }
  return all;
}

std::vector<CostParts::PhaseOf> CostParts::Phases() const {
  std::vector<PhaseOf> phases;
  for (size_t p = 0; p < phases_.size(); ++p) {
    PhaseOf& phase = phases.emplace_back();
    phase.name = phases_[p].name, phase.times = phases_[p].times;
    for (size_t lane = phases_[p].first_lane; lane < LanesEnd(p); ++lane) {
      const auto begin = parts_.begin() + static_cast<ptrdiff_t>(lanes_[lane]);
      const auto end = parts_.begin() + static_cast<ptrdiff_t>(PartsEnd(lane));
      if (begin != end) phase.lanes.push_back({{begin, end}, LaneCycles(lane)});
    }
    std::sort(phase.lanes.begin(), phase.lanes.end(),
              [](const LaneOf& a, const LaneOf& b) { return a.cycles > b.cycles; });
  }
  std::erase_if(phases, [](const PhaseOf& phase) { return phase.cycles() == 0; });
  return phases;
}

std::vector<CostParts::Share> CostParts::Shares() const {
  std::vector<Share> shares;
  for (const PhaseOf& phase : Phases()) {
    for (size_t lane = 0; lane < phase.lanes.size(); ++lane) {
      for (const Part& part : phase.lanes[lane].parts) {
        auto it = std::find_if(shares.begin(), shares.end(),
                               [&](const Share& share) { return share.resource == part.resource; });
        if (it == shares.end()) it = shares.insert(it, {part.resource});
        it->busy += phase.times * part.cycles;
        if (lane == 0) it->decides += phase.times * part.cycles;
      }
    }
  }
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return std::pair(-a.decides, a.resource) < std::pair(-b.decides, b.resource);
  });
  return shares;
}

std::string_view CostParts::Binds() const {
  const std::vector<Share> shares = Shares();
  return shares.empty() ? "" : shares[0].resource;
}

}  // namespace polynao::mapping
