#include "compiler/passes/storage.h"

#include <algorithm>
#include <map>

#include "base/status.h"
#include "compiler/ir/visit.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

constexpr std::string_view kAddressPragma = "address";

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class Planner {
 public:
  Planner(const Target& target, std::vector<StoragePlace>* places)
      : target_(target), places_(places) {}

  absl::StatusOr<Stmt> Plan(Stmt s) {
    if (s.Is(StmtKind::kPragma) && s.name() == kAddressPragma) {
      return InvalidInput("storage: '", s.body().buffer()->name, "' already has an address");
    }
    const bool in_core = s.Is(StmtKind::kFor) && s.name() == "tid";
    core_loops_ += in_core;
    const bool planned = s.Is(StmtKind::kAllocate) && IsOnChip(s.buffer()->scope);
    int64_t address = 0;
    if (planned) {
      ASSIGN_OR_RETURN(address, Place(s.buffer()));
    }
    std::vector<Stmt> children;
    for (Stmt child : s.children()) {
      ASSIGN_OR_RETURN(Stmt mutated, Plan(child));
      children.push_back(mutated);
    }
    if (planned) live_[s.buffer()->scope].pop_back();
    core_loops_ -= in_core;
    ir::Context& c = s.context();
    const Stmt result = c.Rebuild(s, s.operands(), children);
    return planned ? c.Pragma(kAddressPragma, {c.I64(address)}, result) : result;
  }

 private:
  absl::StatusOr<int64_t> Place(Buffer buffer) {
    int64_t bytes = ir::ByteSize(buffer->type);
    for (Expr extent : buffer->extents) {
      if (!extent.Is(ExprKind::kIntImm)) {
        return InvalidInput("storage: '", buffer->name, "' in ", buffer->scope,
                            " has an extent that is not constant");
      }
      bytes *= std::max<int64_t>(extent.int_value(), 0);
    }
    if (buffer->scope == "smem" && core_loops_ > 0) {
      return InvalidInput(
          "storage: '", buffer->name,
          "' in smem is allocated inside the loop over a cluster's cores (tid), but "
          "smem belongs to the cluster: allocate it outside");
    }
    std::vector<StoragePlace>& live = live_[buffer->scope];
    const int64_t begin =
        live.empty() ? 0 : RoundUp(live.back().begin + live.back().bytes, kOnChipAlignment);
    live.push_back({buffer->name, buffer->scope, begin, bytes});
    if (places_ != nullptr) places_->push_back(live.back());
    const int64_t available = target_.MemoryBytes(buffer->scope);
    if (begin + bytes > available) return DoesNotFit(live, begin + bytes, available);
    return begin;
  }

  static absl::Status DoesNotFit(std::vector<StoragePlace> live, int64_t needed,
                                 int64_t available) {
    const std::string scope = live[0].scope;
    std::sort(live.begin(), live.end(), [](const StoragePlace& a, const StoragePlace& b) {
      return std::pair(b.bytes, a.begin) < std::pair(a.bytes, b.begin);
    });
    std::string list;
    for (const StoragePlace& place : live) {
      StrAppend(&list, list.empty() ? "" : ", ", place.buffer, " ", place.bytes);
    }
    return absl::ResourceExhaustedError(StrCat("storage: ", scope, " needs ", needed,
                                               " bytes and has ", available, "; live there: ", list,
                                               " bytes: use smaller tiles"));
  }

  const Target& target_;
  std::vector<StoragePlace>* const places_;
  std::map<std::string, std::vector<StoragePlace>> live_;
  int core_loops_ = 0;
};

}  // namespace

absl::StatusOr<bool> Storage(ir::Function& function, const Target& target,
                             std::vector<StoragePlace>* places) {
  ASSIGN_OR_RETURN(Stmt body, Planner(target, places).Plan(function.body));
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

AddressMap CollectAddresses(Stmt body) {
  AddressMap addresses;
  ForEachStmt(body, [&](Stmt s) {
    if (s.Is(StmtKind::kPragma) && s.name() == kAddressPragma && s.body().Is(StmtKind::kAllocate)) {
      addresses[s.body().buffer()] = s.operands()[0].int_value();
    }
    return true;
  });
  return addresses;
}

}  // namespace polynao
