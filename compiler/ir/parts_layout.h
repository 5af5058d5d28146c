// Parameters that a function takes in another layout than the one of their shape.
//
// `@in_parts("F", 64, 3)`: the caller lays out F, 64 rows, in three parts: for each third of a row that third of all
// rows. A card then loads a part of many filters as one piece.
#ifndef COMPILER_IR_PARTS_LAYOUT_H_
#define COMPILER_IR_PARTS_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/ir/tensor.h"

namespace polynao::ir {

struct PartsLayout {
  std::string parameter;
  int64_t rows = 1;
  int64_t parts = 1;  // divide the elements of a row
};

// What the function's attributes say.
std::vector<PartsLayout> PartsLayoutsOf(const Function& function);
// Nothing for one part.
void AddPartsLayout(Function& function, const PartsLayout& layout);

// The elements of `tensor`, of `rows` rows, in `parts` parts; its shape stays. Both divide the elements.
Tensor InParts(const Tensor& tensor, int64_t rows, int64_t parts);

}  // namespace polynao::ir

#endif  // COMPILER_IR_PARTS_LAYOUT_H_
