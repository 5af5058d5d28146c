#include "tools/gpu_runner/runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "base/median.h"
#include "compiler/codegen/cuda/bundle_places.h"
#include "compiler/ir/random_pixel.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/type.h"

namespace polynao::gpu {
namespace {

using ir::Type;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

double Value(Type type, const void* address) {
  return ir::IsFloat(type) ? ir::LoadFloat(type, address)
                           : static_cast<double>(ir::LoadInt(type, address));
}

// Element number i of a value: a float, and an integer.
struct Generator {
  std::function<double(uint64_t)> float_at;
  std::function<int64_t(uint64_t)> int_at;
};

// The generator that a value of a bundle names (random_value.h, random_pixel.h); none if it names none.
std::optional<Generator> GeneratorOf(const Json& value, Type type) {
  if (value.contains("seed")) {
    const uint64_t seed = value["seed"];
    return Generator{[=](uint64_t i) { return ir::RandomFloat(type, seed, i, ir::Values::kExact); },
                     [=](uint64_t i) { return ir::RandomInt(type, seed, i, ir::Values::kExact); }};
  }
  if (value.contains("uniform_seed")) {
    const uint64_t seed = value["uniform_seed"];
    return Generator{[=](uint64_t i) { return ir::UniformFloat(seed, i); },
                     [=](uint64_t i) { return ir::UniformInt(type, seed, i); }};
  }
  if (value.contains("pixel_seed")) {
    const uint64_t seed = value["pixel_seed"];
    const int64_t levels = std::max<int64_t>(1, value.value("levels", int64_t{1}));
    return Generator{[=](uint64_t i) { return ir::PixelFloat(seed, i); },
                     [=](uint64_t i) { return ir::PixelInt(levels, seed, i); }};
  }
  return std::nullopt;
}

// By several threads.
void FillRandom(Type type, const Generator& generator, int64_t count, std::vector<uint8_t>& bytes) {
  const int64_t size = ir::ByteSize(type);
  bytes.resize(static_cast<size_t>(count * size));
  const auto fill = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      uint8_t* address = bytes.data() + i * size;
      const auto place = static_cast<uint64_t>(i);
      if (ir::IsFloat(type)) {
        ir::StoreFloat(type, address, generator.float_at(place));
      } else {
        ir::StoreInt(type, address, generator.int_at(place));
      }
    }
  };
  constexpr int64_t kPart = 1 << 18;
  const int64_t parts = std::clamp<int64_t>(count / kPart, 1, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (int64_t part = 0; part < parts; ++part) {
    threads.emplace_back(fill, count * part / parts, count * (part + 1) / parts);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

struct Runner::Loaded {
  struct Kernel {
    CuHandle function = nullptr;
    unsigned grid[3];
    unsigned block[3];
    std::vector<void*> parameters;
    std::vector<size_t> scalars;  // the places of those that each launch gives
  };
  struct Launch {
    size_t kernel;
    unsigned grid[3];
    std::vector<int64_t> values;  // of the kernel's scalars
  };
  CuHandle module = nullptr;
  std::vector<CuAddress> addresses;
  std::vector<size_t> sizes;
  std::vector<Kernel> kernels;
  std::vector<Launch> launches;  // of one run
  int runs = 1;                  // in a sample
  std::vector<double> times;     // of one run, in milliseconds
  Json* line = nullptr;
  bool failed = false;
};

Error Runner::Start(const RunnerOptions& options) {
  options_ = options;
  if (Error error = driver_.Load(options.driver); !error.empty()) return error;
  if (Error error = driver_.Check(driver_.Init(0), "cuInit"); !error.empty()) return error;
  int device = 0;
  if (Error error = driver_.Check(driver_.DeviceGet(&device, 0), "cuDeviceGet"); !error.empty()) {
    return error;
  }
  CuHandle context = nullptr;
  Error error =
      driver_.Check(driver_.PrimaryContextRetain(&context, device), "cuDevicePrimaryCtxRetain");
  if (error.empty()) error = driver_.Check(driver_.ContextSetCurrent(context), "cuCtxSetCurrent");
  if (!error.empty()) return error;
  char name[256] = "";
  driver_.DeviceGetName(name, sizeof name, device);
  int version = 0;
  int major = 0;
  int minor = 0;
  int processors = 0;
  driver_.DriverGetVersion(&version);
  driver_.DeviceGetAttribute(&major, kComputeCapabilityMajor, device);
  driver_.DeviceGetAttribute(&minor, kComputeCapabilityMinor, device);
  driver_.DeviceGetAttribute(&processors, kMultiprocessorCount, device);
  arch_ = "sm_" + std::to_string(major) + std::to_string(minor);
  has_nvrtc_ = nvrtc_.Load(options.nvrtc).empty();
  machine_["device"] = name;
  machine_["arch"] = arch_;
  machine_["multiprocessors"] = processors;
  machine_["driver"] = version;
  error = driver_.Check(driver_.EventCreate(&begin_, 0), "cuEventCreate");
  if (error.empty()) error = driver_.Check(driver_.EventCreate(&end_, 0), "cuEventCreate");
  if (options.compare) peers_.Start(&driver_, &nvrtc_, arch_, has_nvrtc_ ? options.kernels : "");
  return error;
}

Bundle Runner::Load(const std::string& path) const {
  Bundle bundle;
  bundle.path = path;
  bundle.json = Json::parse(ReadWhole(path + "/bundle.json"), nullptr, false);
  if (bundle.json.is_discarded() || bundle.json.value("format", 0) != 1) {
    bundle.error = path + "/bundle.json: expected a bundle of format 1";
    return bundle;
  }
  const Clock::time_point start = Clock::now();
  if (has_nvrtc_) {
    bundle.compiled_by = "nvrtc";
    bundle.error = nvrtc_.Compile(ReadWhole(path + "/kernel.cu"), arch_, &bundle.code);
  } else {
    const bool fits = bundle.json.value("arch", "") == arch_;
    bundle.compiled_by = fits ? "kernel.cubin" : "kernel.ptx";
    bundle.code = ReadWhole(path + "/" + bundle.compiled_by);
    if (bundle.code.empty()) {
      bundle.error = "there is no NVRTC, and the bundle has no " + bundle.compiled_by;
    }
  }
  bundle.compile_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return bundle;
}

Error Runner::Prepare(const Bundle& bundle, Loaded& loaded, Json& line) {
  Error error = driver_.Check(driver_.ModuleLoadData(&loaded.module, bundle.code.c_str()),
                              "cuModuleLoadData");
  if (!error.empty()) return error;
  for (const Json& value : bundle.json["values"]) {
    const std::optional<Type> type = ir::ParseType(value["type"].get<std::string>());
    if (!type) return "bundle.json: no type is named " + value["type"].dump();
    if (value["kind"] == "scalar") {
      loaded.addresses.push_back(0);
      loaded.sizes.push_back(0);
      continue;
    }
    int64_t count = 1;
    for (const Json& extent : value["extents"]) count *= extent.get<int64_t>();
    const size_t bytes = static_cast<size_t>(count * ir::ByteSize(*type));
    CuAddress address = 0;
    error = driver_.Check(driver_.MemAlloc(&address, std::max<size_t>(bytes, 16)), "cuMemAlloc");
    if (!error.empty()) return error;
    loaded.addresses.push_back(address);
    loaded.sizes.push_back(bytes);
    std::vector<uint8_t> contents;
    if (const std::optional<Generator> generator = GeneratorOf(value, *type)) {
      FillRandom(*type, *generator, count, contents);
    }
    if (value.contains("file")) {
      const std::string text = ReadWhole(bundle.path + "/" + value["file"].get<std::string>());
      contents.assign(text.begin(), text.end());
      if (contents.size() != bytes)
        return value["file"].dump() + " has another size than its value";
    }
    if (!contents.empty()) {
      error = driver_.Check(driver_.MemcpyHtoD(address, contents.data(), bytes), "cuMemcpyHtoD");
    } else if (bytes > 0) {
      // NaNs: what is not stored is seen.
      error = driver_.Check(driver_.MemsetD8(address, 0xff, bytes), "cuMemsetD8");
    }
    if (!error.empty()) return error;
  }
  int registers = 0;
  int local_bytes = 0;
  for (const Json& kernel : bundle.json["kernels"]) {
    Loaded::Kernel& made = loaded.kernels.emplace_back();
    const std::string name = kernel["name"];
    error = driver_.Check(driver_.ModuleGetFunction(&made.function, loaded.module, name.c_str()),
                          "cuModuleGetFunction");
    if (!error.empty()) return error;
    for (int i = 0; i < 3; ++i) {
      made.grid[i] = kernel["grid"][i];
      made.block[i] = kernel["block"][i];
    }
    for (const Json& argument : kernel["arguments"]) {
      const auto place = argument.get<size_t>();
      if (bundle.json["values"][place]["kind"] == "scalar") {
        made.scalars.push_back(made.parameters.size());
      }
      made.parameters.push_back(&loaded.addresses[place]);
    }
    int value = 0;
    driver_.FunctionGetAttribute(&value, kFunctionRegisters, made.function);
    registers = std::max(registers, value);
    driver_.FunctionGetAttribute(&value, kFunctionLocalBytes, made.function);
    local_bytes = std::max(local_bytes, value);
  }
  line["registers"] = registers;
  line["local_bytes"] = local_bytes;
  if (error = ReadLaunches(bundle.json, loaded); !error.empty()) return error;
  line["launches"] = loaded.launches.size();
  return "";
}

// Without rows, each kernel runs once.
Error Runner::ReadLaunches(const Json& json, Loaded& loaded) {
  if (!json.contains("launches")) {
    for (size_t i = 0; i < loaded.kernels.size(); ++i) {
      const unsigned* grid = loaded.kernels[i].grid;
      loaded.launches.push_back({i, {grid[0], grid[1], grid[2]}, {}});
    }
    return "";
  }
  for (const Json& row : json["launches"]) {
    Loaded::Launch launch;
    if (row.size() < 4 || row[0].get<size_t>() >= loaded.kernels.size() ||
        row.size() != 4 + loaded.kernels[row[0].get<size_t>()].scalars.size()) {
      return "bundle.json: launches: expected a kernel's number, its grid and its scalars, found " +
             row.dump();
    }
    launch.kernel = row[0];
    for (int i = 0; i < 3; ++i) launch.grid[i] = row[static_cast<size_t>(i) + 1];
    for (size_t i = 4; i < row.size(); ++i) launch.values.push_back(row[i].get<int64_t>());
    loaded.launches.push_back(std::move(launch));
  }
  return "";
}

Error Runner::LaunchAll(Loaded& loaded) {
  for (Loaded::Launch& launch : loaded.launches) {
    Loaded::Kernel& k = loaded.kernels[launch.kernel];
    // Narrower scalars are the first bytes of an i64.
    for (size_t i = 0; i < k.scalars.size(); ++i) k.parameters[k.scalars[i]] = &launch.values[i];
    Error error = driver_.Check(
        driver_.LaunchKernel(k.function, launch.grid[0], launch.grid[1], launch.grid[2], k.block[0],
                             k.block[1], k.block[2], 0, nullptr, k.parameters.data(), nullptr),
        "cuLaunchKernel");
    if (!error.empty()) return error;
  }
  return "";
}

Error Runner::Check(const Bundle& bundle, Loaded& loaded, Json& line) {
  double worst = 0;  // error / tolerance; of what must agree exactly, the error
  double max_error = 0;
  bool ok = true;
  for (size_t v = 0; v < loaded.addresses.size(); ++v) {
    const Json& value = bundle.json["values"][v];
    if (!value.contains("check")) continue;
    const Json& check = value["check"];
    const Type type = *ir::ParseType(value["type"].get<std::string>());
    const int64_t size = ir::ByteSize(type);
    const int64_t count = static_cast<int64_t>(loaded.sizes[v]) / size;
    std::vector<uint8_t> bytes(loaded.sizes[v]);
    Error error = driver_.Check(driver_.MemcpyDtoH(bytes.data(), loaded.addresses[v], bytes.size()),
                                "cuMemcpyDtoH");
    if (!error.empty()) return error;
    const double tolerance = check["tolerance"];
    const auto compare = [&](double actual, double expected, double allowed) {
      const double difference = std::abs(actual - expected);
      // NaN agrees with nothing but NaN.
      if (std::isnan(actual) && std::isnan(expected)) return;
      if (!(difference <= allowed)) ok = false;
      worst = std::max(worst, allowed > 0 ? difference / allowed : difference);
    };
    const std::vector<int64_t> places = codegen::BundleSamples(count);
    const Json& samples = check["samples"];
    if (samples.size() != places.size()) return "bundle.json: a check has another count of samples";
    for (size_t i = 0; i < places.size(); ++i) {
      const double expected = samples[i].is_null() ? NAN : samples[i].get<double>();
      const double actual = Value(type, bytes.data() + places[i] * size);
      compare(actual, expected, tolerance);
      max_error = std::max(max_error, std::abs(actual - expected));
    }
    const int64_t run = codegen::BundleRun(count);
    size_t part = 0;
    for (int64_t begin = 0; begin < count; begin += run, ++part) {
      double sum = 0;
      const int64_t end = std::min(count, begin + run);
      for (int64_t i = begin; i < end; ++i) sum += Value(type, bytes.data() + i * size);
      const Json& expected = check["sums"][part];
      compare(sum, expected.is_null() ? NAN : expected.get<double>(),
              tolerance * static_cast<double>(end - begin));
    }
  }
  line["max_error"] = max_error;
  line["error_over_tolerance"] = worst;
  line["ok"] = ok;
  return ok ? "" : "values differ";
}

Error Runner::Sample(const std::function<Error()>& run, int launches, double* milliseconds) {
  Error error = driver_.Check(driver_.EventRecord(begin_, nullptr), "cuEventRecord");
  for (int i = 0; error.empty() && i < launches; ++i) error = run();
  if (error.empty()) error = driver_.Check(driver_.EventRecord(end_, nullptr), "cuEventRecord");
  if (error.empty()) error = driver_.Check(driver_.EventSynchronize(end_), "cuEventSynchronize");
  float time = 0;
  if (error.empty()) {
    error = driver_.Check(driver_.EventElapsedTime(&time, begin_, end_), "cuEventElapsedTime");
  }
  *milliseconds = static_cast<double>(time) / launches;
  return error;
}

Error Runner::RunsOfSample(const std::function<Error()>& run, int* runs) {
  double ms = 0;
  // The first run is slow; the last one says how many fit.
  for (int i = 0; i < 3; ++i) {
    if (Error error = Sample(run, 1, &ms); !error.empty()) return error;
  }
  *runs = static_cast<int>(std::clamp(options_.sample_ms / std::max(ms, 1e-4), 1.0, 500.0));
  return "";
}

Error Runner::Time(std::vector<std::unique_ptr<Loaded>>& group) {
  for (auto& loaded : group) {
    if (loaded->failed) continue;
    const Error error = RunsOfSample([&] { return LaunchAll(*loaded); }, &loaded->runs);
    if (!error.empty()) return error;
  }
  for (int i = 0; i < options_.samples; ++i) {
    for (auto& loaded : group) {
      if (loaded->failed) continue;
      double ms = 0;
      const Error error = Sample([&] { return LaunchAll(*loaded); }, loaded->runs, &ms);
      if (!error.empty()) return error;
      loaded->times.push_back(ms);
    }
  }
  return "";
}

Json Runner::Compare(const Bundle& bundle, Loaded& loaded) {
  std::vector<CuAddress> addresses;
  for (size_t v = 0; v < loaded.addresses.size(); ++v) {
    const Json& value = bundle.json["values"][v];
    if (value["kind"] == "workspace" || value["kind"] == "scalar") continue;
    addresses.push_back(loaded.addresses[v]);
    if (value["kind"] == "out") driver_.MemsetD8(addresses.back(), 0xff, loaded.sizes[v]);
  }
  Json lines = Json::array();
  for (const Peer& peer : peers_.For(bundle.json["case"], addresses)) {
    Json line;
    line["name"] = peer.name;
    Error error = peer.run();
    if (error.empty()) error = driver_.Check(driver_.ContextSynchronize(), "cuCtxSynchronize");
    if (error.empty() && peer.is_whole) error = Check(bundle, loaded, line);
    line["is_whole"] = peer.is_whole;
    int runs = 1;
    std::vector<double> times;
    if (error.empty()) error = RunsOfSample(peer.run, &runs);
    for (int i = 0; error.empty() && i < options_.samples; ++i) {
      error = Sample(peer.run, runs, &times.emplace_back());
    }
    if (error.empty()) {
      line["time_us"] = Median(times) * 1e3;
    } else {
      line["error"] = error;
    }
    lines.push_back(std::move(line));
  }
  peers_.Release();
  return lines;
}

void Runner::Release(Loaded& loaded) {
  for (CuAddress address : loaded.addresses) {
    if (address != 0) driver_.MemFree(address);
  }
  if (loaded.module != nullptr) driver_.ModuleUnload(loaded.module);
}

std::vector<Json> Runner::RunGroup(const std::vector<const Bundle*>& group) {
  std::vector<Json> lines(group.size());
  std::vector<std::unique_ptr<Loaded>> all;
  for (size_t i = 0; i < group.size(); ++i) {
    const Bundle& bundle = *group[i];
    Json& line = lines[i];
    line["bundle"] = bundle.path;
    line["case"] = bundle.json.value("case", Json());
    line["ok"] = false;
    auto loaded = std::make_unique<Loaded>();
    Error error = bundle.error;
    if (error.empty()) error = Prepare(bundle, *loaded, line);
    if (error.empty()) error = LaunchAll(*loaded);
    if (error.empty()) error = driver_.Check(driver_.ContextSynchronize(), "cuCtxSynchronize");
    line["ok"] = error.empty();
    if (error.empty()) error = Check(bundle, *loaded, line);
    loaded->failed = !error.empty();
    if (!error.empty()) line["error"] = error;
    line["compiled_by"] = bundle.compiled_by;
    line["compile_ms"] = bundle.compile_ms;
    all.push_back(std::move(loaded));
  }
  const Error error = Time(all);
  for (size_t i = 0; i < group.size(); ++i) {
    Json& line = lines[i];
    if (!error.empty() && !line.contains("error")) {
      line["ok"] = false;
      line["error"] = error;
    }
    if (!all[i]->times.empty()) {
      const double us = Median(all[i]->times) * 1e3;
      line["time_us"] = us;
      line["min_us"] = *std::min_element(all[i]->times.begin(), all[i]->times.end()) * 1e3;
      line["samples"] = all[i]->times.size();
      line["runs_per_sample"] = all[i]->runs;
      line["gflops"] = group[i]->json.value("flops", 0.0) / us * 1e-3;
      line["gbytes_per_s"] = group[i]->json.value("bytes", 0.0) / us * 1e-3;
    }
    line["machine"] = machine_;
    // Others know the case, not how we compiled it.
    if (options_.compare && i + 1 == group.size() && error.empty() && !all[i]->failed) {
      line["peers"] = Compare(*group[i], *all[i]);
    }
    Release(*all[i]);
  }
  return lines;
}

std::vector<std::vector<std::string>> FindBundles(const std::string& root) {
  std::map<std::string, std::vector<std::string>> groups;
  std::error_code ignored;
  const auto add = [&](const fs::path& folder) {
    const std::string name = folder.filename().string();
    const bool paired = name == "baseline" || name == "optimised" || name == "published";
    groups[paired ? folder.parent_path().string() : folder.string()].push_back(folder.string());
  };
  if (fs::exists(fs::path(root) / "bundle.json", ignored)) add(fs::path(root));
  for (const auto& entry : fs::recursive_directory_iterator(root, ignored)) {
    if (entry.path().filename() != "bundle.json" || entry.path().parent_path() == fs::path(root)) {
      continue;
    }
    add(entry.path().parent_path());
  }
  std::vector<std::vector<std::string>> found;
  for (auto& [path, group] : groups) {
    std::sort(group.begin(), group.end());
    found.push_back(group);
  }
  return found;
}

}  // namespace polynao::gpu
