// Requests go into a model of a DRAM channel, completions and commands come out.
#ifndef SIMULATOR_DRAM_REQUEST_H_
#define SIMULATOR_DRAM_REQUEST_H_

#include <cstdint>

namespace polynao::simulator {

// An access of at least one byte. Addresses are of the channel.
struct DramRequest {
  int64_t id = 0;  // the caller's
  int64_t address = 0;
  int64_t bytes = 0;
  bool is_write = false;
  int64_t clock =
      0;  // the first one in which the controller sees it; not less than that of the request before
};

// Request `id` is complete in `clock`: the first clock in which all of a read's data has arrived.
struct DramCompletion {
  int64_t id = 0;
  int64_t clock = 0;
  bool operator==(const DramCompletion&) const = default;
};

struct DramCommand {
  enum class Kind : uint8_t { kRead, kWrite, kActivate, kPrecharge, kPrechargeAll, kRefresh };
  int64_t clock = 0;
  Kind kind = Kind::kRead;
  int32_t bank = 0;    // of the channel; the first one of the rank for PREA and REF
  int32_t row = -1;    // of ACT, RD and WR
  int32_t column = 0;  // of RD and WR
  bool operator==(const DramCommand&) const = default;
};

struct DramCounters {
  int64_t activates = 0;
  int64_t precharges = 0;      // of one bank
  int64_t precharge_alls = 0;  // of a rank, before a refresh
  int64_t reads = 0;
  int64_t writes = 0;
  int64_t refreshes = 0;
  // Bursts for which no ACT was issued, an ACT only, and a PRE.
  int64_t hits = 0;
  int64_t misses = 0;
  int64_t conflicts = 0;
  int64_t forwarded = 0;  // reads that the write queue served
  int64_t merged = 0;     // writes that became part of one in the write queue
  int64_t drains = 0;     // changes from reads to writes
  bool operator==(const DramCounters&) const = default;
};

// Of one bank. Sums over a channel's banks are those of its DramCounters, but for commands to a whole rank: each of its
// banks counts them.
struct DramBankCounters {
  int64_t activates = 0;
  int64_t precharges = 0;
  int64_t precharge_alls = 0;  // that found a row of the bank open
  int64_t reads = 0;
  int64_t writes = 0;
  int64_t refreshes = 0;
  int64_t hits = 0;
  int64_t misses = 0;
  int64_t conflicts = 0;
  bool operator==(const DramBankCounters&) const = default;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_REQUEST_H_
