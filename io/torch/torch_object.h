// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/state_dict.h"

namespace weft {

/// The content of a torch.save file that is more than a dict of tensors: a training checkpoint such as
/// `{"epoch": 3, "model_state": {…}, "scheduler_state_dict": {"_last_lr": [0.001]}}`.
struct TorchObject {
  struct None {};
  using List = std::vector<TorchObject>;
  struct Tuple {
    std::vector<TorchObject> items;
  };
  struct Item;
  /// In order.
  using Dict = std::vector<Item>;

  std::variant<None, bool, int64_t, double, std::string, Tensor, List, Tuple, Dict> is;

  /// A dict of the state's tensors, followed by its numbers.
  static TorchObject of(const StateDict& state);

  /// The value under `key`. Errors: not a dict, no such key; `what` (`ckpt.tar`) begins the message.
  const TorchObject& at(std::string_view key, std::string_view what) const;
  /// As at(), or null.
  const TorchObject* find(std::string_view key) const;
  /// Errors: another kind; an integer counts as a number.
  int64_t integer(std::string_view what) const;
  double number(std::string_view what) const;
  /// A dict of tensors, as a model's state. Errors: anything else in it.
  StateDict state(std::string_view what) const;
};

/// A key (a string, or a number in an optimizer's state) and its value.
struct TorchObject::Item {
  std::variant<std::string, int64_t> key;
  TorchObject value;

  template <class Key>
  Item(Key&& k, TorchObject v) : key(std::forward<Key>(k)), value(std::move(v)) {}
};

/// Writes a file that `torch.load(FILE, weights_only=True)` opens (PyTorch 2; 1.13 reads no floats);
/// tensors that share memory share it in the file too. Replaces an old file atomically. Errors: the disk
/// is full, Weft was built without libzip. `keep`: AtomicFile::commit.
void write_torch(const std::filesystem::path& path, const TorchObject& object, int keep = 1);

/// Whether the tensor of this name (`state.0.exp_avg`) stays in the file; it becomes None.
using LeavesOut = std::function<bool(const std::string& name)>;
/// Reads a torch.save file by io/pickle/unpickler.h, tensors onto the CPU; other values as unpickle_torch() says (sets
/// are lists, bytes and dtypes strings). Errors: those of open_torch.
TorchObject read_torch(const std::filesystem::path& path, const LeavesOut& leaves_out = {});

}  // namespace weft
