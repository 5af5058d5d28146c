// Damaged machine files, assembly and programs: each is accepted or refused with its place, and what is
// accepted can be written and read again.
#include "testing/fuzz.h"

#include <fstream>
#include <sstream>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "gtest/gtest.h"
#include "isa/machine.h"
#include "isa/program.h"

namespace polynao::isa {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  POLYNAO_CHECK(!text.str().empty()) << path;
  return text.str();
}

// All forms that a line of assembly can have.
constexpr char kAssembly[] = R"(
.program add                  # adds
.machine "core.nmem_kib=512"
.machine "gmem.dram=flat"
.tensor x f16 any in
.tensor y f32 [4, 5] inout    // other comments
.tensor "odd name\n" i8 [] out
.scalar n i64
.equ TILE 0x400
.equ HALF TILE - 512
.reg size r5

start: again:
  li size, TILE + HALF
  li r2, f16(-1.5)
  li r3, -9223372036854775808
  blt size, r2, done
  add.f16 r1, r2, r3, size
  memcpy.f16.nmem.gmem.async r0, r3, r4, r5, r0, r0
  jump start
done:
  halt
)";

std::vector<std::string> AssemblyCorpus() {
  return {kAssembly, ReadAll("tests/data/copy.nasm"), ".program empty\n"};
}

void ExpectSurvives(const FuzzTarget& target, int64_t cases) {
  const FuzzResult result = Fuzz(target, FuzzCases(cases), FuzzSeed());
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.accepted, 0);
  EXPECT_GT(result.refused, 0);
  testing::Test::RecordProperty("accepted", static_cast<int>(result.accepted));
  testing::Test::RecordProperty("refused", static_cast<int>(result.refused));
}

TEST(Fuzz, MachineFiles) {
  FuzzTarget target;
  for (const char* name : {"mlu270", "unit"}) {
    target.corpus.push_back(ReadAll(StrCat("simulator/configs/", name, ".toml")));
  }
  target.parse = [](const std::string& input) -> absl::Status {
    ASSIGN_OR_RETURN(const Machine machine, ParseMachine(input, "m.toml"));
    // Whatever a machine file says, the sizes that programs are compiled for are positive.
    if (machine.nmem_bytes() <= 0 || machine.smem_bytes() <= 0 || machine.wmem_bytes() <= 0 ||
        machine.gmem_bytes_per_cycle() <= 0) {
      return absl::InternalError("a machine without memory was accepted");
    }
    return absl::OkStatus();
  };
  target.place = R"(m\.toml(:\d+)?: )";
  ExpectSurvives(target, 3000);
}

TEST(Fuzz, MachineOverrides) {
  const std::string text = ReadAll("simulator/configs/mlu270.toml");
  FuzzTarget target;
  target.corpus = {"core.nmem_kib=256", "gmem.cache_kib=0", "io_dma.burst=1024",
                   "tensor.macs_f16=1", "gmem.dram=flat",   "gmem.cache_reads=0"};
  target.parse = [&](const std::string& input) {
    return ParseMachine(text, "m.toml", {input}).status();
  };
  target.place = "(override|overrides: )";
  ExpectSurvives(target, 200);
}

// Text from a program, and the same program from that text.
absl::Status CheckRoundTrip(const Program& program) {
  const absl::StatusOr<std::string> text = Disassemble(DianNao(), program);
  // A word that is no instruction has no text; the simulator refuses it when it is reached.
  if (!text.ok()) return absl::OkStatus();
  const absl::StatusOr<Program> again = Assemble(DianNao(), *text, "again.nasm");
  if (!again.ok()) return absl::InternalError(StrCat(again.status().message(), " in\n", *text));
  if (*again == program) return absl::OkStatus();
  return absl::InternalError(StrCat("another program is read from\n", *text));
}

TEST(Fuzz, Assembly) {
  FuzzTarget target;
  target.corpus = AssemblyCorpus();
  target.parse = [](const std::string& input) -> absl::Status {
    ASSIGN_OR_RETURN(const Program program, Assemble(DianNao(), input, "p.nasm"));
    return CheckRoundTrip(program);
  };
  target.place = R"(p\.nasm(:\d+(:\d+)?)?: )";
  ExpectSurvives(target, 3000);
}

std::vector<std::string> ProgramCorpus() {
  std::vector<std::string> corpus;
  for (const std::string& text : AssemblyCorpus()) {
    const absl::StatusOr<Program> program = Assemble(DianNao(), text, "p.nasm");
    POLYNAO_CHECK(program.ok()) << program.status();
    corpus.push_back(Serialize(*program));
  }
  return corpus;
}

absl::Status CheckProgram(const std::string& bytes) {
  ASSIGN_OR_RETURN(const Program program, Deserialize(bytes, "p.bin"));
  if (Serialize(program) != bytes) return absl::InternalError("other bytes are written");
  return CheckRoundTrip(program);
}

TEST(Fuzz, Programs) {
  FuzzTarget target;
  target.corpus = ProgramCorpus();
  target.parse = CheckProgram;
  target.place = R"(p\.bin: byte \d+: )";
  ExpectSurvives(target, 1000);
}

// With a header that fits, so that damage reaches what the checksum guards.
TEST(Fuzz, BodiesOfPrograms) {
  FuzzTarget target;
  for (const std::string& bytes : ProgramCorpus()) {
    target.corpus.push_back(bytes.substr(kProgramHeaderBytes));
  }
  target.parse = [](const std::string& body) { return CheckProgram(WithProgramHeader(body)); };
  target.place = R"(p\.bin: byte \d+: )";
  ExpectSurvives(target, 3000);
}

}  // namespace
}  // namespace polynao::isa
