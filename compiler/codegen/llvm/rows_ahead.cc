#include "compiler/codegen/llvm/rows_ahead.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/math.h"
#include "compiler/codegen/llvm/meaning.h"
#include "compiler/codegen/llvm/vector_loop.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {
namespace {

using arith::LinearForm;

// What lies nearer is on the page that is read now.
constexpr int64_t kNearest = 1024;
// Of rows of 8 and of 25 KiB, one, two and three rows ahead take the same time within 3 %; of short rows, so many
// bytes.
constexpr int64_t kFewestRows = 2;
constexpr int64_t kFewestBytes = 8192;
// Windows are not higher than so many rows; what was read longer ago may have left the caches.
constexpr int64_t kLongestAgo = 16;
// Larger strides than any array's.
constexpr int64_t kFarthest = int64_t{1} << 40;

// Elements from a to b where they differ by a constant.
std::optional<int64_t> Distance(const Row& a, const Row& b) {
  if (a.buffer() != b.buffer()) return std::nullopt;
  LinearForm difference = b.number;
  if (!difference.Add(a.number, -1) || !difference.IsConstant()) return std::nullopt;
  if (std::abs(difference.constant()) > kFarthest) return std::nullopt;
  return difference.constant();
}

// The least of the moves with loops around that is no move within a row.
std::optional<int64_t> MoveOf(const Row& row, absl::Span<const ir::Stmt> around) {
  const int64_t size = ir::ByteSize(row.buffer()->type);
  std::optional<int64_t> least;
  for (const ir::Stmt loop : around) {
    const std::optional<int64_t> move = SlopeIn(row.number, loop.var());
    if (!move || std::abs(*move) > kFarthest) return std::nullopt;
    if (std::abs(*move) * size < kNearest) continue;
    if (!least || std::abs(*move) < std::abs(*least)) least = move;
  }
  return least;
}

// Whether another row is what `row`, which moves so, reads some iterations later.
bool IsReadBefore(const Row& row, int64_t move, const std::vector<Row>& rows, int64_t lanes) {
  return std::any_of(rows.begin(), rows.end(), [&](const Row& other) {
    const std::optional<int64_t> distance = Distance(row, other);
    if (!distance) return false;
    for (int64_t ago = 1; ago <= kLongestAgo; ++ago) {
      if (std::abs(*distance - ago * move) < lanes * row.step) return true;
    }
    return false;
  });
}

}  // namespace

std::vector<Row> RowsOf(ir::Stmt loop, int64_t lanes, absl::FunctionRef<bool(ir::Buffer)> is_asked,
                        arith::Analyzer& analyzer) {
  std::vector<Row> rows;
  ir::ForEachExprIn(loop.body(), [&](ir::Expr e) {
    if (!e.Is(ir::ExprKind::kLoad) || !is_asked(ir::Buffer(e.buffer()))) return;
    std::optional<LinearForm> number = NumberOf(ir::Buffer(e.buffer()), e.operands(), analyzer);
    if (!number) return;
    const std::optional<int64_t> step = SlopeIn(*number, loop.var());
    if (!step || *step < 1 || *step > kMostStride) return;
    Row row = {.load = e, .number = *std::move(number), .step = *step};
    const bool is_there = std::any_of(rows.begin(), rows.end(), [&](const Row& other) {
      const std::optional<int64_t> distance = Distance(other, row);
      return distance && std::abs(*distance) < lanes * row.step;
    });
    if (!is_there) rows.push_back(std::move(row));
  });
  return rows;
}

std::vector<Row> RowsAgain(const std::vector<Row>& rows, int64_t lanes,
                           absl::Span<const ir::Stmt> around) {
  std::vector<Row> again;
  for (const Row& row : rows) {
    const std::optional<int64_t> move = MoveOf(row, around);
    if (move && IsReadBefore(row, *move, rows, lanes)) again.push_back(row);
  }
  return again;
}

std::vector<RowAhead> RowsAhead(const std::vector<Row>& rows, ir::Stmt loop, int64_t lanes,
                                absl::Span<const ir::Stmt> around) {
  std::vector<RowAhead> result;
  for (const Row& row : rows) {
    const std::optional<int64_t> move = MoveOf(row, around);
    if (!move || IsReadBefore(row, *move, rows, lanes)) continue;
    LinearForm first = row.number;
    if (!first.AddTerm(loop.var(), -row.step)) continue;
    const int64_t bytes = std::abs(*move) * ir::ByteSize(row.buffer()->type);
    result.push_back({.row = row,
                      .elements = std::max(kFewestRows, CeilDiv(kFewestBytes, bytes)) * *move,
                      .first = std::move(first)});
  }
  return result;
}

}  // namespace polynao::codegen
