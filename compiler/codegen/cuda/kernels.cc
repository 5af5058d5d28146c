#include "compiler/codegen/cuda/kernels.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/logic.h"
#include "compiler/codegen/cuda/split.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/text.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;

bool IsAxisLoop(Stmt s, std::string_view axis) {
  return s.Is(StmtKind::kFor) && s.for_kind() == ForKind::kThread && s.name().starts_with(axis) &&
         AxisNumber(s.name()) >= 0;
}

// ---- what a kernel is

class Planner {
 public:
  explicit Planner(Kernel& kernel)
      : kernel_(kernel), aliases_(kernel.function), blocks_(IsBlockLoop), threads_(IsThreadLoop) {}

  absl::Status Plan() {
    RETURN_IF_ERROR(FindExtents());
    ir::ForEachStmt(kernel_.function.body, [&](Stmt s) {
      if (s.Is(StmtKind::kStore)) stored_.insert(MemoryOf(s.buffer()));
      return true;
    });
    RETURN_IF_ERROR(PlanBlock(kernel_.function.body));
    RETURN_IF_ERROR(FindPrivateDimensions());
    if (kernel_.shared_bytes > kMaxSharedBytes) {
      return InvalidInput(Place(), "allocations in shared memory take ", kernel_.shared_bytes,
                          " bytes: expected at most ", kMaxSharedBytes);
    }
    PlaceBarriers();
    return absl::OkStatus();
  }

 private:
  // The threads that run a statement of a block: by number of axis, the variable of the loop.
  using ThreadVars = std::array<Expr, 3>;
  // An enclosing statement, and the child of it that is on the path.
  struct Around {
    Stmt stmt;
    size_t child;
  };
  struct Access {
    absl::Span<const Expr> indices;
    ThreadVars threads;
    Stmt statement;
    std::vector<Around> path;
  };
  // The accesses that threads may have made since the last barrier.
  struct Pending {
    absl::flat_hash_set<Buffer> read;
    absl::flat_hash_set<Buffer> stored;
    bool operator==(const Pending&) const = default;
    void Add(const Pending& other) {
      read.insert(other.read.begin(), other.read.end());
      stored.insert(other.stored.begin(), other.stored.end());
    }
  };

  std::string Place() const { return StrCat(kernel_.function.name, ": "); }

