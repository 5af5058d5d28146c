#include "isa/program.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/assertions.h"
#include "compiler/ir/text.h"

namespace polynao::isa {
namespace {

// Layout, little-endian: magic, u32 version, u64 size of the whole file, u64 checksum of what follows; then name,
// parameters of the machine, assertions, parameters, code and labels. A string is a u32 length and its bytes.
constexpr std::string_view kMagic = "NAOP";
constexpr uint32_t kVersion = 6;

// FNV-1a, 64 bits: each step is a bijection of the state, so that no change of one byte goes
// unnoticed.
uint64_t Checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

template <typename T>
void Put(std::string* out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

void PutString(std::string* out, std::string_view text) {
  Put(out, static_cast<uint32_t>(text.size()));
  out->append(text);
}

class Reader {
 public:
  Reader(std::string_view bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  template <typename... Args>
  absl::Status Error(const Args&... args) const {
    return InvalidInput(file_, ": byte ", at_, ": ", args...);
  }

  template <typename T>
  absl::StatusOr<T> Take(std::string_view what) {
    if (bytes_.size() - at_ < sizeof(T)) {
      return Error("expected ", sizeof(T), " bytes of ", what, ", found the end of the file");
    }
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  // A number below `limit`.
  template <typename T>
  absl::StatusOr<T> TakeBelow(T limit, std::string_view what) {
    ASSIGN_OR_RETURN(const T value, Take<T>(what));
    if (value < limit) return value;
    at_ -= sizeof(T);
    return Error("expected ", what, " below ", static_cast<int64_t>(limit), ", found ",
                 static_cast<int64_t>(value));
  }

  // How many items of at least `item_bytes` follow; the file must be long enough for them.
  template <typename T>
  absl::StatusOr<size_t> TakeCount(size_t item_bytes, std::string_view what) {
    ASSIGN_OR_RETURN(const T count, Take<T>(what));
    if (count <= (bytes_.size() - at_) / item_bytes) return static_cast<size_t>(count);
    at_ -= sizeof(T);
    return Error(uint64_t{count}, " ", what, " do not fit the ", bytes_.size() - at_ - sizeof(T),
                 " bytes that are left");
  }

  absl::StatusOr<std::string> TakeString(std::string_view what) {
    ASSIGN_OR_RETURN(const size_t size, TakeCount<uint32_t>(1, what));
    std::string text(bytes_.substr(at_, size));
    at_ += size;
    return text;
  }

  size_t at() const { return at_; }

 private:
  const std::string_view bytes_;
  const std::string_view file_;
  size_t at_ = 0;
};

absl::StatusOr<ProgramParam> TakeParam(Reader& reader) {
  ProgramParam param;
  ASSIGN_OR_RETURN(param.name, reader.TakeString("bytes of a parameter's name"));
  ASSIGN_OR_RETURN(const uint8_t is_tensor, reader.TakeBelow<uint8_t>(2, "a flag"));
  ASSIGN_OR_RETURN(const uint8_t type, reader.TakeBelow<uint8_t>(ir::kTypeCount, "a type"));
  ASSIGN_OR_RETURN(const uint8_t access, reader.TakeBelow<uint8_t>(3, "an access"));
  ASSIGN_OR_RETURN(const uint8_t any_shape, reader.TakeBelow<uint8_t>(2, "a flag"));
  ASSIGN_OR_RETURN(const uint8_t is_temporary, reader.TakeBelow<uint8_t>(2, "a flag"));
  ASSIGN_OR_RETURN(const size_t rank, reader.TakeCount<uint32_t>(sizeof(int64_t), "extents"));
  param.is_tensor = is_tensor != 0;
  param.type = static_cast<ir::Type>(type);
  param.access = static_cast<ir::Access>(access);
  param.any_shape = any_shape != 0;
  param.is_temporary = is_temporary != 0;
  ASSIGN_OR_RETURN(param.rows, reader.Take<int64_t>("rows"));
  ASSIGN_OR_RETURN(param.parts, reader.Take<int64_t>("parts"));
  for (size_t d = 0; d < rank; ++d) {
    ASSIGN_OR_RETURN(const int64_t extent, reader.Take<int64_t>("an extent"));
    if (extent < 0) return reader.Error("expected an extent of at least 0, found ", extent);
    param.shape.push_back(extent);
  }
  const bool has_shape = rank > 0 || param.any_shape;
  if ((!param.is_tensor && has_shape) || (param.any_shape && rank > 0)) {
    return reader.Error("parameter '", param.name, "' has a shape that contradicts its kind");
  }
  if (param.is_temporary &&
      (!param.is_tensor || param.any_shape || param.access != ir::Access::kOut)) {
    return reader.Error("temporary '", param.name, "' is no tensor of a shape that is written");
  }
  if ((param.parts != 1 || param.rows != 1) && !HasValidParts(param)) {
    return reader.Error("parameter '", param.name, "' has no ", param.rows, " rows of ",
                        param.parts, " parts");
  }
  if (!param.is_tensor && param.access != ir::Access::kIn) {
    return reader.Error("parameter '", param.name, "' is a scalar, which a program cannot write");
  }
  return param;
}

// The value of a scalar whose bits a register holds.
ir::Argument ScalarOf(ir::Type type, int64_t bits) {
  switch (type) {
    case ir::Type::kF16:
      return ir::Argument::Float(ir::HalfToFloat(static_cast<uint16_t>(bits)));
    case ir::Type::kBF16:
      return ir::Argument::Float(ir::BfloatToFloat(static_cast<uint16_t>(bits)));
    case ir::Type::kF32:
      return ir::Argument::Float(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case ir::Type::kF64:
      return ir::Argument::Float(std::bit_cast<double>(bits));
    default:
      return ir::Argument::Int(bits);
  }
}

}  // namespace

absl::Status CheckAssertions(const Program& program, absl::Span<const int64_t> values) {
  if (program.assertions.empty()) return absl::OkStatus();
  // A function of the same scalars.
  std::vector<std::string> scalars;
  std::vector<ir::Argument> arguments;
  for (size_t i = 0; i < program.params.size() && i < values.size(); ++i) {
    const ProgramParam& param = program.params[i];
    if (param.is_tensor) continue;
    scalars.push_back(StrCat(param.name, ": ", ir::TypeName(param.type)));
    arguments.push_back(ScalarOf(param.type, values[i]));
  }
  const std::string text = StrCat("@assert(", absl::StrJoin(program.assertions, ", "), ") func f(",
                                  absl::StrJoin(scalars, ", "), ") { }");
  const absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  absl::Status status = function.status();
  if (function.ok()) status = ir::CheckAssertions(*function, arguments);
  if (status.ok()) return status;
  std::string_view message = ToStd(status.message());
  if (message.starts_with("function 'f': ")) message.remove_prefix(14);
  return InvalidInput("program ", program.name, ": ", message);
}

bool HasValidParts(const ProgramParam& param) {
  if (param.parts == 1) return param.rows == 1;
  if (!param.is_tensor || param.any_shape || param.access != ir::Access::kIn) return false;
  if (param.rows < 1 || param.parts < 2) return false;
  // Quotients do not overflow.
  int64_t elements = 1;
  for (const int64_t extent : param.shape) {
    if (extent > 0 && elements > INT64_MAX / extent) return false;
    elements *= extent;
  }
  return elements > 0 && elements % param.rows == 0 && elements / param.rows % param.parts == 0;
}

std::string Serialize(const Program& program) {
  std::string body;
  PutString(&body, program.name);
  Put(&body, static_cast<uint32_t>(program.machine.size()));
  for (const auto& [name, value] : program.machine) {
    PutString(&body, name);
    PutString(&body, value);
  }
  Put(&body, static_cast<uint32_t>(program.assertions.size()));
  for (const std::string& assertion : program.assertions) PutString(&body, assertion);
  Put(&body, static_cast<uint8_t>(program.is_reassociated));
  Put(&body, static_cast<uint32_t>(program.params.size()));
  for (const ProgramParam& param : program.params) {
    PutString(&body, param.name);
    Put(&body, static_cast<uint8_t>(param.is_tensor));
    Put(&body, static_cast<uint8_t>(param.type));
    Put(&body, static_cast<uint8_t>(param.access));
    Put(&body, static_cast<uint8_t>(param.any_shape));
    Put(&body, static_cast<uint8_t>(param.is_temporary));
    Put(&body, static_cast<uint32_t>(param.shape.size()));
    Put(&body, param.rows);
    Put(&body, param.parts);
    for (const int64_t extent : param.shape) Put(&body, extent);
  }
  Put(&body, static_cast<uint64_t>(program.code.size()));
  for (const Word& word : program.code) {
    Put(&body, word.low);
    Put(&body, word.high);
  }
  Put(&body, static_cast<uint32_t>(program.labels.size()));
  for (const auto& [pc, name] : program.labels) {
    Put(&body, pc);
    PutString(&body, name);
  }
  return WithProgramHeader(body);
}

std::string WithProgramHeader(std::string_view body) {
  std::string bytes(kMagic);
  Put(&bytes, kVersion);
  Put(&bytes, static_cast<uint64_t>(kProgramHeaderBytes + body.size()));
  Put(&bytes, Checksum(body));
  return StrCat(bytes, body);
}

absl::StatusOr<Program> Deserialize(std::string_view bytes, std::string_view file) {
  Reader reader(bytes, file);
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return reader.Error("expected a program, which starts with ", kMagic);
  }
  RETURN_IF_ERROR(reader.Take<uint32_t>("magic").status());
  ASSIGN_OR_RETURN(const uint32_t version, reader.Take<uint32_t>("version"));
  if (version != kVersion) {
    return reader.Error("expected a program of version ", kVersion, ", found version ", version);
  }
  ASSIGN_OR_RETURN(const uint64_t size, reader.Take<uint64_t>("size"));
  if (size != bytes.size()) {
    return reader.Error("expected a file of ", size, " bytes, found ", bytes.size());
  }
  ASSIGN_OR_RETURN(const uint64_t checksum, reader.Take<uint64_t>("checksum"));
  if (checksum != Checksum(bytes.substr(kProgramHeaderBytes))) {
    return reader.Error("the checksum does not match: the file is damaged");
  }

  // The checksum says nothing about who wrote the file, so the rest is checked as well.
  Program program;
  ASSIGN_OR_RETURN(program.name, reader.TakeString("bytes of the program's name"));
  ASSIGN_OR_RETURN(const size_t values, reader.TakeCount<uint32_t>(8, "parameters of the machine"));
  for (size_t v = 0; v < values; ++v) {
    ASSIGN_OR_RETURN(const std::string name, reader.TakeString("bytes of a parameter's name"));
    if (!program.machine.empty() && name <= program.machine.rbegin()->first) {
      return reader.Error("expected a parameter after ", program.machine.rbegin()->first,
                          ", found ", name);
    }
    ASSIGN_OR_RETURN(program.machine[name], reader.TakeString("bytes of a parameter's value"));
  }
  ASSIGN_OR_RETURN(const size_t assertions, reader.TakeCount<uint32_t>(4, "assertions"));
  for (size_t a = 0; a < assertions; ++a) {
    ASSIGN_OR_RETURN(std::string assertion, reader.TakeString("bytes of an assertion"));
    program.assertions.push_back(std::move(assertion));
  }
  ASSIGN_OR_RETURN(const uint8_t is_reassociated, reader.TakeBelow<uint8_t>(2, "a flag"));
  program.is_reassociated = is_reassociated != 0;
  ASSIGN_OR_RETURN(const size_t params, reader.TakeCount<uint32_t>(12, "parameters"));
  for (size_t p = 0; p < params; ++p) {
    ASSIGN_OR_RETURN(ProgramParam param, TakeParam(reader));
    program.params.push_back(std::move(param));
  }
  ASSIGN_OR_RETURN(const size_t words, reader.TakeCount<uint64_t>(sizeof(Word), "instructions"));
  program.code.reserve(words);
  for (size_t w = 0; w < words; ++w) {
    Word word;
    ASSIGN_OR_RETURN(word.low, reader.Take<uint64_t>("an instruction"));
    ASSIGN_OR_RETURN(word.high, reader.Take<uint64_t>("an instruction"));
    program.code.push_back(word);
  }
  ASSIGN_OR_RETURN(const size_t labels, reader.TakeCount<uint32_t>(12, "labels"));
  for (size_t l = 0; l < labels; ++l) {
    ASSIGN_OR_RETURN(const int64_t pc, reader.Take<int64_t>("a label's place"));
    const int64_t least = program.labels.empty() ? 0 : program.labels.rbegin()->first + 1;
    if (pc < least || pc > static_cast<int64_t>(words)) {
      return reader.Error("expected a label from ", least, " to ", words, ", found ", pc);
    }
    ASSIGN_OR_RETURN(program.labels[pc], reader.TakeString("bytes of a label"));
  }
  if (reader.at() != bytes.size()) {
    return reader.Error("expected the end of the file, found ", bytes.size() - reader.at(),
                        " more bytes");
  }
  return program;
}

}  // namespace polynao::isa
