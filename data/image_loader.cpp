// SPDX-License-Identifier: Apache-2.0
#include "data/image_loader.h"

#include <cstring>

#include "core/ops/layers/image.h"
#include "core/text.h"
#include "core/trace.h"
#include "data/dataset.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

/// Whether whole u8 images and their windows travel, for kernels::image_normalize; else the workers finish them.
bool finished_on_device(const ImageLoaderOptions& options) {
  if (options.dtype == DType::u8) return false;
  if (options.transform_on == TransformOn::host) {
    WEFT_CHECK(options.dtype == DType::f32, "loader: expected f32 of images that are normalised on the host, got ",
               options.dtype);
    return false;
  }
  if (options.transform_on == TransformOn::device) return true;
  return options.device.kind != DeviceKind::cpu || options.dtype != DType::f32;
}

struct Size {
  int64_t height = 0, width = 0, channels = 0;
  int64_t count() const { return height * width * channels; }
  bool operator==(const Size&) const = default;
};

}  // namespace

/// An image's steps: fetched, augmented, given a window, and laid down in the batch as it travels.
class ImageLoader::Collator {
 public:
  Collator(std::shared_ptr<const Dataset> set, Pipeline pipeline, ImageLoaderOptions options);
  static Collation collation(const std::shared_ptr<const Collator>& collator);
  const ImageLoaderOptions& options() const { return options_; }

 private:
  void choose_normalisation();
  void find_sizes();
  bool is_as_stored() const { return set_->storage() != nullptr && !pipeline_.prepare; }
  Image prepared(int64_t index, Draw& draw) const;
  void write(int64_t index, Draw& draw, const Row& row) const;
  std::vector<Tensor> finish(const std::vector<Tensor>& arrived) const;

  std::shared_ptr<const Dataset> set_;
  Pipeline pipeline_;
  ImageLoaderOptions options_;
  bool on_device_;
  NormalizeTable table_;
  Size stored_;  ///< size of an image before its window is cut out
  Size seen_;    ///< size of an image for the model
};

ImageLoader::Collator::Collator(std::shared_ptr<const Dataset> set, Pipeline pipeline, ImageLoaderOptions options)
    : set_(std::move(set)), pipeline_(std::move(pipeline)), options_(std::move(options)) {
  const bool known = options_.dtype == DType::f32 || options_.dtype == DType::f64 || options_.dtype == DType::bf16 ||
                     options_.dtype == DType::u8;
  WEFT_CHECK(known, "loader: expected images in f32, f64, bf16 or u8, got ", options_.dtype);
  on_device_ = finished_on_device(options_);
  WEFT_CHECK(options_.mean.size() == options_.std.size(), "loader: expected mean and std of the same length, got ",
             options_.mean.size(), " and ", options_.std.size());
  if (options_.dtype != DType::u8) choose_normalisation();
  find_sizes();
}

void ImageLoader::Collator::choose_normalisation() {
  if (options_.mean.empty()) {
    const ChannelStatistics& statistics = channel_statistics(*set_);
    options_.mean.assign(statistics.mean.begin(), statistics.mean.end());
    options_.std.assign(statistics.std.begin(), statistics.std.end());
  }
  WEFT_CHECK(static_cast<int64_t>(options_.mean.size()) == set_->channels(), "loader: expected mean and std of ",
             set_->channels(), " channels, got ", options_.mean.size());
  for (size_t c = 0; c < options_.mean.size(); ++c)
    WEFT_CHECK(options_.mean[c] >= 0 && options_.mean[c] <= 1,
               "loader: expected means from 0 to 1, where white is 1, got ", options_.mean[c], " for channel ", c,
               ". Divide those of bytes by 255");
  table_ = NormalizeTable(options_.mean, options_.std);
}

void ImageLoader::Collator::find_sizes() {
  if (is_as_stored()) {
    stored_ = {set_->storage()->height, set_->storage()->width, set_->storage()->channels};
  } else {
    stored_ = {pipeline_.height, pipeline_.width, set_->channels()};
    if (pipeline_.height == 0) {  // the first image sets the size, the others are held to it
      const Image first = set_->get(0);
      stored_ = {first.height, first.width, first.channels};
    }
  }
  seen_ = stored_;
  if (pipeline_.height > 0) seen_.height = pipeline_.height, seen_.width = pipeline_.width;
}

