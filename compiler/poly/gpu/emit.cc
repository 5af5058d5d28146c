#include "compiler/poly/gpu/emit.h"

#include <isl/aff.h>
#include <isl/ast.h>
#include <isl/ast_build.h>
#include <isl/set.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/generate/generate.h"
#include "compiler/poly/generate/loops_around.h"

namespace polynao::poly {

namespace {

using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::Type;

using Kind = GpuMark::Kind;

std::string LoopName(int depth) { return StrCat("c", depth); }

class GpuHandler : public MarkHandler {
 public:
  explicit GpuHandler(const GpuMapping& mapping) : mapping_(mapping) {}

  // Whether isl has met each mark of registers once.
  bool keeps_registers() const { return keeps_registers_; }

  bool Handles(const std::string& mark) const override { return mapping_.marks.contains(mark); }

  std::vector<isl::ast_expr> Expressions(const std::string& name,
                                         const isl::ast_build& build) override {
    const GpuMark& mark = mapping_.marks.at(name);
    const LoopsAround loops(build, mark.loops);
    std::vector<isl::ast_expr> result;
    switch (mark.kind) {
      case Kind::kBlocks:
        for (size_t i = 0; i < mark.first.size(); ++i) {
          result.push_back(loops.Value(mark.first[i]));
          result.push_back(loops.Value(mark.last[i]));
        }
        break;
      case Kind::kInBlocks:
      case Kind::kInThreads:
        // By what isl knows of them.
        for (size_t i = 0; i < mark.shape.sizes.size(); ++i) {
          result.push_back(
              loops.Number(static_cast<unsigned>(mark.depth) + static_cast<unsigned>(i)));
        }
        break;
      case Kind::kOwn:
        keeps_registers_ = own_marks_.insert(name).second && keeps_registers_;
        result = loops.Numbers();
        for (const OwnElement& own : mark.own) {
          const isl::set known = ThreadsOf(mark.shape, own.loaded.ctx());
          result.push_back(loops.Condition(own.loaded, known));
          result.push_back(loops.Condition(own.stored, known));
          for (const isl::pw_aff& index : own.element) result.push_back(loops.Value(index));
        }
        break;
      case Kind::kShared:
        result = loops.Numbers();
        for (const SharedCopy& copy : mark.shared) {
          for (const isl::pw_aff& first : copy.group.box.first) {
            result.push_back(loops.Value(first));
          }
          if (!copy.group.readable) continue;
          const isl::set& readable = *copy.group.readable;
          result.push_back(loops.Condition(
              readable,
              isl::manage(isl_set_universe(isl_space_params_alloc(readable.ctx().release(), 0)))));
        }
        break;
      case Kind::kThreads:
        break;
    }
    return result;
  }

  Stmt Write(const std::string& name, const std::vector<isl::ast_expr>& expressions,
             MarkPlace& place) override {
    const GpuMark& mark = mapping_.marks.at(name);
    switch (mark.kind) {
      case Kind::kBlocks:
        return WriteBlocks(mark, expressions, place);
      case Kind::kInBlocks:
        return WriteInside(mark, expressions, blocks_, place);
      case Kind::kOwn:
        return WriteOwn(mark, expressions, place);
      case Kind::kShared:
        return WriteShared(mark, expressions, place);
      case Kind::kThreads:
        return WriteThreads(mark, place);
      case Kind::kInThreads:
        return WriteInside(mark, expressions, threads_, place);
    }
    POLYNAO_UNREACHABLE(static_cast<int>(mark.kind));
  }

  Expr Load(const Statement& statement, Expr load, const std::vector<Expr>& indices) override {
    if (const auto it = own_.find(ir::Buffer(load.buffer())); it != own_.end()) {
      return load.context().Load(it->second, threads_);
    }
    const auto it = shared_.find({&statement, load});
    if (it == shared_.end()) return Expr();
    std::vector<Expr> inside;
    for (size_t i = 0; i < indices.size(); ++i) {
      inside.push_back(Difference(indices[i], it->second.first[i]));
    }
    return load.context().Load(it->second.buffer, inside);
  }

  Stmt Store(const Statement&, ir::Buffer buffer, const std::vector<Expr>&, Expr value) override {
    const auto it = own_.find(buffer);
    return it == own_.end() ? Stmt() : value.context().Store(it->second, threads_, value);
  }

