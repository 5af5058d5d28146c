// How undefined bytes spread: which results of an instruction depend on bytes that were never
// written.
#ifndef SIMULATOR_DEFINEDNESS_H_
#define SIMULATOR_DEFINEDNESS_H_

#include "base/interval_set.h"
#include "isa/instruction_set.h"

namespace polynao::simulator {

// Adds to `undefined` the bytes of all elements whose value reads, by `flow`, some byte that is not
// in `defined`: of a convolution with one filter missing, that channel of every pixel.
//
// Loops that move only the read side are one window of bytes for each result; those that move only
// the write side spread a result. Others are walked, unless all that they read is defined; runs of
// single elements are looked up as a whole. So the cost is one lookup for each window's runs, not
// one for each multiplication.
void SpreadUndefined(const isa::Flow& flow, const IntervalSet& defined, IntervalSet* undefined);

}  // namespace polynao::simulator

#endif  // SIMULATOR_DEFINEDNESS_H_
