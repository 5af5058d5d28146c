// Writes the tables of documents anew from the files in benchmarks/results.
//
//   bazel run //tools:result_tables                  docs/*.md of this checkout
//   bazel run //tools:result_tables -- "$PWD/x.md"   other pages
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "base/files.h"
#include "benchmarks/tables/tables.h"

int main(int argc, char** argv) {
  // Where `bazel run` was called, else the folder that the program stands in.
  const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  const std::filesystem::path checkout = root != nullptr ? root : ".";
  std::vector<std::string> pages(argv + 1, argv + argc);
  if (pages.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(checkout / "docs")) {
      if (entry.path().extension() == ".md") pages.push_back(entry.path().string());
    }
  }
  for (const std::string& path : pages) {
    const auto page = polynao::ReadFile(path);
    const auto filled =
        page.ok() ? polynao::benchmarks::FillTables(*page, checkout / "benchmarks/results") : page;
    if (!filled.ok()) {
      std::cerr << "result_tables: " << path << ":" << filled.status().message() << "\n";
      return 1;
    }
    if (*filled == *page) continue;
    if (const auto status = polynao::WriteFile(path, *filled); !status.ok()) {
      std::cerr << "result_tables: " << status.message() << "\n";
      return 1;
    }
    std::cout << path << "\n";
  }
  return 0;
}
