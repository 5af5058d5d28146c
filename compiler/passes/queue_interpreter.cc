#include "compiler/passes/queue_interpreter.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <utility>

#include "absl/hash/hash.h"
#include "base/check.h"
#include "base/status.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/core_program.h"
#include "compiler/passes/queue_core.h"
#include "compiler/passes/storage.h"
#include "compiler/target/core_roles.h"
#include "isa/levels.h"

namespace polynao {

using ir::Buffer;
using ir::Stmt;
using ir::StmtKind;
using isa::Instruction;
using queue_interpreter::Bytes;
using queue_interpreter::Core;
using queue_interpreter::Garbage;
using queue_interpreter::Layout;
using queue_interpreter::Memories;
using Timing = QueueSchedule::Timing;
using RawArgument = ir::Interpreter::RawArgument;

// ---- schedules

std::string QueueSchedule::Name() const {
  if (seed != 0) return StrCat("random with seed ", seed);
  std::string name;
  for (int q = 0; q < isa::kQueueCount; ++q) {
    constexpr std::string_view kNames[] = {"at once", "in flight", "late"};
    StrAppend(&name, q == 0 ? "" : ", ", isa::QueueName(static_cast<isa::Queue>(q)), " ",
              kNames[static_cast<int>(queues[q])]);
  }
  return StrCat(name, memory_core_first ? ", memory core first" : "");
}

std::vector<QueueSchedule> QueueSchedules(int random, uint64_t seed) {
  std::vector<QueueSchedule> schedules;
  const auto add = [&](int q, Timing of_queue, Timing of_others, bool memory_core_first) {
    QueueSchedule schedule = {.memory_core_first = memory_core_first};
    schedule.queues.fill(of_others);
    schedule.queues[q] = of_queue;
    schedules.push_back(schedule);
  };
  for (const bool memory_core_first : {false, true}) {
    for (const Timing timing : {Timing::kAtOnce, Timing::kInFlight, Timing::kLate}) {
      add(0, timing, timing, memory_core_first);
    }
  }
  for (int q = 0; q < isa::kQueueCount; ++q) {
    add(q, Timing::kInFlight, Timing::kAtOnce, false);
    add(q, Timing::kLate, Timing::kAtOnce, true);
    add(q, Timing::kLate, Timing::kInFlight, false);
  }
  for (int i = 0; i < random; ++i) {
    schedules.push_back({.seed = seed * 1000 + static_cast<uint64_t>(i) + 1});
  }
  return schedules;
}

std::string Difference(const QueueRecord& a, const QueueRecord& b) {
  for (size_t core = 0; core < std::min(a.cores.size(), b.cores.size()); ++core) {
    const auto& x = a.cores[core].steps;
    const auto& y = b.cores[core].steps;
    const CoreId id = a.cores[core].id;
    const auto where = [&](size_t step, std::string_view mnemonic) {
      return StrCat("instruction ", step, " of core ", id.core, " of cluster ", id.cluster, ", ",
                    mnemonic);
    };
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (x[i].instruction != y[i].instruction) {
        return StrCat(where(i, x[i].instruction->mnemonic), ", is ", y[i].instruction->mnemonic);
      }
      if (x[i].operands != y[i].operands) {
        return StrCat(where(i, x[i].instruction->mnemonic), ", finds other bytes in its operands");
      }
    }
    if (x.size() != y.size()) {
      return StrCat("core ", id.core, " of cluster ", id.cluster, " issues ", x.size(),
                    " instructions or ", y.size());
    }
  }
  return a.memories == b.memories ? "" : "the memories on chip end with other bytes";
}

// ---- the card

namespace {

int64_t ConstantBytes(Buffer buffer) {
  int64_t bytes = ir::ByteSize(buffer->type);
  for (ir::Expr extent : buffer->extents) {
    if (!extent.Is(ir::ExprKind::kIntImm)) return -1;
    bytes *= std::max<int64_t>(extent.int_value(), 0);
  }
  return bytes;
}

absl::StatusOr<Layout> PlaceAllocations(Stmt body) {
  Layout layout;
  const AddressMap addresses = CollectAddresses(body);
  absl::Status status;
  ir::ForEachStmt(body, [&](Stmt s) {
    if (!s.Is(StmtKind::kAllocate)) return true;
    const Buffer buffer = s.buffer();
    const std::optional<isa::Space> space = isa::ParseSpace(buffer->scope);
    const int64_t bytes = ConstantBytes(buffer);
    if ((!IsOnChip(buffer->scope) && !CoreRoles::IsTemporary(s)) || !space || bytes < 0) {
      status = InvalidInput("'", buffer->name, "' is allocated in '", buffer->scope,
                            "': expected an allocation of constant size in a memory of the card");
    } else if (auto it = addresses.find(buffer); it != addresses.end()) {
      layout.Put(buffer, *space, it->second, bytes);
    } else {
      layout.PutBehind(buffer, *space, bytes);
    }
    return true;
  });
  RETURN_IF_ERROR(status);
  return layout;
}

}  // namespace

