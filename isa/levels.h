// The levels of an accelerator card and their memories, as programs name them. A machine file (isa/machine.h) says
// how many units a level has and how large its memories are; the names here are the same on every machine.
//
//   card       GMEM
//     cluster  SMEM        its number: thread axis "cid"
//       core   NMEM, WMEM  its number in the cluster: thread axis "tid"
#ifndef ISA_LEVELS_H_
#define ISA_LEVELS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace polynao::isa {

// Memories with addresses of their own. Addresses are bytes from 0.
enum class Space : uint8_t { kGmem, kSmem, kNmem, kWmem };
inline constexpr int kSpaceCount = 4;

// The names of memories: scopes of buffers in loop IR, suffixes of mnemonics.
inline constexpr std::string_view kGmem = "gmem";
inline constexpr std::string_view kSmem = "smem";
inline constexpr std::string_view kNmem = "nmem";
inline constexpr std::string_view kWmem = "wmem";
inline constexpr std::array<std::string_view, kSpaceCount> kSpaceNames = {kGmem, kSmem, kNmem,
                                                                          kWmem};
constexpr std::string_view SpaceName(Space space) { return kSpaceNames[static_cast<int>(space)]; }
constexpr std::optional<Space> ParseSpace(std::string_view name) {
  for (int i = 0; i < kSpaceCount; ++i) {
    if (kSpaceNames[i] == name) return static_cast<Space>(i);
  }
  return std::nullopt;
}

// From the outermost level inwards.
enum class Level : uint8_t { kCard, kCluster, kCore };

// The thread axes: the numbers of the units of a level within the level around it.
inline constexpr std::string_view kClusterAxis = "cid";
inline constexpr std::string_view kCoreAxis = "tid";

// The level whose units an axis numbers; none if the card has no such axis.
constexpr std::optional<Level> LevelOfAxis(std::string_view axis) {
  if (axis == kClusterAxis) return Level::kCluster;
  if (axis == kCoreAxis) return Level::kCore;
  return std::nullopt;
}

// The level that has a memory: all units below it share the memory.
constexpr Level LevelOf(Space space) {
  return space == Space::kGmem   ? Level::kCard
         : space == Space::kSmem ? Level::kCluster
                                 : Level::kCore;
}

}  // namespace polynao::isa

#endif  // ISA_LEVELS_H_
