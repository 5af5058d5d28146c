// The page of a real run, in a browser without a screen: it draws itself without an error, and every number that it
// shows is that of its data. Skipped where there is no chromium.

#include "simulator/page/report_page.h"

#include <cmath>
#include <regex>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "simulator/page/run_json.h"
#include "simulator/testing.h"
#include "simulator/timeline.h"
#include "testing/browser.h"
#include "testing/machine.h"

namespace polynao::simulator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

// Data as `nao sim --json` prints them, and their page.
struct Example {
  Json data;
  std::string page;
};

Example RunExample(const isa::Machine& machine) {
  constexpr int64_t kCount = 20'000;
  ir::Tensor x = ir::RandomTensor(ir::Type::kF16, {kCount}, 1, ir::Values::kExact);
  ir::Tensor y = ir::RandomTensor(ir::Type::kF16, {kCount}, 2, ir::Values::kExact);
  ir::Tensor out(ir::Type::kF16, {kCount});
  RunOptions options;
  options.profile = options.trace.enabled = true;
  const auto result = RunProgram(
      machine, StreamingAdd(512),
      {Argument::Of(&x), Argument::Of(&y), Argument::Of(&out), Argument::Scalar(kCount)}, options);
  EXPECT_TRUE(result.ok()) << result.status();
  Example example;
  example.data = {{"program", "a </script><b> & \"c\""}, {"config", machine.name}};
  AddRun(*result, machine, example.data);
  example.data["cycles"] = result->cycles;
  example.data["launch_cycles"] = result->launch_cycles;
  example.data["instructions"] = result->instruction_count();
  example.data["machine"] = machine.parameters();
  example.page = ReportPage("a < b", example.data, {TimelineSvg(*result)});
  return example;
}

// The data in a page, or what the browser has made of it.
Json DataOf(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">\n";
  const size_t begin = page.find(open) + open.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(ReportPageTest, HoldsItsDataAndNoOtherFile) {
  const Example example = RunExample(TestMachine("mlu270"));
  EXPECT_EQ(DataOf(example.page), example.data);
  EXPECT_THAT(example.page, HasSubstr("<h1>a &lt; b</h1>"));
  for (const char* outside : {"src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest"}) {
    EXPECT_THAT(example.page, Not(HasSubstr(outside)));
  }
  // The only addresses are names of XML's vocabularies.
  const std::string rest = absl::StrReplaceAll(example.page, {{"http://www.w3.org/2000/svg", ""}});
  EXPECT_THAT(rest, Not(HasSubstr("http:")));
  EXPECT_THAT(rest, Not(HasSubstr("https:")));
}

// Numbers are shown with thin spaces, fractions with four digits.
void ExpectShows(const std::string& shown, const Json& value, const std::string& path) {
  const std::string plain = absl::StrReplaceAll(shown, {{"\u2009", ""}});
  if (value.is_number_integer()) {
    EXPECT_EQ(plain, absl::StrCat(value.get<int64_t>())) << path;
    return;
  }
  double number = 0;
  ASSERT_TRUE(absl::SimpleAtod(plain, &number)) << path << " shows " << shown;
  EXPECT_NEAR(number, value.get<double>(), 1e-3 * std::abs(value.get<double>())) << path;
}

class ReportPageInABrowserTest : public testing::TestWithParam<const char*> {};

TEST_P(ReportPageInABrowserTest, ShowsTheNumbersOfItsData) {
  if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
  const bool is_dram = std::string_view(GetParam()) == "mlu270";
  const Example example = RunExample(is_dram ? TestMachine("mlu270") : FlatMachine());
  EXPECT_EQ(FaultsOf(example.page), "");
  const std::string dom = DomOf(example.page);
  ASSERT_THAT(dom, HasSubstr("data-ready=\"1\""));
  EXPECT_THAT(dom, Not(HasSubstr("data-errors"))) << dom.substr(0, 300);
  EXPECT_EQ(DataOf(dom), example.data);
  const std::regex shown("data-path=\"([^\"]*)\">([^<]*)<");
  int count = 0;
  for (std::sregex_iterator it(dom.begin(), dom.end(), shown), end; it != end; ++it, ++count) {
    // Keys such as "bytes.gmem.read" have dots, none has a slash.
    const Json::json_pointer path((*it)[1].str());
    ASSERT_TRUE(example.data.contains(path)) << path;
    ExpectShows((*it)[2].str(), example.data[path], (*it)[1].str());
  }
  // Counters, ports, cores, parameters of the machine, and commands of each bank of DRAM.
  const auto counters = example.data["counters"].size() + 4 * example.data["ports"].size() +
                        example.data["machine"].size();
  EXPECT_GT(count, static_cast<int>(counters));
  if (is_dram) EXPECT_THAT(dom, HasSubstr("data-path=\"/dram/3/banks/15/conflicts\""));
  for (const char* part : {"chart roofline", "chart classes", "<canvas", "class=\"timeline\""}) {
    EXPECT_THAT(dom, HasSubstr(part));
  }
  EXPECT_THAT(dom, HasSubstr("this run, vector f16"));
}

INSTANTIATE_TEST_SUITE_P(Machines, ReportPageInABrowserTest, testing::Values("mlu270", "flat"),
                         [](const auto& info) { return std::string(info.param); });

// A page that cannot be drawn says so: the test above would see it.
TEST(ReportPageTest, TellsErrors) {
  if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
  Json data = RunExample(FlatMachine()).data;
  data["cores"][0].erase("stalls");
  const std::string dom = DomOf(ReportPage("broken", data, {}));
  EXPECT_THAT(dom, HasSubstr("data-ready=\"1\""));
  EXPECT_THAT(dom, HasSubstr("data-errors=\"stallTable: "));
  // Other parts are there.
  EXPECT_THAT(dom, HasSubstr("chart classes"));
}

}  // namespace
}  // namespace polynao::simulator
