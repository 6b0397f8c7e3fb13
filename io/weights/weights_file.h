// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/state_dict.h"

namespace weft {

/// A file's statements about a tensor before its data is read.
struct WeightInfo {
  std::string name;
  DType dtype = DType::f32;  ///< as read() returns it
  Shape sizes;
  std::string stored;  ///< the element type in the file: `F32`, `I8`

  uint64_t bytes() const { return static_cast<uint64_t>(sizes.numel()) * size_of(dtype); }
};

/// A part of a tensor: these slices of dimension 0, and of each only these of dimension 1.
struct WeightBlock {
  int64_t row = 0, rows = 0;         ///< the first, and how many
  int64_t column = 0, columns = -1;  ///< -1: all, of any number of dimensions
};

/// Named tensors in a file of any format that Weft reads. Opening reads their descriptions; a tensor's data is read on
/// demand, directly into its memory on the CPU.
class WeightsFile {
 public:
  virtual ~WeightsFile() = default;

  const std::string& format() const { return format_; }  ///< `safetensors`, `pytorch`, `pytorch (legacy)`, …
  const std::vector<WeightInfo>& tensors() const { return tensors_; }
  /// The file's contents other than tensors, as strings: safetensors' metadata, `epoch` of a PyTorch checkpoint.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// The tensor's number, or -1.
  int64_t find(std::string_view name) const;

  /// A tensor by its number, or all in the file's order, on the CPU. Errors: the file is cut short or damaged.
  virtual Tensor read(size_t index) const = 0;
  StateDict read_all() const;

  /// A part of a tensor of at least one dimension, on the CPU; of dense tensors its bytes alone are read. Errors: as
  /// read().
  virtual Tensor read_block(size_t index, const WeightBlock& block) const;
  /// Checks the checksums that cover more than a block, which read_block() leaves unread. Errors: as read().
  virtual void check() const {}

 protected:
  /// Errors: a name that occurs twice.
  void add(WeightInfo info);

  std::string format_;
  std::map<std::string, std::string> metadata_;

 private:
  std::vector<WeightInfo> tensors_;
  std::unordered_map<std::string, size_t> index_;
};

/// Fills `part` [count] with the elements of a tensor of these sizes from `first` on, in row-major order. `read`
/// returns blocks of the tensor: of a row that is cut only the columns with wanted elements.
void read_elements(const Shape& sizes, int64_t first, const Tensor& part,
                   const std::function<Tensor(const WeightBlock&)>& read);

struct OpenWeightsOptions {
  std::string
      key{};  ///< which dict of a PyTorch file (`model`, `state_dict.teacher`), which part of a checkpoint; "": found
  bool checks =
      true;  ///< the first read() of a checkpoint compares the checksum of its file; false: check() alone does
};

/// `path`; of a folder of Hugging Face's the file of weights in it, of a sharded checkpoint's the folder itself.
/// Errors: another folder; the text names its kind.
std::filesystem::path weights_in_folder(const std::filesystem::path& path);

/// Opens safetensors (`.safetensors`, `.safetensors.index.json`), PyTorch (`.pt`, `.pth`, `.th`, `.bin`), Weft's
/// checkpoints (`.h5`) and folders (weights_in_folder); the content decides, not the name. Errors: `FORMAT: FILE: …`;
/// another format, whose kind the text names (io/file_kind.h).
std::unique_ptr<WeightsFile> open_weights(const std::filesystem::path& path, const OpenWeightsOptions& options = {});

/// Opens a file that torch.save wrote, zip archive or legacy format. Pickles are run by a machine that builds tensors,
/// dicts, lists and numbers and nothing else (io/pickle/unpickler.h). The tensors are those of the dict under `key`;
/// without a key, of the only dict under a usual key (`state_dict`, `model`, `net`, `params_ema`, …; io/torch/
/// pickle_tree.cpp), whatever else is there; else all, with names joined by dots. Errors: `pytorch: FILE: …`; several
/// dicts under usual keys.
std::unique_ptr<WeightsFile> open_torch(const std::filesystem::path& path, const std::string& key = "");

/// Writes a file that `torch.load(FILE, weights_only=True)` opens as a dict of tensors; tensors that share memory
/// share it in the file too. Replaces an old file atomically. Errors: numbers in the state dict, the disk is full, Weft
/// was built without libzip.
void write_torch(const std::filesystem::path& path, const StateDict& state);

}  // namespace weft
