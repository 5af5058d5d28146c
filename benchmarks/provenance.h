// Where and when a result was taken.
#ifndef BENCHMARKS_PROVENANCE_H_
#define BENCHMARKS_PROVENANCE_H_

#include <string>

namespace polynao::benchmarks {

// "Intel(R) Xeon(R) Processor".
std::string ProcessorName();

// Now, as ISO 8601 in UTC: "2026-11-20T20:55:18Z".
std::string Date();

// The checkout's name in git ("fababb5", "fababb5-dirty"), or nothing. `nao` says where the checkout is.
std::string Commit();

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_PROVENANCE_H_
