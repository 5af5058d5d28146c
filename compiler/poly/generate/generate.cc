#include "compiler/poly/generate/generate.h"

#include <isl/ast.h>
#include <isl/ast_build.h>
#include <isl/id.h>
#include <isl/options.h>
#include <isl/val.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/generate/instance.h"
#include "compiler/poly/generate/register_tile.h"
#include "compiler/poly/model/affine.h"
#include "compiler/poly/model/ast_value.h"

namespace polynao::poly {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;

namespace {

// ---- loops ----------------------------------------------------------------------------------------

// isl names the loop of schedule dimension 3 "c3".
int DepthOf(const std::string& loop) {
  POLYNAO_CHECK(loop.size() > 1 && loop[0] == 'c') << loop;
  return std::stoi(loop.substr(1));
}

class AstEmitter : private MarkPlace {
 public:
  AstEmitter(const Scop& scop, const MarkedSchedule& schedule, MarkHandler* handler)
      : scop_(scop), schedule_(schedule), handler_(handler), c_(scop.place.context()) {}

  Stmt Emit() {
    isl_ctx* ctx = scop_.isl->get();
    isl_options_set_ast_build_detect_min_max(ctx, 1);
    isl_options_set_ast_build_exploit_nested_bounds(ctx, 1);
    isl_options_set_ast_build_atomic_upper_bound(ctx, 1);
    return WithParameters([this, ctx] {
      // isl wants to know from the start which parameters the bands of a schedule name.
      isl_space* space = scop_.context.space().release();
      for (const Parameter& p : scop_.parameters) {
        space = isl_space_align_params(
            space, isl_space_add_param_id(isl_space_params_alloc(ctx, 0),
                                          isl_id_alloc(ctx, p.name.c_str(), nullptr)));
      }
      const isl::set context = isl::manage(isl_set_align_params(scop_.context.copy(), space));
      isl::ast_build build = isl::ast_build::from_context(context);
      if (handler_ != nullptr) {
        build = isl::manage(isl_ast_build_set_after_each_mark(build.copy(), AfterMark, this));
      }
      const isl::ast_node root = build.node_from(schedule_.schedule);
      std::vector<ir::Buffer> locals;
      for (ir::Buffer buffer : scop_.locals) locals.push_back(PushCopy(buffer));
      return WithCopies(Node(root, nullptr), locals);
    });
  }

  // `body()`, in the scope of the parameters, if what the part assumes of them holds; else the original code.
  template <typename Body>
  Stmt WithParameters(const Body& make_body) {
    std::vector<std::pair<ir::Var, Expr>> lets;
    for (const Parameter& p : scop_.parameters) {
      const ir::Var var = c_.NewVar(p.name, Type::kI64);
      lets.emplace_back(var, p.value);
      names_[p.name] = var;
      // `cast(i64, n)`: indices that have n use the let.
      if (p.value.Is(ExprKind::kVar)) outer_[p.value] = var;
      if (p.value.Is(ExprKind::kCast) && p.value.operand(0).Is(ExprKind::kVar)) {
        outer_[p.value.operand(0)] = var;
      }
    }
    Stmt body = make_body();
    if (!scop_.assumed.is_equal(isl::set::universe(scop_.assumed.space()))) {
      const isl::ast_build test = isl::ast_build::from_context(scop_.context);
      body = c_.If(Value(test.expr_from(scop_.assumed)), body, scop_.place.body());
    }
    for (size_t i = lets.size(); i-- > 0;) {
      if (ir::UsesVar(body, lets[i].first)) {
        body = c_.LetStmt(lets[i].first, lets[i].second, body);
      }
    }
    return body;
  }

