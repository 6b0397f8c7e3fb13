// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "core/text.h"
#include "data/cifar.h"
#include "data/hdf5_images.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/packed_images.h"
#include "data/parallel_for.h"
#include "data/random_images.h"
#include "data/shapes.h"
#include "io/home.h"
#include "kernels/error.h"

namespace weft::data {

const char* name(Split split) { return split == Split::train ? "train" : "val"; }

std::vector<std::string> names_of_part(std::string_view part) {
  if (part == "train") return {"train", "training"};
  if (part == "val") return {"val", "valid", "validation", "dev"};
  return part == "test" ? std::vector<std::string>{"test", "testing"} : std::vector<std::string>{};
}

std::string part_named(std::string_view name) {
  for (const char* part : {"train", "val", "test"})
    for (const std::string& known : names_of_part(part))
      if (lower_case(name) == known) return part;
  return "";
}

std::string part_for(Split split, const std::vector<std::string>& parts, const std::string& where) {
  const auto has = [&](const char* part) { return std::find(parts.begin(), parts.end(), part) != parts.end(); };
  if (has(name(split))) return name(split);
  if (split == Split::evaluation && has("test")) return "test";
  const std::string got = parts.empty() ? "none" : joined(parts);
  WEFT_CHECK(split != Split::train, where, ": expected a part train, got ", got);
  fail(where, ": expected a part val (or valid, validation, dev), got ", got, ". ",
       has("test") ? "test is for the end, not to choose the best epoch by. " : "",
       "Move some images of each class from train to val", has("test") ? ", or rename test" : "");
}

namespace {

using SetPtr = std::shared_ptr<const Dataset>;

/// A kind of set: its name, the kind of its place ("": none), and how it is opened.
struct Kind {
  const char* name;
  const char* place;
  SetPtr (*open)(const std::string& place, Split split, DecodeOptions decoding);
};

using Text = const std::string&;

// clang-format off
const Kind kKinds[] = {
    {"shapes", "", [](Text at, Split s, auto) { return at.empty() ? shapes(s) : shapes(at, s); }},
    {"random", "", [](Text at, Split s, auto) { return random_images(parse_random_images(at), s); }},
    {"cifar10", "DIR", [](Text at, Split s, auto) { return cifar10(at, s); }},
    {"cifar100", "DIR", [](Text at, Split s, auto) { return cifar100(at, s); }},
    {"cifar100-coarse", "DIR", [](Text at, Split s, auto) { return cifar100(at, s, CifarLabels::coarse); }},
    {"idx", "DIR", [](Text at, Split s, auto) { return idx(at, s); }},
    {"folder", "DIR", [](Text at, Split s, DecodeOptions d) -> SetPtr { return image_folder(at, s, d); }},
    {"hdf5", "FILE", [](Text at, Split s, DecodeOptions d) -> SetPtr {
      return hdf5_images(at, part_for(s, hdf5_parts(at), "hdf5: " + printable(at)), d); }},
    {"packed", "FILE", [](Text at, Split s, DecodeOptions d) -> SetPtr {
      return packed_images(at, part_for(s, packed_parts(at), "packed: " + printable(at)), d); }},
};
// clang-format on

}  // namespace

SetPtr open_dataset(const std::string& text, Split split, DecodeOptions decoding) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string place = colon == std::string::npos ? "" : expand_home(text.substr(colon + 1));
  std::vector<std::string> names;
  for (const Kind& known : kKinds) {
    names.emplace_back(known.name);
    if (kind != known.name) continue;
    WEFT_CHECK(!place.empty() || *known.place == 0, "data: expected ", kind, ":", known.place, ", got '", text, "'");
    return known.open(place, split, decoding);
  }
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(text, ignored);
  if (is_folder || std::filesystem::is_regular_file(text, ignored))
    fail("data: expected a kind before the path: ", is_folder ? "folder:" : "hdf5: or packed:", is_folder ? text : "",
         ", got '", text, "'");
  fail("data: unknown kind '", kind, "'.", suggestion(kind, names));
}

namespace {

class WithClasses final : public Dataset {
 public:
  WithClasses(SetPtr set, std::vector<std::string> classes) : set_(std::move(set)), classes_(std::move(classes)) {
    for (const std::string& name : set_->classes()) {
      const auto at = std::find(classes_.begin(), classes_.end(), name);
      WEFT_CHECK(at != classes_.end(), "data: expected only classes of another set, got the new class '",
                 printable(name), "'");
      labels_.push_back(at - classes_.begin());
    }
    if (const Storage* stored = set_->storage()) {
      for (int64_t i = 0; i < stored->count; ++i) stored_labels_.push_back(labels_[stored->labels[i]]);
      storage_ = *stored;
      storage_.labels = stored_labels_.data();
    }
  }

