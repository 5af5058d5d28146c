#include "compiler/te/card/turned_copy.h"

#include <vector>

#include "base/text.h"
#include "compiler/te/card/tile_cost.h"
#include "compiler/te/schedule.h"

namespace polynao::te {
namespace {

// The dimensions of Y in the order [.., a, b] of matrices as they stand in memory, or [.., b, a].
std::vector<size_t> Order(const Turn& turn, bool is_transposed) {
  const size_t last = turn.shape.size() - 1;
  std::vector<size_t> order;
  for (size_t d = 0; d < last; ++d) {
    if (d != turn.columns) order.push_back(d);
  }
  order.push_back(is_transposed ? turn.columns : last);
  order.push_back(is_transposed ? last : turn.columns);
  return order;
}

}  // namespace

double CyclesOf(const Turn& turn, ir::Type type, bool copies,
                const LaneInstructions& instructions) {
  const int64_t rows = turn.box.back(), columns = turn.box[turn.columns];
  const int64_t matrices = turn.matrices();
  double cycles =
      static_cast<double>(matrices) * instructions.TransposeCycles(*turn.by, rows, columns);
  if (copies) cycles += instructions.CopyCycles(type, matrices * rows, columns);
  if (turn.IsApart()) cycles += instructions.CopyCycles(type, matrices * columns, rows);
  return cycles;
}

int64_t BytesOf(const Turn& turn, ir::Type type, int copies) {
  return OnChipBytes(ElementCount(turn.box), type) * (copies + (turn.IsApart() ? 1 : 0));
}

TurnedCopy MakeTurn(const std::string& name, const Turn& turn, const MakeCompute& compute,
                    const std::function<Expr(const Axes&)>& element) {
  const size_t rank = turn.shape.size();
  // Axes of Y as axes in another order, and back.
  const auto make = [&](const std::string& suffix, const std::vector<size_t>& order,
                        const std::function<Expr(const Axes&)>& of) {
    Shape shape;
    for (size_t d : order) shape.push_back(turn.shape[d]);
    return compute(StrCat(name, suffix), shape, [&](const Axes& own) {
      Axes at(rank);
      for (size_t k = 0; k < rank; ++k) at[order[k]] = own[k];
      return of(at);
    });
  };
  const auto read = [&](const Tensor& from, const std::vector<size_t>& order, const Axes& at) {
    Axes own;
    for (size_t d : order) own.push_back(at[d]);
    return from(own);
  };
  const std::vector<size_t> in_memory = Order(turn, false), transposed = Order(turn, true);
  std::vector<size_t> as_is(rank);
  for (size_t d = 0; d < rank; ++d) as_is[d] = d;
  TurnedCopy made;
  made.rows = make(".rows", in_memory, element);
  const auto of_rows = [&](const Axes& at) { return read(made.rows, in_memory, at); };
  if (turn.IsApart()) {
    made.columns = make(".columns", transposed, of_rows);
    made.result =
        make(".turned", as_is, [&](const Axes& at) { return read(made.columns, transposed, at); });
  } else {
    made.result = make(".turned", as_is, of_rows);
  }
  return made;
}

void ComputeWholeRows(Schedule& s, const Turn& turn, const TurnedCopy& copy) {
  const size_t last = turn.shape.size() - 1;
  s[copy.rows].ComputeWhole(last);
  if (copy.columns) s[copy.columns].ComputeWhole(last - 1);
  s[copy.result].ComputeWhole(turn.columns);
}

void TransposeEach(Stage& stage, const Turn& turn, const TurnedCopy& copy) {
  std::vector<Axis> order;
  if (copy.columns) {
    order = stage.leaves();
  } else {
    for (size_t d : Order(turn, true)) order.push_back(stage.axis(d));
    stage.Reorder(order);
  }
  stage.Pragma(order[order.size() - 2], turn.by->family);
}

}  // namespace polynao::te