 private:
  // What is in shared memory instead of an array: the box at `first`.
  struct Shared {
    ir::Buffer buffer;
    std::vector<Expr> first;
  };

  // The values of the parameters that are coordinates of threads.
  static isl::set ThreadsOf(const ThreadShape& shape, isl::ctx ctx) {
    const auto n = static_cast<unsigned>(shape.sizes.size());
    isl_set* threads = isl_set_universe(isl_space_params_alloc(ctx.release(), n));
    for (unsigned i = 0; i < n; ++i) {
      threads = isl_set_set_dim_name(threads, isl_dim_param, i, ThreadParameter(i).c_str());
      threads = isl_set_lower_bound_si(threads, isl_dim_param, i, 0);
      threads =
          isl_set_upper_bound_si(threads, isl_dim_param, i, static_cast<int>(shape.sizes[i]) - 1);
    }
    return isl::manage(threads);
  }

  static Expr Difference(Expr a, Expr b) { return b.IsInt(0) ? a : a - b; }
  static Expr Sum(Expr a, Expr b) { return a.IsInt(0) ? b : b.IsInt(0) ? a : a + b; }

  // ---- blocks and threads

  Stmt WriteBlocks(const GpuMark& mark, const std::vector<isl::ast_expr>& expressions,
                   MarkPlace& place) {
    ir::Context& c = place.context();
    const size_t n = mark.shape.axes.size();
    std::vector<Expr> firsts, extents, vars;
    std::vector<std::pair<ir::Var, Expr>> lets;
    blocks_.clear();
    for (size_t i = 0; i < n; ++i) {
      const Expr first = place.Value(expressions[2 * i]);
      const Expr last = place.Value(expressions[2 * i + 1]);
      extents.push_back(Sum(Difference(last, first), c.I64(1)));
      const ir::Var var = c.NewVar(StrCat("b", mark.shape.axes[i]), Type::kI64);
      vars.push_back(var);
      if (first.IsInt(0)) {
        blocks_.push_back(var);
      } else {
        const ir::Var number = c.NewVar(LoopName(mark.depth + static_cast<int>(i)), Type::kI64);
        lets.emplace_back(number, var + first);
        blocks_.push_back(number);
      }
    }
    Stmt body = WithBound(mark, blocks_, place, {});
    for (size_t i = lets.size(); i-- > 0;) body = c.LetStmt(lets[i].first, lets[i].second, body);
    for (size_t i = n; i-- > 0;) {
      body = c.For(vars[i], c.I64(0), extents[i], body, ForKind::kThread,
                   StrCat("blockIdx.", mark.shape.axes[i]));
    }
    return body;
  }

  // What is below the mark, where the loops of blocks or threads have these values.
  static Stmt WithBound(const GpuMark& mark, const std::vector<Expr>& values, MarkPlace& place,
                        const std::vector<ir::Buffer>& copies) {
    for (size_t i = 0; i < values.size(); ++i) {
      place.Bind(LoopName(mark.depth + static_cast<int>(i)), values[i]);
    }
    const Stmt body = place.Below(copies);
    for (size_t i = 0; i < values.size(); ++i) {
      place.Bind(LoopName(mark.depth + static_cast<int>(i)), Expr());
    }
    return body;
  }

  // A loop that isl has left out has one iteration, which only one block or thread runs.
  static Stmt WriteInside(const GpuMark& mark, const std::vector<isl::ast_expr>& expressions,
                          const std::vector<Expr>& values, MarkPlace& place) {
    Stmt body = place.Below({});
    for (size_t i = values.size(); i-- > 0;) {
      if (!place.IsLeftOut(LoopName(mark.depth + static_cast<int>(i)))) continue;
      body = place.context().If(ir::Eq(values[i], place.Value(expressions[i])), body);
    }
    return body;
  }

  // New loops over all threads around what `write` makes; threads_ are their variables.
  template <typename Make>
  Stmt OverThreads(const ThreadShape& shape, ir::Context& c, const Make& make) {
    std::vector<Expr> vars;
    for (const std::string& axis : shape.axes) {
      vars.push_back(c.NewVar(StrCat("t", axis), Type::kI64));
    }
    const std::vector<Expr> outer = std::exchange(threads_, vars);
    Stmt body = make();
    threads_ = outer;
    for (size_t i = vars.size(); i-- > 0;) {
      body = c.For(vars[i], c.I64(0), c.I64(shape.sizes[i]), body, ForKind::kThread,
                   StrCat("threadIdx.", shape.axes[i]));
    }
    return body;
  }

