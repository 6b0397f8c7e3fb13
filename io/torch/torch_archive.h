// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "io/file_reader.h"
#include "io/memory_budget.h"
#include "io/stored_dtype.h"
#include "io/torch/torch_pickle.h"
#include "io/weights/weights_file.h"

namespace weft {

/// A torch.save file of either format: its pickle, run by io/pickle/unpickler.h, and its storages, each read when one
/// of its tensors is first needed.
class TorchArchive {
 public:
  virtual ~TorchArchive() = default;
  TorchArchive(const TorchArchive&) = delete;
  TorchArchive& operator=(const TorchArchive&) = delete;

  const char* format() const { return format_; }  ///< `pytorch`, `pytorch (legacy)`
  const TorchPickle& pickle() const { return pickle_; }
  MemoryBudget& memory() const { return *memory_; }
  const ByteStream::Fail& fail() const { return fail_; }  ///< throws `pytorch: FILE: TEXT`

  /// The element type of a tensor that will be read. Before any read(), each tensor is announced once: tensors with
  /// common memory still share memory. Errors: a dtype that Weft lacks; by repetition, far more bytes in total than the
  /// file has.
  const StoredDType& announce(const PickledTensor& tensor, const std::string& name);
  /// The tensor on the CPU, with its strides. Errors: damaged data, the file ends too early.
  Tensor read(const PickledTensor& tensor, const std::string& name);
  static bool is_dense(const PickledTensor& tensor);
  /// A part of a dense tensor; only its bytes are read.
  Tensor read_block(const PickledTensor& tensor, const std::string& name, const WeightBlock& block);
  /// Reads the storages of announced tensors, one at a time, where they have checksums. Errors: as read().
  virtual void check() const {}

 protected:
  TorchArchive(const std::filesystem::path& path, const char* format, std::shared_ptr<MemoryBudget> memory);
  /// Takes the pickle; then its storages can be read.
  void set_pickle(TorchPickle pickle);
  /// Reads these bytes of the storage, which has `numel` elements of its type.
  virtual void read_storage(size_t storage, void* to, uint64_t begin, uint64_t bytes) const = 0;
  bool is_used(size_t storage) const { return uses_[storage] > 0; }
  /// Errors: more than the file holds.
  uint64_t bytes_of(const PickledStorage& storage) const;

  FileReader file_;
  ByteStream::Fail fail_;
  std::shared_ptr<MemoryBudget> memory_;

 private:
  const char* format_;
  TorchPickle pickle_;
  std::vector<uint32_t> uses_;  // number of tensors of each storage
  std::vector<Tensor> kept_;    // storages of more than one tensor
};

/// `memory` is that of the load which the file is part of. Errors: `pytorch: FILE: …`: no torch.save file, damaged, a
/// pickle that needs more than tensors and plain values.
std::unique_ptr<TorchArchive> open_torch_archive(
    const std::filesystem::path& path, std::shared_ptr<MemoryBudget> memory = std::make_shared<MemoryBudget>());

}  // namespace weft
