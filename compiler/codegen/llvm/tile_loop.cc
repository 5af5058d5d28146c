#include "compiler/codegen/llvm/tile_loop.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "compiler/codegen/llvm/meaning.h"
#include "compiler/codegen/llvm/vector_loop.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {

namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

// Loops that have nothing else in them, the outermost first; the last one is what they run.
std::vector<Stmt> ChainOf(Stmt loop) {
  std::vector<Stmt> chain;
  while (loop.Is(StmtKind::kFor) && loop.for_kind() != ForKind::kParallel &&
         loop.for_kind() != ForKind::kThread) {
    chain.push_back(loop);
    loop = loop.body();
  }
  chain.push_back(loop);
  return chain;
}

bool BeginsAtZero(Stmt loop) { return loop.min().IsInt(0) && loop.extent().Is(ExprKind::kIntImm); }

// The ranges of the variables, without which nothing is known of quotients.
void BindAll(const std::vector<Stmt>& loops, arith::Analyzer& analyzer) {
  for (const Stmt loop : loops) {
    if (loop.Is(StmtKind::kFor)) analyzer.BindLoop(loop.var(), loop.min(), loop.extent());
  }
}

// +0.0, or 0.
bool IsZero(Expr e) {
  return e.IsInt(0) ||
         (e.Is(ExprKind::kFloatImm) && e.float_value() == 0 && !std::signbit(e.float_value()));
}

// Tiles of `rows` x `lanes` elements at these offsets, whose rows are `pitch` elements apart, have none in common.
bool AreApart(const std::vector<int64_t>& offsets, int64_t pitch, int64_t rows, int64_t lanes) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      for (int64_t row = 1 - rows; row < rows; ++row) {
        if (std::abs(offsets[i] - offsets[j] - row * pitch) < lanes) return false;
      }
    }
  }
  return pitch >= lanes;
}

class Matcher {
 public:
  Matcher(const std::vector<Stmt>& chain, const isa::ProcessorInstruction& instruction,
          const ir::Aliases& aliases, arith::Analyzer& analyzer)
      : chain_(chain), instruction_(instruction), aliases_(aliases), analyzer_(analyzer) {}

  std::optional<TileLoop> Match() {
    const std::vector<Stmt> meaning = ChainOf(instruction_.meaning.body);
    if (chain_.size() < meaning.size()) return std::nullopt;
    TileLoop tile;
    tile.instruction = &instruction_;
    const size_t outer = chain_.size() - meaning.size();
    Likeness likeness;
    if (!IsAlike(instruction_.meaning.body, chain_[outer], likeness)) return std::nullopt;
    auto& loads = likeness.loads;
    tile.store = likeness.store;
    tile.own = likeness.loops;
    ir::Context& c = tile.store.context();
    // Those inside of the chain.
    arith::Analyzer::Scope scope(analyzer_);
    BindAll({tile.own.begin() + static_cast<ptrdiff_t>(meaning.size() - 1), tile.own.end()},
            analyzer_);
    const Buffer sums = tile.store.buffer();
    if (loads.at(instruction_.sums) != c.Load(sums, tile.store.indices())) return std::nullopt;
    const Expr stored = c.Load(sums, tile.store.indices());
    const auto sums_pitch = PitchOf(stored, tile.own, 0, {0, 1, 0, 0});
    if (!sums_pitch || aliases_.Group(sums)) return std::nullopt;
    tile.sums_pitch = *sums_pitch;
    const Expr a = loads.at(instruction_.a), b = loads.at(instruction_.b);
    // A product of two operands of one type may have them in either order.
    const bool fits =
        FindOperands(tile, a, b) || (a.type() == b.type() && FindOperands(tile, b, a));
    return fits && FindPositions(tile, outer, stored) ? std::optional(tile) : std::nullopt;
  }

 private:
  bool FindOperands(TileLoop& tile, Expr a, Expr b) {
    const Buffer sums = tile.store.buffer();
    if (Buffer(a.buffer()) == sums || Buffer(b.buffer()) == sums) return false;
    const int64_t group = instruction_.group;
    const auto a_pitch = PitchOf(a, tile.own, 0, {0, 0, group, 1});
    const auto b_pitch = PitchOf(b, tile.own, 2, {0, group, 0, 1});
    if (!a_pitch || !b_pitch) return false;
    tile.a = a;
    tile.b = b;
    tile.a_pitch = *a_pitch;
    tile.b_pitch = *b_pitch;
    return true;
  }

  std::optional<int64_t> Step(Expr load, Var var) {
    return StepOf(Buffer(load.buffer()), load.operands(), var, analyzer_);
  }

  // How far apart the tile's rows are in memory: those of loop number `pitched`, if the access moves with the others as
  // `steps` say.
  std::optional<int64_t> PitchOf(Expr load, const std::vector<Stmt>& own, size_t pitched,
                                 const std::vector<int64_t>& steps) {
    for (size_t i = 0; i < own.size(); ++i) {
      if (i != pitched && Step(load, own[i].var()) != steps[i]) return std::nullopt;
    }
    return Step(load, own[pitched].var());
  }

