#include "compiler/poly/gpu/kernel_loops.h"

#include <isl/set.h>
#include <isl/union_map.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/isl/tree.h"

namespace polynao::poly {

namespace {

using Node = isl::schedule_node;

// Iterations of a loop over the same elements that a thread runs.
constexpr int64_t kMaxRepetitions = 4;

size_t At(int i) { return static_cast<size_t>(i); }

std::optional<Box> BoxOfLoop(const ThreadLoops& loops, const isl::multi_union_pw_aff& band, int i) {
  const isl::union_map member = isl::union_map::from(ToMulti(band.at(i)));
  return BoxOf(loops.instances.apply_range(member).as_map().coalesce());
}

// Whether threads may share loop `i`; its box is added.
bool AddShared(ThreadLoops& loops, const Stage& stage, const Component& component,
               const isl::multi_union_pw_aff& band, int i) {
  if (!IsParallel(stage, component, band.at(i))) return false;
  const std::optional<Box> box = BoxOfLoop(loops, band, i);
  if (!box) return false;
  loops.box.first.push_back(box->first[0]);
  loops.box.sizes.push_back(box->sizes[0]);
  return true;
}

}  // namespace

KernelLoops::KernelLoops(const Scop& part, const std::vector<Stage>& stages, const Group& group)
    : part_(part) {
  for (const int p : group.producers) handed_on_.insert(stages[At(p)].buffers[0]);
}

Node KernelLoops::BelowTiles(Node band, const isl::union_map& tiles) {
  const auto n = static_cast<size_t>(band.as<isl::schedule_node_band>().n_member());
  GpuMark blocks{.kind = GpuMark::Kind::kBlocks, .depth = DepthOf(band)};
  const isl::set all = tiles.range().as_set().coalesce();
  for (size_t i = 0; i < n; ++i) {
    blocks.shape.axes.emplace_back(1, "xyz"[n - 1 - i]);
    blocks.shape.sizes.push_back(1);
    const int position = static_cast<int>(i);
    blocks.first.push_back(isl::manage(isl_set_dim_min(all.copy(), position)));
    blocks.last.push_back(isl::manage(isl_set_dim_max(all.copy(), position)));
  }
  mapping_.marks["in_blocks"] = {.kind = GpuMark::Kind::kInBlocks,
                                 .loops = tiles,
                                 .depth = blocks.depth,
                                 .shape = blocks.shape};
  mapping_.marks["blocks"] = std::move(blocks);
  return band.insert_mark("blocks").child(0).child(0).insert_mark("in_blocks").child(0);
}

Node KernelLoops::StageLoops(Node leaf, int around, const Stage& stage,
                             const isl::union_map& instances) {
  return WithComponents(leaf, stage, [&](const Node& node, const Component& component) {
    return WithThreads(node, around, stage, component, instances);
  });
}

Node KernelLoops::WithThreads(Node node, int around, const Stage& stage, const Component& component,
                              const isl::union_map& all) {
  const isl::union_set domain = DomainOf(component);
  const isl::union_map instances = all.intersect_range(domain);
  if (instances.is_empty()) return node;
  ThreadLoops loops{.stage = &stage,
                    .instances = instances,
                    .members = isl::manage(isl_union_map_from_domain(domain.copy())),
                    .box = {}};
  loops.depth = around + DepthOf(node);
  std::vector<int> shared, own;
  const std::optional<isl::multi_union_pw_aff> band = LoopsOf(part_, component);
  const int n = band ? static_cast<int>(band->size()) : 0;
  const int last = component.size() == 1 ? VectorIterator(stage, *component[0]) : -1;
  for (int i = 0; i < n; ++i) {
    if (i == last) continue;
    if (IsRepetition(component, i, last)) {
      const std::optional<Box> box = BoxOfLoop(loops, *band, i);
      if (box && box->sizes[0] <= kMaxRepetitions) {
        own.push_back(i);
        continue;
      }
    }
    (AddShared(loops, stage, component, *band, i) ? shared : own).push_back(i);
  }
  if (last >= 0) (AddShared(loops, stage, component, *band, last) ? shared : own).push_back(last);
  if (last >= 0 && !own.empty()) std::sort(own.begin(), own.end());
  const std::string number = StrCat(components_.size());
  if (!own.empty()) node = node.insert_partial_schedule(Members(*band, own));
  if (!shared.empty()) {
    const isl::multi_union_pw_aff members = Members(*band, shared);
    loops.members = isl::union_map::from(members).intersect_domain(domain);
    node = node.insert_mark(StrCat(kInThreadsMark, number));
    node = node.insert_partial_schedule(members);
    for (size_t i = 0; i < shared.size(); ++i) {
      // isl must not spread an iteration over several loops.
      node = node.as<isl::schedule_node_band>().member_set_ast_loop_atomic(static_cast<int>(i));
    }
  }
  node = node.insert_mark(StrCat(kThreadsMark, number));
  components_.emplace(number, std::move(loops));
  return node;
}

// Whether all iterations of loop `i` read the same elements of what the group's stages hand on, and store far from each
// other: a thread runs them one after the other and has these elements at hand.
bool KernelLoops::IsRepetition(const Component& component, int i, int last) const {
  if (component.size() > 1 || last < 0) return false;
  const ir::Var var = component[0]->iterators[At(i)];
  bool reads = false;
  for (const Access& access : component[0]->accesses) {
    if (access.is_write && (access.indices.empty() || ir::UsesVar(access.indices.back(), var)))
      return false;
    if (access.is_write || !handed_on_.contains(access.buffer)) continue;
    if (access.indices.empty()) return false;
    reads = true;
    for (ir::Expr index : access.indices) {
      if (ir::UsesVar(index, var)) return false;
    }
  }
  return reads;
}

}  // namespace polynao::poly
