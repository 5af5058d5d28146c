#include "simulator/reference/testing/random_op.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace polynao::simulator::reference {
namespace {

constexpr Op::Arg kLoaded{.is_loaded = true};

// Bytes of the memories that random programs use.
int64_t SizeOf(const std::string& memory) {
  if (memory == "gmem") return kTensorBytes;
  if (memory == "smem") return 64 << 10;
  return memory == "nmem" ? 32 << 10 : 16 << 10;
}

}  // namespace

Op OpMaker::Make(bool is_memory_core) {
  const uint64_t kind = random_.Below(100);
  if (kind < 45) return Copy(is_memory_core);
  if (kind < 57) return ScalarAccess(is_memory_core);
  if (kind < 67) return ScalarWork();
  if (kind < 77) return Sync();
  // Rare: this core misses all later barriers.
  if (kind == 77 && random_.Below(20) == 0) return {.mnemonic = "halt"};
  if (is_memory_core) return Copy(is_memory_core);
  return kind < 90 ? Vector() : Tensor();
}

Op::Arg OpMaker::Address(const std::string& memory, int64_t bytes, int64_t align) {
  const int64_t room = SizeOf(memory) - bytes;
  int64_t at = random_.From(0, room);
  // Mostly where others are too, so that bursts meet in channels and lines.
  if (random_.Below(2) == 0)
    at = std::min(room, 1024 * random_.From(0, 5) + random_.From(0, 7) * 16);
  return {at / align * align, memory == "gmem"};
}

Op OpMaker::Copy(bool is_memory_core) {
  static const std::pair<const char*, int64_t> kTypes[] = {
      {"i8", 1}, {"u8", 1}, {"f16", 2}, {"i16", 2}, {"f32", 4}, {"i32", 4}, {"i64", 8}};
  static const std::pair<const char*, const char*> kPaths[] = {
      // What a memory core can do, then the rest: to, from.
      {"smem", "gmem"}, {"gmem", "smem"}, {"smem", "smem"}, {"nmem", "gmem"},
      {"gmem", "nmem"}, {"wmem", "gmem"}, {"nmem", "smem"}, {"smem", "nmem"},
      {"wmem", "smem"}, {"nmem", "nmem"}, {"wmem", "nmem"}};
  const auto [type, size] = kTypes[random_.Below(std::size(kTypes))];
  const auto& path = kPaths[random_.Below(is_memory_core ? 3 : std::size(kPaths))];
  const std::string to = path.first, from = path.second;
  const bool has_planes = random_.Below(3) == 0;
  int64_t count = random_.OneOf({random_.From(0, 2000), random_.From(1, 300), random_.From(1, 40)});
  int64_t segments = random_.OneOf({int64_t{1}, random_.From(0, 12), random_.From(2, 5)});
  int64_t planes = has_planes ? random_.From(0, 4) : 1;
  while (count * segments * planes * size > 8192) count /= 2;
  // Without gaps, with gaps, or (only of what is read) overlapping.
  const auto stride = [&](int64_t least, bool is_read) {
    if (is_read && random_.Below(4) == 0) return random_.OneOf({int64_t{0}, least / 2});
    return least + random_.OneOf({int64_t{0}, int64_t{0}, random_.From(1, 20), least});
  };
  const int64_t to_stride = stride(count, false), from_stride = stride(count, true);
  const int64_t to_plane = stride(std::max<int64_t>(count, segments * to_stride), false);
  const int64_t from_plane =
      random_.OneOf({stride(segments * from_stride, true),
                     std::max<int64_t>(segments - 1, 0) * from_stride + count});
  const auto extent = [&](int64_t stride, int64_t plane) {
    const int64_t elements = std::max<int64_t>(planes - 1, 0) * plane +
                             std::max<int64_t>(segments - 1, 0) * stride + count;
    return elements * size;
  };
  const int64_t to_bytes = extent(to_stride, to_plane);
  const int64_t from_bytes = extent(from_stride, from_plane);
  if (std::max(to_bytes, from_bytes) > 14000) return Copy(is_memory_core);
  Op op;
  op.mnemonic = absl::StrCat(has_planes ? "memcpy3d." : "memcpy.", type, ".", to, ".", from,
                             random_.Below(3) == 0 ? "" : ".async");
  op.args = {Address(to, to_bytes, to == "wmem" ? 64 : size), Address(from, from_bytes, size)};
  // Inside one memory what is written must not overlap what is read.
  if (to == from) {
    op.args[0].value = random_.From(0, 100) * 8;
    op.args[1].value = 16384 + random_.From(0, 100) * 8;
  }
  for (int64_t value : {count, segments, to_stride, from_stride}) op.args.push_back({value});
  if (has_planes) {
    for (int64_t value : {planes, to_plane, from_plane}) op.args.push_back({value});
  }
  if (random_.Below(8) == 0) {
    op.repeat = random_.From(2, 5);
    // Addresses stay in the tensor, and aligned.
    for (Op::Arg& arg : op.args) {
      if (arg.is_gmem) arg.value /= 4 * size;
      if (arg.is_gmem) arg.value *= size;
    }
    op.step = size * random_.From(0, 400);
  }
  return op;
}

