#include "compiler/poly/gpu/map.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/schedule_node.h>
#include <isl/set.h>
#include <isl/union_map.h>
#include <isl/val.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/text.h"
#include "compiler/ir/type.h"
#include "compiler/poly/isl/tree.h"
#include "compiler/poly/order/band_info.h"

namespace polynao::poly {

namespace {

using Node = isl::schedule_node;

// Bytes of private buffers that a thread may have copies of.
constexpr int64_t kMaxCopyBytes = 1024;
// Registers of a thread for its own elements.
constexpr size_t kMaxOwn = 8;

bool IsSequence(const Node& node) {
  return isl_schedule_node_get_type(node.get()) == isl_schedule_node_sequence ||
         isl_schedule_node_get_type(node.get()) == isl_schedule_node_set;
}

isl::multi_union_pw_aff ScheduleOf(const Node& node) {
  return node.as<isl::schedule_node_band>().partial_schedule();
}

isl_val* Val(const isl::union_pw_aff& f, int64_t value) {
  return isl_val_int_from_si(f.ctx().release(), value);
}

// floor(f / size), and f mod size.
isl::union_pw_aff BlockOf(const isl::union_pw_aff& f, int64_t size) {
  return isl::manage(
      isl_union_pw_aff_floor(isl_union_pw_aff_scale_down_val(f.copy(), Val(f, size))));
}
isl::union_pw_aff PointOf(const isl::union_pw_aff& f, int64_t size) {
  return isl::manage(isl_union_pw_aff_mod_val(f.copy(), Val(f, size)));
}

// Each iteration of the band's loops as a whole: isl must not spread it over several loops.
Node Whole(Node band) {
  const int n = static_cast<int>(band.as<isl::schedule_node_band>().n_member());
  for (int i = 0; i < n; ++i) {
    band = band.as<isl::schedule_node_band>().member_set_ast_loop_atomic(i);
  }
  return band;
}

Node InsertBand(const Node& node, const isl::multi_union_pw_aff& schedule) {
  const Node band = node.insert_partial_schedule(schedule);
  return isl::manage(isl_schedule_node_band_set_permutable(band.copy(), 1));
}

class Mapper {
 public:
  Mapper(const Scop& scop, const Dependences& dependences, const GpuOptions& options,
         const Given& given)
      : scop_(scop), dependences_(dependences), options_(options), given_(given) {}

  GpuMapping Run(const isl::schedule& schedule) {
    isl_options_set_tile_scale_tile_loops(scop_.isl->get(), 0);
    isl_options_set_tile_shift_point_loops(scop_.isl->get(), 0);
    result_.schedule = Visit(schedule.root(), 0).schedule();
    return std::move(result_);
  }

 private:
  // Members of a band that become blocks and threads, outermost axis first; those that stay.
  struct Choice {
    std::vector<int> mapped, serial;
    std::vector<ir::Buffer> copies;
  };
  // The kernel that is being made.
  struct KernelState {
    Place band_place;
    isl::multi_union_pw_aff members;  // of its band
    int x = 0;                        // the member along threadIdx.x
    ThreadShape shape;
    isl::multi_union_pw_aff points;  // coordinates of threads
    std::vector<ir::Buffer> copies;
    std::set<std::string> stored;  // arrays
    int64_t shared_left = 0;
    bool has_serial_tiles = false;
    std::vector<std::string> shared_texts;
  };

  // Each function that takes a node returns the one at the same place in the new tree.
  Node Visit(Node node, int host_loops) {
    if (!IsBand(node)) return VisitChildren(node, host_loops);
    const auto band = node.as<isl::schedule_node_band>();
    if (band.n_member() > 1 && !band.permutable()) node = band.split(1);
    return VisitBand(node, host_loops);
  }

  Node VisitChildren(Node node, int host_loops) {
    for (unsigned i = 0; i < node.n_children(); ++i) {
      node = Visit(node.child(static_cast<int>(i)), host_loops).parent();
    }
    return node;
  }

