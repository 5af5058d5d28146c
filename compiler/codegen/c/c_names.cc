// Which names of a program C text keeps.
//
// No header, compiler or keyword has a name that ends with an underscore, so a name that is taken gets one. Which are
// taken: words of C and C++, what the emitted text uses itself, and what the headers that it includes define or
// declare. Macros follow a rule, since all but a few consist of capitals; functions are listed.
// //compiler/codegen/cuda:names_test tries every identifier that the headers of the machine contain, with each of its
// compilers.
#include <initializer_list>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "compiler/codegen/c/c_text.h"

namespace polynao::codegen {
namespace {

// C23 and C++20; `asm`, `typeof`, `linux` and `unix` are GNU's.
constexpr std::string_view kWords = R"(
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl concept
    const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double
    dynamic_cast else enum explicit export extern false float for friend goto i386 if inline int linux long mutable namespace
    new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
    typedef typeid typename typeof typeof_unqual union unix unsigned using virtual void volatile wchar_t while xor xor_eq)";

// Parameters of raw entries, and CUDA's variables and types.
constexpr std::string_view kOfEmittedText = R"(
    buffers scalars main threadIdx blockIdx blockDim gridDim warpSize dim3 int2 int3 int4 float2 float3 float4)";

// <math.h>: each with the suffixes f and l, too.
constexpr std::string_view kMath = R"(
    acos acosh acospi asin asinh asinpi atan atan2 atan2pi atanh atanpi canonicalize cbrt ceil compoundn copysign cos cosh
    cospi drem erf erfc exp exp10 exp10m1 exp2 exp2m1 expm1 fabs fadd fdim fdiv ffma finite floor fma fmax fmaximum
    fmaximum_mag fmaximum_mag_num fmaximum_num fmin fminimum fminimum_mag fminimum_mag_num fminimum_num fmod fmul frexp
    fromfp fromfpx fsqrt fsub gamma hypot ilogb isinf isnan j0 j1 jn ldexp lgamma lgamma_r llogb llrint llround log log10
    log10p1 log1p log2 log2p1 logb logp1 lrint lround modf nan nearbyint nextafter nextdown nexttoward nextup pow pow10
    pown powr remainder remquo rint rootn round roundeven rsqrt scalb scalbln scalbn significand sin sincos sinh sinpi
    sqrt tan tanh tanpi tgamma trunc ufromfp ufromfpx y0 y1 yn)";

// The rest of <math.h>, <stdlib.h>, <string.h>, and of what these include; <stdio.h>'s streams are macros.
constexpr std::string_view kDeclared = R"(
    L_ctermid L_cuserid L_tmpnam P_tmpdir a64l abort abs aligned_alloc alloca arc4random arc4random_buf arc4random_uniform assert at_quick_exit atexit atof atoi
    atol atoll bcmp bcopy be16toh be32toh be64toh bsearch bzero calloc clearenv daddl ddivl dfmal div dmull drand48
    drand48_r dsqrtl dsubl ecvt ecvt_r erand48 erand48_r errno exit explicit_bzero fcvt fcvt_r fd_mask fd_set ffs ffsl ffsll
    fpclassify free free_aligned_sized free_sized gcvt getenv getloadavg getsubopt htobe16 htobe32 htobe64 htole16 htole32
    htole64 index initstate initstate_r iscanonical iseqsig isfinite isgreater isgreaterequal isless islessequal
    islessgreater isnormal issignaling issubnormal isunordered iszero jrand48 jrand48_r l64a labs lcong48 lcong48_r ldiv
    le16toh le32toh le64toh lgammaf_r lgammal_r llabs lldiv lrand48 lrand48_r malloc math_errhandling mblen mbstowcs mbtowc
    memalignment memccpy memchr memcmp memcpy memmem memmove mempcpy memset memset_explicit mkdtemp mkstemp mkstemps mktemp
    mrand48 mrand48_r nrand48 nrand48_r offsetof on_exit posix_memalign printf pselect putenv puts qecvt qecvt_r qfcvt
    qfcvt_r qgcvt qsort quick_exit rand rand_r random random_r realloc reallocarray realpath rindex rpmatch seed48 seed48_r
    select setenv setstate setstate_r signbit signgam srand srand48 srand48_r srandom srandom_r stderr stdin stdout stpcpy
    stpncpy strcasecmp strcasecmp_l strcasestr strcat strchr strchrnul strcmp strcoll strcoll_l strcpy strcspn strdup
    strerror strerror_l strerror_r strfromd strfromf strfroml strlcat strlcpy strlen strncasecmp strncasecmp_l strncat
    strncmp strncpy strndup strnlen strpbrk strrchr strsep strsignal strspn strstr strtod strtof strtok strtok_r strtol
    strtold strtoll strtoq strtoul strtoull strtouq strxfrm strxfrm_l system u_char u_int u_long u_short uint ulong unsetenv
    ushort valloc wcstombs wctomb)";

using Words = absl::flat_hash_set<std::string_view>;

const Words* WordsOf(std::initializer_list<std::string_view> texts) {
  auto* words = new Words;
  for (std::string_view text : texts) {
    for (absl::string_view word :
         absl::StrSplit(ToAbsl(text), absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
      words->emplace(word.data(), word.size());
    }
  }
  return words;
}

// HUGE_VAL, INT32_MAX, EOF, M_PIf: macros begin with three characters without a small letter among them.
bool IsLikeMacro(std::string_view name) {
  if (name.size() < 3) return false;
  for (char c : name.substr(0, 3)) {
    if (absl::ascii_islower(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

// cudaMemAttachHost, omp_get_thread_num, ..
bool HasTakenPrefix(std::string_view name) {
  return name.starts_with("omp_") || (name.starts_with("cuda") && name.size() > 4 &&
                                      absl::ascii_isupper(static_cast<unsigned char>(name[4])));
}

bool IsTaken(std::string_view name) {
  static const Words& words = *WordsOf({kWords, kOfEmittedText, kMath, kDeclared});
  static const Words& math = *WordsOf({kMath});
  if (IsLikeMacro(name) || HasTakenPrefix(name)) return true;
  if (name.ends_with("_t") || words.contains(name)) return true;
  return (name.ends_with('f') || name.ends_with('l')) &&
         math.contains(name.substr(0, name.size() - 1));
}

}  // namespace

std::string CName(std::string_view name) {
  std::string result;
  for (char c : name) result += absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
  // Names that begin with an underscore belong to the compiler, those with nao_ to the helpers.
  if (result.empty() || absl::ascii_isdigit(static_cast<unsigned char>(result[0])) ||
      result[0] == '_' || result.starts_with("nao_")) {
    result = StrCat("x_", result);
  }
  if (IsTaken(result)) result += '_';
  return result;
}

}  // namespace polynao::codegen
