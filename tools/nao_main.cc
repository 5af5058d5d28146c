// The `nao` driver.

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  const bool help =
      argc > 1 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "help") == 0);
  std::fprintf(help ? stdout : stderr,
               "usage: nao COMMAND [ARGUMENTS]\n"
               "No command is built into this driver.\n");
  return help ? 0 : 1;
}
