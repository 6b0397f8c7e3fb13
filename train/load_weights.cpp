// SPDX-License-Identifier: Apache-2.0
#include "train/load_weights.h"

#include <unordered_set>

#include "core/text.h"
#include "nn/linear.h"

namespace weft::train {
namespace {

constexpr uint64_t kAtOnce = 256 << 20;  // bytes read before they are copied into the model
constexpr size_t kShown = 5;

/// The numbers that a model counts by itself (num_batches_tracked): files may lack them.
struct Counters : nn::Visitor {
  std::unordered_set<std::string> names;
  void parameter(const std::string&, Tensor&, nn::Layout) override {}
  void buffer_at(const std::string&, Tensor&) override {}
  void counter_at(const std::string& path, int64_t&) override { names.insert(path); }
};

}  // namespace

std::string LoadedWeights::text(size_t limit) const {
  std::string text = str(loaded, loaded == 1 ? " tensor loaded" : " tensors loaded");
  const auto list = [&](const char* kind, const std::vector<std::string>& names) {
    if (!names.empty()) text += str("; ", kind, ": ", printable(joined(names, limit)));
  };
  list("wrong shape", misshapen);
  list("missing", missing);
  list("unexpected", unexpected);
  return text;
}

LoadedWeights load_weights(nn::Module& model, const std::filesystem::path& path, const LoadWeightsOptions& options) {
  const auto file = renamed_weights(open_weights(path, {.key = options.key}), options.rename);
  Counters counters;
  model.fields(counters);
  const StateDict own = model.state_dict();

  LoadedWeights result;
  std::vector<size_t> fitting;
  std::unordered_set<std::string> known;
  for (const NamedTensor& mine : own.tensors) {
    known.insert(mine.name);
    const int64_t found = file->find(mine.name);
    if (found < 0) {
      if (!counters.names.contains(mine.name) && !nn::is_fp8_state(mine.name)) result.missing.push_back(mine.name);
      continue;
    }
    const WeightInfo& theirs = file->tensors()[static_cast<size_t>(found)];
    if (theirs.sizes == mine.tensor.sizes())
      fitting.push_back(static_cast<size_t>(found));
    else
      result.misshapen.push_back(str(mine.name, " (expected ", mine.tensor.sizes(), ", got ", theirs.sizes, ")"));
  }
  for (const WeightInfo& theirs : file->tensors())
    if (!known.contains(theirs.name) && !nn::is_fp8_state(theirs.name)) result.unexpected.push_back(theirs.name);
  const std::string misfits = result.text(kShown);
  WEFT_CHECK(result.is_whole() || (!options.strict && !fitting.empty()), "load_state_dict: the weights do not fit ",
             model.kind(), misfits.substr(std::min(misfits.find(';'), misfits.size())));

  StateDict part;
  uint64_t bytes = 0;
  const auto hand_over = [&] {
    if (!part.tensors.empty()) model.load_state_dict(part, {.strict = false});
    part.tensors.clear();
    bytes = 0;
  };
  for (const size_t index : fitting) {
    const WeightInfo& info = file->tensors()[index];
    if (bytes > 0 && bytes + info.bytes() > kAtOnce) hand_over();
    part.tensors.push_back({info.name, file->read(index)});
    bytes += info.bytes();
  }
  hand_over();
  result.loaded = fitting.size();
  return result;
}

}  // namespace weft::train
