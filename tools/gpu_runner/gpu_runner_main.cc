// Runs bundles on a GPU and writes a line of JSON for each. Needs CUDA's driver, and NVRTC or bundles
// with machine code; nothing of this repository. docs/cuda.md says how it is used.
//
//   gpu_runner [--results=FILE] [--seconds=N] DIRECTORY...
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tools/gpu_runner/runner.h"

namespace polynao::gpu {
namespace {

constexpr const char* kUsage =
    "gpu_runner: runs bundles on a GPU, checks values, takes times; a line of JSON for each\n"
    "  gpu_runner [FLAGS] DIRECTORY...   all bundles in and below the directories\n"
    "  --results=FILE   append to FILE instead of stdout, leaving out what is in it already\n"
    "  --seconds=N      begin nothing new after N seconds\n"
    "  --samples=N      times of which the median is taken (15)\n"
    "  --sample-ms=X    of one of them: short kernels run several times in it (1)\n"
    "  --driver=PATH --nvrtc=PATH   libraries (libcuda.so.1, libnvrtc.so)\n"
    "Exit code 0: all values agree. 1: some differ or failed. 2: nothing was run. 3: time is up.\n";

struct Flags {
  RunnerOptions runner;
  std::string results;
  double seconds = 1e9;
  std::vector<std::string> roots;
};

bool Parse(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (key == "--results") {
      flags->results = value;
    } else if (key == "--seconds") {
      flags->seconds = std::atof(value.c_str());
    } else if (key == "--samples") {
      flags->runner.samples = std::max(1, std::atoi(value.c_str()));
    } else if (key == "--sample-ms") {
      flags->runner.sample_ms = std::atof(value.c_str());
    } else if (key == "--driver") {
      flags->runner.driver = value;
    } else if (key == "--nvrtc") {
      flags->runner.nvrtc = value;
    } else if (argument.starts_with("-")) {
      std::cerr << "gpu_runner: no flag " << key << "\n" << kUsage;
      return false;
    } else {
      flags->roots.push_back(argument);
    }
  }
  if (flags->roots.empty()) std::cerr << kUsage;
  return !flags->roots.empty();
}

using Group = std::vector<std::string>;

// Compiles groups ahead, by several threads, while the GPU runs others.
class Compiler {
 public:
  Compiler(const Runner& runner, const std::vector<Group>& groups)
      : runner_(runner), groups_(groups), loaded_(groups.size()) {
    const unsigned count = std::max(1u, std::thread::hardware_concurrency() / 2);
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([this] { Work(); });
    }
  }
  ~Compiler() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  // Waits for group i.
  std::vector<Bundle> Take(size_t i) {
    std::unique_lock<std::mutex> lock(mutex_);
    ready_.wait(lock, [&] { return loaded_[i] != nullptr; });
    return std::move(*loaded_[i]);
  }

 private:
  void Work() {
    for (size_t i = next_++; i < groups_.size() && !stop_; i = next_++) {
      auto bundles = std::make_unique<std::vector<Bundle>>();
      for (const std::string& path : groups_[i]) bundles->push_back(runner_.Load(path));
      const std::lock_guard<std::mutex> lock(mutex_);
      loaded_[i] = std::move(bundles);
      ready_.notify_all();
    }
  }

  const Runner& runner_;
  const std::vector<Group>& groups_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<std::unique_ptr<std::vector<Bundle>>> loaded_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

int Main(int argc, char** argv) {
  const auto start = std::chrono::steady_clock::now();
  Flags flags;
  if (!Parse(argc, argv, &flags)) return 2;
  std::set<std::string> done;
  if (!flags.results.empty()) {
    std::ifstream file(flags.results);
    for (std::string line; std::getline(file, line);) {
      const Json json = Json::parse(line, nullptr, false);
      if (json.is_object()) done.insert(json.value("bundle", ""));
    }
  }
  std::vector<Group> groups;
  for (const std::string& root : flags.roots) {
    for (Group& group : FindBundles(root)) {
      bool all_done = true;
      for (const std::string& path : group) all_done = all_done && done.count(path) > 0;
      if (!all_done) groups.push_back(std::move(group));
    }
  }
  Runner runner;
  if (const Error error = runner.Start(flags.runner); !error.empty()) {
    std::cerr << "gpu_runner: " << error << "\n";
    return 2;
  }
  std::ofstream file;
  if (!flags.results.empty()) file.open(flags.results, std::ios::app);
  std::ostream& out = flags.results.empty() ? std::cout : file;
  Compiler compiler(runner, groups);
  bool ok = true;
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (spent.count() > flags.seconds) {
      std::cerr << "gpu_runner: " << i << " of " << groups.size() << " groups in " << flags.seconds
                << " s; the rest is for the next call\n";
      return 3;
    }
    const std::vector<Bundle> bundles = compiler.Take(i);
    std::vector<const Bundle*> group;
    for (const Bundle& bundle : bundles) group.push_back(&bundle);
    for (const Json& line : runner.RunGroup(group)) {
      out << line.dump() << std::endl;
      ok = ok && line["ok"].get<bool>();
      if (!line["ok"].get<bool>()) {
        std::cerr << line["bundle"].get<std::string>() << ": " << line.value("error", "") << "\n";
      }
    }
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace polynao::gpu

int main(int argc, char** argv) { return polynao::gpu::Main(argc, argv); }
