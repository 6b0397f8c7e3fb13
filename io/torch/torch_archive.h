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

 protected:
  TorchArchive(const std::filesystem::path& path, const char* format, std::shared_ptr<MemoryBudget> memory);
  /// Takes the pickle; then its storages can be read.
  void set_pickle(TorchPickle pickle);
  /// Fills the storage's memory, `numel` elements of its type.
  virtual void read_storage(size_t storage, void* to) const = 0;
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
