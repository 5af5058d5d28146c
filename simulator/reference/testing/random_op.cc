#include "simulator/reference/testing/random_op.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "isa/program.h"

namespace polynao::simulator::reference {
namespace {

using isa::Instruction;
using isa::OperandKind;
using isa::Space;

enum Category { kCopy, kAccess, kScalar, kSync, kVector, kTensor, kCategories };

bool IsCopy(const Instruction& instruction) {
  return instruction.family == "memcpy" || instruction.family == "memcpy3d";
}

Category CategoryOf(const Instruction& instruction) {
  if (IsCopy(instruction)) return kCopy;
  switch (instruction.unit) {
    case isa::Unit::kVector:
      return kVector;
    case isa::Unit::kTensor:
      return kTensor;
    case isa::Unit::kControl:
      return kSync;
    default:
      break;
  }
  for (const isa::Operand& operand : instruction.operands) {
    if (operand.kind == OperandKind::kAddress) return kAccess;
  }
  return kScalar;
}

bool IsForMemoryCore(const Instruction& instruction) {
  return instruction.queue != isa::Queue::kCompute &&
         std::none_of(instruction.operands.begin(), instruction.operands.end(),
                      [](const isa::Operand& operand) {
                        return operand.kind == OperandKind::kAddress &&
                               (operand.space == Space::kNmem || operand.space == Space::kWmem);
                      });
}

using Lists = std::array<std::vector<const Instruction*>, kCategories>;

// The instructions to draw from, of memory cores and of the others.
const Lists& ListsOf(bool is_memory_core) {
  static const auto* lists = [] {
    auto* result = new std::array<Lists, 2>;
    for (const Instruction& instruction : isa::DianNao().instructions()) {
      if (!CanBeDrawn(instruction)) continue;
      const Category category = CategoryOf(instruction);
      (*result)[0][category].push_back(&instruction);
      if (IsForMemoryCore(instruction)) (*result)[1][category].push_back(&instruction);
    }
    return result;
  }();
  return (*lists)[is_memory_core ? 1 : 0];
}

bool WritesRegister(const Instruction& instruction) {
  return std::any_of(
      instruction.operands.begin(), instruction.operands.end(),
      [](const isa::Operand& operand) { return operand.kind == OperandKind::kWritten; });
}

// Bytes from the first to the last of `rows` rows of `planes` planes.
int64_t Extent(int64_t size, int64_t count, int64_t rows, int64_t stride, int64_t planes = 1,
               int64_t plane = 0) {
  return size * (std::max<int64_t>(planes - 1, 0) * plane +
                 std::max<int64_t>(rows - 1, 0) * stride + count);
}

// Longer instructions say nothing more.
constexpr int64_t kMostCycles = 3000;
constexpr int64_t kMostCopied = 2048;  // bytes

}  // namespace

bool CanBeDrawn(const Instruction& instruction) {
  return instruction.barrier == Instruction::Barrier::kNone && instruction.family != "halt";
}

OpMaker::OpMaker(Random& random, const isa::Machine& machine, int64_t tensor_bytes, bool loads)
    : random_(random), machine_(machine), loads_(loads) {
  for (const Space space : {Space::kNmem, Space::kWmem, Space::kSmem}) {
    bytes_[static_cast<int>(space)] = machine.bytes(space);
  }
  bytes_[static_cast<int>(Space::kGmem)] = tensor_bytes;
}

Op OpMaker::Make(bool is_memory_core) {
  // Rare: this core misses all later barriers.
  if (random_.Below(1200) == 0) return {.mnemonic = "halt"};
  const Lists& lists = ListsOf(is_memory_core);
  while (true) {
    const uint64_t kind = random_.Below(100);
    const Category category = kind < 45   ? kCopy
                              : kind < 57 ? kAccess
                              : kind < 67 ? kScalar
                              : kind < 76 ? kSync
                              : kind < 90 ? kVector
                                          : kTensor;
    if (lists[category].empty()) continue;
    auto op = Make(*lists[category][random_.Below(lists[category].size())]);
    if (op) return *std::move(op);
  }
}

std::optional<Op> OpMaker::Make(const Instruction& instruction) {
  if (!CanBeDrawn(instruction)) return std::nullopt;
  const Category category = CategoryOf(instruction);
  if (category == kSync) return Op{.mnemonic = instruction.mnemonic};
  if (category == kScalar) return ScalarOp(instruction);
  if (category == kAccess && WritesRegister(instruction) && !loads_) return std::nullopt;
  constexpr int kAttempts = 20;
  for (int i = 0; i < kAttempts; ++i) {
    if (auto op = Attempt(instruction)) return op;
  }
  return std::nullopt;
}

// ---- operands by name -------------------------------------------------------------------------------

int64_t OpMaker::Address(Space space, int64_t bytes, int64_t align) {
  const int64_t room = std::max<int64_t>(Room(space) - bytes, 0);
  int64_t at = random_.From(0, room);
  if (random_.Below(2) == 0) {
    // Mostly where others are too, so that bursts meet in channels and lines.
    at = std::min(room, 1024 * random_.From(0, 5) + random_.From(0, 7) * 16);
  } else if (random_.Below(2) == 0) {
    // Or a power of two apart from others.
    at = std::min(room, random_.From(0, 7) << random_.From(6, 30));
  }
  return at / align * align;
}

OpMaker::Values OpMaker::CopyValues(const Instruction& instruction) {
  const isa::Operand &dst = instruction.operands[0], &src = instruction.operands[1];
  const int64_t size = ir::ByteSize(dst.type);
  const bool has_planes = instruction.family == "memcpy3d";
  int64_t count = random_.OneOf({random_.From(0, 2000), random_.From(1, 300), random_.From(1, 40)});
  const int64_t segments = random_.OneOf({int64_t{1}, random_.From(0, 12), random_.From(2, 5)});
  const int64_t planes = has_planes ? random_.From(0, 4) : 1;
  const int64_t most = std::min({kMostCopied, Room(dst.space) / 2, Room(src.space) / 2});
  while (count * segments * planes * size > most) count /= 2;
  // Without gaps, with gaps, or (only of what is read) overlapping; far apart where GMEM has room.
  const auto stride = [&](int64_t least, const isa::Operand& side) {
    if (&side == &src && random_.Below(4) == 0) return random_.OneOf({int64_t{0}, least / 2});
    const int64_t far = Room(side.space) / (size * std::max<int64_t>(segments * planes, 1));
    if (side.space == Space::kGmem && far > 4096 && random_.Below(2) == 0) {
      int64_t power = int64_t{1} << random_.From(8, 33);
      while (power > far) power /= 2;
      return std::max(least, power + random_.OneOf({int64_t{0}, int64_t{0}, random_.From(0, 64)}));
    }
    return least + random_.OneOf({int64_t{0}, int64_t{0}, random_.From(1, 20), least});
  };
  const int64_t to = stride(count, dst), from = stride(count, src);
  const int64_t to_plane = stride(std::max(count, segments * to), dst);
  const int64_t from_plane = random_.OneOf(
      {stride(segments * from, src), std::max<int64_t>(segments - 1, 0) * from + count});
  Values values = {{"count", count},         {"segments", segments}, {"dst_stride", to},
                   {"src_stride", from},     {"planes", planes},     {"dst_plane", to_plane},
                   {"src_plane", from_plane}};
  const int64_t to_bytes = Extent(size, count, segments, to, planes, to_plane);
  const int64_t from_bytes = Extent(size, count, segments, from, planes, from_plane);
  values["dst"] = Address(dst.space, to_bytes, dst.space == Space::kWmem ? 64 : size);
  values["src"] = Address(src.space, from_bytes, size);
  // Inside one memory what is written must not overlap what is read.
  if (dst.space == src.space) {
    values["dst"] = random_.From(0, 100) * 8;
    values["src"] = Room(src.space) / 2 / 8 * 8 + random_.From(0, 100) * 8;
  }
  return values;
}

OpMaker::Values OpMaker::VectorValues(const Instruction& instruction) {
  // Often nothing: with vector.start = 0 that is one cycle, the shortest instruction there is.
  const int64_t count = random_.Below(3) == 0 ? 0 : 64 * random_.From(1, 12);
  Values values = {{"count", count},
                   {"rows", random_.From(0, 3)},
                   {"columns", random_.From(0, 100)},
                   {"stride", count + 64 * random_.From(0, 2)},
                   {"value", random_.From(0, 3)}};
  const int64_t part = Room(Space::kNmem) / static_cast<int64_t>(instruction.operands.size());
  int64_t number = 0;
  for (const isa::Operand& operand : instruction.operands) {
    if (operand.kind != OperandKind::kAddress) continue;
    values[operand.name] = (part * number++ + 127) / 128 * 128 + 128 * random_.From(0, 3);
  }
  return values;
}

OpMaker::Values OpMaker::TensorValues(const Instruction& instruction) {
  const int64_t size = ir::ByteSize(instruction.operands[1].type);
  const int64_t co = 64 * random_.From(0, 2);
  const int64_t kh = random_.From(1, 2), kw = random_.From(1, 2), ci = random_.From(1, 16);
  const int64_t k = random_.From(1, 64), wo = random_.From(0, 4);
  const int64_t stride_w = random_.From(1, 2), dilation_w = random_.From(1, 2);
  const int64_t line = 64 / size;  // elements
  const int64_t filter = std::max(kh * kw * ci, k);
  const int64_t pitch = (filter + line - 1) / line * line + line * random_.From(0, 1);
  return {{"co", co},
          {"ho", random_.From(0, 3)},
          {"wo", wo},
          {"wi", std::max<int64_t>(wo - 1, 0) * stride_w + (kw - 1) * dilation_w + 1 +
                     random_.From(0, 2)},
          {"kh", kh},
          {"kw", kw},
          {"ci", ci},
          {"k", k},
          {"rows", random_.From(0, 4)},
          {"stride_h", random_.From(1, 2)},
          {"stride_w", stride_w},
          {"dilation_h", random_.From(1, 2)},
          {"dilation_w", dilation_w},
          {"pitch", pitch},
          {"bank", std::max<int64_t>(co / 64, 1) * pitch},
          {"dst", 128 * random_.From(0, 3)},
          {"src", Room(Space::kNmem) / 2 / 64 * 64 + 64 * random_.From(0, 3)},
          {"weights", 64 * random_.From(0, 3)}};
}

// ---- ops --------------------------------------------------------------------------------------------

bool OpMaker::Fits(const Instruction& instruction, const std::vector<int64_t>& values) const {
  const isa::InstructionSet& set = isa::DianNao();
  if (!set.CheckConstraints(instruction, values).ok()) return false;
  for (const isa::ByteRanges& range : set.Footprint(instruction, values)) {
    if (range.begin < 0 || range.end() > Room(range.space)) return false;
  }
  const auto cost = set.Cost(instruction, values, machine_);
  return cost.ok() && *cost <= kMostCycles;
}

std::optional<Op> OpMaker::Attempt(const Instruction& instruction) {
  const Category category = CategoryOf(instruction);
  Values by_name;
  if (category == kCopy) by_name = CopyValues(instruction);
  if (category == kVector) by_name = VectorValues(instruction);
  if (category == kTensor) by_name = TensorValues(instruction);
  Op op{.mnemonic = instruction.mnemonic};
  std::vector<int64_t> values;
  bool in_gmem = false;
  int64_t size = 1;
  for (const isa::Operand& operand : instruction.operands) {
    Op::Arg& arg = op.args.emplace_back();
    if (operand.kind == OperandKind::kAddress) {
      size = ir::ByteSize(operand.type);
      arg.is_gmem = operand.space == Space::kGmem;
      in_gmem |= arg.is_gmem;
      arg.value =
          category == kAccess ? Address(operand.space, 512, size) : by_name.at(operand.name);
    } else if (operand.kind == OperandKind::kValue && operand.type == ir::Type::kI64 &&
               category != kAccess) {
      arg.value = by_name.at(operand.name);
    } else {
      // Loads write it; nobody knows it, and it decides nothing.
      arg.text = kUnknownRegister;
    }
    values.push_back(arg.value);
  }
  if (!Fits(instruction, values)) return std::nullopt;
  if (category == kVector || category == kTensor) {
    if (random_.Below(4) == 0) op.repeat = random_.From(2, category == kVector ? 20 : 6);
    return op;
  }
  if (random_.Below(category == kAccess ? 3 : 8) != 0) return op;
  op.repeat = random_.From(2, 5);
  if (!in_gmem) return op;
  // Each time further on, if that stays inside.
  op.step = size * random_.OneOf({random_.From(0, 8), random_.From(0, 400)});
  for (size_t i = 0; i < values.size(); ++i) {
    if (op.args[i].is_gmem) values[i] += (op.repeat - 1) * op.step;
  }
  if (!Fits(instruction, values)) op.step = 0;
  return op;
}

Op OpMaker::ScalarOp(const Instruction& instruction) {
  Op op{.mnemonic = instruction.mnemonic};
  // A value that nobody knows decides nothing, and keeps to no constraint.
  const bool may_be_unknown = WritesRegister(instruction) && instruction.constraints.empty();
  const bool is_unknown = may_be_unknown && random_.Below(8) == 0;
  const auto known = [&] { return random_.OneOf({std::string("r42"), std::string("r43")}); };
  for (const isa::Operand& operand : instruction.operands) {
    Op::Arg& arg = op.args.emplace_back();
    if (operand.kind == OperandKind::kWritten) {
      arg.text = is_unknown ? kUnknownRegister : known();
    } else if (operand.kind == OperandKind::kImmediate) {
      arg.text = operand.is_target         ? std::string(Op::kLabel)
                 : operand.name == "index" ? absl::StrCat(random_.From(0, isa::kFirstParam))
                                           : absl::StrCat(random_.From(-100, 100));
    } else if (operand.name == "target") {
      arg.text = Op::kLabelInRegister;
    } else if (operand.name == "index") {
      arg.value = random_.From(0, isa::kFirstParam);
    } else if (!instruction.constraints.empty()) {
      arg.value = random_.From(1, 40);  // a divisor, the width of a shift
    } else {
      arg.text = is_unknown && random_.Below(2) == 0 ? std::string(kUnknownRegister) : known();
    }
  }
  op.repeat = random_.OneOf({int64_t{1}, random_.From(1, 15)});
  return op;
}

}  // namespace polynao::simulator::reference
