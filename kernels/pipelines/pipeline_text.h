// The .nir text of a pipeline, written stage by stage.
#ifndef KERNELS_PIPELINES_PIPELINE_TEXT_H_
#define KERNELS_PIPELINES_PIPELINE_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace polynao::kernels {

class PipelineText {
 public:
  // The loop `for (variable, first, end - first)`.
  struct Range {
    std::string variable;
    int64_t first;
    int64_t end;
  };
  using Extents = std::vector<int64_t>;

  explicit PipelineText(std::string_view name);

  // Parameters, in this order.
  void Input(std::string_view name, std::string_view type, const Extents& extents);
  void Output(std::string_view name, std::string_view type, const Extents& extents);

  void Allocate(std::string_view name, std::string_view type, const Extents& extents);
  // Loops around `element = value`, which runs only where `guard` holds if there is one.
  void Nest(const std::vector<Range>& ranges, std::string_view element, std::string_view value,
            std::string_view guard = {});
  // Allocates the buffer, and stores `value` to its element at the loops' variables: Ix[x, y] = value.
  void Stage(std::string_view name, std::string_view type, const Extents& extents,
             const std::vector<Range>& ranges, std::string_view value);

  std::string Text() const;

 private:
  void Parameter(std::string_view name, std::string_view type, const Extents& extents,
                 std::string_view role);

  std::string name_;
  std::string parameters_;
  std::string body_;
};

}  // namespace polynao::kernels

#endif  // KERNELS_PIPELINES_PIPELINE_TEXT_H_
