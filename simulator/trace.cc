#include "simulator/trace.h"

#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace polynao::simulator {
namespace {

// GMEM's process; clusters are numbered from 1 on.
constexpr int kGmemProcess = 0;

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppend(&quoted, absl::StrFormat("\\u%04x", static_cast<unsigned char>(c)));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

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
  std::string json = "{\"displayTimeUnit\":\"ms\",\"otherData\":{";
  absl::StrAppend(
      &json, "\"machine\":", Quote(result.machine), ",\"program\":", Quote(result.program),
      ",\"time\":\"1 us of this trace is 1 cycle\",\"cycles\":", result.cycles,
      ",\"complete\":", result.slices_complete ? "true" : "false", "},\"traceEvents\":[\n");
  const auto metadata = [&](const char* kind, int process, int thread, const std::string& name) {
    absl::StrAppend(&json, "{\"ph\":\"M\",\"name\":\"", kind, "\",\"pid\":", process,
                    ",\"tid\":", thread, ",\"args\":{\"name\":", Quote(name), "}},\n");
  };
  metadata("process_name", kGmemProcess, 0, "GMEM");
  std::set<int> processes;
  std::set<std::pair<int, int>> threads;
  for (const Slice& slice : result.slices) {
    const CoreReport& core = result.cores[static_cast<size_t>(slice.core)];
    const int process = core.cluster + 1;
    const int thread = core.core * kUnitCount + static_cast<int>(slice.unit) + 1;
    if (processes.insert(process).second) {
      metadata("process_name", process, 0, absl::StrCat("cluster ", core.cluster));
    }
    if (threads.insert({process, thread}).second) {
      metadata("thread_name", process, thread,
               absl::StrCat(core.is_memory_core ? "memory core" : absl::StrCat("core ", core.core),
                            " ", std::string(isa::UnitName(slice.unit))));
    }
    absl::StrAppend(&json, "{\"ph\":\"X\",\"pid\":", process, ",\"tid\":", thread,
                    ",\"ts\":", slice.begin, ",\"dur\":", slice.end - slice.begin,
                    ",\"name\":", Quote(SliceName(result, slice)));
    absl::StrAppend(&json, ",\"args\":{\"pc\":", slice.pc, "}},\n");
  }
  for (size_t i = 0; i < result.gmem_buckets.size(); ++i) {
    absl::StrAppend(&json, "{\"ph\":\"C\",\"pid\":", kGmemProcess,
                    ",\"name\":\"bytes per cycle\",\"ts\":",
                    static_cast<int64_t>(i) * result.gmem_bucket, ",\"args\":{\"bytes\":",
                    absl::StrFormat("%.2f", static_cast<double>(result.gmem_buckets[i]) /
                                                static_cast<double>(result.gmem_bucket)),
                    "}},\n");
  }
  // JSON allows no comma after the last one.
  absl::StrAppend(&json, "{\"ph\":\"I\",\"pid\":", kGmemProcess,
                  ",\"tid\":0,\"s\":\"g\",\"ts\":", result.end_cycle, ",\"name\":\"end\"}\n]}\n");
  return json;
}

}  // namespace polynao::simulator
