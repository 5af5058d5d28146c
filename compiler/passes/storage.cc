#include "compiler/passes/storage.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pass.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

constexpr size_t kTextLength = 40;  // of a statement in reports

// ---- lifetimes

struct Lifetime {
  Buffer buffer;
  size_t loops = 0;  // around the allocation
  int64_t bytes = 0;
  // The first and the last use: numbers of the statements in program order, and the statements.
  int first = -1;
  int last = -1;
  Stmt from = {};
  Stmt to = {};
};

// Finds the allocations on chip and the statements between which each is live.
class Lifetimes {
 public:
  absl::Status Walk(Stmt s) {
    if (s.Is(StmtKind::kPragma) && s.name() == pragma::kAddress) {
      return InvalidInput("storage: '", s.body().buffer()->name, "' already has an address");
    }
    const int at = count_++;
    if (s.Is(StmtKind::kAllocate) && IsOnChip(s.buffer()->scope)) RETURN_IF_ERROR(Add(s));
    if (s.Is(StmtKind::kStore)) Use(s.buffer(), s, at);
    for (Expr e : s.operands()) {
      ir::ForEachExpr(e, [&](Expr x) {
        if (x.Is(ExprKind::kLoad) || x.Is(ExprKind::kAddress)) Use(Buffer(x.buffer()), s, at);
      });
    }
    const bool is_loop = s.Is(StmtKind::kFor);
    const bool in_core = is_loop && s.name() == isa::kCoreAxis;
    core_loops_ += in_core;
    if (is_loop) loops_.push_back({s, at, {}});
    for (Stmt child : s.children()) RETURN_IF_ERROR(Walk(child));
    core_loops_ -= in_core;
    if (is_loop) {
      for (size_t i : loops_.back().used) {
        found_[i].last = count_ - 1;
        found_[i].to = s;
      }
      loops_.pop_back();
    }
    return absl::OkStatus();
  }

  // In the order of the program.
  const std::vector<Lifetime>& found() const { return found_; }

 private:
  struct Loop {
    Stmt stmt;
    int at;
    std::vector<size_t> used;  // allocated outside of it
  };

  absl::Status Add(Stmt s) {
    const Buffer buffer = s.buffer();
    int64_t bytes = ir::ByteSize(buffer->type);
    for (Expr extent : buffer->extents) {
      if (!extent.Is(ExprKind::kIntImm)) {
        return InvalidInput("storage: '", buffer->name, "' in ", buffer->scope,
                            " has an extent that is not constant");
      }
      bytes *= std::max<int64_t>(extent.int_value(), 0);
    }
    if (buffer->scope == isa::kSmem && core_loops_ > 0) {
      return InvalidInput(
          "storage: '", buffer->name,
          "' in smem is allocated inside the loop over a cluster's cores (tid), but "
          "smem belongs to the cluster: allocate it outside");
    }
    index_[buffer] = found_.size();
    found_.push_back({.buffer = buffer, .loops = loops_.size(), .bytes = bytes});
    return absl::OkStatus();
  }

  void Use(Buffer buffer, Stmt s, int at) {
    auto it = index_.find(buffer);
    if (it == index_.end()) return;
    Lifetime& life = found_[it->second];
    // One iteration may use what another one stored, and cores run different iterations at a time.
    const bool in_loop = life.loops < loops_.size();
    Loop* const loop = in_loop ? &loops_[life.loops] : nullptr;
    if (life.first < 0) {
      life.first = in_loop ? loop->at : at;
      life.from = in_loop ? loop->stmt : s;
    }
    life.last = at;
    life.to = s;
    if (in_loop && (loop->used.empty() || loop->used.back() != it->second)) {
      loop->used.push_back(it->second);
    }
  }

  int count_ = 0;
  int core_loops_ = 0;
  std::vector<Loop> loops_;
  std::vector<Lifetime> found_;
  absl::flat_hash_map<Buffer, size_t> index_;
};

// ---- places