  Node VisitBand(Node node, int host_loops) {
    const Place place = PlaceOf(node);
    const isl::multi_union_pw_aff members = ScheduleOf(node);
    const int n = static_cast<int>(members.size());
    if (const std::optional<Choice> choice = Choose(place, members)) {
      return MapKernel(node, place, members, *choice, host_loops);
    }
    if (n > 1 && options_.wavefront) {
      // Every dependence goes forwards, or nowhere, along each member, and so does along the sum, and nothing else is
      // left that it could be carried by.
      isl::union_pw_aff sum = members.at(0);
      for (int i = 1; i < n; ++i) sum = sum.add(members.at(i));
      std::vector<int> others;
      for (int i = 1; i < n; ++i) others.push_back(i);
      const isl::multi_union_pw_aff rest = Members(members, others);
      if (Choose(Inside(place, sum), rest)) {
        ++result_.wavefronts;
        result_.lines.push_back(StrCat(n, " loops, diagonals: their sum is a loop of the host"));
        node = isl::manage(isl_schedule_node_delete(node.copy()));
        node = InsertBand(node, rest);
        node = InsertBand(node, ToMulti(sum));
        return Visit(node.child(0), host_loops + 1).parent();
      }
    }
    return VisitChildren(node, host_loops + n);
  }

  // ---- which members

  std::optional<Choice> Choose(const Place& place, const isl::multi_union_pw_aff& members) {
    const int n = static_cast<int>(members.size());
    std::vector<int> parallel, with_copies;
    std::vector<std::vector<ir::Buffer>> copies;
    for (int i = 0; i < n; ++i) {
      const auto needed = CopiesForParallel(dependences_, place, members.at(i));
      copies.push_back(needed.value_or(std::vector<ir::Buffer>()));
      if (!needed) continue;
      (needed->empty() ? parallel : with_copies).push_back(i);
    }
    Choice choice;
    // Members that need copies all together, or none of them.
    std::vector<int> all = parallel;
    all.insert(all.end(), with_copies.begin(), with_copies.end());
    std::sort(all.begin(), all.end());
    for (int i : with_copies) {
      for (ir::Buffer buffer : copies[static_cast<size_t>(i)]) {
        if (std::find(choice.copies.begin(), choice.copies.end(), buffer) == choice.copies.end()) {
          choice.copies.push_back(buffer);
        }
      }
    }
    if (!with_copies.empty() && CopiesServe(choice.copies, place, Members(members, all))) {
      parallel = all;
    } else {
      choice.copies.clear();
    }
    if (parallel.empty()) return std::nullopt;
    int x = parallel[0];
    double best = 0;
    for (int i : parallel) {
      const double cost = InnermostCost(scop_, place, members, i);
      if (i == parallel[0] || cost <= best) {
        x = i;
        best = cost;
      }
    }
    for (int i : parallel) {
      if (i != x && choice.mapped.size() < 2) choice.mapped.push_back(i);
    }
    choice.mapped.push_back(x);
    for (int i = 0; i < n; ++i) {
      if (std::find(choice.mapped.begin(), choice.mapped.end(), i) == choice.mapped.end()) {
        choice.serial.push_back(i);
      }
    }
    return choice;
  }

  // Whether copies of the buffers in each iteration of all `members` serve: values are stored and read in one.
  bool CopiesServe(const std::vector<ir::Buffer>& buffers, const Place& place,
                   const isl::multi_union_pw_aff& members) {
    int64_t bytes = 0;
    for (ir::Buffer buffer : buffers) {
      int64_t size = ir::ByteSize(buffer->type);
      for (ir::Expr extent : buffer->extents) {
        if (!extent.IsConst()) return false;
        if (__builtin_mul_overflow(size, std::max<int64_t>(0, extent.int_value()), &size)) {
          return false;
        }
      }
      bytes += size;
      if (bytes > kMaxCopyBytes) return false;
      for (const PrivateOrder& p : dependences_.private_order) {
        if (p.buffer != buffer) continue;
        const isl::union_map flow = Active(p.flow, place);
        if (!flow.is_empty() && !flow.is_subset(flow.eq_at(members))) return false;
      }
    }
    return true;
  }