  Stmt WriteThreads(const GpuMark& mark, MarkPlace& place) {
    return OverThreads(mark.shape, place.context(),
                       [&] { return WithBound(mark, threads_, place, mark.copies); });
  }

  // ---- registers

  Stmt WriteOwn(const GpuMark& mark, const std::vector<isl::ast_expr>& expressions,
                MarkPlace& place) {
    ir::Context& c = place.context();
    std::vector<Expr> extents;
    for (const int64_t size : mark.shape.sizes) extents.push_back(c.I64(size));
    std::vector<ir::Buffer> registers;
    for (const OwnElement& own : mark.own) {
      registers.push_back(
          c.NewBuffer(StrCat(own.buffer->name, ".own"), own.buffer->type, extents, "local"));
    }
    const Stmt loads = MoveOwn(mark, expressions, registers, /*stores=*/false, place);
    for (size_t i = 0; i < registers.size(); ++i) own_[mark.own[i].buffer] = registers[i];
    const Stmt body = place.Below({});
    for (const OwnElement& own : mark.own) own_.erase(own.buffer);
    const Stmt stores = MoveOwn(mark, expressions, registers, /*stores=*/true, place);
    Stmt result = c.Seq({loads, body, stores});
    for (size_t i = registers.size(); i-- > 0;) result = c.Allocate(registers[i], result);
    return result;
  }

  // All threads load their elements, or store them.
  Stmt MoveOwn(const GpuMark& mark, const std::vector<isl::ast_expr>& expressions,
               const std::vector<ir::Buffer>& registers, bool stores, MarkPlace& place) {
    ir::Context& c = place.context();
    return OverThreads(mark.shape, c, [&] {
      for (size_t i = 0; i < threads_.size(); ++i) place.Bind(ThreadParameter(i), threads_[i]);
      std::vector<Stmt> moves;
      size_t loops = expressions.size();
      for (const OwnElement& own : mark.own) loops -= 2 + own.element.size();
      for (size_t i = 0; i < loops; ++i) place.Bind(LoopParameter(i), place.Value(expressions[i]));
      size_t next = loops;
      for (size_t i = 0; i < registers.size(); ++i) {
        const OwnElement& own = mark.own[i];
        const Expr loaded = Truth(place.Value(expressions[next]));
        const Expr stored = Truth(place.Value(expressions[next + 1]));
        next += 2;
        std::vector<Expr> indices;
        for (size_t d = 0; d < own.element.size(); ++d) {
          indices.push_back(place.Value(expressions[next++]));
        }
        if (!stores && own.loaded.is_empty()) continue;
        const ir::Buffer buffer = place.Current(own.buffer);
        Stmt move = stores ? c.Store(buffer, indices, c.Load(registers[i], threads_))
                           : c.Store(registers[i], threads_, c.Load(buffer, indices));
        if (own.may_be_outside) move = IfInside(buffer, indices, move, place);
        moves.push_back(c.If(stores ? stored : loaded, move));
      }
      for (size_t i = 0; i < threads_.size(); ++i) place.Bind(ThreadParameter(i), Expr());
      for (size_t i = 0; i < loops; ++i) place.Bind(LoopParameter(i), Expr());
      return c.Seq(moves);
    });
  }

  // isl writes 1 for true.
  static Expr Truth(Expr e) {
    return e.Is(ExprKind::kIntImm) ? e.context().Bool(e.int_value() != 0) : e;
  }

  static Stmt IfInside(ir::Buffer buffer, const std::vector<Expr>& indices, Stmt body,
                       MarkPlace& place) {
    ir::Context& c = place.context();
    for (size_t d = indices.size(); d-- > 0;) {
      const Expr extent = place.Wide(buffer->extents[d]);
      body = c.If(ir::And(c.I64(0) <= indices[d], indices[d] < extent), body);
    }
    return body;
  }

  // ---- shared memory

