// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/state_dict.h"

namespace weft {

/// A part of a tensor whose elements lie in equal distances, such as columns of a matrix: element i of the part is the
/// tensor's element offset + i / run * stride + i % run, both in row-major order. `run` 0: the part is the tensor.
struct StridedPart {
  int64_t offset = 0, run = 0, stride = 0;
  int64_t place(int64_t i) const { return run == 0 ? i : offset + i / run * stride + i % run; }
};

/// The content of a checkpoint, and its files. Every file is safetensors and names its tensors PART/NAME.
/// One shard: a file, sealed (io/seal.h), whose metadata holds the index under `weft_checkpoint`.
/// Several: a folder of one file per rank, or of the ranks of a host, and `index.json`, sealed and written last.
struct CheckpointIndex {
  /// A tensor in whole.
  struct Entry {
    std::string name;
    DType dtype = DType::f32;
    Shape sizes;
    bool is_ohwi = false;  ///< a convolution weight in the order of Weft's memory; state dicts show it as OIHW
  };
  struct Part {
    std::vector<Entry> tensors;
    std::vector<NamedScalar> scalars;
  };
  /// Elements begin … begin + count - 1 of `part`/`name`, or of a part of this tensor, lie in a file.
  struct Piece {
    std::string part, name;
    int64_t begin = 0, count = 0;
    StridedPart of = {};
    int writer = 0;  ///< which of the ranks that wrote the file together; above 0 the file's tensor is `PART/NAME@WRITER`
    std::string stored_name() const {
      return part + '/' + name + (writer > 0 ? '@' + std::to_string(writer) : std::string());
    }
  };
  struct File {
    uint64_t bytes = 0;  ///< 0, as is the checksum, where the file holds the index: its seal covers it
    uint32_t crc32c = 0;
    std::vector<Piece> pieces;
    std::vector<uint32_t> blocks = {};  ///< CRC-32C of each kBlock bytes; an earlier version noted none
    int rank = -1;                      ///< the first of its ranks, which names the file; -1: its place among the files
  };

  std::string id;           ///< names this checkpoint; every file has the id
  std::vector<File> files;  ///< files by their first rank
  std::vector<std::pair<std::string, Part>> parts;
  std::map<std::string, int64_t> integers;
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;

  static constexpr uint64_t kBlock = uint64_t{1} << 20;  ///< a reader of a range reads and checks whole blocks
  static constexpr const char* kFileName = "index.json";
  static constexpr const char* kMetadataKey = "weft_checkpoint";
  /// `rank_00002.safetensors`.
  static std::string file_name(int rank);
};

/// As JSON, on one line without `indent`. Numbers and texts come back bit by bit.
std::string index_text(const CheckpointIndex& index, int indent = -1);
/// Errors, which begin with `where` and `what` (`sharded checkpoint FOLDER: index.json is damaged`): damaged, of
/// another program or version, pieces of tensors that are not listed.
CheckpointIndex parse_index(const std::string& text, const std::string& where, const std::string& what);

/// Writes and seals the index into the folder.
void write_index(const std::filesystem::path& folder, const CheckpointIndex& index);
/// Errors: none there, cut short; parse_index's.
CheckpointIndex read_index(const std::filesystem::path& folder);

/// A rank's report to rank 0 when its file is on the disk; `error` if that failed.
struct RankNote {
  CheckpointIndex::File file;
  std::vector<std::pair<std::string, CheckpointIndex::Part>> parts = {};  ///< the tensors whose first element it has
  std::string error;
};
/// The note as text, for read_note().
std::string note_text(const RankNote& note);
/// Errors: damaged text.
RankNote read_note(const std::string& text);

/// A file's bytes and checksums, without pieces. Errors: it cannot be read.
CheckpointIndex::File sums_of(const std::filesystem::path& path);
/// CRC-32C of a file's bytes, and how many there are. Errors: it cannot be read.
std::pair<uint32_t, uint64_t> checksum_of(const std::filesystem::path& path);

}  // namespace weft
