// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_reader.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/autograd.h"
#include "core/text.h"
#include "io/crc32c.h"
#include "io/file_kind.h"
#include "io/safetensors.h"
#include "io/seal.h"
#include "io/stored_dtype.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Piece = CheckpointIndex::Piece;

/// Consecutive elements that a piece in a file and a wanted piece share: the first one's place in each, and the count.
struct Run {
  int64_t given, wanted, count;
};

/// In ascending order; `most` of them.
std::vector<Run> common_runs(const Piece& given, const Piece& wanted, size_t most = SIZE_MAX) {
  std::vector<Run> runs;
  const auto left = [](const Piece& piece, int64_t i) {  // consecutive elements of the tensor from i on
    const int64_t end = piece.begin + piece.count;
    return piece.of.run == 0 ? end - i : std::min(end, (i / piece.of.run + 1) * piece.of.run) - i;
  };
  for (int64_t i = given.begin, j = wanted.begin;
       runs.size() < most && i < given.begin + given.count && j < wanted.begin + wanted.count;) {
    const int64_t a = given.of.place(i), b = wanted.of.place(j), begin = std::max(a, b);
    const int64_t a_end = a + left(given, i), b_end = b + left(wanted, j), count = std::min(a_end, b_end) - begin;
    if (count > 0) {
      const Run run{i + begin - a - given.begin, j + begin - b - wanted.begin, count};
      Run* const last = runs.empty() ? nullptr : &runs.back();
      if (last && last->given + last->count == run.given && last->wanted + last->count == run.wanted)
        last->count += count;
      else
        runs.push_back(run);
    }
    if (a_end <= b_end) i += a_end - a;
    if (b_end <= a_end) j += b_end - b;
  }
  return runs;
}

/// The wanted part of a tensor, and the amount read so far.
struct Target {
  WantedPiece* piece;
  const CheckpointIndex::Entry* entry;
  bool is_whole;
  int64_t count;
  int64_t filled = 0;
  Tensor on_host = {};  ///< all elements, where runs of a file lie apart

  Piece wanted() const { return {piece->part, piece->name, piece->begin, count, piece->of}; }

  /// `values`: the elements of all runs, one run after another.
  void fill(const std::vector<Run>& runs, const Tensor& values) {
    filled += values.numel();
    if (is_whole && runs.size() == 1 && values.numel() == count && values.dtype() == entry->dtype) {
      piece->values = values;  // no copy
      return;
    }
    Tensor& own = piece->values;
    if (!own.defined()) own = Tensor::empty({count}, entry->dtype);
    const int64_t first = runs.front().wanted, end = runs.back().wanted + runs.back().count;
    if (end - first != values.numel() && !on_host.defined()) on_host = own.to(Device{}).to(entry->dtype).contiguous();
    if (!on_host.defined()) {
      own.slice(0, first, values.numel()).copy_(values);
      return;
    }
    const Tensor source = values.to(entry->dtype);
    const size_t bytes = size_of(entry->dtype);
    const auto* from = static_cast<const char*>(source.raw_data());
    for (const Run& run : runs) {
      const size_t all = static_cast<size_t>(run.count) * bytes;
      std::memcpy(static_cast<char*>(on_host.raw_data()) + static_cast<size_t>(run.wanted) * bytes, from, all);
      from += all;
    }
    if (filled < count) return;
    if (on_host.raw_data() == own.raw_data())
      own.storage()->bump_version();
    else
      own.copy_(on_host);
    on_host = {};
  }
};
using Targets = std::unordered_map<std::string, std::vector<Target>>;

bool overlaps(const Targets& targets, const Piece& given) {
  const auto found = targets.find(given.part + '/' + given.name);
  return found != targets.end() && std::any_of(found->second.begin(), found->second.end(), [&](const Target& one) {
           return !common_runs(given, one.wanted(), 1).empty();
         });
}

/// The bytes of a file, of which whole blocks are read and compared with their checksums; the last one is kept.
class Blocks {
 public:
  Blocks(const fs::path& path, const CheckpointIndex::File& expected, uint64_t& count)
      : file_(path, "checkpoint"), expected_(expected.blocks), count_(count) {}

  uint64_t size() const { return file_.size(); }
  /// False: a block is damaged.
  bool read(uint64_t begin, void* to, uint64_t bytes) {
    if (expected_.empty()) {
      file_.read(begin, to, bytes);
      count_ += bytes;
      return true;
    }
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t at = begin + done, number = at / CheckpointIndex::kBlock, inside = at % CheckpointIndex::kBlock;
      if (!load(number)) return false;
      const uint64_t some = std::min(bytes - done, block_.size() - inside);
      std::memcpy(static_cast<char*>(to) + done, block_.data() + inside, some);
      done += some;
    }
    return true;
  }
  /// The header of safetensors, which says where all else is.
  bool check_header() {
    uint64_t length = 0;
    if (expected_.empty()) return true;
    if (size() < sizeof length || !read(0, &length, sizeof length) || length > size() - sizeof length) return false;
    std::vector<char> header(length);
    return read(sizeof length, header.data(), length);
  }

 private:
  bool load(uint64_t number) {
    if (number == loaded_) return true;
    const uint64_t begin = number * CheckpointIndex::kBlock;
    if (number >= expected_.size() || begin >= size()) return false;
    block_.resize(std::min(CheckpointIndex::kBlock, size() - begin));
    file_.read(begin, block_.data(), block_.size());
    count_ += block_.size();
    loaded_ = number;
    return crc32c(block_.data(), block_.size()) == expected_[number];
  }

  FileReader file_;
  const std::vector<uint32_t>& expected_;
  uint64_t& count_;
  std::vector<char> block_;
  uint64_t loaded_ = UINT64_MAX;
};

