#include "simulator/dram/address_map.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"

namespace polynao::simulator {
namespace {

int BitsOf(int64_t size) { return std::countr_zero(static_cast<uint64_t>(size)); }

struct Field {
  const char* name;
  int bits;
  bool is_bank;  // part of the bank's number, not of row over column
  int base;      // the field's least bit there
  int left;      // bits that no piece has taken yet, from the most significant down
};

// Primitive polynomials over GF(2) by their degree, 1 to 6; bit i is the coefficient of x^i.
constexpr uint64_t kPrimitive[] = {0, 0b11, 0b111, 0b1011, 0b10011, 0b100101, 0b1000011};

// What each bit of a burst's number contributes to its bank, by hash = 2. `own`: what it is of the bank's number (0:
// nothing), `ranks`: the bits of the number that say the rank; `above`: the first bit above all columns.
std::vector<uint8_t> PolynomialHash(const std::vector<uint8_t>& own, uint8_t ranks, size_t above) {
  std::vector<uint8_t> low,
      high;  // the bits of the number, from the least significant bit of the burst up
  for (size_t bit = 0; bit < own.size(); ++bit) {
    if (own[bit] != 0 && (own[bit] & ranks) == 0) (bit < above ? low : high).push_back(own[bit]);
  }
  std::vector<uint8_t> result = own;
  uint64_t power = 1;  // x^(bit - above) mod P
  for (size_t bit = above; bit < own.size(); ++bit) {
    if (!high.empty()) {
      result[bit] &= ranks;
      for (size_t i = 0; i < high.size(); ++i) {
        if (power >> i & 1) result[bit] |= high[i];
      }
      power <<= 1;
      if (power >> high.size() & 1) power ^= kPrimitive[high.size()];
    }
    if (!low.empty()) result[bit] |= low[(bit - above) % low.size()];
  }
  return result;
}

}  // namespace

absl::StatusOr<AddressMap> AddressMap::Make(const DramTiming& t, std::string_view place) {
  const int bank = BitsOf(t.banks), group = BitsOf(t.bank_groups), rank = BitsOf(t.ranks);
  const int column = BitsOf(t.bursts_per_row()), row = BitsOf(t.rows);
  Field fields[] = {{"bank", bank, true, 0, bank},
                    {"bank_group", group, true, bank, group},
                    {"rank", rank, true, bank + group, rank},
                    {"column", column, false, 0, column},
                    {"row", row, false, column, row}};
  const auto error = [&](const auto&... pieces) {
    return InvalidInput(place, ": dram.map \"", t.map, "\": ", pieces...);
  };
  struct Token {
    Field* field;
    int bits;  // -1: the rest
  };
  std::vector<Token> tokens;
  for (const absl::string_view word : absl::StrSplit(t.map, ' ', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(word, ':');
    Token token{nullptr, -1};
    for (Field& field : fields) {
      if (parts[0] == field.name) token.field = &field;
    }
    if (token.field == nullptr) {
      return error("expected row, rank, bank_group, bank or column, found \"", parts[0], "\"");
    }
    if (parts.size() > 2 || (parts.size() == 2 && (!absl::SimpleAtoi(parts[1], &token.bits) ||
                                                   token.bits < 1 || token.bits > 40))) {
      return error("expected FIELD or FIELD:BITS, found \"", ToStd(word), "\"");
    }
    tokens.push_back(token);
  }
  for (Field& field : fields) {
    int stated = 0;
    Token* rest = nullptr;
    for (Token& token : tokens) {
      if (token.field != &field) continue;
      if (token.bits >= 0) {
        stated += token.bits;
      } else if (rest != nullptr) {
        return error(field.name, " has two pieces without a number of bits");
      } else {
        rest = &token;
      }
    }
    if (stated > field.bits || (rest == nullptr && stated < field.bits)) {
      return error(field.name, " has ", field.bits, " bits, its pieces have ", stated);
    }
    if (rest != nullptr) rest->bits = field.bits - stated;
  }
  AddressMap map;
  if (tokens.size() > kMaxPieces) return error("more than ", kMaxPieces, " pieces");
  const int bits = bank + group + rank + column + row;
  std::vector<uint8_t> bank_of_bit(static_cast<size_t>(bits), 0);
  size_t above = 0;  // the highest column
  int from = bits, row_from[64];
  for (const Token& token : tokens) {
    if (token.bits == 0) continue;
    Field& field = *token.field;
    from -= token.bits;
    field.left -= token.bits;
    const int to = field.base + field.left;
    if (field.is_bank) {
      for (int i = 0; i < token.bits; ++i) {
        bank_of_bit[static_cast<size_t>(from + i)] = static_cast<uint8_t>(1 << (to + i));
      }
      continue;
    }
    map.pieces_[static_cast<size_t>(map.piece_count_++)] = {
        .mask = (uint64_t{1} << token.bits) - 1, .from = from, .to = to};
    if (&field == &fields[3]) above = std::max(above, static_cast<size_t>(from + token.bits));
    for (int i = 0; &field == &fields[4] && i < token.bits; ++i)
      row_from[to - column + i] = from + i;
  }
  const uint8_t in_rank = static_cast<uint8_t>((1 << (bank + group)) - 1);
  if (t.hash == 1) {
    // Bit i of the row is in bits i and i - 1 of its Gray code.
    for (int i = 0; i < row; ++i) {
      const int gray = i == 0 ? 1 : i > bank + group ? 0 : 3 << (i - 1);
      bank_of_bit[static_cast<size_t>(row_from[i])] = static_cast<uint8_t>(gray & in_rank);
    }
  } else if (t.hash == 2) {
    bank_of_bit = PolynomialHash(bank_of_bit, static_cast<uint8_t>(~in_rank), above);
  }
  map.burst_shift_ = BitsOf(t.burst_bytes());
  map.column_bits_ = column;
  map.column_mask_ = (uint64_t{1} << column) - 1;
  map.burst_mask_ = (uint64_t{1} << bits) - 1;
  map.bytes_ = (bits + 7) / 8;
  for (int bit = 0; bit < bits; ++bit) {
    map.SetBankOfBit(bit, bank_of_bit[static_cast<size_t>(bit)]);
  }
  // Row and column are bits of the address, so the map is a permutation if it is one of the banks of row 0, column 0.
  std::array<bool, kMaxDramBanks> is_used{};
  uint64_t bank_bits = map.burst_mask_;
  for (int i = 0; i < map.piece_count_; ++i) {
    const Piece& piece = map.pieces_[static_cast<size_t>(i)];
    bank_bits &= ~(piece.mask << piece.from);
  }
  for (uint64_t burst = 0;;) {
    const size_t number = static_cast<size_t>(map.BankOf(burst));
    if (is_used[number]) {
      return error("with dram.hash = ", t.hash, " it is no permutation: addresses ",
                   map.burst_of_bank_[number] << map.burst_shift_, " and ",
                   burst << map.burst_shift_, " are in one place");
    }
    is_used[number] = true;
    map.burst_of_bank_[number] = burst;
    burst = (burst - bank_bits) & bank_bits;  // the next subset of the bits
    if (burst == 0) break;
  }
  return map;
}

void AddressMap::SetBankOfBit(int bit, uint8_t bank) {
  std::array<uint8_t, 256>& bank_of = bank_of_byte_[static_cast<size_t>(bit / 8)];
  for (size_t value = 0; value < 256; ++value) {
    if (value >> (bit % 8) & 1) bank_of[value] ^= bank;
  }
}

int64_t AddressMap::AddressOf(const DramPlace& place) const {
  const uint64_t in_bank =
      static_cast<uint64_t>(place.row) << column_bits_ | static_cast<uint64_t>(place.column);
  uint64_t burst = 0;
  for (int i = 0; i < piece_count_; ++i) {
    const Piece& piece = pieces_[static_cast<size_t>(i)];
    burst |= (in_bank >> piece.to & piece.mask) << piece.from;
  }
  // What row and column make of the bank, the other bits make up for.
  burst |= burst_of_bank_[static_cast<size_t>(BankOf(burst) ^ place.bank)];
  return static_cast<int64_t>(burst << burst_shift_);
}

}  // namespace polynao::simulator
