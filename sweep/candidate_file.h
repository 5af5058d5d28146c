// Programs on disk as candidates of a sweep.
#ifndef SWEEP_CANDIDATE_FILE_H_
#define SWEEP_CANDIDATE_FILE_H_

#include <string>

#include "sweep/measure.h"

namespace polynao::sweep {

// NAME.json and NAME.bin, as nao compile --name --record-error writes them; a recorded error becomes the candidate's.
absl::StatusOr<Candidate> ReadCandidate(const std::string& json_path);

}  // namespace polynao::sweep

#endif  // SWEEP_CANDIDATE_FILE_H_
