#include "compiler/poly/order/canonical.h"

#include <isl/schedule.h>

#include <string>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/poly/isl/tree_text.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/order/schedule.h"
#include "gtest/gtest.h"

namespace polynao::poly {
namespace {

struct Part {
  explicit Part(const std::string& text)
      : function(*ir::ParseFunction(text)),
        extraction(*Extract(function, {})),
        scop(extraction.scops.at(0)),
        dependences(ComputeDependences(scop)) {}

  isl::schedule Read(const std::string& text) const {
    isl_schedule* read = isl_schedule_read_from_str(scop.isl->get(), text.c_str());
    EXPECT_NE(read, nullptr) << text;
    return isl::manage(read);
  }
  // Expects the form of `schedule` to be `expected`, both as isl reads them.
  void Expect(const std::string& schedule, const std::string& expected) const {
    const isl::schedule canonical = Canonical(scop, dependences, Read(schedule));
    ExpectEqual(canonical, Read(expected));
    EXPECT_EQ(FindViolation(scop, dependences, canonical), "");
    ExpectEqual(Canonical(scop, dependences, canonical), canonical);
  }
  // Texts may differ in the order of a union.
  static void ExpectEqual(const isl::schedule& a, const isl::schedule& b) {
    EXPECT_EQ(isl_schedule_plain_is_equal(a.get(), b.get()), isl_bool_true) << TreeText(a) << "\n"
                                                                            << TreeText(b);
  }

  ir::Function function;
  Extraction extraction;
  const Scop& scop;
  Dependences dependences;
};

// S2 reads what S0 and S1 store; S3 is by itself.
constexpr char kFour[] = R"(
func f(A: f32[8], B: f32[8], C: f32[8], D: f32[8]) {
  for (i, 0, 8) { A[i] = 1.0 }
  for (i, 0, 8) { B[i] = 2.0 }
  for (i, 0, 8) { C[i] = A[i] + B[i] }
  for (i, 0, 8) { D[i] = 3.0 }
})";
constexpr char kDomain[] =
    "{ domain: \"{ S0[i] : 0 <= i <= 7; S1[i] : 0 <= i <= 7; S2[i] : 0 <= i <= 7; S3[i] : 0 <= i "
    "<= "
    "7 }\", child: { ";

std::string Filter(int statement) {
  const std::string name = StrCat("S", statement);
  return StrCat("{ filter: \"{ ", name, "[i] }\", child: { schedule: \"[{ ", name,
                "[i] -> [(i)] }]\", permutable: 1, coincident: [ 1 ] } }");
}

TEST(CanonicalTest, PartsStandInTheOrderOfTheProgram) {
  const Part part(kFour);
  part.Expect(StrCat(kDomain, "sequence: [ ", Filter(3), ", ", Filter(1), ", ", Filter(0), ", ",
                     Filter(2), " ] } }"),
              StrCat(kDomain, "sequence: [ ", Filter(0), ", ", Filter(1), ", ", Filter(2), ", ",
                     Filter(3), " ] } }"));
  part.Expect(
      StrCat(kDomain, "set: [ ", Filter(3), ", { filter: \"{ S0[i]; S1[i]; S2[i] }\", ",
             "child: { sequence: [ ", Filter(1), ", ", Filter(0), ", ", Filter(2), " ] } } ] } }"),
      StrCat(kDomain, "set: [ { filter: \"{ S0[i]; S1[i]; S2[i] }\", child: { sequence: [ ",
             Filter(0), ", ", Filter(1), ", ", Filter(2), " ] } }, ", Filter(3), " ] } }"));
}

TEST(CanonicalTest, SequencesTakeInWhatIsInside) {
  const Part part(kFour);
  const std::string flat = StrCat(kDomain, "sequence: [ ", Filter(0), ", ", Filter(1), ", ",
                                  Filter(2), ", ", Filter(3), " ] } }");
  part.Expect(StrCat(kDomain, "sequence: [ { filter: \"{ S1[i]; S0[i] }\", child: { set: [ ",
                     Filter(1), ", ", Filter(0), " ] } }, ", Filter(2), ", ", Filter(3), " ] } }"),
              flat);
  part.Expect(StrCat(kDomain,
                     "sequence: [ { filter: \"{ S1[i]; S0[i]; S3[i] }\", child: ", "{ sequence: [ ",
                     Filter(3), ", { filter: \"{ S1[i]; S0[i] }\", child: ", "{ set: [ ", Filter(1),
                     ", ", Filter(0), " ] } } ] } }, ", Filter(2), " ] } }"),
              flat);
}

// What a loop around has put in order already does not matter inside of it: S1[i] reads what S0[i - 1] stores.
TEST(CanonicalTest, OnlyPairsOfOneIterationWait) {
  const Part part(R"(
func f(A: f32[9], B: f32[8]) {
  for (i, 0, 8) { A[i + 1] = 1.0  B[i] = A[i] }
})");
  const std::string domain =
      "{ domain: \"{ S0[i] : 0 <= i <= 7; S1[i] : 0 <= i <= 7 }\", child: { schedule: \"[{ S0[i] "
      "-> "
      "[(i)]; S1[i] -> [(i)] }]\", child: { sequence: [ ";
  part.Expect(StrCat(domain, "{ filter: \"{ S1[i] }\" }, { filter: \"{ S0[i] }\" } ] } } }"),
              StrCat(domain, "{ filter: \"{ S0[i] }\" }, { filter: \"{ S1[i] }\" } ] } } }"));
  // Here S1[i] reads what S0[i + 1] overwrites, at the same time.
  const Part shifted(R"(
func f(A: f32[9], B: f32[8]) {
  for (i, 0, 8) { A[i] = 1.0  B[i] = A[i + 1] }
})");
  const std::string tree =
      "{ domain: \"{ S0[i] : 0 <= i <= 7; S1[i] : 0 <= i <= 7 }\", child: { schedule: \"[{ S0[i] "
      "-> "
      "[(i)]; S1[i] -> [(i + 1)] }]\", child: { sequence: [ { filter: \"{ S1[i] }\" }, "
      "{ filter: \"{ S0[i] }\" } ] } } }";
  shifted.Expect(tree, tree);
}

TEST(CanonicalTest, OfWhatIslComputes) {
  const Part part(kFour);
  for (const Strategy strategy : {Strategy::kMin, Strategy::kSmart, Strategy::kMax}) {
    const isl::schedule schedule = ComputeSchedule(part.scop, part.dependences, strategy);
    Part::ExpectEqual(Canonical(part.scop, part.dependences, schedule), schedule);
  }
}

}  // namespace
}  // namespace polynao::poly
