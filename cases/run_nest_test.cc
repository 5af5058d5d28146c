#include "cases/run_nest.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/text.h"
#include "compiler/poly/arrange/machine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/processor/processor.h"
#include "nlohmann/json.hpp"

namespace polynao::cases {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kScale[] = R"(
func scale(A: f64[n, m] in, B: f64[n, m] out, n: i32, m: i16, factor: f64) {
  parallel (i, 0, n) {
    for (j: i16, 0, m) { B[i, j] = A[i, j] * factor + A[i, j] }
  }
})";

NestSettings Settings(const std::string& target) {
  NestSettings settings;
  settings.executable.target = target;
  settings.schedule = "none";
  settings.arguments = {"n=5", "m=7", "factor=0.3"};
  settings.timing.seconds = 0;
  return settings;
}

absl::StatusOr<NestReport> RunText(const NestSettings& settings, const char* text = kScale) {
  return RunNest(*ir::ParseFunction(text), settings);
}

std::string Error(std::vector<std::string> arguments) {
  NestSettings settings = Settings("interp");
  settings.arguments = std::move(arguments);
  return std::string(RunText(settings).status().message());
}

TEST(RunNestTest, AgreesWithTheInterpreterOnEveryTarget) {
  for (const char* target : {"cpu", "c", "cuda"}) {
    const absl::StatusOr<NestReport> report = RunText(Settings(target));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->ok()) << report->difference;
    EXPECT_EQ(report->compared_with, "the interpreter");
    EXPECT_EQ(report->tolerance, 0) << target;
    EXPECT_EQ(report->times.has_value(), std::string(target) != "cuda");
    if (report->times) EXPECT_GE(report->times->runs, 3);
    const nlohmann::ordered_json json = report->ToJson();
    EXPECT_EQ(json["target"], target);
    EXPECT_EQ(json["ok"], true);
    EXPECT_EQ(json["arguments"]["m"], "7");
    EXPECT_THAT(report->ToText(), HasSubstr("n=5 m=7 factor=0.3: values agree"));
  }
}

TEST(RunNestTest, ValuesAreNotCheckedIfNobodyAsks) {
  NestSettings settings = Settings("interp");
  settings.check_values = false;
  const absl::StatusOr<NestReport> report = RunText(settings);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->compared_with, "");
  EXPECT_THAT(report->ToText(), HasSubstr("values not compared, since --no-check was given"));
  EXPECT_THAT(report->ToText(), Not(HasSubstr("agree")));
  const nlohmann::ordered_json json = report->ToJson();
  EXPECT_TRUE(json["ok"].is_null());
  EXPECT_EQ(json["values_checked"], false);
  EXPECT_EQ(json["not_compared_because"], "since --no-check was given");
}

TEST(RunNestTest, TheReferenceOfACallerDoesNotRunIfNobodyAsks) {
  const absl::StatusOr<ir::Function> function =
      ir::ParseFunction("func f(A: f32[8] in, B: f32[8] out) { for (i, 0, 8) { B[i] = A[i] } }");
  ASSERT_TRUE(function.ok()) << function.status();
  NestSettings settings = Settings("interp");
  settings.arguments = {};
  for (const bool check : {true, false}) {
    absl::StatusOr<ir::RandomArguments> arguments = NestArguments(*function, settings);
    ASSERT_TRUE(arguments.ok()) << arguments.status();
    int runs = 0;  // it stores nothing, so that values differ where they are compared
    settings.check_values = check;
    const absl::StatusOr<NestReport> report =
        RunNest(*function,
                {.arguments = &*arguments,
                 .name = "nothing",
                 .run = [&](absl::Span<const ir::Argument>) { ++runs; }},
                settings);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(runs, check ? 1 : 0);
    EXPECT_EQ(report->ok(), !check);
    EXPECT_EQ(report->compared_with, check ? "nothing" : "");
  }
}

