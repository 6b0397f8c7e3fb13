// SPDX-License-Identifier: Apache-2.0
#include "dist/sharded_checkpoint.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/autograd.h"
#include "core/joined.h"
#include "core/safetensors.h"

namespace weft::dist {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShown = 5;  // names of each kind in an error

/// The pieces that are wanted, by `PART/NAME`, and how much of each has come.
struct Wanted {
  TensorPiece* piece;
  int64_t filled = 0;
};
using Wants = std::unordered_map<std::string, std::vector<Wanted>>;

/// Copies what a piece of the file and a wanted piece have in common.
void fill(Wanted& wanted, const ShardedIndex::Piece& given, const Tensor& values) {
  const int64_t begin = std::max(wanted.piece->begin, given.begin);
  const int64_t end = std::min(wanted.piece->begin + wanted.piece->values.numel(), given.begin + given.count);
  if (end <= begin) return;
  wanted.piece->values.slice(0, begin - wanted.piece->begin, end - begin)
      .copy_(values.slice(0, begin - given.begin, end - begin));
  wanted.filled += end - begin;
}

bool overlaps(const Wants& wants, const ShardedIndex::Piece& given) {
  const auto found = wants.find(given.part + '/' + given.name);
  return found != wants.end() && std::any_of(found->second.begin(), found->second.end(), [&](const Wanted& wanted) {
           return wanted.piece->begin < given.begin + given.count &&
                  given.begin < wanted.piece->begin + wanted.piece->values.numel();
         });
}

}  // namespace

ShardedCheckpoint::ShardedCheckpoint(fs::path folder) : folder_(std::move(folder)), index_(read_index(folder_)) {}

const ShardedIndex::Part& ShardedCheckpoint::part(const std::string& name) const {
  const auto found = index_.parts.find(name);
  WEFT_CHECK(found != index_.parts.end(), "sharded checkpoint ", folder_.string(), ": it has no part '", name, "'");
  return found->second;
}

void ShardedCheckpoint::check_fit(const std::string& name, const ShardedState& state) const {
  std::map<std::string, Shape> saved;
  for (const ShardedIndex::Entry& entry : part(name).tensors) saved.emplace(entry.name, entry.sizes);
  std::vector<std::string> missing, misshapen, unexpected;
  std::unordered_set<std::string> known;
  for (const TensorPiece& piece : state.pieces) {
    if (!known.insert(piece.name).second) continue;
    const auto found = saved.find(piece.name);
    if (found == saved.end())
      missing.push_back(piece.name);
    else if (found->second != piece.sizes)
      misshapen.push_back(str(piece.name, " (expected ", piece.sizes, ", got ", found->second, ")"));
  }
  for (const ShardedIndex::Entry& entry : part(name).tensors)
    if (!known.contains(entry.name)) unexpected.push_back(entry.name);
  std::string text;
  if (!misshapen.empty()) text += "; wrong shape: " + joined(misshapen, kShown);
  if (!missing.empty()) text += "; missing: " + joined(missing, kShown);
  if (!unexpected.empty()) text += "; unexpected: " + joined(unexpected, kShown);
  WEFT_CHECK(text.empty(), "sharded checkpoint ", folder_.string(), ": part '", name, "' does not fit", text);
}

StateDict ShardedCheckpoint::read_file(int rank) const {
  const fs::path path = folder_ / ShardedIndex::file_name(rank);
  const auto wrong = [&](const auto&... why) {
    fail("sharded checkpoint ", folder_.string(), ": rank ", rank, "'s file ", path.filename().string(), ' ', why...);
  };
  const ShardedIndex::File& expected = index_.files[static_cast<size_t>(rank)];
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) wrong("is missing");
  const auto [crc, bytes] = checksum_of(path);
  if (bytes == expected.bytes && crc == expected.crc32c) return read_safetensors(path).state;
  std::string other;  // whole, but of another checkpoint?
  try {
    const SafetensorsFile file = read_safetensors(path);
    const auto id = file.metadata.find("checkpoint");
    if (id != file.metadata.end() && id->second != index_.id) other = id->second;
  } catch (const Error&) {
  }
  if (!other.empty()) wrong("belongs to another checkpoint: expected ", index_.id, ", got ", other);
  if (bytes != expected.bytes) wrong("is damaged: expected ", expected.bytes, " bytes, got ", bytes);
  wrong("is damaged: its checksum is another one than when it was written");
  return {};
}

void ShardedCheckpoint::load(const std::vector<std::pair<std::string, ShardedState*>>& parts) const {
  const NoGrad no_grad;
  Wants wants;
  for (const auto& [name, state] : parts) {
    check_fit(name, *state);
    for (TensorPiece& piece : state->pieces) wants[name + '/' + piece.name].push_back({&piece});
  }
  for (int rank = 0; rank < world_size(); ++rank) {
    const std::vector<ShardedIndex::Piece>& pieces = index_.files[static_cast<size_t>(rank)].pieces;
    if (std::none_of(pieces.begin(), pieces.end(), [&](const auto& given) { return overlaps(wants, given); })) continue;
    std::unordered_map<std::string, Tensor> values;
    for (const NamedTensor& entry : read_file(rank).tensors) values.emplace(entry.name, entry.tensor);
    for (const ShardedIndex::Piece& given : pieces) {
      const std::string name = given.part + '/' + given.name;
      if (!overlaps(wants, given)) continue;
      const auto found = values.find(name);
      WEFT_CHECK(found != values.end() && found->second.numel() == given.count, "sharded checkpoint ", folder_.string(),
                 ": rank ", rank, "'s file does not hold ", given.count, " elements of '", name, "'");
      for (Wanted& wanted : wants[name]) fill(wanted, given, found->second.reshape({given.count}));
    }
  }
  for (const auto& [name, all] : wants)
    for (const Wanted& wanted : all) {
      const int64_t count = wanted.piece->values.numel();
      WEFT_CHECK(wanted.filled == count, "sharded checkpoint ", folder_.string(), ": only ", wanted.filled, " of ",
                 count, " elements of '", name, "' from ", wanted.piece->begin, " on are in its files");
      if (wanted.piece->counter) *wanted.piece->counter = static_cast<int64_t>(wanted.piece->values.item());
    }
  for (const auto& [name, state] : parts) state->scalars = part(name).scalars;
}

StateDict ShardedCheckpoint::full(const std::string& name) const {
  ShardedState state;
  for (const ShardedIndex::Entry& entry : part(name).tensors)
    state.pieces.push_back(
        {entry.name, entry.sizes, entry.layout, 0, Tensor::empty({entry.sizes.numel()}, entry.dtype)});
  load({{name, &state}});
  StateDict dict;
  for (const TensorPiece& piece : state.pieces) {
    const Tensor whole = piece.values.reshape(piece.sizes);
    dict.tensors.push_back({piece.name, piece.layout == nn::Layout::ohwi ? whole.permute({0, 3, 1, 2}) : whole});
  }
  dict.scalars = state.scalars;
  return dict;
}

}  // namespace weft::dist
