#include "simulator/testing.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"

namespace polynao::simulator {

isa::Program TestProgram(std::string_view text) {
  auto program = isa::Assemble(isa::DianNao(), text, "test.nasm");
  POLYNAO_CHECK(program.ok()) << program.status();
  return *std::move(program);
}

isa::Program OnCore0(std::string_view params, std::string_view body) {
  return OnCores(1, 1, params, body);
}

isa::Program OnCores(int clusters, int count, std::string_view params, std::string_view body) {
  return TestProgram(absl::StrCat(".program test\n", std::string(params),
                                  "\n"
                                  "  li r0, 0\n"
                                  "  li r1, 1\n"
                                  "  arg r2, 0\n"
                                  "  arg r3, 1\n"
                                  "  li r63, ",
                                  count,
                                  "\n"
                                  "  bge r2, r63, not_this_core\n"
                                  "  li r63, ",
                                  clusters,
                                  "\n"
                                  "  bge r3, r63, not_this_core\n",
                                  std::string(body),
                                  "\n"
                                  "not_this_core:\n"
                                  "  halt\n"));
}

const CoreReport& CoreOf(const RunResult& result, int cluster, int core) {
  for (const CoreReport& report : result.cores) {
    if (report.cluster == cluster && report.core == core) return report;
  }
  POLYNAO_UNREACHABLE("there is no such core");
}

int64_t Busy(const RunResult& result, isa::Unit unit, int cluster, int core) {
  return CoreOf(result, cluster, core).units[static_cast<size_t>(unit)].busy;
}

const PortReport& PortOf(const RunResult& result, std::string_view name) {
  for (const PortReport& port : result.ports) {
    if (port.name == name) return port;
  }
  POLYNAO_UNREACHABLE("there is no such port");
}

absl::StatusOr<RunResult> RunProgram(const isa::Machine& machine, const isa::Program& program,
                                     const std::vector<Argument>& arguments, RunOptions options) {
  options.machine = &machine;
  return Run(isa::DianNao(), program, arguments, options);
}

isa::Program StreamingAdd(int64_t tile) {
  // A buffer holds x, y and out of one tile; there are two, at 0 and at BUFFER.
  constexpr char kText[] = R"(
.program streaming_add
.tensor x f16 any in
.tensor y f16 any in
.tensor out f16 any out
.scalar n i64
  li r0, 0
  arg r1, 4               # memory cores have nothing to do
  bne r1, r0, end
  arg r1, 0
  arg r2, 1
  arg r3, 2
  arg r4, 3
  mul r5, r2, r3
  add r5, r5, r1          # this core, of all
  mul r6, r3, r4          # all cores
  arg r7, 8
  arg r8, 9
  arg r9, 10
  arg r10, 11
  muli r11, r5, TILE      # first element of the tile to load
  muli r12, r6, TILE
  li r13, 1
  li r14, TILE
  li r24, BUFFER
  bge r11, r10, end
  mov r30, r11            # tile to compute, in buffer r31
  li r31, 0
  li r34, 0
  sub r20, r10, r11
  min r20, r20, r14
  muli r21, r11, 2
  add r22, r7, r21
  memcpy.f16.nmem.gmem.async r31, r22, r20, r13, r0, r0
  add r22, r8, r21
  addi r23, r31, Y
  memcpy.f16.nmem.gmem.async r23, r22, r20, r13, r0, r0
  sync
loop:
  sub r33, r24, r31       # the other buffer
  beq r34, r0, no_store
  sub r20, r10, r32       # store the tile before
  min r20, r20, r14
  muli r21, r32, 2
  add r22, r9, r21
  addi r23, r33, OUT
  memcpy.f16.gmem.nmem.async r22, r23, r20, r13, r0, r0
no_store:
  add r11, r30, r12
  bge r11, r10, no_load
  sub r20, r10, r11       # load the next one
  min r20, r20, r14
  muli r21, r11, 2
  add r22, r7, r21
  memcpy.f16.nmem.gmem.async r33, r22, r20, r13, r0, r0
  add r22, r8, r21
  addi r23, r33, Y
  memcpy.f16.nmem.gmem.async r23, r22, r20, r13, r0, r0
no_load:
  sub r20, r10, r30
  min r20, r20, r14
  addi r20, r20, 63       # counts are multiples of 64
  li r25, 6
  shr r20, r20, r25
  shl r20, r20, r25
  addi r26, r31, Y
  addi r27, r31, OUT
  add.f16 r27, r31, r26, r20
  mov r32, r30
  mov r30, r11
  mov r31, r33
  li r34, 1
  sync
  blt r30, r10, loop
  sub r33, r24, r31
  sub r20, r10, r32
  min r20, r20, r14
  muli r21, r32, 2
  add r22, r9, r21
  addi r23, r33, OUT
  memcpy.f16.gmem.nmem.async r22, r23, r20, r13, r0, r0
  sync
end:
  halt
)";
  return TestProgram(absl::StrReplaceAll(kText, {{"TILE", absl::StrCat(tile)},
                                                 {"BUFFER", absl::StrCat(6 * tile)},
                                                 {"Y", absl::StrCat(2 * tile)},
                                                 {"OUT", absl::StrCat(4 * tile)}}));
}

}  // namespace polynao::simulator
