#include "kernels/equake/equake.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/uniform_tensor.h"
#include "kernels/equake/equake_text.h"
#include "kernels/equake/reference.h"

namespace polynao::kernels {
namespace {

constexpr int64_t kMostNodes = int64_t{1} << 22;

template <void (*kStep)(const EquakeState&)>
void Reference(absl::Span<const ir::Argument> arguments) {
  size_t next = 0;
  const auto tensor = [&]() -> ir::Tensor& { return *arguments[next++].tensor; };
  // In the order of the function's parameters.
  const EquakeState state{.first = Indices(tensor()),
                          .column = Indices(tensor()),
                          .a = Cube(tensor()),
                          .disp = Matrix(tensor()),
                          .disp_before = Matrix(tensor()),
                          .m = Matrix(tensor()),
                          .c = Matrix(tensor()),
                          .m23 = Matrix(tensor()),
                          .c23 = Matrix(tensor()),
                          .v23 = Matrix(tensor()),
                          .phi = Vector(tensor()),
                          .disp_next = Matrix(tensor()),
                          .vel = Matrix(tensor())};
  POLYNAO_CHECK(next == arguments.size()) << arguments.size();
  kStep(state);
}

// A random number for a node, which does not depend on how many there are.
uint64_t RandomOf(int64_t node, uint64_t what) {
  return ir::Splitmix(what, static_cast<uint64_t>(node));
}

// The least side of a cube with so many nodes.
int64_t SideOf(int64_t nodes) {
  int64_t side = 1;
  while (side * side * side < nodes) ++side;
  return side;
}

// Nodes behind node i that it shares an edge with, in order.
std::vector<int32_t> NeighboursBehind(int64_t i, int64_t side, int64_t nodes) {
  std::vector<int32_t> found;
  const int64_t x = i % side, y = i / side % side;
  for (int corner = 1; corner < 8; ++corner) {
    const int64_t dx = corner & 1, dy = corner >> 1 & 1, dz = corner >> 2;
    const int64_t j = i + dx + side * (dy + side * dz);
    if (x + dx < side && y + dy < side && j < nodes) found.push_back(static_cast<int32_t>(j));
  }
  if (RandomOf(i, 1) % 8 == 0) {
    const auto reach = static_cast<uint64_t>(2 * side * side);
    const int64_t j = i + 1 + static_cast<int64_t>(RandomOf(i, 2) % reach);
    if (j < nodes) found.push_back(static_cast<int32_t>(j));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<Equake> MakeEquakes() {
  return {{.name = "equake",
           .doc = "a time step of an earthquake simulation: symmetric sparse matrix times vector, "
                  "pointwise updates",
           .is_symmetric = true,
           .reference = Reference<EquakeStepOfHalf>},
          {.name = "equake_whole",
           .doc = "the same with the whole matrix stored: rows do not add to each other's results",
           .reference = Reference<EquakeStepOfWhole>}};
}

void Store(const std::vector<int32_t>& values, ir::Tensor& tensor) {
  POLYNAO_CHECK(tensor.bytes.size() == values.size() * sizeof(int32_t)) << values.size();
  std::copy(values.begin(), values.end(), reinterpret_cast<int32_t*>(tensor.bytes.data()));
}

// Uniform values of [-1, 1) as values of [first, first + 1).
void MoveTo(double first, ir::Tensor& tensor) {
  auto* const values = reinterpret_cast<double*>(tensor.bytes.data());
  for (int64_t i = 0; i < tensor.element_count(); ++i) values[i] = first + (values[i] + 1) / 2;
}

}  // namespace

EquakeMesh MakeEquakeMesh(int64_t nodes, bool upper_half) {
  const int64_t side = SideOf(nodes);
  std::vector<std::vector<int32_t>> rows(static_cast<size_t>(nodes));
  for (int64_t i = 0; i < nodes; ++i) {
    for (const int32_t j : NeighboursBehind(i, side, nodes)) {
      rows[static_cast<size_t>(i)].push_back(j);
      // Row j gets its columns in order, since i only grows: first those in front of it, then those behind.
      if (!upper_half) rows[static_cast<size_t>(j)].push_back(static_cast<int32_t>(i));
    }
  }
  EquakeMesh mesh{.first = {0}, .column = {}};
  for (int64_t i = 0; i < nodes; ++i) {
    mesh.column.push_back(static_cast<int32_t>(i));
    const std::vector<int32_t>& row = rows[static_cast<size_t>(i)];
    mesh.column.insert(mesh.column.end(), row.begin(), row.end());
    mesh.first.push_back(static_cast<int32_t>(mesh.column.size()));
  }
  return mesh;
}

absl::Span<const Equake> Equakes() {
  static const auto& equakes = *new std::vector<Equake>(MakeEquakes());
  return equakes;
}

const Equake* FindEquake(std::string_view name) {
  for (const Equake& equake : Equakes()) {
    if (equake.name == name) return &equake;
  }
  return nullptr;
}

absl::StatusOr<ir::Function> EquakeFunction(const Equake& equake, int64_t nodes) {
  if (nodes < 0 || nodes > kMostNodes) {
    return InvalidInput(equake.name, ": expected 0 to ", kMostNodes, " nodes, found ", nodes);
  }
  const auto blocks = MakeEquakeMesh(nodes, equake.is_symmetric).column.size();
  const std::string text = absl::StrReplaceAll(
      ToAbsl(EquakeText(equake.name)), {{"NODES", StrCat(nodes)}, {"BLOCKS", StrCat(blocks)}});
  return ir::ParseFunction(text, StrCat("kernels/equake/", equake.name, ".nir"));
}

absl::StatusOr<ir::RandomArguments> EquakeArguments(const Equake& equake,
                                                    const ir::Function& function, int64_t nodes,
                                                    uint64_t seed) {
  ir::RandomArgumentOptions options;
  options.max_elements = int64_t{1} << 30;
  ASSIGN_OR_RETURN(ir::RandomArguments result, ir::RandomArguments::Draw(function, seed, options));
  const EquakeMesh mesh = MakeEquakeMesh(nodes, equake.is_symmetric);
  Store(mesh.first, *result.arguments()[0].tensor);
  Store(mesh.column, *result.arguments()[1].tensor);
  for (size_t i = 2; i < result.arguments().size(); ++i) {
    ir::Tensor& tensor = *result.arguments()[i].tensor;
    ir::FillUniform(tensor, seed * 1000 + i);
    if (function.params[i].name() == "m") MoveTo(1, tensor);
    if (function.params[i].name() == "c") MoveTo(0, tensor);
  }
  return result;
}

absl::StatusOr<int64_t> ParseEquakeNodes(const Equake& equake, std::string_view text) {
  if (text.empty()) return kEquakeSizes[0].nodes;
  for (const EquakeSize& size : kEquakeSizes) {
    if (size.name == text) return size.nodes;
  }
  int64_t nodes = 0;
  if (!absl::SimpleAtoi(ToAbsl(text), &nodes)) {
    return InvalidInput(equake.name,
                        ": --shape: expected test, train, ref or a number of nodes, "
                        "found '",
                        text, "'");
  }
  return nodes;
}

}  // namespace polynao::kernels