  // ---- a kernel

  Node MapKernel(Node node, const Place& place, const isl::multi_union_pw_aff& members,
                 const Choice& choice, int host_loops) {
    ++result_.kernels;
    kernel_ = std::make_unique<KernelState>();
    kernel_->band_place = place;
    kernel_->members = members;
    kernel_->x = choice.mapped.back();
    kernel_->copies = choice.copies;
    kernel_->shared_left = options_.shared_bytes;
    const size_t n = choice.mapped.size();
    const std::vector<int64_t>& block = options_.block[n - 1];
    std::optional<isl::multi_union_pw_aff> tiles;
    for (size_t i = 0; i < n; ++i) {
      const size_t axis = n - 1 - i;
      kernel_->shape.axes.emplace_back(1, "xyz"[axis]);
      kernel_->shape.sizes.push_back(block[axis]);
      const isl::union_pw_aff member = members.at(choice.mapped[i]);
      const isl::multi_union_pw_aff tile = ToMulti(BlockOf(member, block[axis]));
      const isl::multi_union_pw_aff point = ToMulti(PointOf(member, block[axis]));
      tiles = tiles ? tiles->flat_range_product(tile) : tile;
      kernel_->points = i > 0 ? kernel_->points.flat_range_product(point) : point;
    }
    for (const isl::set& domain : SetsOf(place.domain)) {
      for (const Access& access : scop_.Find(TupleName(domain))->accesses) {
        if (access.is_write) kernel_->stored.insert(RangeName(access.map));
      }
    }
    GpuMark blocks{.kind = GpuMark::Kind::kBlocks, .depth = DepthOf(node), .shape = kernel_->shape};
    for (size_t i = 0; i < n; ++i) {
      AddBounds(place, members.at(choice.mapped[i]), kernel_->shape.sizes[i], &blocks);
    }
    node = isl::manage(isl_schedule_node_delete(node.copy()));
    if (!choice.serial.empty()) node = InsertBand(node, Members(members, choice.serial));
    node = Whole(InsertBand(node, *tiles));
    node = Sink(node.child(0));
    std::vector<OwnElement> own;
    if (kernel_->has_serial_tiles && options_.registers) own = Own(PlaceOf(node));
    std::string line =
        StrCat(n, n == 1 ? " loop" : " loops", " parallel: blocks of ",
               absl::StrJoin(kernel_->shape.sizes, " x "), n == 1 ? " threads" : " threads");
    if (!choice.serial.empty()) StrAppend(&line, ", ", choice.serial.size(), " serial");
    if (kernel_->has_serial_tiles) StrAppend(&line, ", in tiles");
    if (!kernel_->shared_texts.empty()) {
      line += ", shared";
      for (const std::string& text : kernel_->shared_texts) StrAppend(&line, " ", text);
      StrAppend(&line, " = ", options_.shared_bytes - kernel_->shared_left, " bytes");
    }
    for (const OwnElement& element : own) StrAppend(&line, ", ", element.array, " in a register");
    for (ir::Buffer buffer : kernel_->copies) {
      StrAppend(&line, ", ", buffer->name, " of each thread");
    }
    if (host_loops > 0) {
      StrAppend(&line, ", in ", host_loops, host_loops == 1 ? " loop" : " loops", " of the host");
    }
    result_.lines.push_back(line);
    if (!own.empty()) {
      node = Insert(node, {.kind = GpuMark::Kind::kOwn, .shape = kernel_->shape, .own = own});
    }
    node = Insert(
        node, {.kind = GpuMark::Kind::kInBlocks, .depth = blocks.depth, .shape = kernel_->shape});
    return Insert(node.parent(), blocks);
  }

