// Any name of a program is one of emitted text: words of languages, macros and functions of headers, what emitted text
// calls or declares itself.
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/process.h"
#include "base/text.h"
#include "compiler/codegen/c/emit_c.h"
#include "compiler/codegen/c/function_emitter.h"
#include "compiler/codegen/c/prelude.h"
#include "compiler/codegen/c/run_c.h"
#include "compiler/codegen/codegen_test_util.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "compiler/codegen/cuda/shim_text.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using Words = std::set<std::string>;

// What must be tried whatever the machine's headers have: an example of each kind, functions of the C library that no
// header of the text declares, and all words of C++ but those of loop IR.
constexpr std::string_view kKnown = R"(
    HUGE_VAL HUGE_VALF INT32_MAX INT32_MIN INT64_C UINT8_MAX NULL NAN INFINITY EOF RAND_MAX M_PI M_PIf EXIT_FAILURE stdin
    exp expf fma sqrt memcpy free malloc abort aligned_alloc int32_t uint16_t size_t y0 index signgam isnan environ errno
    write read open close send time kill sleep printf puts memset memmove main linux unix buffers scalars A A_ v1 x_1
    threadIdx blockIdx blockDim gridDim warpSize int2 int4 dim3 float4 omp_get_thread_num cudaMemAttachHost CUDART_VERSION
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl concept
    const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double
    dynamic_cast enum explicit export extern float friend goto inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return short signed static
    static_assert static_cast struct switch template this thread_local throw try typedef typeid typename typeof union unsigned
    using virtual void volatile wchar_t while xor xor_eq _Alignas _Bool nao_add_i32 nao_shim add.f32 4x4)";

void AddIdentifiers(std::string_view text, Words& words) {
  std::string word;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    if (!word.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(word[0]))) {
      words.insert(word);
    }
    word.clear();
  }
}

// Every identifier of `text` and the headers that it includes, and every macro: what the preprocessor of `compiler`
// makes.
Words IdentifiersOf(const std::string& text, const std::vector<std::string>& compiler) {
  Words words;
  auto directory = TemporaryDirectory::Create("polynao-names");
  if (!directory.ok()) return words;
  const std::string file = directory->File("text.c");
  std::ofstream(file) << text;
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"-E", "-P"}, std::vector<std::string>{"-E", "-dM"}}) {
    std::vector<std::string> command = compiler;
    command.insert(command.end(), flags.begin(), flags.end());
    command.push_back(file);
    const auto printed = RunProgram(command);
    if (printed.ok()) AddIdentifiers(*printed, words);
  }
  return words;
}

std::vector<std::string> Known() {
  const std::vector<std::string> words =
      absl::StrSplit(ToAbsl(kKnown), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return words;
}

// Of the thousands of words of headers each is tried as two or three of the eight things that have names.
constexpr size_t kHeaderStep = 3;

// Whether loop IR has the word itself.
bool IsReserved(const std::string& word) {
  return !ir::ParseModule(StrCat("func ", word, "(", word, ": i32) { }"), word).ok();
}

// Each word as the name of a function, its buffers, its scalar, an allocation, a loop's variable and a let. `step`: of
// these eight every so manieth, each of them of some words.
std::vector<ir::Function> FunctionsNamed(const std::vector<std::string>& words, size_t step = 1) {
  std::vector<ir::Function> functions;
  const size_t n = words.size();
  for (size_t i = 0; i < n; i += step) {
    const auto word = [&](size_t k) -> const std::string& { return words[(i + k) % n]; };
    functions.push_back(Parse(StrCat(
        "func ", word(0), "(", word(1), ": i32[8] in, ", word(2), ": i32[8, 2], ", word(3),
        ": i32) {\n  allocate ", word(4), ": f32[8]\n  for (", word(5), ", 0, 8) {\n    let ",
        word(6), ": i32 = ", word(1), "[", word(5), "] * ", word(3), "\n    ", word(4), "[",
        word(5), "] = sqrt(abs(cast(f32, ", word(6), ")))\n    for (", word(7), ", 0, ", word(5),
        " / 4) { ", word(2), "[", word(5), ", ", word(7), "] = ", word(6), " + cast(i32, ", word(4),
        "[", word(5), "]) + ", word(7), " }\n  }\n}")));
  }
  return functions;
}

// All of `words` that may stand in a program, without two that C spells alike.
std::vector<std::string> Usable(const Words& words) {
  std::vector<std::string> usable;
  Words spelled;
  for (const std::string& word : words) {
    if (IsReserved(word)) continue;
    const std::string name = CName(word);
    if (spelled.contains(name) || spelled.contains(StrCat(name, "_entry"))) continue;
    spelled.insert({name, StrCat(name, "_entry")});
    usable.push_back(word);
  }
  return usable;
}

void ExpectAgreement(const std::vector<ir::Function>& functions, const RunOne& run) {
  for (size_t i = 0; i < functions.size(); ++i) {
    EXPECT_EQ(Disagreement(functions[i], ir::RandomArguments(functions[i], i),
                           [&](auto arguments) { return run(i, arguments); }),
              "");
  }
}

// Compilers with which people compile emitted C, and how each reads it.
std::vector<std::vector<std::string>> Compilers() {
  std::vector<std::vector<std::string>> found;
  for (const auto& [name, standard] :
       {std::pair("clang-19", "-std=c11"), std::pair("gcc-12", "-std=gnu2x")}) {
    if (const std::optional<std::string> path = FindOnPath(name)) {
      found.push_back({*path, standard});
    }
  }
  return found;
}

TEST(NamesTest, OfHeadersAndLanguagesInC) {
  for (const std::vector<std::string>& compiler : Compilers()) {
    Words words = IdentifiersOf(CPrelude(""), compiler);
    EXPECT_GT(words.size(), 500) << compiler[0];
    for (const std::string& word : Known()) words.insert(word);
    const std::vector<ir::Function> functions = FunctionsNamed(Usable(words), kHeaderStep);
    auto text = EmitC(functions);
    ASSERT_TRUE(text.ok()) << text.status();
    auto code = LoadedCode::Create(*text, {.compiler = {.path = compiler[0]},
                                           .flags = {compiler[1], "-O0", "-ffp-contract=off"}});
    ASSERT_TRUE(code.ok()) << compiler[0] << " " << compiler[1] << "\n" << code.status();
  }
  Words words;
  for (const std::string& word : Known()) words.insert(word);
  const std::vector<ir::Function> functions = FunctionsNamed(Usable(words));
  auto compiled = CompiledC::Create(functions, {.optimization_level = 2});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ExpectAgreement(functions, [&](size_t i, auto a) { return (*compiled)->Run(i, a); });
}

TEST(NamesTest, OfHeadersAndLanguagesInCuda) {
  const auto compiler = FindCCompiler(false);
  ASSERT_TRUE(compiler.ok()) << compiler.status();
  Words words = IdentifiersOf(StrCat(kShimText, CudaPrelude("")),
                              {compiler->path, "-x", "c++", "-std=c++17"});
  EXPECT_GT(words.size(), 1000);
  std::vector<ir::Function> functions = FunctionsNamed(Usable(words), kHeaderStep);
  Words known;
  for (const std::string& word : Known()) {
    if (!words.contains(word)) known.insert(word);
  }
  for (const ir::Function& function : FunctionsNamed(Usable(known))) functions.push_back(function);
  auto compiled = ShimmedCuda::Create(functions);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ExpectAgreement(functions, [&](size_t i, auto a) { return (*compiled)->Run(i, a); });
}

TEST(NamesTest, OfLanguagesAndLibrariesInLlvm) {
  const std::vector<std::string> known = Known();
  const std::vector<ir::Function> functions = FunctionsNamed(Usable({known.begin(), known.end()}));
  for (const ir::Function& function : functions) {
    auto compiled = Compile(function, {.optimization_level = 0});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    EXPECT_EQ(Disagreement(function, ir::RandomArguments(function, 1),
                           [&](auto arguments) { return (*compiled)->Run(arguments); }),
              "");
  }
}

// ---- what emitted text says itself ----------------------------------------------------------------

// The names that `function` gives, as C spells them.
Words NamesOf(const ir::Function& function) {
  Words names = {CName(function.name)};
  const auto add = [&](std::string_view name) { names.insert(CName(name)); };
  for (const ir::Param& param : function.params) add(param.name());
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    if (s.Is(ir::StmtKind::kFor) || s.Is(ir::StmtKind::kLet)) add(s.var().name());
    if (s.Is(ir::StmtKind::kAllocate)) add(s.buffer()->name);
    return true;
  });
  ir::ForEachExprIn(function.body, [&](ir::Expr e) {
    if (e.Is(ir::ExprKind::kLet)) add(e.var().name());
  });
  return names;
}

