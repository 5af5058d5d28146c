#include "compiler/codegen/c/emit_c.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/c/function_emitter.h"
#include "compiler/codegen/c/independent_iterations.h"
#include "compiler/codegen/c/prelude.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

// An allocation of constant size up to this many bytes is an array on the stack, as long as the arrays
// that are live together stay within the second limit.
constexpr int64_t kMaxStackAllocation = int64_t{16} << 10;
constexpr int64_t kMaxStack = int64_t{128} << 10;
constexpr int64_t kMaxUnroll = 64;

class CFunctionEmitter : public FunctionEmitter {
 public:
  explicit CFunctionEmitter(const ir::Function& function) : FunctionEmitter(function, "c", true) {}

  // The declaration of `callee`, whose meaning without its result this emits; with what it does, if
  // that is known.
  absl::StatusOr<std::string> EmitExtern(const ir::ExternNode& callee) {
    if (callee.value) CollectUses(callee.value);
    CollectUses();
    for (const ir::Param& param : callee.params) {
      if (param.buffer && param.access != ir::Access::kIn) stored_.insert(param.buffer.node());
    }
    const std::string parameters = absl::StrJoin(Parameters(" *", " *"), ", ");
    const std::string head =
        StrCat(callee.result ? ValueType(*callee.result) : "void", " ", callee.name, "(",
               parameters.empty() ? "void" : parameters, ")");
    if (!ir::HasMeaning(callee)) return StrCat(head, ";  // ", ir::EffectName(callee.effect), "\n");
    Line(StrCat("static ", head, " {"));
    ++indent_;
    for (const ir::Param& param : callee.params)
      Line(StrCat("(void)", names_.at(NodeOf(param)), ";"));
    for (const ir::Param& param : callee.params) {
      if (param.buffer) RETURN_IF_ERROR(EmitExtents(param.buffer));
    }
    if (callee.value) {
      ASSIGN_OR_RETURN(const Text value, Operand(callee.value, false));
      Line(StrCat("return ", value.text, ";"));
    } else {
      RETURN_IF_ERROR(EmitStmt(function_.body));
    }
    --indent_;
    Line("}");
    return Lines();
  }

  absl::StatusOr<std::string> Emit() {
    Line(StrCat("// ", SignatureText(function_)));
    CollectUses();
    // Few parameters stand on one line, many on one line each.
    const bool many = function_.params.size() > 3;
    const std::string parameters =
        absl::StrJoin(Parameters(" *", " *restrict "), many ? ",\n    " : ", ");
    const std::string name = CName(function_.name);
    Line(StrCat("void ", name, many ? "(\n    " : "(", parameters.empty() ? "void" : parameters,
                ") {"));
    ++indent_;
    for (const ir::Param& param : function_.params) {
      const void* node = NodeOf(param);
      if (!used_.contains(node)) Line(StrCat("(void)", names_.at(node), ";"));
    }
    for (const ir::Param& param : function_.params) {
      if (param.buffer) RETURN_IF_ERROR(EmitExtents(param.buffer));
    }
    RETURN_IF_ERROR(EmitStmt(function_.body));
    --indent_;
    Line("}");
    Line("");
    EmitRawEntry(name);
    return Lines();
  }

 private:
  static const void* NodeOf(const ir::Param& param) {
    if (param.buffer) return param.buffer.node();
    return param.var.node();
  }

  absl::Status EmitFor(Stmt s) override {
    const bool parallel = s.for_kind() == ForKind::kParallel && !in_parallel_ && !in_simd_;
    const bool simd =
        s.for_kind() == ForKind::kVectorize && !in_simd_ && IterationsAreIndependent(s, aliases_);
    std::vector<std::string> pragmas;
    if (parallel) pragmas.push_back("#pragma omp parallel for");
    if (simd) pragmas.push_back("#pragma omp simd");
    if (s.for_kind() == ForKind::kUnroll && s.extent().Is(ExprKind::kIntImm) &&
        s.extent().int_value() > 1 && s.extent().int_value() <= kMaxUnroll) {
      pragmas.push_back(StrCat("#pragma GCC unroll ", s.extent().int_value()));
    }
    in_parallel_ |= parallel;
    in_simd_ |= simd;
    RETURN_IF_ERROR(EmitLoop(
        s, pragmas, s.for_kind() == ForKind::kThread ? StrCat("  // thread axis ", s.name()) : ""));
    if (parallel) in_parallel_ = false;
    if (simd) in_simd_ = false;
    return absl::OkStatus();
  }

