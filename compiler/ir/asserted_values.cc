#include "compiler/ir/asserted_values.h"

#include <isl/ctx.h>
#include <isl/options.h>
#include <isl/point.h>
#include <isl/set.h>
#include <isl/val.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/text.h"
#include "compiler/ir/type.h"

namespace polynao::ir {
namespace {

// Of isl, by its own count: less than a second.
constexpr unsigned long kMaxOperations = 200'000;

struct Free {
  void operator()(isl_ctx* context) const { isl_ctx_free(context); }
  void operator()(isl_set* set) const { isl_set_free(set); }
};
using ContextPtr = std::unique_ptr<isl_ctx, Free>;
using SetPtr = std::unique_ptr<isl_set, Free>;

// Conditions in isl's notation, over variables x0, x1, ..
class Writer {
 public:
  explicit Writer(absl::Span<const Var> vars) : vars_(vars) {}

  // None for what is not affine.
  std::optional<std::string> Truth(Expr e) const {
    const bool is_and = e.Is(ExprKind::kAnd);
    if (is_and || e.Is(ExprKind::kOr)) {
      return Joined("(", Truth(e.operand(0)), is_and ? " and " : " or ", Truth(e.operand(1)), ")");
    }
    if (e.Is(ExprKind::kNot)) return Joined("(not ", Truth(e.operand(0)), "", "", ")");
    if (e.Is(ExprKind::kIntImm)) return StrCat("(0 = ", e.int_value() != 0 ? 0 : 1, ")");
    if (IsComparison(e.kind()) && IsInt(e.operand(0).type())) {
      const char* mark = e.Is(ExprKind::kEq)   ? " = "
                         : e.Is(ExprKind::kNe) ? " != "
                         : e.Is(ExprKind::kLt) ? " < "
                                               : " <= ";
      return Joined("(", Value(e.operand(0)), mark, Value(e.operand(1)), ")");
    }
    return Joined("(", Value(e), " = 1", "", ")");
  }

 private:
  using Text = std::optional<std::string>;

  static Text Joined(std::string_view open, const Text& a, std::string_view mark, const Text& b,
                     std::string_view close) {
    if (!a || !b) return std::nullopt;
    return StrCat(open, *a, mark, *b, close);
  }

  Text Value(Expr e) const {
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return StrCat("(", IntText(e.type(), e.int_value()), ")");
      case ExprKind::kVar: {
        const auto at = std::find(vars_.begin(), vars_.end(), e);
        if (at == vars_.end()) return std::nullopt;
        return StrCat("x", at - vars_.begin());
      }
      case ExprKind::kCast:
        if (!IsInt(e.operand(0).type()) || !IsInt(e.type()) || e.type() == Type::kI1) break;
        return Value(e.operand(0));
      case ExprKind::kAdd:
      case ExprKind::kSub:
        return Joined("(", Value(e.operand(0)), e.Is(ExprKind::kAdd) ? " + " : " - ",
                      Value(e.operand(1)), ")");
      case ExprKind::kMul:
        // isl reads numbers in front only, without parentheses.
        for (const int number : {0, 1}) {
          const Expr factor = e.operand(number);
          if (!factor.Is(ExprKind::kIntImm)) continue;
          return Joined("(", IntText(factor.type(), factor.int_value()), " * ",
                        Value(e.operand(1 - number)), ")");
        }
        break;
      case ExprKind::kDiv:
      case ExprKind::kMod: {
        const Expr divisor = e.operand(1);
        if (!divisor.Is(ExprKind::kIntImm) || divisor.int_value() <= 0) break;
        const std::string number = IntText(divisor.type(), divisor.int_value());
        if (e.Is(ExprKind::kDiv)) return Joined("floor(", Value(e.operand(0)), "/", number, ")");
        return Joined("(", Value(e.operand(0)), " mod ", number, ")");
      }
      case ExprKind::kMin:
        return Joined("min(", Value(e.operand(0)), ", ", Value(e.operand(1)), ")");
      case ExprKind::kMax:
        return Joined("max(", Value(e.operand(0)), ", ", Value(e.operand(1)), ")");
      default:
        break;
    }
    return std::nullopt;
  }

