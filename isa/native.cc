#include "isa/native.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/ir/flat_index.h"
#include "isa/native_nest.h"

namespace polynao::isa {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;

// Integer statements without loops.
class ScalarRoutine : public NativeRoutine {
 public:
  static std::unique_ptr<ScalarRoutine> Create(Stmt body, const IntExpression::Resolver& resolver) {
    auto routine = std::make_unique<ScalarRoutine>();
    if (!routine->Add(body, resolver, routine->steps_)) return nullptr;
    return routine;
  }

  bool Run(const IntInputs& inputs) const override {
    // On a zero divisor the interpreter runs the instruction again and reports the error, so nothing may have
    // been stored before.
    return RunSteps(steps_, inputs);
  }

 private:
  struct Step {
    IntExpression value;  // of a store, or the condition of an if
    bool is_store = false;
    int buffer = 0;
    Type type = Type::kI64;
    IntExpression index;
    std::vector<Step> then_steps, else_steps;
  };

  static bool Compile(Expr e, const IntExpression::Resolver& resolver, IntExpression* out) {
    absl::StatusOr<IntExpression> compiled = IntExpression::Compile(e, resolver);
    if (!compiled.ok()) return false;
    *out = *std::move(compiled);
    return true;
  }

  static bool Add(Stmt s, const IntExpression::Resolver& resolver, std::vector<Step>& steps) {
    Step step;
    switch (s.kind()) {
      case StmtKind::kSeq:
        // A division by zero must not leave half of the stores done.
        if (s.children().size() > 1) return false;
        return std::all_of(s.children().begin(), s.children().end(),
                           [&](Stmt child) { return Add(child, resolver, steps); });
      case StmtKind::kStore: {
        const absl::StatusOr<IntExpression::Source> buffer = resolver.load(s.buffer().node());
        if (!buffer.ok()) return false;
        step.is_store = true;
        step.buffer = buffer->index;
        step.type = s.buffer()->type;
        if (!Compile(s.value(), resolver, &step.value) ||
            !Compile(FlatIndex(s.buffer().node(), s.indices()), resolver, &step.index)) {
          return false;
        }
        break;
      }
      case StmtKind::kIf:
        if (!Compile(s.cond(), resolver, &step.value) ||
            !Add(s.then_case(), resolver, step.then_steps) ||
            !Add(s.else_case(), resolver, step.else_steps)) {
          return false;
        }
        break;
      default:
        return false;
    }
    steps.push_back(std::move(step));
    return true;
  }

  static bool RunSteps(const std::vector<Step>& steps, const IntInputs& inputs) {
    for (const Step& step : steps) {
      int64_t value = 0;
      if (!step.value.Evaluate(inputs, &value)) return false;
      if (step.is_store) {
        int64_t index = 0;
        if (!step.index.Evaluate(inputs, &index)) return false;
        ir::StoreInt(step.type, inputs.buffers[step.buffer] + index * ByteSize(step.type), value);
      } else if (!RunSteps(value != 0 ? step.then_steps : step.else_steps, inputs)) {
        return false;
      }
    }
    return true;
  }

  std::vector<Step> steps_;
};

}  // namespace

std::unique_ptr<NativeRoutine> NativeRoutine::Create(const Instruction& instruction,
                                                     const IntExpression::Resolver& resolver) {
  if (auto scalar = ScalarRoutine::Create(instruction.meaning.body, resolver)) return scalar;
  return native::CreateNestRoutine(instruction, resolver);
}

}  // namespace polynao::isa
