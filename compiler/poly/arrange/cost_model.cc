#include "compiler/poly/arrange/cost_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/type.h"

namespace polynao::poly {

namespace {

constexpr double kReverse = 0.5;  // for turning a vector round
constexpr double kLane = 1.5;  // for one element of a vector that is put together from single loads
// For an access to another page than the last one: its address, and its line; one that is stored to comes and goes.
constexpr double kPage = 5, kWrittenPage = 10;
constexpr double kRow = 24;  // for the start and the remainder of an innermost loop
// An innermost loop of so few iterations is written out, and starts in no time.
constexpr double kWrittenOut = 16, kShortRow = 2;
constexpr double kTile = 40;     // for a tile's bounds
constexpr double kLongRow = 64;  // iterations of an innermost loop
constexpr double kLineBytes = 64;
// Of the cache; the rest is for what is not counted.
constexpr double kUsable = 0.5;
constexpr int64_t kSizes[] = {1, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, kWhole};

std::optional<int64_t> BytesAlong(const LinearAccess& a, int v) {
  const std::optional<int64_t> elements = a.ElementsAlong(v);
  return elements ? std::optional(*elements * ir::ByteSize(a.buffer->type)) : std::nullopt;
}

// Without a register tile, `v` innermost. `loaded`: elements that the iteration has in registers.
double PlainCycles(const StatementModel& s, int v, Carried carried, const CpuMachine& machine,
                   absl::flat_hash_set<int>& loaded) {
  const auto iterations = static_cast<double>(s.extents[static_cast<size_t>(v)]);
  const double lanes = carried == Carried::kOrder ? 1 : std::min(Lanes(s, machine), iterations);
  double memory = 0;
  absl::flat_hash_set<int> pages;  // groups whose pages are counted
  for (const LinearAccess& a : s.accesses) {
    const Stride stride = a.StrideAlong(v);
    if (stride == Stride::kNone) continue;
    const bool is_loaded = a.is_linear && !loaded.insert(a.element).second;
    for (const bool is_write : {false, true}) {
      if (is_write ? !a.is_write : !a.is_read || is_loaded) continue;
      const double one = is_write ? machine.rates.store : machine.rates.load;
      if (stride == Stride::kOne) {
        memory += one / lanes;
      } else if (stride == Stride::kMinusOne) {
        memory += (one + kReverse) / lanes;
      } else {
        // The next access of the group is to the same lines, or to those of the next iteration; and so is the same one
        // of the next iteration, if it is not far.
        const std::optional<int64_t> bytes = BytesAlong(a, v);
        const bool is_near = bytes && std::abs(*bytes) < kLineBytes;
        const bool is_counted = a.is_linear && !pages.insert(a.group).second;
        memory += is_counted ? one : is_near ? kLane : is_write ? kWrittenPage : kPage;
      }
    }
  }
  // Of a long row.
  std::vector<double> row(s.extents.size(), 1);
  row[static_cast<size_t>(v)] = kLongRow;
  const double arithmetic = s.OperationCycles(row) / kLongRow * machine.rates.operation / lanes;
  // An iteration waits for the one before, but the next row does not wait for one that is written out.
  return carried == Carried::kOrder && iterations > kWrittenOut
             ? std::max({memory, arithmetic, s.chain_cycles, machine.rates.latency})
             : std::max(memory, arithmetic) + 0.25 * std::min(memory, arithmetic);
}

// Cycles of an instance in a register tile, or nothing if it does not fit into the registers.
struct JamCost {
  double cycles = 0, far_cycles = 0, serial_cycles = 0;

