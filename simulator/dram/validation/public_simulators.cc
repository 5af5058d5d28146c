#include "simulator/dram/validation/public_simulators.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "simulator/dram/preset.h"
#include "simulator/dram/validation/public_simulators_csv.h"
#include "simulator/dram/validation/streams.h"

namespace polynao::simulator {
namespace {

// What the recorded runs had, whatever the preset has by now.
const std::vector<std::string>& RecordedSettings() {
  static const auto* settings = new std::vector<std::string>{
      "map=row bank column bank_group", "write_queue=64", "write_high=54", "write_low=32"};
  return *settings;
}

double Number(const std::string& text) {
  double value = 0;
  POLYNAO_CHECK(absl::SimpleAtod(text, &value)) << text;
  return value;
}

}  // namespace

double ComparedStream::ratio() const { return ours / std::max(dramsim3, ramulator); }

absl::StatusOr<std::vector<ComparedStream>> CompareWithPublicSimulators(
    bool hash, const std::vector<std::string>& overrides) {
  std::vector<std::string> settings = RecordedSettings();
  settings.push_back(hash ? "hash=1" : "hash=0");
  settings.insert(settings.end(), overrides.begin(), overrides.end());
  ASSIGN_OR_RETURN(const DramTiming timing, DramPreset("ddr4_3200", settings));
  const std::vector<std::string> lines =
      absl::StrSplit(kPublicSimulatorsCsv, '\n', absl::SkipEmpty());
  const std::vector<std::string> names = absl::StrSplit(lines[0], ',');
  const auto column = [&](const char* name) {
    const auto found = std::find(names.begin(), names.end(), name);
    POLYNAO_CHECK(found != names.end()) << name;
    return static_cast<size_t>(found - names.begin());
  };
  const size_t pattern = column("pattern"), parameters = column("parameters");
  const size_t dramsim3 = column(hash ? "dramsim3_hash" : "dramsim3");
  const size_t ramulator = column(hash ? "ramulator_hash" : "ramulator");
  std::vector<ComparedStream> result;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = absl::StrSplit(lines[i], ',');
    POLYNAO_CHECK(fields.size() == names.size()) << lines[i];
    ComparedStream compared{.pattern = fields[pattern], .parameters = fields[parameters]};
    compared.dramsim3 = Number(fields[dramsim3]);
    compared.ramulator = Number(fields[ramulator]);
    ASSIGN_OR_RETURN(const Stream stream, MakeStream(compared.pattern, compared.parameters));
    const StreamResult run = RunStream(timing, stream, kComparedRequests);
    compared.ours = stream.gap > 0 ? run.mean_read_latency : static_cast<double>(run.clocks);
    result.push_back(compared);
  }
  return result;
}

std::string ComparedText(const std::vector<ComparedStream>& streams) {
  std::string text = absl::StrFormat("%-54s %10s %10s %10s  %s\n", "stream", "DRAMsim3",
                                     "Ramulator", "ours", "by the slower one");
  for (const ComparedStream& stream : streams) {
    const auto figure = [&](double value) {
      return absl::StrFormat("%.*f", value < 1000 ? 2 : 0, value);
    };
    StrAppend(&text,
              absl::StrFormat("%-17s %-36s %10s %10s %10s  %.3f\n", stream.pattern,
                              stream.parameters, figure(stream.dramsim3), figure(stream.ramulator),
                              figure(stream.ours), stream.ratio()));
  }
  return text;
}

}  // namespace polynao::simulator
