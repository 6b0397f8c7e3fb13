// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include "apps/support/flags.h"
#include "core/autocast.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "core/trace.h"
#include "io/weights/weights_file.h"
#include "nn/models/make_model.h"
#include "nn/models/vision_transformer.h"
#include "nn/summary.h"
#include "optim/optimizers.h"
#include "train/exit.h"
#include "train/load_weights.h"
#include "train/loader_task.h"
#include "train/record/class_names.h"
#include "train/record/stopwatch.h"

namespace weft::train_image {
namespace {

constexpr const char *kMean = "pixel_mean", *kStd = "pixel_std";

std::string joined(const std::vector<float>& values) {
  std::string out;
  for (const float value : values) out += (out.empty() ? "" : ",") + fmt::format("{}", value);
  return out;
}

std::vector<float> per_channel(const char* flag, const std::vector<double>& given, size_t channels) {
  if (given.size() != channels && given.size() != 1)
    throw train::UsageError(str("--", flag, ": expected ", channels, " numbers, one per channel, got ", given.size()));
  std::vector<float> result(channels);
  for (size_t c = 0; c < channels; ++c) result[c] = static_cast<float>(given[given.size() == 1 ? 0 : c]);
  return result;
}

/// The file's texts; nothing if the file cannot be read, since the loading of weights reports why.
std::map<std::string, std::string> metadata(const Options& options) {
  try {
    return open_weights(options.weights, {.key = options.weights_key})->metadata();
  } catch (const Error&) {
    return {};
  }
}

std::optional<PixelStatistics> of_weights(const Options& options, size_t channels) {
  if (options.weights.empty()) return {};
  const auto texts = metadata(options);
  const auto mean = texts.find(kMean), std = texts.find(kStd);
  if (mean == texts.end() || std == texts.end()) return {};
  const auto read = [&](const auto& text) {
    return per_channel(text->first.c_str(), support::parse_list(options.weights, text->second, channels), channels);
  };
  return PixelStatistics{read(mean), read(std), options.weights};
}

PixelStatistics of_set(const data::Dataset& set, const char* part, const Options& options) {
  const data::ChannelStatistics all = data::channel_statistics(set, static_cast<int>(options.workers));
  return {{all.mean.begin(), all.mean.end()}, {all.std.begin(), all.std.end()}, str("the ", part, " part")};
}

/// Whatever keeps the training part from being read, --eval-only needs it for nothing else.
std::shared_ptr<const data::Dataset> training_part_if_there(const Options& options) {
  try {
    return data::open_dataset(options.data, data::Split::train);
  } catch (const Error&) {
    return nullptr;
  }
}

PixelStatistics measured(const Options& options, const data::Dataset* train, const data::Dataset& val) {
  if (train != nullptr) return of_set(*train, "training", options);
  if (const auto known = of_weights(options, static_cast<size_t>(val.channels()))) return *known;
  const auto there = training_part_if_there(options);
  return there && there->channels() == val.channels() ? of_set(*there, "training", options)
                                                      : of_set(val, "validation", options);
}

/// --mean and --std where they are given. Else of the training part; with --eval-only first what the file of --weights
/// says (texts()), and where there is neither, of the validation part. `train` may be null, `val` not. Errors:
/// UsageError for another count of channels or a deviation that is not positive.
PixelStatistics pixel_statistics(const Options& options, const data::Dataset* train, const data::Dataset& val) {
  PixelStatistics result;
  const auto channels = static_cast<size_t>(val.channels());
  if (options.mean.empty() || options.std.empty()) result = measured(options, train, val);
  if (!options.mean.empty()) result.mean = per_channel("mean", options.mean, channels);
  if (!options.std.empty()) result.std = per_channel("std", options.std, channels);
  if (!options.mean.empty() && !options.std.empty()) result.origin = "--mean and --std";
  for (const float value : result.std)
    if (!(value > 0)) throw train::UsageError(str("--std: expected positive numbers, got ", value));
  return result;
}

constexpr int64_t kSmallImage = 64;  // up to here a CIFAR network and stem are the default

data::PipelineOptions pipeline_options(const Options& o) {
  data::PipelineOptions changes;
  changes.crop.filter = o.interpolation == "bicubic" ? data::Filter::bicubic : data::Filter::bilinear;
  if (!o.crop_scale.empty()) changes.crop.least_area = o.crop_scale[0], changes.crop.most_area = o.crop_scale[1];
  if (!o.crop_ratio.empty()) changes.crop.least_ratio = o.crop_ratio[0], changes.crop.most_ratio = o.crop_ratio[1];
  if (const auto& j = o.color_jitter; !j.empty())
    changes.jitter = {.brightness = j[0], .contrast = j[1], .saturation = j[2], .hue = j[3]};
  changes.erasing.probability = o.random_erasing;
  return changes;
}

data::TransformOn transform_on(const std::string& word) {
  return word == "host"     ? data::TransformOn::host
         : word == "device" ? data::TransformOn::device
                            : data::TransformOn::automatic;
}

template <class T>
std::unique_ptr<optim::Optimizer> made(const Options& o, const auto& parameters, auto how) {
  how.lr = o.lr;
  how.weight_decay = o.weight_decay;
  return std::make_unique<T>(parameters, how);
}

Tensor forward(Experiment& e, const Tensor& images) {
  const Autocast low(e.options.dtype());
  return e.strategy->forward(images);
}

}  // namespace

std::map<std::string, std::string> PixelStatistics::texts() const {
  return {{kMean, joined(mean)}, {kStd, joined(std)}};
}

Experiment::Experiment(const Options& given, const dist::World& all)
    : options(given), ranks(all), device(all.device()) {
  manual_seed(static_cast<uint64_t>(options.seed));
  open_sets();
  make_loaders();
  make_model();
  if (options.summary) summary = nn::summary(*model, {1, height, width, channels});
  strategy = train::make_strategy(train::strategy_options(options, device), model, ranks);
}

void Experiment::open_sets() {
  const bool on_gpu = options.decode_on == "gpu";
  if (on_gpu && device.kind != DeviceKind::cuda)
    throw train::UsageError(str("--decode-on gpu: expected --device cuda, got ", device));
  const data::DecodeOptions decoding{.gpu = on_gpu ? device.index : -1};
  val_set = data::open_dataset(options.data, options.eval_only ? data::Split::evaluation : data::Split::val, decoding);
  if (!options.eval_only) {
    train_set = data::open_dataset(options.data, data::Split::train, decoding);
    WEFT_CHECK(train_set->classes() == val_set->classes(), "data: training and validation part have other classes (",
               train_set->classes().size(), " and ", val_set->classes().size(), ")");
  }
  match_classes();
  train::require_same_images(ranks, train_set.get(), val_set.get());
  classes = static_cast<int>(val_set->classes().size());
  channels = val_set->channels();
}

/// The labels count as those that the weights were trained with.
void Experiment::match_classes() {
  if (options.weights.empty()) return;
  const auto how = options.eval_only                 ? train::MatchClasses::evaluate
                   : options.weights_strict == "yes" ? train::MatchClasses::same
                                                     : train::MatchClasses::start_from;
  const auto saved = train::class_names_of(metadata(options));
  const auto [order, note] = train::match_classes(options.weights, saved, val_set->classes(), how);
  class_note = note;
  if (order.empty()) return;
  val_set = data::with_classes(val_set, order);
  if (train_set) train_set = data::with_classes(train_set, order);
}

std::map<std::string, std::string> Experiment::texts() const {
  auto texts = pixels.texts();
  texts[train::kClassNames] = train::class_names_text(val_set->classes());
  return texts;
}

void Experiment::make_loaders() {
  const data::Storage* fixed = val_set->storage();
  options.augment = data::resolve_pipeline(options.augment, options.data);
  const size_t plus = std::min(options.augment.find('+'), options.augment.size());
  std::string geometry = options.augment.substr(0, plus);
  const bool sized = geometry.find(':') != std::string::npos;
  if (!sized && (geometry == "imagenet" || fixed == nullptr || options.image_size > 0))
    geometry += str(':', options.image_size > 0 ? options.image_size : 224);
  const std::string pipeline = geometry + options.augment.substr(plus);
  data::PipelineOptions changes = pipeline_options(options);
  const data::Pipeline val_pipeline = data::make_pipeline(pipeline, data::Split::val, changes);
  height = val_pipeline.height > 0 ? val_pipeline.height : fixed->height;
  width = val_pipeline.width > 0 ? val_pipeline.width : fixed->width;

  pixels = pixel_statistics(options, train_set.get(), *val_set);
  data::ImageLoaderOptions loading = train::image_loading(options, device);
  loading.transform_on = transform_on(options.transform_on);
  loading.mean = pixels.mean, loading.std = pixels.std;
  for (const float value : loading.mean)  // erased pixels are 0 after normalisation, up to the rounding to a byte
    changes.erasing.fill.push_back(static_cast<uint8_t>(std::clamp(std::lround(value * 255), 0L, 255L)));
  if (train_set)
    train_loader = std::make_unique<data::ImageLoader>(
        train_set, data::Sampler(train_set->size(), train::training_order(options, ranks)),
        data::make_pipeline(pipeline, data::Split::train, changes), loading);
  const data::Sampler order(val_set->size(), train::validation_order(ranks));
  if (order.size() == 0) return;
  loading.batch_size = std::min(std::max<int64_t>(options.batch_size, 1), order.size());
  val_loader = std::make_unique<data::ImageLoader>(val_set, order, val_pipeline, loading);
}

void Experiment::make_model() {
  const bool small = std::max(height, width) <= kSmallImage;
  if (options.model == "auto") options.model = small ? "resnet20" : "resnet18";
  if (options.stem == "auto") options.stem = small ? "cifar" : "imagenet";
  train::defer_weights(options);
  const nn::DeferredInit::Scope deferred(options.deferred.get());
  model =
      nn::make_model(options.model, classes, options.stem == "cifar" ? nn::Stem::cifar : nn::Stem::imagenet, channels);
  if (options.recompute) {
    auto* const blocks = dynamic_cast<nn::VisionTransformer*>(model.get());
    if (blocks == nullptr)
      throw train::UsageError("--recompute: expected a model of transformer blocks, such as vit_small16, got " +
                              options.model);
    blocks->options.recompute = true;
  }
  if (options.eval_only && options.weights.empty() && ranks.is_first())
    std::cerr << "warning: --eval-only without --weights FILE evaluates random weights\n" << std::flush;
  if (!options.weights.empty()) {
    const train::LoadWeightsOptions loading{.strict = options.weights_strict == "yes",
                                            .key = options.weights_key,
                                            .rename = {.prefix = options.weights_prefix, .map = "auto"}};
    try {
      const train::LoadedWeights loaded = train::load_weights(*model, options.weights, loading);
      if (!loaded.is_whole() && ranks.is_first())
        std::cout << "weights " << options.weights << ": " << loaded.text(20) << std::endl;
    } catch (const Error& error) {
      fail("--weights ", options.weights, ": ", error.what());
    }
  }
  train::place(options, *model, device);
}

std::unique_ptr<optim::Optimizer> Experiment::make_optimizer() const {
  const Options& o = options;
  const auto parameters = strategy->parameters();
  const auto groups = [&] { return optim::without_decay_on_vectors(parameters); };
  if (o.optimizer == "sgd")
    return made<optim::SGD>(o, parameters, optim::SgdOptions{.momentum = o.momentum, .nesterov = o.momentum > 0});
  if (o.optimizer == "adam") return made<optim::Adam>(o, parameters, optim::AdamOptions());
  if (o.optimizer == "adamw") return made<optim::AdamW>(o, parameters, optim::AdamWOptions());
  if (o.optimizer == "rmsprop")
    return made<optim::RMSprop>(o, parameters, optim::RMSpropOptions{.momentum = o.momentum});
  if (o.optimizer == "adagrad") return made<optim::Adagrad>(o, parameters, optim::AdagradOptions());
  if (o.optimizer == "lion") return made<optim::Lion>(o, parameters, optim::LionOptions());
  if (o.optimizer == "lars") return made<optim::LARS>(o, groups(), optim::LarsOptions{.momentum = o.momentum});
  if (o.optimizer == "lamb") return made<optim::LAMB>(o, groups(), optim::LambOptions());
  return made<optim::Adadelta>(o, parameters, optim::AdadeltaOptions());
}

optim::SchedulePtr Experiment::make_schedule() const {
  const Options& o = options;
  const int64_t total = total_steps();
  const double asked = o.warmup * static_cast<double>(steps_per_epoch());  // may be more than an int64_t
  const int64_t warmup = std::llround(std::min(asked, static_cast<double>(total - 1)));
  if (o.schedule == "onecycle")
    return std::make_shared<optim::OneCycleSchedule>(optim::OneCycleOptions{.max_lr = o.lr, .steps = total});
  optim::SchedulePtr main;
  if (o.schedule == "cosine") {
    main = std::make_shared<optim::CosineSchedule>(std::max<int64_t>(total - warmup, 1));
  } else if (o.schedule == "polynomial") {
    main = std::make_shared<optim::PolynomialSchedule>(std::max<int64_t>(total - warmup, 1), o.power);
  } else if (o.schedule == "step") {
    std::vector<int64_t> milestones;
    for (const double share : o.milestones)
      milestones.push_back(std::llround(share * static_cast<double>(total)) - warmup);
    main = std::make_shared<optim::MultiStepSchedule>(milestones);
  } else {
    main = std::make_shared<optim::LinearSchedule>(1, optim::LinearScheduleOptions{.start = 1, .end = 1});
  }
  return optim::after_warmup(std::max<int64_t>(warmup, 0), 1.0 / static_cast<double>(warmup + 1), main);
}

Evaluation evaluate(Experiment& e, train::Progress& progress) {
  const TraceScope scope("evaluate");
  const bool was_training = e.model->is_training();
  e.model->eval();
  const train::Stopwatch watch;
  Evaluation result;
  if (e.classes <= kMostConfused) result.confusion.emplace(e.classes);
  std::vector<double> sums(3);  // the losses' sum, right guesses, images
  const auto each = [&](const data::Batch& batch) {
    const Tensor logits = forward(e, batch.images);
    sums[0] += cross_entropy(logits, batch.labels, {.reduction = Reduction::sum}).item();
    const std::vector<int64_t> guesses = argmax(logits, 1).to_vector<int64_t>();
    const std::vector<int64_t> truths = batch.labels.to_vector<int64_t>();
    for (size_t i = 0; i < truths.size(); ++i) {
      sums[1] += truths[i] == guesses[i];
      if (result.confusion) result.confusion->add(truths[i], guesses[i]);
    }
    sums[2] += static_cast<double>(truths.size());
  };
  train::evaluate_batches(e.ranks, *e.strategy, progress, "validation", e.val_loader.get(), each, [&] {
    forward(e, Tensor::zeros({1, e.height, e.width, e.channels}, DType::f32, e.device));
  });
  if (result.confusion)
    for (const int64_t count : result.confusion->counts()) sums.push_back(static_cast<double>(count));
  sums = e.ranks.sum(sums, "evaluation");
  result.correct = std::llround(sums[1]);
  result.images = std::llround(sums[2]);
  if (result.confusion) {
    std::vector<int64_t> counts;
    for (size_t i = 3; i < sums.size(); ++i) counts.push_back(std::llround(sums[i]));
    result.confusion->set_counts(std::move(counts));
  }
  const double images = static_cast<double>(result.images);
  result.loss = sums[0] / images;
  result.accuracy = static_cast<double>(result.correct) / images;
  result.images_per_second = images / watch.seconds();
  e.model->train(was_training);
  return result;
}

}  // namespace weft::train_image