  Node Insert(const Node& node, GpuMark mark) {
    const Place place = PlaceOf(node);
    if (place.has_prefix) {
      mark.loops = isl::union_map::from(place.prefix).intersect_domain(place.domain);
    }
    const std::string name = StrCat("gpu", result_.marks.size());
    result_.marks.emplace(name, std::move(mark));
    return node.insert_mark(name);
  }

  // A box around the blocks' numbers for each iteration of the host's loops: tiles of the bounds of members.
  static void AddBounds(const Place& place, const isl::union_pw_aff& member, int64_t size,
                        GpuMark* mark) {
    const isl::union_map numbers =
        isl::union_map::from(ToMulti(member)).intersect_domain(place.domain);
    isl_pw_aff* first = nullptr;
    isl_pw_aff* last = nullptr;
    if (place.has_prefix) {
      const isl::union_map loops =
          isl::union_map::from(place.prefix).intersect_domain(place.domain);
      isl_map* map = loops.reverse().apply_range(numbers).as_map().coalesce().release();
      first = isl_map_dim_min(isl_map_copy(map), 0);
      last = isl_map_dim_max(map, 0);
    } else {
      isl_set* set = numbers.range().as_set().coalesce().release();
      first = isl_set_dim_min(isl_set_copy(set), 0);
      last = isl_set_dim_max(set, 0);
    }
    const auto tile = [&](isl_pw_aff* f) {
      return isl::manage(isl_pw_aff_floor(isl_pw_aff_scale_down_val(f, Val(member, size))));
    };
    mark->first.push_back(tile(first));
    mark->last.push_back(tile(last));
  }

  // Puts the threads below the blocks: inside of the tile loops of a serial band, if such tiles let the block share
  // copies, and else here.
  Node Sink(Node node) {
    if (!kernel_->copies.empty() || !IsWorthTiles(node)) return PlaceThreads(node, Copies(node));
    if (IsBand(node)) {
      kernel_->has_serial_tiles = true;
      node = Whole(Tiled(node)).child(0);
      return PlaceThreads(node, Copies(node)).parent();
    }
    for (unsigned i = 0; i < node.n_children(); ++i) {
      node = Sink(node.child(static_cast<int>(i)).child(0)).parent().parent();
    }
    return node;
  }

  bool IsWorthTiles(const Node& node) {
    if (IsBand(node)) {
      const auto band = node.as<isl::schedule_node_band>();
      if (band.n_member() > 1 && !band.permutable()) return false;
      return !Copies(Tiled(node).child(0)).empty();
    }
    if (!IsSequence(node)) return false;
    for (unsigned i = 0; i < node.n_children(); ++i) {
      if (IsWorthTiles(node.child(static_cast<int>(i)).child(0))) return true;
    }
    return false;
  }

  Node Tiled(const Node& band) const {
    const int n = static_cast<int>(band.as<isl::schedule_node_band>().n_member());
    isl_multi_val* sizes = isl_multi_val_zero(isl_schedule_node_band_get_space(band.get()));
    for (int i = 0; i < n; ++i) {
      sizes = isl_multi_val_set_val(
          sizes, i,
          isl_val_int_from_si(band.ctx().release(),
                              n == 1 ? options_.serial_tile : options_.serial_tiles));
    }
    return band.as<isl::schedule_node_band>().tile(isl::manage(sizes));
  }