TEST(RunNestTest, TheInterpreterIsNotComparedWithItself) {
  const absl::StatusOr<NestReport> report = RunText(Settings("interp"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->compared_with, "");
  EXPECT_THAT(report->ToText(), HasSubstr("values not compared, since they are"));
}

TEST(RunNestTest, SchedulesAgreeOnEveryTarget) {
  constexpr char kProduct[] = R"(
func product(A: f64[n, n] in, B: f64[n, n] in, C: f64[n, n], n: i32) {
  for (i, 0, n) { for (j, 0, n) { for (k, 0, n) { C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }
})";
  for (const char* target : {"cpu", "c", "interp"}) {
    for (const char* schedule : {"auto", "min", "smart", "max"}) {
      NestSettings settings = Settings(target);
      settings.schedule = schedule;
      settings.arguments = {"n=37"};
      const absl::StatusOr<NestReport> report = RunText(settings, kProduct);
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_EQ(report->difference, "") << schedule;
      EXPECT_EQ(report->compared_with, "the interpreter");
      EXPECT_FALSE(report->notes.empty());
    }
  }
}

// In-place updates are run several times, on the same values each time.
TEST(RunNestTest, RunsBeginWithTheSameValues) {
  NestSettings settings = Settings("cpu");
  settings.arguments = {"n=9"};
  const absl::StatusOr<NestReport> report =
      RunText(settings, "func f(A: f32[n], n: i32) { for (i, 0, n) { A[i] = A[i] * 3.0 + 1.0 } }");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->difference, "");
}

TEST(RunNestTest, FloatRulesAndLibraryFunctionsGetATolerance) {
  NestSettings settings = Settings("cpu");
  settings.executable.float_rules.contract = true;
  EXPECT_EQ(RunText(settings)->tolerance, 1e-9);
  settings = Settings("cpu");
  settings.arguments = {};
  const absl::StatusOr<NestReport> report =
      RunText(settings, "func f(A: f32[5]) { for (i, 0, 5) { A[i] = exp(A[i]) } }");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->tolerance, 1e-4);
  EXPECT_TRUE(report->ok()) << report->difference;
}

// Sums of bf16 keep their order unless the nest, or whoever runs it, says otherwise.
TEST(RunNestTest, DotProductsOfFloatsAreForThoseWhoAllowThem) {
  const std::string nest =
      "func f(A: bf16[n, n] in, B: bf16[n, n] in, C: f32[n, n], n: i32) {\n"
      "  for (i, 0, n) { for (j, 0, n) { for (k, 0, n) {\n"
      "    C[i, j] = C[i, j] + cast(f32, A[i, k]) * cast(f32, B[k, j]) } } }\n}\n";
  NestSettings settings = Settings("cpu");
  settings.schedule = "auto";
  settings.arguments = {"n=130"};
  const auto notes = [&](const std::string& text) {
    const absl::StatusOr<NestReport> report = RunText(settings, text.c_str());
    EXPECT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->ok()) << report->difference;
    EXPECT_EQ(report->tolerance > 0,
              settings.executable.float_rules.dots || text.starts_with("@dots"));
    return absl::StrJoin(report->notes, "\n");
  };
  // On tiles, or where an instruction of two products takes less than two multiply-adds.
  const poly::CpuMachine machine = poly::HostMachine(2).value();
  bool has_row = false;
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
    if (row.IsExact() || !isa::HostHas(row.feature)) continue;
    const bool is_faster = machine.rates.CyclesOf(row) < 2 * machine.rates.operation;
    has_row |= row.IsTile() || is_faster;
  }
  EXPECT_EQ(notes(nest).find("bf16ps"), std::string::npos);
  EXPECT_EQ(notes("@dots " + nest).find("bf16ps") != std::string::npos, has_row);
  settings.executable.float_rules.dots = true;
  EXPECT_EQ(notes(nest).find("bf16ps") != std::string::npos, has_row);
}

TEST(RunNestTest, AllKindsOfValues) {
  for (const char* values : {"uniform", "exact", "finite", "all"}) {
    NestSettings settings = Settings("cpu");
    settings.values = values;
    const absl::StatusOr<NestReport> report = RunText(settings);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->ok()) << values << ": " << report->difference;
  }
  NestSettings settings = Settings("cpu");
  settings.values = "some";
  EXPECT_EQ(RunText(settings).status().message(),
            "--values: expected uniform, exact, finite or all, found 'some'");
}

// The process goes on, on every target.
TEST(RunNestTest, WhatStopsTheFunctionIsAnError) {
  for (const char* target : {"cpu", "c", "cuda", "interp"}) {
    for (const char* schedule : {"none", "auto"}) {
      NestSettings settings = Settings(target);
      settings.schedule = schedule;
      settings.arguments = {"n=5", "k=0"};
      EXPECT_THAT(std::string(RunText(settings, R"(
func divides(A: i32[n], n: i32, k: i32) { for (i, 0, n / k) { A[i] = 1 } })")
                                  .status()
                                  .message()),
                  HasSubstr("division by zero"))
          << target;
      settings.arguments = {"n=5", "k=50000000"};
      EXPECT_THAT(std::string(RunText(settings, R"(
func beyond(A: i32[n], n: i32, k: i32) { for (i, 0, n) { A[i + k] = 1 } })")
                                  .status()
                                  .message()),
                  HasSubstr("50000000"))
          << target;
    }
  }
}

TEST(RunNestTest, LongFunctionsAreNotInterpreted) {
  for (const char* schedule : {"none", "auto"}) {
    NestSettings settings = Settings("cpu");
    settings.schedule = schedule;
    settings.arguments = {"n=30000"};
    settings.timing.most_seconds = 0;
    const absl::StatusOr<NestReport> report = RunText(settings, R"(
func f(A: i32[1], n: i32) { for (i, 0, n) { for (j, 0, n) { A[0] = A[0] + i * j } } })");
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->difference, "");
    EXPECT_EQ(report->compared_with, "checked code on cpu");
    EXPECT_EQ(report->unscheduled_times.has_value(), schedule == std::string("auto"));
  }
}

