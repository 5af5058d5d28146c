#include "benchmarks/provenance.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include "base/text.h"

namespace polynao::benchmarks {

std::string ProcessorName() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpuinfo, line)) {
    if (line.starts_with("model name")) {
      return line.substr(std::min(line.size(), line.find(':') + 2));
    }
  }
  return "unknown processor";
}

std::string Date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc));
}

std::string Commit() {
  const char* root = std::getenv("POLYNAO_ROOT");
  if (root == nullptr) return "";
  FILE* git = popen(
      StrCat("git -C '", root, "' describe --always --dirty --exclude='*' 2>/dev/null").c_str(),
      "r");
  if (git == nullptr) return "";
  char text[64] = {};
  const size_t size = std::fread(text, 1, sizeof(text) - 1, git);
  pclose(git);
  return std::string(text, size > 0 ? size - 1 : 0);
}

}  // namespace polynao::benchmarks
