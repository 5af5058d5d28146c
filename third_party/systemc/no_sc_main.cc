// libsystemc.so contains a `main` that calls `sc_main`, so it does not link
// without one. Our binaries have their own `main` and use SystemC as a library.
// If the linker ever takes SystemC's `main` instead, a test binary would "pass"
// having run nothing; this makes it fail.
//
// The linker takes this definition from its archive only where nothing else
// defines `sc_main`.

#include <cstdio>

extern "C" int sc_main(int, char**) {
  std::fprintf(stderr,
               "sc_main: SystemC's own main() was linked in place of the "
               "program's; nothing was run.\n");
  return 70;  // EX_SOFTWARE
}
