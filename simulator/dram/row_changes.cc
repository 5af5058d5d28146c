#include "simulator/dram/row_changes.h"

#include "base/check.h"

namespace polynao::simulator {

void RowChanges::AddSpan(std::deque<Span>& spans, int64_t begin, int64_t end) {
  if (!spans.empty() && begin <= spans.back().end) {
    POLYNAO_CHECK(begin >= spans.back().begin) << begin << " after " << spans.back().begin;
    spans.back().end = std::max(spans.back().end, end);
    return;
  }
  spans.push_back({begin, end});
}

void RowChanges::Add(const DramCommand& command) {
  POLYNAO_CHECK(command.clock >= now_) << command.clock << " after " << now_;
  const int64_t clock = command.clock;
  switch (command.kind) {
    case DramCommand::Kind::kRead:
      AddSpan(data_, clock + timing_.cl, clock + timing_.cl + timing_.burst_clocks());
      return;
    case DramCommand::Kind::kWrite:
      AddSpan(data_, clock + timing_.cwl, clock + timing_.cwl + timing_.burst_clocks());
      return;
    case DramCommand::Kind::kActivate:
      AddSpan(rows_, clock, clock + timing_.trcd);
      return;
    case DramCommand::Kind::kPrecharge:
      AddSpan(rows_, clock, clock + timing_.trp);
      return;
    case DramCommand::Kind::kPrechargeAll:
    case DramCommand::Kind::kRefresh:
      return;
  }
}

}  // namespace polynao::simulator
