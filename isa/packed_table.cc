#include "isa/packed_table.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/packed.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"

namespace polynao::isa {
namespace {

void WriteTexts(const std::vector<std::string>& texts, ir::PackedWriter& writer) {
  writer.Unsigned(texts.size());
  for (const std::string& text : texts) writer.Text(text);
}

std::vector<std::string> ReadTexts(ir::PackedReader& reader) {
  std::vector<std::string> texts(reader.Unsigned());
  for (std::string& text : texts) text = std::string(reader.Text());
  return texts;
}

}  // namespace

absl::StatusOr<std::string> PackTable(std::string_view text, std::string_view file) {
  ASSIGN_OR_RETURN(const std::vector<TableVariant> rows, ExpandTable(text, file));
  const auto context = std::make_shared<ir::Context>();
  std::vector<ir::Function> meanings;
  ir::PackedWriter writer;
  writer.Unsigned(rows.size());
  for (const TableVariant& row : rows) {
    ASSIGN_OR_RETURN(ir::Function meaning, ir::ParseFunction(row.text, file, context));
    if (const absl::Status status = ir::Verify(meaning); !status.ok()) {
      return WithContext(StrCat(file, ":", row.line, ": ", row.family), status);
    }
    meanings.push_back(std::move(meaning));
    writer.Signed(row.row);
    writer.Signed(row.line);
    writer.Signed(row.code);
    writer.Text(row.family);
    WriteTexts(row.values, writer);
    WriteTexts(row.requirements, writer);
  }
  ir::PackFunctions(meanings, writer);
  return writer.bytes();
}

std::vector<ParsedVariant> UnpackTable(std::string_view bytes,
                                       std::shared_ptr<ir::Context> context) {
  ir::PackedReader reader(bytes);
  std::vector<ParsedVariant> variants(reader.Unsigned());
  for (ParsedVariant& variant : variants) {
    variant.row.row = static_cast<int>(reader.Signed());
    variant.row.line = static_cast<int>(reader.Signed());
    variant.row.code = static_cast<int>(reader.Signed());
    variant.row.family = std::string(reader.Text());
    variant.row.values = ReadTexts(reader);
    variant.row.requirements = ReadTexts(reader);
  }
  std::vector<ir::Function> meanings = ir::UnpackFunctions(reader, std::move(context));
  POLYNAO_CHECK(meanings.size() == variants.size() && reader.AtEnd()) << meanings.size();
  for (size_t i = 0; i < meanings.size(); ++i) variants[i].meaning = std::move(meanings[i]);
  return variants;
}

}  // namespace polynao::isa
