// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint_index.h"

namespace weft {

/// Elements that are wanted of a checkpoint's tensor.
struct WantedPiece {
  std::string part, name;
  int64_t begin = 0;  ///< the first one, in row-major order of the tensor or the part `of`
  Tensor values{};  ///< [count], filled in place (dtype and device are converted); undefined: becomes the whole tensor
  StridedPart of{};
};

/// A checkpoint on the disk, a file or a folder (io/checkpoint_index.h), written at any number of ranks.
class CheckpointReader {
 public:
  /// When a file's seal is checked, for which all its bytes are read: at once, or by check_seal().
  enum class Seal : uint8_t { at_once, later };

  /// Reads the index. Errors: none there, damaged, cut short, of another program or version.
  explicit CheckpointReader(std::filesystem::path path, Seal seal = Seal::at_once);
  ~CheckpointReader();

  const CheckpointIndex& index() const { return index_; }
  /// `checkpoint FILE` or `sharded checkpoint FOLDER`: how errors begin.
  const std::string& where() const { return where_; }
  /// Errors: no such part.
  const CheckpointIndex::Part& part(const std::string& name) const;

  /// Reads from each file, one at a time, the blocks (CheckpointIndex::kBlock) with wanted bytes, after
  /// checking their CRC-32C; of an earlier version's folder whole files. Errors: no such part
  /// or tensor; elements that no file holds; a rank's file that is missing, damaged or of another checkpoint.
  void read(std::vector<WantedPiece>& wanted) const;

  /// Bytes of files that all read() so far have read.
  uint64_t bytes_read() const { return bytes_read_; }

  /// Checks a file's seal unless that has been done; read() checks a folder's blocks. Errors: damaged, cut short.
  void check_seal() const;
  /// Checks the CRC-32C of every file. Errors: as those of read().
  void check() const;

  /// Parts in whole, on the CPU, as state_dict() shows them.
  std::vector<std::pair<std::string, StateDict>> states(const std::vector<std::string>& parts) const;

 private:
  struct Shard;

  int number(size_t file) const;
  std::filesystem::path shard(size_t rank) const;
  void check_shard(size_t rank) const;
  /// Its file, open and with a header that has been checked.
  Shard& opened(size_t rank) const;
  [[noreturn]] void fail_block(size_t rank) const;

  std::filesystem::path path_;
  std::string where_;
  bool is_folder_ = false;
  CheckpointIndex index_;
  mutable bool is_checked_ = false;  // the seal
  mutable uint64_t bytes_read_ = 0;
  mutable std::map<size_t, std::unique_ptr<Shard>> shards_;  // files that stay open between reads
};

}  // namespace weft
