// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "core/flat_parameters.h"

namespace weft::dist {

/// A range of the flat gradient that is reduced at once: the parameters first … last - 1 of the flat slices.
struct Bucket {
  size_t first = 0, last = 0;
  FlatRange range;   ///< in elements, padding included
  std::string name;  ///< `layer4.1.conv2.weight…fc.bias`
};

struct BucketOptions {
  int64_t first_bytes = 1 << 20;  ///< of the bucket that fills first, small so that communication begins early
  int64_t bytes = 25 << 20;       ///< of all others
};

/// Cuts the flat gradient at parameter boundaries, from its end backwards: the order in which backward makes gradients.
/// A bucket ends with the parameter that brings it to its size, so it may be larger by less than that parameter.
/// Errors: sizes that are not positive.
std::vector<Bucket> make_buckets(const FlatParameters& flat, const BucketOptions& options = {});

}  // namespace weft::dist
