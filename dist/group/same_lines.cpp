// SPDX-License-Identifier: Apache-2.0
#include "dist/group/same_lines.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "core/text.h"
#include "io/crc32c.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// `rank 1`, `ranks 0, 2 and 3`, at most eight of them by number.
std::string ranks_text(const std::vector<int>& ranks) {
  constexpr size_t kNamed = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < kNamed; ++i)
    text += str(i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
  return ranks.size() > kNamed ? text + " …" : text;
}

/// The first line that is not the same everywhere, by the ranks that have it; empty where all are.
std::string difference(const std::vector<std::string>& texts) {
  std::vector<std::vector<std::string>> all;
  size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, all.emplace_back(split_lines(text)).size());
  for (size_t i = 0; i < longest; ++i) {
    std::vector<std::pair<std::string, std::vector<int>>> seen;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      const std::string line = i < all[rank].size() ? all[rank][i] : "nothing more";
      auto found = std::find_if(seen.begin(), seen.end(), [&](const auto& entry) { return entry.first == line; });
      if (found == seen.end()) found = seen.insert(seen.end(), {line, {}});
      found->second.push_back(static_cast<int>(rank));
    }
    if (seen.size() == 1) continue;
    std::string text = str(": at entry ", i + 1, " ");
    for (size_t k = 0; k < seen.size(); ++k) {
      const auto& [line, ranks] = seen[k];
      text +=
          (k > 0 ? ", " : "") + ranks_text(ranks) + (ranks.size() == 1 ? " has '" : " have '") + printable(line) + "'";
    }
    return text;
  }
  return "";
}

}  // namespace

void check_same_lines(ProcessGroup& group, const std::string& lines, const std::string& what, const std::string& hint) {
  if (group.size() == 1) return;
  // Whole texts travel only when their short forms differ.
  const std::string digest = str(lines.size(), ' ', crc32c(lines.data(), lines.size()));
  const std::vector<std::string> digests = group.all_gather_text(digest, what + " the same");
  if (std::all_of(digests.begin(), digests.end(), [&](const std::string& other) { return other == digest; })) return;
  fail(what, " not the same on all ranks", difference(group.all_gather_text(lines, what + " different")), ". ", hint);
}

}  // namespace weft::dist
