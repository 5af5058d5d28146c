// An operator says what it takes, what it computes (a plain-loop reference), and how it is
// written as a tensor expression with a schedule for each target.
#ifndef KERNELS_TE_OPERATOR_H_
#define KERNELS_TE_OPERATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/tensor.h"
#include "compiler/mapping/estimate.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "isa/bound.h"
#include "isa/machine.h"

namespace polynao::kernels {

// Sizes that a schedule may choose freely, by name: {"rows", 7}, {"tile", 4096}.
using ScheduleChoice = std::map<std::string, int64_t, std::less<>>;

// A schedule for an operator, and its cycles by the operator's cost model.
struct RankedSchedule {
  ScheduleChoice choice;
  double cycles = 0;
};

// The schedule that a case gets on a card.
struct ChosenSchedule {
  ScheduleChoice choice;  // empty if there is nothing to choose
  enum class By : uint8_t { kModel, kTuned, kCase, kSearch } by = By::kModel;
};

// One use of an operator:
//   nao run OP --shape=SHAPE[,SHAPE..] --dtype=DTYPE --scalar=SCALAR --attr=NAME=VALUE ...
struct OperatorCase {
  std::string op;
  std::vector<int64_t> shape = {};  // of the first input
  // Of further inputs that need one: the filter of a convolution.
  std::vector<std::vector<int64_t>> operands = {};
  ir::Type dtype = ir::Type::kF16;
  // The operand of an operator that takes a number (Operator::scalar); its default if absent. The
  // operator takes it rounded to dtype.
  std::optional<double> scalar = std::nullopt;
  // Operator::attributes that differ from their defaults: {"stride", "2"}, {"out", "i8"}.
  std::map<std::string, std::string, std::less<>> attributes = {};
  // Choices that the user makes instead of the schedule: nao run ... --schedule rows=7.
  ScheduleChoice schedule = {};
  // This is true if the schedule of an earlier search is used (tuned.h) if there is one.
  bool use_tuned = true;
};

// A number or word that shapes an operator: --attr=stride=2.
struct OperatorAttribute {
  std::string name;
  std::string default_value;
  std::string doc;
  // The words that it may be; empty: a number (or the default).
  std::vector<std::string> words = {};
  // Numbers with colons between them, any count: "0:2".
  bool is_list = false;
};

struct TensorSpec {
  std::string name;
  ir::Type type;
  std::vector<int64_t> shape;
};

// An input, constant weights, that the host lays out before a run as an accelerator's program takes it.
struct HostLayout {
  size_t input = 0;
  std::string what;  // "lays out F by taps"
  std::function<ir::Tensor(const ir::Tensor&)> lay_out;
};

struct Operator {
  std::string name;
  std::string doc;  // "C = A + B, element by element"
  // The default of OperatorCase::scalar; absent if the operator takes none.
  std::optional<double> scalar;
  bool floats_only = false;
  // With floats_only: besides floats i8, whose results are rounded to the nearest, halves to even.
  bool takes_i8 = false;
  // Describes OperatorCase::shape and ::operands: {"input (H, W, CI)", "filter (CO, KH, KW, CI)"}.
  std::vector<std::string> shapes = {"any"};
  // Further OperatorCase::operands that a case may have.
  std::vector<std::string> optional_shapes = {};
  std::vector<OperatorAttribute> attributes = {};
  // Checks what else a case must fulfil; the message begins "operator conv2d, ...". Empty: nothing.
  std::function<absl::Status(const OperatorCase&)> check = {};
  // The relative error allowed on targets that compute with the processor's own math library (cpu,
  // c), in steps between neighbouring values of dtype at 1. The card and the interpreter agree with
  // the reference bit for bit. Integers agree everywhere.
  double tolerance_steps = 0;
  // Instead, on all targets: the difference allowed between floats, as a part of the largest
  // magnitude in the reference's output. For long sums, whose order a schedule may change.
  // Of bf16 a step of the type, which is more.
  double tolerance_of_largest = 0;
  // It holds on the card alone, whose cores share a sum; other targets add in order and agree bit for bit.
  bool only_card_reorders = false;
  // Of bf16 on processors whose instructions add several products (LowerForProcessor) in an order of their own, with
  // zeros for subnormal numbers: the difference allowed between sums, as a part of the largest magnitude. An output of
  // fewer bits, or of integers, may be one step off, too. 0: there are no such sums.
  double dots_tolerance = 0;
  // Inputs, then the output.
  std::function<std::vector<TensorSpec>(const OperatorCase&)> tensors;
  // Values for input `i`. Empty: random ones (MakeTensors).
  std::function<ir::Tensor(const OperatorCase&, size_t i, uint64_t seed)> input = {};
  // The least work of the case, for bound_cycles.
  std::function<isa::Work(const OperatorCase&)> work;
  // Computes the outputs from the inputs with plain loops that share nothing with the compiler.
  std::function<void(const OperatorCase&, absl::Span<const ir::Tensor> inputs,
                     absl::Span<ir::Tensor> outputs)>
      reference;
  // The same on processors (IsProcessor), if other: a product and its sum are rounded once there. Empty: `reference`.
  std::function<void(const OperatorCase&, absl::Span<const ir::Tensor> inputs,
                     absl::Span<ir::Tensor> outputs)>
      processor_reference = {};
  // The function for a target: parameters are the inputs, then the outputs. A parameter may have
  // another shape of as many elements (elementwise operators are one-dimensional).
  std::function<absl::StatusOr<ir::Function>(const OperatorCase&, const Target&)> build;
  // Which input `build` on an accelerator takes in another layout. Empty: none.
  std::function<HostLayout(const OperatorCase&)> host_layout = {};
  // The tensors of a case, from which all that runs is made: placeholders are the inputs, in order; the output is
  // returned. Empty: the operator is written together with its schedules.
  std::function<te::Tensor(te::Graph&, const OperatorCase&)> express = {};
  // Of which cases that name no schedule the function for the interpreter, loops, is made into instructions on an
  // accelerator (cases::ScheduleNest), in place of `build`. Empty: of none.
  std::function<bool(const OperatorCase&, const Target&)> loops_on_card = {};
  // The schedules that the operator chooses from on an accelerator, the first choice of its cost model
  // first. If OperatorCase::schedule names choices, only schedules that have them. Empty: no choice.
  std::function<absl::StatusOr<std::vector<RankedSchedule>>(const OperatorCase&, const Target&)>
      schedules = {};
  // The first of `schedules`, and any number of those that follow it, where these are found sooner than all. Or none,
  // if the first takes more cycles than `limit`.
  std::function<absl::StatusOr<std::vector<RankedSchedule>>(const OperatorCase&, const Target&,
                                                            double limit)>
      first_schedules = {};
  // Which of `schedules` `build` takes.
  std::function<absl::StatusOr<ChosenSchedule>(const OperatorCase&, const Target&)> choose = {};
  // Of a case that names all choices of one of `schedules`: what makes up its cycles, and the memory that it needs.
  std::function<absl::StatusOr<mapping::Estimate>(const OperatorCase&, const Target&)> estimate =
      {};
};

// Operator::loops_on_card, and the case names no schedule.
bool TakesLoops(const Operator& op, const OperatorCase& c, const Target& target);

// That an operator has other types than the case's, "f16 or f32" say; and whether a status is that error.
absl::Status WrongType(const OperatorCase& c, const std::string& expected);
bool IsWrongType(const absl::Status& status);

// Returns true if `choice` has all choices of `wanted`.
bool Agrees(const ScheduleChoice& choice, const ScheduleChoice& wanted);
// "rows=7 columns=14".
std::string ChoiceText(const ScheduleChoice& choice);

// The number that the operator takes in this case; 0 if it takes none.
double ScalarOf(const Operator& op, const OperatorCase& c);

// Computes the outputs that the operator has on `target`.
void ComputeReference(const Operator& op, const OperatorCase& c, const Target& target,
                      absl::Span<const ir::Tensor> inputs, absl::Span<ir::Tensor> outputs);

// The attribute's word, or its default.
const std::string& AttributeWord(const Operator& op, const OperatorCase& c, std::string_view name);
// The attribute as a whole number; absent if it is a word ("same").
std::optional<int64_t> AttributeInt(const Operator& op, const OperatorCase& c,
                                    std::string_view name);

// The attribute, a list of numbers; one that is not a number counts as 0 (FindOperator finds it).
std::vector<double> AttributeList(const Operator& op, const OperatorCase& c, std::string_view name);

// The relative error that values of the case may have on `target`.
double ToleranceOf(const Operator& op, const OperatorCase& c, const Target& target);

// Returns true if `actual` agrees with `expected` as the operator asks; `difference` is Compare's. Of a program that
// adds floats in another order than its operator (`is_reassociated`, of isa::Program) sums may differ by 1e-5 of the
// largest magnitude, what they are rounded to by two steps besides, and integers by one.
bool ValuesAgree(const Operator& op, const OperatorCase& c, const Target& target,
                 const ir::Tensor& expected, const ir::Difference& difference,
                 bool is_reassociated = false);

// The values of random inputs with which a run of the operator can be compared with its reference: all of them
// (ir::Values::kAll), or kFinite where the operator has a tolerance of the largest value (on some target, or on this).
// Where instructions change the order of sums, kExact: a product that is missing shows, however long the sum is.
ir::Values ValuesFor(const Operator& op);
ir::Values ValuesFor(const Operator& op, const OperatorCase& c, const Target& target,
                     bool is_reassociated = false);
// Whether Operator::dots_tolerance counts.
bool TakesDots(const Operator& op, const OperatorCase& c, const Target& target);

// Values for all inputs of a case: those of Operator::input, or random ones; zeros for the outputs.
std::vector<ir::Tensor> MakeTensors(const Operator& op, const OperatorCase& c, uint64_t seed,
                                    ir::Values values);

// Parses "56x56x256,128x3x3x256" into OperatorCase::shape and ::operands.
absl::Status ParseShapes(std::string_view text, OperatorCase& c);
// The same the other way round.
std::string ShapesText(const OperatorCase& c);

// Parses "255x27x27"; "" and "scalar" are the shape of one element without dimensions.
absl::StatusOr<std::vector<int64_t>> ParseShape(std::string_view text);
// "255x27x27".
std::string ShapeText(absl::Span<const int64_t> shape);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_OPERATOR_H_
