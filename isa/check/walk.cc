#include "isa/check/walk.h"

#include <algorithm>
#include <utility>

#include "absl/container/btree_map.h"
#include "base/text.h"
#include "isa/check/state.h"
#include "isa/ranges.h"

namespace polynao::isa {
namespace {

using Kind = ProgramFinding::Kind;
using State = CheckedState;

class Walk {
 public:
  Walk(CheckedProgram& program, const CheckedCore& core) : p_(program), core_(core) {
    const Machine& machine = p_.machine;
    arguments_ = {core.core,
                  core.cluster,
                  machine.cores_per_cluster(),
                  machine.clusters(),
                  core.is_memory_core ? 1 : 0,
                  machine.nmem_bytes(),
                  machine.smem_bytes(),
                  machine.wmem_bytes()};
    const std::vector<int64_t>& values = p_.tensors.values;
    arguments_.insert(arguments_.end(), values.begin(), values.end());
    other_arguments_ = arguments_;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!p_.tensors.is_known[i]) other_arguments_[kFirstParam + i] = 1;
    }
    for (const Space space : {Space::kSmem, Space::kNmem, Space::kWmem}) {
      bytes_[static_cast<size_t>(space)] = machine.bytes(space);
    }
    trace_.core = core;
    trace_.phases.resize(1);
  }

  CoreTrace Run() {
    State state;
    int64_t pc = 0;
    while (true) {
      const Next next = Step(state, pc);
      if (next.way == Way::kEnd) break;
      pc = next.pc;
      if (next.way == Way::kBoth && !Explore(state, next, pc)) break;
    }
    return std::move(trace_);
  }

 private:
  enum class Way : uint8_t { kGoOn, kBoth, kEnd };
  struct Next {
    Way way = Way::kGoOn;
    int64_t pc = 0;  // kGoOn; of kBoth, where the branch goes
    int64_t branch = 0;
  };

  // Follows both ways of a branch on an unknown value until they meet, over and over where they make a loop, until
  // nothing new comes to any instruction. False: the program ends on these ways.
  bool Explore(State& state, const Next& branch, int64_t& pc) {
    constexpr int kMostVisits = 2000;
    const int64_t join = p_.code.JoinOf(branch.branch);
    std::optional<State> joined;
    absl::btree_map<int64_t, State> at;
    std::vector<int64_t> open;
    const auto enter = [&](int64_t to, const State& with) {
      if (to == join) {
        if (joined) MergeInto(*joined, with);
        if (!joined) joined = with;
        return;
      }
      const auto [it, is_new] = at.try_emplace(to, with);
      if (is_new || MergeInto(it->second, with)) open.push_back(to);
    };
    const bool was_uncertain = std::exchange(is_uncertain_, true);
    enter(branch.pc, state);
    enter(branch.branch + 1, state);
    for (int visits = 0; !open.empty(); ++visits) {
      if (visits > kMostVisits) {
        Report(Kind::kUndecided, branch.branch, "too many ways depend on this branch");
        trace_.is_complete = false;
        break;
      }
      int64_t here = open.back();
      open.pop_back();
      State with = at.at(here);
      while (true) {
        const Next next = Step(with, here);
        if (next.way == Way::kEnd) break;
        if (next.way == Way::kBoth) {
          enter(next.pc, with);
          enter(next.branch + 1, with);
          break;
        }
        here = next.pc;
        if (here != join && here >= 0 && here < p_.code.size() && !p_.code.IsJoin(here)) continue;
        enter(here, with);
        break;
      }
    }
    is_uncertain_ = was_uncertain;
    if (!joined) return false;
    state = *std::move(joined);
    pc = join;
    return true;
  }

  Next End(bool is_complete) {
    trace_.is_complete = trace_.is_complete && is_complete;
    return {.way = Way::kEnd};
  }
  Next Stop(int64_t pc, std::string_view what) {
    Report(Kind::kStop, pc, StrCat("the run stops: ", what));
    return End(false);
  }
  void Report(Kind kind, int64_t pc, std::string_view what) {
    if (kind == Kind::kStop && is_uncertain_) kind = Kind::kUndecided;
    p_.findings.Add(kind, core_, pc, what);
  }