// An allocation of one memory, to be placed.
struct Item {
  int64_t bytes;
  int first;
  int last;
  bool MeetsInTime(const Item& other) const {
    return first >= 0 && other.first >= 0 && first <= other.last && other.first <= last;
  }
};

struct Placement {
  std::vector<int64_t> begins;
  int64_t peak = 0;
  void Put(const std::vector<Item>& items, size_t i, int64_t begin) {
    begins[i] = begin;
    peak = std::max(peak, begin + items[i].bytes);
  }
};

// Every item gets bytes of its own.
Placement InARow(const std::vector<Item>& items) {
  Placement placement = {.begins = std::vector<int64_t>(items.size())};
  for (size_t i = 0; i < items.size(); ++i) {
    placement.Put(items, i, RoundUp(placement.peak, kOnChipAlignment));
  }
  return placement;
}

// Items that are never live at the same time may share bytes. From the largest to the smallest, each
// takes the smallest gap between the placed items that are live at the same time.
Placement WithReuse(const std::vector<Item>& items) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(items[b].bytes, a) < std::pair(items[a].bytes, b);
  });
  Placement placement = {.begins = std::vector<int64_t>(items.size())};
  for (size_t n = 0; n < order.size(); ++n) {
    const Item& item = items[order[n]];
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t m = 0; m < n; ++m) {
      const Item& other = items[order[m]];
      const int64_t begin = placement.begins[order[m]];
      if (other.MeetsInTime(item)) {
        taken.emplace_back(begin, RoundUp(begin + other.bytes, kOnChipAlignment));
      }
    }
    std::sort(taken.begin(), taken.end());
    int64_t best = -1;
    int64_t best_gap = 0;
    int64_t free = 0;
    for (const auto& [begin, end] : taken) {
      const int64_t gap = begin - free;
      if (gap >= item.bytes && (best < 0 || gap < best_gap)) {
        best = free;
        best_gap = gap;
      }
      free = std::max(free, end);
    }
    placement.Put(items, order[n], best >= 0 ? best : free);
  }
  return placement;
}

// Without reuse if that fits.
Placement PlanPlaces(const std::vector<Item>& items, int64_t available) {
  Placement placement = InARow(items);
  return placement.peak <= available ? placement : WithReuse(items);
}

// ---- memories that are too small

// The pipeline pass names the copies of NAME NAME.0, NAME.1, ...
bool HasNumber(std::string_view name) {
  return name.size() > 2 && name[name.size() - 2] == '.' && name.back() >= '0' &&
         name.back() <= '9';
}
bool AreCopies(const Lifetime& a, const Lifetime& b) {
  const std::string_view x = a.buffer->name;
  const std::string_view y = b.buffer->name;
  return a.bytes == b.bytes && HasNumber(x) && HasNumber(y) && x.back() != y.back() &&
         x.substr(0, x.size() - 1) == y.substr(0, y.size() - 1);
}

// The allocations of one memory.
class Memory {
 public:
  Memory(std::string scope, int64_t available) : scope_(std::move(scope)), available_(available) {}

  void Add(const Lifetime& life) {
    lives_.push_back(&life);
    items_.push_back({life.bytes, life.first, life.last});
  }

  absl::Status Place(absl::flat_hash_map<Buffer, int64_t>& addresses,
                     std::vector<StoragePlace>* places) const {
    const Placement placement = PlanPlaces(items_, available_);
    if (placement.peak > available_) return DoesNotFit(placement);
    for (size_t i = 0; i < items_.size(); ++i) {
      addresses[lives_[i]->buffer] = placement.begins[i];
      if (places != nullptr) places->push_back(PlaceOf(placement, i));
    }
    return absl::OkStatus();
  }

 private:
  // The number of copies of this item's buffer.
  int Copies(size_t i) const {
    return 1 +
           static_cast<int>(std::count_if(lives_.begin(), lives_.end(), [&](const Lifetime* other) {
             return AreCopies(*lives_[i], *other);
           }));
  }

