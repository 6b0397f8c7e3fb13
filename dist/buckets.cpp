// SPDX-License-Identifier: Apache-2.0
#include "dist/buckets.h"

namespace weft::dist {

std::vector<Bucket> make_buckets(const FlatParameters& flat, const BucketOptions& options) {
  WEFT_CHECK(options.first_bytes > 0 && options.bytes > 0, "buckets: expected sizes above 0, got ", options.first_bytes,
             " and ", options.bytes, " bytes");
  const std::vector<FlatSlice>& slices = flat.slices();
  const auto element = static_cast<int64_t>(size_of(flat.dtype()));
  std::vector<Bucket> buckets;
  size_t last = slices.size();
  int64_t end = flat.numel();
  for (size_t i = slices.size(); i-- > 0;) {
    const int64_t numel = end - slices[i].offset;
    const int64_t wanted = buckets.empty() ? options.first_bytes : options.bytes;
    if (i > 0 && numel * element < wanted) continue;
    const std::string &from = slices[i].name, &to = slices[last - 1].name;
    buckets.push_back({i, last, {slices[i].offset, numel}, i + 1 == last ? from : from + "…" + to});
    last = i;
    end = slices[i].offset;
  }
  return buckets;
}

}  // namespace weft::dist
