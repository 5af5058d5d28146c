#include "simulator/trace.h"

#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace polynao::simulator {
namespace {

// GMEM's process; clusters are numbered from 1 on.
constexpr int kGmemProcess = 0;

using Json = nlohmann::ordered_json;

std::string SliceName(const RunResult& result, const Slice& slice) {
  switch (slice.kind) {
    case Slice::Kind::kExecute: {
      const size_t pc = static_cast<size_t>(slice.pc);
      return pc < result.instructions.size() ? result.instructions[pc] : absl::StrCat("pc ", pc);
    }
    case Slice::Kind::kScalar:
      return "scalar code";
    case Slice::Kind::kQueueFull:
      return "queue full";
    case Slice::Kind::kSync:
      return "sync";
    case Slice::Kind::kBarrier:
      return "barrier";
    case Slice::Kind::kWait:
      return "wait for completion";
  }
  return "";
}

}  // namespace

std::string CoreLabel(const CoreReport& core) {
  return core.is_memory_core ? absl::StrCat("cluster ", core.cluster, " memory core")
                             : absl::StrCat("cluster ", core.cluster, " core ", core.core);
}

std::string TraceJson(const RunResult& result) {
  // An event a line, each written as soon as it is made: traces are large.
  const Json head = {{"displayTimeUnit", "ms"},
                     {"otherData",
                      {{"machine", result.machine},
                       {"program", result.program},
                       {"time", "1 us of this trace is 1 cycle"},
                       {"cycles", result.cycles},
                       {"complete", result.slices_complete}}}};
  std::string json = head.dump();
  json.pop_back();
  json += ",\"traceEvents\":[";
  const char* separator = "\n";
  const auto add = [&](const Json& event) {
    json += std::exchange(separator, ",\n");
    json += event.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  const auto name_of = [&](const char* kind, int process, int thread, const std::string& name) {
    add({{"ph", "M"},
         {"name", kind},
         {"pid", process},
         {"tid", thread},
         {"args", {{"name", name}}}});
  };
  name_of("process_name", kGmemProcess, 0, "GMEM");
  std::set<int> processes;
  std::set<std::pair<int, int>> threads;
  for (const Slice& slice : result.slices) {
    const CoreReport& core = result.cores[static_cast<size_t>(slice.core)];
    const int process = core.cluster + 1;
    const int thread = core.core * kUnitCount + static_cast<int>(slice.unit) + 1;
    if (processes.insert(process).second) {
      name_of("process_name", process, 0, absl::StrCat("cluster ", core.cluster));
    }
    if (threads.insert({process, thread}).second) {
      name_of("thread_name", process, thread,
              absl::StrCat(core.is_memory_core ? "memory core" : absl::StrCat("core ", core.core),
                           " ", std::string(isa::UnitName(slice.unit))));
    }
    add({{"ph", "X"},
         {"pid", process},
         {"tid", thread},
         {"ts", slice.begin},
         {"dur", slice.end - slice.begin},
         {"name", SliceName(result, slice)},
         {"args", {{"pc", slice.pc}}}});
  }
  for (size_t i = 0; i < result.gmem_buckets.size(); ++i) {
    const double bytes =
        static_cast<double>(result.gmem_buckets[i]) / static_cast<double>(result.gmem_bucket);
    add({{"ph", "C"},
         {"pid", kGmemProcess},
         {"name", "bytes per cycle"},
         {"ts", static_cast<int64_t>(i) * result.gmem_bucket},
         {"args", {{"bytes", std::round(bytes * 100) / 100}}}});
  }
  add({{"ph", "I"},
       {"pid", kGmemProcess},
       {"tid", 0},
       {"s", "g"},
       {"ts", result.end_cycle},
       {"name", "end"}});
  return json + "\n]}\n";
}

}  // namespace polynao::simulator
