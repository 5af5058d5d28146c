#include "compiler/te/card/turned_copy.h"

#include <vector>

#include "base/text.h"
#include "compiler/te/card/tile_cost.h"
#include "compiler/te/schedule.h"

namespace polynao::te {
namespace {

// The dimensions of Y in the order of matrices as they stand in memory: b is the last.
std::vector<size_t> OrderInMemory(const Turn& turn) {
  std::vector<size_t> order;
  for (size_t d = 0; d < turn.shape.size(); ++d) {
    if (d != turn.columns) order.push_back(d);
  }
  order.push_back(turn.columns);
  return order;
}

}  // namespace

double CyclesOf(const Turn& turn, ir::Type type, bool copies,
                const LaneInstructions& instructions) {
  const int64_t rows = turn.rows(), columns = turn.box[turn.columns];
  const int64_t matrices = turn.matrices();
  double cycles =
      static_cast<double>(matrices) * instructions.TransposeCycles(*turn.by, rows, columns);
  if (copies) cycles += instructions.CopyCycles(type, matrices * rows, columns);
  return cycles;
}

int64_t BytesOf(const Turn& turn, ir::Type type, int copies) {
  return OnChipBytes(ElementCount(turn.box), type) * copies;
}

TurnedCopy MakeTurn(const std::string& name, const Turn& turn, const MakeCompute& compute,
                    const std::function<Expr(const Axes&)>& element) {
  const std::vector<size_t> order = OrderInMemory(turn);
  Shape shape;
  for (size_t d : order) shape.push_back(turn.shape[d]);
  TurnedCopy made;
  made.rows = compute(StrCat(name, ".rows"), shape, [&](const Axes& own) {
    Axes at(order.size());
    for (size_t k = 0; k < order.size(); ++k) at[order[k]] = own[k];
    return element(at);
  });
  made.result = compute(StrCat(name, ".turned"), turn.shape, [&](const Axes& at) {
    Axes own;
    for (size_t d : order) own.push_back(at[d]);
    return made.rows(own);
  });
  return made;
}

void ComputeWholeRows(Schedule& s, const Turn& turn, const TurnedCopy& copy) {
  const size_t last = turn.shape.size() - 1;
  s[copy.rows].ComputeWhole(last);
  s[copy.result].ComputeWhole(turn.columns);
}

void TransposeEach(Stage& stage, const Turn& turn) {
  std::vector<Axis> rows;
  for (size_t d = turn.columns + 1; d < turn.shape.size(); ++d) rows.push_back(stage.axis(d));
  if (rows.size() > 1) stage.Fuse(rows);
  stage.Pragma(stage.axis(turn.columns), turn.by->family);
}

}  // namespace polynao::te
