#include "compiler/passes/flatten.h"

#include <limits>

#include "compiler/ir/flat_index.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;

class Flattener : public ir::Mutator {
 public:
  Flattener(Context& context, const FlattenOptions& options) : c_(context), options_(options) {}

  // `may_be_negative`: an extent of a parameter below 0 counts as 0, so that n = m = -1 make 0 elements
  // of f32[n, m], not 1. An allocation with one stops the program.
  Buffer NewBuffer(Buffer buffer, bool may_be_negative) {
    if (buffer->extents.size() == 1) return buffer;
    const Type type = IndexType(buffer);
    Expr count = c_.Int(type, 1);
    for (Expr extent : buffer->extents) {
      const Expr factor = ir::Typed(type, extent);
      count = ir::FoldedProduct(
          count, may_be_negative && !factor.IsConst() ? Max(factor, c_.Int(type, 0)) : factor);
    }
    const Buffer flat = c_.NewBuffer(buffer->name, buffer->type, {count}, buffer->scope);
    flat_[buffer] = flat;
    return flat;
  }

  Expr Mutate(Expr e) override {
    e = MutateOperands(e);
    if (!e.Is(ExprKind::kLoad) && !e.Is(ExprKind::kAddress)) return e;
    const Buffer buffer(e.buffer());
    auto it = flat_.find(buffer);
    if (it == flat_.end()) return e;
    const Expr index = FlatIndex(buffer, e.operands());
    return e.Is(ExprKind::kLoad) ? c_.Load(it->second, {index}) : c_.Address(it->second, {index});
  }

  Stmt Mutate(Stmt s) override {
    if (s.Is(StmtKind::kFor) && s.for_kind() == ir::ForKind::kThread) {
      ++threads_;
      s = MutateChildren(s);
      --threads_;
      return s;
    }
    if (s.Is(StmtKind::kAllocate)) {
      const bool keep = options_.keep_private && threads_ > 0 && s.buffer()->scope != "shared";
      const Buffer flat = keep ? s.buffer() : NewBuffer(s.buffer(), false);
      const Stmt body = Mutate(s.body());
      return flat == s.buffer() && body == s.body() ? s : c_.Allocate(flat, body);
    }
    s = MutateChildren(s);
    if (!s.Is(StmtKind::kStore)) return s;
    auto it = flat_.find(s.buffer());
    if (it == flat_.end()) return s;
    return c_.Store(it->second, {FlatIndex(s.buffer(), s.indices())}, s.value());
  }

 private:
  static Type IndexType(Buffer buffer) {
    double count = 1;
    for (Expr extent : buffer->extents) {
      if (extent.Is(ExprKind::kIntImm)) {
        count *= static_cast<double>(extent.int_value());
      } else if (extent.type() == Type::kI64) {
        return Type::kI64;
      }
    }
    return count > std::numeric_limits<int32_t>::max() ? Type::kI64 : Type::kI32;
  }

  // In i64 if an index has that type, or if the buffer needs it.
  Expr FlatIndex(Buffer buffer, absl::Span<const Expr> indices) {
    Type type = IndexType(buffer);
    for (Expr index : indices) {
      if (index.type() == Type::kI64) type = Type::kI64;
    }
    return ir::FlatIndex(buffer.node(), indices, type);
  }

  Context& c_;
  const FlattenOptions options_;
  ir::BufferMap flat_;
  int threads_ = 0;  // loops around
};

}  // namespace

absl::StatusOr<bool> Flatten(ir::Function& function, const FlattenOptions& options) {
  Flattener flattener(*function.context, options);
  bool changed = false;
  for (ir::Param& param : function.params) {
    if (!param.buffer) continue;
    const Buffer flat = flattener.NewBuffer(param.buffer, true);
    changed = changed || flat != param.buffer;
    param.buffer = flat;
  }
  const Stmt body = flattener.Mutate(function.body);
  changed = changed || body != function.body;
  function.body = body;
  return changed;
}

PassInfo FlattenPass() {
  return WithOptions<FlattenOptions>(
      {.name = "flatten", .doc = "gives every buffer one dimension"},
      {BoolOption("keep_private", &FlattenOptions::keep_private,
                  "leave the dimensions of what a GPU's threads allocate")},
      FixedDefaults, [](ir::Function& function, const PassEnvironment&, FlattenOptions options) {
        return Flatten(function, options);
      });
}

}  // namespace polynao
