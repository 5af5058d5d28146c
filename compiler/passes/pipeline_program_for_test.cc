#include "compiler/passes/pipeline_program_for_test.h"

#include <algorithm>
#include <random>
#include <vector>

#include "base/text.h"

namespace polynao {
namespace {

class Writer {
 public:
  explicit Writer(uint64_t seed) : engine_(seed) {}

  std::string Program(std::string_view iterations) {
    copies_ = 2 + Below(2);
    let_ = OneIn(2);
    const int min = Below(4);
    Body();
    std::string text = StrCat(
        "func f(A: f16[4000] in, B: f16[4000] in, C: f16[4000] out, E: f16[4000] out, n: i32) {\n"
        "thread (cid, 2) { allocate S: f16[2000] @smem allocate D: f16[2000] @smem\n"
        "thread (tid, 2) {\n"
        // Cores keep to their own half of SMEM.
        "memcpy.f16.smem.gmem.async(&S[tid * 1000], &B[cid * 2000 + tid * 1000], 1000, 1, 0, 0)\n"
        "memcpy.f16.smem.smem.async(&D[tid * 1000], &S[tid * 1000], 1000, 1, 0, 0)\n"
        "for (t, ",
        min, ", ", iterations, ") {\n");
    for (const std::string& name : outer_) StrAppend(&text, Allocation(name));
    if (let_) {
      StrAppend(&text, "let own: i32 = tid * 1000 + t * 64\nlet at: i32 = cid * 2000 + own\n");
    }
    StrAppend(&text, body_, std::string(braces_ + outer_.size(), '}'), "}\n");
    return StrCat(
        text,
        "memcpy.f16.gmem.smem.async(&E[cid * 2000 + tid * 1000], &D[tid * 1000], 1000, 1, 0, 0)\n"
        "} } }\n");
  }

 private:
  int Below(int n) { return static_cast<int>(engine_() % n); }
  bool OneIn(int n) { return Below(n) == 0; }

  // The core's place in the tensors of GMEM and SMEM.
  std::string At() const { return let_ ? "at" : "cid * 2000 + tid * 1000 + t * 64"; }
  std::string Own() const { return let_ ? "own" : "tid * 1000 + t * 64"; }

  std::string Allocation(const std::string& name) const {
    return StrCat("pragma \"double_buffer\" (", copies_, ") { allocate ", name,
                  ": f16[64] @nmem\n");
  }

  // Allocates `name` unless it is allocated, outside or here.
  void Need(const std::string& name) {
    if (Has(name)) return;
    tiles_.push_back(name);
    if (OneIn(2)) {
      outer_.push_back(name);
    } else {
      StrAppend(&body_, Allocation(name));
      ++braces_;
    }
  }

  bool Has(const std::string& name) const {
    return std::find(tiles_.begin(), tiles_.end(), name) != tiles_.end();
  }

  // A statement, sometimes under a condition.
  void Add(const std::string& statement, bool may_be_guarded) {
    static constexpr const char* kGuards[] = {"t % 2 == 0", "t < 5", "t + tid < 6 && 0 < t",
                                              "n < 3"};
    if (may_be_guarded && OneIn(4)) {
      StrAppend(&body_, "if (", kGuards[Below(4)], ") { ", statement, " }\n");
    } else {
      StrAppend(&body_, statement, "\n");
    }
  }

  void Load(const std::string& tile, bool from_smem) {
    const std::string from = StrCat(from_smem ? "smem" : "gmem", ".async(&", tile, "[");
    const std::string source = from_smem ? StrCat("&S[", Own()) : StrCat("&A[", At());
    if (OneIn(4)) {
      Add(StrCat("for (h, 0, 2) { memcpy.f16.nmem.", from, "h * 32], ", source,
                 " + h * 32], 32, 1, 0, 0) }"),
          false);
    } else {
      Add(StrCat("memcpy.f16.nmem.", from, "0], ", source, "], 64, 1, 0, 0)"), false);
    }
  }

  void Store(const std::string& tile, bool to_smem) {
    const std::string count = OneIn(3) ? "select(t == 3, i64(17), i64(64))" : "64";
    Add(StrCat("memcpy.f16.",
               to_smem ? StrCat("smem.nmem.async(&D[", Own()) : StrCat("gmem.nmem.async(&C[", At()),
               "], &", tile, "[0], ", count, ", 1, 0, 0)"),
        true);
  }

  void Body() {
    if (OneIn(2)) {
      Need("P");
      Add(OneIn(2) ? "if (t % 3 == 1) { fill.f16(&P[0], f16(0.5), 64) }"
                   : "fill.f16(&P[0], f16(0.5), 64)",
          false);
      if (OneIn(4)) {
        StrAppend(&body_, "if (t % 3 == 1) { adds.f16(&P[0], &P[0], f16(1.5), 64) }\n");
      }
      StrAppend(&body_, "memcpy.f16.nmem.gmem.async(&P[8], &A[", At(),
                " + 8], select(t % 3 == 1, i64(40), i64(56)), 1, 0, 0)\n");
      // Sometimes one tile comes by both queues.
      StrAppend(&body_,
                OneIn(4) ? StrCat("memcpy.f16.nmem.smem.async(&P[0], &S[", Own())
                         : StrCat("memcpy.f16.nmem.gmem.async(&P[0], &A[", At()),
                "], 8, 1, 0, 0)\n");
    }
    if (tiles_.empty() || OneIn(2)) {
      Need("X");
      Load("X", OneIn(3));
    }
    if (OneIn(3)) {
      Need("W");
      Load("W", OneIn(2));
    }
    if (OneIn(4)) {
      Need("Z");
      StrAppend(&body_, "if (1 < t) { memcpy.f16.nmem.gmem.async(&Z[0], &A[", At(),
                "], 64, 1, 0, 0) } else { fill.f16(&Z[0], f16(t), 64) }\n");
    }
    const int steps = 1 + Below(4);
    for (int i = 0; i < steps; ++i) {
      const std::string lhs = tiles_[Below(static_cast<int>(tiles_.size()))];
      const std::string rhs = tiles_[Below(static_cast<int>(tiles_.size()))];
      std::string to = i + 1 == steps && !OneIn(3) ? "Y" : StrCat("T", Below(2));
      if (OneIn(4)) to = rhs;
      const bool is_new = !Has(to);
      Need(to);
      const std::string operands = StrCat("(&", to, "[0], &", lhs, "[0], ");
      Add(OneIn(2)   ? StrCat("add.f16", operands, "&", rhs, "[0], 64)")
          : OneIn(2) ? StrCat("relu.f16", operands, "64)")
                     : StrCat("adds.f16", operands, "f16(t), 64)"),
          !is_new);
      last_ = to;
    }
    Store(last_, OneIn(3));
    if (OneIn(3)) Store(tiles_[Below(static_cast<int>(tiles_.size()))], OneIn(2));
  }

  std::mt19937_64 engine_;
  int copies_ = 2;
  bool let_ = false;
  std::vector<std::string> outer_;  // allocated at the start
  std::vector<std::string> tiles_;  // with a value
  size_t braces_ = 0;
  std::string last_;
  std::string body_;
};

}  // namespace

std::string RandomPipelineProgram(uint64_t seed, std::string_view iterations) {
  return Writer(seed).Program(iterations);
}

}  // namespace polynao
