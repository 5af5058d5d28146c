// The driver: ./nao COMMAND. For example: ./nao run add --shape=255x27x27 --target=diannao --json
#include "tools/driver/commands.h"

int main(int argc, char** argv) { return polynao::driver::Main(argc, argv); }