  // Wide tiles leave less room in the nearest cache for long loops over the serial member.
  double Score() const { return cycles + 0.25 * far_cycles + serial_cycles / kLongRow; }
};
std::optional<JamCost> CostOfJam(const StatementModel& s, const std::vector<int64_t>& vectors,
                                 int v, int serial, const CpuMachine& machine) {
  const double lanes = Lanes(s, machine);
  const CoreRates& rates = machine.rates;
  double loads = 0, far = 0, held = 0, count = 1, most_loaded = 0;
  for (const int64_t n : vectors) count *= static_cast<double>(n);
  for (const LinearAccess& a : s.accesses) {
    double different = 1;
    for (size_t m = 0; m < vectors.size(); ++m) {
      if (a.StrideAlong(static_cast<int>(m)) != Stride::kNone)
        different *= static_cast<double>(vectors[m]);
    }
    if (a.StrideAlong(serial) == Stride::kNone) {
      held += different;
      continue;
    }
    const Stride stride = a.StrideAlong(v);
    const bool is_vector = stride == Stride::kOne || stride == Stride::kNone;
    // Lanes of a vector whose lines drive each other out of the cache come from the next one.
    const std::optional<int64_t> bytes = BytesAlong(a, v);
    const bool collide =
        !is_vector && bytes && machine.Collide(*bytes, static_cast<int64_t>(lanes));
    loads += different * (is_vector ? rates.load : (collide ? kPage : kLane) * lanes);
    if (is_vector && stride != Stride::kNone)
      far += different * std::max(machine.vector_bytes / rates.next_bytes - rates.load, 0.0);
    // Loaded when it is needed, one for each vector of v; what is used once is an operand in memory.
    most_loaded =
        std::max(most_loaded, stride == Stride::kNone || different == count ? 1.0 : different);
  }
  if (held + most_loaded + 1 > machine.vector_registers) return std::nullopt;
  const double arithmetic = s.OperationCycles({vectors.begin(), vectors.end()}) * rates.operation;
  const auto total = [&](double memory) {
    return std::max({memory, arithmetic, rates.latency}) + 0.25 * std::min(memory, arithmetic);
  };
  return JamCost{.cycles = total(loads) / (count * lanes),
                 .far_cycles = (total(loads + far) - total(loads)) / (count * lanes),
                 .serial_cycles = (held * (rates.load + rates.store) + kRow) / (count * lanes)};
}

void PlanJam(const StatementModel& s, const std::vector<int>& members, int v,
             const CpuMachine& machine, PointPlan& best) {
  const auto lanes = static_cast<int64_t>(Lanes(s, machine));
  double best_score = best.cycles;
  const auto extent = [&](int m) { return s.extents[static_cast<size_t>(m)]; };
  for (const int serial : members) {
    if (serial == v || !s.Moves(serial) || !WritesStay(s, serial)) continue;
    for (const int other : members) {
      // other == v: nothing but vectors of v.
      if (other == serial || !s.Moves(other)) continue;
      for (int64_t n = 1; n <= 8; n *= 2) {
        if (other == v ? n > 1 : (n == 1 || extent(other) < 2 * n)) continue;
        for (int64_t width = 1; width <= 8; width *= 2) {
          if (extent(v) < 2 * width * lanes) break;
          std::vector<int64_t> vectors(s.extents.size(), 1);
          vectors[static_cast<size_t>(other)] = n;
          vectors[static_cast<size_t>(v)] = width;
          const std::optional<JamCost> cost = CostOfJam(s, vectors, v, serial, machine);
          if (!cost || cost->Score() > 0.97 * best_score) continue;
          best_score = cost->Score();
          best.cycles = cost->cycles;
          best.far_cycles = cost->far_cycles;
          best.serial_cycles = cost->serial_cycles;
          best.row_cycles = 0;
          best.carried = Carried::kNothing;
          best.serial = serial;
          best.jam = vectors;
          best.jam[static_cast<size_t>(v)] *= lanes;
          best.order.clear();
          for (const int m : members) {
            if (m != v && m != serial && m != other) best.order.push_back(m);
          }
          if (other != v) best.order.push_back(other);
          best.order.push_back(serial);
          best.order.push_back(v);
        }
      }
    }
  }
}

// Elements of a group that a box of iterations touches, in bytes of whole cache lines, and how many of these
// the box that is `sizes[last]` further along `last` touches as well.
struct Touched {
  double bytes = 0, shared = 0;
};

Touched BytesOf(const LinearAccess& a, const std::vector<int64_t>& sizes, int last) {
  Touched t{.bytes = static_cast<double>(ir::ByteSize(a.buffer->type)), .shared = 0};
  double shared = t.bytes;
  if (!a.is_linear) {
    // Somewhere: a line for each iteration.
    double count = 1;
    for (const int64_t size : sizes) count *= static_cast<double>(size);
    return {.bytes = count * kLineBytes, .shared = 0};
  }
  for (size_t d = 0; d < a.steps.size(); ++d) {
    double extent = 1;
    for (size_t m = 0; m < sizes.size(); ++m) {
      extent += static_cast<double>(std::llabs(a.steps[d][m])) * static_cast<double>(sizes[m] - 1);
    }
    const double shift =
        last < 0 ? 0
                 : static_cast<double>(std::llabs(a.steps[d][static_cast<size_t>(last)])) *
                       static_cast<double>(sizes[static_cast<size_t>(last)]);
    const double bytes = ir::ByteSize(a.buffer->type);
    // A run of elements begins somewhere in a line.
    const double lines = d + 1 == a.steps.size() ? (kLineBytes - bytes) / bytes : 0;
    t.bytes *= extent + lines;
    shared *= std::max(0.0, extent - shift);
  }
  t.shared = shared;
  return t;
}

struct Volume {
  double footprint = 0, moved = 0;
};

// Of buffers in `warm`, nothing is moved.
Volume VolumeOf(const LoopModel& model, const std::vector<int64_t>& sizes, int last,
                const Buffers& warm = {}) {
  Volume v;
  std::vector<bool> seen(static_cast<size_t>(model.groups), false);
  for (const StatementModel& s : model.statements) {
    std::vector<int64_t> clipped = sizes;
    for (size_t m = 0; m < clipped.size(); ++m) clipped[m] = std::min(clipped[m], s.extents[m]);
    for (const LinearAccess& a : s.accesses) {
      if (seen[static_cast<size_t>(a.group)]) continue;
      seen[static_cast<size_t>(a.group)] = true;
      const bool moves = last >= 0 && s.Moves(last);
      const Touched t = BytesOf(a, clipped, moves ? last : -1);
      v.footprint += t.bytes;
      if (warm.contains(a.buffer)) continue;
      // What is stored is brought in before and out afterwards.
      const double times = a.is_write ? 2 : 1;
      v.moved += times * std::max(0.0, t.bytes - (last >= 0 ? t.shared : 0));
    }
  }
  return v;
}

// Bytes that loops without tiles move, in the order `order`.
double UntiledBytes(const LoopModel& model, const std::vector<int>& order, double capacity) {
  std::vector<int64_t> sizes;
  for (int m = 0; m < model.all; ++m) sizes.push_back(model.Extent(m));
  double times = 1;
  Volume volume = VolumeOf(model, sizes, -1);
  // Whatever inner loops fit into the cache are a tile; outer ones step from one to the next.
  for (const int m : order) {
    if (volume.footprint <= capacity) break;
    const auto at = static_cast<size_t>(m);
    if (sizes[at] == 1) continue;
    times *= static_cast<double>(sizes[at]);
    sizes[at] = 1;
    volume = VolumeOf(model, sizes, m);
  }
  return volume.moved * times;
}

// The same, where each statement's loops run after those of the one before.
double UntiledBytesApart(const LoopModel& model, const std::vector<int>& order, double capacity) {
  double bytes = 0;
  for (const StatementModel& s : model.statements) {
    LoopModel one = model;
    one.statements = {s};
    bytes += UntiledBytes(one, order, capacity);
  }
  return bytes;
}

// How much faster a * b tiles run, diagonal after diagonal, on `cores`: short diagonals leave some of them idle.
double SpeedUpOfDiagonals(double a, double b, int cores) {
  if (a + b > 512) return cores;
  double steps = 0;
  for (double d = 0; d < a + b - 1; ++d)
    steps += std::ceil(std::min({d + 1, a, b, a + b - 1 - d}) / cores);
  return a * b / steps;
}

}  // namespace

double Lanes(const StatementModel& s, const CpuMachine& machine) {
  int bytes = 1;
  for (const LinearAccess& a : s.accesses) bytes = std::max(bytes, ir::ByteSize(a.buffer->type));
  return std::max(1.0, static_cast<double>(machine.vector_bytes) / bytes);
}

bool WritesStay(const StatementModel& s, int serial) {
  for (const LinearAccess& a : s.accesses) {
    if (a.is_write && a.StrideAlong(serial) != Stride::kNone) return false;
  }
  return true;
}

PointPlan PlanPoints(const StatementModel& s, const std::vector<int>& members,
                     const std::vector<Carried>& carried, const CpuMachine& machine) {
  PointPlan best;
  best.cycles = std::numeric_limits<double>::infinity();
  for (const int v : members) {
    if (!s.Moves(v)) continue;
    const Carried c = carried[static_cast<size_t>(v)];
    absl::flat_hash_set<int> loaded;
    const auto iterations = static_cast<double>(s.extents[static_cast<size_t>(v)]);
    const double row_cycles = iterations > kWrittenOut ? kRow : kShortRow;
    const double cycles = PlainCycles(s, v, c, machine, loaded) + row_cycles / iterations;
    if (cycles <= best.cycles) {
      best = {.order = {},
              .jam = {},
              .serial = -1,
              .carried = c,
              .cycles = cycles,
              .row_cycles = row_cycles,
              .far_cycles = 0,
              .serial_cycles = 0};
      for (const int m : members) {
        if (m != v) best.order.push_back(m);
      }
      best.order.push_back(v);
    }
  }
  if (best.order.empty()) {
    best.order = members;
    best.cycles =
        s.OperationCycles(std::vector<double>(s.extents.size(), 1)) + machine.rates.latency;
    return best;
  }
  for (const int v : members) {
    if (s.Moves(v) && carried[static_cast<size_t>(v)] == Carried::kNothing)
      PlanJam(s, members, v, machine, best);
  }
  return best;
}

PointPlan PlanTogether(const std::vector<const StatementModel*>& statements,
                       const std::vector<int>& members, const std::vector<Carried>& carried,
                       const CpuMachine& machine) {
  PointPlan best;
  best.order = members;
  best.cycles = std::numeric_limits<double>::infinity();
  for (const int v : members) {
    double extent = 1, cycles = 0;
    const Carried c = carried[static_cast<size_t>(v)];
    absl::flat_hash_set<int> loaded;
    for (const StatementModel* s : statements) {
      extent = std::max(extent, static_cast<double>(s->extents[static_cast<size_t>(v)]));
      cycles += PlainCycles(*s, v, c, machine, loaded);
    }
    if (extent == 1) continue;
    cycles += kRow / extent;
    if (cycles > best.cycles) continue;
    best.order.clear();
    for (const int m : members) {
      if (m != v) best.order.push_back(m);
    }
    best.order.push_back(v);
    best.carried = c;
    best.cycles = cycles;
    best.row_cycles = kRow;
  }
  if (std::isinf(best.cycles)) {
    best.cycles = machine.rates.latency;
    for (const StatementModel* s : statements)
      best.cycles += s->OperationCycles(std::vector<double>(s->extents.size(), 1));
  }
  return best;
}

std::optional<double> BytesIfItFits(const LoopModel& model, const std::vector<int>& around,
                                    const Buffers& warm, const CpuMachine& machine) {
  const double capacity = kUsable * static_cast<double>(machine.cache_bytes);
  std::vector<int64_t> sizes(static_cast<size_t>(model.all), kWhole);
  for (const int m : around) sizes[static_cast<size_t>(m)] = 1;
  if (VolumeOf(model, sizes, -1).footprint > capacity) return std::nullopt;
  double runs = 1;
  for (size_t i = around.size(); i-- > 0;) {
    const auto m = static_cast<size_t>(around[i]);
    std::vector<int64_t> more = sizes;
    more[m] = kWhole;
    if (VolumeOf(model, more, -1).footprint > capacity)
      return VolumeOf(model, sizes, around[i], warm).moved / runs;
    sizes = more;
    runs *= static_cast<double>(model.Extent(around[i]));
  }
  return VolumeOf(model, sizes, -1, warm).moved / runs;
}

namespace {

// Tries sizes of tiles, and keeps the cheapest.
class TileSearch {
 public:
  TileSearch(const LoopModel& model, const TileQuery& query, const CpuMachine& machine)
      : model_(model),
        query_(query),
        machine_(machine),
        capacity_(kUsable * static_cast<double>(machine.cache_bytes)) {
    for (int m = 0; m < model.all; ++m) extents_.push_back(model.Extent(m));
    for (const StatementModel& s : model.statements)
      instances_ = std::max(instances_, s.Instances());
    for (const int m : query.members) {
      if (m != query.innermost) untiled_order_.push_back(m);
    }
    if (query.innermost >= 0) untiled_order_.push_back(query.innermost);
  }

