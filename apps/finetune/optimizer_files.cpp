// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/optimizer_files.h"

#include <algorithm>
#include <sstream>

#include "apps/finetune/bert_files.h"
#include "core/ops/reduce.h"
#include "io/weights/name_map.h"
#include "train/torch_optimizer.h"

namespace weft::finetune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMoments[] = {"exp_avg", "exp_avg_sq"};

TorchObject object(auto value) { return TorchObject{std::move(value)}; }
TorchObject text_dict(std::vector<std::pair<std::string, TorchObject>> entries) {
  TorchObject::Dict dict;
  for (auto& [key, value] : entries) dict.emplace_back(key, std::move(value));
  return object(std::move(dict));
}

/// The parameters of Hugging Face's …ForSequenceClassification (transformers 5.24) in the order of its modules.
std::vector<std::string> published_order(const nn::BertOptions& options) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& module, std::initializer_list<const char*> tensors) {
    for (const char* tensor : tensors) names.push_back(module + '.' + tensor);
  };
  const auto modules = [&](const std::string& parent, std::initializer_list<const char*> children) {
    for (const char* child : children)
      if (const std::string_view name = child; name.ends_with("_embeddings"))
        add(parent + child, {"weight"});
      else
        add(parent + child, {"weight", "bias"});
  };
  const bool roberta = options.kind == nn::BertKind::roberta;
  if (options.kind == nn::BertKind::distilbert) {
    modules("distilbert.embeddings.", {"word_embeddings", "position_embeddings", "LayerNorm"});
    for (int64_t i = 0; i < options.depth; ++i)
      modules(str("distilbert.transformer.layer.", i, '.'),
              {"attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm",
               "ffn.lin1", "ffn.lin2", "output_layer_norm"});
    modules("", {"pre_classifier", "classifier"});
    return names;
  }
  const std::string encoder = roberta ? "roberta." : "bert.";
  if (roberta)
    modules(encoder + "embeddings.", {"word_embeddings", "token_type_embeddings", "LayerNorm", "position_embeddings"});
  else
    modules(encoder + "embeddings.", {"word_embeddings", "position_embeddings", "token_type_embeddings", "LayerNorm"});
  for (int64_t i = 0; i < options.depth; ++i)
    modules(str(encoder, "encoder.layer.", i, '.'),
            {"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
             "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"});
  if (roberta)
    modules("", {"classifier.dense", "classifier.out_proj"});
  else
    modules("", {"bert.pooler.dense", "classifier"});
  return names;
}

/// The published names of an optimizer's groups, one after the other, and how many each group has.
struct Numbering {
  std::vector<std::string> names;
  std::vector<size_t> sizes;
};

Numbering number(const optim::Optimizer& optimizer, const nn::BertOptions& model) {
  const std::vector<std::string> order = published_order(model);
  Numbering result;
  for (int group = 0; group < optimizer.groups(); ++group) {
    StateDict shapes;  // three rows each, so that a stacked tensor can be cut
    for (const NamedTensor& parameter : optimizer.parameters(group))
      shapes.tensors.push_back({parameter.name, Tensor::zeros({3})});
    std::vector<ptrdiff_t> places;
    for (const NamedTensor& entry : renamed_state(shapes, {.map = "to_" + hf_names(model.kind)}).tensors) {
      const auto found = std::find(order.begin(), order.end(), entry.name);
      WEFT_CHECK(found != order.end(), "optimizer.pt: no place for parameter '", entry.name, "'");
      places.push_back(found - order.begin());
    }
    std::sort(places.begin(), places.end());
    for (const ptrdiff_t place : places) result.names.push_back(order[static_cast<size_t>(place)]);
    result.sizes.push_back(places.size());
  }
  return result;
}

/// The moments of a kind in optimizer.pt, under the published names of their parameters.
class Moments : public WeightsFile {
 public:
  Moments(const std::string& path, const std::string& kind, const std::vector<std::string>& names)
      : file_(open_torch(path, "state")) {
    for (size_t i = 0; i < names.size(); ++i) {
      places_.push_back(static_cast<size_t>(file_->find(str(i, '.', kind))));
      WEFT_CHECK(places_[i] < file_->tensors().size(), path, ": expected a tensor ", kind, " of parameter ", i);
      WeightInfo info = file_->tensors()[places_[i]];
      info.name = names[i];
      add(info);
    }
  }
  Tensor read(size_t index) const override { return file_->read(places_.at(index)); }
  Tensor read_block(size_t index, const WeightBlock& block) const override {
    return file_->read_block(places_.at(index), block);
  }

