#include "simulator/card.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "simulator/clock.h"

namespace polynao::simulator {

Card::Card(sc_core::sc_module_name name, Context& context, uint8_t* gmem, int64_t gmem_bytes)
    : sc_core::sc_module(name),
      context_(context),
      gmem_("gmem", context.machine, gmem, gmem_bytes),
      barrier_("barrier", context.machine.clusters() * (context.machine.cores_per_cluster() + 1),
               [&context] { context.checker->GlobalBarrier(); }) {
  for (int i = 0; i < context.machine.clusters(); ++i) {
    clusters_.push_back(std::make_unique<Cluster>(("cluster" + std::to_string(i)).c_str(), context,
                                                  i, gmem_, barrier_));
  }
  for (int c = 0; context.profile != nullptr && c < gmem_.channel_count(); ++c) {
    gmem_.channel(c).Observe(context.profile, c);
  }
  if (context.trace_end <= context.trace_begin) return;
  for (int c = 0; c < gmem_.channel_count(); ++c) {
    gmem_.channel(c).add_observer([&context](int64_t start, int64_t, const Burst& burst) {
      if (start < context.trace_begin || start >= context.trace_end) return;
      const size_t bucket =
          static_cast<size_t>((start - context.trace_begin) / context.result->gmem_bucket);
      std::vector<int64_t>& buckets = context.result->gmem_buckets;
      if (bucket >= buckets.size()) buckets.resize(bucket + 1);
      buckets[bucket] += burst.moved;
    });
  }
}

absl::Status Card::Simulate(int64_t max_cycles) {
  Calendar::Get().set_limit(max_cycles);
  sc_core::sc_start();
  RETURN_IF_ERROR(Outcome(max_cycles));
  Report();
  return absl::OkStatus();
}

absl::Status Card::Outcome(int64_t max_cycles) const {
  RETURN_IF_ERROR(context_.status);
  bool all_halted = true;
  bool idle = true;
  std::string states;
  for (const auto& cluster : clusters_) {
    for (size_t i = 0; i < cluster->cores().size(); ++i) {
      const Core& core = *cluster->cores()[i];
      all_halted &= core.scalar().halted();
      idle &= core.idle();
      absl::StrAppend(&states, "\n  ",
                      CoreName(context_.machine, {static_cast<int>(&cluster - clusters_.data()),
                                                  static_cast<int>(i)}),
                      " ", core.scalar().Describe());
    }
  }
  if (all_halted && idle) return absl::OkStatus();
  if (Calendar::Get().pending()) {
    return absl::DeadlineExceededError(
        absl::StrCat("the program runs for more than ", max_cycles, " cycles:", states));
  }
  POLYNAO_CHECK(idle) << "queues stopped with nothing to wait for" << states;
  return InvalidInput("deadlock in cycle ", Now(), ": no core can go on:", states);
}

void Card::Report() {
  RunResult& result = *context_.result;
  result.end_cycle = context_.last_activity;
  result.cycles = context_.last_gmem_write >= 0 ? context_.last_gmem_write : result.end_cycle;
  const auto add = [&](const std::string& name, Rate rate, const PortUse& use,
                       bool is_dram = false) {
    // Conservation: whatever the arbitration does, no port moves more than its width. (DRAM has write queues, and
    // checks itself.)
    POLYNAO_CHECK((is_dram || use.moved * kKilocycle <= rate * use.busy) &&
                  use.busy <= result.end_cycle)
        << name << ": " << use.moved << " bytes in " << use.busy << " of " << result.end_cycle
        << " cycles";
    result.ports.push_back({name, rate, use.bursts, use.payload, use.moved, use.busy});
  };
  int64_t moved = 0;
  for (int c = 0; c < gmem_.channel_count(); ++c) {
    GmemChannel& channel = gmem_.channel(c);
    const std::optional<DramCounters> dram = channel.Dram(result.end_cycle);
    if (dram) result.dram.push_back(*dram);
    const auto banks = channel.DramBanks();
    result.dram_banks.insert(result.dram_banks.end(), banks.begin(), banks.end());
    add(absl::StrCat("gmem.channel", c), channel.rate(), channel.use(), dram.has_value());
    moved += channel.use().moved;
    if (!gmem_.has_cache()) continue;
    add(absl::StrCat("gmem.cache", c), channel.cache().rate(), channel.cache().use());
    result.gmem_read_cached += channel.cache().use().moved;
  }
  if (context_.profile != nullptr) context_.profile->Report(result);
  result.gmem_read = gmem_.read().payload;
  result.gmem_read_moved = gmem_.read().moved - result.gmem_read_cached;
  result.gmem_written = gmem_.written().payload;
  result.gmem_written_moved = gmem_.written().moved;
  // Each requested byte has come once, from a channel or from the cache.
  POLYNAO_CHECK(moved == result.gmem_read_moved + result.gmem_written_moved)
      << moved << " bytes, asked for " << gmem_.read().moved << " and " << gmem_.written().moved
      << ", cached " << result.gmem_read_cached;
  for (const auto& cluster : clusters_) {
    const std::string prefix = cluster->basename();
    add(prefix + ".link.down", cluster->link().down.rate(), cluster->link().down.use());
    add(prefix + ".link.up", cluster->link().up.rate(), cluster->link().up.use());
    add(prefix + ".smem", cluster->smem().port().rate(), cluster->smem().port().use());
    for (const auto& core : cluster->cores()) {
      const std::string name = absl::StrCat(prefix, ".", core->basename());
      add(name + ".io.in", core->io_dma().in().rate(), core->io_dma().in().use());
      add(name + ".io.out", core->io_dma().out().rate(), core->io_dma().out().use());
      add(name + ".move", core->move_dma().port().rate(), core->move_dma().port().use());
    }
  }
}

}  // namespace polynao::simulator
