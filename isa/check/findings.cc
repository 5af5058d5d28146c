#include "isa/check/findings.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/text.h"
#include "isa/levels.h"
#include "isa/ranges.h"

namespace polynao::isa {
namespace {

using Kind = ProgramFinding::Kind;

// "NMEM"
std::string MemoryName(Space space) {
  std::string name(SpaceName(space));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

const char* Verb(const Access& access) { return access.ranges.is_write ? "writes" : "reads"; }

}  // namespace

std::string CoreText(const CheckedCore& core) {
  return core.is_memory_core ? StrCat("the memory core of cluster ", core.cluster)
                             : StrCat("core ", core.core, " of cluster ", core.cluster);
}

std::string Findings::Place(int64_t pc) const {
  return StrCat("pc ", pc, " \"", DisassembleWord(set_, program_, pc), "\"");
}

bool Findings::IsNew(Kind kind, int64_t pc, int64_t other_pc) {
  return known_.insert({kind, std::min(pc, other_pc), std::max(pc, other_pc)}).second;
}

bool Findings::HasHazard(int64_t pc, int64_t other_pc, bool is_uncertain) const {
  const auto [low, high] = std::minmax(pc, other_pc);
  return known_.contains({Kind::kHazard, low, high}) ||
         (is_uncertain && known_.contains({Kind::kUndecided, low, high}));
}

void Findings::AddHazard(const CheckedCore& core, const Access& access, const CheckedCore& other,
                         const Access& earlier, std::string_view missing) {
  const bool is_uncertain = access.is_uncertain || earlier.is_uncertain;
  const Kind kind = is_uncertain ? Kind::kUndecided : Kind::kHazard;
  if (!IsNew(kind, access.pc, earlier.pc)) return;
  const std::string who = core == other ? "" : StrCat(" on ", CoreText(other));
  const std::optional<int64_t> byte = CommonByte(access.ranges, earlier.ranges);
  const std::string what = StrCat(
      is_uncertain ? "perhaps, by values that are not known, a hazard: " : "hazard: ", Verb(access),
      is_uncertain ? " bytes" : StrCat(" byte ", byte.value_or(-1)), " of ",
      MemoryName(access.ranges.space), ", which ", Place(earlier.pc), " ", Verb(earlier), who,
      ", and ", missing, " lies between");
  findings_.push_back(
      {kind, access.pc, earlier.pc, StrCat(CoreText(core), " ", Place(access.pc), ": ", what)});
}

void Findings::Add(Kind kind, const CheckedCore& core, int64_t pc, std::string_view what) {
  if (!IsNew(kind, pc, -1)) return;
  findings_.push_back({kind, pc, -1, StrCat(CoreText(core), " ", Place(pc), ": ", what)});
}

void Findings::AddBarrier(int64_t pc, int64_t other_pc, std::string text) {
  if (!IsNew(Kind::kBarrier, pc, other_pc)) return;
  findings_.push_back({Kind::kBarrier, pc, other_pc, std::move(text)});
}

}  // namespace polynao::isa
