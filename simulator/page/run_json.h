// The counters of a run as JSON: what `nao run --json`, `nao sim --json` and the report page have in common.
#ifndef SIMULATOR_PAGE_RUN_JSON_H_
#define SIMULATOR_PAGE_RUN_JSON_H_

#include "isa/machine.h"
#include "nlohmann/json_fwd.hpp"
#include "simulator/report.h"

namespace polynao::simulator {

// Adds, in this order:
//
//   counters  every sum by its name (RunResult::Rows)
//   ports     for each: name, rate (bytes per 1000 cycles), bursts, payload, moved (bytes), busy (cycles)
//   cores     for each: cluster, core, is_memory_core, halted_at, units (instructions, busy), stalls (cycles by reason), and with a
//             profile classes (cycles by CycleClass)
//   dram      only of DRAM, for each channel: its commands, and row hits, misses and conflicts; and the same by bank
//   roofline  memory: names and bytes per cycle, greatest first; compute: for each unit and type that did something its
//             operations, their peak per cycle, operations per cycle and per byte that GMEM moved (null: it moved none)
//   activity  only with a profile: cycles of a bucket, and bytes and activates by row and bucket (Activity)
//
// An operation is one of an element on the vector unit; a multiply-accumulate is two.
void AddRun(const RunResult& result, const isa::Machine& machine, nlohmann::ordered_json& json);

}  // namespace polynao::simulator

#endif  // SIMULATOR_PAGE_RUN_JSON_H_
