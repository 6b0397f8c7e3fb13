// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "data/hdf5_fields.h"

namespace weft::nersc_vit {

/// Made-up weather of one year: in each channel waves that travel eastward, each at a speed of its own, on a mean and
/// with an amplitude of the channel's; the present fields determine the next. A pure function of the seed.
class Waves {
 public:
  Waves(const data::FieldSize& size, uint64_t seed);

  /// [channels, rows, columns] at one time.
  void fill(int64_t time, float* values) const;

 private:
  struct Wave {
    int64_t number;  ///< number of crests around the globe
    double phase, speed, amplitude, tilt;
  };
  struct Channel {
    double mean, amplitude;
    std::vector<Wave> waves;
  };
  data::FieldSize size_;
  std::vector<Channel> channels_;
};

}  // namespace weft::nersc_vit
