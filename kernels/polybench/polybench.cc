#include "kernels/polybench/polybench.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/uniform_tensor.h"
#include "kernels/polybench/polybench_text.h"
#include "kernels/polybench/reference.h"

namespace polynao::kernels {
namespace {

using ir::Argument;
using Arguments = absl::Span<const Argument>;

// ---- calls of references ------------------------------------------------------------------------

template <typename T>
T To(const Argument& argument) {
  if constexpr (std::is_same_v<T, int64_t>) {
    return argument.int_value;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(argument.float_value);
  } else {
    return T(*argument.tensor);
  }
}

// `function` with its parameters taken from the arguments of a .nir function, in order.
template <typename... Parameters>
std::function<void(Arguments)> Call(void (*function)(Parameters...)) {
  return [function](Arguments arguments) {
    POLYNAO_CHECK(arguments.size() == sizeof...(Parameters)) << arguments.size();
    [&]<size_t... I>(std::index_sequence<I...>) {
      function(To<Parameters>(arguments[I])...);
    }(std::index_sequence_for<Parameters...>());
  };
}

// ---- inputs -------------------------------------------------------------------------------------

// Adds to the diagonal of the square matrix `a` more than any other elements of a row or column can add up to:
// the matrix has a factorization without pivoting, and is well conditioned.
void Dominate(Matrix a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) a(i, i) += static_cast<double>(n) + 1;
}

void PrepareCholesky(Matrix a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) a(i, j) = a(j, i);
  }
  Dominate(a, n);
}

void PrepareLudcmp(Matrix a, Vector, Vector, Vector, int64_t n) { Dominate(a, n); }

// Without rank loss: the columns are close to those of a multiple of the identity.
void PrepareGramschmidt(Matrix a, Matrix, Matrix, int64_t m, int64_t n) {
  for (int64_t i = 0; i < std::min(m, n); ++i) a(i, i) += static_cast<double>(m) + 1;
}

// A diagonally dominant Toeplitz matrix: the sum of all |r| is below 1/2.
void PrepareDurbin(Vector r, Vector, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double place = static_cast<double>(i) + 1;
    r(i) /= 4 * place * place;
  }
}

// Elements beside the diagonal that add up to less than the diagonal's.
void PrepareTrisolv(Matrix l, Vector, Vector, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      l(i, j) = i == j ? 2 + l(i, j) : l(i, j) / static_cast<double>(n);
    }
  }
}

// Positive lengths, and 0 from a node to itself.
void PrepareFloydWarshall(View<int32_t, 2> path, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      path(i, j) = i == j
                       ? 0
                       : static_cast<int32_t>(
                             1 + ir::Splitmix(static_cast<uint64_t>(path(i, j)), i * n + j) % 1000);
    }
  }
}

void PrepareNussinov(View<int8_t, 1> seq, View<int32_t, 2> table, int64_t n) {
  for (int64_t i = 0; i < n; ++i) seq(i) = static_cast<int8_t>(seq(i) & 3);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) table(i, j) = 0;
  }
}

// ---- the table ----------------------------------------------------------------------------------

using Sizes = std::array<std::vector<int64_t>, 5>;

const Sizes kTwoTriangles = {{{20, 30}, {60, 80}, {200, 240}, {1000, 1200}, {2000, 2600}}};
const Sizes kVectors = {{{40}, {120}, {400}, {2000}, {4000}}};
const Sizes kTallMatrix = {{{38, 42}, {116, 124}, {390, 410}, {1900, 2100}, {1800, 2200}}};
const Sizes kStatistics = {{{28, 32}, {80, 100}, {240, 260}, {1200, 1400}, {2600, 3000}}};
const std::vector<std::pair<std::string_view, double>> kAlpha = {{"alpha", 1.5}};
const std::vector<std::pair<std::string_view, double>> kAlphaBeta = {{"alpha", 1.5}, {"beta", 1.2}};