 private:
  Stmt Node(const isl::ast_node& node, const LoopMark* mark) {
    switch (isl_ast_node_get_type(node.get())) {
      case isl_ast_node_for:
        return For(node, mark);
      case isl_ast_node_if: {
        const isl::ast_expr condition = isl::manage(isl_ast_node_if_get_cond(node.get()));
        const isl::ast_node then_node = isl::manage(isl_ast_node_if_get_then_node(node.get()));
        const Stmt then_case = Node(then_node, mark);
        Stmt else_case;
        if (isl_ast_node_if_has_else_node(node.get()) == isl_bool_true) {
          else_case = Node(isl::manage(isl_ast_node_if_get_else_node(node.get())), mark);
        }
        return c_.If(Value(condition), then_case, else_case);
      }
      case isl_ast_node_block: {
        std::vector<Stmt> children;
        const isl::ast_node_list list = isl::manage(isl_ast_node_block_get_children(node.get()));
        for (unsigned i = 0; i < list.size(); ++i) {
          children.push_back(Node(list.at(static_cast<int>(i)), mark));
        }
        return c_.Seq(children);
      }
      case isl_ast_node_mark: {
        const isl::id id = isl::manage(isl_ast_node_mark_get_id(node.get()));
        const isl::ast_node below = isl::manage(isl_ast_node_mark_get_node(node.get()));
        const auto it = schedule_.marks.find(isl_id_get_name(id.get()));
        if (handler_ != nullptr && handler_->Handles(isl_id_get_name(id.get()))) {
          return Handled(node, isl_id_get_name(id.get()), below);
        }
        if (it == schedule_.marks.end()) return Node(below, mark);
        const bool is_innermost =
            it->second.kind == ir::ForKind::kVectorize || it->second.accumulates;
        if (!is_innermost) return Node(below, &it->second);
        const Stmt result = Node(below, mark);
        innermost_ = &it->second;
        return result;
      }
      case isl_ast_node_user:
        return User(node);
      case isl_ast_node_error:
        break;
    }
    POLYNAO_UNREACHABLE(static_cast<int>(isl_ast_node_get_type(node.get())));
  }

  Stmt For(const isl::ast_node& node, const LoopMark* mark) {
    const isl::ast_node_for loop = node.as<isl::ast_node_for>();
    const isl::id id = isl::manage(isl_ast_expr_get_id(loop.iterator().get()));
    const std::string name = isl_id_get_name(id.get());
    // A mark of a loop further inside.
    const LoopMark* below = mark != nullptr && DepthOf(name) < mark->depth ? mark : nullptr;
    if (mark != nullptr && DepthOf(name) != mark->depth) mark = nullptr;
    const Expr first = Value(loop.init());
    if (const auto it = bound_.find(name); it != bound_.end()) {
      return AtValue(loop, name, first, it->second);
    }
    const auto shadowed = names_.find(name);
    const Expr outer = shadowed != names_.end() ? shadowed->second : Expr();
    std::vector<ir::Buffer> copies;
    if (mark != nullptr && !loop.is_degenerate()) {
      for (ir::Buffer buffer : mark->copies) copies.push_back(PushCopy(buffer));
    }
    innermost_ = nullptr;
    Stmt result;
    if (loop.is_degenerate()) {
      names_[name] = first;
      result = Node(loop.body(), below);
      innermost_ = nullptr;
    } else {
      const int64_t step =
          isl_val_get_num_si(isl::manage(isl_ast_expr_get_val(loop.inc().get())).get());
      const Expr last = LastOf(loop);
      const ir::Var var = c_.NewVar(name, Type::kI64);
      const Expr extent = Plus(Minus(last, first), 1);
      ir::ForKind kind = mark != nullptr ? mark->kind : ir::ForKind::kSerial;
      if (kind == ir::ForKind::kUnroll && !IsConstant(extent)) kind = ir::ForKind::kSerial;
      if (step == 1 && IsConstant(extent) && !IsConstant(first)) {
        // All bounds of a whole tile's loop are constants: from 0.
        names_[name] = Plus(first, var);
        const Stmt body = WithCopies(Node(loop.body(), below), copies);
        result = Innermost(c_.For(var, c_.I64(0), extent, body, kind));
      } else if (step == 1) {
        names_[name] = var;
        const Stmt body = WithCopies(Node(loop.body(), below), copies);
        result = Innermost(c_.For(var, first, extent, body, kind));
      } else {
        // Iteration v is first + v * step. A negative count of iterations divides to one below 1.
        names_[name] = Plus(Times(var, c_.I64(step)), first);
        const Stmt body = WithCopies(Node(loop.body(), below), copies);
        const Expr steps = Minus(last, first);
        const Expr count = IsConstant(steps) ? c_.I64(ir::FloorDiv(steps.int_value(), step))
                                             : steps / c_.I64(step);
        result = Innermost(c_.For(var, c_.I64(0), Plus(count, 1), body, kind));
      }
    }
    if (mark != nullptr && !mark->tile.empty()) result = WithRegisterTile(result, mark->tile);
    if (outer) {
      names_[name] = outer;
    } else {
      names_.erase(name);
    }
    return result;
  }

