// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/shape.h"
#include "io/memory_budget.h"
#include "io/pickle/pickle_value.h"

namespace weft {

/// An element type of PyTorch: its name there, its name in io/stored_dtype.h ("" without a lossless dtype), its bytes.
struct TorchElement {
  const char* name;
  const char* stored;
  uint64_t bytes;
};

/// A storage class: `FloatStorage`; `UntypedStorage` holds bytes.
struct TorchStorageType final : PickleObject, TorchElement {
  constexpr TorchStorageType(const char* class_name, const char* stored_as, uint64_t element)
      : TorchElement{class_name, stored_as, element} {}
  const char* kind() const override { return "a storage type"; }
  std::string text() const { return std::string(name == std::string_view("UntypedStorage") ? "torch.storage." : "torch.") + name; }
};

/// A value that is a name of the module torch: a dtype (`torch.uint16`), `torch.per_tensor_affine`, `torch.Tensor`.
struct TorchName final : PickleObject {
  constexpr explicit TorchName(const char* text) : element{text, "", 0} {}
  constexpr TorchName(const char* text, const char* stored_as, uint64_t bytes) : element{text, stored_as, bytes} {}
  const char* kind() const override { return "a name of PyTorch's"; }
  std::string text() const { return std::string("torch.") + element.name; }

  TorchElement element;  ///< 0 bytes: no dtype
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

  size_t storage = 0;  ///< index into TorchPickle::storages
  const TorchElement* element = nullptr;
  uint64_t offset = 0;  ///< elements
  Shape sizes, strides;
  bool negative = false;  ///< the values are those of the storage with the other sign
};

struct TorchPickle : Pickle {
  std::vector<PickledStorage> storages;
  std::unordered_map<std::string, size_t> storage_of_key;
};

/// Builds the values of a pickle of weights: dense tensors, and the plain values that `torch.load(weights_only=True)`
/// reads: of dtypes, devices and layouts their names, of sets lists, of bytes texts, of a complex number the pair. It
/// knows the functions and types in torch_pickle.cpp, and the persistent ids `('storage', type, key, place, numel[,
/// view])`. Errors: those of unpickle(); tensors that are quantised, sparse, nested or without data, by that name.
TorchPickle unpickle_torch(ByteStream& bytes, const ByteStream::Fail& fail, MemoryBudget* memory = nullptr);

}  // namespace weft
