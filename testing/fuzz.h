// Fuzzing by mutation: tests of parsers of text or bytes on damaged copies of good inputs.
//
//   TEST(ParserFuzzTest, MutatedFiles) {
//     FuzzTarget target;
//     target.corpus = {ReadFile("a.nir"), ReadFile("b.nir")};
//     target.parse = [](const std::string& input) { return Parse(input, "m.nir").status(); };
//     target.place = R"(m\.nir(:\d+:\d+)?: )";
//     const FuzzResult result = Fuzz(target, FuzzCases(2000), FuzzSeed());
//     EXPECT_EQ(result.failure, "");
//     EXPECT_GT(result.accepted, 0);
//   }
//
// `parse` must return OK or an error that names its place. An abort, a crash or a hang ends the
// test; before that the seed and the number of the input are printed, and the input is written to
// a file, so that it can become a test of its own.
#ifndef TESTING_FUZZ_H_
#define TESTING_FUZZ_H_

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace polynao {

// Makes damaged copies of the inputs of a corpus: some with single bytes or bits changed, some with
// tokens (words, numbers, marks) or lines dropped, repeated, swapped or replaced by others of the
// corpus, some spliced from two inputs. The same seed gives the same sequence.
class InputMutator {
 public:
  InputMutator(std::vector<std::string> corpus, uint64_t seed, size_t max_bytes = 1 << 14);

  // Input number `i`, at most `max_bytes` long; does not depend on the inputs made before it.
  std::string Input(int64_t i);

 private:
  uint64_t Below(uint64_t limit);
  const std::string& Pick();
  void Mutate(std::string& input);
  void MutateByte(std::string& input);
  void MutateToken(std::string& input);
  void MutateLine(std::string& input);
  void Splice(std::string& input);

  const std::vector<std::string> corpus_;
  std::vector<std::string> tokens_;  // of all inputs, and numbers at the edges of integer types
  const uint64_t seed_;
  const size_t max_bytes_;
  std::mt19937_64 random_;
};

struct FuzzTarget {
  std::vector<std::string> corpus;
  // Parses an input, and checks what must hold of one that is accepted, for example that its
  // printed form parses back. A violation is an Internal error; all other errors are messages to
  // the input's author.
  std::function<absl::Status(const std::string& input)> parse;
  // A regular expression (ECMAScript) that the beginning of each error message must match.
  std::string place;
  size_t max_bytes = 1 << 14;
  // The test ends if one input takes longer.
  int max_seconds = 20;
};

struct FuzzResult {
  int64_t accepted = 0;
  int64_t refused = 0;
  // Empty, or what is wrong with the smallest input that shows it.
  std::string failure;
};

// Feeds `cases` inputs to the parser and stops at the first violation. The corpus comes first,
// unchanged, and must be accepted.
FuzzResult Fuzz(const FuzzTarget& target, int64_t cases, uint64_t seed);

// The number in the environment variable POLYNAO_RANDOM_CASES, or `usual` without it.
int64_t FuzzCases(int64_t usual);
// The number in POLYNAO_SEED, or 1 without it.
uint64_t FuzzSeed();

// `input` with the bytes that are not printable escaped, cut to some length, for messages.
std::string Excerpt(std::string_view input);

}  // namespace polynao

#endif  // TESTING_FUZZ_H_
