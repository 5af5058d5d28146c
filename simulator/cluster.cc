#include "simulator/cluster.h"

#include <string>

namespace polynao::simulator {

Cluster::Cluster(sc_core::sc_module_name name, Context& context, int index, Gmem& gmem,
                 Barrier& global_barrier)
    : sc_core::sc_module(name),
      smem_("smem", context.machine),
      link_("link", context.machine),
      barrier_("barrier", context.machine.cores_per_cluster() + 1,
               [&context, index] { context.checker->ClusterBarrier(index); }) {
  const Core::Surroundings surroundings{&gmem, &link_, &smem_, &barrier_, &global_barrier};
  const int cores = static_cast<int>(context.machine.cores_per_cluster());
  for (int i = 0; i <= cores; ++i) {
    const bool is_memory_core = i == cores;
    const int report_index = index * (cores + 1) + i;
    CoreReport& report = context.result->cores[static_cast<size_t>(report_index)];
    report.cluster = index;
    report.core = i;
    report.is_memory_core = is_memory_core;
    const std::string core_name = is_memory_core ? "memory_core" : "core" + std::to_string(i);
    cores_.push_back(std::make_unique<Core>(core_name.c_str(), context,
                                            AccessChecker::CoreId{index, i}, surroundings, report,
                                            report_index));
  }
}

}  // namespace polynao::simulator
