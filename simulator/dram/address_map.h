// Which bank, row and column an address of a DRAM channel is in.
#ifndef SIMULATOR_DRAM_ADDRESS_MAP_H_
#define SIMULATOR_DRAM_ADDRESS_MAP_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "simulator/dram/timing.h"

namespace polynao::simulator {

struct DramPlace {
  int32_t bank = 0;  // (rank x bank groups + group) x banks of a group + bank in the group
  int32_t row = 0;
  int32_t column = 0;  // in bursts
  bool operator==(const DramPlace&) const = default;
};

// A map is written as the fields of a burst's number (address / bytes of a burst) from the most
// significant bits down:
//
//   "row rank bank column bank_group column:1"
//
// Fields are row, rank, bank_group, bank and column. A field may come in several pieces, the more
// significant one first; ":n" gives a piece n bits, and the one piece of a field without takes the rest of
// the field's bits. Fields of 0 bits (one rank) may be left out. The bits above the channel's capacity are
// ignored. With DramTiming::hash, the number of the bank in its rank (group x banks + bank) is xored
// with the least significant bits of the row's Gray code, row ^ (row >> 1). Rows that follow one another then
// differ in one bit, so that a stream does not go on in the bank that it just used, as it would with the
// row itself.
class AddressMap {
 public:
  // Errors, with `place` in front: an unknown field; a field whose pieces do not have its bits.
  static absl::StatusOr<AddressMap> Make(const DramTiming& timing, std::string_view place);

  DramPlace Map(int64_t address) const {
    const uint64_t burst = static_cast<uint64_t>(address) >> burst_shift_;
    uint64_t fields[2] = {0, 0};  // banks; row over column
    for (int i = 0; i < piece_count_; ++i) {
      const Piece& piece = pieces_[static_cast<size_t>(i)];
      fields[piece.target] |= (burst >> piece.from & piece.mask) << piece.to;
    }
    const uint64_t row = fields[1] >> column_bits_;
    DramPlace result;
    result.bank = static_cast<int32_t>(fields[0] ^ Hash(row));
    result.row = static_cast<int32_t>(row);
    result.column = static_cast<int32_t>(fields[1] & column_mask_);
    return result;
  }

  // An address of the first byte of the burst at `place`.
  int64_t AddressOf(const DramPlace& place) const;

 private:
  uint64_t Hash(uint64_t row) const { return (row ^ row >> 1) & hash_mask_; }

  struct Piece {
    uint64_t mask = 0;
    int from = 0;    // least bit in the burst's number
    int to = 0;      // least bit in the target
    int target = 0;  // 0: bank number; 1: row and column
  };
  static constexpr int kMaxPieces = 16;
  std::array<Piece, kMaxPieces> pieces_;
  int piece_count_ = 0;
  int burst_shift_ = 0;
  int column_bits_ = 0;
  uint64_t column_mask_ = 0;
  uint64_t hash_mask_ = 0;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_ADDRESS_MAP_H_
