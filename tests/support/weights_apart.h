// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <filesystem>

#include "io/safetensors.h"

namespace weft::tests {

/// Mean distance between the weights of two files of the same names.
inline double weights_apart(const std::filesystem::path& a, const std::filesystem::path& b) {
  const StateDict one = read_safetensors(a).state, two = read_safetensors(b).state;
  double sum = 0, count = 0;
  for (const NamedTensor& entry : one.tensors) {
    const auto x = entry.tensor.to_vector<double>(), y = two.tensor(entry.name).to_vector<double>();
    for (size_t i = 0; i < x.size(); ++i) sum += std::abs(x[i] - y[i]);
    count += static_cast<double>(x.size());
  }
  return sum / count;
}

}  // namespace weft::tests
