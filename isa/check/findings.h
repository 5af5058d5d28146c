// Collects the findings of a check, each pair of instructions once, and words them.
#ifndef ISA_CHECK_FINDINGS_H_
#define ISA_CHECK_FINDINGS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "isa/check/access_list.h"
#include "isa/check/check.h"

namespace polynao::isa {

// A core in its cluster; the memory core is the one after the last.
struct CheckedCore {
  int cluster = 0;
  int core = 0;
  bool is_memory_core = false;
  bool operator==(const CheckedCore&) const = default;
};

// "core 3 of cluster 0", "the memory core of cluster 0"
std::string CoreText(const CheckedCore& core);

class Findings {
 public:
  Findings(const InstructionSet& set, const Program& program) : set_(set), program_(program) {}

  // `core` accesses what `earlier` accesses, and `missing` says what does not lie between: "no sync of the io queue".
  void AddHazard(const CheckedCore& core, const Access& access, const CheckedCore& other,
                 const Access& earlier, std::string_view missing);
  void Add(ProgramFinding::Kind kind, const CheckedCore& core, int64_t pc, std::string_view what);
  // A barrier that a core does not reach; `text` is the whole line.
  void AddBarrier(int64_t pc, int64_t other_pc, std::string text);

  // Returns true if there is a hazard between these two instructions already: then another one is no news.
  bool HasHazard(int64_t pc, int64_t other_pc, bool is_uncertain) const;
  // `pc 7 "sync.io"`
  std::string Place(int64_t pc) const;
  std::vector<ProgramFinding> Take() { return std::move(findings_); }

 private:
  using Key = std::tuple<ProgramFinding::Kind, int64_t, int64_t>;
  bool IsNew(ProgramFinding::Kind kind, int64_t pc, int64_t other_pc);

  const InstructionSet& set_;
  const Program& program_;
  std::vector<ProgramFinding> findings_;
  absl::flat_hash_set<Key> known_;
};

}  // namespace polynao::isa

#endif  // ISA_CHECK_FINDINGS_H_
