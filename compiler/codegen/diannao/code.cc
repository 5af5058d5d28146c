#include "compiler/codegen/diannao/code.h"

#include <algorithm>

#include "absl/status/status.h"
#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/visit.h"

namespace polynao::diannao {
namespace {

// Whether the @require conditions of `op` follow from constants.
bool RequirementsHold(const Code& code, const Op& op, const Constants& constants) {
  const isa::Instruction& instruction = *op.instruction;
  if (instruction.constraints.empty()) return true;
  std::vector<int64_t> values(op.fields.size(), 0);
  std::vector<bool> known(instruction.meaning.params.size(), false);
  for (size_t i = 0; i < op.fields.size(); ++i) {
    const isa::Operand& operand = instruction.operands[i];
    if (operand.kind == isa::OperandKind::kImmediate) {
      values[i] = op.fields[i];
    } else if (IsRead(operand) && constants[op.fields[i]]) {
      values[i] = *constants[op.fields[i]];
    } else {
      continue;
    }
    known[operand.param] = true;
  }
  for (const isa::Constraint& constraint : instruction.constraints) {
    bool decided = true;
    ir::ForEachExpr(constraint.condition, [&](ir::Expr e) {
      if (!e.Is(ir::ExprKind::kVar)) return;
      for (size_t p = 0; p < known.size(); ++p) {
        if (instruction.meaning.params[p].var == e) decided &= known[p];
      }
    });
    if (!decided) return false;
  }
  return code.set->CheckConstraints(instruction, values).ok();
}

}  // namespace

int64_t WrittenRegister(const Op& op) {
  for (size_t i = 0; i < op.fields.size(); ++i) {
    if (IsWritten(op.instruction->operands[i])) return op.fields[i];
  }
  return -1;
}

const int64_t* BranchTarget(const Op& op) {
  for (size_t i = op.fields.size(); i-- > 0;) {
    if (op.instruction->operands[i].is_target) return &op.fields[i];
  }
  return nullptr;
}

int64_t* BranchTarget(Op& op) { return const_cast<int64_t*>(BranchTarget(std::as_const(op))); }

Constants FindConstants(const Code& code) {
  const isa::Instruction* li = code.set->Find("li");
  Constants constants(code.home.size());
  for (const Block& block : code.blocks) {
    for (const Op& op : block.ops) {
      if (op.instruction == li && code.IsValue(op.fields[0]))
        constants[op.fields[0]] = op.fields[1];
    }
  }
  return constants;
}

bool Floats(const Code& code, const Op& op, const Constants& constants) {
  const isa::Instruction& instruction = *op.instruction;
  if (instruction.unit != isa::Unit::kScalar || instruction.waits) return false;
  int written = 0;
  for (size_t i = 0; i < op.fields.size(); ++i) {
    const isa::Operand& operand = instruction.operands[i];
    if (operand.kind == isa::OperandKind::kAddress) return false;
    if (!IsWritten(operand)) continue;
    ++written;
    if (!code.IsValue(op.fields[i])) return false;
  }
  return written == 1 && RequirementsHold(code, op, constants);
}

void RemoveDeadCode(Code& code) {
  const Constants constants = FindConstants(code);
  // A value is written before its readers, so one sweep from the end sees the readers first.
  std::vector<bool> needed(code.home.size(), false);
  for (size_t b = code.blocks.size(); b-- > 0;) {
    std::vector<Op>& ops = code.blocks[b].ops;
    std::vector<Op> kept;
    for (size_t i = ops.size(); i-- > 0;) {
      const int64_t written = WrittenRegister(ops[i]);
      if (written >= 0 && !needed[written] && Floats(code, ops[i], constants)) continue;
      ForEachRead(ops[i], [&](int64_t reg) { needed[reg] = true; });
      kept.push_back(std::move(ops[i]));
    }
    std::reverse(kept.begin(), kept.end());
    ops = std::move(kept);
  }
}

Flow::Flow(const Code& code) {
  const int count = static_cast<int>(code.blocks.size());
  const isa::Instruction* jump = code.set->Find("jump");
  const isa::Instruction* halt = code.set->Find("halt");
  std::vector<std::vector<int>> before(count);
  for (int b = 0; b < count; ++b) {
    POLYNAO_CHECK(!code.blocks[b].ops.empty()) << "block " << b << " has no end";
    const Op& last = code.blocks[b].ops.back();
    if (const int64_t* target = BranchTarget(last)) {
      if (*target > b) {
        before[*target].push_back(b);
      } else {
        loops_.push_back({static_cast<int>(*target), b, -1, 1});
      }
    }
    if (last.instruction != jump && last.instruction != halt) before[b + 1].push_back(b);
  }
  // The order of blocks is a reverse postorder, and every path enters a loop by its head, so one
  // pass of "A Simple, Fast Dominance Algorithm" (Cooper, Harvey, Kennedy) is enough.
  dominator_.assign(count, -1);
  for (int b = 1; b < count; ++b) {
    POLYNAO_CHECK(!before[b].empty()) << "nothing goes to block " << b;
    int common = before[b][0];
    for (int other : before[b]) {
      while (common != other)
        (common > other ? common : other) = dominator_[std::max(common, other)];
    }
    dominator_[b] = common;
  }
  std::vector<int> size(count, 1);
  for (int b = count - 1; b > 0; --b) size[dominator_[b]] += size[b];
  first_.assign(count, 0);
  last_.assign(count, 0);
  std::vector<int> next(count, 1);
  for (int b = 0; b < count; ++b) {
    if (b > 0) {
      const int d = dominator_[b];
      first_[b] = first_[d] + next[d];
      next[d] += size[b];
    }
    last_[b] = first_[b] + size[b] - 1;
  }
  // Outer loops first: they begin earlier, or end later.
  std::sort(loops_.begin(), loops_.end(), [](const Loop& a, const Loop& b) {
    return a.head != b.head ? a.head < b.head : a.last > b.last;
  });
  loop_.assign(count, -1);
  heads_.assign(count, 0);
  for (size_t l = 0; l < loops_.size(); ++l) {
    Loop& loop = loops_[l];
    loop.parent = loop_[loop.head];
    if (loop.parent >= 0) loop.depth = loops_[loop.parent].depth + 1;
    std::fill(loop_.begin() + loop.head, loop_.begin() + loop.last + 1, static_cast<int>(l));
    ++heads_[loop.head];
  }
  for (int b = 1; b < count; ++b) heads_[b] += heads_[b - 1];
}

Places::Places(const Code& code, const Flow& flow, const Constants& constants) : flow_(flow) {
  const int count = static_cast<int>(code.blocks.size());
  std::vector<int> at_end(count);  // the slot for the end of each block
  for (int b = 0; b < count; ++b) {
    begin_.push_back(static_cast<int>(block_.size()));
    const int dominator = flow.dominator(b);
    int slot = -1;
    if (dominator >= 0 && flow.loop(dominator) == flow.loop(b) && !flow.IsBehindLoop(b)) {
      slot = at_end[dominator];
    }
    bool waits = false;  // the last instruction that stays where it is was a sync
    for (const Op& op : code.blocks[b].ops) {
      if (op.instruction->unit == isa::Unit::kControl) {
        if (!waits) slot = static_cast<int>(block_.size());
        waits = true;
      } else if (!Floats(code, op, constants)) {
        waits = false;
      }
      block_.push_back(b);
      slot_.push_back(slot);
    }
    at_end[b] = slot;
  }
  begin_.push_back(static_cast<int>(block_.size()));
}

int Places::Best(int place, int earliest) const {
  for (int l = flow_.loop(block_[place]); l >= 0; l = flow_.loops()[l].parent) {
    const int before = End(flow_.dominator(flow_.loops()[l].head)) - 1;
    if (before < earliest) break;
    place = before;
  }
  return slot_[place] >= earliest ? slot_[place] : place;
}

std::string Print(const Code& code) {
  std::string text;
  for (size_t b = 0; b < code.blocks.size(); ++b) {
    StrAppend(&text, "b", b, ":");
    for (size_t r = 0; r < code.home.size(); ++r) {
      if (code.home[r] == static_cast<int>(b)) StrAppend(&text, " (v", r, ")");
    }
    StrAppend(&text, "\n");
    for (const Op& op : code.blocks[b].ops) {
      StrAppend(&text, "  ", op.instruction->mnemonic);
      for (size_t i = 0; i < op.fields.size(); ++i) {
        const isa::Operand& operand = op.instruction->operands[i];
        const char* kind = operand.is_target                              ? "b"
                           : operand.kind == isa::OperandKind::kImmediate ? ""
                                                                          : "v";
        StrAppend(&text, i == 0 ? " " : ", ", kind, op.fields[i]);
      }
      StrAppend(&text, "\n");
    }
  }
  return text;
}

}  // namespace polynao::diannao