  TilePlan Best() {
    std::vector<std::vector<int64_t>> sizes;  // of each member
    for (size_t i = 0; i < query_.members.size(); ++i) sizes.push_back(AllowedSizes(i));
    Thin(sizes);
    for (const std::vector<int64_t>& of_member : sizes) {
      if (of_member.empty()) return best_;
    }
    std::vector<size_t> choice(sizes.size(), 0);
    while (true) {
      SetSizes(sizes, choice);
      TrySizes();
      size_t i = 0;
      while (i < choice.size() && ++choice[i] == sizes[i].size()) choice[i++] = 0;
      if (i == choice.size()) return best_;
    }
  }

 private:
  struct Parallel {
    double speed_up = 1, starts = 0;
  };

  double TilesAlong(size_t m, int64_t size) const {
    return std::ceil(static_cast<double>(extents_[m]) / static_cast<double>(size));
  }
  double TilesAlong(size_t m) const { return TilesAlong(m, sizes_[m]); }

  // The sizes that member number `i` may have.
  std::vector<int64_t> AllowedSizes(size_t i) const {
    const int member = query_.members[i];
    const auto m = static_cast<size_t>(member);
    const bool must_cut = query_.parallel == member || (query_.is_wave && i < 2);
    std::vector<int64_t> allowed;
    for (const int64_t size : kSizes) {
      if (size == kWhole) {
        if (!must_cut) allowed.push_back(size);
        continue;
      }
      // A size that is the whole loop says so; cores need several tiles each, so that none waits long.
      if (size >= extents_[m] || size % query_.multiples[m] != 0) continue;
      if (size == 1 && !(must_cut && !query_.is_wave && query_.may_be_one[m])) continue;
      if (must_cut && TilesAlong(m, size) < 4 * machine_.cores) continue;
      allowed.push_back(size);
    }
    return allowed;
  }

