#include "kernels/ladder/ladder.h"

#include <algorithm>

#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "base/text.h"
#include "kernels/ladder/ladder_text.h"

namespace polynao::kernels {
namespace {

constexpr std::string_view kFromGmem = "  memcpy.i8.nmem.gmem raw, b, block, one, zero, zero\n";
constexpr std::string_view kStridedStore =
    "  memcpy.f16.gmem.nmem c, result, side, side, stride, side\n";
constexpr std::string_view kRowByRow =
    "  mov from, result\n"
    "  mov to, c\n"
    "  li t, SIDE\n"
    "row:\n"
    "  memcpy.f16.gmem.nmem to, from, side, one, zero, zero\n"
    "  addi from, from, ROW\n"
    "  add to, to, pitch\n"
    "  addi t, t, -1\n"
    "  blt zero, t, row\n";
// The memory core has loaded the round's part; `slot` says where.
constexpr std::string_view kFromSmem =
    "  barrier.cluster\n"
    "  mul t, tid, block\n"
    "  add t, t, slot\n"
    "  memcpy.i8.nmem.smem raw, t, block, one, zero, zero\n";
constexpr std::string_view kSwap =
    "  mov t, slot\n"
    "  mov slot, next_slot\n"
    "  mov next_slot, t\n";
constexpr std::string_view kBarrier = "  barrier.cluster\n";
// Columns of the cluster that are left, and where its part of B begins.
constexpr std::string_view kFeedBegins =
    "  mul t, core, side\n"
    "  sub left, columns, t\n"
    "  mul t, core, block\n"
    "  add b, b, t\n"
    "feed:\n"
    "  memcpy.i8.smem.gmem slot, b, cluster_block, one, zero, zero\n"
    "  barrier.cluster\n";
constexpr std::string_view kFeedEnds =
    "  add b, b, step_b\n"
    "  sub left, left, step\n"
    "  blt zero, left, feed\n";

struct Texts {
  std::string fetch, store, round_ends, memory_core;
};

Texts TextsOf(const std::string& step) {
  const auto join = [](auto... parts) { return StrCat(parts...); };
  if (step == "3") return {join(kFromGmem), join(kStridedStore), "", ""};
  if (step == "4_1") return {join(kFromGmem), join(kRowByRow), "", ""};
  if (step == "5") {
    return {join(kFromSmem), join(kRowByRow), join(kBarrier),
            join(kFeedBegins, kBarrier, kFeedEnds)};
  }
  // Two halves of SMEM: when the cores come to the barrier, they have copied the half before.
  return {join(kFromSmem, kSwap), join(kRowByRow), "", join(kFeedBegins, kSwap, kFeedEnds)};
}

}  // namespace

const std::vector<LadderStep>& LadderSteps() {
  static const auto* steps = new std::vector<LadderStep>{
      {"3", "one core, one strided store a round", 84.49, /*one_core=*/true},
      {"4_1", "all cores, 256 stores of 512 bytes a round", 13.06},
      {"5", "and B by way of SMEM", 12.40},
      {"6", "and the next round's B meanwhile", 12.20},
  };
  return *steps;
}

absl::StatusOr<isa::Program> LadderProgram(const std::string& step, const Target& target) {
  const auto& steps = LadderSteps();
  const auto found =
      std::find_if(steps.begin(), steps.end(), [&](const LadderStep& s) { return s.name == step; });
  if (found == steps.end()) {
    return InvalidInput("the ladder has steps 3, 4_1, 5 and 6, not '", step, "'");
  }
  const isa::Machine& machine = *target.machine;
  const auto fits = [&](const char* memory, int64_t bytes, int64_t need) -> absl::Status {
    if (bytes >= need) return absl::OkStatus();
    return InvalidInput("step ", step, " of the ladder needs ", need, " bytes of ", memory,
                        ": machine ", machine.name, " has ", bytes);
  };
  constexpr int64_t kBlock = kLadderSide * kLadderSide;
  RETURN_IF_ERROR(fits("NMEM", machine.nmem_bytes(), 7 * kBlock));
  RETURN_IF_ERROR(fits("WMEM", machine.wmem_bytes(), kBlock));
  const int64_t slots = step == "5" ? 1 : step == "6" ? 2 : 0;
  RETURN_IF_ERROR(fits("SMEM", machine.smem_bytes(), slots * machine.cores_per_cluster() * kBlock));
  const Texts texts = TextsOf(step);
  const std::string text = absl::StrReplaceAll(
      ToAbsl(LadderText()), {{"$STEP", absl::StrCat("step", step)},
                             {"$CORES", absl::StrCat(found->one_core ? 1 : machine.cores())},
                             {"$FETCH\n", texts.fetch},
                             {"$STORE\n", texts.store},
                             {"$ROUND_ENDS\n", texts.round_ends},
                             {"$MEMORY_CORE\n", texts.memory_core}});
  return isa::Assemble(*target.instructions, text, "kernels/ladder/gemm.nasm");
}

}  // namespace polynao::kernels
