// How fast the simulator decodes and executes one instruction.
//
//   bazel run //isa:execute_benchmark
#include <benchmark/benchmark.h>

#include <vector>

#include "base/check.h"
#include "isa/instruction_set.h"
#include "isa/instructions_text.h"

namespace polynao::isa {
namespace {

const Instruction& Get(std::string_view mnemonic) {
  const Instruction* instruction = DianNao().Find(mnemonic);
  POLYNAO_CHECK(instruction != nullptr) << mnemonic;
  return *instruction;
}

struct Memories {
  std::vector<uint8_t> bytes[kSpaceCount];
  int64_t pc = 0;
  std::vector<int64_t> args = std::vector<int64_t>(16, 3);
  InstructionSet::CoreView view;

  Memories() {
    for (int s = 0; s < kSpaceCount; ++s) {
      bytes[s].assign(1 << 21, 1);
      view.memory[s] = bytes[s].data();
      view.size[s] = 1 << 21;
    }
    view.pc = &pc;
    view.args = args;
  }
};

// Executes `mnemonic`; reports the bytes of its operands and `work` operations.
void Execute(benchmark::State& state, std::string_view mnemonic, std::vector<int64_t> values,
             int64_t work) {
  Memories memories;
  const Instruction& instruction = Get(mnemonic);
  POLYNAO_CHECK(DianNao().CheckConstraints(instruction, values).ok())
      << DianNao().CheckConstraints(instruction, values).message();
  std::vector<int64_t> written(values.size());
  for (auto _ : state) {
    const absl::Status status =
        DianNao().Execute(instruction, values, memories.view, absl::MakeSpan(written));
    benchmark::DoNotOptimize(status.ok());
  }
  int64_t bytes = 0;
  for (const ByteRanges& range : DianNao().Footprint(instruction, values)) {
    bytes += range.byte_count();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetItemsProcessed(state.iterations() * work);
}

BENCHMARK_CAPTURE(Execute, add_i64, "add", {0, 5, 7}, 1);
BENCHMARK_CAPTURE(Execute, and_i64, "and", {0, 5, 7}, 1);
BENCHMARK_CAPTURE(Execute, shl_i64, "shl", {0, 5, 3}, 1);
BENCHMARK_CAPTURE(Execute, blt, "blt", {5, 7, 3}, 1);
BENCHMARK_CAPTURE(Execute, fadd_f32, "fadd.f32", {0, 0x3f800000, 0x3f800000}, 1);
BENCHMARK_CAPTURE(Execute, load_f16, "load.f16.nmem", {0, 64}, 1);
BENCHMARK_CAPTURE(Execute, add_f16_64, "add.f16", {0, 65536, 131072, 64}, 64);
BENCHMARK_CAPTURE(Execute, add_f16_16384, "add.f16", {0, 65536, 131072, 16384}, 16384);
BENCHMARK_CAPTURE(Execute, add_f32_16384, "add.f32", {0, 65536, 131072, 16384}, 16384);
BENCHMARK_CAPTURE(Execute, muls_f16_16384, "muls.f16", {0, 65536, 0x3c01, 16384}, 16384);
BENCHMARK_CAPTURE(Execute, relu_f16_16384, "relu.f16", {0, 65536, 16384}, 16384);
BENCHMARK_CAPTURE(Execute, sigmoid_f16_16384, "sigmoid.f16", {0, 65536, 16384}, 16384);
BENCHMARK_CAPTURE(Execute, sigmoid_f32_16384, "sigmoid.f32", {0, 65536, 16384}, 16384);
BENCHMARK_CAPTURE(Execute, cast_f16_i32_16384, "cast.f16.i32", {0, 65536, 16384}, 16384);
BENCHMARK_CAPTURE(Execute, reduce_sum_f32, "reduce_sum.f32", {0, 65536, 64, 256, 256}, 16384);
BENCHMARK_CAPTURE(Execute, reduce_sum_f16, "reduce_sum.f16", {0, 65536, 64, 256, 256}, 16384);
BENCHMARK_CAPTURE(Execute, reduce_max_f16, "reduce_max.f16", {0, 65536, 64, 256, 256}, 16384);
BENCHMARK_CAPTURE(Execute, fill_f16_16384, "fill.f16", {0, 5, 16384}, 16384);
BENCHMARK_CAPTURE(Execute, memcpy_16384, "memcpy.f16.nmem.gmem", {0, 0, 16384, 1, 0, 0}, 16384);
BENCHMARK_CAPTURE(Execute, memcpy_rows, "memcpy.f16.nmem.gmem", {0, 0, 64, 256, 64, 200}, 16384);
// 14 x 14 positions, 64 channels, 3 x 3 x 64.
BENCHMARK_CAPTURE(Execute, conv_i8, "conv.i8",
                  {0, 131072, 0, 14, 14, 64, 16, 3, 3, 64, 1, 1, 1, 1, 576, 576},
                  14 * 14 * 64 * 576);
BENCHMARK_CAPTURE(Execute, conv_i16, "conv.i16",
                  {0, 131072, 0, 14, 14, 64, 16, 3, 3, 64, 1, 1, 1, 1, 576, 576},
                  14 * 14 * 64 * 576);
BENCHMARK_CAPTURE(Execute, matmul_i8, "matmul.i8", {0, 131072, 0, 64, 64, 512, 512, 512},
                  64 * 64 * 512);

void LoadTable(benchmark::State& state) {
  for (auto _ : state) {
    const auto set =
        InstructionSet::Load({{"isa/instructions.nir", std::string(InstructionsText())}});
    benchmark::DoNotOptimize(set.ok());
  }
}
BENCHMARK(LoadTable)->Unit(benchmark::kMillisecond);

void Decode(benchmark::State& state) {
  std::vector<Word> words;
  for (const Instruction& instruction : DianNao().instructions()) {
    words.push_back(
        *DianNao().Encode(instruction, std::vector<int64_t>(instruction.operands.size(), 3)));
  }
  size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(DianNao().Decode(words[next]).ok());
    next = next + 1 == words.size() ? 0 : next + 1;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Decode);

const std::vector<int64_t>& AddValues() {
  static const auto* const values = new std::vector<int64_t>{0, 65536, 131072, 1024};
  return *values;
}

void CheckConstraints(benchmark::State& state) {
  const Instruction& add = Get("add.f16");
  for (auto _ : state) {
    benchmark::DoNotOptimize(DianNao().CheckConstraints(add, AddValues()).ok());
  }
}
BENCHMARK(CheckConstraints);

void Cost(benchmark::State& state) {
  const Instruction& add = Get("add.f16");
  const std::vector<int64_t> parameters(DianNao().parameter_names().size(), 7);
  for (auto _ : state) {
    benchmark::DoNotOptimize(*DianNao().Cost(add, AddValues(), parameters));
  }
}
BENCHMARK(Cost);

void Footprint(benchmark::State& state) {
  const Instruction& add = Get("add.f16");
  for (auto _ : state) {
    benchmark::DoNotOptimize(DianNao().Footprint(add, AddValues()).size());
  }
}
BENCHMARK(Footprint);

}  // namespace
}  // namespace polynao::isa

BENCHMARK_MAIN();