  // Of eight long loops there are 200 million tilings: the longest lists lose every other size until few are left. All
  // of four loops are tried; for each loop more a tiling takes longer, and there are more orders to find tilings for.
  static void Thin(std::vector<std::vector<int64_t>>& sizes) {
    const double most_tilings =
        std::ldexp(1 << 14, -std::max(static_cast<int>(sizes.size()) - 4, 0));
    const auto count = [&] {
      double product = 1;
      for (const std::vector<int64_t>& one : sizes) product *= static_cast<double>(one.size());
      return product;
    };
    while (count() > most_tilings) {
      std::vector<int64_t>& longest =
          *std::max_element(sizes.begin(), sizes.end(),
                            [](const auto& a, const auto& b) { return a.size() < b.size(); });
      if (longest.size() <= 2) return;
      std::vector<int64_t> kept;
      for (size_t k = longest.size() % 2 == 0 ? 1 : 0; k < longest.size(); k += 2)
        kept.push_back(longest[k]);
      longest = kept;
    }
  }

  void SetSizes(const std::vector<std::vector<int64_t>>& sizes, const std::vector<size_t>& choice) {
    sizes_ = extents_;
    tiles_ = 1;
    for (size_t i = 0; i < choice.size(); ++i) {
      const int64_t size = sizes[i][choice[i]];
      if (size == kWhole) continue;
      const auto m = static_cast<size_t>(query_.members[i]);
      sizes_[m] = size;
      tiles_ *= TilesAlong(m);
    }
  }

