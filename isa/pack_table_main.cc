// Packs an instruction table into a C++ source, when the project is built:
//
//   pack_table isa/instructions.nir packed_instructions.cc
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

#include "base/files.h"
#include "isa/packed_table.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: pack_table TABLE OUTPUT\n";
    return 1;
  }
  const absl::StatusOr<std::string> text = polynao::ReadFile(argv[1]);
  const absl::StatusOr<std::string> bytes =
      text.ok() ? polynao::isa::PackTable(*text, argv[1]) : text.status();
  if (!bytes.ok()) {
    std::cerr << bytes.status().message() << "\n";
    return 1;
  }
  std::string source =
      "#include \"isa/packed_instructions.h\"\n"
      "namespace polynao::isa {\n"
      "static const unsigned char kBytes[] = {";
  for (size_t i = 0; i < bytes->size(); ++i) {
    if (i % 32 == 0) source += "\n";
    source += std::to_string(static_cast<unsigned char>((*bytes)[i])) + ",";
  }
  source +=
      "};\n"
      "std::string_view PackedInstructions() {\n"
      "  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};\n"
      "}\n"
      "}  // namespace polynao::isa\n";
  if (const absl::Status status = polynao::WriteFile(argv[2], source); !status.ok()) {
    std::cerr << status.message() << "\n";
    return 1;
  }
  return 0;
}
