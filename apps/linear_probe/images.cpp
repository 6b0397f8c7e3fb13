// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/images.h"

#include <algorithm>
#include <filesystem>

#include "io/crc32c.h"
#include "train/exit.h"
#include "train/resume.h"

namespace weft::linear_probe {
namespace {

// Statistics of ImageNet's training images; white is 1. Every published backbone was trained with these.
const std::vector<float> kMean{0.485f, 0.456f, 0.406f}, kStd{0.229f, 0.224f, 0.225f};

/// The attributes that change when a program writes the file.
std::string state_of(const std::filesystem::path& file) {
  std::error_code ignored;
  return str(file.string(), ' ', std::filesystem::file_size(file, ignored), ' ',
             std::filesystem::last_write_time(file, ignored).time_since_epoch().count());
}

/// See Images::identity().
std::string identity_of(const data::Dataset& set) {
  uint32_t sum = 0;
  const auto add = [&](const void* bytes, int64_t count) { sum = crc32c(bytes, static_cast<size_t>(count), sum); };
  if (const data::Storage* all = set.storage()) {
    add(all->pixels, all->count * all->image_bytes());
    add(all->labels, all->count * static_cast<int64_t>(sizeof(int64_t)));
    return str(set.describe(), " with checksum ", sum);
  }
  for (int64_t i = 0; i < set.size(); ++i) {
    const std::string text = state_of(set.origin(i)) + '\n';
    add(text.data(), static_cast<int64_t>(text.size()));
  }
  return str(set.describe(), " with checksum of files ", sum);
}

}  // namespace

Images::Images(const Options& options, const dist::World& ranks, int64_t side)
    : options_(options),
      ranks_(ranks),
      side_(side),
      edge_(options.resize > 0 ? options.resize : side * 8 / 7),
      train_set_(data::open_dataset(options.data, data::Split::train)),
      val_set_(data::open_dataset(options.data, data::Split::val)) {
  WEFT_CHECK(train_set_->classes() == val_set_->classes(), "data: training and validation part have other classes");
  train::require_same_images(ranks, train_set_.get(), val_set_.get());
  WEFT_CHECK(train_set_->channels() == 3, "--data ", options.data, ": expected images of 3 channels, got ",
             train_set_->channels());
  if (edge_ < side_)
    throw train::UsageError(str("--resize: expected at least the input's ", side_, " pixels, got ", edge_));
  if (train_set_->storage() && val_set_->storage()) {
    resize_on_device();
    return;
  }
  if (edge_ != side_ * 8 / 7)
    throw train::UsageError(
        str("--resize: images of several sizes are resized to 8/7 of the input's ", side_, " pixels, not to ", edge_));
  pipeline_ = str("imagenet:", side_);
}

void Images::resize_on_device() {
  const data::Storage &train = *train_set_->storage(), &val = *val_set_->storage();
  WEFT_CHECK(train.height == val.height && train.width == val.width, "data: training images are ", train.height, "x",
             train.width, ", validation images ", val.height, "x", val.width);
  pipeline_ = "none";
  // vit_tiny4 sees small images as they are.
  if (train.height == side_ && train.width == side_ && options_.resize == 0) {
    edge_ = side_;
    return;
  }
  const int64_t shorter = std::min(train.height, train.width);
  const Size2d whole{train.height * edge_ / shorter, train.width * edge_ / shorter};
  const Resize2dWeights weights = resize2d_weights(
      {train.height, train.width}, whole,
      {.interpolation = options_.interpolation == "bicubic" ? Interpolation::bicubic : Interpolation::bilinear,
       .antialias = true},
      DType::f32);
  // Only the rows and columns of the centre are computed.
  const auto centre = [&](const Tensor& all, int64_t size) {
    return all.slice(0, (size - side_ + 1) / 2, side_).contiguous().to(ranks_.device());
  };
  resize_ = {centre(weights.rows, whole.h), centre(weights.columns, whole.w)};
}

std::string Images::describe() const {
  return str(train_set_->describe(), "; ", val_set_->describe(), "; shortest edge ", edge_, ", centre ", side_, "x",
             side_);
}

std::string Images::identity() const {
  std::string text = identity_of(*train_set_) + "; " + identity_of(*val_set_);
  // All images in one file (packed:FILE, hdf5:FILE): where one came from is no name of a file then.
  const std::string place = options_.data.substr(std::min(options_.data.find(':'), options_.data.size() - 1) + 1);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(place, ignored)) text += "; in " + state_of(place);
  return text;
}

std::string Images::preprocessing() const {
  return str("edge ", edge_, ", centre ", side_, ", ", options_.interpolation, ", ",
             resize_.rows.defined() ? "on the device" : pipeline_, ", mean and deviation of ImageNet");
}

const std::shared_ptr<const data::Dataset>& Images::set(data::Split split) const {
  return split == data::Split::train ? train_set_ : val_set_;
}

data::Sampler Images::training_order() const {
  return data::Sampler(train_set_->size(), train::training_order(options_, ranks_));
}

std::unique_ptr<data::ImageLoader> Images::training() const { return loader(data::Split::train, training_order()); }

std::unique_ptr<data::ImageLoader> Images::in_order(data::Split split, bool repeat) const {
  data::SamplerOptions options = train::validation_order(ranks_);
  if (repeat) options.tail = data::Tail::repeat;
  const data::Sampler order(set(split)->size(), options);
  return order.size() == 0 ? nullptr : loader(split, order);
}

std::unique_ptr<data::ImageLoader> Images::loader(data::Split split, data::Sampler order) const {
  const bool on_loader = !resize_.rows.defined();
  data::PipelineOptions changes;
  changes.crop.filter = options_.interpolation == "bicubic" ? data::Filter::bicubic : data::Filter::bilinear;
  const bool joined = order.options().tail == data::Tail::joined;
  data::ImageLoaderOptions loading = train::image_loading(options_, ranks_.device());
  loading.batch_size = std::min(options_.batch_size, joined ? order.most() : order.size());
  loading.mean = kMean, loading.std = kStd;
  return std::make_unique<data::ImageLoader>(
      set(split), order, data::make_pipeline(on_loader ? pipeline_ : "none", data::Split::val, changes), loading);
}

Tensor Images::prepare(const Tensor& images) const {
  return resize_.rows.defined() ? resize2d(images, resize_) : images;
}

}  // namespace weft::linear_probe
