// Closed forms of what single instructions of the built-in table do.
#include "isa/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/check.h"
#include "base/text.h"
#include "isa/test_operands.h"

namespace polynao::isa {
namespace {

constexpr uint64_t kSeed = 20261123;

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::vector<std::pair<std::string, int64_t>> Rows(std::string_view mnemonic,
                                                  const std::vector<int64_t>& values) {
  const Instruction* instruction = DianNao().Find(mnemonic);
  POLYNAO_CHECK(instruction != nullptr) << mnemonic;
  POLYNAO_CHECK(instruction->operands.size() == values.size()) << mnemonic;
  ActionCounts counts;
  DianNao().CountActions(*instruction, values, &counts);
  return counts.Rows();
}

TEST(Actions, ElementwiseReadsEachOperandOnce) {
  EXPECT_THAT(Rows("add.f16", {0, 1024, 2048, 192}),
              ElementsAre(Pair("element_ops.f16", 192), Pair("nmem.vector.read", 2 * 192 * 2),
                          Pair("nmem.vector.written", 192 * 2)));
  EXPECT_THAT(Rows("select.f32", {0, 1024, 2048, 4096, 64}),
              ElementsAre(Pair("element_ops.f32", 64), Pair("nmem.vector.read", 3 * 64 * 4),
                          Pair("nmem.vector.written", 64 * 4)));
}

TEST(Actions, SlowOperationsAreApart) {
  EXPECT_THAT(Rows("exp.f16", {0, 1024, 128}),
              ElementsAre(Pair("slow_ops.f16", 128), Pair("nmem.vector.read", 256),
                          Pair("nmem.vector.written", 256)));
  EXPECT_THAT(Rows("div.f32", {0, 1024, 2048, 64}),
              ElementsAre(Pair("slow_ops.f32", 64), Pair("nmem.vector.read", 512),
                          Pair("nmem.vector.written", 256)));
}

TEST(Actions, ConversionsAreOfTheWiderType) {
  EXPECT_THAT(Rows("cast.f16.f32", {0, 1024, 64}),
              ElementsAre(Pair("element_ops.f32", 64), Pair("nmem.vector.read", 256),
                          Pair("nmem.vector.written", 128)));
}

TEST(Actions, FillsAndCopiesComputeNothing) {
  EXPECT_THAT(Rows("fill.i32", {0, 7, 64}), ElementsAre(Pair("nmem.vector.written", 256)));
  // count 10, 3 segments, strides 16 and 32
  EXPECT_THAT(Rows("memcpy.i8.wmem.nmem", {0, 0, 10, 3, 16, 32}),
              ElementsAre(Pair("nmem.vector.read", 30), Pair("wmem.vector.written", 30)));
  EXPECT_THAT(Rows("memcpy.f32.gmem.nmem.async", {0, 0, 10, 3, 16, 32}),
              ElementsAre(Pair("gmem.io_dma.written", 120), Pair("nmem.io_dma.read", 120)));
  EXPECT_THAT(Rows("memcpy3d.f16.nmem.smem", {0, 0, 10, 3, 16, 32, 2, 64, 96}),
              ElementsAre(Pair("smem.move_dma.read", 120), Pair("nmem.move_dma.written", 120)));
}

TEST(Actions, RowsReadTheirVectorForEachRow) {
  EXPECT_THAT(Rows("row_add.f16", {0, 1024, 2048, 5, 64}),
              ElementsAre(Pair("element_ops.f16", 320), Pair("nmem.vector.read", 2 * 320 * 2),
                          Pair("nmem.vector.written", 640)));
  // rows, count, stride: the first store only sets the sum.
  EXPECT_THAT(Rows("reduce_sum.f32", {0, 1024, 5, 64, 96}),
              ElementsAre(Pair("element_ops.f32", 320), Pair("nmem.vector.read", 320 * 4),
                          Pair("nmem.vector.written", 20)));
}

TEST(Actions, ProductsBroadcastTheSourceToTheBanks) {
  // rows 3, co 128, k 40, pitch 64, bank 256: 64 filters work at the same time.
  EXPECT_THAT(Rows("matmul.i8", {0, 4096, 0, 3, 128, 40, 64, 256}),
              ElementsAre(Pair("macs.i8", 3 * 128 * 40), Pair("nmem.tensor.read", 3 * 2 * 40),
                          Pair("nmem.tensor.written", 3 * 128 * 4),
                          Pair("wmem.tensor.read", 3 * 128 * 40)));
  // With sums that go on, the old ones are read.
  EXPECT_THAT(Rows("matmul_acc.i16", {0, 4096, 0, 3, 128, 40, 64, 256}),
              ElementsAre(Pair("macs.i16", 3 * 128 * 40),
                          Pair("nmem.tensor.read", 3 * 2 * 40 * 2 + 3 * 128 * 4),
                          Pair("nmem.tensor.written", 3 * 128 * 4),
                          Pair("wmem.tensor.read", 3 * 128 * 40 * 2)));
}

TEST(Actions, ConvolutionsCountWindows) {
  // ho 4, wo 5, co 64, wi 7, kh = kw = 3, ci 16, strides and dilations 1, pitch 192, bank 192
  const int64_t macs = 4 * 5 * 64 * 9 * 16;
  EXPECT_THAT(
      Rows("conv.i8", {0, 8192, 0, 4, 5, 64, 7, 3, 3, 16, 1, 1, 1, 1, 192, 192}),
      ElementsAre(Pair("macs.i8", macs), Pair("nmem.tensor.read", macs / 64),
                  Pair("nmem.tensor.written", 4 * 5 * 64 * 4), Pair("wmem.tensor.read", macs)));
}

TEST(Actions, ScalarAccessesMoveTheirBytes) {
  EXPECT_THAT(Rows("load.f16.nmem", {0, 64}), ElementsAre(Pair("nmem.scalar.read", 2)));
  EXPECT_THAT(Rows("store.i64.gmem", {64, 1}), ElementsAre(Pair("gmem.scalar.written", 8)));
  EXPECT_THAT(Rows("add", {0, 1, 2}), IsEmpty());
  EXPECT_THAT(Rows("sync", {}), IsEmpty());
}

TEST(Actions, NothingIsDoneByEmptyInstructions) {
  EXPECT_THAT(Rows("add.f16", {0, 1024, 2048, 0}), IsEmpty());
  EXPECT_THAT(Rows("conv.i8", {0, 8192, 0, 0, 5, 64, 7, 3, 3, 16, 1, 1, 1, 1, 192, 192}),
              IsEmpty());
}

TEST(Actions, PortsMoveAtLeastTheFootprint) {
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(StrCat("seed ", kSeed));
  for (const Instruction& instruction : DianNao().instructions()) {
    const auto values = RandomOperands(DianNao(), instruction, 1 << 16, random);
    if (!values) continue;
    SCOPED_TRACE(StrCat(instruction.mnemonic, " ", DescribeOperands(instruction, *values)));
    ActionCounts counts;
    DianNao().CountActions(instruction, *values, &counts);
    ActionCounts::Bytes sum;
    for (const auto& space : counts.bytes) {
      for (const ActionCounts::Bytes& bytes : space) {
        sum.read += bytes.read;
        sum.written += bytes.written;
      }
    }
    int64_t read = 0, written = 0;
    for (const ByteRanges& ranges : DianNao().Footprint(instruction, *values)) {
      (ranges.is_write ? written : read) += ranges.byte_count();
    }
    // Planes of a copy may overlap; all else writes each element once.
    if (instruction.family == "memcpy3d") {
      EXPECT_GE(sum.written, written);
    } else {
      EXPECT_EQ(sum.written, written);
    }
    // The windows of a convolution overlap in its footprint.
    if (instruction.family.starts_with("conv")) continue;
    EXPECT_GE(sum.read, read);
  }
}

}  // namespace
}  // namespace polynao::isa
