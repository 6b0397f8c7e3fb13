// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/support/weights/torch_pickle.h"
#include "core/file_reader.h"
#include "core/stored_dtype.h"
#include "core/tensor.h"

namespace weft::support {

/// A file of torch.save of either format: its pickle, run by the machine of core/pickle/unpickler.h, and the storages
/// that it refers to, each read when one of its tensors is first needed.
class TorchArchive {
 public:
  virtual ~TorchArchive() = default;
  TorchArchive(const TorchArchive&) = delete;
  TorchArchive& operator=(const TorchArchive&) = delete;

  const char* format() const { return format_; }  ///< `pytorch`, `pytorch (legacy)`
  const TorchPickle& pickle() const { return pickle_; }
  const ByteStream::Fail& fail() const { return fail_; }  ///< throws `pytorch: FILE: TEXT`

  /// The element type of a tensor that will be read. Before any read(), each tensor is announced once: those that share
  /// memory keep sharing it. Errors: a dtype that Weft lacks; by repetition, far more bytes in all than the file has.
  const StoredDType& announce(const PickledTensor& tensor, const std::string& name);
  /// The tensor on the CPU, with its strides. Errors: the data is damaged, the file ends before.
  Tensor read(const PickledTensor& tensor, const std::string& name);

 protected:
  TorchArchive(const std::filesystem::path& path, const char* format);
  /// Takes the pickle, whose storages can then be read.
  void set_pickle(TorchPickle pickle);
  /// Fills the storage's memory, `numel` elements of its type.
  virtual void read_storage(size_t storage, void* to) const = 0;
  /// Errors: more than the file holds.
  uint64_t bytes_of(const PickledStorage& storage) const;

  FileReader file_;
  ByteStream::Fail fail_;

 private:
  const char* format_;
  TorchPickle pickle_;
  uint64_t budget_;             // bytes that tensors may still need
  std::vector<uint32_t> uses_;  // by how many tensors, for each storage
  std::vector<Tensor> kept_;    // storages of more than one tensor
};

/// Errors: `pytorch: FILE: …`: no file of torch.save, damaged, a pickle that wants anything but tensors and values.
std::unique_ptr<TorchArchive> open_torch_archive(const std::filesystem::path& path);

}  // namespace weft::support
