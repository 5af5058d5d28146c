// Operator cases in the words of the command line.
#ifndef CASES_CASE_TEXT_H_
#define CASES_CASE_TEXT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/type.h"
#include "compiler/target/target.h"
#include "kernels/operators.h"

namespace polynao::cases {

// A case in the words of the command line.
struct CaseText {
  std::string op;          // "add"; where a file may stand too: FILE.nir
  std::string shape;       // "255x27x27", "56x56x256,128x3x3x256"
  std::string dtype = {};  // empty: the first one that operator and target have (FirstType)
  std::optional<double> scalar = {};
  std::vector<std::string> attributes = {};  // "stride=2"
  // "tile=4096", "rows=7 columns=14", or a file with a line for the case (kernels::FindSchedule).
  std::vector<std::string> schedule = {};
  // Other machines than the target's run the case: its schedule is not looked for there.
  bool any_machine = false;
  bool untuned = false;  // OperatorCase::use_tuned
  int search = 0;        // SearchSchedule's `count`; 0: none
  // A case of the TOPI table, by its number, instead of a shape, a type and attributes.
  std::optional<int> table_case = {};
};

// The first of f16, f32, bf16, f64, i8, i16, i32, i64, u8, u16, u32, u64 and i1 that the operator of the case has on
// `target` with these shapes and attributes; f16 if it has none (to build it then says why).
ir::Type FirstType(kernels::OperatorCase c, const Target& target);

// The case of `text`, whose type is FirstType's for `target` if the text names none. Errors: a shape, a
// type or an attribute that is none; a schedule that the case does not have on `target`. Whether there is such an
// operator is for FindOperator to say.
absl::StatusOr<kernels::OperatorCase> ParseCase(const CaseText& text, const Target& target = {});

// The same, where text.table_case may name a case of the table: those of all its functions.
absl::StatusOr<std::vector<kernels::OperatorCase>> ParseCases(const CaseText& text,
                                                              const Target& target = {});

}  // namespace polynao::cases

#endif  // CASES_CASE_TEXT_H_
