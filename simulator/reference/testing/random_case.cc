#include "simulator/reference/testing/random_case.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "simulator/reference/testing/random_dram.h"
#include "simulator/reference/testing/random_op.h"

namespace polynao::simulator::reference {
namespace {

class MachineMaker {
 public:
  explicit MachineMaker(Random& random) : random_(random) {}

  std::vector<std::string> Make(bool is_small) {
    // On the larger card two more clusters would only take time.
    if (is_small) {
      Maybe("card.clusters", random_.From(1, 3));
      Maybe("cluster.cores", random_.From(1, 4));
    }
    Maybe("cluster.link_bytes", random_.OneOf({3, 7, 16, 33, 64, 200}));
    Maybe("core.queue_depth", random_.OneOf({1, 1, 2, 3, 5, 24}));
    Maybe("cluster.store_segments", random_.From(0, 4));
    Maybe("core.nmem_line", random_.OneOf({0, 0, 1, 8, 24, 32, 128, 1000}));
    Maybe("core.nmem_ports", random_.From(1, 2));
    Maybe("core.wmem_ports", random_.From(1, 2));
    Maybe("scalar.dependent", random_.OneOf({0, 1, 2, 5, 30}));
    Maybe("io_dma.transfers", random_.OneOf({1, 2, 3, 8}));
    Maybe("move_dma.transfers", random_.OneOf({1, 2, 3, 8}));
    Gmem();
    Maybe("scalar.issue", random_.From(1, 3));
    Maybe("scalar.simple", random_.From(1, 4));
    Maybe("scalar.nmem", random_.From(1, 25));
    Maybe("vector.start", random_.OneOf({0, 0, 1, 7, 20}));
    Maybe("vector.bytes", random_.OneOf({16, 50, 128, 4096}));
    Maybe("tensor.start", random_.From(0, 80));
    Maybe("tensor.macs_i8", random_.OneOf({64, 100, 1024, 65536}));
    Maybe("io_dma.start", random_.From(0, 40));
    Maybe("io_dma.port_bytes", random_.OneOf({3, 8, 17, 64, 128}));
    Maybe("io_dma.memory_core_port_bytes", random_.OneOf({5, 16, 100, 128}));
    Maybe("io_dma.outstanding", random_.OneOf({1, 2, 3, 5, 8, 20, 64}));
    Maybe("io_dma.strided_reads", random_.From(1, 5));
    Maybe("io_dma.strided_writes", random_.From(1, 3));
    Maybe("move_dma.start", random_.From(0, 40));
    Maybe("move_dma.port_bytes", random_.OneOf({3, 8, 17, 64, 128}));
    Maybe("move_dma.outstanding", random_.From(1, 6));
    Smem();
    Maybe("sync.drain", random_.OneOf({0, 1, 8}));
    Maybe("sync.cluster", random_.OneOf({0, 1, 32}));
    Maybe("sync.global", random_.OneOf({0, 2, 128}));
    return overrides_;
  }

 private:
  void Set(const char* name, int64_t value) {
    overrides_.push_back(absl::StrCat(name, "=", value));
  }
  void Maybe(const char* name, int64_t value) {
    if (random_.Below(2) == 0) Set(name, value);
  }
  // Some granules, but not so few bytes that a transfer takes forever.
  int64_t BurstOf(int64_t granule, std::initializer_list<int64_t> counts) {
    int64_t burst = granule * random_.OneOf(counts);
    // At least three granules of 8 bytes, and a multiple of the largest type.
    while (burst < 24 || burst % 8 != 0) burst += granule;
    return burst;
  }
  void Gmem() {
    const int64_t channels = random_.From(1, 5);
    const int64_t granule = random_.OneOf({1, 4, 8, 12, 16, 32, 40, 64, 64, 96});
    const int64_t burst = BurstOf(granule, {1, 2, 3, 4, 8, 16});
    Set("gmem.channels", channels);
    Set("gmem.granule", granule);
    Set("io_dma.burst", burst);
    Set("gmem.interleave",
        burst * std::max<int64_t>(random_.OneOf({1, 2, 5, 16}), (63 + burst) / burst));
    Maybe("gmem.latency", random_.From(0, 300));
    if (random_.Below(3) == 0) {
      const std::vector<std::string> dram = RandomDramOverrides(random_);
      overrides_.insert(overrides_.end(), dram.begin(), dram.end());
      return;
    }
    overrides_.push_back("gmem.dram=flat");
    Maybe("gmem.channel_bytes_per_kilocycle", random_.From(2'000, 60'000));
    // At least a line for each channel; often only a few, so that lines make room for others.
    const int64_t least = (channels * burst + 1023) / 1024;
    Set("gmem.cache_kib", random_.Below(3) == 0 ? 0 : least * random_.OneOf({1, 1, 2, 8, 64}));
    Set("gmem.cache_reads", random_.Below(8) == 0 ? 0 : 1);
    Maybe("gmem.cache_bytes", random_.OneOf({2, 16, 31, 128}));
    Maybe("gmem.cache_latency", random_.From(0, 300));
  }
  void Smem() {
    const int64_t granule = random_.OneOf({1, 8, 24, 64, 100, 128});
    Set("smem.granule", granule);
    Set("smem.burst", BurstOf(granule, {1, 2, 4, 16}));
    Maybe("smem.bytes", random_.OneOf({5, 16, 64, 256}));
    Maybe("smem.latency", random_.OneOf({0, 1, 20, 70}));
  }