  StoragePlace PlaceOf(const Placement& placement, size_t i) const {
    const Lifetime& life = *lives_[i];
    const auto text = [](Stmt s) {
      if (!s) return std::string();
      std::string line = ir::Print(s);
      line = line.substr(0, line.find('\n'));
      return line.size() <= kTextLength ? line : line.substr(0, kTextLength - 3) + "...";
    };
    StoragePlace place = {.buffer = life.buffer->name,
                          .scope = scope_,
                          .begin = placement.begins[i],
                          .bytes = life.bytes,
                          .first = life.first,
                          .last = life.last,
                          .from = text(life.from),
                          .to = text(life.to),
                          .copies = Copies(i)};
    for (size_t j = 0; j < items_.size(); ++j) {
      place.is_shared = place.is_shared ||
                        (j != i && placement.begins[i] < placement.begins[j] + items_[j].bytes &&
                         placement.begins[j] < placement.begins[i] + items_[i].bytes);
    }
    return place;
  }

  // The bytes that `changed` items need.
  int64_t Peak(const std::vector<Item>& changed) const {
    return PlanPlaces(changed, available_).peak;
  }

  absl::Status DoesNotFit(const Placement& placement) const {
    // The items that are live where most bytes are needed.
    std::vector<size_t> live;
    int64_t most = -1;
    for (const Item& at : items_) {
      std::vector<size_t> now;
      int64_t bytes = 0;
      for (size_t i = 0; i < items_.size(); ++i) {
        if (items_[i].first > at.first || items_[i].last < at.first) continue;
        now.push_back(i);
        bytes += items_[i].bytes;
      }
      if (bytes > most) {
        most = bytes;
        live = now;
      }
    }
    std::sort(live.begin(), live.end(), [&](size_t a, size_t b) {
      return std::pair(items_[b].bytes, a) < std::pair(items_[a].bytes, b);
    });
    std::string list;
    for (size_t i : live) {
      StrAppend(&list, list.empty() ? "" : ", ", lives_[i]->buffer->name, " ", items_[i].bytes);
    }
    return absl::ResourceExhaustedError(
        StrCat("storage: ", scope_, " needs ", placement.peak, " bytes and has ", available_,
               "; live there: ", list, " bytes", AboutCopies(), ToShrink(live[0])));
  }

  std::string AboutCopies() const {
    std::vector<Item> single;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (Copies(i) == 1 || lives_[i]->buffer->name.ends_with(".0")) single.push_back(items_[i]);
    }
    if (single.size() == items_.size()) return "";
    const int64_t peak = Peak(single);
    return peak <= available_
               ? StrCat("; without double buffering it would fit, in ", peak)
               : StrCat("; double buffering takes part of it, without it would be ", peak);
  }

  // How far the item and its copies must shrink.
  std::string ToShrink(size_t largest) const {
    const Lifetime& life = *lives_[largest];
    const auto peak = [&](int64_t bytes) {
      std::vector<Item> changed = items_;
      for (size_t i = 0; i < changed.size(); ++i) {
        if (i == largest || AreCopies(life, *lives_[i])) changed[i].bytes = bytes;
      }
      return Peak(changed);
    };
    if (peak(0) > available_) {
      return StrCat("; even without ", life.buffer->name, " it would be ", peak(0),
                    ": use smaller tiles");
    }
    int64_t fits = 0;
    int64_t fails = life.bytes;
    while (fails - fits > 1) {
      const int64_t middle = fits + (fails - fits) / 2;
      (peak(middle) <= available_ ? fits : fails) = middle;
    }
    return StrCat("; it would fit if ", life.buffer->name,
                  Copies(largest) == 1   ? ""
                  : Copies(largest) == 2 ? " and its copy"
                                         : " and its copies",
                  " had ", life.bytes - fits, " bytes less: use smaller tiles");
  }

  const std::string scope_;
  const int64_t available_;
  std::vector<const Lifetime*> lives_;
  std::vector<Item> items_;
};

