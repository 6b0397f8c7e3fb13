// SPDX-License-Identifier: Apache-2.0
#include "data/nearest_name.h"

#include <algorithm>
#include <numeric>

namespace weft::data {
namespace {

size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> above(b.size() + 1);
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> row{i};
    for (size_t j = 1; j <= b.size(); ++j)
      row.push_back(std::min({row.back() + 1, above[j] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)}));
    above = std::move(row);
  }
  return above.back();
}

}  // namespace

std::string nearest_name(const std::string& text, const std::vector<std::string>& names) {
  const auto closer = [&](const std::string& a, const std::string& b) { return distance(text, a) < distance(text, b); };
  const auto best = std::min_element(names.begin(), names.end(), closer);
  return best == names.end() ? std::string() : *best;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& one : names) text += (text.empty() ? "" : ", ") + one;
  return text;
}

}  // namespace weft::data