  Stmt WriteShared(const GpuMark& mark, const std::vector<isl::ast_expr>& expressions,
                   MarkPlace& place) {
    ir::Context& c = place.context();
    std::vector<std::pair<ir::Var, Expr>> lets;
    std::vector<Shared> made;
    std::vector<Stmt> parts;
    size_t next = expressions.size();
    for (const SharedCopy& copy : mark.shared) {
      next -= copy.group.box.first.size() + (copy.group.readable ? 1 : 0);
    }
    const std::vector<isl::ast_expr> loops(expressions.begin(),
                                           expressions.begin() + static_cast<std::ptrdiff_t>(next));
    for (const SharedCopy& copy : mark.shared) {
      std::vector<Expr> extents;
      for (const int64_t extent : copy.extents) extents.push_back(c.I64(extent));
      const ir::Buffer buffer = copy.group.buffer;
      Shared shared{
          .buffer = c.NewBuffer(StrCat(buffer->name, ".shared"), buffer->type, extents, "shared"),
          .first = {}};
      for (size_t d = 0; d < copy.group.box.first.size(); ++d) {
        Expr first = place.Value(expressions[next++]);
        if (!first.Is(ExprKind::kIntImm) && !first.Is(ExprKind::kVar)) {
          const ir::Var var = c.NewVar(StrCat(buffer->name, ".first"), Type::kI64);
          lets.emplace_back(var, first);
          first = var;
        }
        shared.first.push_back(first);
      }
      const auto readable = [&](const std::vector<Expr>& element) {
        return copy.group.readable ? ConditionAt(expressions[next], loops, element, place) : Expr();
      };
      parts.push_back(Fill(copy, shared, mark.shape, readable, place));
      if (copy.group.readable) ++next;
      made.push_back(std::move(shared));
    }
    for (size_t i = 0; i < made.size(); ++i) {
      for (const Reference& reference : mark.shared[i].group.references) {
        shared_[KeyOf(reference, c)] = made[i];
      }
    }
    parts.push_back(place.Below({}));
    for (const SharedCopy& copy : mark.shared) {
      for (const Reference& reference : copy.group.references) shared_.erase(KeyOf(reference, c));
    }
    Stmt result = c.Seq(parts);
    for (size_t i = made.size(); i-- > 0;) result = c.Allocate(made[i].buffer, result);
    for (size_t i = lets.size(); i-- > 0;) {
      result = c.LetStmt(lets[i].first, lets[i].second, result);
    }
    return result;
  }

  using LoadKey = std::pair<const Statement*, Expr>;
  static LoadKey KeyOf(const Reference& reference, ir::Context& c) {
    const Access& access = reference.get();
    return {reference.statement, c.Load(access.buffer, access.indices)};
  }

  // `condition`, over the loops around and the parameters that are an element's place.
  static Expr ConditionAt(const isl::ast_expr& condition, const std::vector<isl::ast_expr>& loops,
                          const std::vector<Expr>& element, MarkPlace& place) {
    for (size_t i = 0; i < loops.size(); ++i) place.Bind(LoopParameter(i), place.Value(loops[i]));
    for (size_t d = 0; d < element.size(); ++d) place.Bind(ElementParameter(d), element[d]);
    const Expr result = Truth(place.Value(condition));
    for (size_t i = 0; i < loops.size(); ++i) place.Bind(LoopParameter(i), Expr());
    for (size_t d = 0; d < element.size(); ++d) place.Bind(ElementParameter(d), Expr());
    return result;
  }

