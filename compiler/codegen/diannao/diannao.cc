#include "compiler/codegen/diannao/diannao.h"

#include "base/status.h"
#include "compiler/codegen/diannao/allocate.h"
#include "compiler/codegen/diannao/code.h"
#include "compiler/codegen/diannao/generate.h"
#include "compiler/codegen/diannao/motion.h"
#include "compiler/codegen/diannao/value_numbering.h"
#include "compiler/ir/assertions.h"
#include "compiler/ir/float_rules.h"
#include "compiler/ir/text.h"

namespace polynao {
namespace {

using diannao::Code;

// Whether the last instruction of a block jumps to the next block, and can be left out.
bool FallsThrough(const Code& code, size_t block) {
  const diannao::Op& last = code.blocks[block].ops.back();
  return last.instruction == code.set->Find("jump") &&
         last.fields[0] == static_cast<int64_t>(block) + 1;
}

// Lays the blocks out one after the other.
absl::Status Encode(Code& code, isa::Program& program) {
  std::vector<int64_t> begin;
  int64_t size = 0;
  for (size_t b = 0; b < code.blocks.size(); ++b) {
    begin.push_back(size);
    if (!code.blocks[b].label.empty()) program.labels.try_emplace(size, code.blocks[b].label);
    size += static_cast<int64_t>(code.blocks[b].ops.size()) - FallsThrough(code, b);
  }
  for (size_t b = 0; b < code.blocks.size(); ++b) {
    std::vector<diannao::Op>& ops = code.blocks[b].ops;
    if (FallsThrough(code, b)) ops.pop_back();
    for (diannao::Op& op : ops) {
      if (int64_t* target = diannao::BranchTarget(op)) *target = begin[*target];
      ASSIGN_OR_RETURN(isa::Word word, code.set->Encode(*op.instruction, op.fields));
      program.code.push_back(word);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<isa::Program> GenerateDianNao(const ir::Function& function, const Target& target) {
  if (target.instructions == nullptr || target.machine == nullptr) {
    return InvalidInput("target '", target.name, "' is no DianNao card");
  }
  isa::Program program;
  program.is_reassociated = ir::IsReassociated(function);
  for (const ir::Expr condition : ir::Assertions(function)) {
    program.assertions.push_back(ir::Print(condition));
  }
  ASSIGN_OR_RETURN(Code code, diannao::Generate(function, target, program));
  diannao::NumberValues(code);
  diannao::RemoveDeadCode(code);
  diannao::MoveCode(code);
  // Code from several branches may have moved to one place.
  diannao::NumberValues(code);
  diannao::RemoveDeadCode(code);
  RETURN_IF_ERROR(diannao::AllocateRegisters(code));
  RETURN_IF_ERROR(Encode(code, program));
  return program;
}

}  // namespace polynao
