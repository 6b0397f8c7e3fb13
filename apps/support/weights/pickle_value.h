// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/shape.h"

namespace weft::support {

/// PyTorch's storage classes: `FloatStorage`, its element type as core/stored_dtype.h calls it ("" where Weft has no
/// lossless dtype), and bytes of one element.
struct TorchStorageType {
  const char* name;
  const char* stored;
  uint64_t bytes;
};

/// The memory behind tensors, as a file names it.
struct PickledStorage {
  std::string key;
  const TorchStorageType* type = nullptr;
  uint64_t numel = 0;  ///< elements
};

/// A storage, or (in files of PyTorch 0.3 and older) a range of one.
struct PickledStorageView {
  size_t storage = 0;  ///< index into Pickle::storages
  uint64_t offset = 0, numel = 0;
};

/// A strided view into a storage; all of it lies inside.
struct PickledTensor {
  size_t storage = 0;
  uint64_t offset = 0;  ///< elements
  Shape sizes, strides;
};

/// The callables that a pickle of weights may name; they are looked up in a table, nothing is imported.
enum class PickleCallable { ordered_dict, rebuild_tensor, rebuild_tensor_v2, rebuild_parameter };

struct PickleValue;
using PickleRef =
    PickleValue*;  ///< owned by a Pickle's arena, so that what refers to itself neither leaks nor recurses

struct PickleNone {};
/// An integer beyond 64 bits: its bytes, little-endian two's complement.
struct PickleBigInteger {
  std::string bytes;
};
struct PickleList {
  std::vector<PickleRef> items;
  bool is_tuple = false;
  uint64_t begun_at = 0;  ///< the byte of EMPTY_LIST; 0: by another opcode, or by the first
};
struct PickleDict {
  std::vector<std::pair<PickleRef, PickleRef>> items;
  uint64_t begun_at = 0;  ///< the byte of EMPTY_DICT; 0 as above
};

struct PickleValue {
  std::variant<PickleNone, bool, int64_t, double, std::string, PickleBigInteger, PickleList, PickleDict, PickleCallable,
               const TorchStorageType*, PickledStorageView, std::unique_ptr<PickledTensor>>
      is;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&is);
  }
  const PickledTensor* tensor() const {
    const auto* owner = std::get_if<std::unique_ptr<PickledTensor>>(&is);
    return owner == nullptr ? nullptr : owner->get();
  }
  /// `a dict`, `a tensor`: for errors.
  const char* kind() const;
  /// The opcode that began a list or dict, and where: `EMPTY_LIST at byte 25`; of anything else its kind.
  std::string begun() const;
};

/// What one pickle builds.
struct Pickle {
  std::deque<PickleValue> arena;
  std::vector<PickledStorage> storages;
  std::unordered_map<std::string, size_t> storage_of_key;
  PickleRef root = nullptr;
  uint64_t end = 0;      ///< the byte behind STOP
  uint64_t opcodes = 0;  ///< how many were run
};

}  // namespace weft::support
