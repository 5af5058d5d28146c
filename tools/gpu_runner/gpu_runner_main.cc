// Runs bundles on a GPU and writes a line of JSON for each. Needs CUDA's driver, and NVRTC or bundles
// with machine code; nothing of this repository. docs/cuda.md says how it is used.
//
//   gpu_runner [--results=FILE] [--seconds=N] DIRECTORY...
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "compiler/ir/type.h"
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
    "  --compare        also time cuBLAS and cuDNN, where they are, on what they know\n"
    "  --kernels=DIR    and the kernels of DIR, a copy of kernels/cuda\n"
    "  --summary=FILE   print what a file of results says about pairs, run nothing\n"
    "  --list           print launches, blocks, threads and memory of the bundles, run nothing\n"
    "  --driver=PATH --nvrtc=PATH   libraries (libcuda.so.1, libnvrtc.so)\n"
    "Exit code 0: all values agree. 1: some differ or failed. 2: nothing was run. 3: time is up.\n";

struct Flags {
  RunnerOptions runner;
  std::string results;
  std::string summary;
  bool list = false;
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
    } else if (key == "--summary") {
      flags->summary = value;
    } else if (key == "--list") {
      flags->list = true;
    } else if (key == "--seconds") {
      flags->seconds = std::atof(value.c_str());
    } else if (key == "--samples") {
      flags->runner.samples = std::max(1, std::atoi(value.c_str()));
    } else if (key == "--sample-ms") {
      flags->runner.sample_ms = std::atof(value.c_str());
    } else if (key == "--compare") {
      flags->runner.compare = true;
    } else if (key == "--kernels") {
      flags->runner.kernels = value;
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
  const bool complete = !flags->roots.empty() || !flags->summary.empty();
  if (!complete) std::cerr << kUsage;
  return complete;
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

// A summary of a file of results, in its steps: bundles, pairs of them, and rows of a table.
struct Variant {
  double time_us = 0;
  bool ok = false;
};
struct Variants {
  std::string op;
  std::map<std::string, Variant> by_name;
};
struct Pair {
  std::string op;
  double baseline = 0, optimised = 0;
  bool ok = true;
  bool is_counted = true;  // in the last row
};
struct Row {
  int cases = 0, right = 0, faster = 0, slower = 0;
  double logs = 0, worst = 1e9, best = 0, baseline = 0, optimised = 0;
};

// By the folder in which the bundles of a pair lie.
std::map<std::string, Variants> ReadVariants(std::istream& file) {
  std::map<std::string, Variants> folders;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    const std::string bundle = json.value("bundle", "");
    const size_t slash = bundle.rfind('/');
    if (slash == std::string::npos) continue;
    const std::string name = bundle.substr(slash + 1);
    if (name != "baseline" && name != "optimised" && name != "published") continue;
    Variants& variants = folders[bundle.substr(0, slash)];
    variants.op = json["case"].value("op", "");
    variants.by_name[name] = {json.value("time_us", 0.0), json.value("ok", false)};
  }
  return folders;
}

// "published" is a second optimised one.
std::map<std::string, Pair> PairsOf(const std::map<std::string, Variants>& folders) {
  std::map<std::string, Pair> pairs;
  for (const auto& [folder, variants] : folders) {
    const auto baseline = variants.by_name.find("baseline");
    for (const auto& [name, variant] : variants.by_name) {
      if (name == "baseline") continue;
      Pair& pair = pairs[folder + "/" + name];
      pair.op = name == "optimised" ? variants.op : variants.op + ", " + name;
      pair.is_counted = name == "optimised";
      pair.optimised = variant.time_us;
      pair.ok = variant.ok;
      if (baseline == variants.by_name.end()) continue;
      pair.baseline = baseline->second.time_us;
      pair.ok = pair.ok && baseline->second.ok;
    }
  }
  return pairs;
}

void Count(const Pair& pair, Row& row) {
  ++row.cases;
  if (!pair.ok || pair.baseline <= 0 || pair.optimised <= 0) return;
  const double gain = pair.baseline / pair.optimised;
  ++row.right;
  row.faster += gain > 1.01;
  row.slower += gain < 0.99;
  row.logs += std::log(gain);
  row.worst = std::min(row.worst, gain);
  row.best = std::max(row.best, gain);
  row.baseline += pair.baseline;
  row.optimised += pair.optimised;
}

