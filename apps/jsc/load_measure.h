// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "data/encoded_dataset.h"
#include "data/sampler.h"

namespace weft::jsc {

/// What one pass over the pictures took.
struct Pass {
  int64_t pictures = 0;
  uint64_t bytes = 0;  ///< encoded
  double seconds = 0;

  double pictures_per_second() const { return static_cast<double>(pictures) / seconds; }
  double megabytes_per_second() const { return static_cast<double>(bytes) / seconds / 1e6; }
};

/// Reads the bytes of every picture of this rank in the sampler's order, from `threads` threads.
Pass read_pictures(const data::EncodedDataset& set, const data::Sampler& order, int64_t epoch, int threads);
/// Reads and decodes them.
Pass decode_pictures(const data::EncodedDataset& set, const data::Sampler& order, int64_t epoch, int threads);

/// The peer of reading: the same files from front to back with plain pread(2), 128 KiB at once as cat(1) does, from
/// `threads` threads that have a part of the list or of the file each. What it yields of files that were read before is
/// the rate of the disk cache.
class RawRead {
 public:
  /// A folder: the files of `set`, each opened anew. Else the file `place`.
  RawRead(const std::string& storage, const std::string& place, const data::EncodedDataset& set);
  Pass run(int threads) const;

 private:
  std::vector<std::string> files_;
};

/// The peer of decoding: a sample of the set's JPEG pictures in memory, decoded by data::decode, and by libjpeg-turbo
/// alone (raw_jpeg.h).
class DecodePeers {
 public:
  /// The first pictures in the sampler's order, up to 256 MiB.
  DecodePeers(const data::EncodedDataset& set, const data::Sampler& order);
  Pass own(int threads) const;
  Pass raw(int threads) const;

 private:
  std::vector<std::vector<uint8_t>> pictures_;
  uint64_t bytes_ = 0;
};

}  // namespace weft::jsc