 private:
  std::unique_ptr<WeightsFile> file_;
  std::vector<size_t> places_;  // in the file
};

/// Not rng_state.pth: Hugging Face's Trainer ends in an error where that lacks Python's, numpy's and PyTorch's
/// generators.
std::string file_of_rank(int rank, int ranks) {
  return ranks == 1 ? "weft_rng_state.pth" : str("weft_rng_state_", rank, ".pth");
}

}  // namespace

void save_optimizer(const fs::path& folder, const StateDict& state, const optim::AdamW& optimizer,
                    const nn::BertOptions& model) {
  std::vector<StateDict> moments;
  for (const std::string kind : kMoments) {
    StateDict own;
    for (const NamedTensor& entry : state.tensors)
      if (entry.name.ends_with('.' + kind))
        own.tensors.push_back({entry.name.substr(0, entry.name.size() - kind.size() - 1), entry.tensor});
    moments.push_back(renamed_state(own, {.map = "to_" + hf_names(model.kind)}));
  }
  const Numbering numbering = number(optimizer, model);
  StateDict counts;  // three rows each, so that a stacked tensor can be cut
  for (int group = 0; group < optimizer.groups(); ++group)
    for (const NamedTensor& parameter : optimizer.parameters(group))
      counts.tensors.push_back({parameter.name, Tensor::full({3}, optim::steps_of(state, parameter.name))});
  counts = renamed_state(counts, {.map = "to_" + hf_names(model.kind)});
  TorchObject::Dict states;  // each with a step of its own: torch.optim counts in place
  for (const std::string& name : numbering.names)
    states.emplace_back(static_cast<int64_t>(states.size()),
                        text_dict({{"step", object(counts.tensor(name).select(0, 0).clone())},
                                   {kMoments[0], object(moments[0].tensor(name))},
                                   {kMoments[1], object(moments[1].tensor(name))}}));
  TorchObject::List param_groups;
  int64_t next = 0;
  for (int group = 0; group < optimizer.groups(); ++group) {
    TorchObject::List members;
    for (size_t i = 0; i < numbering.sizes[static_cast<size_t>(group)]; ++i) members.push_back(object(next++));
    TorchObject::Dict entries{{"lr", object(optimizer.lr(group))}};
    for (auto& [key, value] : train::torch_options(optim::AdamOptions{.weight_decay = optimizer.weight_decay(group)}))
      entries.emplace_back(key, value);
    entries.emplace_back("decoupled_weight_decay", object(true));
    entries.emplace_back("initial_lr", object(optimizer.base_lr(group)));
    entries.emplace_back("params", object(std::move(members)));
    param_groups.push_back(object(std::move(entries)));
  }
  write_torch(folder / "optimizer.pt",
              text_dict({{"state", object(std::move(states))}, {"param_groups", object(std::move(param_groups))}}));
}