  Node PlaceThreads(Node node, const std::vector<SharedCopy>& copies) {
    const int depth = DepthOf(node);
    node = Whole(InsertBand(node, kernel_->points)).child(0);
    node =
        Insert(node, {.kind = GpuMark::Kind::kInThreads, .depth = depth, .shape = kernel_->shape});
    node = Insert(node.parent(), {.kind = GpuMark::Kind::kThreads,
                                  .depth = depth,
                                  .shape = kernel_->shape,
                                  .copies = kernel_->copies});
    if (copies.empty()) return node;
    for (const SharedCopy& copy : copies) {
      kernel_->shared_left -= copy.bytes();
      kernel_->shared_texts.push_back(
          StrCat(copy.group.array, "[", absl::StrJoin(copy.group.box.sizes, " x "), "]"));
    }
    return Insert(node,
                  {.kind = GpuMark::Kind::kShared, .shape = kernel_->shape, .shared = copies});
  }

  // The copies in shared memory that are worth it where threads stand above `node`.
  std::vector<SharedCopy> Copies(const Node& node) {
    std::vector<SharedCopy> copies;
    int64_t left = kernel_->shared_left;
    if (left <= 0) return copies;
    const Place place = PlaceOf(node);
    for (ReferenceGroup& group : ReadGroups(scop_, place)) {
      if (kernel_->stored.contains(group.array) || group.buffer->extents.empty()) continue;
      bool is_coalesced = true;
      for (const Reference& reference : group.references) {
        const Stride stride = StrideOf(*reference.statement, reference.get(), kernel_->band_place,
                                       kernel_->members, kernel_->x);
        is_coalesced &= stride == Stride::kOne || stride == Stride::kNone;
      }
      if (is_coalesced && (!group.is_reused || IsOwn(group, place))) continue;
      SharedCopy copy{.group = group, .extents = group.box.sizes};
      if (!is_coalesced && copy.extents.size() > 1) ++copy.extents.back();
      if (copy.bytes() > left) continue;
      if (!given_.contains(group.buffer) &&
          !FindReadable(scop_, place, kernel_->band_place, dependences_, copy.group)) {
        continue;
      }
      left -= copy.bytes();
      copies.push_back(std::move(copy));
    }
    return copies;
  }

  // Whether each thread reads a single element: its compiler keeps that in a register.
  bool IsOwn(const ReferenceGroup& group, const Place& place) const {
    const isl::multi_union_pw_aff loops = place.prefix.flat_range_product(kernel_->points);
    // Two references at a time, since isl is slow on unions of ten.
    std::vector<isl::union_map> elements;  // { [t0, ..] -> A[a] }
    for (const Reference& reference : group.references) {
      const isl::union_map accesses =
          reference.get().map.to_union_map().intersect_domain(place.domain);
      const isl::union_map times = isl::union_map::from(loops).intersect_domain(accesses.domain());
      elements.push_back(times.reverse().apply_range(accesses));
      if (!elements.back().is_single_valued()) return false;
      for (size_t i = 0; i + 1 < elements.size(); ++i) {
        if (!elements[i].unite(elements.back()).is_single_valued()) return false;
      }
    }
    return true;
  }

  std::vector<OwnElement> Own(const Place& place) const {
    std::vector<OwnElement> result;
    for (OwnElement& own : OwnElements(scop_, place, kernel_->points, dependences_, given_)) {
      if (result.size() < kMaxOwn) result.push_back(std::move(own));
    }
    return result;
  }

  const Scop& scop_;
  const Dependences& dependences_;
  const GpuOptions& options_;
  const Given& given_;
  std::unique_ptr<KernelState> kernel_;
  GpuMapping result_;
};

}  // namespace

int64_t SharedCopy::bytes() const {
  int64_t result = ir::ByteSize(group.buffer->type);
  for (const int64_t extent : extents) {
    if (__builtin_mul_overflow(result, extent, &result)) return INT64_MAX;
  }
  return result;
}

GpuMapping MapToGpu(const Scop& scop, const Dependences& dependences, const isl::schedule& schedule,
                    const GpuOptions& options, const Given& given) {
  return Mapper(scop, dependences, options, given).Run(schedule);
}

}  // namespace polynao::poly
