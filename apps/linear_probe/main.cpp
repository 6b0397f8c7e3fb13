// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "apps/linear_probe/features.h"
#include "apps/linear_probe/logreg.h"
#include "apps/linear_probe/memory.h"
#include "apps/linear_probe/phase.h"
#include "apps/linear_probe/probe.h"
#include "core/autocast.h"
#include "core/autograd.h"
#include "core/choose_device.h"
#include "core/random.h"
#include "dist/fsdp/wrap_policy.h"
#include "io/safetensors.h"
#include "optim/layer_decay.h"
#include "train/record/class_names.h"
#include "train/training_main.h"

namespace weft::linear_probe {
namespace {

constexpr double kMostFeatureBytes = 8.0 * (int64_t{1} << 30);

train::StrategyOptions parallel_options(const Options& o, const dist::World& ranks) {
  train::StrategyOptions options = train::strategy_options(o, ranks.device());
  if (o.parallel == "auto") options.kind = ranks.size() > 1 ? "fsdp" : "none";
  return options;
}

std::string folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path().string() : ".";
}

/// The run of one process among its ranks.
class Run {
 public:
  Run(const Options& options, const dist::World& ranks)
      : options_(options),
        ranks_(ranks),
        deferred_(defers() ? std::make_shared<nn::DeferredInit>() : nullptr),
        backbone_(with_weights()),
        images_(options, ranks, options.image_size > 0 ? options.image_size : default_side()),
        session_(options, ranks, images_.classes(), is_sharded()) {
    WEFT_CHECK(images_.side() % backbone_->options.patch == 0, "--image-size: expected a multiple of the patch's ",
               backbone_->options.patch, " pixels, got ", images_.side());
    probe_ = std::make_shared<Probe>(backbone_, static_cast<int64_t>(images_.classes().size()));
  }

  void describe() {
    if (!ranks_.is_first()) return;
    if (ranks_.size() > 1) std::cout << "ranks   " << ranks_.describe() << '\n';
    std::cout << "device  " << weft::describe(ranks_.device()) << '\n'
              << "data    " << images_.describe() << '\n'
              << "model   " << options_.model << ", " << nn::parameter_count(*backbone_) << " parameters, weights "
              << options_.weights << ", " << options_.precision << '\n'
              << "run     " << options_.out << std::endl;
    if (images_.classes().size() == 1)
      std::cerr << "warning: the data has one class alone, so each guess is right\n" << std::flush;
  }

  /// The plan of run().
  std::string plan() const {
    if (options_.eval == "logreg")
      return str("a logistic regression for ", options_.logreg_values, " values of C; nothing is written");
    return str(options_.phases, ", ", options_.epochs, " epochs each, ",
               (images_.training_order().size() + options_.batch_size * options_.accumulate - 1) /
                   (options_.batch_size * options_.accumulate),
               " steps an epoch, ", parallel_options(options_, ranks_).kind, "; nothing is written");
  }

  train::RunEnd run() {
    if (options_.eval == "logreg") {
      run_logreg(options_, features(), images_.classes(), ranks_, session_.interruption()->signals);
      return train::RunEnd::finished;
    }
    const bool finished = (!options_.probes() || probe()) && (!options_.finetunes() || finetune());
    session_.write_summary(finished);
    if (!finished && ranks_.is_first())
      std::cout << session_.interruption()->stop.line(options_.program, session_.step(), options_.out) << std::endl;
    // A launcher may end the others when one rank ends with another code than 0: not before rank 0's files are whole.
    ranks_.wait_for_all("end of the run");
    return finished ? train::RunEnd::finished : session_.interruption()->stop.end();
  }

 private:
  bool is_sharded() const { return parallel_options(options_, ranks_).kind == "fsdp"; }
  /// Unless a fingerprint needs the weights on the host.
  bool defers() const { return is_sharded() && !options_.has_feature_file(); }
  train::StrategyOptions how_parallel() const {
    train::StrategyOptions how = parallel_options(options_, ranks_);
    how.deferred = deferred_;
    return how;
  }

