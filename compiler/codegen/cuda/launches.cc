#include "compiler/codegen/cuda/launches.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "base/text.h"

namespace polynao::codegen {
namespace {

constexpr int64_t kMostBlocks[] = {INT32_MAX, 65535, 65535};

class Host {
 public:
  Host(const CudaFunction& function, const ir::IntValues& integers,
       const std::function<absl::Status(const CudaLaunch&)>& visit)
      : function_(function), values_(integers), visit_(visit) {}

  absl::Status Run(const std::vector<HostStep>& steps) {
    for (const HostStep& step : steps) RETURN_IF_ERROR(Run(step));
    return absl::OkStatus();
  }

 private:
  absl::Status Run(const HostStep& step) {
    const ir::Stmt s = step.around;
    if (!s) return Launch(step.kernel);
    switch (s.kind()) {
      case ir::StmtKind::kIf: {
        ASSIGN_OR_RETURN(const int64_t holds, ir::EvaluateInt(s.cond(), values_));
        return (holds != 0) == step.otherwise ? absl::OkStatus() : Run(step.steps);
      }
      case ir::StmtKind::kLet: {
        // A value that wraps around is for kernels alone; bounds have none.
        const absl::StatusOr<int64_t> value = ir::EvaluateInt(s.value(), values_);
        if (value.ok()) {
          values_[s.var()] = *value;
        } else {
          values_.erase(s.var());
        }
        return Run(step.steps);
      }
      default: {
        ASSIGN_OR_RETURN(const int64_t first, ir::EvaluateInt(s.min(), values_));
        ASSIGN_OR_RETURN(const int64_t extent, ir::EvaluateInt(s.extent(), values_));
        for (int64_t i = 0; i < extent; ++i) {
          values_[s.var()] = first + i;
          RETURN_IF_ERROR(Run(step.steps));
        }
        return absl::OkStatus();
      }
    }
  }

  absl::Status Launch(size_t number) {
    const CudaKernel& kernel = function_.kernels[number];
    CudaLaunch launch{.kernel = number, .grid = kernel.grid, .host_values = {}};
    for (size_t axis = 0; axis < 3; ++axis) {
      int64_t& extent = launch.grid[axis];
      if (kernel.grid_extents[axis]) {
        ASSIGN_OR_RETURN(extent, ir::EvaluateInt(kernel.grid_extents[axis], values_));
      }
      if (extent <= 0) return absl::OkStatus();
      if (extent > kMostBlocks[axis]) {
        return InvalidInput(kernel.name, ": blockIdx.", std::string(1, "xyz"[axis]), " has extent ",
                            extent, ": expected at most ", kMostBlocks[axis]);
      }
    }
    for (int argument : kernel.arguments) {
      const CudaValue& value = function_.values[static_cast<size_t>(argument)];
      if (value.kind == CudaValue::Kind::kHostVariable) {
        launch.host_values.push_back(values_.at(value.param.var));
      }
    }
    return visit_(launch);
  }

  const CudaFunction& function_;
  ir::IntValues values_;
  const std::function<absl::Status(const CudaLaunch&)>& visit_;
};

}  // namespace

absl::Status ForEachLaunch(const CudaFunction& function, const ir::IntValues& integers,
                           const std::function<absl::Status(const CudaLaunch&)>& visit) {
  return Host(function, integers, visit).Run(function.host);
}

absl::StatusOr<int64_t> WorkspaceElements(ir::Buffer buffer, const ir::IntValues& integers) {
  int64_t elements = 1;
  for (ir::Expr extent : buffer->extents) {
    ASSIGN_OR_RETURN(const int64_t value, ir::EvaluateInt(extent, integers));
    if (__builtin_mul_overflow(elements, std::max<int64_t>(0, value), &elements) ||
        elements > INT64_MAX / 16) {
      return InvalidInput("allocate ", buffer->name, ": its size overflows");
    }
  }
  return elements;
}

}  // namespace polynao::codegen