void load_optimizer(const fs::path& folder, train::Strategy& strategy, optim::AdamW& optimizer,
                    const nn::BertOptions& model) {
  const std::string path = (folder / "optimizer.pt").string();
  const TorchObject file =
      read_torch(path, [](const std::string& name) { return name.starts_with("state.") && !name.ends_with(".step"); });
  const Numbering numbering = number(optimizer, model);
  const size_t groups = numbering.sizes.size();
  const auto* param_groups = std::get_if<TorchObject::List>(&file.at("param_groups", path).is);
  const auto* states = std::get_if<TorchObject::Dict>(&file.at("state", path).is);
  WEFT_CHECK(param_groups && states && param_groups->size() == groups && states->size() == numbering.names.size(), path,
             ": expected ", groups, " parameter groups and the state of ", numbering.names.size(), " parameters, got ",
             param_groups ? param_groups->size() : 0, " and ", states ? states->size() : 0);
  StateDict result = optimizer.state_dict(), counts;
  result.scalars.clear();
  for (const std::string kind : kMoments)
    train::read_parts(
        strategy,
        *renamed_weights(std::make_unique<Moments>(path, kind, numbering.names), {.map = hf_names(model.kind)}),
        '.' + kind, result);
  for (const auto& [key, state] : *states) {
    const int64_t* place = std::get_if<int64_t>(&key);
    WEFT_CHECK(place && *place >= 0 && *place < static_cast<int64_t>(numbering.names.size()), path,
               ": expected states of parameters 0 to ", numbering.names.size() - 1);
    const TorchObject& step = state.at("step", path);
    const auto* counted = std::get_if<Tensor>(&step.is);
    counts.tensors.push_back({numbering.names[static_cast<size_t>(*place)],
                              Tensor::full({1}, counted ? counted->item() : step.number(path))});
  }
  double most = 0;
  counts = renamed_state(counts, {.map = hf_names(model.kind)});
  for (const NamedTensor& entry : counts.tensors) {
    const double steps = max(entry.tensor).item();
    WEFT_CHECK(steps == min(entry.tensor).item(), path, ": expected as many steps of all parts of '", entry.name,
               "', got ", min(entry.tensor).item(), " and ", steps);
    result.scalars.push_back({entry.name + ".step", steps});
    most = std::max(most, steps);
  }
  result.scalars.push_back({"step", most});
  for (size_t g = 0; g < groups; ++g)
    result.scalars.push_back({str("group", g, ".lr"), (*param_groups)[g].at("lr", path).number(path)});
  optimizer.load_state_dict(result);
}

void save_scheduler(const fs::path& folder, const optim::Optimizer& optimizer, int64_t step) {
  TorchObject::List base, last, functions;
  for (int group = 0; group < optimizer.groups(); ++group) {
    base.push_back(object(optimizer.base_lr(group)));
    last.push_back(object(optimizer.lr(group)));
    functions.push_back(object(TorchObject::Dict{}));
  }
  write_torch(folder / "scheduler.pt", text_dict({{"base_lrs", object(std::move(base))},
                                                  {"last_epoch", object(step)},
                                                  {"_step_count", object(step + 1)},
                                                  {"_get_lr_called_within_step", object(false)},
                                                  {"_last_lr", object(std::move(last))},
                                                  {"lr_lambdas", object(std::move(functions))}}));
}

int64_t load_scheduler(const fs::path& folder) {
  const std::string path = (folder / "scheduler.pt").string();
  return read_torch(path).at("last_epoch", path).integer(path);
}

std::vector<RandomGenerator> generators_of_ranks(const dist::World& world) {
  const RandomGenerator own = generator(world.device());
  std::vector<RandomGenerator> generators;
  for (const std::string& text : world.texts(str(own.seed, ' ', own.offset), "random states")) {
    std::istringstream in(text);
    in >> generators.emplace_back().seed >> generators.back().offset;
  }
  return generators;
}

void save_generators(const fs::path& folder, const std::vector<RandomGenerator>& of_ranks) {
  const int ranks = static_cast<int>(of_ranks.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const RandomGenerator& one = of_ranks[static_cast<size_t>(rank)];
    write_torch(
        folder / file_of_rank(rank, ranks),
        text_dict({{"weft", text_dict({{"philox_seed", object(static_cast<int64_t>(one.seed ^ seed_of_rank(rank)))},
                                       {"philox_offset", object(static_cast<int64_t>(one.offset))}})}}));
  }
}

bool load_generator(const fs::path& folder, int rank, int ranks, RandomGenerator& generator) {
  const std::string name = file_of_rank(rank, ranks);
  fs::path file = folder / name;
  if (!fs::exists(file)) file = folder / name.substr(std::string("weft_").size());  // as earlier versions called it
  if (!fs::exists(file)) return false;
  const std::string path = file.string();
  const TorchObject all = read_torch(file);
  const TorchObject* own = all.find("weft");
  if (!own) return false;
  generator = {static_cast<uint64_t>(own->at("philox_seed", path).integer(path)) ^ seed_of_rank(rank),
               static_cast<uint64_t>(own->at("philox_offset", path).integer(path))};
  return true;
}

}  // namespace weft::finetune
