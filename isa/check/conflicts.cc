#include "isa/check/conflicts.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "base/text.h"
#include "isa/ranges.h"

namespace polynao::isa {
namespace {

using Barrier = Instruction::Barrier;

// An access, by whom, and behind how many barriers of any kind.
struct Shared {
  const Access* access;
  const CheckedCore* core;
  size_t phase;
};

// Finds the pairs of `accesses` that share a byte, of two cores that no barrier orders; sorts them.
void FindPairs(std::vector<Shared>& accesses, bool is_gmem, Findings& findings) {
  std::sort(accesses.begin(), accesses.end(), [](const Shared& a, const Shared& b) {
    return a.access->ranges.begin < b.access->ranges.begin;
  });
  std::vector<Shared> open;  // those before that reach beyond the begin of this one
  for (const Shared& later : accesses) {
    const ByteRanges& ranges = later.access->ranges;
    std::erase_if(open, [&](const Shared& s) { return s.access->ranges.end() <= ranges.begin; });
    for (const Shared& earlier : open) {
      if (*earlier.core == *later.core) continue;
      if (!earlier.access->ranges.is_write && !ranges.is_write) continue;
      const bool is_in_cluster = earlier.core->cluster == later.core->cluster;
      if (is_in_cluster && earlier.phase != later.phase) continue;
      const bool is_uncertain = later.access->is_uncertain || earlier.access->is_uncertain;
      if (findings.HasHazard(later.access->pc, earlier.access->pc, is_uncertain)) continue;
      if (!CommonByte(earlier.access->ranges, ranges)) continue;
      findings.AddHazard(*later.core, *later.access, *earlier.core, *earlier.access,
                         is_gmem && !is_in_cluster ? "no barrier of the card" : "no barrier");
    }
    open.push_back(later);
  }
}

void Append(const AccessList& list, const CoreTrace& trace, size_t phase,
            std::vector<Shared>& accesses) {
  list.ForEach([&](const Access& access) {
    accesses.push_back({&access, &trace.core, phase});
    return true;
  });
}

// "core 0 of cluster 0 waits at pc 5 "barrier.cluster""
std::string WaitText(const CoreTrace& trace, size_t number, const Findings& findings) {
  return StrCat(CoreText(trace.core), " waits at ", findings.Place(trace.barriers[number].pc));
}

// Of two cores that come to different barriers number `number`, or of which one comes to none.
void AddMissed(const CoreTrace& a, const CoreTrace& b, size_t number, Findings& findings) {
  const bool a_waits = number < a.barriers.size();
  const CoreTrace& waits = a_waits ? a : b;
  const CoreTrace& misses = a_waits ? b : a;
  const bool both_wait = number < misses.barriers.size();
  const std::string other =
      both_wait ? WaitText(misses, number, findings)
                : StrCat(CoreText(misses.core), " ends at ", findings.Place(misses.end_pc),
                         " behind ", misses.barriers.size(), " barriers");
  findings.AddBarrier(waits.barriers[number].pc,
                      both_wait ? misses.barriers[number].pc : misses.end_pc,
                      StrCat(WaitText(waits, number, findings), " for ever, its barrier number ",
                             number + 1, ": ", other));
}

// Of two clusters, one of whose cores comes to more barriers of the card.
void AddMissedOfCard(const CoreTrace& a, const CoreTrace& b, Findings& findings) {
  const auto of_card = [](const CoreTrace& trace) {
    std::vector<size_t> numbers;
    for (size_t i = 0; i < trace.barriers.size(); ++i) {
      if (trace.barriers[i].kind == Barrier::kGlobal) numbers.push_back(i);
    }
    return numbers;
  };
  const std::vector<size_t> of_a = of_card(a), of_b = of_card(b);
  if (of_a.size() == of_b.size()) return;
  const bool a_waits = of_a.size() > of_b.size();
  const CoreTrace& misses = a_waits ? b : a;
  const CoreTrace& waits = a_waits ? a : b;
  const size_t number = a_waits ? of_a[of_b.size()] : of_b[of_a.size()];
  findings.AddBarrier(
      waits.barriers[number].pc, misses.end_pc,
      StrCat(WaitText(waits, number, findings), " for ever: ", CoreText(misses.core), " ends at ",
             findings.Place(misses.end_pc), " behind ", std::min(of_a.size(), of_b.size()),
             " barriers of the card"));
}

}  // namespace

void FindSharedHazards(const std::vector<CoreTrace>& traces, Findings& findings) {
  std::map<std::pair<int, size_t>, std::vector<Shared>> in_smem;  // by cluster and phase
  std::map<size_t, std::vector<Shared>> in_gmem;                  // by barriers of the card
  for (const CoreTrace& trace : traces) {
    size_t of_card = 0;
    for (size_t phase = 0; phase < trace.phases.size(); ++phase) {
      if (phase > 0) of_card += trace.barriers[phase - 1].kind == Barrier::kGlobal;
      if (!trace.phases[phase].smem.empty()) {
        Append(trace.phases[phase].smem, trace, phase, in_smem[{trace.core.cluster, phase}]);
      }
      if (!trace.phases[phase].gmem.empty()) {
        Append(trace.phases[phase].gmem, trace, phase, in_gmem[of_card]);
      }
    }
  }
  for (auto& [place, accesses] : in_smem) FindPairs(accesses, false, findings);
  for (auto& [place, accesses] : in_gmem) FindPairs(accesses, true, findings);
}

void FindMissedBarriers(const std::vector<CoreTrace>& traces, Findings& findings) {
  const CoreTrace* card = nullptr;
  std::map<int, const CoreTrace*> of_cluster;
  for (const CoreTrace& trace : traces) {
    if (!trace.is_complete) continue;
    const auto [it, is_first] = of_cluster.try_emplace(trace.core.cluster, &trace);
    const CoreTrace& first = *it->second;
    if (is_first) {
      if (card != nullptr) AddMissedOfCard(*card, trace, findings);
      if (card == nullptr) card = &trace;
      continue;
    }
    const size_t both = std::min(first.barriers.size(), trace.barriers.size());
    size_t same = 0;
    while (same < both && first.barriers[same].kind == trace.barriers[same].kind) ++same;
    if (same < std::max(first.barriers.size(), trace.barriers.size())) {
      AddMissed(first, trace, same, findings);
    }
  }
}

}  // namespace polynao::isa
