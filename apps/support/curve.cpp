// SPDX-License-Identifier: Apache-2.0
#include "apps/support/curve.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace weft::support {
namespace {

/// The words of a name in lower case: `val_loss`, `Loss/val` -> {loss, val}.
std::multiset<std::string> words(const std::string& name) {
  std::multiset<std::string> out;
  std::string word;
  for (const char c : name + ' ') {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || byte >= 0x80) {
      word += static_cast<char>(std::tolower(byte));
    } else if (!word.empty()) {
      out.insert(word);
      word.clear();
    }
  }
  return out;
}

}  // namespace

void Curve::add(CurvePoint point) {
  point.step += shift;
  if (!points.empty() && point.step <= points.back().step) {
    if (point.epoch > points.back().epoch) {
      const double on = points.back().step - shift;
      shift += on;
      point.step += on;
    }
    drop_from(point.step);
  }
  points.push_back(point);
}

void Curve::drop_from(double step) {
  while (!points.empty() && points.back().step >= step) points.pop_back();
}

const CurvePoint* Curve::last() const {
  const auto found = std::find_if(points.rbegin(), points.rend(), [](const auto& p) { return std::isfinite(p.value); });
  return found == points.rend() ? nullptr : &*found;
}

const CurvePoint* Curve::best(bool smallest) const {
  const CurvePoint* best = nullptr;
  for (const CurvePoint& p : points) {
    if (!std::isfinite(p.value)) continue;
    if (best == nullptr || (smallest ? p.value < best->value : p.value > best->value)) best = &p;
  }
  return best;
}

bool less_is_better(const std::string& name) {
  static const std::array<const char*, 8> signs{"loss", "err", "rmse", "mse", "mae", "perplexity", "time", "wait"};
  for (const std::string& word : words(name))
    for (const char* sign : signs)
      if (word.starts_with(sign) || word.ends_with("loss")) return true;
  return false;
}

std::optional<std::string> find_curve_name(const std::string& name, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  std::optional<std::string> found;
  for (const std::string& other : names) {
    if (words(other) != words(name)) continue;
    if (found) return std::nullopt;  // two would fit
    found = other;
  }
  return found;
}

}  // namespace weft::support
