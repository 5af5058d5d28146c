// Parts that compute the same in another way, so that more of it fits into the tiles of other stages.
#ifndef COMPILER_POLY_FUSE_PART_VARIANTS_H_
#define COMPILER_POLY_FUSE_PART_VARIANTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// Returns true if another array of the buffer's size can be allocated around a part: the size loads nothing, which may
// have changed since.
bool HasLastingSize(ir::Buffer buffer);

// { S[i] -> A[a] } of what some statements, at least one of which reads the buffer, read of it.
isl::union_map ReadsOf(const std::vector<const Statement*>& statements, ir::Buffer buffer);

// The part with one copy of the stage's statements and its array, which has a lasting size, for each set of readers: of
// the instances that store what these read, and those between them. Throws isl::exception.
Scop WithCopies(const Scop& scop, const Stage& stage,
                const std::vector<std::vector<const Statement*>>& readers);

// Statements that store each element once, in an array that lives on and that no other statement stores, and that read
// of it only the element that they store: by name.
std::vector<std::string> UpdatesIn(const Scop& scop);

// The part with a second form of one of UpdatesIn. It stores the values in an array of its own, which is what others
// read, so that tiles may compute what they need of it. The update itself, which reads what was there before, can run
// behind them all.
//
//   A[i] = f(A[i])                                           N[i] = f(A[i])
//                                                   -->      A[i] = f(A[i])      nothing waits for this
//   C[i] = A[i] + A[i + 1]                                   C[i] = N[i] + N[i + 1]
//
// Nothing if no statement reads the new values, one may read new and old ones, or the array has no lasting size. Throws
// isl::exception.
std::optional<Scop> WithLateUpdate(const Scop& scop, const std::string& update);

// Of the statement `update` in such a part: its instances are none of the program.
std::string SecondForm(std::string_view update);
// Returns true if the statement is one, or a copy of one.
bool IsSecondForm(const Statement& statement);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_PART_VARIANTS_H_