class QueueInterpreter::Card {
 public:
  Card(const ir::Function& function, const Target& target) : function_(function), target_(target) {}

  absl::Status Prepare() {
    ASSIGN_OR_RETURN(layout_, PlaceAllocations(function_.body));
    const bool has_clusters = CoreRoles(function_.body, target_).Uses(isa::Level::kCluster);
    for (const ir::Param& param : function_.params) {
      if (param.buffer && param.buffer->scope != isa::kGmem && has_clusters) {
        return InvalidInput("parameter '", param.name(), "' is in ", param.buffer->scope,
                            ", of which every cluster has its own");
      }
    }
    const int64_t clusters = target_.machine->clusters();
    smem_.resize(static_cast<size_t>(clusters));
    for (const CoreId id : AllCores(target_)) {
      Bytes* const nmem = &own_.emplace_back();
      Bytes* const wmem = &own_.emplace_back();
      Memories memories;
      memories.of[static_cast<int>(isa::Space::kGmem)] = &gmem_;
      memories.of[static_cast<int>(isa::Space::kSmem)] = &smem_[static_cast<size_t>(id.cluster)];
      memories.of[static_cast<int>(isa::Space::kNmem)] = nmem;
      memories.of[static_cast<int>(isa::Space::kWmem)] = wmem;
      memories_.push_back(memories);
      ir::Function program = CoreProgram(function_, target_, id);
      if (program.body.IsEmpty()) continue;
      cores_.push_back(std::make_unique<Core>(id, *target_.instructions, layout_, memories));
      RETURN_IF_ERROR(cores_.back()->Prepare(std::move(program)));
    }
    return absl::OkStatus();
  }

  absl::Status Run(const std::vector<ir::Argument>& arguments, const QueueSchedule& schedule,
                   QueueRecord& record) {
    if (arguments.size() != function_.params.size()) {
      return InvalidInput("function '", function_.name, "' takes ", function_.params.size(),
                          " arguments, found ", arguments.size());
    }
    // The memories start with the same garbage by every schedule, so that records compare.
    Garbage garbage(12345);
    std::mt19937_64 random(schedule.seed);
    PlaceArguments(arguments, garbage);
    record = {};
    record.cores.resize(cores_.size());
    for (size_t i = 0; i < cores_.size(); ++i) {
      record.cores[i].id = cores_[i]->id();
      cores_[i]->Start(schedule, garbage, random, raw_[i], record.cores[i].steps);
    }
    RETURN_IF_ERROR(schedule.seed != 0 ? RunAtRandom(random) : TakeTurns(schedule));
    for (size_t p = 0; p < arguments.size(); ++p) {
      if (arguments[p].tensor == nullptr || cores_.empty()) continue;
      Bytes& bytes = arguments[p].tensor->bytes;
      std::memcpy(bytes.data(), raw_[0][p].address, bytes.size());
    }
    for (const Bytes& bytes : own_) record.memories.push_back(absl::HashOf(bytes));
    for (const Bytes& bytes : smem_) record.memories.push_back(absl::HashOf(bytes));
    return absl::OkStatus();
  }

 private:
  // Fills the memories with garbage and copies the arguments into them.
  void PlaceArguments(const std::vector<ir::Argument>& arguments, Garbage& garbage) {
    Layout layout = layout_;
    for (size_t p = 0; p < arguments.size(); ++p) {
      const Buffer buffer = function_.params[p].buffer;
      if (!buffer) continue;
      POLYNAO_CHECK(arguments[p].tensor != nullptr) << function_.params[p].name();
      layout.PutBehind(buffer, *isa::ParseSpace(buffer->scope),
                       static_cast<int64_t>(arguments[p].tensor->bytes.size()));
    }
    for (const Memories& memories : memories_) {
      for (int space = 0; space < isa::kSpaceCount; ++space) {
        memories.of[space]->resize(static_cast<size_t>(layout.bytes[space]));
      }
    }
    for (Bytes& bytes : own_) garbage.Fill(bytes);
    for (Bytes& bytes : smem_) garbage.Fill(bytes);
    raw_.clear();
    for (const auto& core : cores_) {
      const Memories& memories = core->memories();
      std::vector<RawArgument>& raw = raw_.emplace_back(arguments.size());
      for (size_t p = 0; p < arguments.size(); ++p) {
        raw[p].int_value = arguments[p].int_value;
        raw[p].float_value = arguments[p].float_value;
        const Buffer buffer = function_.params[p].buffer;
        if (!buffer) continue;
        const auto& [space, begin] = layout.places.at(buffer.node());
        const Bytes& bytes = arguments[p].tensor->bytes;
        raw[p].address = memories[space].data() + begin;
        if (space == isa::Space::kGmem && raw_.size() > 1) continue;  // all cores see the same
        std::memcpy(raw[p].address, bytes.data(), bytes.size());
      }
    }
  }