  // The loops around the meaning's: the first one may be of sums.
  bool FindPositions(TileLoop& tile, size_t outer, Expr stored) {
    size_t first = 0;
    if (outer > 0 && Step(stored, chain_[0].var()) == 0) {
      tile.sum_loop = chain_[0];
      first = 1;
    }
    std::vector<int64_t> offsets = {0};
    const auto most = static_cast<size_t>(instruction_.registers - 2);
    for (size_t i = first; i < outer; ++i) {
      const Stmt loop = chain_[i];
      const std::optional<int64_t> step = Step(stored, loop.var());
      if (!BeginsAtZero(loop) || !step) return false;
      std::vector<int64_t> all;
      for (const int64_t offset : offsets) {
        for (int64_t at = 0; at < loop.extent().int_value() && all.size() <= most; ++at)
          all.push_back(offset + at * *step);
      }
      offsets = std::move(all);
      tile.positions.push_back(loop);
    }
    tile.offsets = offsets;
    return !offsets.empty() && offsets.size() <= most &&
           AreApart(offsets, tile.sums_pitch, instruction_.rows, instruction_.lanes);
  }

  const std::vector<Stmt>& chain_;
  const isa::ProcessorInstruction& instruction_;
  const ir::Aliases& aliases_;
  arith::Analyzer& analyzer_;
};

}  // namespace

std::optional<TileLoop> FindTileLoop(
    Stmt loop, const std::vector<const isa::ProcessorInstruction*>& instructions,
    const ir::Aliases& aliases, arith::Analyzer& analyzer) {
  std::vector<Stmt> chain;
  arith::Analyzer::Scope scope(analyzer);
  for (const isa::ProcessorInstruction* instruction : instructions) {
    if (!instruction->IsTile()) continue;
    if (chain.empty()) {
      chain = ChainOf(loop);
      BindAll(chain, analyzer);
    }
    if (auto found = Matcher(chain, *instruction, aliases, analyzer).Match()) return found;
  }
  return std::nullopt;
}

bool FillsWithZeros(Stmt fill, const TileLoop& loop, arith::Analyzer& analyzer) {
  const std::vector<Stmt> chain = ChainOf(fill);
  const Buffer sums = loop.store.buffer();
  if (chain.size() != 3 || !chain[2].Is(StmtKind::kStore) || chain[2].buffer() != sums ||
      !IsZero(chain[2].value()) || !BeginsAtZero(chain[0]) || !BeginsAtZero(chain[1])) {
    return false;
  }
  const isa::ProcessorInstruction& tile = *loop.instruction;
  arith::Analyzer::Scope scope(analyzer);
  BindAll(chain, analyzer);
  BindAll(loop.positions, analyzer);
  BindAll(loop.own, analyzer);
  // The first element, and by how much the loops move it.
  const auto first_of = [&](Stmt store, const std::vector<Var>& vars,
                            std::vector<int64_t>* steps) -> std::optional<arith::LinearForm> {
    std::optional<arith::LinearForm> number = NumberOf(sums, store.indices(), analyzer);
    for (const Var var : vars) {
      const auto step = number ? SlopeIn(*number, var) : std::nullopt;
      if (!step || !number->AddTerm(var, -*step)) return std::nullopt;
      steps->push_back(*step);
    }
    return number;
  };
  std::vector<int64_t> steps, others;
  std::vector<Var> vars;
  for (const std::vector<Stmt>* loops : {&loop.own, &loop.positions}) {
    for (const Stmt one : *loops) vars.push_back(one.var());
  }
  const auto first = first_of(chain[2], {chain[0].var(), chain[1].var()}, &steps);
  const auto sum = first_of(loop.store, vars, &others);
  if (!first || !sum || !(*first == *sum) || steps != std::vector<int64_t>{loop.sums_pitch, 1})
    return false;
  const int64_t rows = chain[0].extent().int_value(), lanes = chain[1].extent().int_value();
  if (rows % tile.rows != 0 || lanes % tile.lanes != 0) return false;
  std::vector<int64_t> filled, offsets = loop.offsets;
  for (int64_t row = 0; row < rows; row += tile.rows) {
    for (int64_t lane = 0; lane < lanes; lane += tile.lanes)
      filled.push_back(row * loop.sums_pitch + lane);
  }
  std::sort(filled.begin(), filled.end());
  std::sort(offsets.begin(), offsets.end());
  return filled == offsets;
}

std::vector<std::vector<int64_t>> PositionsOf(const TileLoop& loop) {
  std::vector<std::vector<int64_t>> all = {{}};
  for (const Stmt position : loop.positions) {
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t>& one : all) {
      for (int64_t at = 0; at < position.extent().int_value(); ++at) {
        longer.push_back(one);
        longer.back().push_back(at);
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace polynao::codegen
