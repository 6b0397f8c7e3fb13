// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "apps/weft_weights/options.h"
#include "core/text.h"
#include "train/exit.h"

namespace weft::weft_weights {
namespace {

constexpr int kTrouble = 2;  // as diff(1): 1 is for files that differ

/// The distance of two tensors of one shape.
struct Distance {
  int64_t differing = 0, numel = 0;
  double largest = 0;            ///< max |a - b|
  double squares = 0, norm = 0;  ///< sums for a - b and for b

  std::string text() const {
    char line[160];
    std::snprintf(line, sizeof line, "%lld of %lld values, max abs %.3g, relative %.3g",
                  static_cast<long long>(differing), static_cast<long long>(numel), largest,
                  norm > 0 ? std::sqrt(squares / norm) : (squares > 0 ? INFINITY : 0.0));
    return line;
  }
};

Distance distance(const Tensor& first, const Tensor& second, const Options& options) {
  Distance result;
  result.numel = first.numel();
  const Tensor a = first.contiguous(), b = second.contiguous();
  if (a.dtype() == b.dtype() && (a.nbytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0))
    return result;
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  const bool exact = !a.is_floating() && a.dtype() == b.dtype() && options.atol == 0 && options.rtol == 0;
  const auto whole = exact ? a.to_vector<int64_t>() : std::vector<int64_t>(),
             others = exact ? b.to_vector<int64_t>() : std::vector<int64_t>();
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    const double gap = x[i] == y[i] ? 0.0 : std::abs(x[i] - y[i]);  // equal infinities have no distance
    // Not <=: a NaN on one side differs. Integers beyond 2^53 may differ although their doubles are equal.
    if (!(gap <= options.atol + options.rtol * std::abs(y[i])) || (exact && whole[i] != others[i])) ++result.differing;
    if (gap > result.largest || std::isnan(gap)) result.largest = gap;  // a NaN stays
    result.squares += gap * gap;
    result.norm += y[i] * y[i];
  }
  return result;
}

std::string what(const WeightInfo& info) { return str(info.dtype, info.sizes); }

int compare(const Options& options) {
  const auto a = open_first(options);
  const auto b = open_weights(options.files[1]);
  size_t equal = 0, differ = 0, only_a = 0, only_b = 0;
  for (size_t i = 0; i < a->tensors().size(); ++i) {
    const WeightInfo& mine = a->tensors()[i];
    const int64_t found = b->find(mine.name);
    if (found < 0) {
      ++only_a;
      std::cout << "- " << printable(mine.name) << ' ' << what(mine) << '\n';
      continue;
    }
    const WeightInfo& other = b->tensors()[static_cast<size_t>(found)];
    std::string text;
    if (mine.sizes != other.sizes) {
      text = what(mine) + " and " + what(other);
    } else {
      if (mine.dtype != other.dtype && !options.ignore_dtype) text = str(mine.dtype, " and ", other.dtype);
      const Distance far = distance(a->read(i), b->read(static_cast<size_t>(found)), options);
      if (far.differing > 0) text += (text.empty() ? "" : "; ") + far.text();
    }
    if (!text.empty()) std::cout << "~ " << printable(mine.name) << ": " << text << '\n';
    ++(text.empty() ? equal : differ);
  }
  for (const WeightInfo& other : b->tensors())
    if (a->find(other.name) < 0) {
      ++only_b;
      std::cout << "+ " << printable(other.name) << ' ' << what(other) << '\n';
    }
  std::cout << equal << " equal, " << differ << " different, " << only_a << " only in " << printable(options.files[0])
            << ", " << only_b << " only in " << printable(options.files[1]) << '\n';
  return differ + only_a + only_b == 0 ? 0 : 1;
}

}  // namespace

int diff(const Options& options) {
  try {
    return printed(compare(options));
  } catch (const std::exception& error) {
    std::cout.flush();
    std::cerr << "weft-weights: error: " << error.what() << '\n';
    return kTrouble;
  }
}

}  // namespace weft::weft_weights
