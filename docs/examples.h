// The examples in a document: blocks fenced by ```nir and a closing ```.
#ifndef DOCS_EXAMPLES_H_
#define DOCS_EXAMPLES_H_

#include <string>
#include <vector>

namespace polynao::docs {

struct Example {
  std::string language;  // "nir" of "```nir error"
  std::string kind;      // "error" of "```nir error"; "" if there is no more on that line
  std::string text;      // with a newline at the end of each line
  int line = 0;          // of the opening fence, from 1

  // Returns what the comment lines ("# ...") at the end of the text say, joined by newlines.
  std::string Expectation() const;
};

// The fenced blocks of `path` (from the root of the checkout) in the given language, in order. A
// failed check if the file can not be read.
std::vector<Example> ReadExamples(const std::string& path, const std::string& language);

// The whole file.
std::string ReadDocument(const std::string& path);

}  // namespace polynao::docs

#endif  // DOCS_EXAMPLES_H_
