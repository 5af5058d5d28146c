#include "isa/check/code.h"

#include <algorithm>

#include "compiler/ir/visit.h"

namespace polynao::isa {

CheckedCode::CheckedCode(const InstructionSet& set, const Program& program) {
  is_join_.resize(program.code.size() + 1);
  for (const Word& word : program.code) {
    CheckedStep& step = steps_.emplace_back();
    auto decoded = set.Decode(word);
    if (!decoded.ok()) continue;
    step.instruction = decoded->instruction;
    step.fields = std::move(decoded->fields);
    const Instruction& instruction = *step.instruction;
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      step.touches_memory |= operand.kind == OperandKind::kAddress;
      if (!operand.is_target) continue;
      step.target = step.fields[i];
      if (step.target >= 0 && step.target < static_cast<int64_t>(is_join_.size())) {
        is_join_[static_cast<size_t>(step.target)] = true;
      }
    }
    // Buffers of the meaning that are no operands: the program counter, which is written, and the arguments.
    for (size_t p = 0; p < instruction.meaning.params.size(); ++p) {
      const bool is_operand =
          std::any_of(instruction.operands.begin(), instruction.operands.end(),
                      [&](const Operand& operand) { return operand.param == static_cast<int>(p); });
      if (is_operand) continue;
      const bool is_read = instruction.meaning.params[p].access == ir::Access::kIn;
      (is_read ? step.reads_arguments : step.writes_pc) = true;
    }
    step.is_conditional = step.writes_pc && ir::AnyStmt(instruction.meaning.body, [](ir::Stmt s) {
                            return s.Is(ir::StmtKind::kIf);
                          });
    if (step.is_conditional) is_join_[steps_.size()] = true;
  }
}

std::vector<int64_t> CheckedCode::Successors(int64_t pc) const {
  const CheckedStep& step = at(pc);
  std::vector<int64_t> successors;
  const auto add = [&](int64_t next) {
    successors.push_back(next >= 0 && next < size() ? next : size());
  };
  if (step.instruction == nullptr) return {size()};
  if (step.target >= 0) add(step.target);
  if (!step.writes_pc || step.is_conditional) add(pc + 1);
  if (successors.empty()) add(size());  // it ends the program, or goes where a register says
  return successors;
}

int64_t CheckedCode::JoinOf(int64_t pc) const {
  if (joins_.empty()) FindJoins();
  return joins_[static_cast<size_t>(pc)];
}

// Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", on the reversed graph: its root is the program's end.
void CheckedCode::FindJoins() const {
  const size_t count = steps_.size() + 1;
  std::vector<std::vector<int64_t>> predecessors(count);
  for (int64_t pc = 0; pc < size(); ++pc) {
    for (const int64_t next : Successors(pc)) predecessors[static_cast<size_t>(next)].push_back(pc);
  }
  std::vector<int64_t> order, number(count, -1);  // in postorder of the reversed graph
  std::vector<std::pair<int64_t, size_t>> stack = {{size(), 0}};
  std::vector<bool> is_seen(count);
  is_seen[steps_.size()] = true;
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    const std::vector<int64_t>& before = predecessors[static_cast<size_t>(node)];
    if (next == before.size()) {
      number[static_cast<size_t>(node)] = static_cast<int64_t>(order.size());
      order.push_back(node);
      stack.pop_back();
      continue;
    }
    const int64_t child = before[next++];
    if (is_seen[static_cast<size_t>(child)]) continue;
    is_seen[static_cast<size_t>(child)] = true;
    stack.push_back({child, 0});
  }
  // Instructions from which no way leads to the end (an endless loop) keep the end as their join.
  joins_.assign(count, -1);
  joins_[steps_.size()] = size();
  const auto of = [&](int64_t node) { return number[static_cast<size_t>(node)]; };
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (*it == size()) continue;
      int64_t join = -1;
      for (int64_t next : Successors(*it)) {
        if (joins_[static_cast<size_t>(next)] < 0) continue;
        if (join < 0) join = next;
        while (join != next) {
          while (of(join) < of(next)) join = joins_[static_cast<size_t>(join)];
          while (of(next) < of(join)) next = joins_[static_cast<size_t>(next)];
        }
      }
      has_changed |= join != joins_[static_cast<size_t>(*it)];
      joins_[static_cast<size_t>(*it)] = join;
    }
  }
  std::replace(joins_.begin(), joins_.end(), int64_t{-1}, size());
}

}  // namespace polynao::isa