  // Executes the instruction at `pc` as far as the check follows it.
  Next Step(State& state, int64_t pc) {
    if (pc < 0 || pc >= p_.code.size()) {
      return Stop(trace_.end_pc,
                  StrCat("the next pc, ", pc, ", is outside of the program, which has ",
                         p_.code.size(), " instructions"));
    }
    trace_.end_pc = pc;
    const CheckedStep& step = p_.code.at(pc);
    if (step.instruction == nullptr) return Stop(pc, "the word is no instruction");
    if (--p_.steps_left < 0) {
      Report(Kind::kUndecided, pc, "the check followed as many instructions as it may");
      return End(false);
    }
    const Instruction& instruction = *step.instruction;
    const bool is_known = Resolve(state, step);
    if (is_known && (instruction.unit != Unit::kScalar || !instruction.constraints.empty())) {
      const absl::Status status = p_.set.CheckConstraints(instruction, values_);
      if (!status.ok()) return Stop(pc, ToStd(status.message()));
    }
    if (instruction.unit == Unit::kControl) {
      Synchronize(state, instruction, pc);
    } else if (instruction.unit == Unit::kScalar && !step.touches_memory) {
      return is_known ? Execute(state, step, pc) : ExecuteUnknown(state, step, pc);
    } else {
      if (!Touch(state, step, pc)) return End(false);
      for (size_t i = 0; i < instruction.operands.size(); ++i) {
        if (instruction.operands[i].kind != OperandKind::kWritten) continue;
        state.registers[static_cast<size_t>(step.fields[i])] = {.is_known = false};
      }
    }
    return {.pc = pc + 1};
  }

