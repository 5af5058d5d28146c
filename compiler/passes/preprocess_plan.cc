#include "compiler/passes/preprocess_plan.h"

#include <utility>

#include "base/math.h"
#include "compiler/ir/text.h"

namespace polynao {

using ir::Buffer;
using ir::Context;
using ir::Expr;
using ir::Stmt;
using ir::Type;

BufferPlan* PreprocessPlan::Find(Buffer buffer) {
  auto it = buffers.find(buffer);
  return it == buffers.end() ? nullptr : &it->second;
}

const BufferPlan* PreprocessPlan::Replaced(Buffer buffer) const {
  auto it = buffers.find(buffer);
  return it == buffers.end() || !it->second.replacement ? nullptr : &it->second;
}

PreprocessPlan MakePlan(const PreprocessFacts& facts) {
  PreprocessPlan plan;
  for (const GuardedNest& nest : facts.nests) {
    NestPlan& nest_plan = plan.nests.emplace_back();
    nest_plan.guards.assign(nest.guards.size(), GuardFate::kStays);
    nest_plan.loops = nest.loops;
    if (nest.IsComputing()) continue;
    nest_plan.loops = nest.bounds.loops;
    for (size_t g = 0; g < nest.guards.size(); ++g) {
      if (nest.bounds.in_bounds[g]) nest_plan.guards[g] = GuardFate::kInBounds;
      if (nest.bounds.outside[g]) nest_plan.guards[g] = GuardFate::kOutside;
    }
  }
  for (const auto& [buffer, facts_of] : facts.buffers) {
    plan.buffers[buffer].extents = facts_of.extents;
  }
  return plan;
}

void MakeBuffers(const PreprocessFacts& facts, PreprocessPlan& plan, Context& context) {
  for (Buffer buffer : facts.in_order) {
    BufferPlan& buffer_plan = *plan.Find(buffer);
    if (buffer_plan.extents.empty()) continue;
    const Type type = buffer->extents[0].type();
    if (buffer_plan.layout) {
      const int64_t lanes = buffer_plan.layout->lanes;
      int64_t groups = CeilDiv(buffer_plan.extents[buffer_plan.channel_dimension], lanes);
      for (size_t d = 0; d < buffer_plan.leading; ++d) groups *= buffer_plan.extents[d];
      buffer_plan.replacement = context.NewBuffer(
          buffer->name, buffer->type,
          {context.Int(type, lanes), context.Int(type, groups * buffer_plan.pitch)}, buffer->scope);
      continue;
    }
    bool changed = false;
    std::vector<Expr> extents;
    for (size_t d = 0; d < buffer_plan.extents.size(); ++d) {
      extents.push_back(context.Int(buffer->extents[d].type(), buffer_plan.extents[d]));
      changed = changed || extents.back() != buffer->extents[d];
    }
    if (!changed) continue;
    buffer_plan.replacement =
        context.NewBuffer(buffer->name, buffer->type, std::move(extents), buffer->scope);
  }
}

void ReportDecision(std::vector<PreprocessDecision>* decisions, Stmt nest, std::string what) {
  if (decisions != nullptr) decisions->push_back({ir::PrintFirstLine(nest), std::move(what)});
}

}  // namespace polynao
