// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "apps/support/weights/torch_pickle.h"

namespace weft::support {

/// A tensor of a pickle and its path, dict keys and list positions joined with dots: `layer1.0.weight`.
struct NamedPickledTensor {
  std::string name;
  const PickledTensor* tensor = nullptr;
};

struct PickleTree {
  std::vector<NamedPickledTensor> tensors;
  std::map<std::string, std::string> others;  ///< numbers, texts, bools beside them, as text
};

/// The tensors under `key` (see open_torch). Errors through `fail`: no such key, nothing but a scalar there, values
/// that contain themselves or are nested or repeated beyond all reason.
PickleTree flatten_pickle(const Pickle& pickle, const std::string& key, const ByteStream::Fail& fail);

}  // namespace weft::support