Stmt WithAddresses(Stmt s, const AddressMap& addresses) {
  std::vector<Stmt> children;
  for (Stmt child : s.children()) children.push_back(WithAddresses(child, addresses));
  ir::Context& c = s.context();
  const Stmt result = c.Rebuild(s, s.operands(), children);
  if (!s.Is(StmtKind::kAllocate)) return result;
  auto it = addresses.find(s.buffer());
  return it == addresses.end() ? result : c.Pragma(pragma::kAddress, {c.I64(it->second)}, result);
}

}  // namespace

absl::StatusOr<bool> Storage(ir::Function& function, const Target& target,
                             std::vector<StoragePlace>* places) {
  Lifetimes lifetimes;
  RETURN_IF_ERROR(lifetimes.Walk(function.body));
  std::map<std::string, Memory> memories;
  for (const Lifetime& life : lifetimes.found()) {
    const std::string& scope = life.buffer->scope;
    memories.try_emplace(scope, scope, target.MemoryBytes(scope)).first->second.Add(life);
  }
  AddressMap addresses;
  for (const auto& [scope, memory] : memories) RETURN_IF_ERROR(memory.Place(addresses, places));
  const Stmt body = WithAddresses(function.body, addresses);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

std::vector<std::string> StorageReport(absl::Span<const StoragePlace> places,
                                       const Target& target) {
  std::map<std::string, std::vector<StoragePlace>> memories;
  for (const StoragePlace& place : places) memories[place.scope].push_back(place);
  std::vector<std::string> lines;
  for (auto& [scope, of_memory] : memories) {
    std::sort(of_memory.begin(), of_memory.end(), [](const auto& a, const auto& b) {
      return std::tie(a.begin, a.first, a.buffer) < std::tie(b.begin, b.first, b.buffer);
    });
    int64_t peak = 0;
    bool is_shared = false;
    for (const StoragePlace& place : of_memory) {
      peak = std::max(peak, place.begin + place.bytes);
      is_shared = is_shared || place.is_shared;
    }
    lines.push_back(StrCat(scope, ": peak ", peak, " of ", target.MemoryBytes(scope), " bytes",
                           is_shared ? ", some used more than once" : ""));
    for (const StoragePlace& place : of_memory) {
      const std::string life = place.first < 0          ? "never used"
                               : place.from == place.to ? place.from
                                                        : StrCat(place.from, " .. ", place.to);
      lines.push_back(StrCat(
          "  ", place.begin, " .. ", place.begin + place.bytes, "  ", place.buffer,
          place.copies > 1 ? StrCat(" (ping-pong, ", place.copies, " copies)") : "", "  ", life));
    }
  }
  return lines;
}

AddressMap CollectAddresses(Stmt body) {
  AddressMap addresses;
  ForEachStmt(body, [&](Stmt s) {
    if (s.Is(StmtKind::kPragma) && s.name() == pragma::kAddress &&
        s.body().Is(StmtKind::kAllocate)) {
      addresses[s.body().buffer()] = s.operands()[0].int_value();
    }
    return true;
  });
  return addresses;
}

namespace {

absl::StatusOr<bool> RunStorage(ir::Function& function, const PassEnvironment& environment,
                                const OptionValues&) {
  if (environment.target.machine == nullptr) {
    return InvalidInput("storage: target '", environment.target.name, "' has no machine");
  }
  std::vector<StoragePlace> places;
  ASSIGN_OR_RETURN(bool changed,
                   Storage(function, environment.target, environment.stats ? &places : nullptr));
  if (environment.stats != nullptr) {
    for (std::string& line : StorageReport(places, environment.target)) {
      environment.stats->push_back(std::move(line));
    }
  }
  return changed;
}

}  // namespace

PassInfo StoragePass() {
  return {.name = "storage",
          .doc = "gives allocations on chip their addresses",
          .second_run_changes = "an allocation that has an address already is an error",
          .run = RunStorage};
}

}  // namespace polynao