void Print(const std::string& op, const Row& row) {
  if (row.right == 0) {
    std::printf("%-28s %6d %6d\n", op.c_str(), row.cases, row.right);
    return;
  }
  std::printf("%-28s %6d %6d %7d %7d %7.3f %7.3f %7.3f %7.3f\n", op.c_str(), row.cases, row.right,
              row.faster, row.slower, std::exp(row.logs / row.right), row.worst, row.best,
              row.baseline / row.optimised);
}

// Of the pairs of a file of results, by operator: how many, how many of them right, faster, slower (by
// more than 1 %), and speed-ups: geometric mean, worst, best; the last row is over all.
bool Summarize(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    std::cerr << "gpu_runner: cannot read " << path << "\n";
    return false;
  }
  std::map<std::string, Row> rows;
  for (const auto& [place, pair] : PairsOf(ReadVariants(file))) {
    Count(pair, rows[pair.op]);
    if (pair.is_counted) Count(pair, rows["~ all"]);
  }
  std::printf("%-28s %6s %6s %7s %7s %7s %7s %7s %7s\n", "operator", "cases", "right", "faster",
              "slower", "mean", "worst", "best", "total");
  for (const auto& [op, row] : rows) Print(op, row);
  return true;
}

// The bundles, a row each: launches; blocks of all of them; the most threads, and bytes of shared memory, of a block;
// how much the arrays hold that each launch has as arguments, in MiB: what goes through global memory at least, if
// caches hold nothing from one launch to the next.
bool List(const std::vector<std::string>& roots) {
  std::printf("%-48s %8s %9s %7s %7s %9s\n", "bundle", "launches", "blocks", "threads", "shared",
              "MiB");
  bool ok = true;
  for (const std::string& root : roots) {
    for (const Group& group : FindBundles(root)) {
      for (const std::string& path : group) {
        std::ifstream file(path + "/bundle.json");
        const Json json = Json::parse(file, nullptr, false);
        if (!json.is_object() || !json.contains("kernels") || !json.contains("values")) {
          std::cerr << "gpu_runner: cannot read " << path << "/bundle.json\n";
          ok = false;
          continue;
        }
        std::vector<double> sizes;
        for (const Json& value : json["values"]) {
          const auto type = ir::ParseType(value.value("type", ""));
          double bytes =
              type && value.contains("extents") ? static_cast<double>(ir::ByteSize(*type)) : 0;
          for (const Json& extent : value.value("extents", Json::array()))
            bytes *= extent.get<double>();
          sizes.push_back(bytes);
        }
        int64_t launches = 0, threads = 0, shared = 0;
        double blocks = 0, moved = 0;
        const auto launch = [&](const Json& kernel, double grid) {
          ++launches;
          blocks += grid;
          threads = std::max(threads, kernel["block"][0].get<int64_t>() *
                                          kernel["block"][1].get<int64_t>() *
                                          kernel["block"][2].get<int64_t>());
          shared = std::max(shared, kernel["shared_bytes"].get<int64_t>());
          for (const Json& argument : kernel["arguments"])
            moved += sizes.at(argument.get<size_t>());
        };
        const auto product = [](const Json& extents, size_t first) {
          return extents[first].get<double>() * extents[first + 1].get<double>() *
                 extents[first + 2].get<double>();
        };
        if (json.contains("launches")) {
          for (const Json& row : json["launches"]) {
            launch(json["kernels"].at(row[0].get<size_t>()), product(row, 1));
          }
        } else {
          for (const Json& kernel : json["kernels"]) launch(kernel, product(kernel["grid"], 0));
        }
        std::printf("%-48s %8lld %9.0f %7lld %7lld %9.1f\n", path.c_str(),
                    static_cast<long long>(launches), blocks, static_cast<long long>(threads),
                    static_cast<long long>(shared), moved / (1 << 20));
      }
    }
  }
  return ok;
}

int Main(int argc, char** argv) {
  const auto start = std::chrono::steady_clock::now();
  Flags flags;
  if (!Parse(argc, argv, &flags)) return 2;
  if (!flags.summary.empty()) return Summarize(flags.summary) ? 0 : 2;
  if (flags.list) return List(flags.roots) ? 0 : 2;
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
