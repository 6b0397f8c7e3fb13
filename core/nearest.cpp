// SPDX-License-Identifier: Apache-2.0
#include "core/nearest.h"

#include <algorithm>
#include <cctype>

#include "core/joined.h"

namespace weft {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table d[i][j], the distance of the first i letters of a from the first j of b.
  std::vector<int> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(previous);
    previous.swap(row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string mistyped = lower(word);
  const int farthest = std::max<int>(1, static_cast<int>(mistyped.size()) / 3);
  std::optional<std::string> best;
  int best_distance = farthest + 1;
  for (const std::string& candidate : candidates) {
    int distance = edit_distance(mistyped, lower(candidate));
    if (mistyped.size() >= 3 && lower(candidate).starts_with(mistyped)) distance = std::min(distance, farthest);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  if (const auto near = nearest(word, candidates)) return " Did you mean '" + *near + "'?";
  return " Known: " + joined(candidates) + ".";
}

}  // namespace weft
