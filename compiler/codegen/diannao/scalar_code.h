// Scalar code of expressions: what statements of a function compute in registers.
#ifndef COMPILER_CODEGEN_DIANNAO_SCALAR_CODE_H_
#define COMPILER_CODEGEN_DIANNAO_SCALAR_CODE_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/diannao/code.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/storage.h"
#include "isa/instruction_set.h"

namespace polynao::diannao {

// Appends blocks of instructions to a Code. generate.h says where expressions are computed.
class ScalarCode {
 public:
  ScalarCode(const ir::Function& function, const isa::InstructionSet& set);

 protected:
  // ---- emission

  // Error: the instruction set has no such instruction.
  absl::Status Emit(std::string_view mnemonic, absl::Span<const int64_t> fields);
  // Emits an instruction that writes a new register, which comes before `operands`. Returns the
  // register.
  absl::StatusOr<int> Value(std::string_view mnemonic, std::initializer_list<int64_t> operands);
  absl::StatusOr<int> Constant(int64_t value) { return Value("li", {value}); }
  // The block being filled.
  int Here() const { return static_cast<int>(code_.blocks.size()) - 1; }
  // Ends a block that branches to `target`, which a call of ContinueFrom can set later; returns the
  // block.
  absl::StatusOr<int> BranchTo(std::string_view mnemonic, std::initializer_list<int64_t> compared,
                               int64_t target = 0);
  // Begins a new block; the one being filled continues there.
  absl::Status NewBlock();
  // Makes these blocks' branches continue here.
  absl::Status ContinueFrom(absl::Span<const int> branches);
  // Names the block being filled, for readers: loops of one name get numbers.
  void Label(std::string name);

  // ---- expressions
  //
  // Every block of statements has a cache of the pure values computed in it; inner blocks see those
  // of outer ones, since control enters a block only through the code before it.

  void PushCache() { caches_.emplace_back(); }
  void PopCache() { caches_.pop_back(); }

  // The register with the value of `e`. `data`: in a stored value, where i32 and i64 wrap;
  // elsewhere they do not.
  absl::StatusOr<int> Get(ir::Expr e, bool data);
  // An instruction over the values of `operands`.
  absl::StatusOr<int> Op(std::string_view mnemonic, absl::Span<const ir::Expr> operands, bool data);
  absl::StatusOr<int> Zero() { return Get(function_.context->I64(0), false); }

  // ---- memory

  // "load.f16.nmem": the access of an element of `buffer` by the scalar unit.
  absl::StatusOr<std::string> AccessMnemonic(std::string_view op, const ir::BufferNode* buffer);
  // The byte address of an element.
  absl::StatusOr<int> Address(ir::Buffer buffer, absl::Span<const ir::Expr> indices);

  const ir::Function& function_;
  const isa::InstructionSet& set_;
  const AddressMap addresses_;
  Code code_;
  absl::flat_hash_map<ir::Var, int> vars_;
  absl::flat_hash_map<ir::Buffer, int> param_registers_;

 private:
  std::optional<int> Cached(ir::Expr e) const;
  absl::StatusOr<int> Compute(ir::Expr e, bool data);
  absl::StatusOr<int> ComputeBinary(ir::Expr e, bool data);
  absl::StatusOr<int> ComputeAddress(ir::Buffer buffer, absl::Span<const ir::Expr> indices);
  absl::StatusOr<int> Cast(ir::Expr e, bool data);
  absl::StatusOr<int> Wrap(int value, ir::Type type, bool data);
  absl::Status Assign(int variable, ir::Expr e, bool data);

  std::set<std::string> label_names_;
  std::vector<absl::flat_hash_map<ir::Expr, int>> caches_;
};

}  // namespace polynao::diannao

#endif  // COMPILER_CODEGEN_DIANNAO_SCALAR_CODE_H_
