// A cluster: cores, the memory core, SMEM, the link to GMEM, the cluster's barrier.
#ifndef SIMULATOR_CLUSTER_H_
#define SIMULATOR_CLUSTER_H_

#include <memory>
#include <systemc>
#include <vector>

#include "simulator/barrier.h"
#include "simulator/context.h"
#include "simulator/core.h"
#include "simulator/gmem.h"
#include "simulator/link.h"
#include "simulator/smem.h"

namespace polynao::simulator {

class Cluster : public sc_core::sc_module {
 public:
  Cluster(sc_core::sc_module_name name, Context& context, int index, Gmem& gmem,
          Barrier& global_barrier);

  // The memory core comes last.
  const std::vector<std::unique_ptr<Core>>& cores() const { return cores_; }
  const ClusterLink& link() const { return link_; }
  const Smem& smem() const { return smem_; }

 private:
  Smem smem_;
  ClusterLink link_;
  Barrier barrier_;
  std::vector<std::unique_ptr<Core>> cores_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_CLUSTER_H_
