// SPDX-License-Identifier: Apache-2.0
#include "train/load_weights.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <unordered_set>

#include "core/text.h"
#include "io/crc32c.h"
#include "nn/init.h"
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

/// The prefixes of the file's names behind which are most of the model's: `model.` of Lightning, `encoder_q.` and
/// `encoder_k.` of MoCo.
std::vector<std::string> fitting_prefixes(const WeightsFile& file, const std::unordered_set<std::string>& own) {
  std::map<std::string, size_t> counts;
  for (const WeightInfo& info : file.tensors())
    for (size_t dot = info.name.find('.'); dot != std::string::npos; dot = info.name.find('.', dot + 1))
      if (own.contains(info.name.substr(dot + 1))) ++counts[info.name.substr(0, dot + 1)];
  std::vector<std::string> prefixes;
  for (const auto& [prefix, count] : counts)
    if (2 * count > own.size()) prefixes.push_back(prefix);
  return prefixes;
}

/// The order of dimensions in which a dense tensor's elements follow each other in memory.
Shape memory_order(const Tensor& x) {
  std::vector<int64_t> order(static_cast<size_t>(x.dim()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](int64_t d) { return x.stride(static_cast<int>(d)); });
  return Shape(order);
}

/// Names, sizes and a few values, by which another file is told apart.
std::string line_of(const WeightsFile& file) {
  std::string all;
  uint32_t sum = 0;
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const WeightInfo& info = file.tensors()[i];
    all += str(info.name, info.sizes, info.stored, '\n');
    const bool is_sampled = info.sizes.rank() == 1 || i + 1 == file.tensors().size();
    if (!is_sampled || info.sizes.rank() == 0 || info.sizes.numel() == 0) continue;
    WeightBlock block{.rows = std::min<int64_t>(info.sizes[0], info.sizes.rank() == 1 ? 16 : 1)};
    if (info.sizes.rank() > 1) block.columns = std::min<int64_t>(info.sizes[1], 16);
    const Tensor some = file.read_block(i, block).contiguous();
    sum = crc32c(some.raw_data(), some.nbytes(), sum);
  }
  return str(file.tensors().size(), " tensors, checksum ", crc32c(all.data(), all.size(), sum));
}

/// The model's copy of tensor `index` is written later, as a whole or in parts.
void note_later(nn::DeferredInit& later, const std::shared_ptr<WeightsFile>& file, const Tensor& weight, size_t index) {
  nn::DeferredInit::ReadBlock read;
  const Shape order = memory_order(weight);
  const bool is_turned = !std::ranges::is_sorted(order);
  if (order.rank() > 0 && order[0] == 0)
    read = [=](const WeightBlock& block) {
      if (!is_turned) return file->read_block(index, block);
      const Tensor rows = file->read_block(index, {.row = block.row, .rows = block.rows}).permute(order);
      return block.columns < 0 ? rows : rows.slice(1, block.column, block.columns);
    };
  later.note(
      weight, [=] { weight.copy_(file->read(index)); }, read);
}

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
  const StateDict own = model.state_dict();
  std::unordered_set<std::string> known;
  for (const NamedTensor& mine : own.tensors) known.insert(mine.name);
  nn::DeferredInit* const later = nn::DeferredInit::current();
  const auto open = [&](const RenameOptions& rename) {
    return renamed_weights(open_weights(path, {.key = options.key, .checks = later == nullptr}), rename);
  };
  std::shared_ptr<WeightsFile> file = open(options.rename);
  WEFT_CHECK(!file->tensors().empty() || own.tensors.empty(), "load_state_dict: expected the weights of ", model.kind(),
             ", got a file without tensors");
  const auto common = std::count_if(file->tensors().begin(), file->tensors().end(),
                                    [&](const WeightInfo& info) { return known.contains(info.name); });
  const bool fits = 2 * static_cast<size_t>(common) > known.size(), is_chosen = !options.rename.prefix.empty();
  const std::vector<std::string> prefixes = fits || is_chosen || !options.rename.add_prefix.empty()
                                                ? std::vector<std::string>()
                                                : fitting_prefixes(*file, known);
  const bool before_all =
      prefixes.size() == 1 && std::all_of(file->tensors().begin(), file->tensors().end(),
                                          [&](const WeightInfo& info) { return info.name.starts_with(prefixes[0]); });
  if (before_all) {  // nothing is left out
    RenameOptions rename = options.rename;
    rename.prefix = prefixes[0];
    file = open(rename);
  }
  Counters counters;
  model.fields(counters);

  LoadedWeights result;
  std::vector<size_t> fitting;
  std::vector<std::pair<Tensor, size_t>> deferred;
  std::unordered_set<const Storage*> parameters;
  if (later)
    for (const NamedTensor& parameter : model.parameters()) parameters.insert(parameter.tensor.storage().get());
  for (const NamedTensor& mine : own.tensors) {
    const int64_t found = file->find(mine.name);
    if (found < 0) {
      if (!counters.names.contains(mine.name) && !nn::is_fp8_state(mine.name)) result.missing.push_back(mine.name);
      continue;
    }
    const WeightInfo& theirs = file->tensors()[static_cast<size_t>(found)];
    if (mine.tensor.is_floating() && !is_floating(theirs.dtype)) {
      result.misshapen.push_back(
          str(mine.name, " (expected floating point numbers, got ", theirs.stored, theirs.sizes, ")"));
      continue;
    }
    if (theirs.sizes == mine.tensor.sizes() && parameters.contains(mine.tensor.storage().get()))
      deferred.emplace_back(mine.tensor, static_cast<size_t>(found));
    else if (theirs.sizes == mine.tensor.sizes())
      fitting.push_back(static_cast<size_t>(found));
    else
      result.misshapen.push_back(str(mine.name, " (expected ", mine.tensor.sizes(), ", got ", theirs.sizes, ")"));
  }
  for (const WeightInfo& theirs : file->tensors())
    if (!known.contains(theirs.name) && !nn::is_fp8_state(theirs.name)) result.unexpected.push_back(theirs.name);
  const std::string misfits = result.text(kShown);
  const std::string hint =
      before_all || prefixes.empty()
          ? ""
          : printable(str(". Of the names behind ", joined(prefixes, kShown), " most fit: --weights-prefix ",
                          prefixes[0], " (weft-weights: --prefix)"));
  WEFT_CHECK(result.is_whole() || (!options.strict && fitting.size() + deferred.size() > 0),
             "load_state_dict: the weights do not fit ", model.kind(),
             misfits.substr(std::min(misfits.find(';'), misfits.size())), hint);

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
  for (const auto& [weight, index] : deferred) note_later(*later, file, weight, index);
  if (later) later->add_source(line_of(*file), [file] { file->check(); });
  result.loaded = fitting.size() + deferred.size();
  return result;
}

}  // namespace weft::train
