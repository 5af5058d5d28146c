#include "base/status.h"
#include "cases/case_text.h"
#include "tools/driver/commands.h"

namespace polynao::driver {

CLI::Option* AddCaseOptions(CLI::App& command, cases::CaseText& text) {
  CLI::Option* shape = command.add_option(
      "--shape", text.shape, "of an operator's inputs: 255x27x27, or 56x56x256,128x3x3x256");
  command.add_option("--dtype", text.dtype,
                     "element type of the inputs; default: the first of f16, f32, .. that operator "
                     "and target have");
  command.add_option("--scalar", text.scalar,
                     "the number that an operator takes (adds, ..., leaky_relu, clip)");
  command
      .add_option("--attr", text.attributes,
                  "attributes of an operator (nao list ops): --attr stride=2 --attr pad=0")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option("--schedule", text.schedule,
                  "sizes taken out of the schedule's hands (nao tune): --schedule tile=4096")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--case", text.table_case,
                     "a case of the TOPI table by its number, instead of a shape (nao list cases)");
  command.add_flag("--untuned", text.untuned,
                   "choose the schedule by the cost model even if a search has found one");
  return shape;
}

absl::Status CheckSearch(const cases::CaseText& text, std::string_view target,
                         std::string_view impl) {
  if (text.search == 0) return absl::OkStatus();
  if (target != "diannao") {
    return InvalidInput(
        "--search simulates programs of the card: expected --target=diannao, found --target=",
        target);
  }
  if (impl != "compiled") {
    return InvalidInput(
        "--search is among compiled programs: expected --impl=compiled, found --impl=", impl);
  }
  if (text.op.find('.') != std::string::npos) {
    return InvalidInput("--search is among the schedules of an operator: expected its name, found ",
                        text.op);
  }
  return absl::OkStatus();
}

void AddSearchOption(CLI::App& command, cases::CaseText& text) {
  command
      .add_option("--search", text.search,
                  "of an operator on the card: simulate as many schedules, the cheapest by the "
                  "cost model, and take the fastest")
      ->check(CLI::Range(1, 1'000'000));
}

}  // namespace polynao::driver