// "sum_extent1_2" comes from "sum": the emitters' suffixes.
bool ComesFrom(const Words& names, std::string word) {
  while (!names.contains(word)) {
    const size_t at = word.rfind('_');
    if (at == std::string::npos) return false;
    word.resize(at);
  }
  return true;
}

// A name of a program that CName lets stand is none that emitted text uses in its functions.
void ExpectNoOwnWordIsFree(const std::vector<ir::Function>& functions, std::string_view text) {
  Words names;
  for (const ir::Function& function : functions) names.merge(NamesOf(function));
  Words words;
  for (absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    const size_t comment = line.find("//");
    if (absl::StartsWith(line, "#")) continue;
    AddIdentifiers(std::string_view(line.data(), std::min(comment, line.size())), words);
  }
  for (const std::string& word : words) {
    const bool is_made =
        word[0] == 'v' && word.find_first_not_of("0123456789", 1) == std::string::npos;
    const bool is_pragma = word == "pragma" || word == "unroll" || word == "omp" || word == "GCC" ||
                           word == "simd" || word == "parallel";
    // Members are never alone.
    const bool is_member = word == "x" || word == "y" || word == "z" || word == "w";
    if (is_made || is_pragma || is_member || IsReserved(word)) continue;
    if (ComesFrom(names, word)) continue;
    EXPECT_NE(CName(word), word) << "emitted text uses a name that a program may have";
  }
}

TEST(NamesTest, NoWordOfEmittedTextIsFree) {
  std::vector<ir::Function> functions = FunctionsOf(SemanticsCases());
  for (uint64_t seed = 0; seed < 300; ++seed) {
    functions.push_back(ir::RandomProgram(seed, {}));
    functions.back().name = StrCat("random", seed);
  }
  const auto c = EmitC(functions);
  ASSERT_TRUE(c.ok()) << c.status();
  const std::string c_prelude = CPrelude(*c);
  ASSERT_TRUE(c->starts_with(c_prelude));
  ExpectNoOwnWordIsFree(functions, std::string_view(*c).substr(c_prelude.size()));
  std::vector<ir::Function> kernels;
  for (const ir::Function& function : functions) {
    if (EmitCuda(function).ok()) kernels.push_back(function);
  }
  EXPECT_GT(kernels.size(), 100);
  const auto cuda = EmitCuda(kernels);
  ASSERT_TRUE(cuda.ok()) << cuda.status();
  const std::string cuda_prelude = CudaPrelude(cuda->source);
  ASSERT_TRUE(cuda->source.starts_with(cuda_prelude));
  ExpectNoOwnWordIsFree(kernels, std::string_view(cuda->source).substr(cuda_prelude.size()));
}

}  // namespace
}  // namespace polynao::codegen
