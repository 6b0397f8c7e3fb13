// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "data/encoded_dataset.h"
#include "data/sampler.h"

namespace weft::jsc {

/// The times of some passes over the images.
struct Passes {
  int64_t images = 0;
  uint64_t bytes = 0;  ///< encoded; 0: not counted
  double seconds = 0;
};

/// `count` passes over the images, from `threads` threads that live through all of them.
struct Load {
  int64_t count = 1;
  int threads = 1;
};

/// Reads the bytes of every image of this rank in the sampler's order.
Passes read_images(const data::EncodedDataset& set, const data::Sampler& order, Load load);
/// Reads and decodes them.
Passes decode_images(const data::EncodedDataset& set, const data::Sampler& order, Load load);

/// The peer of reading: as many bytes from front to back with plain pread(2), 128 KiB at once as cat(1) does. For files
/// that were read before the rate is the disk cache's.
class RawRead {
 public:
  /// A folder: the files of `set`, each opened again. Else the first `bytes` bytes of the file `place`.
  RawRead(const std::string& storage, const std::string& place, const data::EncodedDataset& set, uint64_t bytes);
  Passes run(Load load) const;

 private:
  Passes read_file(Load load) const;
  Passes read_files(Load load) const;

  std::vector<std::string> files_;
  uint64_t bytes_;
};

/// The peer of decoding: a sample of the set's JPEG images in memory, decoded by data::decode, and by libjpeg-turbo
/// alone (raw_jpeg.h).
class DecodePeers {
 public:
  /// The first images in the sampler's order, up to 256 MiB.
  DecodePeers(const data::EncodedDataset& set, const data::Sampler& order);
  Passes own(Load load) const;
  Passes raw(Load load) const;

 private:
  std::vector<std::vector<uint8_t>> images_;
  uint64_t bytes_ = 0;
};

}  // namespace weft::jsc
