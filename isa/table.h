// The text of an instruction table, before the IR's parser sees it: rows and their variants.
#ifndef ISA_TABLE_H_
#define ISA_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace polynao::isa {

// One variant of a row: the row's text with the variant's values in place of the names, and without
// its @variants lines.
struct TableVariant {
  int row = 0;         // position of the row in its text
  int line = 0;        // 1-based line of the row's first attribute
  int code = 0;        // position among the row's variants
  std::string family;  // the function's name in the table
  // The values that belong to the mnemonic, in the order of the @variants lines.
  std::vector<std::string> values;
  // One function in loop IR's text form, with its attributes, named `instruction`. Newlines in
  // front keep the parser's line numbers those of the table.
  std::string text;
  // The arguments of its @require attributes, as written, in order.
  std::vector<std::string> requirements;
};

// Splits a table into rows and each row into its variants:
//
//   @variants(T, f16, f32)
//   @variants((D, S, _UNIT), (nmem, gmem, io_dma), (smem, gmem, io_dma))
//   func load(dst: T[1] @D out, src: T[1] @S) { ... }
//
// gives load.f16.nmem.gmem, load.f16.smem.gmem, load.f32.nmem.gmem, load.f32.smem.gmem, in this
// order. A name is replaced wherever it stands as an identifier, in the values of later @variants
// lines too. A value `_` and the values of names that begin with `_` stay out of the mnemonic.
//
// Errors name file and line: text outside rows, a row without body, tuples of different lengths, a
// name that the row never uses, more than 256 variants.
absl::StatusOr<std::vector<TableVariant>> ExpandTable(std::string_view text, std::string_view file);

}  // namespace polynao::isa

#endif  // ISA_TABLE_H_
