// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/ops/concat.h"
#include "core/text.h"
#include "io/weights/name_map.h"

namespace weft {
namespace {

/// PyTorch's wrappers add to the names of their modules: DistributedDataParallel and averages before all names,
/// torch.compile, FSDP and recomputation before any module's.
constexpr std::string_view kWrapped = "module.";
constexpr std::string_view kWrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."};
constexpr std::string_view kAveraged = "n_averaged";  // a counter beside the names of an AveragedModel

std::string without_wrappers(std::string name) {
  for (const std::string_view wrapper : kWrappers)
    for (size_t at = 0; (at = name.find(wrapper, at)) != std::string::npos;)
      if (at == 0 || name[at - 1] == '.')
        name.erase(at, wrapper.size());
      else
        at += wrapper.size();
  return name;
}

/// The names without wrappers, in the file's order. An AveragedModel's counter is no tensor of the model: it has no
/// name.
std::vector<std::optional<std::string>> unwrapped_names(const std::vector<WeightInfo>& tensors) {
  std::vector<std::string> names;
  for (const WeightInfo& info : tensors) names.push_back(without_wrappers(info.name));
  const auto is_wrapped = [](const std::string& name) { return name.starts_with(kWrapped); };
  const auto may_be = [&](const std::string& name) { return is_wrapped(name) || name == kAveraged; };
  bool averaged = false;
  // One wrapper may be in another: DistributedDataParallel of an average.
  while (std::any_of(names.begin(), names.end(), is_wrapped) && std::all_of(names.begin(), names.end(), may_be)) {
    for (std::string& name : names)
      if (is_wrapped(name)) name.erase(0, kWrapped.size());
    averaged = true;
  }
  std::vector<std::optional<std::string>> result(names.begin(), names.end());
  if (averaged) std::replace(result.begin(), result.end(), std::optional(std::string(kAveraged)), {});
  return result;
}

/// The tensors that have a name, under it.
std::vector<WeightInfo> named(std::vector<WeightInfo> tensors, const std::vector<std::optional<std::string>>& names) {
  std::vector<WeightInfo> result;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (names[i]) result.emplace_back(std::move(tensors[i])).name = *names[i];
  return result;
}

/// How a renamed tensor is made: one of the file's, several stacked, or part `part` of `parts`.
struct Recipe {
  std::vector<int64_t> sources;     ///< -1 where the part is missing
  std::vector<std::string> wanted;  ///< the sources' names
  size_t part = 0, parts = 1;
  bool turned = false;
};

class RenamedWeights : public WeightsFile {
 public:
  RenamedWeights(std::unique_ptr<WeightsFile> file, const RenameOptions& options) : file_(std::move(file)) {
    format_ = file_->format();
    metadata_ = file_->metadata();
    const auto& given = file_->tensors();
    std::vector<std::optional<std::string>> names = unwrapped_names(given);
    for (auto& name : names) {
      if (name && name->starts_with(options.prefix))
        name->replace(0, options.prefix.size(), options.put_first);
      else
        name.reset();
    }
    const std::string map = options.map == "auto" ? guess_name_map(named(given, names)) : options.map;
    if (!map.empty()) map_ = find_name_map(map);
    bool kept = false;
    for (size_t i = 0; i < given.size(); ++i) {
      if (names[i]) map_name(i, *names[i]);
      kept = kept || names[i];
    }
    WEFT_CHECK(kept || given.empty(), "weights: expected names that begin with '", printable(options.prefix),
               "', got none, such as '", printable(given.empty() ? "" : given[0].name), "'");
    for (const auto& [name, recipe] : planned_) {
      const std::string full = options.add_prefix + name;
      if (!options.leave_out.empty() && full.starts_with(options.leave_out)) continue;
      add(describe(full, recipe));
      recipes_.push_back(recipe);
    }
  }

  Tensor read(size_t index) const override {
    const Recipe& recipe = recipes_.at(index);
    if (recipe.sources.size() > 1) {
      std::vector<Tensor> parts;
      for (const int64_t source : recipe.sources) parts.push_back(file_->read(static_cast<size_t>(source)));
      return concat(parts, 0);
    }
    const Tensor whole = file_->read(static_cast<size_t>(recipe.sources[0]));
    if (recipe.turned) return whole.transpose(0, 1).contiguous();
    if (recipe.parts == 1) return whole;
    const int64_t rows = whole.size(0) / static_cast<int64_t>(recipe.parts);
    return whole.slice(0, static_cast<int64_t>(recipe.part) * rows, rows);
  }
  void check() const override { file_->check(); }
  Tensor read_block(size_t index, const WeightBlock& block) const override {
    const Recipe& recipe = recipes_.at(index);
    if (recipe.turned) {
      const int64_t columns = block.columns < 0 ? tensors()[index].sizes[1] - block.column : block.columns;
      const WeightBlock turned{block.column, columns, block.row, block.rows};
      return file_->read_block(static_cast<size_t>(recipe.sources[0]), turned).transpose(0, 1).contiguous();
    }
    const int64_t before = static_cast<int64_t>(recipe.part) * tensors()[index].sizes[0];  // rows of a tensor in parts
    std::vector<Tensor> parts;
    int64_t first = -(recipe.parts > 1 ? before : 0);  // this source's first row in the tensor
    for (const int64_t source : recipe.sources) {
      const int64_t rows = file_->tensors()[static_cast<size_t>(source)].sizes[0];
      const int64_t begin = std::max(block.row, first), end = std::min(block.row + block.rows, first + rows);
      WeightBlock own = block;
      own.row = begin - first, own.rows = end - begin;
      if (begin < end) parts.push_back(file_->read_block(static_cast<size_t>(source), own));
      first += rows;
    }
    return parts.size() == 1 ? parts[0] : concat(parts, 0);
  }