  void TrySizes() {
    for (const int last : query_.members) {
      const auto l = static_cast<size_t>(last);
      if (tiles_ > 1 && sizes_[l] >= extents_[l]) continue;
      TryLast(last);
      if (tiles_ == 1) return;
    }
  }

  // Bytes from memory if consecutive tiles differ in member `last`.
  double Bytes(int last) const {
    if (tiles_ == 1) {
      return query_.together ? UntiledBytes(model_, untiled_order_, capacity_)
                             : UntiledBytesApart(model_, untiled_order_, capacity_);
    }
    const Volume volume = VolumeOf(model_, sizes_, last);
    // What does not fit is brought in again for each use: counted as if no element stayed.
    return volume.moved * tiles_ * std::max(volume.footprint / capacity_, 1.0);
  }

  // Cycles beside those of points and of memory: starts of rows, registers filled again, what is not near, tiles.
  double OtherCycles() const {
    double row = 0;
    for (const TileQuery::Rows& rows : query_.rows) {
      row += rows.cycles * rows.instances /
             static_cast<double>(sizes_[static_cast<size_t>(rows.member)]);
    }
    double refill = 0, far = 0;
    if (query_.serial >= 0) {
      const int64_t size = sizes_[static_cast<size_t>(query_.serial)];
      refill = query_.serial_cycles * instances_ / static_cast<double>(size);
      std::vector<int64_t> near = query_.jam;
      near[static_cast<size_t>(query_.serial)] = size;
      if (VolumeOf(model_, near, -1).footprint > static_cast<double>(machine_.near_bytes))
        far = query_.far_cycles * instances_;
    }
    return row + refill + far + (tiles_ > 1 ? tiles_ * kTile : 0);
  }