std::vector<PolyBenchKernel> MakeKernels() {
  using namespace polybench;  // NOLINT: the references
  std::vector<PolyBenchKernel> kernels = {
      {.name = "2mm",
       .parameters = {"ni", "nj", "nk", "nl"},
       .sizes = {{{16, 18, 22, 24},
                  {40, 50, 70, 80},
                  {180, 190, 210, 220},
                  {800, 900, 1100, 1200},
                  {1600, 1800, 2200, 2400}}},
       .scalars = kAlphaBeta,
       .reference = Call(Mm2)},
      {.name = "3mm",
       .parameters = {"ni", "nj", "nk", "nl", "nm"},
       .sizes = {{{16, 18, 20, 22, 24},
                  {40, 50, 60, 70, 80},
                  {180, 190, 200, 210, 220},
                  {800, 900, 1000, 1100, 1200},
                  {1600, 1800, 2000, 2200, 2400}}},
       .reference = Call(Mm3)},
      {.name = "adi",
       .parameters = {"t", "n"},
       .sizes = {{{20, 20}, {40, 60}, {100, 200}, {500, 1000}, {1000, 2000}}},
       .reference = Call(Adi)},
      {.name = "atax", .parameters = {"m", "n"}, .sizes = kTallMatrix, .reference = Call(Atax)},
      {.name = "bicg", .parameters = {"m", "n"}, .sizes = kTallMatrix, .reference = Call(Bicg)},
      {.name = "cholesky",
       .parameters = {"n"},
       .sizes = kVectors,
       .reference = Call(Cholesky),
       .prepare = Call(PrepareCholesky)},
      {.name = "correlation",
       .parameters = {"m", "n"},
       .sizes = kStatistics,
       .reference = Call(Correlation)},
      {.name = "covariance",
       .parameters = {"m", "n"},
       .sizes = kStatistics,
       .reference = Call(Covariance)},
      {.name = "deriche",
       .parameters = {"w", "h"},
       .sizes = {{{64, 64}, {192, 128}, {720, 480}, {4096, 2160}, {7680, 4320}}},
       .scalars = {{"alpha", 0.25}},
       .reference = Call(Deriche),
       // Of f32; the filter's poles add up the rounding of about 20 neighbours.
       .tolerance = 1e-5},
      {.name = "doitgen",
       .parameters = {"nq", "nr", "np"},
       .sizes = {{{8, 10, 12}, {20, 25, 30}, {40, 50, 60}, {140, 150, 160}, {220, 250, 270}}},
       .reference = Call(Doitgen)},
      {.name = "durbin",
       .parameters = {"n"},
       .sizes = kVectors,
       .reference = Call(Durbin),
       .prepare = Call(PrepareDurbin)},
      {.name = "fdtd-2d",
       .parameters = {"tmax", "nx", "ny"},
       .sizes =
           {{{20, 20, 30}, {40, 60, 80}, {100, 200, 240}, {500, 1000, 1200}, {1000, 2000, 2600}}},
       .reference = Call(Fdtd2d)},
      {.name = "floyd-warshall",
       .parameters = {"n"},
       .sizes = {{{60}, {180}, {500}, {2800}, {5600}}},
       .reference = Call(FloydWarshall),
       .prepare = Call(PrepareFloydWarshall),
       .tolerance = 0},
      {.name = "gemm",
       .parameters = {"ni", "nj", "nk"},
       .sizes =
           {{{20, 25, 30}, {60, 70, 80}, {200, 220, 240}, {1000, 1100, 1200}, {2000, 2300, 2600}}},
       .scalars = kAlphaBeta,
       .reference = Call(Gemm)},
      {.name = "gemver",
       .parameters = {"n"},
       .sizes = kVectors,
       .scalars = kAlphaBeta,
       .reference = Call(Gemver)},
      {.name = "gesummv",
       .parameters = {"n"},
       .sizes = {{{30}, {90}, {250}, {1300}, {2800}}},
       .scalars = kAlphaBeta,
       .reference = Call(Gesummv)},
      {.name = "gramschmidt",
       .parameters = {"m", "n"},
       // PolyBench has fewer rows (M) than columns (N), so that the last columns are rounding errors divided by
       // their norm. Here M and N are exchanged.
       .sizes = {{{30, 20}, {80, 60}, {240, 200}, {1200, 1000}, {2600, 2000}}},
       .reference = Call(Gramschmidt),
       .prepare = Call(PrepareGramschmidt)},
      {.name = "heat-3d",
       .parameters = {"steps", "n"},
       .sizes = {{{20, 10}, {40, 20}, {100, 40}, {500, 120}, {1000, 200}}},
       .reference = Call(Heat3d)},
      {.name = "jacobi-1d",
       .parameters = {"steps", "n"},
       .sizes = {{{20, 30}, {40, 120}, {100, 400}, {500, 2000}, {1000, 4000}}},
       .reference = Call(Jacobi1d)},
      {.name = "jacobi-2d",
       .parameters = {"steps", "n"},
       .sizes = {{{20, 30}, {40, 90}, {100, 250}, {500, 1300}, {1000, 2800}}},
       .reference = Call(Jacobi2d)},
      {.name = "lu",
       .parameters = {"n"},
       .sizes = kVectors,
       .reference = Call(Lu),
       .prepare = Call(Dominate)},
      {.name = "ludcmp",
       .parameters = {"n"},
       .sizes = kVectors,
       .reference = Call(Ludcmp),
       .prepare = Call(PrepareLudcmp)},
      {.name = "mvt", .parameters = {"n"}, .sizes = kVectors, .reference = Call(Mvt)},
      {.name = "nussinov",
       .parameters = {"n"},
       .sizes = {{{60}, {180}, {500}, {2500}, {5500}}},
       .reference = Call(Nussinov),
       .prepare = Call(PrepareNussinov),
       .tolerance = 0},
      {.name = "seidel-2d",
       .parameters = {"steps", "n"},
       .sizes = {{{20, 40}, {40, 120}, {100, 400}, {500, 2000}, {1000, 4000}}},
       .reference = Call(Seidel2d)},
      {.name = "symm",
       .parameters = {"m", "n"},
       .sizes = kTwoTriangles,
       .scalars = kAlphaBeta,
       .reference = Call(Symm)},
      {.name = "syr2k",
       .parameters = {"m", "n"},
       .sizes = kTwoTriangles,
       .scalars = kAlphaBeta,
       .reference = Call(Syr2k)},
      {.name = "syrk",
       .parameters = {"m", "n"},
       .sizes = kTwoTriangles,
       .scalars = kAlphaBeta,
       .reference = Call(Syrk)},
      {.name = "trisolv",
       .parameters = {"n"},
       .sizes = kVectors,
       .reference = Call(Trisolv),
       .prepare = Call(PrepareTrisolv)},
      {.name = "trmm",
       .parameters = {"m", "n"},
       .sizes = kTwoTriangles,
       .scalars = kAlpha,
       .reference = Call(Trmm)},
  };
  for (PolyBenchKernel& kernel : kernels) {
    kernel.text = PolyBenchText(kernel.name);
    POLYNAO_CHECK(!kernel.text.empty()) << kernel.name;
  }
  return kernels;
}

}  // namespace

