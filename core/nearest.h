// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// The number of insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (optimal string
/// alignment distance; Damerau 1964).
int edit_distance(std::string_view a, std::string_view b);

/// The candidate that a mistyped word most likely means: the one at the smallest distance (case ignored), or one that
/// the word begins. Nothing when all are further away than a third of the word.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// `" Did you mean 'resnet18'?"`, or `" Known: resnet18, resnet34."` when none is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace weft
