#include "simulator/dram/address_map.h"

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
  int target;  // as in AddressMap::Piece
  int base;    // the field's least bit in the target
  int left;    // bits that no piece has taken yet, from the most significant down
};

}  // namespace

absl::StatusOr<AddressMap> AddressMap::Make(const DramTiming& t, std::string_view place) {
  const int bank = BitsOf(t.banks), group = BitsOf(t.bank_groups), rank = BitsOf(t.ranks);
  const int column = BitsOf(t.bursts_per_row()), row = BitsOf(t.rows);
  Field fields[] = {{"bank", bank, 0, 0, bank},
                    {"bank_group", group, 0, bank, group},
                    {"rank", rank, 0, bank + group, rank},
                    {"column", column, 1, 0, column},
                    {"row", row, 1, column, row}};
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
  int from = bank + group + rank + column + row;
  for (const Token& token : tokens) {
    if (token.bits == 0) continue;
    from -= token.bits;
    token.field->left -= token.bits;
    Piece& piece = map.pieces_[static_cast<size_t>(map.piece_count_++)];
    piece = {.mask = (uint64_t{1} << token.bits) - 1,
             .from = from,
             .to = token.field->base + token.field->left,
             .target = token.field->target};
  }
  map.burst_shift_ = BitsOf(t.burst_bytes());
  map.column_bits_ = column;
  map.column_mask_ = (uint64_t{1} << column) - 1;
  if (t.hash != 0) map.hash_mask_ = static_cast<uint64_t>(t.banks_per_rank()) - 1;
  return map;
}

int64_t AddressMap::AddressOf(const DramPlace& place) const {
  const uint64_t row = static_cast<uint64_t>(place.row);
  const uint64_t fields[2] = {static_cast<uint64_t>(place.bank) ^ Hash(row),
                              row << column_bits_ | static_cast<uint64_t>(place.column)};
  uint64_t burst = 0;
  for (int i = 0; i < piece_count_; ++i) {
    const Piece& piece = pieces_[static_cast<size_t>(i)];
    burst |= (fields[piece.target] >> piece.to & piece.mask) << piece.from;
  }
  return static_cast<int64_t>(burst << burst_shift_);
}

}  // namespace polynao::simulator