  // The body of a loop at the iteration that is bound to `value`, if there is one.
  Stmt AtValue(const isl::ast_node_for& loop, const std::string& name, Expr first, Expr value) {
    std::vector<Expr> conditions;
    if (loop.is_degenerate()) {
      conditions.push_back(ir::Eq(value, first));
    } else {
      const isl::val step = isl::manage(isl_ast_expr_get_val(loop.inc().get()));
      conditions.push_back(first <= value);
      conditions.push_back(value <= LastOf(loop));
      if (!step.is_one()) {
        const Expr distance = Minus(value, first) % c_.I64(isl_val_get_num_si(step.get()));
        conditions.push_back(ir::Eq(distance, c_.I64(0)));
      }
    }
    names_[name] = value;
    Stmt body = Node(loop.body(), nullptr);
    names_.erase(name);
    innermost_ = nullptr;
    for (size_t i = conditions.size(); i-- > 0;) body = c_.If(conditions[i], body);
    return body;
  }

  Expr LastOf(const isl::ast_node_for& loop) {
    const isl::ast_expr condition = loop.cond();
    const auto type = isl_ast_expr_op_get_type(condition.get());
    POLYNAO_CHECK(type == isl_ast_expr_op_le || type == isl_ast_expr_op_lt) << Text(condition);
    const Expr bound = Value(isl::manage(isl_ast_expr_op_get_arg(condition.get(), 1)));
    return type == isl_ast_expr_op_le ? bound : Plus(bound, -1);
  }

  // ---- marks of the handler

  // isl calls this for the node it has made of a mark, and goes through null after an error.
  static isl_ast_node* AfterMark(isl_ast_node* node, isl_ast_build* build, void* user) {
    AstEmitter& self = *static_cast<AstEmitter*>(user);
    const isl::id mark = isl::manage(isl_ast_node_mark_get_id(node));
    const std::string name = isl_id_get_name(mark.get());
    if (!self.handler_->Handles(name)) return node;
    try {
      self.expressions_.push_back(self.handler_->Expressions(name, isl::manage_copy(build)));
    } catch (const isl::exception&) {
      isl_ast_node_free(node);
      return nullptr;
    }
    const std::string number = StrCat(self.expressions_.size() - 1);
    isl_id* annotation = isl_id_alloc(isl_ast_node_get_ctx(node), number.c_str(), nullptr);
    return isl_ast_node_set_annotation(node, annotation);
  }

  Stmt Handled(const isl::ast_node& node, const std::string& name, const isl::ast_node& below) {
    const isl::id annotation = isl::manage(isl_ast_node_get_annotation(node.get()));
    const size_t number = std::stoul(isl_id_get_name(annotation.get()));
    const isl::ast_node* outer = std::exchange(below_, &below);
    const Stmt result = handler_->Write(name, expressions_[number], *this);
    below_ = outer;
    return result;
  }

  ir::Context& context() override { return c_; }
  Expr Wide(Expr e) override { return Widen(e, outer_); }
  void Bind(const std::string& name, Expr value) override {
    const bool is_loop = name.size() > 1 && name[0] == 'c' && name[1] >= '0' && name[1] <= '9';
    auto& map = is_loop ? bound_ : names_;
    if (value) {
      map[name] = value;
    } else {
      map.erase(name);
    }
  }
  bool IsLeftOut(const std::string& loop) override { return !names_.contains(loop); }
  Stmt Below(const std::vector<ir::Buffer>& copies) override {
    const isl::ast_node* below = below_;
    std::vector<ir::Buffer> made;
    for (ir::Buffer buffer : copies) made.push_back(PushCopy(buffer));
    const Stmt result = WithCopies(Node(*below, nullptr), made);
    below_ = below;
    return result;
  }

  // The loop just made, as a vector if a mark below it says that the innermost loop is one. (A mark
  // above would name all loops that isl makes of one member.)
  Stmt Innermost(Stmt loop) {
    const LoopMark* mark = std::exchange(innermost_, nullptr);
    if (mark == nullptr || DepthOf(std::string(loop.var().name())) != mark->depth) return loop;
    if (mark->accumulates) return WithSum(loop);
    Stmt body = loop.body();
    for (ir::Buffer buffer : mark->copies) {
      const ir::Buffer copy = c_.NewBuffer(buffer->name, buffer->type, {}, buffer->scope);
      body = c_.Allocate(copy, ir::Substitute(body, {}, {{Current(buffer), copy}}));
    }
    const bool is_plain = loop.for_kind() == ir::ForKind::kSerial;
    return c_.For(loop.var(), loop.min(), loop.extent(), body,
                  is_plain ? ir::ForKind::kVectorize : loop.for_kind());
  }

