// Instances on grids, with arrows between them and outlines of tiles, as an SVG.
#ifndef COMPILER_POLY_TOOLS_PICTURE_SVG_H_
#define COMPILER_POLY_TOOLS_PICTURE_SVG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace polynao::poly {

// Instances at places of a grid.
struct Panel {
  std::string title, down, right;                   // what the axes are
  std::vector<std::pair<int64_t, int64_t>> places;  // of each instance: down, right
  std::vector<double> order;                        // 0 for the first to run, 1 for the last
  // One level of tiles or several, the largest tiles first: for each instance, the number of its tile.
  std::vector<std::vector<int>> tiles = {};
};

struct Arrow {
  size_t from, to;  // instances
  bool is_flow;
};

// The panels side by side, `title` above and `notes` below, a line each. The arrows are in all panels.
std::string PanelsSvg(const std::vector<Panel>& panels, const std::vector<Arrow>& arrows,
                      const std::string& title, const std::vector<std::string>& notes);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_TOOLS_PICTURE_SVG_H_
