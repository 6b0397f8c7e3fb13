// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/sharded_checkpoint.h"

#include <unordered_map>
#include <unordered_set>

#include "core/autograd.h"

namespace weft::dist {
namespace {

using Entry = CheckpointIndex::Entry;

/// A checkpoint of a whole model has convolution weights as its state dict shows them, OIHW; a piece of one is OHWI.
bool is_turned(const Entry& entry, const TensorPiece& piece) {
  return piece.layout == nn::Layout::ohwi && !entry.is_ohwi && entry.sizes.rank() >= 3;
}

Shape sizes_for(const Entry& entry, const TensorPiece& piece) {
  return is_turned(entry, piece) ? from_file_order(entry.sizes) : entry.sizes;
}

std::unordered_map<std::string, const Entry*> by_name(const CheckpointIndex::Part& part) {
  std::unordered_map<std::string, const Entry*> entries;
  for (const Entry& entry : part.tensors) entries.emplace(entry.name, &entry);
  return entries;
}

}  // namespace

void ShardedCheckpoint::check_fit(const std::string& name, const ShardedState& state) const {
  const CheckpointIndex::Part& part = reader_.part(name);
  const auto saved = by_name(part);
  std::vector<std::string> missing, misshapen, unexpected;
  std::unordered_set<std::string> known;
  for (const TensorPiece& piece : state.pieces) {
    if (!known.insert(piece.name).second) continue;
    const auto found = saved.find(piece.name);
    if (found == saved.end())
      missing.push_back(piece.name);
    else if (const Shape got = sizes_for(*found->second, piece); got != piece.sizes)
      misshapen.push_back(str(piece.name, " (expected ", piece.sizes, ", got ", got, ")"));
  }
  for (const Entry& entry : part.tensors)
    if (!known.contains(entry.name)) unexpected.push_back(entry.name);
  const std::string text = mismatch_text(misshapen, missing, unexpected);
  WEFT_CHECK(text.empty(), reader_.where(), ": part '", name, "' does not fit", text);
}

void ShardedCheckpoint::load(const std::vector<std::pair<std::string, ShardedState*>>& parts) const {
  const NoGrad no_grad;
  std::vector<WantedPiece> wanted;
  for (const auto& [name, state] : parts) {
    check_fit(name, *state);
    const auto saved = by_name(reader_.part(name));
    for (const TensorPiece& piece : state->pieces)
      wanted.push_back(is_turned(*saved.at(piece.name), piece)
                           ? WantedPiece{name, piece.name}
                           : WantedPiece{name, piece.name, piece.begin, piece.values});
  }
  reader_.read(wanted);
  auto got = wanted.begin();
  for (const auto& [name, state] : parts) {
    const auto saved = by_name(reader_.part(name));
    for (const TensorPiece& piece : state->pieces) {
      const Tensor values = (got++)->values;
      const int64_t count = piece.values.numel();
      if (is_turned(*saved.at(piece.name), piece))
        piece.values.copy_(from_file_order(values).contiguous().flatten().slice(0, piece.begin, count));
      if (piece.counter) *piece.counter = static_cast<int64_t>(piece.values.item());
    }
    state->scalars = reader_.part(name).scalars;
  }
}

}  // namespace weft::dist
