#include "simulator/reference/testing/shrink.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace polynao::simulator::reference {
namespace {

class Shrinker {
 public:
  Shrinker(RandomCase c, const std::function<bool(const RandomCase&)>& fails)
      : case_(std::move(c)), fails_(fails) {}

  RandomCase Run() {
    do {
      changed_ = false;
      RemoveCores();
      MoveCores();
      UseOneCore();
      RemovePhases();
      RemoveOps();
      SimplifyMachine();
      SimplifyOps();
    } while (changed_ && attempts_ < kMaxAttempts);
    return case_;
  }

 private:
  static constexpr int kMaxAttempts = 4000;

  // Keeps the candidate if it fails too.
  bool Try(const RandomCase& candidate) {
    if (++attempts_ > kMaxAttempts || !fails_(candidate)) return false;
    case_ = candidate;
    changed_ = true;
    return true;
  }

  static bool MakesOne(const std::string& override) {
    return override == "card.clusters=1" || override == "cluster.cores=1";
  }

  // One cluster of one core, if that is enough: the program is then much shorter.
  void UseOneCore() {
    for (const char* one : {"card.clusters=1", "cluster.cores=1"}) {
      if (std::count(case_.overrides.begin(), case_.overrides.end(), one) > 0) continue;
      RandomCase candidate = case_;
      const std::string name = std::string(one).substr(0, std::string(one).find('=') + 1);
      std::erase_if(candidate.overrides,
                    [&](const std::string& text) { return text.starts_with(name); });
      candidate.overrides.push_back(one);
      Try(candidate);
    }
  }

  void RemoveCores() {
    for (size_t i = case_.cores.size(); i-- > 0;) {
      RandomCase candidate = case_;
      candidate.cores.erase(candidate.cores.begin() + static_cast<std::ptrdiff_t>(i));
      Try(candidate);
    }
  }

  // Gives the instructions of a core to an earlier one that has none.
  void MoveCores() {
    for (size_t i = 0; i < case_.cores.size(); ++i) {
      for (int64_t cluster = 0; cluster <= case_.cores[i].cluster; ++cluster) {
        for (int64_t core = 0; core <= case_.cores[i].core; ++core) {
          const bool is_used =
              std::any_of(case_.cores.begin(), case_.cores.end(), [&](const CoreOps& other) {
                return other.cluster == cluster && other.core == core && !other.is_memory_core;
              });
          if (is_used) continue;
          RandomCase candidate = case_;
          candidate.cores[i].cluster = cluster;
          candidate.cores[i].core = core;
          candidate.cores[i].is_memory_core = false;
          Try(candidate);
        }
      }
    }
  }

  // Joins each phase with the next one, or drops the barriers of single clusters.
  void RemovePhases() {
    for (size_t i = case_.ends.size(); i-- > 0;) {
      RandomCase candidate = case_;
      candidate.ends.erase(candidate.ends.begin() + static_cast<std::ptrdiff_t>(i));
      for (CoreOps& core : candidate.cores) {
        std::vector<Op>& next = core.phases[i + 1];
        core.phases[i].insert(core.phases[i].end(), next.begin(), next.end());
        core.phases.erase(core.phases.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
      if (Try(candidate)) continue;
      candidate = case_;
      candidate.ends[i].is_global = false;
      if (case_.ends[i].is_global && Try(candidate)) continue;
      candidate = case_;
      candidate.ends[i].clusters = 0;
      if (case_.ends[i].clusters != 0) Try(candidate);
    }
  }

  void RemoveOps() {
    for (size_t c = 0; c < case_.cores.size(); ++c) {
      for (size_t p = 0; p < case_.cores[c].phases.size(); ++p) {
        const size_t size = case_.cores[c].phases[p].size();
        for (size_t chunk = std::max<size_t>(size / 2, 1); chunk > 0; chunk /= 2) {
          for (size_t at = 0; at + chunk <= case_.cores[c].phases[p].size();) {
            RandomCase candidate = case_;
            std::vector<Op>& ops = candidate.cores[c].phases[p];
            const auto first = ops.begin() + static_cast<std::ptrdiff_t>(at);
            ops.erase(first, first + static_cast<std::ptrdiff_t>(chunk));
            if (!Try(candidate)) at += chunk;
          }
        }
      }
    }
  }

  void SimplifyMachine() {
    if (case_.machine != "unit") {
      RandomCase candidate = case_;
      candidate.machine = "unit";
      Try(candidate);
    }
    SimplifyNumber([](RandomCase& of) { return &of.tensor_bytes; });
    for (size_t i = case_.overrides.size(); i-- > 0;) {
      if (MakesOne(case_.overrides[i])) continue;
      RandomCase candidate = case_;
      candidate.overrides.erase(candidate.overrides.begin() + static_cast<std::ptrdiff_t>(i));
      if (Try(candidate)) continue;
      const std::string text = case_.overrides[i];
      const size_t equals = text.find('=');
      int64_t value = 0;
      if (!absl::SimpleAtoi(text.substr(equals + 1), &value)) continue;
      for (int64_t smaller : Smaller(value)) {
        candidate = case_;
        candidate.overrides[i] = absl::StrCat(text.substr(0, equals + 1), smaller);
        if (Try(candidate)) break;
      }
    }
  }

  static std::vector<int64_t> Smaller(int64_t value) {
    std::vector<int64_t> result;
    for (int64_t smaller : {int64_t{0}, int64_t{1}, value / 2, value / 128 * 128, value / 64 * 64,
                            value / 8 * 8, value - 1}) {
      if (smaller >= 0 && smaller < value) result.push_back(smaller);
    }
    return result;
  }

  template <typename Field>
  void SimplifyNumber(const Field& field) {
    RandomCase original = case_;
    for (int64_t smaller : Smaller(*field(original))) {
      RandomCase candidate = case_;
      *field(candidate) = smaller;
      if (Try(candidate)) return;
    }
  }

  void SimplifyOps() {
    for (size_t c = 0; c < case_.cores.size(); ++c) {
      for (size_t p = 0; p < case_.cores[c].phases.size(); ++p) {
        for (size_t o = 0; o < case_.cores[c].phases[p].size(); ++o) {
          const auto op = [=](RandomCase& of) { return &of.cores[c].phases[p][o]; };
          SimplifyNumber([=](RandomCase& of) { return &op(of)->repeat; });
          SimplifyNumber([=](RandomCase& of) { return &op(of)->step; });
          for (size_t a = 0; a < op(case_)->args.size(); ++a) {
            SimplifyNumber([=](RandomCase& of) { return &op(of)->args[a].value; });
          }
        }
      }
    }
  }

  RandomCase case_;
  const std::function<bool(const RandomCase&)>& fails_;
  bool changed_ = false;
  int attempts_ = 0;
};

}  // namespace

RandomCase Shrink(RandomCase c, const std::function<bool(const RandomCase&)>& fails) {
  return Shrinker(std::move(c), fails).Run();
}

}  // namespace polynao::simulator::reference