Op OpMaker::Vector() {
  // Often nothing: with vector.start = 0 that is one cycle, the shortest instruction there is.
  const int64_t count = random_.Below(3) == 0 ? 0 : 64 * random_.From(1, 12);
  const auto at = [&](int64_t third) {
    return Op::Arg{third * 8192 + 128 * random_.From(0, 12), false};
  };
  Op op;
  switch (random_.Below(7)) {
    case 0:
      op = {"add.f16", {at(0), at(1), at(2), {count}}};
      break;
    case 1:
      op = {"mul.i8", {at(0), at(1), at(2), {count}}};
      break;
    case 2:
      op = {"exp.f32", {at(0), at(1), {count}}};
      break;
    case 3:
      op = {"relu.f32", {at(0), at(1), {count}}};
      break;
    case 4:
      // A value that was loaded: nobody knows it, and it decides nothing.
      op = {"adds.f32", {at(0), at(1), kLoaded, {count}}};
      break;
    case 5:
      op = {"reduce_sum.f16",
            {at(0), at(1), {random_.From(0, 3)}, {64 * random_.From(0, 4)}, {256}}};
      break;
    default:
      op = {"row_add.f32", {at(0), at(1), at(2), {random_.From(0, 3)}, {64 * random_.From(0, 4)}}};
  }
  if (random_.Below(4) == 0) op.repeat = random_.From(2, 30);
  return op;
}

Op OpMaker::Tensor() {
  const int64_t co = 64 * random_.From(0, 2);
  const Op::Arg dst{128 * random_.From(0, 20)}, src{16384 + 64 * random_.From(0, 20)};
  const Op::Arg weights{64 * random_.From(0, 3)};
  Op op;
  if (random_.Below(2) == 0) {
    const int64_t k = random_.From(1, 64);
    op = {random_.OneOf({"matmul.i8", "matmul_acc.i8"}),
          {dst, src, weights, {random_.From(0, 4)}, {co}, {k}, {64}, {128}}};
  } else {
    const int64_t kernel = random_.From(1, 2), wo = random_.From(0, 4), ci = random_.From(1, 16);
    op = {random_.OneOf({"conv.i8", "conv_acc.i8"}),
          {dst,
           src,
           weights,
           {random_.From(0, 3)},
           {wo},
           {co},
           {wo + kernel},
           {kernel},
           {kernel},
           {ci},
           {1},
           {1},
           {1},
           {1},
           {64},
           {128}}};
  }
  if (random_.Below(4) == 0) op.repeat = random_.From(2, 10);
  return op;
}

Op OpMaker::ScalarAccess(bool is_memory_core) {
  static const std::pair<const char*, int64_t> kTypes[] = {
      {"i8", 1}, {"i16", 2}, {"i32", 4}, {"i64", 8}, {"f32", 4}};
  const auto [type, size] = kTypes[random_.Below(std::size(kTypes))];
  const std::string memory =
      is_memory_core ? random_.OneOf({"smem", "gmem"}) : random_.OneOf({"nmem", "smem", "gmem"});
  const Op::Arg address = Address(memory, 512, size);
  Op op;
  if (random_.Below(2) == 0) {
    op = {absl::StrCat("load.", type, ".", memory), {kLoaded, address}};
  } else {
    op = {absl::StrCat("store.", type, ".", memory), {address, kLoaded}};
  }
  if (random_.Below(3) == 0) {
    op.repeat = random_.From(2, 8);
    op.step = size * random_.From(0, 8);
  }
  return op;
}

Op OpMaker::ScalarWork() {
  const std::string operands = random_.OneOf({"r42, r42, 3", "r43, r42, 5", "r42, r43, -1"});
  Op op{random_.OneOf({"addi", "muli"}), {}, operands};
  if (random_.Below(2) == 0) op = {"div", {{random_.From(1, 99)}}, "r42, r42, "};
  op.repeat = random_.From(1, 30);
  return op;
}

Op OpMaker::Sync() {
  return {.mnemonic = random_.OneOf({"sync", "sync.io", "sync.move", "sync.compute"})};
}

}  // namespace polynao::simulator::reference