  std::shared_ptr<nn::VisionTransformer> with_weights() {
    manual_seed(static_cast<uint64_t>(options_.seed));
    const nn::DeferredInit::Scope deferred(deferred_.get());
    if (options_.weights == "random") return make_backbone(options_.model, options_.checkpointing == "block");
    WEFT_CHECK(std::filesystem::exists(options_.weights), "--weights ", options_.weights,
               ": there is no such file. `tools/fetch_weights ", options_.model, ' ', folder_of(options_.weights),
               "` brings a published backbone there, `--weights random` starts from nothing");
    const nn::SkipInit loaded_anyway;
    auto backbone = make_backbone(options_.model, options_.checkpointing == "block");
    load_backbone(*backbone, options_.weights, options_.weights_key);
    return backbone;
  }
  int64_t default_side() const { return std::min<int64_t>(backbone_->options.image, 224); }

  /// Texts next to the tensors in written files.
  std::map<std::string, std::string> texts() const {
    return {{train::kClassNames, train::class_names_text(images_.classes())}};
  }

  bool keeps_features() const {
    if (options_.cache_features != "auto") return options_.cache_features != "off";
    const auto images = static_cast<double>(images_.size(data::Split::train) + images_.size(data::Split::val));
    return 4.0 * images * static_cast<double>(backbone_->options.width) <= kMostFeatureBytes;
  }

  data::Sampler validation_order() const {
    return data::Sampler(images_.size(data::Split::val), train::validation_order(ranks_));
  }

  /// The classifier alone learns. False, here and below: the run is to stop.
  bool probe() {
    if (!session_.begin("probe", 0)) return true;
    std::cout << ranks_.rank() << " linear probe" << std::endl;
    probe_->freeze();
    const auto head = std::make_shared<ProbeHead>(probe_);
    session_.load_model(*head);
    if (!(keeps_features() ? probe_features(head) : train(probe_, {.lr = options_.lr, .saved_prefix = "linear."})))
      return false;
    StateDict classifier = probe_->linear.state_dict();
    if (Record* record = session_.record())
      write_safetensors(record->folder.file("probe.safetensors"), classifier, texts());
    return true;
  }

  FeatureSets compute_features_of_both() {
    probe_->freeze();
    backbone_->eval();
    train::StrategyOptions how = how_parallel();
    if (how.kind != "fsdp") how.kind = "none";  // there are no gradients to bring together
    const auto parallel = train::make_strategy(how, probe_->m, ranks_);
    const auto run_backbone = [&](const Tensor& x) {
      const Autocast low(options_.dtype());
      return parallel->forward(x);
    };
    const FeatureSets sets{compute_features(images_, data::Split::train, ranks_, run_backbone),
                           compute_features(images_, data::Split::val, ranks_, run_backbone)};
    restore(*parallel, *probe_->m);
    return sets;
  }

  /// The backbone's features of each image, computed or from a file.
  FeatureSets features() {
    train::training_pauses();  // until the phase begins
    const auto compute = [this] { return compute_features_of_both(); };
    if (!options_.has_feature_file()) return compute();
    const std::string fingerprint =
        ranks_.is_first() ? features_fingerprint(*backbone_, images_, options_.model, options_.precision) : "";
    return features_of_file(options_.cache_features, fingerprint, ranks_, compute);
  }

  /// From what the backbone said of each image.
  bool probe_features(const std::shared_ptr<ProbeHead>& head) {
    const auto [training, validation] = features();
    const Tensor& like = validation.values;
    return train(head, {.lr = options_.lr, .saved_prefix = "linear."},
                 {.training = make_loader(training, images_.training_order(), options_.batch_size),
                  .validation = make_loader(validation, validation_order(), options_.batch_size),
                  .stand_in = Tensor::zeros({1, like.size(1)}, like.dtype(), like.device())});
  }

  bool finetune() {
    session_.begin("finetune", options_.probes() ? options_.epochs : 0);
    std::cout << ranks_.rank() << " finetuning" << std::endl;
    probe_->thaw();
    session_.load_model(*probe_);
    if (!train(probe_, {.lr = options_.lr / 8, .layer_decay = options_.layer_decay, .saved_prefix = ""})) return false;
    if (Record* record = session_.record())
      write_safetensors(record->folder.file("finetuned.safetensors"), probe_->state_dict(), texts());
    return true;
  }

