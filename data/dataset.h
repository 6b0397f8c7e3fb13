// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "data/decode.h"

namespace weft::data {

/// `evaluation`: val, or test where there is no val. It is for programs that choose nothing by the result.
enum class Split : uint8_t { train, val, evaluation };
const char* name(Split split);

/// The part (train, val, test) of which this is a name, in any case: train, training; val, valid, validation, dev;
/// test, testing. "": of none.
std::string part_named(std::string_view name);
/// The names of a part, small.
std::vector<std::string> names_of_part(std::string_view part);

/// The index of `split` among a set's parts (a subset of train, val, test). Errors begin with `where`: the set has no
/// such part. test never stands in for val: by val a run chooses its best epoch.
std::string part_for(Split split, const std::vector<std::string>& parts, const std::string& where);

/// The contiguous memory of a set whose images all have one size: pixels u8 [count, height, width, channels].
struct Storage {
  const uint8_t* pixels = nullptr;
  const int64_t* labels = nullptr;
  int64_t count = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  int64_t image_bytes() const { return height * width * channels; }
  const uint8_t* image(int64_t index) const { return pixels + index * image_bytes(); }
};

/// Mean and standard deviation per channel, in units where white is 1.
struct ChannelStatistics {
  std::vector<double> mean;
  std::vector<double> std;
};

/// A set of images with one label each. `get` may be called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  /// One name per class; the label is the position.
  virtual const std::vector<std::string>& classes() const = 0;
  virtual int64_t channels() const = 0;
  /// Image `index`, decoded. Errors: index outside the set; an unreadable image (the text names the file).
  virtual Image get(int64_t index) const = 0;
  /// The whole set in memory, when all images have one size; else nullptr.
  virtual const Storage* storage() const { return nullptr; }
  /// Where an image comes from, `data_batch_1.bin record 17`; in an image folder, its path. Error texts show it
  /// `printable`.
  virtual std::string origin(int64_t index) const = 0;
  /// `cifar10 train: 50000 images 32x32x3, 10 classes`.
  virtual std::string describe() const = 0;

 private:
  friend const ChannelStatistics& channel_statistics(const Dataset&, int);
  mutable std::mutex statistics_mutex_;
  mutable std::optional<ChannelStatistics> statistics_;
};

/// Opens `kind:place`.
///   shapes             the embedded set, drawn in memory.        shapes:DIR       the same, written to DIR first.
///   cifar10:DIR        CIFAR-10, binary version.                 cifar100:DIR     CIFAR-100, binary, fine labels.
///   cifar100-coarse:DIR  CIFAR-100 with its 20 coarse labels.    idx:DIR          MNIST and its family, plain or .gz.
///   folder:DIR         DIR/{train,val}/CLASS/*.jpg, …            random[:NxHxWxC] uniform noise.
///   hdf5:FILE          images in an HDF5 file (JSC's layout).    packed:FILE      images in Weft's own format.
/// The last three decode images when they are asked for. `~/` begins a place in the user's home folder. Errors: an
/// unknown kind (the text names the nearest), and all errors of the readers.
std::shared_ptr<const Dataset> open_dataset(const std::string& text, Split split, DecodeOptions decoding = {});

/// The set's images with their labels among `classes`, matched by name: set->classes() in another order, or some of
/// `classes`. Errors: a class of the set that is not among `classes`.
std::shared_ptr<const Dataset> with_classes(std::shared_ptr<const Dataset> set, std::vector<std::string> classes);

/// A set held in memory, all images of one size.
class FixedDataset : public Dataset {
 public:
  struct Contents {
    std::string title;  ///< `cifar10 train`
    std::vector<uint8_t> pixels;
    std::vector<int64_t> labels;
    int64_t height = 0;
    int64_t width = 0;
    int64_t channels = 0;
    std::vector<std::string> classes;
    std::string note;  ///< ends describe(): what is unusual about the set
    /// Names the source of an image; `TITLE image N` where absent.
    std::function<std::string(int64_t)> origin;
  };

  /// Errors: sizes that do not fit together, a label outside the classes (the text names its origin).
  explicit FixedDataset(Contents contents);

  int64_t size() const override { return storage_.count; }
  const std::vector<std::string>& classes() const override { return contents_.classes; }
  int64_t channels() const override { return contents_.channels; }
  Image get(int64_t index) const override;
  const Storage* storage() const override { return &storage_; }
  std::string origin(int64_t index) const override;
  std::string describe() const override;

 private:
  Contents contents_;
  Storage storage_;
};

/// Mean and standard deviation of each channel over the set, every image with the same weight; the default
/// normalisation of a set. One pass by several threads (0: one per core); at most kStatisticsImages images, evenly
/// spaced, where the set is not in memory. Computed once per set and kept with it. A channel without any variation gets
/// std 1. Errors: those of Dataset::get.
inline constexpr int64_t kStatisticsImages = 4096;
const ChannelStatistics& channel_statistics(const Dataset& set, int threads = 0);

}  // namespace weft::data
