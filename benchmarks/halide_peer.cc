#include "benchmarks/halide_peer.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/halide_sources.h"
#include "benchmarks/json_reader.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {
namespace {

using Json = nlohmann::ordered_json;

// The last line that is a JSON object: warnings may stand before it.
absl::StatusOr<Json> LastObject(const std::string& output) {
  size_t end = output.size();
  while (end > 0) {
    const size_t newline = output.rfind('\n', end - 1);
    const size_t begin = newline == std::string::npos ? 0 : newline + 1;
    Json json = Json::parse(output.substr(begin, end - begin), nullptr, /*allow_exceptions=*/false);
    if (json.is_object()) return json;
    end = newline == std::string::npos ? 0 : newline;
  }
  return absl::InternalError(StrCat("expected a JSON object, found: ", output.substr(0, 200)));
}

// The last line of an error's text that says something: Python's exception.
std::string LastLine(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const size_t newline = text.rfind('\n');
  return std::string(newline == std::string_view::npos ? text : text.substr(newline + 1));
}

absl::StatusOr<std::string> FindPython(const std::string& python) {
  const char* environment = std::getenv("POLYNAO_PYTHON");
  std::string name = !python.empty() ? python : environment != nullptr ? environment : "python3";
  if (name.find('/') != std::string::npos) return name;
  const std::optional<std::string> path = FindOnPath(name);
  if (!path) return absl::NotFoundError(StrCat(name, " is not installed"));
  return *path;
}

}  // namespace

const std::vector<std::string>& HalidePeer::Schedules() {
  static const auto* schedules = new std::vector<std::string>{"hand", "mullapudi", "adams", "root"};
  return *schedules;
}

absl::StatusOr<HalidePeer> HalidePeer::Find(const std::string& python) {
  ASSIGN_OR_RETURN(TemporaryDirectory folder, TemporaryDirectory::Create("polynao_halide_"));
  HalidePeer peer(std::move(folder));
  ASSIGN_OR_RETURN(peer.python_, FindPython(python));
  constexpr std::string_view kRoot = "benchmarks/peers/";
  RETURN_IF_ERROR(MakeDirectory(peer.folder_.File("halide_stages")));
  for (const auto& [path, text] : HalideSources()) {
    RETURN_IF_ERROR(WriteFile(peer.folder_.File(path.substr(kRoot.size())), text));
  }
  const absl::StatusOr<std::string> output =
      RunProgram({peer.python_, peer.folder_.File("halide_pipelines.py"), "--probe"});
  if (!output.ok()) {
    return absl::NotFoundError(
        StrCat(peer.python_, ": ", LastLine(std::string(output.status().message()))));
  }
  ASSIGN_OR_RETURN(const Json json, LastObject(*output));
  absl::Status status;
  JsonReader reader(json, status);
  std::string version, target;
  reader.Read("version", version);
  reader.Read("target", target);
  RETURN_IF_ERROR(status);
  peer.description_ = StrCat("halide ", version, " for ", target);
  return peer;
}

absl::Status HalidePeer::SetInputs(absl::Span<const ir::Tensor* const> inputs) {
  inputs_.clear();
  for (const ir::Tensor* tensor : inputs) {
    inputs_.push_back(folder_.File(StrCat("input", inputs_.size(), ".raw")));
    const std::string_view bytes(reinterpret_cast<const char*>(tensor->bytes.data()),
                                 tensor->bytes.size());
    RETURN_IF_ERROR(WriteFile(inputs_.back(), bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<HalideTimes> HalidePeer::Time(const Run& run, ir::Tensor& output) const {
  const std::string file = folder_.File("output.raw");
  // What third_party/jemalloc does for code of this compiler: what is freed is kept, and pages are large.
  constexpr char kTunables[] =
      "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824:"
      "glibc.malloc.trim_threshold=4294967295";
  std::vector<std::string> command = {"/usr/bin/env",
                                      kTunables,
                                      python_,
                                      folder_.File("halide_pipelines.py"),
                                      "--json",
                                      StrCat("--pipeline=", run.pipeline),
                                      StrCat("--rows=", run.rows),
                                      StrCat("--cols=", run.cols),
                                      StrCat("--schedule=", run.schedule),
                                      StrCat("--threads=", run.threads),
                                      StrCat("--seconds=", run.seconds),
                                      StrCat("--limit=", run.limit_seconds),
                                      StrCat("--output=", file)};
  for (const std::string& input : inputs_) command.push_back(StrCat("--input=", input));
  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<std::string> printed = RunProgram(std::move(command));
  if (!printed.ok()) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (took.count() >= run.limit_seconds) {
      return absl::DeadlineExceededError(
          StrCat("more than ", run.limit_seconds, " s to compile and run"));
    }
    return absl::InternalError(LastLine(std::string(printed.status().message())));
  }
  ASSIGN_OR_RETURN(const Json json, LastObject(*printed));
  HalideTimes times;
  absl::Status status;
  JsonReader reader(json, status);
  reader.Read("time_ms", times.median_ms);
  reader.Read("least_ms", times.least_ms);
  reader.Read("compile_ms", times.compile_ms);
  reader.Read("runs", times.runs);
  RETURN_IF_ERROR(status);
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file));
  if (bytes.size() != output.bytes.size()) {
    return absl::InternalError(
        StrCat("expected an output of ", output.bytes.size(), " bytes, found ", bytes.size()));
  }
  output.bytes.assign(bytes.begin(), bytes.end());
  std::filesystem::remove(file);
  return times;
}

}  // namespace polynao::benchmarks
