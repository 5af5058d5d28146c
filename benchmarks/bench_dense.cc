#include "benchmarks/bench_dense.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/elapsed.h"
#include "base/median.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/dense_cases.h"
#include "benchmarks/dense_result.h"
#include "benchmarks/fusion_result.h"
#include "benchmarks/measure.h"
#include "benchmarks/name_filter.h"
#include "cases/case_text.h"
#include "cases/executable.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/uniform_tensor.h"
#include "compiler/te/graph.h"
#include "kernels/operators.h"
#include "kernels/te/processor.h"

namespace polynao::benchmarks {
namespace {

// Of the largest value: sums of products in another order.
constexpr double kTolerance = 1e-4;
// Threads of a library wait for more work in a loop; after so long they sleep, and the next implementation has the
// cores to itself.
constexpr auto kPause = std::chrono::milliseconds(10);

// Layers that test the suite: edges of tiles, groups, integers.
const std::vector<SuiteCase>& SmallCases() {
  static const auto* cases = new std::vector<SuiteCase>{
      {.op_class = "conv",
       .op = "conv2d",
       .shape = "9x7x5,6x3x3x5",
       .dtype = "f32",
       .attributes = {"stride=2", "bias=1", "relu=1", "out=f32"}},
      {.op_class = "conv",
       .op = "conv2d",
       .shape = "9x7x5,6x3x3x5",
       .dtype = "i8",
       .attributes = {"out=i32"}},
      {.op_class = "depthwise",
       .op = "conv2d",
       .shape = "7x8x6,6x3x3x1",
       .dtype = "f32",
       .attributes = {"groups=6", "out=f32"}},
      {.op_class = "product",
       .op = "matmul",
       .shape = "17x35,33x35",
       .dtype = "f32",
       .attributes = {"out=f32"}},
      {.op_class = "product",
       .op = "matmul",
       .shape = "17x67,33x67",
       .dtype = "bf16",
       .attributes = {"out=f32"}},
      {.op_class = "product",
       .op = "matmul",
       .shape = "1x35,33x35",
       .dtype = "i8",
       .attributes = {"out=i32"}},
      {.op_class = "batch",
       .op = "batched_matmul",
       .shape = "3x5x7,3x7x9",
       .dtype = "f32",
       .attributes = {"out=f32"}},
  };
  return *cases;
}

struct Free {
  void operator()(void* block) const { std::free(block); }
};

using Block = std::unique_ptr<void, Free>;

// Memory of so many bytes, at the beginning of a page.
absl::StatusOr<Block> NewBlock(size_t bytes) {
  constexpr size_t kPage = 4096;
  Block block(std::aligned_alloc(kPage, (bytes / kPage + 1) * kPage));
  if (block == nullptr)
    return absl::ResourceExhaustedError(StrCat("no memory for ", bytes, " bytes"));
  return block;
}

// A layer, and memory with its inputs and its output.
struct Layer {
  kernels::OperatorCase operator_case;
  const kernels::Operator* op = nullptr;
  PeerLayer peer = {};
  double macs = 0, bytes = 0;
  std::vector<kernels::TensorSpec> specs;
  std::vector<Block> blocks;
  std::vector<void*> buffers;
  size_t output_bytes = 0;
};

PeerLayer PeerLayerOf(const kernels::Operator& op, const kernels::OperatorCase& c) {
  const auto attribute = [&](const char* name) {
    return kernels::AttributeInt(op, c, name).value_or(0);
  };
  PeerLayer layer = {};
  layer.type = ir::IsInt(c.dtype) ? kI8 : c.dtype == ir::Type::kBF16 ? kBF16 : kF32;
  layer.bias = attribute("bias");
  layer.relu = attribute("relu");
  layer.batch = layer.w = layer.kh = layer.kw = layer.stride = layer.dilation = layer.groups = 1;
  const std::vector<int64_t>&x = c.shape, &f = c.operands[0];
  if (c.op == "conv2d") {
    layer.kind = kConv;
    layer.h = x[0], layer.w = x[1], layer.ci = x[2];
    layer.co = f[0], layer.kh = f[1], layer.kw = f[2];
    layer.stride = attribute("stride");
    layer.dilation = attribute("dilation");
    layer.groups = attribute("groups");
    const std::optional<int64_t> pad = kernels::AttributeInt(op, c, "pad");
    layer.pad_h = pad.value_or(layer.dilation * (layer.kh - 1) / 2);
    layer.pad_w = pad.value_or(layer.dilation * (layer.kw - 1) / 2);
    return layer;
  }
  const bool is_batch = c.op == "batched_matmul";
  layer.kind = is_batch ? kBatchedMatmul : kMatmul;
  if (is_batch) layer.batch = x[0];
  layer.h = x[x.size() - 2], layer.ci = x.back();
  layer.co = is_batch ? f[2] : f[0];
  return layer;
}

// Even weights of seven bits. On processors without dot products of bytes oneDNN adds two products in 16 bits, which
// saturate; so its convolutions halve weights there, and else it asks for such (its guide, "Nuances of int8
// computations"). Of other weights its values would be others.
void HalveWeights(ir::Tensor& tensor) {
  for (uint8_t& byte : tensor.bytes) {
    byte = static_cast<uint8_t>((std::bit_cast<int8_t>(byte) >> 1) & ~1);
  }
}

absl::StatusOr<Layer> MakeLayer(const SuiteCase& c, uint64_t seed) {
  Layer layer;
  ASSIGN_OR_RETURN(
      layer.operator_case,
      cases::ParseCase(
          {.op = c.op, .shape = c.shape, .dtype = c.dtype, .attributes = c.attributes}));
  ASSIGN_OR_RETURN(layer.op, kernels::FindOperator(layer.operator_case));
  layer.peer = PeerLayerOf(*layer.op, layer.operator_case);
  layer.specs = layer.op->tensors(layer.operator_case);
  for (size_t i = 0; i < layer.specs.size(); ++i) {
    ir::Tensor tensor(layer.specs[i].type, layer.specs[i].shape);
    ir::FillUniform(tensor, seed + i);
    if (i == 1 && tensor.type == ir::Type::kI8) HalveWeights(tensor);
    const size_t bytes = tensor.bytes.size();
    layer.bytes += static_cast<double>(bytes);
    ASSIGN_OR_RETURN(Block block, NewBlock(bytes));
    std::memcpy(block.get(), tensor.bytes.data(), bytes);
    layer.buffers.push_back(block.get());
    layer.blocks.push_back(std::move(block));
    layer.output_bytes = bytes;
  }
  const PeerLayer& p = layer.peer;
  layer.macs = static_cast<double>(layer.output_bytes / sizeof(float)) *
               static_cast<double>(p.kh * p.kw * (p.ci / p.groups));
  return layer;
}

// ---- implementations

// One implementation of a layer on a number of threads.
struct Contestant {
  ComparisonEntry* entry;
  std::function<absl::Status()> run;
  std::vector<double> times = {};  // ns
};

struct Implementation {
  std::string name;           // "onednn-reorder"
  const DensePeer* peer;      // null: this compiler
  bool packs_before = false;  // this compiler's: the weights
  bool reorders = false;      // a peer's: the weights in each run
  std::string command, missing = {};
};

size_t BytesOf(ir::Buffer buffer) {
  int64_t count = ir::ByteSize(buffer->type);
  for (const ir::Expr extent : buffer->extents) count *= extent.int_value();
  return static_cast<size_t>(count);
}

absl::StatusOr<std::function<absl::Status()>> Compiled(const Layer& layer,
                                                       const Implementation& how, int threads,
                                                       ComparisonEntry& entry) {
  const Clock::time_point start = Clock::now();
  te::Graph graph(layer.operator_case.op);
  kernels::ProcessorOptions options{.threads = threads, .takes_dots = true};
  if (how.packs_before) options.constants = {layer.specs[1].name};
  ASSIGN_OR_RETURN(
      const kernels::ProcessorFunctions functions,
      kernels::LowerForProcessor(layer.op->express(graph, layer.operator_case), options));
  entry.schedule_ms = SecondsSince(start) * 1e3;
  const cases::ExecutableOptions executable_options = {.target = "cpu", .threads = threads};
  ASSIGN_OR_RETURN(cases::Executable run, cases::MakeExecutable(functions.run, executable_options));
  entry.compile_ms = entry.schedule_ms + run.compile_ms;
  const DenseRoof roof = RoofOn(threads);
  // What the last cache holds is still there in the next run.
  const bool leaves_caches = layer.bytes > static_cast<double>(sysconf(_SC_LEVEL3_CACHE_SIZE));
  const double rate = layer.peer.type == kI8     ? roof.i8
                      : layer.peer.type == kBF16 ? roof.bf16
                                                 : roof.f32;
  entry.figures = {
      {"mac_ms", rate > 0 ? layer.macs / rate * 1e3 : 0},
      {"memory_ms", leaves_caches && roof.bytes > 0 ? layer.bytes / roof.bytes * 1e3 : 0}};

  std::map<std::string, void*> places;
  for (size_t i = 0; i < layer.specs.size(); ++i) places[layer.specs[i].name] = layer.buffers[i];
  const auto buffers_of = [&](const ir::Function& function) {
    std::vector<void*> buffers;
    for (const ir::Param& param : function.params) {
      // An output may be named by its step.
      const auto place = places.find(std::string(param.name()));
      buffers.push_back(place == places.end() ? layer.buffers.back() : place->second);
    }
    return buffers;
  };
  std::vector<Block> panels;
  if (functions.before) {
    for (const ir::Param& param : functions.before->params) {
      if (param.access != ir::Access::kOut) continue;
      ASSIGN_OR_RETURN(Block block, NewBlock(BytesOf(param.buffer)));
      places[std::string(param.name())] = block.get();
      panels.push_back(std::move(block));
    }
    ASSIGN_OR_RETURN(const cases::Executable before,
                     cases::MakeExecutable(*functions.before, executable_options));
    entry.compile_ms += before.compile_ms;
    const std::vector<void*> buffers = buffers_of(*functions.before);
    // The second time memory is there.
    for (int i = 0; i < 2; ++i) {
      const Clock::time_point begin = Clock::now();
      RETURN_IF_ERROR(before.to_status(before.entry(buffers.data(), nullptr)));
      if (i == 1) entry.figures.emplace_back("pack_ms", SecondsSince(begin) * 1e3);
    }
  }
  const auto kept = std::make_shared<std::vector<Block>>(std::move(panels));
  return std::function<absl::Status()>(
      [run = std::move(run), buffers = buffers_of(functions.run), kept] {
        return run.to_status(run.entry(buffers.data(), nullptr));
      });
}

absl::StatusOr<std::function<absl::Status()>> Opened(const Layer& layer, const Implementation& how,
                                                     int threads) {
  PeerLayer peer = layer.peer;
  peer.threads = threads;
  ASSIGN_OR_RETURN(std::unique_ptr<DenseLayer> opened, how.peer->Open(peer, layer.buffers));
  const std::shared_ptr<DenseLayer> shared = std::move(opened);
  return std::function<absl::Status()>([shared, reorders = how.reorders]() -> absl::Status {
    if (reorders) RETURN_IF_ERROR(shared->Reorder());
    return shared->Run();
  });
}

// ---- values

// "" if the layer's output agrees with `expected`; the first output becomes what is expected.
std::string FindDifference(const Layer& layer, std::vector<uint8_t>& expected) {
  const auto* output = static_cast<const uint8_t*>(layer.buffers.back());
  if (expected.empty()) {
    expected.assign(output, output + layer.output_bytes);
    return "";
  }
  const size_t count = layer.output_bytes / sizeof(float);
  if (layer.peer.type == kI8) {
    for (size_t i = 0; i < count; ++i) {
      int32_t a = 0, b = 0;
      std::memcpy(&a, output + i * sizeof(a), sizeof(a));
      std::memcpy(&b, expected.data() + i * sizeof(b), sizeof(b));
      if (a != b) return StrCat("element ", i, ": expected ", b, ", found ", a);
    }
    return "";
  }
  const auto value = [](const uint8_t* place, size_t i) {
    float v = 0;
    std::memcpy(&v, place + i * sizeof(v), sizeof(v));
    return v;
  };
  double largest = 1;
  for (size_t i = 0; i < count; ++i) {
    largest = std::max<double>(largest, std::abs(value(expected.data(), i)));
  }
  for (size_t i = 0; i < count; ++i) {
    const double a = value(output, i), b = value(expected.data(), i);
    // A NaN differs from everything.
    if (!(std::abs(a - b) <= kTolerance * largest))
      return StrCat("element ", i, ": expected ", b, ", found ", a);
  }
  return "";
}

// ---- times

// Runs all in turns. A turn begins with a run that is not timed, which loads code and wakes threads.
void TimeInTurns(std::vector<Contestant>& contestants, double seconds) {
  for (int round = 0; round < kDenseRounds; ++round) {
    for (Contestant& one : contestants) {
      std::this_thread::sleep_for(kPause);
      const Clock::time_point begin = Clock::now();
      for (bool is_first = true;; is_first = false) {
        const Clock::time_point start = Clock::now();
        const absl::Status status = one.run();
        const double taken = SecondsSince(start);
        if (!status.ok()) {
          one.entry->error = std::string(status.message());
          break;
        }
        // A long run is as warm as the next one.
        constexpr double kLong = 0.05;
        if (is_first && taken < kLong) continue;
        one.times.push_back(taken * 1e9);
        if (SecondsSince(begin) >= seconds / kDenseRounds) break;
      }
    }
  }
  for (const Contestant& one : contestants) {
    if (!one.entry->error.empty()) continue;
    one.entry->time_ns = Median(one.times);
    one.entry->least_ns = *std::min_element(one.times.begin(), one.times.end());
    one.entry->runs = static_cast<int>(one.times.size());
  }
}

absl::StatusOr<ComparisonRow> RowOf(const SuiteCase& c,
                                    const std::vector<Implementation>& implementations,
                                    const DenseSettings& settings) {
  ASSIGN_OR_RETURN(Layer layer, MakeLayer(c, settings.seed));
  ComparisonRow row{.kernel = DenseName(c),
                    .sizes = {{"macs", static_cast<int64_t>(layer.macs)},
                              {"bytes", static_cast<int64_t>(layer.bytes)}},
                    .entries = {}};
  row.entries.reserve(settings.threads.size() * implementations.size());
  std::vector<uint8_t> expected;
  for (const int threads : settings.threads) {
    std::vector<Contestant> contestants;
    for (const Implementation& how : implementations) {
      ComparisonEntry& entry = row.entries.emplace_back();
      entry.implementation = WithThreads(how.name, threads);
      if (!how.missing.empty()) {
        entry.skipped = how.missing;
        continue;
      }
      auto run =
          how.peer != nullptr ? Opened(layer, how, threads) : Compiled(layer, how, threads, entry);
      if (run.ok()) {
        std::memset(layer.buffers.back(), 0xff, layer.output_bytes);
        if (const absl::Status status = (*run)(); !status.ok()) run = status;
      }
      if (!run.ok()) {
        const bool has_none = how.peer != nullptr && absl::IsNotFound(run.status());
        (has_none ? entry.skipped : entry.error) = std::string(run.status().message());
        continue;
      }
      entry.difference = FindDifference(layer, expected);
      if (entry.difference.empty()) contestants.push_back({&entry, *std::move(run)});
    }
    TimeInTurns(contestants, settings.seconds);
  }
  return row;
}

absl::Status CheckSettings(const DenseSettings& settings) {
  if (settings.size != "networks" && settings.size != "small") {
    return InvalidInput("--size: expected networks or small, found '", settings.size, "'");
  }
  if (settings.threads.empty()) return InvalidInput("--threads: expected numbers, found none");
  for (const int threads : settings.threads) {
    if (threads < 1) return InvalidInput("--threads: expected 1 or more, found ", threads);
  }
  for (const std::string& peer : settings.peers) {
    const std::vector<std::string>& names = DensePeer::Names();
    if (std::find(names.begin(), names.end(), peer) != names.end()) continue;
    return absl::NotFoundError(StrCat("no library to compare with is named '", peer, "': expected ",
                                      absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Comparison> RunDense(const DenseSettings& settings) {
  RETURN_IF_ERROR(CheckSettings(settings));
  ASSIGN_OR_RETURN(const NameFilter filter, NameFilter::Create(settings.filter));
  const absl::Span<const SuiteCase> layers =
      settings.size == "small" ? absl::MakeConstSpan(SmallCases()) : DenseCases();
  std::vector<SuiteRow> rows;
  bool has_some = false;
  for (const SuiteCase& c : layers) {
    rows.push_back({DenseName(c), filter.Passes(DenseName(c))});
    has_some |= rows.back().is_chosen;
  }
  if (!has_some) {
    return InvalidInput("--filter='", settings.filter, "': no layer of ", kDenseSuite,
                        " is named so; the first is '", rows[0].kernel, "'");
  }
  const Clock::time_point start = Clock::now();
  std::vector<std::unique_ptr<DensePeer>> peers;
  std::vector<Implementation> implementations;
  for (const std::string& name : DensePeer::Names()) {
    if (std::find(settings.peers.begin(), settings.peers.end(), name) == settings.peers.end()) {
      continue;
    }
    absl::StatusOr<DensePeer> found = DensePeer::Find(name);
    Implementation how{.name = name, .peer = nullptr, .command = name};
    if (found.ok()) {
      how.command = found->version();
      peers.push_back(std::make_unique<DensePeer>(*std::move(found)));
      how.peer = peers.back().get();
    } else {
      how.missing = std::string(found.status().message());
    }
    implementations.push_back(how);
    if (name != "onednn") continue;
    how.name = "onednn-reorder";
    how.command += ", weights reordered in each run";
    how.reorders = true;
    implementations.push_back(how);
  }
  implementations.push_back({.name = "nao-auto", .peer = nullptr, .command = "this compiler"});
  implementations.push_back({.name = "nao-packed",
                             .peer = nullptr,
                             .packs_before = true,
                             .command = "this compiler, weights packed before"});

  Comparison result;
  result.suite = kDenseSuite;
  result.title = kDenseTitle;
  result.size = settings.size;
  result.filter = settings.filter;
  result.seed = settings.seed;
  SetProvenance(result);
  for (const int threads : settings.threads) {
    const auto present =
        std::find_if(implementations.begin(), implementations.end(),
                     [](const Implementation& how) { return how.missing.empty(); });
    for (const Implementation& how : implementations) {
      result.implementations.push_back({WithThreads(how.name, threads), how.command, threads,
                                        how.missing, WithThreads(present->name, threads)});
    }
  }
  result.baseline = result.implementations[0].baseline;
  RETURN_IF_ERROR(AddRows(
      rows, {settings.known, settings.on_row, settings.save}, start,
      [&](size_t i) { return RowOf(layers[i], implementations, settings); }, result));
  return result;
}

}  // namespace polynao::benchmarks
