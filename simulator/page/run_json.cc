#include "simulator/page/run_json.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ir/type.h"
#include "nlohmann/json.hpp"

namespace polynao::simulator {
namespace {

using Json = nlohmann::ordered_json;

Json PortJson(const PortReport& port) {
  return {{"name", port.name},       {"rate", port.rate},   {"bursts", port.bursts},
          {"payload", port.payload}, {"moved", port.moved}, {"busy", port.busy}};
}

Json CoreJson(const CoreReport& core, bool has_profile) {
  Json json = {{"cluster", core.cluster},
               {"core", core.core},
               {"is_memory_core", core.is_memory_core},
               {"halted_at", core.halted_at}};
  for (int u = 0; u < kUnitCount; ++u) {
    const UnitReport& unit = core.units[static_cast<size_t>(u)];
    json["units"][std::string(isa::UnitName(isa::Unit(u)))] = {{"instructions", unit.instructions},
                                                               {"busy", unit.busy}};
  }
  Json& stalls = json["stalls"];
  for (int q = 0; q < isa::kQueueCount; ++q) {
    stalls[absl::StrCat("queue_full.", std::string(isa::QueueName(isa::Queue(q))))] =
        core.queue_full[static_cast<size_t>(q)];
  }
  stalls["sync"] = core.sync_wait;
  stalls["barrier"] = core.barrier_wait;
  stalls["completion"] = core.completion_wait;
  stalls["dependent"] = core.dependent_wait;
  for (int c = 0; has_profile && c < kCycleClassCount; ++c) {
    json["classes"][std::string(CycleClassName(CycleClass(c)))] =
        core.classes[static_cast<size_t>(c)];
  }
  return json;
}

// What channels and banks both count.
template <typename Counters>
Json CommandsJson(const Counters& counters) {
  return {{"activates", counters.activates},
          {"precharges", counters.precharges},
          {"precharge_alls", counters.precharge_alls},
          {"reads", counters.reads},
          {"writes", counters.writes},
          {"refreshes", counters.refreshes},
          {"hits", counters.hits},
          {"misses", counters.misses},
          {"conflicts", counters.conflicts}};
}

Json DramJson(const RunResult& result) {
  Json channels = Json::array();
  const size_t banks = result.dram_banks.size() / result.dram.size();
  for (size_t c = 0; c < result.dram.size(); ++c) {
    Json channel = CommandsJson(result.dram[c]);
    channel["forwarded"] = result.dram[c].forwarded;
    channel["merged"] = result.dram[c].merged;
    channel["drains"] = result.dram[c].drains;
    channel["banks"] = Json::array();
    for (size_t b = 0; b < banks; ++b) {
      channel["banks"].push_back(CommandsJson(result.dram_banks[c * banks + b]));
    }
    channels.push_back(std::move(channel));
  }
  return channels;
}

Json RooflineJson(const RunResult& result, const isa::Machine& machine) {
  Json json;
  const double rate = static_cast<double>(machine.Get("gmem.channels") *
                                          machine.Get("gmem.channel_bytes_per_kilocycle")) /
                      1000;
  json["memory"] = Json::array({{{"name", "GMEM"}, {"bytes_per_cycle", rate}}});
  if (machine.has_dram()) {
    json["memory"].push_back(
        {{"name", "DRAM less refreshes"}, {"bytes_per_cycle", machine.gmem_bytes_per_cycle()}});
  }
  const int64_t moved = result.gmem_read_moved + result.gmem_written_moved;
  json["gmem_bytes"] = moved;
  json["compute"] = Json::array();
  const auto add = [&](const std::string& name, int64_t operations, double peak) {
    if (operations == 0) return;
    Json row = {{"name", name},
                {"operations", operations},
                {"peak_per_cycle", peak},
                {"operations_per_cycle", nullptr},
                {"operations_per_byte", nullptr}};
    const double count = static_cast<double>(operations);
    if (result.cycles > 0) row["operations_per_cycle"] = count / static_cast<double>(result.cycles);
    if (moved > 0) row["operations_per_byte"] = count / static_cast<double>(moved);
    json["compute"].push_back(std::move(row));
  };
  const double cores = static_cast<double>(machine.cores());
  for (int t = 0; t < ir::kTypeCount; ++t) {
    const ir::Type type = static_cast<ir::Type>(t);
    const std::string name(ir::TypeName(type));
    const int64_t* const macs = machine.Find(absl::StrCat("tensor.macs_", name));
    const double rate_of_macs = macs == nullptr ? 0 : static_cast<double>(*macs);
    add(absl::StrCat("tensor ", name), 2 * result.actions.macs[static_cast<size_t>(t)],
        2 * rate_of_macs * cores);
    add(absl::StrCat("vector ", name), result.actions.element_ops[static_cast<size_t>(t)],
        cores * static_cast<double>(machine.Get("vector.bytes")) /
            static_cast<double>(ir::ByteSize(type)));
  }
  return json;
}

}  // namespace

void AddRun(const RunResult& result, const isa::Machine& machine, Json& json) {
  const bool has_profile = result.activity.bucket > 0;
  json["counters"] = Json::object();
  for (const auto& [name, value] : result.Rows()) json["counters"][name] = value;
  json["ports"] = Json::array();
  for (const PortReport& port : result.ports) json["ports"].push_back(PortJson(port));
  json["cores"] = Json::array();
  for (const CoreReport& core : result.cores) json["cores"].push_back(CoreJson(core, has_profile));
  if (!result.dram.empty()) json["dram"] = DramJson(result);
  json["roofline"] = RooflineJson(result, machine);
  if (has_profile) {
    json["activity"] = {{"bucket", result.activity.bucket},
                        {"bytes", result.activity.bytes},
                        {"activates", result.activity.activates}};
  }
}

}  // namespace polynao::simulator
