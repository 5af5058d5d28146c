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
// ignored.
//
// DramTiming::hash spreads addresses that are a power of two apart over the banks. It replaces the number of a bank in
// its rank (group x banks + bank) by another one:
//
// 0  The number that the fields say.
// 1  That number, xored with the least significant bits of the row's Gray code, row ^ (row >> 1): rows that follow one another then
//    differ in one bit. All bits of the row above those are ignored, so streams that start far apart meet in one bank.
// 2  With A the number made of all bits above the highest column bit, as a polynomial over GF(2), bit i being x^i:
//    - the number's bits that lie in A become A mod P, P primitive of that degree (the lowest one in A is x^0);
//    - its bits below are xored with A folded into as many bits (bit i of A into bit i mod their number): these are bits that each
//      stream of bursts runs through anyway.
//    Of two addresses whose A differ by D, all s A + s' D for polynomials s, s' of a degree less than P's lie in different banks unless P
//    divides D: so 2, 4, ... streams use all banks that there are, at any distance that is a power of two (P does not divide x^i).
//    B. R. Rau, Pseudo-randomly interleaved memory, ISCA 1991.
class AddressMap {
 public:
  // Errors, with `place` in front: an unknown field; a field whose pieces do not have its bits; a map and hash that put
  // two addresses in one place.
  static absl::StatusOr<AddressMap> Make(const DramTiming& timing, std::string_view place);

  DramPlace Map(int64_t address) const {
    const uint64_t burst = static_cast<uint64_t>(address) >> burst_shift_ & burst_mask_;
    uint64_t in_bank = 0;  // row over column
    for (int i = 0; i < piece_count_; ++i) {
      const Piece& piece = pieces_[static_cast<size_t>(i)];
      in_bank |= (burst >> piece.from & piece.mask) << piece.to;
    }
    DramPlace result;
    result.bank = BankOf(burst);
    result.row = static_cast<int32_t>(in_bank >> column_bits_);
    result.column = static_cast<int32_t>(in_bank & column_mask_);
    return result;
  }

  // An address of the first byte of the burst at `place`.
  int64_t AddressOf(const DramPlace& place) const;

 private:
  // Bits of a burst's number that are bits of its row and column.
  struct Piece {
    uint64_t mask = 0;
    int from = 0;  // least bit in the burst's number
    int to = 0;    // least bit in row over column
  };
  static constexpr int kMaxPieces = 16;
  static constexpr int kMaxBytes = 8;  // of a burst's number

  // Linear over GF(2): a sum of what each byte of the burst's number contributes.
  int32_t BankOf(uint64_t burst) const {
    uint8_t bank = 0;
    for (int i = 0; i < bytes_; ++i, burst >>= 8) {
      bank ^= bank_of_byte_[static_cast<size_t>(i)][burst & 255];
    }
    return bank;
  }
  // Fills burst_of_bank_; an error that begins with `at` if two places share an address.
  absl::Status InvertBanks(std::string_view at);
  // Sets what bit `bit` of a burst's number contributes to its bank.
  void SetBankOfBit(int bit, uint8_t bank);

  std::array<Piece, kMaxPieces> pieces_;
  int piece_count_ = 0;
  int burst_shift_ = 0;
  int column_bits_ = 0;
  uint64_t column_mask_ = 0;
  uint64_t burst_mask_ = 0;
  int bytes_ = 0;
  std::array<std::array<uint8_t, 256>, kMaxBytes> bank_of_byte_{};
  // The burst numbers whose row and column are 0, by their bank.
  std::array<uint64_t, kMaxDramBanks> burst_of_bank_{};
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_ADDRESS_MAP_H_