  int64_t size() const override { return set_->size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t channels() const override { return set_->channels(); }
  Image get(int64_t index) const override {
    Image image = set_->get(index);
    image.label = labels_[image.label];
    return image;
  }
  const Storage* storage() const override { return set_->storage() ? &storage_ : nullptr; }
  std::string origin(int64_t index) const override { return set_->origin(index); }
  std::string describe() const override { return set_->describe(); }

 private:
  SetPtr set_;
  std::vector<std::string> classes_;
  std::vector<int64_t> labels_;  ///< label per class of `set_`
  std::vector<int64_t> stored_labels_;
  Storage storage_;
};

}  // namespace

SetPtr with_classes(SetPtr set, std::vector<std::string> classes) {
  return std::make_shared<WithClasses>(std::move(set), std::move(classes));
}

FixedDataset::FixedDataset(Contents contents) : contents_(std::move(contents)) {
  const Contents& c = contents_;
  const auto count = static_cast<int64_t>(c.labels.size());
  WEFT_CHECK(count > 0, c.title, ": expected at least one image, got none");
  WEFT_CHECK(static_cast<int64_t>(c.pixels.size()) == count * c.height * c.width * c.channels, c.title, ": expected ",
             count, " images of ", c.height, "x", c.width, "x", c.channels, ", got ", c.pixels.size(), " bytes");
  storage_ = {c.pixels.data(), c.labels.data(), count, c.height, c.width, c.channels};
  const auto known = static_cast<int64_t>(c.classes.size());
  for (int64_t i = 0; i < count; ++i)
    WEFT_CHECK(c.labels[i] >= 0 && c.labels[i] < known, c.title, ": expected labels 0 to ", known - 1, ", got ",
               c.labels[i], " in ", printable(origin(i)));
}

Image FixedDataset::get(int64_t index) const {
  WEFT_CHECK(index >= 0 && index < size(), contents_.title, ": expected an index below ", size(), ", got ", index);
  const uint8_t* first = storage_.image(index);
  return {std::vector<uint8_t>(first, first + storage_.image_bytes()), storage_.height, storage_.width,
          storage_.channels, storage_.labels[index]};
}

std::string FixedDataset::origin(int64_t index) const {
  return contents_.origin ? contents_.origin(index) : str(contents_.title, " image ", index);
}

std::string FixedDataset::describe() const {
  return str(contents_.title, ": ", size(), " images ", storage_.height, "x", storage_.width, "x", storage_.channels,
             ", ", contents_.classes.size(), " classes", contents_.note.empty() ? "" : ", " + contents_.note);
}

namespace {

/// Per channel: how often each byte occurs gives both sums exactly.
using Histogram = std::array<std::array<int64_t, 256>, 4>;

struct Moments {
  std::array<double, 4> first{}, second{};
};

Moments moments(const uint8_t* pixels, int64_t count, int64_t channels) {
  Histogram histogram{};
  for (int64_t p = 0; p < count; ++p)
    for (int64_t c = 0; c < channels; ++c) ++histogram[c][*pixels++];
  Moments result;
  for (int64_t c = 0; c < channels; ++c)
    for (int byte = 0; byte < 256; ++byte) {
      const double share = static_cast<double>(histogram[c][byte]) / static_cast<double>(count);
      result.first[c] += share * byte / 255;
      result.second[c] += share * byte * byte / (255.0 * 255.0);
    }
  return result;
}

ChannelStatistics compute(const Dataset& set, int threads) {
  // Chunks of fixed size, summed in order: the result does not depend on the number of threads.
  const Storage* storage = set.storage();
  const int64_t used = storage ? set.size() : std::min(set.size(), kStatisticsImages);
  const int64_t per_chunk = storage ? 512 : 1;
  const int64_t chunks = (used + per_chunk - 1) / per_chunk;
  std::vector<Moments> parts(static_cast<size_t>(chunks));
  parallel_for(chunks, threads, [&](int64_t chunk) {
    if (storage != nullptr) {
      const int64_t first = chunk * per_chunk, count = std::min(per_chunk, used - first);
      parts[chunk] = moments(storage->image(first), count * storage->height * storage->width, storage->channels);
      for (double& value : parts[chunk].first) value *= static_cast<double>(count);
      for (double& value : parts[chunk].second) value *= static_cast<double>(count);
    } else {
      const Image image = set.get(chunk * set.size() / used);
      parts[chunk] = moments(image.pixels.data(), image.height * image.width, image.channels);
    }
  });
  ChannelStatistics result;
  for (int64_t c = 0; c < set.channels(); ++c) {
    double first = 0, second = 0;
    for (const Moments& part : parts) first += part.first[c], second += part.second[c];
    const double mean = first / static_cast<double>(used);
    const double variance = std::max(0.0, second / static_cast<double>(used) - mean * mean);
    result.mean.push_back(mean);
    result.std.push_back(variance < 1e-12 ? 1.0 : std::sqrt(variance));
  }
  return result;
}

}  // namespace

const ChannelStatistics& channel_statistics(const Dataset& set, int threads) {
  const std::lock_guard lock(set.statistics_mutex_);
  if (!set.statistics_) set.statistics_ = compute(set, threads);
  return *set.statistics_;
}

}  // namespace weft::data
