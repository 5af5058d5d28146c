// The numbers that describe a DRAM channel: what a machine file or a preset states under [dram].
#ifndef ISA_DRAM_PARAMETERS_H_
#define ISA_DRAM_PARAMETERS_H_

// Every number of a channel: name, least and greatest value, unit, meaning. "clocks" are clocks of the
// DRAM's command bus.
#define POLYNAO_DRAM_PARAMETERS(X)                                                                 \
  X(clock_mhz, 1, 100'000, "MHz", "clock of the command bus")                                      \
  X(bus_bits, 8, 2048, "bit", "width of the data bus")                                             \
  X(beats_per_clock, 1, 64, "", "transfers of the data bus a clock")                               \
  X(burst_length, 1, 128, "", "transfers of one burst")                                            \
  X(ranks, 1, 8, "", "ranks that share the buses")                                                 \
  X(bank_groups, 1, 16, "", "bank groups of a rank")                                               \
  X(banks, 1, 64, "", "banks of a bank group")                                                     \
  X(rows, 1, 1 << 24, "", "rows of a bank")                                                        \
  X(row_bytes, 1, 1 << 20, "B", "bytes of a row, of all devices of the bus together")              \
  X(cl, 0, 512, "clocks", "from RD to its data")                                                   \
  X(cwl, 0, 512, "clocks", "from WR to its data")                                                  \
  X(trcd, 1, 2048, "clocks", "from ACT to RD or WR")                                               \
  X(trp, 1, 2048, "clocks", "from PRE to ACT")                                                     \
  X(tras, 1, 2048, "clocks", "from ACT to PRE")                                                    \
  X(trc, 1, 4096, "clocks", "from ACT to ACT of one bank")                                         \
  X(tccd_s, 1, 512, "clocks", "from RD to RD or WR to WR, other bank group")                       \
  X(tccd_l, 1, 512, "clocks", "from RD to RD or WR to WR, same bank group")                        \
  X(trrd_s, 1, 512, "clocks", "from ACT to ACT, other bank group")                                 \
  X(trrd_l, 1, 512, "clocks", "from ACT to ACT, same bank group")                                  \
  X(tfaw, 1, 2048, "clocks", "from ACT to the fourth ACT after it")                                \
  X(twr, 0, 2048, "clocks", "from the end of a write's data to PRE")                               \
  X(twtr_s, 0, 512, "clocks", "from the end of a write's data to RD, other bank group")            \
  X(twtr_l, 0, 512, "clocks", "from the end of a write's data to RD, same bank group")             \
  X(trtp, 1, 512, "clocks", "from RD to PRE")                                                      \
  X(turnaround, 0, 128, "clocks", "idle data bus between a read and a write after it")             \
  X(rank_switch, 0, 128, "clocks", "idle data bus between bursts of two ranks")                    \
  X(trefi, 0, 1 << 20, "clocks", "between two refreshes of a rank; 0: none")                       \
  X(trfc, 1, 8192, "clocks", "from REF to ACT")                                                    \
  X(read_queue, 1, 128, "bursts", "reads that the controller chooses from")                        \
  X(write_queue, 1, 128, "bursts", "writes that the controller chooses from")                      \
  X(write_high, 1, 128, "bursts", "waiting writes that start a drain")                             \
  X(write_low, 0, 127, "bursts", "waiting writes that end a drain")                                \
  X(starvation, 0, 1 << 20, "bursts", "younger bursts that may overtake the oldest one")           \
  X(keep_rows, 0, 1, "",                                                                           \
    "1: a row stays open while a waiting burst is in it; 0: its bank's oldest burst may close it") \
  X(posted, 0, 1, "", "1: a write is complete when the write queue has it; 0: when it is written") \
  X(hash, 0, 2, "",                                                                                \
    "1: low bits of the row change the bank; 2: all address bits above the column do")

#endif  // ISA_DRAM_PARAMETERS_H_