  absl::Status TakeTurns(const QueueSchedule& schedule) {
    std::vector<Core*> order;
    for (const auto& core : cores_) order.push_back(core.get());
    if (schedule.memory_core_first) std::reverse(order.begin(), order.end());
    while (true) {
      bool has_run = false;
      for (Core* core : order) {
        if (core->state() != Core::State::kReady && core->state() != Core::State::kWaiting)
          continue;
        has_run = true;
        RETURN_IF_ERROR(core->TakeTurn());
      }
      if (has_run || OpenBarriers()) continue;
      return End();
    }
  }

  absl::Status RunAtRandom(std::mt19937_64& random) {
    while (true) {
      std::vector<Core*> running;
      for (const auto& core : cores_) {
        if (core->state() == Core::State::kReady || core->state() == Core::State::kWaiting) {
          running.push_back(core.get());
        }
      }
      if (running.empty()) {
        if (OpenBarriers()) continue;
        return End();
      }
      Core& core = *running[random() % running.size()];
      RETURN_IF_ERROR(random() % 2 == 0 ? core.AdvanceAtRandom() : core.TakeTurn());
    }
  }

  // Opens the barriers that all their members have reached. Whether there was one.
  bool OpenBarriers() {
    bool opened = false;
    const auto open = [&](Instruction::Barrier barrier, int cluster) {
      int members = 0;
      for (const auto& core : cores_) {
        if (cluster >= 0 && core->id().cluster != cluster) continue;
        if (core->state() != Core::State::kAtBarrier || core->barrier() != barrier) return;
        ++members;
      }
      const int64_t wanted = (target_.machine->cores_per_cluster() + 1) *
                             (cluster >= 0 ? 1 : target_.machine->clusters());
      if (members != wanted) return;
      for (const auto& core : cores_) {
        if (cluster < 0 || core->id().cluster == cluster) core->OpenBarrier();
      }
      opened = true;
    };
    open(Instruction::Barrier::kGlobal, -1);
    for (int64_t cluster = 0; cluster < target_.machine->clusters(); ++cluster) {
      open(Instruction::Barrier::kCluster, static_cast<int>(cluster));
    }
    return opened;
  }

  absl::Status End() const {
    for (const auto& core : cores_) {
      if (core->state() == Core::State::kDone) continue;
      return InvalidInput("core ", core->id().core, " of cluster ", core->id().cluster,
                          " waits at a barrier that not all others reach");
    }
    return absl::OkStatus();
  }

  const ir::Function& function_;
  const Target& target_;
  Layout layout_;
  Bytes gmem_;
  std::vector<Bytes> smem_;  // by cluster
  std::deque<Bytes> own_;    // NMEM and WMEM of every core
  std::vector<Memories> memories_;
  std::vector<std::unique_ptr<Core>> cores_;  // those with a program
  std::vector<std::vector<RawArgument>> raw_;
};

QueueInterpreter::QueueInterpreter(std::unique_ptr<Card> card) : card_(std::move(card)) {}
QueueInterpreter::~QueueInterpreter() = default;

absl::StatusOr<std::unique_ptr<QueueInterpreter>> QueueInterpreter::Create(
    const ir::Function& function, const Target& target) {
  if (target.instructions == nullptr || target.machine == nullptr) {
    return InvalidInput("target '", target.name, "' has no instruction queues");
  }
  auto card = std::make_unique<Card>(function, target);
  RETURN_IF_ERROR(card->Prepare());
  return std::unique_ptr<QueueInterpreter>(new QueueInterpreter(std::move(card)));
}

absl::Status QueueInterpreter::Run(const std::vector<ir::Argument>& arguments,
                                   const QueueSchedule& schedule, QueueRecord* record) {
  QueueRecord local;
  return card_->Run(arguments, schedule, record != nullptr ? *record : local);
}

}  // namespace polynao
