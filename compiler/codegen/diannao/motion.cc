#include "compiler/codegen/diannao/motion.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace polynao::diannao {

// One pass in program order, as in "schedule early" of Click's "Global Code Motion, Global Value
// Numbering" (1995): operands stand before their users, so they are placed first.
void MoveCode(Code& code) {
  const Flow flow(code);
  const Constants constants = FindConstants(code);
  const Places places(code, flow, constants);
  std::vector<int> available(code.home.size(), 0);  // the first place that may read a register
  for (size_t r = 0; r < code.home.size(); ++r) {
    if (!code.IsValue(r)) available[r] = places.Begin(code.home[r]);
  }
  std::vector<std::vector<Op>> floating(places.count());   // what goes to before an instruction ...
  std::vector<std::optional<Op>> staying(places.count());  // ... and the instruction, if it stays
  int here = 0;
  for (Block& block : code.blocks) {
    for (Op& op : block.ops) {
      const int64_t written = WrittenRegister(op);
      if (Floats(code, op, constants)) {
        int earliest = 0;
        ForEachRead(op, [&](int64_t reg) { earliest = std::max(earliest, available[reg]); });
        available[written] = places.Best(here, earliest);
        floating[available[written]].push_back(std::move(op));
      } else {
        if (written >= 0 && code.IsValue(written)) available[written] = here + 1;
        staying[here] = std::move(op);
      }
      ++here;
    }
  }
  for (size_t b = 0; b < code.blocks.size(); ++b) {
    std::vector<Op>& ops = code.blocks[b].ops;
    ops.clear();
    for (int place = places.Begin(b); place < places.End(b); ++place) {
      std::move(floating[place].begin(), floating[place].end(), std::back_inserter(ops));
      if (staying[place]) ops.push_back(*std::move(staying[place]));
    }
  }
}

}  // namespace polynao::diannao
