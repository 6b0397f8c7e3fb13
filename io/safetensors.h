// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/state_dict.h"
#include "io/file_reader.h"
#include "io/memory_budget.h"
#include "io/stored_dtype.h"
#include "io/weights/weights_file.h"

namespace weft {

/// The content of a safetensors file: named tensors, in the order of their data, and metadata strings.
struct SafetensorsFile {
  StateDict state;
  std::map<std::string, std::string> metadata;
};

/// One tensor of a header; its bytes are [begin, end) of the data after the header.
struct SafetensorsEntry {
  std::string name;
  const StoredDType* stored = nullptr;
  Shape sizes;
  uint64_t begin = 0, end = 0;
};

/// A safetensors file (github.com/huggingface/safetensors): an 8-byte header length, a JSON header, the data. Opening
/// reads the header only and checks all of it: the lengths against the file's size, JSON, dtypes, shapes, and that the
/// tensors' ranges fill the data without holes or overlaps. Errors: `safetensors: FILE: …`, naming the tensor.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::filesystem::path& path);
  /// As part of a load that opens more files. Errors: the descriptions of its tensors take more than is left of
  /// `memory`.
  SafetensorsReader(const std::filesystem::path& path, MemoryBudget& memory);

  /// In the order of their data.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  uint64_t file_size() const { return file_.size(); }
  /// Where the ranges of entries() begin in the file.
  uint64_t data_start() const { return data_start_; }

  /// Reads one tensor directly into its memory on the CPU; dtypes that Weft lacks are widened (io/stored_dtype.h).
  /// Complex numbers are their parts [..., 2], which view_as_complex() takes.
  Tensor read(size_t index) const;
  /// A part of a tensor of at least one dimension; only its bytes are read.
  Tensor read_block(size_t index, const WeightBlock& block) const;

 private:
  FileReader file_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
  uint64_t data_start_ = 0;
};

/// A tensor of a file to be written.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;  ///< the format's name (stored_name())
  std::vector<int64_t> sizes;
  uint64_t bytes = 0;
};
/// The file up to its data, which follow in the order of the tensors, without holes: for a file that several processes
/// write, each its own tensors. Errors: two tensors of one name, names that are not UTF-8, too many.
std::string safetensors_header(const std::vector<SafetensorsTensor>& tensors,
                               const std::map<std::string, std::string>& metadata);

/// Reads a whole file with SafetensorsReader.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

/// Writes the tensors (from any device, any strides) for other libraries; replaces an old file atomically. `complex`
/// names the parts [..., 2] of complex numbers: C64 of f32, C128 of f64. Errors: numbers in the state dict (the format
/// has none), two tensors of one name, the disk is full. Also a complex tensor that is missing, or no such parts.
void write_safetensors(const std::filesystem::path& path, const StateDict& state,
                       const std::map<std::string, std::string>& metadata = {},
                       const std::set<std::string>& complex = {});

/// Writes a seal (io/seal.h) as the last tensor, `seal` u8[20], too. Damage is then found before anything is parsed,
/// and other libraries still read the file. `what` opens the error texts; `keep`: AtomicFile::commit.
void write_sealed_safetensors(const std::filesystem::path& path, const std::string& what, const StateDict& state,
                              const std::map<std::string, std::string>& metadata, int keep = 1);

}  // namespace weft
