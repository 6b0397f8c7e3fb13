// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/pickle/usual_names.h"
#include "io/torch/torch_pickle.h"

namespace weft {

// Limits of a pickle: levels of nesting, and bytes of all its names and strings together.
constexpr size_t kDeepestPickle = 64;
constexpr uint64_t kMostPickleText = 64 << 20;

/// Safetensors' name for NumPy's `f4`; "": Weft has no such numbers.
std::string_view stored_name_of(const std::string& numpy_type);

/// A tensor of a pickle, or one of NumPy's arrays of numbers, and its path, dict keys and list positions joined with
/// dots: `layer1.0.weight`.
struct NamedPickledTensor {
  std::string name;
  const PickledTensor* tensor = nullptr;
  const NumpyArray* array = nullptr;  ///< where `tensor` is null
};

struct PickleTree {
  std::vector<NamedPickledTensor> tensors;
  std::map<std::string, std::string> others;  ///< numbers, strings, bools beside them, and arrays of texts, as strings
};

/// The tensors under `key` (see open_torch). Errors through `fail`: no such key, only a scalar there, values that
/// contain themselves or are nested too deep or repeated too often; `memory` exhausted.
PickleTree flatten_pickle(const Pickle& pickle, const std::string& key, MemoryBudget& memory,
                          const ByteStream::Fail& fail);

}  // namespace weft
