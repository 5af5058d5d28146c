// Writes the reference page of the instruction set, docs/isa.md.
//
//   bazel run //tools:isa_doc -- "$PWD/docs/isa.md"     to a file; without one, to standard output
#include <fstream>
#include <iostream>

#include "isa/reference.h"

int main(int argc, char** argv) {
  if (argc > 2) {
    std::cerr << "usage: isa_doc [FILE]\n";
    return 1;
  }
  const std::string page = polynao::isa::ReferencePage(polynao::isa::DianNao());
  if (argc == 1) {
    std::cout << page;
    return 0;
  }
  std::ofstream file(argv[1], std::ios::binary);
  file << page;
  file.close();
  if (!file) {
    std::cerr << argv[1] << ": can not be written\n";
    return 1;
  }
  return 0;
}
