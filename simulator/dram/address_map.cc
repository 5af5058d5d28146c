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

// A piece of the map's text.
struct Token {
  size_t field;  // of Fields
  int bits;      // -1: the rest
};

enum FieldOf : size_t { kBank, kBankGroup, kRank, kColumn, kRow };
using Fields = std::array<Field, 5>;

Fields FieldsOf(const DramTiming& t) {
  const int bank = BitsOf(t.banks), group = BitsOf(t.bank_groups), rank = BitsOf(t.ranks);
  const int column = BitsOf(t.bursts_per_row()), row = BitsOf(t.rows);
  return {{{"bank", bank, true, 0, bank},
           {"bank_group", group, true, bank, group},
           {"rank", rank, true, bank + group, rank},
           {"column", column, false, 0, column},
           {"row", row, false, column, row}}};
}

// The pieces of a map's text, highest bits first. Errors begin with `at`.
absl::StatusOr<std::vector<Token>> Tokens(const std::string& text, const Fields& fields,
                                          std::string_view at) {
  std::vector<Token> tokens;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(word, ':');
    Token token{fields.size(), -1};
    for (size_t f = 0; f < fields.size(); ++f) {
      if (parts[0] == fields[f].name) token.field = f;
    }
    if (token.field == fields.size()) {
      return InvalidInput(at, "expected row, rank, bank_group, bank or column, found \"", parts[0],
                          "\"");
    }
    if (parts.size() > 2 || (parts.size() == 2 && (!absl::SimpleAtoi(parts[1], &token.bits) ||
                                                   token.bits < 1 || token.bits > 40))) {
      return InvalidInput(at, "expected FIELD or FIELD:BITS, found \"", ToStd(word), "\"");
    }
    tokens.push_back(token);
  }
  return tokens;
}

// Gives each field's piece without a number the bits that its other pieces leave.
absl::Status ShareBits(const Fields& fields, std::string_view at, std::vector<Token>& tokens) {
  for (size_t f = 0; f < fields.size(); ++f) {
    const Field& field = fields[f];
    int stated = 0;
    Token* rest = nullptr;
    for (Token& token : tokens) {
      if (token.field != f) continue;
      if (token.bits >= 0) {
        stated += token.bits;
      } else if (rest != nullptr) {
        return InvalidInput(at, field.name, " has two pieces without a number of bits");
      } else {
        rest = &token;
      }
    }
    if (stated > field.bits || (rest == nullptr && stated < field.bits)) {
      return InvalidInput(at, field.name, " has ", field.bits, " bits, its pieces have ", stated);
    }
    if (rest != nullptr) rest->bits = field.bits - stated;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AddressMap> AddressMap::Make(const DramTiming& t, std::string_view place) {
  const std::string at = StrCat(place, ": dram.map \"", t.map, "\": ");
  Fields fields = FieldsOf(t);
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokens(t.map, fields, at));
  RETURN_IF_ERROR(ShareBits(fields, at, tokens));
  if (tokens.size() > kMaxPieces) return InvalidInput(at, "more than ", kMaxPieces, " pieces");

  int bits = 0;
  for (const Field& field : fields) bits += field.bits;
  AddressMap map;
  map.burst_shift_ = BitsOf(t.burst_bytes());
  map.column_bits_ = fields[kColumn].bits;
  map.column_mask_ = (uint64_t{1} << map.column_bits_) - 1;
  map.burst_mask_ = (uint64_t{1} << bits) - 1;
  map.bytes_ = (bits + 7) / 8;

  std::vector<uint8_t> bank_of_bit(static_cast<size_t>(bits), 0);
  size_t above = 0;  // the highest column
  int from = bits, row_from[64];
  for (const Token& token : tokens) {
    if (token.bits == 0) continue;
    Field& field = fields[token.field];
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
    if (token.field == kColumn) above = std::max(above, static_cast<size_t>(from + token.bits));
    for (int i = 0; token.field == kRow && i < token.bits; ++i) row_from[field.left + i] = from + i;
  }
  const int in_rank_bits = fields[kBank].bits + fields[kBankGroup].bits;
  const uint8_t in_rank = static_cast<uint8_t>((1 << in_rank_bits) - 1);
  if (t.hash == 1) {
    // Bit i of the row is in bits i and i - 1 of its Gray code.
    for (int i = 0; i < fields[kRow].bits; ++i) {
      const int gray = i == 0 ? 1 : i > in_rank_bits ? 0 : 3 << (i - 1);
      bank_of_bit[static_cast<size_t>(row_from[i])] = static_cast<uint8_t>(gray & in_rank);
    }
  } else if (t.hash == 2) {
    bank_of_bit = PolynomialHash(bank_of_bit, static_cast<uint8_t>(~in_rank), above);
  }
  for (int bit = 0; bit < bits; ++bit) {
    map.SetBankOfBit(bit, bank_of_bit[static_cast<size_t>(bit)]);
  }
  RETURN_IF_ERROR(map.InvertBanks(StrCat(at, "with dram.hash = ", t.hash)));
  return map;
}

absl::Status AddressMap::InvertBanks(std::string_view at) {
  // Row and column are bits of the address, so the map is a permutation if it is one of the banks of row 0, column 0.
  std::array<bool, kMaxDramBanks> is_used{};
  uint64_t bank_bits = burst_mask_;
  for (int i = 0; i < piece_count_; ++i) {
    const Piece& piece = pieces_[static_cast<size_t>(i)];
    bank_bits &= ~(piece.mask << piece.from);
  }
  for (uint64_t burst = 0;;) {
    const auto number = static_cast<size_t>(BankOf(burst));
    if (is_used[number]) {
      return InvalidInput(at, " it is no permutation: addresses ",
                          burst_of_bank_[number] << burst_shift_, " and ", burst << burst_shift_,
                          " are in one place");
    }
    is_used[number] = true;
    burst_of_bank_[number] = burst;
    burst = (burst - bank_bits) & bank_bits;  // the next subset of the bits
    if (burst == 0) return absl::OkStatus();
  }
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
