// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "dist/sharded_state.h"

namespace weft::dist {

/// What a folder of a sharded checkpoint holds: `index.json`, sealed (core/seal.h) and written last, and one
/// safetensors file per rank with its pieces as `PART/NAME`.
struct ShardedIndex {
  /// A tensor in whole.
  struct Entry {
    std::string name;
    DType dtype = DType::f32;
    Shape sizes;
    nn::Layout layout = nn::Layout::as_stored;
  };
  struct Part {
    std::vector<Entry> tensors;
    std::vector<NamedScalar> scalars;
  };
  /// Elements begin … begin + count - 1 of `part`/`name` lie in a file.
  struct Piece {
    std::string part, name;
    int64_t begin = 0, count = 0;
  };
  struct File {
    uint64_t bytes = 0;
    uint32_t crc32c = 0;
    std::vector<Piece> pieces;
  };

  std::string id;           ///< of this checkpoint; every file names it
  std::vector<File> files;  ///< by rank
  std::map<std::string, Part> parts;
  std::map<std::string, std::string> facts;

  static constexpr const char* kName = "index.json";
  /// `rank_00002.safetensors`.
  static std::string file_name(int rank);
};

/// Writes and seals the index into the folder.
void write_index(const std::filesystem::path& folder, const ShardedIndex& index);
/// Errors: none there, cut short, damaged, of another program or version; the text names the path.
ShardedIndex read_index(const std::filesystem::path& folder);

/// What a rank tells rank 0 when its file is on the disk; `error` where it is not.
struct RankNote {
  ShardedIndex::File file;
  std::string error;
};
std::string note_text(const RankNote& note);
/// Errors: damaged text.
RankNote read_note(const std::string& text);

/// CRC-32C of a file's bytes, and how many there are. Errors: it cannot be read.
std::pair<uint32_t, uint64_t> checksum_of(const std::filesystem::path& path);

}  // namespace weft::dist
