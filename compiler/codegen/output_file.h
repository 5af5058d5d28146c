// A file that a code generator writes.
#ifndef COMPILER_CODEGEN_OUTPUT_FILE_H_
#define COMPILER_CODEGEN_OUTPUT_FILE_H_

#include <string>

namespace polynao::codegen {

struct OutputFile {
  std::string name;
  std::string contents;
};

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_OUTPUT_FILE_H_