// The very last iteration of more than the interpreter may look at.
TEST(RunNestTest, WhatStopsALongFunctionIsAnErrorToo) {
  for (const char* target : {"cpu", "c"}) {
    for (const char* schedule : {"none", "auto"}) {
      NestSettings settings = Settings(target);
      settings.schedule = schedule;
      settings.arguments = {"n=15000"};
      EXPECT_THAT(std::string(RunText(settings, R"(
func beyond(A: i32[n], n: i32) { for (i, 0, n) { for (j, 0, n) { A[i * j / n + 2] = i } } })")
                                  .status()
                                  .message()),
                  HasSubstr("beyond: index 0 of 'A' is out of its extent"))
          << target << " " << schedule;
      EXPECT_THAT(std::string(RunText(settings, R"(
func divides(A: i32[1], n: i32) {
  for (i, 0, n) { for (j, 0, n) { A[0] = A[0] + n / (i + j - 2 * n + 2) } }
})")
                                  .status()
                                  .message()),
                  HasSubstr("divides: division by zero"))
          << target << " " << schedule;
    }
  }
}

// Nobody has looked for it: a line, and the exit code of an error.
TEST(RunNestTest, WhatStopsAnUncheckedFunctionIsALine) {
  NestSettings settings = Settings("cpu");
  settings.check_values = false;
  settings.arguments = {"n=5", "k=1000000000"};
  constexpr char kBeyond[] =
      "func beyond(A: i64[n], n: i32, k: i64) {"
      " for (i, 0, n) { A[cast(i64, i) + k * 64] = k } }";
  EXPECT_EXIT((void)RunText(settings, kBeyond), testing::ExitedWithCode(1),
              "^nao: function 'beyond' on cpu, unchecked since --no-check was given: stopped by "
              "SIGSEGV");
#if defined(__x86_64__)
  settings.arguments = {"n=5", "k=0"};
  constexpr char kDivides[] =
      "func divides(A: i32[n], n: i32, k: i32) { for (i, 0, n) { A[i] = n / k } }";
  EXPECT_EXIT((void)RunText(settings, kDivides), testing::ExitedWithCode(1),
              "^nao: function 'divides' on cpu.*: stopped by SIGFPE");
#endif
}

TEST(RunNestTest, WrongArguments) {
  EXPECT_EQ(Error({"n=5", "factor=1"}),
            "function 'scale': parameter 'm: i16' has no value: expected --arg m=NUMBER");
  EXPECT_EQ(Error({"n=5", "m=7"}),
            "function 'scale': parameter 'factor: f64' has no value: expected --arg factor=NUMBER");
  EXPECT_EQ(Error({"n=5", "k=5"}), "--arg k=5: function 'scale' has no parameter 'k'");
  EXPECT_EQ(Error({"n"}), "--arg n: expected NAME=NUMBER of a scalar parameter of 'scale'");
  EXPECT_EQ(Error({"A=5"}), "--arg A=5: expected NAME=NUMBER of a scalar parameter of 'scale'");
  EXPECT_EQ(Error({"n=5", "n=6"}), "--arg n=6: 'n' has a value already");
  EXPECT_EQ(Error({"n=5.5"}), "--arg n=5.5: expected an integer of i32, found '5.5'");
  EXPECT_EQ(Error({"m=40000"}), "--arg m=40000: expected an integer of i16, found '40000'");
  EXPECT_EQ(Error({"factor=x"}), "--arg factor=x: expected a number, found 'x'");
  EXPECT_THAT(Error({"n=2000000000", "m=30000", "factor=1"}),
              HasSubstr("its tensors take 915527343.8 MiB: expected at most"));
}

TEST(RunNestTest, WrongTargetsAndSchedules) {
  EXPECT_THAT(RunText(Settings("gpu")).status().message(), HasSubstr("no target is named 'gpu'"));
  NestSettings settings = Settings("cpu");
  settings.schedule = "best";
  EXPECT_THAT(RunText(settings).status().message(), HasSubstr("found 'best'"));
}

TEST(RunNestTest, FindsFunctions) {
  const ir::Module two =
      *ir::ParseModule("func f(A: i32[1]) { A[0] = 1 } func g(A: i32[1]) { A[0] = 2 }", "two.nir");
  EXPECT_EQ(FindFunction(two, "g", "two.nir")->name, "g");
  EXPECT_EQ(FindFunction(two, "", "two.nir").status().message(),
            "two.nir: expected --function with one of f, g");
  EXPECT_EQ(FindFunction(two, "h", "two.nir").status().message(),
            "two.nir: --function: expected one of f, g, found 'h'");
}

}  // namespace
}  // namespace polynao::cases