  bool train(const std::shared_ptr<Probe>& model, const PhaseOptions& how) {
    return train(model, how,
                 {.training = images_.training(),
                  .validation = images_.in_order(data::Split::val, /*repeat=*/false),
                  .stand_in = Tensor::zeros({1, images_.side(), images_.side(), 3}, DType::f32, ranks_.device()),
                  .prepare = [this](const Tensor& x) { return images_.prepare(x); }});
  }

  bool train(const std::shared_ptr<nn::Module>& model, const PhaseOptions& how, PhaseData data) {
    train::StrategyOptions together = how_parallel();
    if (how.layer_decay < 1)
      together.order = optim::in_order(optim::by_layer(model->parameters(), {.factor = how.layer_decay}));
    const auto strategy = train::make_strategy(together, model, ranks_);
    const bool finished = run_phase(options_, ranks_, session_, *strategy, *model, how, std::move(data));
    restore(*strategy, *model);
    return finished;
  }

  /// A phase's weights go back into the module: sharded ones onto the host of rank 0, from which the next phase shares
  /// them.
  void restore(train::Strategy& parallel, nn::Module& model) {
    if (!parallel.is_sharded()) return;
    const StateDict whole = parallel.model_state();
    const NoGrad no_grad;
    for (const auto& [name, parameter] : model.parameters()) {
      const bool wants = parameter.requires_grad();
      const Tensor fresh = Tensor::empty(parameter.sizes(), parameter.dtype());
      parameter.requires_grad_(false);
      parameter.set_data(fresh);
      parameter.requires_grad_(wants);
    }
    if (ranks_.is_first()) model.load_state_dict(whole);
  }

  const Options& options_;
  const dist::World& ranks_;
  std::shared_ptr<nn::DeferredInit> deferred_;
  std::shared_ptr<nn::VisionTransformer> backbone_;
  Images images_;
  Session session_;
  std::shared_ptr<Probe> probe_;
};

/// The units of fsdp with their parameters, of a model without memory.
void explain_sharding(const Options& options) {
  const nn::SkipInit sizes_alone;
  Probe probe(make_backbone(options.model, false), 100);
  int64_t rest = nn::parameter_count(probe);
  const auto units = dist::choose_units(probe, dist::wrap_policy(probe, options.min_num_params));
  std::cout << options.model << " with a classifier of 100 classes, min_num_params " << options.min_num_params << ": "
            << units.size() << " units and the root\n";
  std::vector<std::pair<std::string, int64_t>> rows;
  for (const auto& [path, module] : units) {
    int64_t own = nn::parameter_count(*module);
    for (const auto& [inner, other] : units)
      if (inner.starts_with(path + '.')) own -= nn::parameter_count(*other);
    rows.emplace_back(path, own);
    rest -= own;
  }
  std::printf("%12lld  root\n", static_cast<long long>(rest));
  for (const auto& [path, count] : rows) std::printf("%12lld  %s\n", static_cast<long long>(count), path.c_str());
}

/// Prints the memory of a fine-tuning step, from a model without memory.
void explain_step(const Options& options) {
  const auto backbone = [&] {
    const nn::SkipInit sizes_alone;
    return make_backbone(options.model, false);
  }();
  const int64_t side = options.image_size > 0 ? options.image_size : std::min<int64_t>(backbone->options.image, 224);
  std::cout << explain_memory(options.model, backbone->options,
                              {.batch = options.batch_size, .side = side, .precision = options.dtype()});
}

int run(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return train::kExitOk;
  if (options.explain_sharding) {
    explain_sharding(options);
    return train::kExitOk;
  }
  if (options.explain_memory) {
    explain_step(options);
    return train::kExitOk;
  }
  const dist::World ranks = train::join_ranks(options);
  Run run(options, ranks);
  run.describe();
  return train::run_or_plan(options, ranks, run);
}

}  // namespace
}  // namespace weft::linear_probe

int main(int argc, char** argv) {
  const std::string program = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "linear_probe";
  return weft::train::training_main(program, [&] { return weft::linear_probe::run(argc, argv); });
}