absl::Span<const PolyBenchKernel> PolyBenchKernels() {
  static const auto& kernels = *new std::vector<PolyBenchKernel>(MakeKernels());
  return kernels;
}

absl::StatusOr<const PolyBenchKernel*> FindPolyBenchKernel(std::string_view name) {
  std::vector<std::string> names;
  for (const PolyBenchKernel& kernel : PolyBenchKernels()) {
    if (kernel.name == name) return &kernel;
    names.emplace_back(kernel.name);
  }
  return absl::NotFoundError(
      StrCat("no kernel '", name, "': expected one of ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<size_t> FindPolyBenchSize(std::string_view name) {
  for (size_t i = 0; i < kPolyBenchSizes.size(); ++i) {
    if (kPolyBenchSizes[i] == name) return i;
  }
  return absl::NotFoundError(
      StrCat("no data set '", name, "': expected MINI, SMALL, MEDIUM, LARGE or EXTRALARGE"));
}

absl::StatusOr<ir::Function> PolyBenchFunction(const PolyBenchKernel& kernel) {
  return ir::ParseFunction(kernel.text, StrCat("kernels/polybench/", kernel.name, ".nir"));
}

absl::StatusOr<ir::RandomArguments> PolyBenchArguments(const PolyBenchKernel& kernel,
                                                       const ir::Function& function,
                                                       absl::Span<const int64_t> sizes,
                                                       uint64_t seed) {
  POLYNAO_CHECK(sizes.size() == kernel.parameters.size()) << kernel.name;
  ir::RandomArgumentOptions options;
  options.max_elements = int64_t{1} << 28;
  for (size_t i = 0; i < sizes.size(); ++i) {
    options.scalars[std::string(kernel.parameters[i])] = Argument::Int(sizes[i]);
  }
  for (const auto& [name, value] : kernel.scalars) {
    options.scalars[std::string(name)] = Argument::Float(value);
  }
  ASSIGN_OR_RETURN(ir::RandomArguments result, ir::RandomArguments::Draw(function, seed, options));
  for (size_t i = 0; i < result.arguments().size(); ++i) {
    ir::Tensor* tensor = result.arguments()[i].tensor;
    if (tensor != nullptr) ir::FillUniform(*tensor, seed * 1000 + i);
  }
  if (kernel.prepare) kernel.prepare(result.arguments());
  return result;
}

}  // namespace polynao::kernels
