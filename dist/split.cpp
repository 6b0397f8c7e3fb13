// SPDX-License-Identifier: Apache-2.0
#include "dist/split.h"

#include <algorithm>
#include <sstream>
#include <tuple>

namespace weft::dist {

std::vector<int> members_of_split(ProcessGroup& group, int color, int key, const std::string& name) {
  const std::vector<std::string> texts = group.all_gather_text(str(color, ' ', key), "split " + name);
  std::vector<std::tuple<int, int>> chosen;  // key, rank
  for (int r = 0; r < group.size(); ++r) {
    std::istringstream text(texts[static_cast<size_t>(r)]);
    int its_color = -1, its_key = 0;
    text >> its_color >> its_key;
    if (color >= 0 && its_color == color) chosen.emplace_back(its_key, r);
  }
  std::ranges::sort(chosen);
  std::vector<int> members;
  for (const auto& [its_key, rank] : chosen) members.push_back(rank);
  return members;
}

}  // namespace weft::dist
