// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/shape.h"
#include "io/pickle/pickle_value.h"

namespace weft {

/// A storage class of PyTorch: `FloatStorage`, its element type's name in io/stored_dtype.h ("" without a lossless
/// dtype), and the bytes of one element.
struct TorchStorageType final : PickleObject {
  constexpr TorchStorageType(const char* class_name, const char* stored_as, uint64_t element)
      : name(class_name), stored(stored_as), bytes(element) {}
  const char* kind() const override { return "a storage type"; }

  const char* name;
  const char* stored;
  uint64_t bytes;
};

/// The memory of tensors, as a file names it.
struct PickledStorage {
  std::string key;
  const TorchStorageType* type = nullptr;
  uint64_t numel = 0;  ///< elements
};

/// A strided view that lies inside its storage.
struct PickledTensor final : PickleObject {
  const char* kind() const override { return "a tensor"; }

  size_t storage = 0;   ///< index into TorchPickle::storages
  uint64_t offset = 0;  ///< elements
  Shape sizes, strides;
};

struct TorchPickle : Pickle {
  std::vector<PickledStorage> storages;
  std::unordered_map<std::string, size_t> storage_of_key;
};

/// Builds the values of a pickle of weights: tensors, OrderedDicts and plain values. It knows four functions, torch's
/// storage types, and the persistent ids `('storage', type, key, place, numel[, view])`. Errors: those of unpickle().
TorchPickle unpickle_torch(ByteStream& bytes, const ByteStream::Fail& fail);

}  // namespace weft
