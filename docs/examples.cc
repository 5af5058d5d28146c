#include "docs/examples.h"

#include <fstream>
#include <sstream>

#include "base/check.h"

namespace polynao::docs {

std::string Example::Expectation() const {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("# ")) {
      lines.push_back(line.substr(2));
    } else {
      lines.clear();
    }
  }
  std::string expectation;
  for (const std::string& line : lines) {
    if (!expectation.empty()) expectation += '\n';
    expectation += line;
  }
  return expectation;
}

std::string ReadDocument(const std::string& path) {
  std::ifstream in(path);
  POLYNAO_CHECK(in.good()) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<Example> ReadExamples(const std::string& path, const std::string& language) {
  std::vector<Example> examples;
  std::istringstream in(ReadDocument(path));
  bool inside = false;
  Example example;
  int line_number = 0;
  for (std::string line; std::getline(in, line);) {
    ++line_number;
    if (!line.starts_with("```")) {
      if (inside) example.text += line + '\n';
      continue;
    }
    if (inside) {
      if (example.language == language) examples.push_back(example);
    } else {
      const std::string head = line.substr(3);
      const size_t blank = head.find(' ');
      example = {.language = head.substr(0, blank),
                 .kind = blank == std::string::npos ? "" : head.substr(blank + 1),
                 .text = "",
                 .line = line_number};
    }
    inside = !inside;
  }
  POLYNAO_CHECK(!inside) << path << ":" << example.line << ": a block that no fence ends";
  return examples;
}

}  // namespace polynao::docs