  // A new buffer that stands for `buffer` until PopCopies.
  ir::Buffer PushCopy(ir::Buffer buffer) {
    std::vector<Expr> extents;
    for (Expr extent : buffer->extents) {
      const Expr wide = Widen(extent, outer_);
      // The allocation may stand where the original did not run; it must not stop the program.
      extents.push_back(IsConstant(wide) ? c_.I64(std::max<int64_t>(wide.int_value(), 0))
                                         : ir::Max(wide, c_.I64(0)));
    }
    const ir::Buffer copy = c_.NewBuffer(buffer->name, buffer->type, extents, buffer->scope);
    saved_.emplace_back(buffer, Copy(buffer));
    buffers_[buffer] = copy;
    return copy;
  }

  ir::Buffer Copy(ir::Buffer buffer) const {
    const auto it = buffers_.find(buffer);
    return it != buffers_.end() ? it->second : ir::Buffer();
  }
  ir::Buffer Current(ir::Buffer buffer) override { return Copy(buffer) ? Copy(buffer) : buffer; }

  // `body` in the scope of the innermost copies, which end. What it does not use is not allocated.
  Stmt WithCopies(Stmt body, const std::vector<ir::Buffer>& copies) {
    for (size_t i = copies.size(); i-- > 0;) {
      const bool stored = ir::AnyStmt(
          body, [&](Stmt s) { return s.Is(StmtKind::kStore) && s.buffer() == copies[i]; });
      bool used = stored;
      if (!stored) {
        ir::ForEachExprIn(body, [&](Expr e) {
          used |= e.Is(ExprKind::kLoad) && ir::Buffer(e.buffer()) == copies[i];
        });
      }
      if (used) body = c_.Allocate(copies[i], body);
      const auto [buffer, before] = saved_.back();
      saved_.pop_back();
      if (before) {
        buffers_[buffer] = before;
      } else {
        buffers_.erase(buffer);
      }
    }
    return body;
  }

  Stmt User(const isl::ast_node& node) {
    const isl::ast_expr call = isl::manage(isl_ast_node_user_get_expr(node.get()));
    const isl::ast_expr callee = isl::manage(isl_ast_expr_op_get_arg(call.get(), 0));
    const isl::id id = isl::manage(isl_ast_expr_get_id(callee.get()));
    const Statement* statement = scop_.Find(isl_id_get_name(id.get()));
    POLYNAO_CHECK(statement != nullptr) << Text(call);
    absl::flat_hash_map<ir::Var, Expr> values = outer_;
    for (size_t i = 0; i < statement->iterators.size(); ++i) {
      values[statement->iterators[i]] =
          Value(isl::manage(isl_ast_expr_op_get_arg(call.get(), static_cast<int>(i) + 1)));
    }
    const Stmt code = InstanceCode(*statement, values, handler_);
    return ir::CloneWithFreshBindings(ir::Substitute(code, {}, buffers_));
  }

  Expr Value(const isl::ast_expr& e) override { return AstValue(e, names_, c_); }

  const Scop& scop_;
  const MarkedSchedule& schedule_;
  MarkHandler* const handler_;
  ir::Context& c_;
  AstNames names_;                            // parameters and loop variables of isl's
  absl::flat_hash_map<ir::Var, Expr> outer_;  // i64s of outer variables
  ir::BufferMap buffers_;                     // copies of private buffers
  std::vector<std::pair<ir::Buffer, ir::Buffer>> saved_;
  const LoopMark* innermost_ = nullptr;                  // met since the innermost loop began
  std::vector<std::vector<isl::ast_expr>> expressions_;  // of the handler's marks, by annotation
  absl::flat_hash_map<std::string, Expr> bound_;         // loops that the handler has bound
  const isl::ast_node* below_ = nullptr;                 // the mark that is being written
};

}  // namespace

Stmt WithTest(const Scop& scop, Stmt body) {
  const MarkedSchedule none;
  return AstEmitter(scop, none, nullptr).WithParameters([&] { return body; });
}

Stmt Generate(const Scop& scop, const MarkedSchedule& schedule, MarkHandler* handler) {
  return AstEmitter(scop, schedule, handler).Emit();
}

}  // namespace polynao::poly
