#include "testing/fuzz.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace polynao {
namespace {

bool IsWordByte(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Place and size of each token of `text`: a run of letters and digits, or a single other byte.
std::vector<std::pair<size_t, size_t>> Tokens(std::string_view text) {
  std::vector<std::pair<size_t, size_t>> tokens;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (IsWordByte(text[i])) {
      while (end < text.size() && IsWordByte(text[end])) ++end;
    }
    if (text[i] != ' ' && text[i] != '\n') tokens.emplace_back(i, end - i);
    i = end;
  }
  return tokens;
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace

InputMutator::InputMutator(std::vector<std::string> corpus, uint64_t seed, size_t max_bytes)
    : corpus_(std::move(corpus)), seed_(seed), max_bytes_(max_bytes) {
  POLYNAO_CHECK(!corpus_.empty()) << "a corpus without inputs";
  constexpr size_t kMaxTokens = 20000;
  for (const std::string& input : corpus_) {
    for (const auto& [at, size] : Tokens(input)) {
      if (tokens_.size() < kMaxTokens) tokens_.push_back(input.substr(at, size));
    }
  }
  // One token in five is an edge case.
  const std::vector<std::string> edges = {"0",
                                          "-1",
                                          "255",
                                          "256",
                                          "32768",
                                          "65535",
                                          "2147483647",
                                          "2147483648",
                                          "4294967296",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "9223372036854775808",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "1e400",
                                          "1e-400",
                                          "nan",
                                          "0x7f",
                                          "\"",
                                          "\\",
                                          std::string(1, '\0'),
                                          "\xff\xfe",
                                          "\xe2\x80\xa8"};
  const size_t from_corpus = tokens_.size();
  while (tokens_.size() < from_corpus + from_corpus / 4 + edges.size()) {
    tokens_.insert(tokens_.end(), edges.begin(), edges.end());
  }
}

uint64_t InputMutator::Below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }

const std::string& InputMutator::Pick() { return corpus_[Below(corpus_.size())]; }

std::string InputMutator::Input(int64_t i) {
  random_.seed(seed_ * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(i));
  std::string input = Pick();
  if (input.size() > max_bytes_) {
    // A part of a long input that begins at a line.
    size_t at = Below(input.size() - max_bytes_ / 2);
    at = at == 0 ? 0 : std::min(input.find('\n', at), input.size() - 1) + 1;
    input = input.substr(at, max_bytes_);
  }
  // Mostly one or two changes: the more there are, the earlier the parser gives up.
  for (int changes = 1 + static_cast<int>(Below(2) * Below(6)); changes > 0; --changes) {
    Mutate(input);
  }
  if (input.size() > max_bytes_) input.resize(max_bytes_);
  return input;
}

void InputMutator::Mutate(std::string& input) {
  switch (Below(8)) {
    case 0:
    case 1:
      return MutateByte(input);
    case 2:
    case 3:
    case 4:
      return MutateToken(input);
    case 5:
    case 6:
      return MutateLine(input);
    default:
      return Splice(input);
  }
}

void InputMutator::MutateByte(std::string& input) {
  if (input.empty()) {
    input.push_back(static_cast<char>(Below(256)));
    return;
  }
  const size_t at = Below(input.size());
  switch (Below(6)) {
    case 0:
      input[at] = static_cast<char>(Below(256));
      break;
    case 1:
      input[at] = static_cast<char>(input[at] ^ (1 << Below(8)));
      break;
    case 2:
      input.erase(at, 1 + Below(8));
      break;
    case 3:
      input.insert(at, 1, static_cast<char>(Below(256)));
      break;
    case 4:
      // The same bytes many times: deep nesting, long numbers.
      input.insert(at, [&] {
        const std::string part = input.substr(at, 1 + Below(3));
        std::string repeated;
        for (uint64_t count = 1 + Below(Below(20) == 0 ? 4000 : 40); count > 0; --count) {
          repeated += part;
        }
        return repeated;
      }());
      break;
    default:
      input.resize(at);
      break;
  }
}

void InputMutator::MutateToken(std::string& input) {
  const auto tokens = Tokens(input);
  if (tokens.empty()) return MutateByte(input);
  const auto [at, size] = tokens[Below(tokens.size())];
  switch (Below(5)) {
    case 0:
      input.erase(at, size);
      break;
    case 1:
      input.insert(at, input.substr(at, size) + " ");
      break;
    case 2: {
      const auto [other, other_size] = tokens[Below(tokens.size())];
      const std::string text = input.substr(other, other_size);
      input.replace(at, size, text);
      break;
    }
    case 3:
      input.insert(at, tokens_[Below(tokens_.size())] + " ");
      break;
    default:
      input.replace(at, size, tokens_[Below(tokens_.size())]);
      break;
  }
}

void InputMutator::MutateLine(std::string& input) {
  std::vector<std::string> lines = Lines(input);
  if (lines.size() < 2) return MutateToken(input);
  const size_t at = Below(lines.size());
  switch (Below(4)) {
    case 0:
      lines.erase(lines.begin() + at);
      break;
    case 1:
      lines.insert(lines.begin() + at, lines[Below(lines.size())]);
      break;
    case 2:
      std::swap(lines[at], lines[Below(lines.size())]);
      break;
    default: {
      const std::vector<std::string> others = Lines(Pick());
      if (!others.empty()) lines.insert(lines.begin() + at, others[Below(others.size())]);
      break;
    }
  }
  input = Join(lines);
}

void InputMutator::Splice(std::string& input) {
  const std::string& other = Pick();
  const size_t from = Below(other.size() + 1);
  if (Below(2) == 0) {
    // The head of one input, the tail of another.
    input = input.substr(0, Below(input.size() + 1)) + other.substr(from);
  } else {
    input.insert(Below(input.size() + 1), other.substr(from, Below(64)));
  }
}

// ---- running ------------------------------------------------------------------------------------

namespace {

// What the signal handler reports: it may call only functions that are safe at any time.
struct Current {
  const std::string* input = nullptr;
  char text[256] = {};  // "seed 1, input 27"
  char path[512] = {};  // where the input goes
};
Current current;

void Write(int file, const char* text, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(file, text, size);
    if (written <= 0) return;
    text += written;
    size -= static_cast<size_t>(written);
  }
}
void Write(int file, const char* text) { Write(file, text, std::strlen(text)); }

void OnSignal(int signal) {
  if (current.input != nullptr) {
    Write(STDERR_FILENO, signal == SIGALRM   ? "fuzz: no end in sight at "
                         : signal == SIGABRT ? "fuzz: an abort at "
                                             : "fuzz: a crash at ");
    Write(STDERR_FILENO, current.text);
    const int file = ::open(current.path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0) {
      Write(file, current.input->data(), current.input->size());
      ::close(file);
      Write(STDERR_FILENO, "; the input is in ");
      Write(STDERR_FILENO, current.path);
    }
    Write(STDERR_FILENO, "\n");
  }
  // Ends the process as the signal does without a handler.
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  ::raise(signal);
}

// Reports crashes and hangs while it lives.
class Watch {
 public:
  Watch() {
    // A stack of its own, for inputs that exhaust the other one.
    stack_t stack = {};
    stack.ss_sp = stack_.data();
    stack.ss_size = stack_.size();
    ::sigaltstack(&stack, &old_stack_);
    struct sigaction action = {};
    action.sa_handler = OnSignal;
    action.sa_flags = SA_ONSTACK;
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &action, &old_[i]);
  }
  ~Watch() {
    ::alarm(0);
    current.input = nullptr;
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &old_[i], nullptr);
    ::sigaltstack(&old_stack_, nullptr);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  static constexpr int kSignals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
  std::array<char, 1 << 16> stack_;
  stack_t old_stack_ = {};
  struct sigaction old_[std::size(kSignals)] = {};
};

