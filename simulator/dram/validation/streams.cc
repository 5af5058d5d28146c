#include "simulator/dram/validation/streams.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "simulator/dram/channel.h"

namespace polynao::simulator {
namespace {

constexpr int64_t kBytes = 64;             // of a request
constexpr int64_t kRunBytes = 512;         // that a stream of streams_* reads or writes at a time
constexpr int64_t kAddresses = 1LL << 33;  // strides wrap there

// Output `index` of splitmix64 with seed 1.
uint64_t SplitMix(int64_t index) {
  uint64_t z = 1 + (static_cast<uint64_t>(index) + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

DramRequest At(int64_t address, bool is_write = false) {
  return {.address = address, .bytes = kBytes, .is_write = is_write};
}

DramRequest Random(int64_t i, bool is_write = false) {
  return At(static_cast<int64_t>(SplitMix(i) >> 38) * kBytes, is_write);
}

// Pieces of `piece` bytes are read, and each is then written `offset` bytes further on.
DramRequest Copy(int64_t piece, int64_t offset, int64_t i) {
  const int64_t n = piece / kBytes, block = i / (2 * n), j = i % (2 * n);
  return j < n ? At(piece * block + kBytes * j)
               : At(piece * block + kBytes * (j - n) + offset, true);
}

// Streams take turns of kRunBytes; of every `writes_of` streams (0: of none) the last one writes.
DramRequest Streams(int64_t streams, int64_t distance, int64_t writes_of, int64_t i) {
  const int64_t per_run = kRunBytes / kBytes;
  const int64_t run = i / per_run, stream = run % streams, turn = run / streams;
  return At(distance * stream + kRunBytes * turn + kBytes * (i % per_run),
            writes_of > 0 && stream % writes_of == writes_of - 1);
}

}  // namespace

absl::StatusOr<Stream> MakeStream(std::string_view pattern, const std::string& parameters) {
  std::map<std::string, int64_t> given;
  const std::string place = StrCat("stream ", pattern, " \"", parameters, "\"");
  for (const absl::string_view word : absl::StrSplit(parameters, ' ', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(word, '=');
    int64_t value = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &value) || value < 1) {
      return InvalidInput(place, ": expected NAME=POSITIVE, found \"", ToStd(word), "\"");
    }
    given[parts[0]] = value;
  }
  std::string missing;
  const auto take = [&](const char* name) -> int64_t {
    const auto found = given.find(name);
    if (found == given.end()) {
      missing = name;
      return 1;
    }
    const int64_t value = found->second;
    given.erase(found);
    return value;
  };
  Stream stream;
  if (pattern == "seq_read" || pattern == "seq_write") {
    const bool is_write = pattern == "seq_write";
    stream.request = [=](int64_t i) { return At(kBytes * i, is_write); };
  } else if (pattern == "copy") {
    const int64_t piece = take("piece"), offset = take("b_offset");
    stream.request = [=](int64_t i) { return Copy(piece, offset, i); };
  } else if (pattern == "rand_read" || pattern == "rand_write" || pattern == "rand_2r1w" ||
             pattern == "light_read") {
    take("span");
    take("seed");
    const bool all_write = pattern == "rand_write", mixed = pattern == "rand_2r1w";
    stream.request = [=](int64_t i) {
      return Random(i, all_write || (mixed && (SplitMix(i) & 0xffff) % 3 == 0));
    };
    if (pattern == "light_read") stream.gap = take("gap");
  } else if (pattern == "stride_read") {
    const int64_t stride = take("stride");
    stream.request = [=](int64_t i) { return At(stride * i % kAddresses); };
  } else if (pattern == "streams_read" || pattern == "streams_read_skew" ||
             pattern == "streams_mixed") {
    const int64_t streams = take("streams"), distance = take("distance");
    const int64_t writes_of = pattern == "streams_mixed" ? 4 : 0;
    stream.request = [=](int64_t i) { return Streams(streams, distance, writes_of, i); };
  } else {
    return InvalidInput(place, ": there is no such pattern");
  }
  if (!missing.empty()) return InvalidInput(place, ": expected ", missing, "=POSITIVE");
  if (!given.empty()) return InvalidInput(place, ": there is no parameter ", given.begin()->first);
  return stream;
}

StreamResult RunStream(const DramTiming& timing, const Stream& stream, int64_t requests) {
  DramChannel channel(timing);
  std::vector<DramCommand> commands;
  channel.set_trace(&commands);
  std::vector<int64_t> given(static_cast<size_t>(requests));
  StreamResult result;
  int64_t columns = 0, reads = 0, latency = 0;
  const auto count = [&] {
    for (const DramCommand& command : commands) {
      if (command.kind != DramCommand::Kind::kRead && command.kind != DramCommand::Kind::kWrite) {
        continue;
      }
      if (++columns == requests * 99 / 100) result.clocks = command.clock;
    }
    commands.clear();
    for (const DramCompletion& completion : channel.completions()) {
      if (completion.id < 0) continue;
      latency += completion.clock - given[static_cast<size_t>(completion.id)];
      ++reads;
    }
    channel.completions().clear();
  };
  for (int64_t i = 0; i < requests; ++i) {
    DramRequest request = stream.request(i);
    request.id = request.is_write ? -1 : i;
    request.clock = std::max(channel.clock(), stream.gap * i);
    given[static_cast<size_t>(i)] = request.clock;
    channel.Push(request);
    channel.RunUntilEntered(std::numeric_limits<int64_t>::max());
    count();
  }
  while (!channel.idle()) {
    channel.Run(channel.clock() + 1000);
    count();
  }
  result.mean_read_latency =
      reads == 0 ? 0 : static_cast<double>(latency) / static_cast<double>(reads);
  result.counters = channel.counters();
  return result;
}

}  // namespace polynao::simulator
