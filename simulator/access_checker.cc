#include "simulator/access_checker.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "isa/ranges.h"
#include "simulator/definedness.h"

namespace polynao::simulator {
namespace {

using isa::ByteRanges;
using isa::Space;

// "NMEM"
std::string MemoryName(Space space) {
  std::string name(isa::SpaceName(space));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

bool IsShared(Space space) { return space == Space::kSmem || space == Space::kGmem; }

int64_t EndOf(const ByteRanges& canonical) {
  int64_t end = canonical.begin + canonical.run;
  for (const auto& [count, stride] : canonical.dims) end += (count - 1) * stride;
  return end;
}

const char* Verb(bool is_write) { return is_write ? "writes" : "reads"; }

std::string CoreName(AccessChecker::CoreId id, bool is_memory_core) {
  return is_memory_core ? absl::StrCat("the memory core of cluster ", id.cluster)
                        : absl::StrCat("cluster ", id.cluster, " core ", id.core);
}

}  // namespace

void AccessChecker::Accesses::Add(const ByteRanges& ranges, int64_t pc) {
  IntervalSet& set = ranges.is_write ? writes : reads;
  ranges.ForEachRun(
      [&](int64_t begin, int64_t size) { set.Add(begin, begin + size, static_cast<int>(pc)); });
}

void AccessChecker::Accesses::Clear() {
  reads.Clear();
  writes.Clear();
}

AccessChecker::AccessChecker(const isa::Machine& machine, const isa::InstructionSet& set,
                             std::vector<GmemRegion> gmem, const Options& options,
                             std::function<std::string(int64_t pc)> describe)
    : set_(set),
      cores_in_cluster_(static_cast<int>(machine.cores_per_cluster()) + 1),
      options_(options),
      nmem_bytes_(machine.nmem_bytes()),
      wmem_bytes_(machine.wmem_bytes()),
      smem_bytes_(machine.smem_bytes()),
      gmem_(std::move(gmem)),
      describe_(std::move(describe)),
      cores_(static_cast<size_t>(machine.clusters() * cores_in_cluster_)),
      smem_defined_(static_cast<size_t>(machine.clusters())) {
  for (size_t i = 0; i < cores_.size(); ++i) {
    cores_[i].id = {static_cast<int>(i) / cores_in_cluster_,
                    static_cast<int>(i) % cores_in_cluster_};
  }
  for (const GmemRegion& region : gmem_) {
    if (region.access != ir::Access::kOut) {
      gmem_defined_.Add(region.begin, region.begin + region.size);
    }
  }
}

int64_t AccessChecker::SizeOf(Space space) const {
  switch (space) {
    case Space::kNmem:
      return nmem_bytes_;
    case Space::kWmem:
      return wmem_bytes_;
    case Space::kSmem:
      return smem_bytes_;
    case Space::kGmem:
      break;
  }
  POLYNAO_UNREACHABLE("GMEM has regions");
}

IntervalSet& AccessChecker::Defined(Core& core, Space space) {
  switch (space) {
    case Space::kNmem:
      return core.nmem_defined;
    case Space::kWmem:
      return core.wmem_defined;
    case Space::kSmem:
      return smem_defined_[static_cast<size_t>(core.id.cluster)];
    case Space::kGmem:
      break;
  }
  return gmem_defined_;
}

absl::Status AccessChecker::CheckPath(CoreId id, const isa::Instruction& instruction,
                                      absl::Span<const ByteRanges> ranges) const {
  if (!IsMemoryCore(id)) return absl::OkStatus();
  if (instruction.queue == isa::Queue::kCompute) {
    return InvalidInput("the memory core has no ", std::string(isa::UnitName(instruction.unit)),
                        " unit");
  }
  for (const ByteRanges& range : ranges) {
    if (!IsShared(range.space)) {
      return InvalidInput("the memory core has no ", MemoryName(range.space));
    }
  }
  return absl::OkStatus();
}

absl::Status AccessChecker::CheckBounds(const ByteRanges& ranges) const {
  const int64_t end = EndOf(ranges);
  if (ranges.space != Space::kGmem) {
    const int64_t size = SizeOf(ranges.space);
    if (ranges.begin >= 0 && end <= size) return absl::OkStatus();
    return InvalidInput(Verb(ranges.is_write), " bytes ", ranges.begin, " to ", end, " of ",
                        MemoryName(ranges.space), ", which has ", size, " bytes");
  }
  for (const GmemRegion& region : gmem_) {
    if (ranges.begin < region.begin || ranges.begin >= region.begin + region.size) continue;
    if (end > region.begin + region.size) {
      return InvalidInput(Verb(ranges.is_write), " GMEM bytes ", ranges.begin, " to ", end,
                          ", beyond tensor ", region.name, " (bytes ", region.begin, " to ",
                          region.begin + region.size, ")");
    }
    if (ranges.is_write && region.access == ir::Access::kIn) {
      return InvalidInput("writes GMEM byte ", ranges.begin, " in tensor ", region.name,
                          ", which the program only reads");
    }
    return absl::OkStatus();
  }
  return InvalidInput(Verb(ranges.is_write), " GMEM bytes ", ranges.begin, " to ", end,
                      ", which start in no tensor");
}

absl::Status AccessChecker::HazardError(const ByteRanges& ranges, int64_t byte, bool other_writes,
                                        CoreId other, int64_t other_pc,
                                        std::string_view missing) const {
  return InvalidInput("hazard: ", Verb(ranges.is_write), " byte ", byte, " of ",
                      MemoryName(ranges.space), ", which ", CoreName(other, IsMemoryCore(other)),
                      " ", Verb(other_writes), " at pc ", other_pc, " \"", describe_(other_pc),
                      "\", and ", std::string(missing));
}

absl::Status AccessChecker::CheckPending(const Core& core, const isa::Instruction& instruction,
                                         const ByteRanges& ranges) const {
  for (int q = 0; q < isa::kQueueCount; ++q) {
    const isa::Queue queue = static_cast<isa::Queue>(q);
    if (queue == instruction.queue) continue;
    for (const Pending& pending : core.pending[static_cast<size_t>(q)]) {
      if (pending.ranges.space != ranges.space) continue;
      if (!pending.ranges.is_write && !ranges.is_write) continue;
      if (const auto byte = CommonByte(pending.ranges, ranges)) {
        return HazardError(ranges, *byte, pending.ranges.is_write, core.id, pending.pc,
                           absl::StrCat("no sync of the ", std::string(isa::QueueName(queue)),
                                        " queue lies between"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status AccessChecker::CheckShared(const Core& core, const ByteRanges& ranges) const {
  const int64_t end = EndOf(ranges);
  absl::Status status;
  const auto check = [&](const Core& other, const IntervalSet& set, bool other_writes,
                         std::string_view missing) {
    // Most sets lie far away from these ranges.
    if (!status.ok() || set.empty() || !set.FirstOverlap(ranges.begin, end)) return;
    ranges.ForEachRun([&](int64_t begin, int64_t size) {
      if (!status.ok()) return;
      if (const auto overlap = set.FirstOverlap(begin, begin + size)) {
        status = HazardError(ranges, std::max(begin, overlap->begin), other_writes, other.id,
                             overlap->tag, missing);
      }
    });
  };
  const auto check_all = [&](const Core& other, const Accesses& accesses,
                             std::string_view missing) {
    check(other, accesses.writes, true, missing);
    if (ranges.is_write) check(other, accesses.reads, false, missing);
  };
  for (const Core& other : cores_) {
    if (other.id == core.id) continue;
    if (other.id.cluster == core.id.cluster) {
      check_all(other, ranges.space == Space::kSmem ? other.smem : other.gmem_recent,
                "no barrier after a sync of it lies between");
    } else if (ranges.space == Space::kGmem) {
      constexpr std::string_view kMissing =
          "no barrier of the card after a sync of it lies between";
      check_all(other, other.gmem_recent, kMissing);
      check_all(other, other.gmem_older, kMissing);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status AccessChecker::CheckDefined(Core& core, const isa::Instruction& instruction,
                                         isa::OperandValues values,
                                         absl::Span<const ByteRanges> ranges) {
  const ByteRanges* undefined_read = nullptr;
  std::pair<int64_t, int64_t> gap{-1, -1};
  for (const ByteRanges& range : ranges) {
    if (range.is_write || undefined_read != nullptr) continue;
    const IntervalSet& defined = Defined(core, range.space);
    range.ForEachRun([&](int64_t begin, int64_t size) {
      if (gap.first >= 0 || defined.Contains(begin, begin + size)) return;
      gap = *defined.FirstGap(begin, begin + size);
      undefined_read = &range;
    });
  }
  // The results that depend on an undefined byte.
  std::array<IntervalSet, isa::kSpaceCount> undefined;
  if (undefined_read != nullptr) {
    std::optional<std::vector<isa::Flow>> flows;
    if (instruction.queue == isa::Queue::kCompute) flows = set_.Flows(instruction, values);
    if (!flows || std::any_of(flows->begin(), flows->end(),
                              [](const isa::Flow& flow) { return flow.is_copy; })) {
      return InvalidInput("reads bytes ", gap.first, " to ", gap.second, " of ",
                          MemoryName(undefined_read->space),
                          ", which were never written, or computed from such bytes");
    }
    for (const isa::Flow& flow : *flows) {
      SpreadUndefined(flow, Defined(core, flow.read_space),
                      &undefined[static_cast<size_t>(flow.write_space)]);
    }
  }
  for (const ByteRanges& range : ranges) {
    if (!range.is_write) continue;
    IntervalSet& defined = Defined(core, range.space);
    range.ForEachRun([&](int64_t begin, int64_t size) { defined.Add(begin, begin + size); });
  }
  for (int space = 0; space < isa::kSpaceCount; ++space) {
    undefined[static_cast<size_t>(space)].ForEach([&](const IntervalSet::Interval& interval) {
      Defined(core, Space(space)).Remove(interval.begin, interval.end);
    });
  }
  return absl::OkStatus();
}

void AccessChecker::AddPending(std::vector<Pending>& list, const ByteRanges& ranges, int64_t pc) {
  for (Pending& pending : list) {
    ByteRanges& old = pending.ranges;
    if (old.space != ranges.space || old.is_write != ranges.is_write) continue;
    if (old.begin == ranges.begin && old.run == ranges.run && old.dims == ranges.dims) {
      pending.pc = pc;
      return;
    }
    if (IsContiguous(old) && IsContiguous(ranges) && ranges.begin <= old.begin + old.run &&
        old.begin <= ranges.begin + ranges.run) {
      const int64_t end = std::max(old.begin + old.run, ranges.begin + ranges.run);
      old.begin = std::min(old.begin, ranges.begin);
      old.run = end - old.begin;
      pending.pc = pc;
      return;
    }
  }
  list.push_back({ranges, pc});
}

absl::Status AccessChecker::Issue(CoreId id, const isa::Instruction& instruction, int64_t pc,
                                  isa::OperandValues values, absl::Span<const ByteRanges> ranges) {
  RETURN_IF_ERROR(CheckPath(id, instruction, ranges));
  std::vector<ByteRanges> canonical;
  canonical.reserve(ranges.size());
  for (const ByteRanges& range : ranges) {
    canonical.push_back(Canonical(range));
    if (canonical.back().run <= 0) {
      canonical.pop_back();
      continue;
    }
    RETURN_IF_ERROR(CheckBounds(canonical.back()));
  }
  if (!options_.hazards) return absl::OkStatus();
  Core& core = At(id);
  for (const ByteRanges& range : canonical) {
    RETURN_IF_ERROR(CheckPending(core, instruction, range));
    if (IsShared(range.space)) RETURN_IF_ERROR(CheckShared(core, range));
  }
  RETURN_IF_ERROR(CheckDefined(core, instruction, values, canonical));
  for (const ByteRanges& range : canonical) {
    if (instruction.queue != isa::Queue::kNone) {
      AddPending(core.pending[static_cast<size_t>(instruction.queue)], range, pc);
    }
    if (range.space == Space::kSmem) core.smem.Add(range, pc);
    if (range.space == Space::kGmem) core.gmem_recent.Add(range, pc);
  }
  return absl::OkStatus();
}

void AccessChecker::Drain(CoreId id, isa::Queue queue) {
  At(id).pending[static_cast<size_t>(queue)].clear();
}

void AccessChecker::ClusterBarrier(int cluster) {
  if (!options_.hazards) return;
  for (int i = 0; i < cores_in_cluster_; ++i) {
    Core& core = At({cluster, i});
    core.smem.Clear();
    // This barrier does not order accesses of other clusters.
    const auto move = [](IntervalSet& from, IntervalSet& to) {
      from.ForEach(
          [&](const auto& interval) { to.Add(interval.begin, interval.end, interval.tag); });
      from.Clear();
    };
    move(core.gmem_recent.reads, core.gmem_older.reads);
    move(core.gmem_recent.writes, core.gmem_older.writes);
    // No barrier orders an access that has not completed yet.
    for (const auto& list : core.pending) {
      for (const Pending& pending : list) {
        if (pending.ranges.space == Space::kSmem) core.smem.Add(pending.ranges, pending.pc);
        if (pending.ranges.space == Space::kGmem) core.gmem_recent.Add(pending.ranges, pending.pc);
      }
    }
  }
}

void AccessChecker::GlobalBarrier() {
  if (!options_.hazards) return;
  for (Core& core : cores_) core.gmem_recent.Clear();
  for (Core& core : cores_) core.gmem_older.Clear();
  // Adds the accesses that have not completed again, cluster by cluster.
  for (size_t cluster = 0; cluster < smem_defined_.size(); ++cluster) {
    ClusterBarrier(static_cast<int>(cluster));
  }
}

std::vector<std::pair<std::string, int64_t>> AccessChecker::Unwritten() const {
  std::vector<std::pair<std::string, int64_t>> result;
  if (!options_.hazards) return result;
  for (const GmemRegion& region : gmem_) {
    if (region.is_temporary) continue;
    const int64_t end = region.begin + region.size;
    int64_t missing = 0;
    for (int64_t at = region.begin;;) {
      const auto gap = gmem_defined_.FirstGap(at, end);
      if (!gap) break;
      missing += gap->second - gap->first;
      at = gap->second;
    }
    if (missing > 0) result.push_back({region.name, missing});
  }
  return result;
}

}  // namespace polynao::simulator
