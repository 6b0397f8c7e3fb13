// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace weft::nn {

/// Layers first … last - 1 of a model. Modules before layer 0 (an embedding) belong to layer 0, and modules after the
/// last layer (a norm, a head) to the last.
struct LayerRange {
  int64_t first = 0, last = 0;
  bool has(int64_t layer) const { return layer >= first && layer < last; }
};

/// A model that is a row of layers and can be run in stretches, one on each rank of a pipeline:
///   forward(x) = run({k, layers()}, run({0, k}, x, x), x)
struct Staged {
  virtual ~Staged() = default;
  /// The number of layers.
  virtual int64_t layers() const = 0;
  /// x is the input of layer `range.first`; the result is the output of the last one of the range. `sample`: the
  /// model's input that x was computed from, for masks and lengths; with layer 0 x itself.
  virtual Tensor run(LayerRange range, const Tensor& x, const Tensor& sample) const = 0;
  /// Whether run(range, …) uses the parameter of this name. One that two stretches use is tied: their gradients add up.
  virtual bool uses(LayerRange range, const std::string& parameter) const = 0;
};

/// 3 of `blocks.3.attn.qkv.weight` in `blocks`; nothing for a name of another kind.
inline std::optional<int64_t> layer_of(std::string_view parameter, std::string_view row) {
  if (!parameter.starts_with(row) || parameter.size() <= row.size() || parameter[row.size()] != '.') return {};
  int64_t layer = 0;
  const char* const begin = parameter.data() + row.size() + 1;
  const auto end = std::from_chars(begin, parameter.data() + parameter.size(), layer);
  return end.ec == std::errc() ? std::optional(layer) : std::nullopt;
}

}  // namespace weft::nn