  absl::Status FindExtents() {
    absl::Status status;
    ir::VarMap lets;
    ir::ForEachStmt(kernel_.function.body, [&](Stmt s) {
      if (s.Is(StmtKind::kLet)) lets.emplace(s.var(), ir::Substitute(s.value(), lets));
      if (!status.ok() || (!IsBlockLoop(s) && !IsThreadLoop(s))) return status.ok();
      if (IsBlockLoop(s) && !s.extent().IsConst() && s.min().IsInt(0)) {
        kernel_.grid_extents[AxisNumber(s.name())] = ir::Substitute(s.extent(), lets);
        return true;
      }
      if (!s.extent().IsConst() || !s.min().IsInt(0)) {
        status = InvalidInput(Place(), "'", ir::PrintFirstLine(s),
                              "': expected a loop from 0 of constant "
                              "extent, since it is one over hardware threads");
        return false;
      }
      Extents& extents = IsBlockLoop(s) ? kernel_.grid : kernel_.block;
      int64_t& extent = extents[AxisNumber(s.name())];
      extent = std::max(extent, s.extent().int_value());
      return true;
    });
    RETURN_IF_ERROR(status);
    for (Expr extent : kernel_.grid_extents) {
      if (extent) RETURN_IF_ERROR(CheckKnownToHost(extent));
    }
    const auto check = [&](std::string_view what, const Extents& extents, const Extents& limits) {
      for (int i = 0; i < 3; ++i) {
        if (extents[i] <= limits[i]) continue;
        return InvalidInput(Place(), what, ".", std::string(1, "xyz"[i]), " has extent ",
                            extents[i], ": expected at most ", limits[i]);
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(check("blockIdx", kernel_.grid, {INT32_MAX, 65535, 65535}));
    RETURN_IF_ERROR(check("threadIdx", kernel_.block, {1024, 1024, 64}));
    const int64_t threads = kernel_.block[0] * kernel_.block[1] * kernel_.block[2];
    if (threads <= kMaxBlockThreads) return absl::OkStatus();
    return InvalidInput(Place(), "a block has ", threads, " threads: expected at most ",
                        kMaxBlockThreads);
  }

  // What the host has are the parameters of the kernel, those that only extents use, and values of lets.
  absl::Status CheckKnownToHost(Expr extent) const {
    bool is_known = !arith::ReadsMemory(extent);
    ir::ForEachStmt(kernel_.function.body, [&](Stmt s) {
      if (s.Is(StmtKind::kFor)) is_known &= !ir::UsesVar(extent, s.var());
      return is_known;
    });
    if (is_known) return absl::OkStatus();
    return InvalidInput(Place(), "a loop over blockIdx has the extent '", ir::Print(extent),
                        "': expected one that does not depend on memory or loops of the kernel");
  }

  // ---- structure

  absl::Status PlanBlock(Stmt s) {
    if (IsThreadLoop(s) || !threads_.Has(s)) {
      if (!blocks_.Has(s)) return PlanRegion(s, {});
    }
    if (IsThreadLoop(s)) {
      return InvalidInput(Place(), "'", ir::PrintFirstLine(s),
                          "' has a loop over blockIdx inside: expected "
                          "it outside the loops over threadIdx");
    }
    if (IsBlockLoop(s)) {
      if (!block_axes_.insert(std::string(s.name())).second) {
        return InvalidInput(Place(), "'", ir::PrintFirstLine(s),
                            "': there is a loop over that axis already");
      }
      return ForEachChild(s, [&](Stmt child) { return PlanBlock(child); });
    }
    switch (s.kind()) {
      case StmtKind::kSeq:
        if (blocks_.Has(s)) {
          return InvalidInput(Place(),
                              "statements beside a loop over blockIdx: expected all of a "
                              "kernel inside it, since blocks run at the same time");
        }
        break;
      case StmtKind::kFor:
        if (blocks_.Has(s)) {
          return InvalidInput(Place(), "'", ir::PrintFirstLine(s),
                              "' has a loop over blockIdx inside: "
                              "expected it outside, since blocks run at the same time");
        }
        break;
      case StmtKind::kAllocate:
        if (s.buffer()->scope == "shared") {
          ASSIGN_OR_RETURN(const int64_t bytes, Bytes(s));
          kernel_.shared_bytes += bytes;
        } else {
          block_private_.push_back(s);
        }
        break;
      default:
        break;
    }
    for (Expr e : s.operands()) RETURN_IF_ERROR(CheckNothingPrivate(s, e));
    return ForEachChild(s, [&](Stmt child) { return PlanBlock(child); });
  }

  template <typename Visit>
  absl::Status ForEachChild(Stmt s, const Visit& visit) {
    for (size_t i = 0; i < s.children().size(); ++i) {
      path_.push_back({s, i});
      RETURN_IF_ERROR(visit(s.children()[i]));
      path_.pop_back();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Bytes(Stmt allocate) const {
    int64_t bytes = ir::ByteSize(allocate.buffer()->type);
    for (Expr extent : allocate.buffer()->extents) {
      if (!extent.IsConst()) {
        return InvalidInput(Place(), "'", ir::PrintFirstLine(allocate),
                            "': expected constant extents inside a kernel");
      }
      if (__builtin_mul_overflow(bytes, std::max<int64_t>(0, extent.int_value()), &bytes)) {
        bytes = INT64_MAX;
        break;
      }
    }
    return bytes;
  }

  // Block-level bounds and conditions are evaluated by all threads.
  absl::Status CheckNothingPrivate(Stmt s, Expr e) const {
    absl::Status status;
    ir::ForEachExpr(e, [&](Expr x) {
      if (!x.Is(ExprKind::kLoad) || !IsBlockPrivate(Buffer(x.buffer())) || !status.ok()) return;
      status = InvalidInput(Place(), "'", ir::PrintFirstLine(s),
                            "', which has loops over threads inside, "
                            "reads '",
                            x.buffer()->name,
                            "': expected shared memory, since all "
                            "threads read it");
    });
    return status;
  }

  bool IsBlockPrivate(Buffer buffer) const {
    for (Stmt s : block_private_) {
      if (s.buffer() == buffer) return true;
    }
    return false;
  }

  // `s` is run by the threads of the loops around it.
  absl::Status PlanRegion(Stmt s, ThreadVars threads) {
    if (!threads_.Has(s)) {
      return NoteAccesses(s, threads);
    }
    if (IsThreadLoop(s)) {
      Expr& var = threads[AxisNumber(s.name())];
      if (var) {
        return InvalidInput(Place(), "'", ir::PrintFirstLine(s),
                            "' stands inside a loop over the same "
                            "threads: run the pass thread_regions first");
      }
      var = s.var();
      return ForEachChild(s, [&](Stmt child) { return PlanRegion(child, threads); });
    }
    if (s.Is(StmtKind::kSeq) || s.Is(StmtKind::kFor)) {
      return InvalidInput(Place(), "'", ir::PrintFirstLine(s), "' has a loop over ",
                          "threadIdx inside and stands inside one: run the pass thread_regions "
                          "first, which sets loops over threads side by side");
    }
    if (s.Is(StmtKind::kAllocate)) RETURN_IF_ERROR(CheckLocal(s));
    for (Expr e : s.operands()) NoteLoads(e, threads, s);
    return ForEachChild(s, [&](Stmt child) { return PlanRegion(child, threads); });
  }

  absl::Status CheckLocal(Stmt allocate) const {
    ASSIGN_OR_RETURN(const int64_t bytes, Bytes(allocate));
    if (bytes <= kMaxLocalBytes) return absl::OkStatus();
    return InvalidInput(Place(), "'", ir::PrintFirstLine(allocate), "' takes ", bytes,
                        " bytes of each thread: expected at most ", kMaxLocalBytes);
  }

  void NoteLoads(Expr root, const ThreadVars& threads, Stmt statement) {
    ir::ForEachExpr(root, [&](Expr e) {
      if (!e.Is(ExprKind::kLoad) || !IsBlockPrivate(Buffer(e.buffer()))) return;
      accesses_[Buffer(e.buffer())].push_back({e.operands(), threads, statement, path_});
    });
  }

  absl::Status NoteAccesses(Stmt s, const ThreadVars& threads) {
    for (Expr e : s.operands()) NoteLoads(e, threads, s);
    if (s.Is(StmtKind::kStore) && IsBlockPrivate(s.buffer())) {
      accesses_[s.buffer()].push_back({s.indices(), threads, s, path_});
    }
    if (s.Is(StmtKind::kAllocate)) RETURN_IF_ERROR(CheckLocal(s));
    return ForEachChild(s, [&](Stmt child) { return NoteAccesses(child, threads); });
  }

  // ---- what each thread has for itself

  // The axis, of those that are not `taken`, whose thread number indexes dimension d in all accesses; -1 for a
  // dimension of one element.
  std::optional<int> AxisOfDimension(Buffer buffer, size_t d, const std::array<bool, 3>& taken) {
    const std::vector<Access>& accesses = accesses_.at(buffer);
    const auto all = [&](const auto& has) {
      return std::all_of(accesses.begin(), accesses.end(), has);
    };
    std::vector<int> axes;
    for (int axis = 0; axis < 3; ++axis) {
      // Axes that an access names come first; others may be known to have its value.
      const bool is_named = !all([&](const Access& access) {
        return !access.threads[axis] || access.indices[d] != access.threads[axis];
      });
      if (!taken[axis]) axes.insert(is_named ? axes.begin() : axes.end(), axis);
    }
    if (buffer->extents[d].IsInt(1) &&
        all([&](const Access& access) { return access.indices[d].IsInt(0); })) {
      return -1;
    }
    for (const int axis : axes) {
      const bool is_axis = all([&](const Access& access) {
        const Expr thread = access.threads[axis];
        return thread &&
               (access.indices[d] == thread || AreEqual(access.indices[d], thread, access.path));
      });
      if (is_axis) return axis;
    }
    return std::nullopt;
  }

  // Whether the two have the same value at the end of `path`: 0 is the thread's number under
  // `if (threadIdx.x < 1)`.
  bool AreEqual(Expr a, Expr b, absl::Span<const Around> path) {
    arith::Analyzer analyzer(*kernel_.function.context);
    arith::Analyzer::Scope scope(analyzer);
    for (Expr condition : kernel_.known) analyzer.Assume(condition, true);
    for (const Around& around : path) {
      const Stmt s = around.stmt;
      if (s.Is(StmtKind::kFor)) analyzer.BindLoop(s.var(), s.min(), s.extent());
      if (s.Is(StmtKind::kLet)) analyzer.BindLet(s.var(), s.value());
      if (s.Is(StmtKind::kIf)) analyzer.Assume(s.cond(), around.child == 0);
    }
    if (a.type() != b.type()) return false;
    return analyzer.CanProve(ir::Eq(a, b));
  }

  absl::Status FindPrivateDimensions() {
    for (Stmt s : block_private_) {
      const Buffer buffer = s.buffer();
      size_t& dimensions = kernel_.private_dimensions[buffer];
      dimensions = 0;
      if (!accesses_.contains(buffer)) continue;
      std::array<bool, 3> found = {false, false, false};
      while (dimensions < buffer->extents.size()) {
        const std::optional<int> axis = AxisOfDimension(buffer, dimensions, found);
        if (!axis) break;
        if (*axis >= 0) found[*axis] = true;
        ++dimensions;
      }
      for (const Access& access : accesses_.at(buffer)) {
        for (int i = 0; i < 3; ++i) {
          // An axis of extent one has a single thread.
          if (kernel_.block[i] == 1 || static_cast<bool>(access.threads[i]) == found[i]) continue;
          return InvalidInput(
              Place(), "'", ir::PrintFirstLine(s), "', accessed in '",
              ir::PrintFirstLine(access.statement),
              "': expected scope shared, or dimensions in front that are indexed by the threads of "
              "each loop over threads around, and by nothing else");
        }
      }
      int64_t bytes = ir::ByteSize(buffer->type);
      for (size_t d = dimensions; d < buffer->extents.size(); ++d) {
        if (!buffer->extents[d].IsConst()) return Bytes(s).status();
        bytes *= std::max<int64_t>(0, buffer->extents[d].int_value());
      }
      if (bytes > kMaxLocalBytes) {
        return InvalidInput(Place(), "'", ir::PrintFirstLine(s), "' takes ", bytes,
                            " bytes of each thread: expected at most ", kMaxLocalBytes);
      }
    }
    return absl::OkStatus();
  }

  // ---- barriers

  // The representative of the buffers that `buffer` may overlap.
  Buffer MemoryOf(Buffer buffer) {
    const std::optional<size_t> group = aliases_.Group(buffer);
    return group ? first_of_group_.try_emplace(*group, buffer).first->second : buffer;
  }

  // Memory that several threads access and some thread stores to.
  bool IsCommon(Buffer buffer, const absl::flat_hash_set<Buffer>& own) {
    return stored_.contains(MemoryOf(buffer)) && !own.contains(buffer) &&
           !kernel_.private_dimensions.contains(buffer);
  }

  Pending AccessesOf(Stmt root) {
    Pending accesses;
    absl::flat_hash_set<Buffer> own;
    ir::ForEachStmt(root, [&](Stmt s) {
      if (s.Is(StmtKind::kAllocate)) own.insert(s.buffer());
      if (s.Is(StmtKind::kStore) && IsCommon(s.buffer(), own)) {
        accesses.stored.insert(MemoryOf(s.buffer()));
      }
      return true;
    });
    ir::ForEachExprIn(root, [&](Expr e) {
      if (e.Is(ExprKind::kLoad) && IsCommon(Buffer(e.buffer()), own)) {
        accesses.read.insert(MemoryOf(Buffer(e.buffer())));
      }
    });
    return accesses;
  }

  Pending ReadsOf(absl::Span<const Expr> operands) {
    Pending accesses;
    for (Expr root : operands) {
      ir::ForEachExpr(root, [&](Expr e) {
        if (e.Is(ExprKind::kLoad) && IsCommon(Buffer(e.buffer()), {})) {
          accesses.read.insert(MemoryOf(Buffer(e.buffer())));
        }
      });
    }
    return accesses;
  }

  static bool Meet(const absl::flat_hash_set<Buffer>& a, const absl::flat_hash_set<Buffer>& b) {
    return std::any_of(a.begin(), a.end(), [&](Buffer buffer) { return b.contains(buffer); });
  }

  // `s` does `accesses`, after `pending`.
  void Visit(Stmt s, const Pending& accesses, Pending& pending) {
    const bool conflict = Meet(accesses.read, pending.stored) ||
                          Meet(accesses.stored, pending.stored) ||
                          Meet(accesses.stored, pending.read);
    if (conflict || kernel_.barrier_before.contains(s)) {
      kernel_.barrier_before.insert(s);
      pending = {};
    }
    pending.Add(accesses);
  }

  void VisitBlock(Stmt s, Pending& pending) {
    if (IsThreadLoop(s) || !threads_.Has(s)) {
      Visit(s, AccessesOf(s), pending);
      return;
    }
    const Pending reads = ReadsOf(s.operands());
    if (!reads.read.empty()) Visit(s, reads, pending);
    if (s.Is(StmtKind::kFor) && !IsBlockLoop(s)) {
      // Each round only adds barriers, so this ends.
      while (true) {
        Pending after = pending;
        VisitBlock(s.body(), after);
        after.Add(pending);
        if (after == pending) return;
        pending = after;
      }
    }
    if (s.Is(StmtKind::kIf)) {
      Pending otherwise = pending;
      VisitBlock(s.then_case(), pending);
      VisitBlock(s.else_case(), otherwise);
      pending.Add(otherwise);
      return;
    }
    for (Stmt child : s.children()) VisitBlock(child, pending);
  }

  void PlaceBarriers() {
    if (kernel_.block == Extents{1, 1, 1}) return;
    Pending pending;
    VisitBlock(kernel_.function.body, pending);
  }

  Kernel& kernel_;
  const ir::Aliases aliases_;
  absl::flat_hash_map<size_t, Buffer> first_of_group_;
  Finder blocks_;
  Finder threads_;
  absl::flat_hash_set<std::string> block_axes_;
  std::vector<Around> path_;
  std::vector<Stmt> block_private_;
  absl::flat_hash_map<Buffer, std::vector<Access>> accesses_;
  absl::flat_hash_set<Buffer> stored_;
};

}  // namespace

int AxisNumber(std::string_view thread_axis) {
  const size_t dot = thread_axis.find('.');
  if (dot == std::string_view::npos || dot + 2 != thread_axis.size()) return -1;
  const size_t place = std::string_view("xyz").find(thread_axis[dot + 1]);
  return place == std::string_view::npos ? -1 : static_cast<int>(place);
}

bool IsBlockLoop(Stmt s) { return IsAxisLoop(s, "blockIdx."); }
bool IsThreadLoop(Stmt s) { return IsAxisLoop(s, "threadIdx."); }

absl::StatusOr<KernelPlan> PlanKernels(const ir::Function& function) {
  ASSIGN_OR_RETURN(KernelPlan plan, SplitIntoKernels(function));
  for (Kernel& kernel : plan.kernels) RETURN_IF_ERROR(Planner(kernel).Plan());
  return plan;
}

}  // namespace polynao::codegen