/// Whole safetensors that save_checkpoint() has not written.
bool is_weights(const fs::path& path) {
  try {
    return !SafetensorsReader(path).metadata().contains(CheckpointIndex::kMetadataKey);
  } catch (const Error&) {
    return false;
  }
}

void require_seal(const fs::path& path) {
  const FileReader file(path, "checkpoint");
  const SealState seal = check_seal(path);
  if (seal == SealState::broken)
    file.bad("damaged: its bytes do not fit the checksum at its end. Resume from another checkpoint");
  char start[9] = {};
  file.read(0, start, std::min<uint64_t>(file.size(), sizeof start));
  if (start[8] != '{') refuse(file, "a checkpoint", "another format");
  if (seal == SealState::missing && !is_weights(path))
    file.bad("damaged or cut short: it does not end with a seal. Resume from another checkpoint");
}

/// The index in a file's metadata.
CheckpointIndex read_file_index(const fs::path& path) {
  const FileReader file(path, "checkpoint");
  const SafetensorsReader tensors(path);
  const auto found = tensors.metadata().find(CheckpointIndex::kMetadataKey);
  if (found == tensors.metadata().end()) file.bad("expected a checkpoint, got safetensors that hold weights alone");
  return parse_index(found->second, "checkpoint: " + file.path(), "its index");
}

constexpr size_t kMostOpen = 64;  // files of a checkpoint

}  // namespace

struct CheckpointReader::Shard {
  Blocks blocks;
  SafetensorsReader file;
  std::unordered_map<std::string, size_t> places = {};  // each entry's in the file, by name
};

CheckpointReader::CheckpointReader(fs::path path, Seal seal) : path_(std::move(path)) {
  std::error_code ignored;
  is_folder_ = fs::is_directory(path_, ignored);
  where_ = (is_folder_ ? "sharded checkpoint " : "checkpoint ") + path_.string();
  if (is_folder_) {
    index_ = read_index(path_);
    return;
  }
  WEFT_CHECK(fs::exists(path_, ignored), "checkpoint: ", printable(path_.string()), ": expected a checkpoint, got ",
             fs::is_symlink(path_, ignored) ? "a link to a file that is not there" : "no such file");
  if (seal == Seal::at_once) check_seal();
  try {
    index_ = read_file_index(path_);
  } catch (const Error&) {
    check_seal();  // says what is wrong
    throw;
  }
}

CheckpointReader::~CheckpointReader() = default;

void CheckpointReader::check_seal() const {
  if (!is_folder_ && !is_checked_) require_seal(path_);
  is_checked_ = true;
}

const CheckpointIndex::Part& CheckpointReader::part(const std::string& name) const {
  for (const auto& [own, part] : index_.parts)
    if (own == name) return part;
  fail(where_, ": it has no part '", name, "'");
}

int CheckpointReader::number(size_t file) const {
  return index_.files[file].rank >= 0 ? index_.files[file].rank : static_cast<int>(file);
}

fs::path CheckpointReader::shard(size_t file) const {
  return is_folder_ ? path_ / CheckpointIndex::file_name(number(file)) : path_;
}

void CheckpointReader::check_shard(size_t rank) const {
  if (!is_folder_) return check_seal();
  const fs::path path = shard(rank);
  const auto wrong = [&](const auto&... why) {
    fail(where_, ": rank ", number(rank), "'s file ", path.filename().string(), ' ', why...);
  };
  const CheckpointIndex::File& expected = index_.files[rank];
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) wrong("is missing");
  const auto [crc, bytes] = checksum_of(path);
  if (bytes == expected.bytes && crc == expected.crc32c) return;
  std::string other;  // whole, but of another checkpoint?
  try {
    const SafetensorsReader file(path);
    const auto id = file.metadata().find("checkpoint");
    if (id != file.metadata().end() && id->second != index_.id) other = id->second;
  } catch (const Error&) {
  }
  if (!other.empty()) wrong("belongs to another checkpoint: expected ", index_.id, ", got ", other);
  if (bytes != expected.bytes) wrong("is damaged: expected ", expected.bytes, " bytes, got ", bytes);
  wrong("is damaged: its checksum differs from the written one");
}

void CheckpointReader::check() const {
  for (size_t rank = 0; rank < index_.files.size(); ++rank) check_shard(rank);
}

void CheckpointReader::fail_block(size_t rank) const {
  check_shard(rank);  // says what is wrong
  fail(where_, ": rank ", number(rank), "'s file is damaged: a block's checksum differs from the written one");
}

