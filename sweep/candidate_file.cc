#include "sweep/candidate_file.h"

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"

namespace polynao::sweep {

absl::StatusOr<Candidate> ReadCandidate(const std::string& json_path) {
  constexpr std::string_view kSuffix = ".json";
  if (!json_path.ends_with(kSuffix)) {
    return InvalidInput(json_path, ": expected NAME.json, which stands beside NAME.bin");
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(json_path));
  ASSIGN_OR_RETURN(const cases::ProgramFile file, cases::ParseProgramFile(text, json_path));
  Candidate candidate;
  candidate.operator_case = file.operator_case;
  candidate.arguments = file.arguments;
  candidate.error = file.error;
  if (!file.error.empty()) return candidate;
  const std::string path = StrCat(json_path.substr(0, json_path.size() - kSuffix.size()), ".bin");
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  ASSIGN_OR_RETURN(candidate.program, isa::Deserialize(bytes, path));
  return candidate;
}

}  // namespace polynao::sweep