  // The operands' values; false if one is unknown.
  bool Resolve(const State& state, const CheckedStep& step) {
    const std::vector<Operand>& operands = step.instruction->operands;
    values_.assign(operands.size(), 0);
    is_unknown_.assign(operands.size(), false);
    bool is_known = true;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].kind == OperandKind::kImmediate) values_[i] = step.fields[i];
      if (operands[i].kind != OperandKind::kValue && operands[i].kind != OperandKind::kAddress) {
        continue;
      }
      const CheckedValue& value = state.registers[static_cast<size_t>(step.fields[i])];
      values_[i] = value.number;
      is_unknown_[i] = !value.is_known;
      is_known = is_known && value.is_known;
    }
    return is_known;
  }

  void Synchronize(State& state, const Instruction& instruction, int64_t pc) {
    for (const Queue queue : instruction.drains) state.pending[static_cast<size_t>(queue)].Clear();
    if (instruction.barrier == Instruction::Barrier::kNone) return;
    if (is_uncertain_) {
      Report(Kind::kUndecided, pc,
             "whether the core comes here depends on values that are not known");
      return;
    }
    trace_.barriers.push_back({instruction.barrier, pc});
    CoreTrace::Phase& phase = trace_.phases.emplace_back();
    // No barrier orders an access that has not completed.
    for (const AccessList& list : state.pending) {
      list.ForEach([&](const Access& access) {
        if (access.ranges.space == Space::kSmem) phase.smem.Add(access);
        if (access.ranges.space == Space::kGmem) phase.gmem.Add(access);
        return true;
      });
    }
  }

  Next Execute(State& state, const CheckedStep& step, int64_t pc) {
    const std::vector<Operand>& operands = step.instruction->operands;
    int64_t next_pc = pc + 1;
    InstructionSet::CoreView machine;
    machine.pc = &next_pc;
    machine.args = arguments_;
    written_.assign(operands.size(), 0);
    const absl::Status status =
        p_.set.Execute(*step.instruction, values_, machine, absl::MakeSpan(written_));
    if (!status.ok()) return Stop(pc, ToStd(status.message()));
    other_written_ = written_;
    if (step.reads_arguments) {
      // What depends on a scalar without a value differs between two of its values.
      machine.args = other_arguments_;
      const absl::Status other =
          p_.set.Execute(*step.instruction, values_, machine, absl::MakeSpan(other_written_));
      if (!other.ok()) return Stop(pc, ToStd(other.message()));
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].kind != OperandKind::kWritten) continue;
      state.registers[static_cast<size_t>(step.fields[i])] = {
          .number = written_[i], .is_known = written_[i] == other_written_[i]};
    }
    return next_pc < 0 ? End(true) : Next{.pc = next_pc};
  }

  // A scalar instruction with an unknown operand.
  Next ExecuteUnknown(State& state, const CheckedStep& step, int64_t pc) {
    const std::vector<Operand>& operands = step.instruction->operands;
    if (step.writes_pc) {
      if (step.is_conditional && step.target >= 0) {
        return {.way = Way::kBoth, .pc = step.target, .branch = pc};
      }
      Report(Kind::kUndecided, pc,
             "where the program goes on depends on values that are not known");
      return End(false);
    }
    // What is computed from the address of one tensor is an address in it: the simulator stops at any other.
    int tensor = -1;
    bool is_of_one = true;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].kind != OperandKind::kValue) continue;
      const int of = TensorOf(state.registers[static_cast<size_t>(step.fields[i])]);
      if (of < 0 || of == tensor) continue;
      is_of_one = tensor < 0;
      tensor = of;
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].kind != OperandKind::kWritten) continue;
      state.registers[static_cast<size_t>(step.fields[i])] = {
          .number = 0, .is_known = false, .tensor = is_of_one ? tensor : -1};
    }
    return {.pc = pc + 1};
  }

  // The whole memory, or the whole tensor, that an operand with unknown extent or address accesses.
  ByteRanges Everything(const State& state, const CheckedStep& step, size_t operand) const {
    const Operand& o = step.instruction->operands[operand];
    ByteRanges all = {
        .space = o.space,
        .is_write = o.is_written,
        .operand = static_cast<int>(operand),
        .begin = 0,
        .run = o.space == Space::kGmem ? int64_t{1} << 62 : bytes_[static_cast<size_t>(o.space)],
        .dims = {}};
    if (o.space != Space::kGmem) return all;
    const int tensor = TensorOf(state.registers[static_cast<size_t>(step.fields[operand])]);
    const int64_t inside = (int64_t{tensor} + 1) << CheckedTensors::kShift;
    if (const CheckedTensors::Tensor* found = p_.tensors.Find(inside + 1)) {
      all.begin = found->begin;
      all.run = found->size;
    }
    return all;
  }

  // The accesses of an instruction: bounds, hazards with the core's other queues. False: the run stops.
  bool Touch(State& state, const CheckedStep& step, int64_t pc) {
    const Instruction& instruction = *step.instruction;
    if (core_.is_memory_core && instruction.queue == Queue::kCompute) {
      Stop(pc, StrCat("the memory core has no ", UnitName(instruction.unit), " unit"));
      return false;
    }
    bool has_shape = true;
    for (size_t i = 0; i < values_.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      has_shape = has_shape && !(is_unknown_[i] && operand.kind == OperandKind::kValue &&
                                 !ir::IsFloat(operand.type));
    }
    accesses_.clear();
    if (has_shape) {
      for (const ByteRanges& ranges : p_.set.Footprint(instruction, values_)) {
        Access access = {.ranges = Canonical(ranges), .pc = pc, .is_uncertain = is_uncertain_};
        if (access.ranges.run <= 0) continue;
        if (is_unknown_[static_cast<size_t>(ranges.operand)]) {
          access.ranges = Everything(state, step, static_cast<size_t>(ranges.operand));
          access.is_uncertain = true;
        }
        accesses_.push_back(std::move(access));
      }
    } else {
      for (size_t i = 0; i < values_.size(); ++i) {
        if (instruction.operands[i].kind != OperandKind::kAddress) continue;
        accesses_.push_back({.ranges = Everything(state, step, i), .pc = pc, .is_uncertain = true});
      }
    }
    for (const Access& access : accesses_) {
      if (!CheckBounds(access, pc)) return false;
      CheckPending(state, instruction, access);
    }
    for (Access& access : accesses_) Record(state, instruction, std::move(access));
    if (instruction.waits && instruction.queue != Queue::kNone) {
      state.pending[static_cast<size_t>(instruction.queue)].Clear();
    }
    return true;
  }

  bool CheckBounds(const Access& access, int64_t pc) {
    const ByteRanges& ranges = access.ranges;
    if (core_.is_memory_core && ranges.space != Space::kSmem && ranges.space != Space::kGmem) {
      Stop(pc, StrCat("the memory core has no ", SpaceName(ranges.space)));
      return false;
    }
    if (ranges.run == int64_t{1} << 62) return true;
    const char* const verb = ranges.is_write ? "writes" : "reads";
    int64_t begin = 0, size = bytes_[static_cast<size_t>(ranges.space)];
    std::string name(SpaceName(ranges.space));
    if (ranges.space == Space::kGmem) {
      const CheckedTensors::Tensor* tensor = p_.tensors.Find(ranges.begin);
      if (tensor == nullptr) {
        Stop(pc, StrCat(verb, " GMEM at an address in no tensor"));
        return false;
      }
      if (ranges.is_write && tensor->access == ir::Access::kIn) {
        Stop(pc, StrCat("writes tensor ", tensor->name, ", which the program only reads"));
        return false;
      }
      name = StrCat("tensor ", tensor->name);
      begin = tensor->begin;
      size = tensor->size;
    }
    if (ranges.begin >= begin && ranges.end() <= begin + size) return true;
    Stop(pc, StrCat(verb, " bytes ", ranges.begin - begin, " to ", ranges.end() - begin, " of ",
                    name, ", which has ", size, " bytes"));
    return false;
  }

  void CheckPending(const State& state, const Instruction& instruction, const Access& access) {
    for (size_t q = 0; q < state.pending.size(); ++q) {
      if (q == static_cast<size_t>(instruction.queue)) continue;
      state.pending[q].ForEach([&](const Access& earlier) {
        if (earlier.ranges.space == access.ranges.space &&
            (earlier.ranges.is_write || access.ranges.is_write) &&
            CommonByte(earlier.ranges, access.ranges)) {
          p_.findings.AddHazard(
              core_, access, core_, earlier,
              StrCat("no sync of the ", QueueName(static_cast<Queue>(q)), " queue"));
        }
        return true;
      });
    }
  }

  void Record(State& state, const Instruction& instruction, Access access) {
    CoreTrace::Phase& phase = trace_.phases.back();
    if (access.ranges.space == Space::kSmem) phase.smem.Add(access);
    if (access.ranges.space == Space::kGmem) {
      const CheckedTensors::Tensor* tensor = p_.tensors.Find(access.ranges.begin);
      if (tensor == nullptr || tensor->access != ir::Access::kIn) phase.gmem.Add(access);
    }
    if (instruction.queue == Queue::kNone) return;
    state.pending[static_cast<size_t>(instruction.queue)].Add(std::move(access));
  }

  CheckedProgram& p_;
  const CheckedCore core_;
  CoreTrace trace_;
  bool is_uncertain_ = false;  // on a way that an unknown value decides
  std::vector<int64_t> arguments_;
  std::vector<int64_t> other_arguments_;  // with other values for scalars that have none
  std::array<int64_t, kSpaceCount> bytes_{};
  std::vector<int64_t> values_, written_, other_written_;
  std::vector<bool> is_unknown_;
  std::vector<Access> accesses_;
};

}  // namespace

CoreTrace WalkCore(CheckedProgram& program, const CheckedCore& core) {
  return Walk(program, core).Run();
}

}  // namespace polynao::isa