CheckpointReader::Shard& CheckpointReader::opened(size_t rank) const {
  if (const auto known = shards_.find(rank); known != shards_.end()) return *known->second;
  const CheckpointIndex::File& expected = index_.files[rank];
  const fs::path path = shard(rank);
  std::error_code ignored;
  if (is_folder_ && (expected.blocks.empty() || fs::file_size(path, ignored) != expected.bytes)) check_shard(rank);
  Blocks blocks(path, expected, bytes_read_);
  if (!blocks.check_header()) fail_block(rank);
  auto shard = std::make_unique<Shard>(Shard{std::move(blocks), SafetensorsReader(path)});
  for (size_t i = 0; i < shard->file.entries().size(); ++i) shard->places.emplace(shard->file.entries()[i].name, i);
  if (shards_.size() == kMostOpen) shards_.clear();
  return *(shards_[rank] = std::move(shard));
}

void CheckpointReader::read(std::vector<WantedPiece>& wanted) const {
  const NoGrad no_grad;
  std::unordered_map<std::string, const CheckpointIndex::Entry*> entries;
  for (const auto& [part, listed] : index_.parts)
    for (const CheckpointIndex::Entry& entry : listed.tensors) entries.emplace(part + '/' + entry.name, &entry);
  Targets targets;
  for (WantedPiece& piece : wanted) {
    const std::string name = piece.part + '/' + piece.name;
    const auto entry = entries.find(name);
    WEFT_CHECK(entry != entries.end(), where_, ": it has no tensor '", name, "'");
    const bool is_whole = !piece.values.defined();
    targets[name].push_back(
        {&piece, entry->second, is_whole, is_whole ? entry->second->sizes.numel() : piece.values.numel()});
  }
  for (size_t rank = 0; rank < index_.files.size(); ++rank) {
    const std::vector<Piece>& pieces = index_.files[rank].pieces;
    if (std::none_of(pieces.begin(), pieces.end(), [&](const Piece& given) { return overlaps(targets, given); }))
      continue;
    Shard& own = opened(rank);
    std::vector<std::pair<const Piece*, const SafetensorsEntry*>> in_order;  // sorted by place: neighbours share blocks
    for (const Piece& given : pieces) {
      if (!overlaps(targets, given)) continue;
      const auto place = own.places.find(given.stored_name());
      WEFT_CHECK(place != own.places.end() && own.file.entries()[place->second].sizes.numel() == given.count, where_,
                 ": rank ", number(rank), "'s file does not hold ", given.count, " elements of '", given.stored_name(),
                 "'");
      in_order.emplace_back(&given, &own.file.entries()[place->second]);
    }
    std::sort(in_order.begin(), in_order.end(),
              [](const auto& a, const auto& b) { return a.second->begin < b.second->begin; });
    for (const auto& [piece, place] : in_order) {
      const Piece& given = *piece;
      const SafetensorsEntry& entry = *place;
      const std::string name = given.part + '/' + given.name;
      for (Target& target : targets[name]) {
        const std::vector<Run> runs = common_runs(given, target.wanted());
        if (runs.empty()) continue;
        int64_t count = 0;
        for (const Run& run : runs) count += run.count;
        const auto read_runs = [&](void* to, uint64_t) {
          auto* next = static_cast<char*>(to);
          for (const Run& run : runs) {
            const uint64_t first = static_cast<uint64_t>(run.given) * entry.stored->bytes;
            const uint64_t bytes = static_cast<uint64_t>(run.count) * entry.stored->bytes;
            if (!own.blocks.read(own.file.data_start() + entry.begin + first, next, bytes)) fail_block(rank);
            next += bytes;
          }
        };
        const Tensor values = read_stored(*entry.stored, {count}, read_runs,
                                          [&](std::string_view text) { fail(where_, ": '", name, "': ", text); });
        target.fill(runs, values);
      }
    }
  }
  for (auto& [name, all] : targets)
    for (const Target& target : all) {
      WEFT_CHECK(target.filled == target.count, where_, ": only ", target.filled, " of ", target.count,
                 " elements of '", name, "' from ", target.piece->begin, " on are in its files");
      Tensor& values = target.piece->values;
      if (!values.defined()) values = Tensor::empty({0}, target.entry->dtype);
      if (target.is_whole) values = values.reshape(target.entry->sizes);
    }
}

std::vector<std::pair<std::string, StateDict>> CheckpointReader::states(const std::vector<std::string>& parts) const {
  std::vector<WantedPiece> wanted;
  for (const std::string& name : parts)
    for (const CheckpointIndex::Entry& entry : part(name).tensors) wanted.push_back({name, entry.name});
  read(wanted);
  std::vector<std::pair<std::string, StateDict>> result;
  auto next = wanted.begin();
  for (const std::string& name : parts) {
    StateDict state{{}, part(name).scalars};
    for (const CheckpointIndex::Entry& entry : part(name).tensors) {
      const Tensor whole = (next++)->values;
      state.tensors.push_back({entry.name, entry.is_ohwi ? to_file_order(whole) : whole});
    }
    result.emplace_back(name, std::move(state));
  }
  return result;
}

}  // namespace weft