  // All threads copy the box, neighbours along threadIdx.x neighbours in memory. The last dimension of the box goes
  // along x, the one before along y and z, and that of a box of one dimension along all axes; but where that takes more
  // rounds, as of rows that are shorter than x, elements and threads are numbered, and thread t copies elements t, t +
  // threads, ..
  template <typename Readable>
  Stmt Fill(const SharedCopy& copy, const Shared& shared, const ThreadShape& shape,
            const Readable& readable, MarkPlace& place) {
    ir::Context& c = place.context();
    const std::vector<int64_t>& sizes = copy.group.box.sizes;
    const size_t n = sizes.size();
    return OverThreads(shape, c, [&] {
      // The number of this thread along y and z, and of how many.
      Expr other = c.I64(0);
      int64_t others = 1;
      for (size_t i = 0; i + 1 < threads_.size(); ++i) {
        other = Sum(other.IsInt(0) ? other : other * shape.sizes[i], threads_[i]);
        others *= shape.sizes[i];
      }
      const int64_t width = shape.sizes.back();
      std::vector<Expr> places(n);
      std::vector<std::pair<ir::Var, int64_t>> loops;
      std::vector<Expr> conditions;
      const auto spread = [&](size_t d, Expr thread, int64_t count) {
        const int64_t rounds = (sizes[d] + count - 1) / count;
        places[d] = thread;
        if (rounds > 1) {
          const ir::Var var = c.NewVar(StrCat("r", d), Type::kI64);
          loops.emplace_back(var, rounds);
          places[d] = Sum(count == 1 ? Expr(var) : var * count, thread);
        }
        if (rounds * count > sizes[d]) conditions.push_back(places[d] < sizes[d]);
      };
      const auto rounds_of = [](int64_t size, int64_t count) { return (size + count - 1) / count; };
      const int64_t all = copy.group.box.elements(), threads = others * width;
      int64_t rounds = 1;
      for (size_t d = 0; d < n; ++d) {
        rounds *= rounds_of(sizes[d], d + 1 == n ? width : d + 2 == n ? others : 1);
      }
      std::optional<std::pair<ir::Var, Expr>> number;
      if (n == 1 || rounds > rounds_of(all, threads)) {
        const Expr thread = others == 1 ? threads_.back() : Sum(other * width, threads_.back());
        if (n == 1) {
          spread(0, thread, threads);
        } else {
          // `spread` of all elements, then the place of the number.
          const ir::Var e = c.NewVar("e", Type::kI64);
          Expr value = thread;
          if (all > threads) {
            const ir::Var var = c.NewVar("r", Type::kI64);
            loops.emplace_back(var, rounds_of(all, threads));
            value = var * threads + thread;
          }
          number.emplace(e, value);
          if (all % threads != 0) conditions.push_back(e < all);
          Expr rest = e;
          size_t outermost = 0;  // of the dimensions of more than one element
          while (sizes[outermost] == 1) ++outermost;
          for (size_t d = n; d-- > 0;) {
            places[d] = sizes[d] == 1 ? c.I64(0) : d == outermost ? rest : rest % sizes[d];
            if (sizes[d] > 1 && d > outermost) rest = rest / sizes[d];
          }
        }
      } else {
        for (size_t d = 0; d + 2 < n; ++d) spread(d, c.I64(0), 1);
        spread(n - 2, other, others);
        spread(n - 1, threads_.back(), width);
      }
      std::vector<Expr> from;
      for (size_t d = 0; d < n; ++d) from.push_back(Sum(shared.first[d], places[d]));
      const ir::Buffer buffer = place.Current(copy.group.buffer);
      Stmt body = c.Store(shared.buffer, places, c.Load(buffer, from));
      const Expr condition = readable(from);
      body = condition ? c.If(condition, body) : IfInside(buffer, from, body, place);
      for (size_t i = conditions.size(); i-- > 0;) body = c.If(conditions[i], body);
      if (number) body = c.LetStmt(number->first, number->second, body);
      for (size_t i = loops.size(); i-- > 0;) {
        body = c.For(loops[i].first, c.I64(0), c.I64(loops[i].second), body);
      }
      return body;
    });
  }

  const GpuMapping& mapping_;
  std::set<std::string> own_marks_;  // that isl has met
  bool keeps_registers_ = true;
  std::vector<Expr> blocks_;
  std::vector<Expr> threads_;
  absl::flat_hash_map<ir::Buffer, ir::Buffer> own_;
  absl::flat_hash_map<LoadKey, Shared> shared_;
};

}  // namespace

std::unique_ptr<MarkHandler> MakeGpuHandler(const GpuMapping& mapping) {
  return std::make_unique<GpuHandler>(mapping);
}

ir::Stmt GenerateForGpu(const Scop& scop, const GpuMapping& mapping, bool* keeps_registers) {
  GpuHandler handler(mapping);
  const ir::Stmt code = Generate(scop, {.schedule = mapping.schedule, .marks = {}}, &handler);
  *keeps_registers = handler.keeps_registers();
  return code;
}

}  // namespace polynao::poly