  Random& random_;
  std::vector<std::string> overrides_;
};

// "  li r10, 5" for each operand, then the instruction.
void AppendOp(const Op& op, int64_t number, std::string& text) {
  constexpr int64_t kFirst = 10;  // register of the first operand
  std::string operands = op.before;
  for (size_t i = 0; i < op.args.size(); ++i) {
    const std::string r = absl::StrCat("r", kFirst + static_cast<int64_t>(i));
    const Op::Arg& arg = op.args[i];
    absl::StrAppend(&operands, i == 0 ? "" : ", ", arg.is_loaded ? "r41" : r);
    if (arg.is_loaded) continue;
    absl::StrAppend(&text,
                    arg.is_gmem ? absl::StrCat("  addi ", r, ", r7, ", arg.value)
                                : absl::StrCat("  li ", r, ", ", arg.value),
                    "\n");
  }
  const std::string label = absl::StrCat("again", number);
  if (op.repeat > 1) absl::StrAppend(&text, "  li r30, ", op.repeat, "\n", label, ":\n");
  absl::StrAppend(&text, "  ", op.mnemonic, operands.empty() ? "" : " ", operands, "\n");
  if (op.repeat <= 1) return;
  for (size_t i = 0; i < op.args.size(); ++i) {
    if (!op.args[i].is_gmem || op.step == 0) continue;
    const std::string r = absl::StrCat("r", kFirst + static_cast<int64_t>(i));
    absl::StrAppend(&text, "  addi ", r, ", ", r, ", ", op.step, "\n");
  }
  absl::StrAppend(&text, "  addi r30, r30, -1\n  bne r30, r0, ", label, "\n");
}

}  // namespace

RandomCase MakeRandomCase(uint64_t seed) {
  Random random(seed);
  RandomCase c;
  const bool is_small = random.Below(4) != 0;
  c.machine = is_small ? "unit" : "mlu270";
  c.overrides = MachineMaker(random).Make(is_small);
  const absl::StatusOr<isa::Machine> machine = MachineOf(c);
  const int64_t phases = random.From(1, 4);
  for (int64_t i = 1; i < phases; ++i) {
    const bool is_global = random.Below(2) == 0;
    c.ends.push_back({is_global, random.Below(8)});
  }
  // All cores at the same addresses: they compete, and find each other's lines in the cache.
  OpMaker maker(random);
  const int64_t most = is_small ? 8 : 4;
  for (int64_t cluster = 0; machine.ok() && cluster < machine->clusters(); ++cluster) {
    for (int64_t core = 0; core <= machine->cores_per_cluster(); ++core) {
      const bool is_memory_core = core == machine->cores_per_cluster();
      CoreOps ops{cluster, core, is_memory_core, {}};
      for (int64_t i = 0; i < phases; ++i) {
        std::vector<Op>& phase = ops.phases.emplace_back();
        for (int64_t n = random.From(0, most); n > 0; --n)
          phase.push_back(maker.Make(is_memory_core));
      }
      c.cores.push_back(ops);
    }
  }
  return c;
}

absl::StatusOr<isa::Machine> MachineOf(const RandomCase& c) {
  const std::string path = absl::StrCat("simulator/configs/", c.machine, ".toml");
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return isa::ParseMachine(text.str(), path, c.overrides);
}

std::string ProgramText(const RandomCase& c, const isa::Machine& machine) {
  const int64_t members = machine.cores_per_cluster() + 1;
  // Through a table of jumps, so that all cores begin in the same cycle.
  std::string text = absl::StrCat(
      ".program random\n.tensor x i8 any inout\n  arg r2, 0\n  arg r3, 1\n  arg r7, 8\n  muli r3, "
      "r3, ",
      members, "\n  add r2, r2, r3\n  addi r2, r2, table\n  jump_register r2\ntable:\n");
  for (int64_t i = 0; i < machine.clusters() * members; ++i) {
    absl::StrAppend(&text, "  jump core", i, "\n");
  }
  int64_t number = 0;
  for (int64_t i = 0; i < machine.clusters() * members; ++i) {
    const int64_t cluster = i / members;
    const bool is_memory_core = i % members == members - 1;
    const auto ops = std::find_if(c.cores.begin(), c.cores.end(), [&](const CoreOps& candidate) {
      return candidate.cluster == cluster && candidate.is_memory_core == is_memory_core &&
             (is_memory_core || candidate.core == i % members);
    });
    absl::StrAppend(&text, "core", i, ":\n");
    for (size_t phase = 0; phase <= c.ends.size(); ++phase) {
      if (ops != c.cores.end()) {
        for (const Op& op : ops->phases[phase]) AppendOp(op, number++, text);
      }
      if (phase == c.ends.size()) break;
      if (c.ends[phase].is_global) text += "  barrier.global\n";
      if (c.ends[phase].clusters >> cluster & 1) text += "  barrier.cluster\n";
    }
    text += "  halt\n";
  }
  return text;
}

}  // namespace polynao::simulator::reference
