// All dependencies in one binary: headers, libraries, and the C++ standard
// agree with each other.

#include <benchmark/benchmark.h>
#include <isl/cpp.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <systemc>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace {

using ::testing::HasSubstr;

TEST(SmokeTest, Abseil) {
  absl::flat_hash_map<std::string, int> map = {{"a", 1}};
  absl::StatusOr<int> value = map.at("a");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(absl::StrFormat("%d", *value), absl::StrCat(1));
}

TEST(SmokeTest, Isl) {
  isl_ctx* raw = isl_ctx_alloc();
  {
    isl::ctx ctx(raw);
    isl::set set(ctx, "{ S[i] : 0 <= i < 10 and i mod 2 = 0 }");
    EXPECT_FALSE(set.is_empty());
  }
  isl_ctx_free(raw);
}

TEST(SmokeTest, Llvm) {
  llvm::LLVMContext context;
  llvm::Module module("m", context);
  EXPECT_EQ(module.getName().str(), "m");
}

TEST(SmokeTest, SystemCAdvancesTime) {
  sc_core::sc_start(sc_core::sc_time(5, sc_core::SC_NS));
  EXPECT_EQ(sc_core::sc_time_stamp(), sc_core::sc_time(5, sc_core::SC_NS));
}

TEST(SmokeTest, CommandLineAndFormats) {
  CLI::App app("smoke");
  int n = 0;
  app.add_option("-n", n);
  const char* argv[] = {"smoke", "-n", "3"};
  app.parse(3, argv);
  EXPECT_EQ(n, 3);
  EXPECT_EQ(nlohmann::json::parse("{\"a\":[1,2]}")["a"][1], 2);
  toml::parse_result table = toml::parse("a = 1");
  ASSERT_TRUE(table);
  EXPECT_EQ(table["a"].value<int>(), 1);
}

TEST(SmokeTest, HalfPrecision) {
  EXPECT_EQ(static_cast<float>(static_cast<_Float16>(65504.0f)), 65504.0f);
  EXPECT_THAT(std::string("gmock"), HasSubstr("mock"));
}

}  // namespace