Image ImageLoader::Collator::prepared(int64_t index, Draw& draw) const {
  Image image;
  {
    const TraceScope scope("decode");
    image = set_->get(index);
  }
  if (!pipeline_.prepare) return image;
  const TraceScope scope("augment");
  return pipeline_.prepare(std::move(image), draw);
}

void ImageLoader::Collator::write(int64_t index, Draw& draw, const Row& row) const {
  Image image;
  ImageView view;
  if (is_as_stored()) {
    const Storage& all = *set_->storage();
    view = {all.image(index), all.height, all.width, all.channels};
    *row.part<int64_t>(1) = all.labels[index];
  } else {
    image = prepared(index, draw);
    view = {image.pixels.data(), image.height, image.width, image.channels};
    *row.part<int64_t>(1) = image.label;
  }
  const Size got{view.height, view.width, view.channels};
  WEFT_CHECK(got == stored_, "expected images of one size, ", stored_.height, "x", stored_.width, "x", stored_.channels,
             ", got ", got.height, "x", got.width, "x", got.channels, " from ", printable(set_->origin(index)),
             ". Choose an augmentation that gives one size, such as imagenet or resize:SIZE.");
  const Place place = pipeline_.place ? pipeline_.place(draw) : Place{};
  const TraceScope scope("crop, flip, lay down");
  if (on_device_) {
    std::memcpy(row.part<uint8_t>(0), view.pixels, static_cast<size_t>(stored_.count()));
    *row.part<Place>(2) = place;
  } else if (options_.dtype == DType::u8) {
    cut_out(row.part<uint8_t>(0), seen_.height, seen_.width, view, place);
  } else {
    normalize(row.part<float>(0), seen_.height, seen_.width, view, place, table_);
  }
}

std::vector<Tensor> ImageLoader::Collator::finish(const std::vector<Tensor>& arrived) const {
  return {
      image_normalize(arrived[0], arrived[2], options_.mean, options_.std, seen_.height, seen_.width, options_.dtype),
      arrived[1]};
}

Collation ImageLoader::Collator::collation(const std::shared_ptr<const Collator>& collator) {
  const Collator& a = *collator;
  const Size& size = a.on_device_ ? a.stored_ : a.seen_;
  Collation collation;
  collation.parts = {{a.on_device_ ? DType::u8 : a.options_.dtype, {size.height, size.width, size.channels}},
                     {DType::i64, {}}};
  collation.write = [collator](int64_t index, Draw& draw, const Row& row) { collator->write(index, draw, row); };
  if (a.on_device_) {
    collation.parts.push_back({DType::i32, {3}});  // a Place
    collation.on_device = [collator](const std::vector<Tensor>& arrived) { return collator->finish(arrived); };
  }
  collation.whole_batch = true;
  collation.unit = "images";
  collation.size = a.set_->size();
  collation.names = {"images", "labels"};
  collation.origin = [set = a.set_](int64_t index, size_t, const Shape&) { return printable(set->origin(index)); };
  collation.description = a.set_->describe();
  collation.assemble_scope = "assemble images";
  return collation;
}

ImageLoader::ImageLoader(std::shared_ptr<const Dataset> set, const Sampler& sampler, Pipeline pipeline,
                         ImageLoaderOptions options)
    : ImageLoader(std::make_shared<const Collator>(std::move(set), std::move(pipeline), std::move(options)), sampler) {}

ImageLoader::ImageLoader(const std::shared_ptr<const Collator>& collator, const Sampler& sampler)
    : Loader(Collator::collation(collator), sampler,
             {.batch_size = collator->options().batch_size,
              .workers = collator->options().workers,
              .prefetch = collator->options().prefetch,
              .drop_last = collator->options().drop_last,
              .seed = collator->options().seed,
              .device = collator->options().device}),
      options_(collator->options()) {}

}  // namespace weft::data
