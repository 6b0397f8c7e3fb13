// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/images.h"

#include <algorithm>
#include <filesystem>

#include "data/hdf5_images.h"
#include "data/image_folder.h"
#include "data/packed_images.h"
#include "io/home.h"
#include "train/run_options.h"

namespace weft::jsc {
namespace {

namespace fs = std::filesystem;

// Statistics of ImageNet's training images; white is 1.
const std::vector<float> kMean{0.485f, 0.456f, 0.406f}, kStd{0.229f, 0.224f, 0.225f};

/// `DIR` is `folder:DIR`.
std::string with_kind(const std::string& text) {
  constexpr const char* kKinds[] = {"folder:", "hdf5:", "packed:", "random:", "cifar10:"};
  const bool said =
      std::any_of(std::begin(kKinds), std::end(kKinds), [&](auto kind) { return text.starts_with(kind); });
  if (said) return text;
  WEFT_CHECK(fs::exists(text), "data: expected images in ", text,
             ", got nothing there. `tools/fetch_data hymenoptera data` brings the ants and bees to "
             "data/hymenoptera, --data names that or another place");
  return "folder:" + text;
}

/// The test part beside train and val; null where there is none.
std::shared_ptr<const data::Dataset> open_test(const std::string& text, const std::vector<std::string>& classes) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const fs::path place = expand_home(text.substr(colon + 1));
  const auto has = [](const std::vector<std::string>& parts) {
    const auto is = [&](const char* name) { return std::find(parts.begin(), parts.end(), name) != parts.end(); };
    return is("val") && is("test");
  };
  if (kind == "folder")
    for (const auto& [part, folder] : data::image_folder_parts(place))
      if (part == "test") return data::image_folder_root(folder, "folder test", classes);
  if (kind == "packed" && has(data::packed_parts(place))) return data::packed_images(place, "test");
  if (kind == "hdf5" && has(data::hdf5_parts(place))) return data::hdf5_images(place, "test");
  return nullptr;
}

}  // namespace

Images::Images(const Options& options, const dist::World& ranks) : options_(options), ranks_(ranks) {
  const std::string text = with_kind(options.data);
  train_ = data::open_dataset(text, data::Split::train);
  val_ = data::open_dataset(text, data::Split::val);
  WEFT_CHECK(train_->classes() == val_->classes(), "data: training and validation part have other classes (",
             train_->classes().size(), " and ", val_->classes().size(), ")");
  WEFT_CHECK(train_->channels() == 3, "data: expected images of 3 channels, got ", train_->channels());
  test_ = open_test(text, train_->classes());
  train::require_same_images(ranks, train_.get(), val_.get(), test_.get());
}

data::Sampler Images::order(const Set& set, bool training) const {
  return data::Sampler(set->size(),
                       training ? train::training_order(options_, ranks_) : train::validation_order(ranks_));
}

data::ImageLoaderOptions Images::loading(int64_t images) const {
  data::ImageLoaderOptions loading = train::image_loading(options_, ranks_.device());
  loading.batch_size = std::min(options_.batch_size, images);
  loading.mean = kMean, loading.std = kStd;
  return loading;
}

std::unique_ptr<data::ImageLoader> Images::training() const {
  const data::Sampler sampler = order(train_, true);
  data::ImageLoaderOptions options = loading(sampler.size());
  options.batch_size = options_.batch_size;  // more than there are is an error
  return std::make_unique<data::ImageLoader>(train_, sampler,
                                             data::make_pipeline(str("resize:", kSide), data::Split::train), options);
}

std::unique_ptr<data::ImageLoader> Images::in_order(const Set& set) const {
  const data::Sampler sampler = order(set, false);
  if (sampler.size() == 0) return nullptr;
  return std::make_unique<data::ImageLoader>(set, sampler, data::make_pipeline(str("resize:", kSide), data::Split::val),
                                             loading(sampler.size()));
}

int64_t Images::steps_per_epoch() const {
  const int64_t own = (train_->size() + ranks_.size() - 1) / ranks_.size();
  return (own + options_.batch_size - 1) / options_.batch_size;
}

std::string Images::describe() const {
  std::string text = str("train   ", train_->describe(), "\nval     ", val_->describe(), '\n');
  if (test_) text += str("test    ", test_->describe(), '\n');
  return text;
}

}  // namespace weft::jsc