  absl::Status EmitAllocate(Stmt s) override {
    const Buffer buffer = s.buffer();
    if (!used_.contains(buffer.node())) return EmitStmt(s.body());
    RETURN_IF_ERROR(EmitExtents(buffer));
    const std::string_view type = MemoryType(buffer->type);
    std::vector<std::string> factors;
    int64_t elements = 1;
    bool constant = true;
    for (Expr extent : buffer->extents) {
      ASSIGN_OR_RETURN(const Text text, Operand(extent, true));
      factors.push_back(text.At(kUnary));
      constant &= extent.Is(ExprKind::kIntImm);
      if (constant &&
          __builtin_mul_overflow(elements, std::max<int64_t>(extent.int_value(), 0), &elements)) {
        constant = false;
      }
    }
    const int64_t bytes = elements * ir::ByteSize(buffer->type);
    const std::string name = Bind(buffer.node(), buffer->name);
    const std::string scope = buffer->scope.empty() ? "" : StrCat("  // ", buffer->scope);
    if (constant && bytes <= kMaxStackAllocation && stack_used_ + bytes <= kMaxStack) {
      std::string product;
      for (const std::string& factor : factors)
        StrAppend(&product, product.empty() ? "" : " * ", factor);
      if (elements == 0 || factors.empty()) product = "1";
      Line(StrCat("_Alignas(64) ", type, " ", name, "[", product, "];", scope));
      if (!read_.contains(buffer.node())) Line(StrCat("(void)", name, ";"));
      stack_used_ += bytes;
      RETURN_IF_ERROR(EmitStmt(s.body()));
      stack_used_ -= bytes;
      Unbind(name);
      return absl::OkStatus();
    }
    std::string product = "(int64_t)sizeof(";
    StrAppend(&product, type, ")");
    for (const std::string& factor : factors) StrAppend(&product, " * ", factor);
    Line(StrCat(type, " *restrict ", name, " = nao_allocate(", product, ");", scope));
    RETURN_IF_ERROR(EmitStmt(s.body()));
    Line(StrCat("free(", name, ");"));
    Unbind(name);
    return absl::OkStatus();
  }

  void EmitRawEntry(const std::string& name) {
    Line(StrCat("int32_t ", name, "_entry(void *const *buffers, const int64_t *scalars) {"));
    ++indent_;
    int buffers = 0;
    int scalars = 0;
    std::string arguments;
    for (const ir::Param& param : function_.params) {
      StrAppend(&arguments, arguments.empty() ? "" : ", ");
      if (param.buffer) {
        StrAppend(&arguments, "buffers[", buffers++, "]");
      } else if (ir::IsFloat(param.var.type())) {
        StrAppend(&arguments, "(", ValueType(param.var.type()), ")nao_f64_of_bits(scalars[",
                  scalars++, "])");
      } else {
        StrAppend(&arguments, "(", ValueType(param.var.type()), ")scalars[", scalars++, "]");
      }
    }
    if (buffers == 0) Line("(void)buffers;");
    if (scalars == 0) Line("(void)scalars;");
    Line(StrCat(name, "(", arguments, ");"));
    Line("return 0;");
    --indent_;
    Line("}");
  }

  int64_t stack_used_ = 0;
  bool in_parallel_ = false;
  bool in_simd_ = false;
};

// The extern functions that `functions` call.
absl::StatusOr<std::string> EmitExterns(absl::Span<const ir::Function> functions) {
  std::string text;
  absl::flat_hash_map<std::string, std::string> declared;  // texts by names
  for (const ir::Function& function : functions) {
    for (const ir::ExternNode* callee : ir::ExternsOf(function)) {
      const auto [it, is_new] = declared.emplace(callee->name, callee->text);
      if (!is_new && it->second == callee->text) continue;
      if (!is_new) {
        return InvalidInput("two extern functions of this file are called '", callee->name, "'");
      }
      if (CName(callee->name) != callee->name) {
        return InvalidInput("an extern function must not be called '", callee->name,
                            "', which is a word of C or a name that emitted text uses");
      }
      ir::Function shell{.name = callee->name,
                         .params = callee->params,
                         .attributes = {},
                         .body = callee->body ? callee->body : callee->context->Nop(),
                         .context = function.context};
      ASSIGN_OR_RETURN(const std::string one, CFunctionEmitter(shell).EmitExtern(*callee));
      StrAppend(&text, ir::HasMeaning(*callee) ? "\n" : "", one);
    }
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> EmitC(absl::Span<const ir::Function> functions) {
  std::string body;
  absl::flat_hash_set<std::string> names;
  for (const ir::Function& function : functions) RETURN_IF_ERROR(ir::Verify(function));
  ASSIGN_OR_RETURN(const std::string externs, EmitExterns(functions));
  if (!externs.empty()) body = StrCat("\n", externs);
  for (const ir::Function& function : functions) {
    for (const ir::ExternNode* callee : ir::ExternsOf(function)) names.insert(callee->name);
  }
  for (const ir::Function& function : functions) {
    for (const std::string& name : {CName(function.name), StrCat(CName(function.name), "_entry")}) {
      if (!names.insert(name).second) {
        return InvalidInput("two functions of this file would be called '", name, "'");
      }
    }
    ASSIGN_OR_RETURN(const std::string text, CFunctionEmitter(function).Emit());
    StrAppend(&body, "\n", text);
  }
  return StrCat(CPrelude(body), body);
}

absl::StatusOr<std::string> EmitC(const ir::Function& function) {
  return EmitC(absl::Span<const ir::Function>(&function, 1));
}

}  // namespace polynao::codegen
