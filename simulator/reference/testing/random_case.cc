#include "simulator/reference/testing/random_case.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "isa/instruction_set.h"
#include "isa/program.h"
#include "simulator/reference/testing/random_machine.h"

namespace polynao::simulator::reference {
namespace {

// A tensor with values is copied to the card and back.
constexpr int64_t kBytesWithValues = 1 << 17;
constexpr int64_t kBeforeTensors = 1 << 20;  // bytes of GMEM

// "  li r10, 5" for each operand, then the instruction, in a loop if it is repeated.
void AppendOp(const Op& op, int64_t number, std::string& text) {
  constexpr int64_t kFirst = 10;  // register of the first operand
  const std::string behind = absl::StrCat("behind", number);
  std::string operands;
  bool branches = false;
  const auto reg = [](size_t i) { return absl::StrCat("r", kFirst + static_cast<int64_t>(i)); };
  for (size_t i = 0; i < op.args.size(); ++i) {
    const Op::Arg& arg = op.args[i];
    const bool is_label = arg.text == Op::kLabel, in_register = arg.text == Op::kLabelInRegister;
    branches |= is_label || in_register;
    absl::StrAppend(&operands, i == 0 ? "" : ", ",
                    is_label                          ? behind
                    : in_register || arg.text.empty() ? reg(i)
                                                      : arg.text);
    if (in_register) {
      absl::StrAppend(&text, "  li ", reg(i), ", ", behind, "\n");
    } else if (arg.text.empty()) {
      absl::StrAppend(&text,
                      arg.is_gmem ? absl::StrCat("  addi ", reg(i), ", r7, ", arg.value)
                                  : absl::StrCat("  li ", reg(i), ", ", arg.value),
                      "\n");
    }
  }
  const std::string again = absl::StrCat("again", number);
  if (op.repeat > 1) absl::StrAppend(&text, "  li r30, ", op.repeat, "\n", again, ":\n");
  absl::StrAppend(&text, "  ", op.mnemonic, operands.empty() ? "" : " ", operands, "\n");
  if (branches) absl::StrAppend(&text, "  addi r42, r42, 1\n", behind, ":\n");
  if (op.repeat <= 1) return;
  for (size_t i = 0; i < op.args.size(); ++i) {
    if (!op.args[i].is_gmem || op.step == 0) continue;
    absl::StrAppend(&text, "  addi ", reg(i), ", ", reg(i), ", ", op.step, "\n");
  }
  absl::StrAppend(&text, "  addi r30, r30, -1\n  bne r30, r0, ", again, "\n");
}

class CaseMaker {
 public:
  explicit CaseMaker(uint64_t seed) : seed_(seed), random_(seed) {}

  RandomCase Make() {
    const std::vector<std::string>& names = MachineNames();
    case_.machine = names[random_.Below(names.size())];
    case_.overrides = RandomOverrides(random_, case_.machine);
    const uint64_t kind = random_.Below(4);
    case_.has_values = kind < 2;
    ChooseWanted();
    const isa::Machine machine = Machine();
    const int64_t room = (machine.Get("gmem.mib") << 20) - kBeforeTensors - isa::kTensorAlignment;
    POLYNAO_CHECK(room > 0) << case_.machine;
    // Small, or all that there is.
    case_.tensor_bytes = case_.has_values ? std::min(room, kBytesWithValues)
                         : random_.Below(2) == 0
                             ? room
                             : std::min(room, int64_t{1} << random_.From(17, 36));
    for (int64_t cluster = 0; cluster < machine.clusters(); ++cluster) {
      for (int64_t core = 0; core <= machine.cores_per_cluster(); ++core) {
        case_.cores.push_back({cluster, core, core == machine.cores_per_cluster(), {}});
      }
    }
    OpMaker maker(random_, machine, case_.tensor_bytes,
                  case_.has_values && (wants_loads_ || random_.Below(2) == 0));
    if (kind == 3 && !wants_loads_) {
      MakeStreams(machine);
    } else {
      MakeOps(maker);
    }
    for (const isa::Instruction* wanted : wanted_) {
      std::vector<Op>& first = case_.cores[0].phases[0];
      if (const auto op = maker.Make(*wanted)) first.insert(first.begin(), *op);
    }
    return std::move(case_);
  }

 private:
  isa::Machine Machine() const {
    const absl::StatusOr<isa::Machine> machine = MachineOf(case_);
    POLYNAO_CHECK(machine.ok()) << "seed " << seed_ << ": " << machine.status();
    return *machine;
  }

  // By turns, so that no row of the table waits for luck. The machine gets a tensor unit for it, and the program loads.
  void ChooseWanted() {
    constexpr uint64_t kWanted = 4;
    const auto instructions = isa::DianNao().instructions();
    for (uint64_t i = 0; i < kWanted; ++i) {
      wanted_.push_back(&instructions[(seed_ * kWanted + i) % instructions.size()]);
      const isa::Instruction& wanted = *wanted_.back();
      wants_loads_ |= wanted.family == "load";
      if (wanted.unit != isa::Unit::kTensor) continue;
      case_.overrides.push_back(absl::StrCat("tensor.macs_", wanted.variant[0], "=256"));
    }
    case_.has_values |= wants_loads_;
  }