// What is wrong with the parser's answer to `input`, or nothing.
std::string Violation(const FuzzTarget& target, const std::regex& place, const std::string& input,
                      bool* accepted) {
  const absl::Status status = target.parse(input);
  *accepted = status.ok();
  if (status.ok()) return "";
  const std::string message(status.message());
  if (absl::IsInternal(status)) return message;
  // A message may quote the input, with its line ends.
  const std::string first = message.substr(0, message.find('\n'));
  if (!std::regex_search(first, place, std::regex_constants::match_continuous)) {
    return StrCat("an error without its place: ", message);
  }
  return "";
}

// A smaller input with a violation: parts are dropped for as long as one stays.
std::string Shrink(const std::string& input, const std::function<bool(const std::string&)>& fails) {
  std::string smallest = input;
  int calls = 3000;
  for (size_t part = std::max<size_t>(smallest.size() / 2, 1); part > 0 && calls > 0; part /= 2) {
    for (size_t at = 0; at < smallest.size() && calls > 0;) {
      std::string candidate = smallest;
      candidate.erase(at, part);
      --calls;
      if (fails(candidate)) {
        smallest = std::move(candidate);
      } else {
        at += part;
      }
    }
  }
  return smallest;
}

int64_t NumberFromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

}  // namespace

FuzzResult Fuzz(const FuzzTarget& target, int64_t cases, uint64_t seed) {
  InputMutator mutator(target.corpus, seed, target.max_bytes);
  const std::regex place(target.place);
  const char* folder = std::getenv("TEST_TMPDIR");
  std::snprintf(current.path, sizeof(current.path), "%s/fuzz_input",
                folder == nullptr ? "/tmp" : folder);
  const auto corpus_size = static_cast<int64_t>(target.corpus.size());
  FuzzResult result;
  const Watch watch;
  for (int64_t i = -corpus_size; i < cases; ++i) {
    const std::string input = i < 0 ? target.corpus[i + corpus_size] : mutator.Input(i);
    std::snprintf(current.text, sizeof(current.text), "seed %llu, input %lld",
                  static_cast<unsigned long long>(seed), static_cast<long long>(i));
    current.input = &input;
    ::alarm(target.max_seconds);
    bool accepted = false;
    std::string wrong = Violation(target, place, input, &accepted);
    if (wrong.empty() && i < 0 && !accepted) {
      wrong = StrCat("an input of the corpus is refused: ", target.parse(input).message());
      result.failure = StrCat(current.text, ": ", wrong);
    } else if (!wrong.empty()) {
      const std::string smallest = Shrink(input, [&](const std::string& candidate) {
        current.input = &candidate;
        bool ignored;
        const bool fails = !Violation(target, place, candidate, &ignored).empty();
        current.input = &input;
        return fails;
      });
      wrong = Violation(target, place, smallest, &accepted);
      result.failure = StrCat(current.text, ", shrunk: ", wrong, "\n", Excerpt(smallest));
    }
    current.input = nullptr;
    if (!result.failure.empty()) return result;
    ++(accepted ? result.accepted : result.refused);
  }
  return result;
}

int64_t FuzzCases(int64_t usual) { return NumberFromEnvironment("POLYNAO_RANDOM_CASES", usual); }

uint64_t FuzzSeed() { return static_cast<uint64_t>(NumberFromEnvironment("POLYNAO_SEED", 1)); }

std::string Excerpt(std::string_view input) {
  constexpr size_t kMaxLength = 2000;
  std::string text;
  for (char c : input.substr(0, kMaxLength)) {
    if (c == '\n' || std::isprint(static_cast<unsigned char>(c))) {
      text += c;
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\x%02x", static_cast<unsigned char>(c));
      text += escaped;
    }
  }
  if (input.size() > kMaxLength) StrAppend(&text, "... (", input.size(), " bytes)");
  return text;
}

}  // namespace polynao