  Parallel ParallelTiles() const {
    if (query_.is_wave) {
      const double a = TilesAlong(static_cast<size_t>(query_.members[0]));
      const double b = TilesAlong(static_cast<size_t>(query_.members[1]));
      return {SpeedUpOfDiagonals(a, b, machine_.cores), a + b - 1};
    }
    if (query_.parallel < 0 && !query_.is_inside_parallel) return {};
    return {static_cast<double>(machine_.cores), query_.parallel >= 0 ? 1.0 : 0.0};
  }

  void TryLast(int last) {
    const double bytes = Bytes(last);
    const double other = OtherCycles();
    const Parallel parallel = ParallelTiles();
    const double cost =
        (query_.point_cycles + other) / parallel.speed_up +
        bytes * machine_.cycles_per_byte / std::min(parallel.speed_up, machine_.memory_scaling) +
        parallel.starts * machine_.parallel_cycles;
    if (cost >= best_cost_) return;
    best_cost_ = cost;
    best_.sizes.assign(extents_.size(), kWhole);
    for (const int m : query_.members) {
      const auto at = static_cast<size_t>(m);
      if (sizes_[at] < extents_[at]) best_.sizes[at] = sizes_[at];
    }
    best_.last = tiles_ > 1 ? last : -1;
    best_.bytes = bytes;
    best_.tiles = tiles_;
    best_.other_cycles = other;
    best_.speed_up = parallel.speed_up;
    best_.starts = parallel.starts;
  }

  const LoopModel& model_;
  const TileQuery& query_;
  const CpuMachine& machine_;
  const double capacity_;
  std::vector<int64_t> extents_;
  double instances_ = 0;
  std::vector<int> untiled_order_;
  std::vector<int64_t> sizes_;
  double tiles_ = 1;
  TilePlan best_;
  double best_cost_ = std::numeric_limits<double>::infinity();
};

}  // namespace

TilePlan PlanTiles(const LoopModel& model, const TileQuery& query, const CpuMachine& machine) {
  return TileSearch(model, query, machine).Best();
}

}  // namespace polynao::poly
