// Traces for ui.perfetto.dev and chrome://tracing.
#ifndef SIMULATOR_TRACE_H_
#define SIMULATOR_TRACE_H_

#include <string>

#include "simulator/report.h"

namespace polynao::simulator {

// "cluster 0 core 1", "cluster 0 memory core".
std::string CoreLabel(const CoreReport& core);

// The slices of `result` as JSON trace events: a process for each cluster and one for GMEM, a
// thread for each unit of each core that did something, the instruction's text in each slice, GMEM
// bytes per cycle as a counter. The format counts microseconds: one cycle is shown as one
// microsecond, which the metadata say.
std::string TraceJson(const RunResult& result);

}  // namespace polynao::simulator

#endif  // SIMULATOR_TRACE_H_