 private:
  void map_name(size_t source, std::string name) {
    for (const char* prefix : map_.prefixes)
      if (name.starts_with(prefix)) {
        name = name.substr(std::string_view(prefix).size());
        break;
      }
    if (name.size() <= kLongestMappedName)
      for (const NameRule& rule : map_.rules)
        if (const auto match = match_name(rule.from, name)) return apply(rule, *match, source, name);
    plan(name, name).sources[0] = static_cast<int64_t>(source);
  }

  void apply(const NameRule& rule, NameMatch match, size_t source, const std::string& name) {
    if (rule.to[0] == '\0') return;
    const auto number = static_cast<int64_t>(source);
    const size_t joined = words_of(rule.from).size(), cut = words_of(rule.to).size();
    if (joined > 0) {
      const std::string whole = fill_name(rule.to, match);
      const auto known = place_.find(whole);
      const size_t place = known == place_.end() ? planned_.size() : known->second;
      if (known == place_.end()) {
        place_[whole] = place;
        Recipe recipe{std::vector<int64_t>(joined, -1), {}};
        NameMatch each = match;
        for (each.word = 0; each.word < joined; ++each.word) recipe.wanted.push_back(fill_name(rule.from, each));
        planned_.emplace_back(whole, recipe);
      }
      planned_[place].second.sources.at(match.word) = number;
      return;
    }
    for (match.word = 0; match.word < std::max<size_t>(cut, 1); ++match.word) {
      Recipe& recipe = plan(fill_name(rule.to, match), name);
      recipe.sources[0] = number;
      recipe.part = match.word;
      recipe.parts = std::max<size_t>(cut, 1);
      recipe.turned = rule.turned;
    }
  }

  Recipe& plan(const std::string& name, const std::string& source) {
    WEFT_CHECK(place_.emplace(name, planned_.size()).second, "weights: expected each name once after renaming, got '",
               printable(name), "' twice, also from '", printable(source), "'");
    planned_.emplace_back(name, Recipe{{-1}, {source}});
    return planned_.back().second;
  }

  WeightInfo describe(const std::string& name, const Recipe& recipe) const {
    for (size_t i = 0; i < recipe.sources.size(); ++i)
      WEFT_CHECK(recipe.sources[i] >= 0, "weights: '", printable(name), "' is stacked from ", recipe.sources.size(),
                 " tensors: expected '", printable(recipe.wanted[i]), "', got none");
    WeightInfo info = file_->tensors()[static_cast<size_t>(recipe.sources[0])];
    info.name = name;
    if (recipe.turned) {
      WEFT_CHECK(info.sizes.rank() == 2, "weights: '", printable(recipe.wanted[0]), "': expected a matrix, got shape ",
                 info.sizes);
      std::swap(info.sizes[0], info.sizes[1]);
    }
    const auto parts = static_cast<int64_t>(recipe.parts);
    if (recipe.parts > 1) {
      WEFT_CHECK(info.sizes.rank() > 0 && info.sizes[0] % parts == 0, "weights: '", printable(recipe.wanted[0]),
                 "': expected rows for ", parts, " equal parts, got shape ", info.sizes);
      info.sizes[0] /= parts;
    }
    for (size_t i = 1; i < recipe.sources.size(); ++i) {
      const WeightInfo& next = file_->tensors()[static_cast<size_t>(recipe.sources[i])];
      Shape same = next.sizes;
      if (same.rank() > 0 && info.sizes.rank() == same.rank()) same[0] = info.sizes[0];
      WEFT_CHECK(info.sizes.rank() > 0 && same == info.sizes && next.dtype == info.dtype, "weights: '", printable(name),
                 "' is stacked: expected '", printable(recipe.wanted[i]), "' as ", info.dtype, " with rows of ",
                 info.sizes, ", got ", next.dtype, next.sizes);
      info.sizes[0] += next.sizes[0];
    }
    return info;
  }

  std::unique_ptr<WeightsFile> file_;
  NameMap map_{};
  std::vector<std::pair<std::string, Recipe>> planned_;  // in the file's order
  std::map<std::string, size_t> place_;
  std::vector<Recipe> recipes_;
};

/// A state dict as a file of weights.
class StateWeights final : public WeightsFile {
 public:
  explicit StateWeights(const StateDict& state) : state_(state) {
    format_ = "state dict";
    for (const NamedTensor& entry : state.tensors) add({entry.name, entry.tensor.dtype(), entry.tensor.sizes(), ""});
  }
  Tensor read(size_t index) const override { return state_.tensors[index].tensor.to(Device{}).contiguous(); }

 private:
  const StateDict& state_;
};

}  // namespace

std::unique_ptr<WeightsFile> renamed_weights(std::unique_ptr<WeightsFile> file, const RenameOptions& options) {
  return std::make_unique<RenamedWeights>(std::move(file), options);
}

StateDict renamed_state(const StateDict& state, const RenameOptions& options) {
  return RenamedWeights(std::make_unique<StateWeights>(state), options).read_all();
}

}  // namespace weft