  void MakeOps(OpMaker& maker) {
    const int64_t phases = random_.From(1, 4);
    for (int64_t i = 1; i < phases; ++i) {
      const bool is_global = random_.Below(2) == 0;
      case_.ends.push_back({is_global, random_.Below(8) * 0x1111'1111'1111'1111});
    }
    // A large card has much to do with few instructions of each core.
    const int64_t most = std::max<int64_t>(1, std::min<int64_t>(5, 32 / std::ssize(case_.cores)));
    for (CoreOps& core : case_.cores) {
      for (int64_t i = 0; i < phases; ++i) {
        std::vector<Op>& phase = core.phases.emplace_back();
        for (int64_t n = random_.From(0, most); n > 0; --n) {
          phase.push_back(maker.Make(core.is_memory_core));
        }
      }
    }
  }

  // Stream i goes through the tensor from i * distance on, a piece at a time; cores have several by turns if there are
  // few cores.
  void MakeStreams(const isa::Machine& machine) {
    const int64_t streams =
        random_.OneOf({random_.From(1, 8), int64_t{1} << random_.From(0, 6), random_.From(1, 64)});
    const int64_t rounds = std::max<int64_t>(1, random_.From(1, 80) / streams);
    const int64_t small = std::min<int64_t>({machine.smem_bytes(), machine.nmem_bytes(), 1024});
    const int64_t piece = random_.OneOf({int64_t{64}, int64_t{512}, small, random_.From(1, small)});
    const int64_t most = std::max<int64_t>((case_.tensor_bytes - rounds * piece) / streams, 0);
    // A power of two, or near one.
    int64_t distance = int64_t{1} << random_.From(6, 32);
    while (distance > most) distance /= 2;
    if (random_.Below(3) == 0) distance = std::min(most, distance + random_.From(0, 4096));
    const int write_percent = random_.OneOf({0, 0, 100, 50, 30});
    const std::string async = random_.Below(4) == 0 ? "" : ".async";
    for (CoreOps& core : case_.cores) core.phases.resize(1);
    for (int64_t round = 0; round < rounds; ++round) {
      for (int64_t stream = 0; stream < streams; ++stream) {
        CoreOps& core = case_.cores[static_cast<size_t>(stream) % case_.cores.size()];
        const char* own = core.is_memory_core || random_.Below(4) == 0 ? "smem" : "nmem";
        const bool is_store = static_cast<int>(stream * 37 % 100) < write_percent;
        const Op::Arg far{.value = stream * distance + round * piece, .is_gmem = true}, near{};
        core.phases[0].push_back(
            {.mnemonic = is_store ? absl::StrCat("memcpy.i8.gmem.", own, async)
                                  : absl::StrCat("memcpy.i8.", own, ".gmem", async),
             .args = {is_store ? far : near, is_store ? near : far, {piece}, {1}, {0}, {0}}});
      }
    }
  }

  const uint64_t seed_;
  Random random_;
  RandomCase case_;
  std::vector<const isa::Instruction*> wanted_;
  bool wants_loads_ = false;
};

}  // namespace

RandomCase MakeRandomCase(uint64_t seed) { return CaseMaker(seed).Make(); }

absl::StatusOr<isa::Machine> MachineOf(const RandomCase& c) {
  return MachineOf(c.machine, c.overrides);
}

std::string ProgramText(const RandomCase& c, const isa::Machine& machine) {
  const int64_t members = machine.cores_per_cluster() + 1;
  // Through a table of jumps, so that all cores begin in the same cycle.
  std::string text = absl::StrCat(
      ".program random\n.tensor x i8 any inout\n  arg r2, 0\n  arg r3, 1\n  arg r7, 8\n  muli r3, "
      "r3, ",
      members, "\n  add r2, r2, r3\n  addi r2, r2, table\n  jump_register r2\ntable:\n");
  for (int64_t i = 0; i < machine.clusters() * members; ++i) {
    absl::StrAppend(&text, "  jump core", i, "\n");
  }
  int64_t number = 0;
  for (int64_t i = 0; i < machine.clusters() * members; ++i) {
    const int64_t cluster = i / members;
    const bool is_memory_core = i % members == members - 1;
    const auto ops = std::find_if(c.cores.begin(), c.cores.end(), [&](const CoreOps& candidate) {
      return candidate.cluster == cluster && candidate.is_memory_core == is_memory_core &&
             (is_memory_core || candidate.core == i % members);
    });
    absl::StrAppend(&text, "core", i, ":\n");
    for (size_t phase = 0; phase <= c.ends.size(); ++phase) {
      if (ops != c.cores.end()) {
        for (const Op& op : ops->phases[phase]) AppendOp(op, number++, text);
      }
      if (phase == c.ends.size()) break;
      if (c.ends[phase].is_global) text += "  barrier.global\n";
      if (c.ends[phase].clusters >> cluster & 1) text += "  barrier.cluster\n";
    }
    text += "  halt\n";
  }
  return text;
}

}  // namespace polynao::simulator::reference
