// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "core/autograd.h"
#include "nn/module.h"

namespace weft::golden {

// The functions of hashed.py, number for number; their meaning is told there.

inline float hashed_value(uint32_t seed, uint32_t i) {
  uint32_t h = (i + 1) * 0x9E3779B1u ^ (seed + 1) * 0x85EBCA6Bu;
  h = (h ^ h >> 15) * 0x2C1B3C6Du;
  h = (h ^ h >> 12) * 0x297A2D39u;
  h ^= h >> 15;
  return static_cast<float>(h >> 8) / 8388608.0f - 1;
}

inline std::vector<float> hashed_values(uint32_t seed, int64_t count, float scale = 1, float shift = 0) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = hashed_value(seed, static_cast<uint32_t>(i)) * scale + shift;
  return values;
}

/// The weights that fill_parameters() gave PyTorch's model. The order is the state dict's without buffers: PyTorch's.
inline void fill_parameters(nn::Module& model) {
  const NoGrad no_grad;
  uint32_t seed = 0;
  for (const auto& [name, tensor] : model.state_dict().tensors) {
    if (name.find("running_") != std::string::npos || name.find("num_batches") != std::string::npos) continue;
    std::vector<float> values;
    if (tensor.dim() == 1) {
      values = hashed_values(seed, tensor.numel(), 0.1f, name.ends_with("weight") ? 1.0f : 0.0f);
    } else {
      const double fan_in = static_cast<double>(tensor.numel() / tensor.size(0));
      values = hashed_values(seed, tensor.numel(), static_cast<float>(std::sqrt(6 / fan_in)));
    }
    tensor.copy_(Tensor::from(values, tensor.sizes()));
    ++seed;
  }
}

/// A parameter-shaped tensor in the order of PyTorch: convolution weights as OIHW.
inline Tensor as_pytorch(const Tensor& tensor) { return tensor.dim() == 4 ? tensor.permute({0, 3, 1, 2}) : tensor; }

/// The 10 numbers of digest().
inline std::vector<double> digest(const Tensor& tensor, uint32_t seed) {
  const std::vector<double> flat = tensor.to_vector<double>();
  double squares = 0, product = 0;
  for (size_t i = 0; i < flat.size(); ++i) {
    squares += flat[i] * flat[i];
    product += flat[i] * hashed_value(seed + 10000, static_cast<uint32_t>(i));
  }
  std::vector<double> result{std::sqrt(squares), product};
  for (size_t i = 0; i < 8; ++i) result.push_back(flat[i * flat.size() / 8]);
  return result;
}

}  // namespace weft::golden