  const absl::Span<const Var> vars_;
};

// The least or the greatest element of a set { [x] }, as an integer of `type`; none if it has no elements.
std::optional<int64_t> End(SetPtr set, Type type, bool is_least) {
  if (!set || isl_set_is_empty(set.get()) != isl_bool_false) return std::nullopt;
  isl_set* end = is_least ? isl_set_lexmin(set.release()) : isl_set_lexmax(set.release());
  isl_point* point = isl_set_sample_point(end);
  isl_val* value = isl_point_get_coordinate_val(point, isl_dim_set, 0);
  isl_point_free(point);
  std::optional<int64_t> result;
  if (char* text = value == nullptr ? nullptr : isl_val_to_str(value)) {
    result = IsUnsigned(type) ? static_cast<int64_t>(std::strtoull(text, nullptr, 10))
                              : std::strtoll(text, nullptr, 10);
    std::free(text);
  }
  isl_val_free(value);
  return result;
}

}  // namespace

std::optional<std::vector<int64_t>> NearestValues(absl::Span<const Expr> conditions,
                                                  absl::Span<const Var> vars,
                                                  absl::Span<const int64_t> wanted) {
  std::string names, holds = "true";
  for (size_t i = 0; i < vars.size(); ++i) {
    const Type type = vars[i].type();
    const bool is_truth = type == Type::kI1;
    StrAppend(&names, i > 0 ? ", x" : "x", i);
    StrAppend(&holds, " and ", is_truth ? "0" : IntText(type, LeastInt(type)), " <= x", i,
              " <= ", is_truth ? "1" : IntText(type, GreatestInt(type)));
  }
  const Writer writer(vars);
  for (const Expr condition : conditions) {
    if (const auto text = writer.Truth(condition)) StrAppend(&holds, " and ", *text);
  }
  const ContextPtr context(isl_ctx_alloc());
  isl_options_set_on_error(context.get(), ISL_ON_ERROR_CONTINUE);
  isl_ctx_set_max_operations(context.get(), kMaxOperations);
  SetPtr set(
      isl_set_read_from_str(context.get(), StrCat("{ [", names, "] : ", holds, " }").c_str()));
  std::vector<int64_t> values;
  for (size_t i = 0; i < vars.size(); ++i) {
    const Type type = vars[i].type();
    const auto number = [&](int64_t value) {
      return isl_val_read_from_str(context.get(), IntText(type, value).c_str());
    };
    // The values of this variable beside those of the ones before it.
    isl_set* own =
        isl_set_project_out(isl_set_copy(set.get()), isl_dim_set, i + 1, vars.size() - i - 1);
    const SetPtr line(isl_set_project_out(own, isl_dim_set, 0, i));
    const auto above = End(SetPtr(isl_set_lower_bound_val(isl_set_copy(line.get()), isl_dim_set, 0,
                                                          number(wanted[i]))),
                           type, /*is_least=*/true);
    const auto below = End(SetPtr(isl_set_upper_bound_val(isl_set_copy(line.get()), isl_dim_set, 0,
                                                          number(wanted[i]))),
                           type, /*is_least=*/false);
    if (!above && !below) return std::nullopt;
    const auto distance = [&](int64_t value) {
      const uint64_t difference = static_cast<uint64_t>(value) - static_cast<uint64_t>(wanted[i]);
      return std::min(difference, ~difference + 1);
    };
    values.push_back(!below || (above && distance(*above) <= distance(*below)) ? *above : *below);
    set = SetPtr(isl_set_fix_val(set.release(), isl_dim_set, i, number(values[i])));
  }
  return values;
}

}  // namespace polynao::ir
