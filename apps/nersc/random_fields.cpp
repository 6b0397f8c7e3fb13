// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc/random_fields.h"

#include <algorithm>

namespace weft::nersc {
namespace {

data::Collation collation(const RandomFieldsOptions& o) {
  data::Collation made;
  made.parts = {{DType::f32, {o.size, o.size, o.in}}, {DType::f32, {o.size, o.size, o.out}}};
  made.write = [parts = made.parts](int64_t, data::Draw& draw, const data::Row& row) {
    for (size_t part = 0; part < parts.size(); ++part)
      std::generate_n(row.part<float>(part), parts[part].sizes.numel(),
                      [&] { return static_cast<float>(draw.uniform()); });
  };
  made.size = o.samples;
  made.names = {"x", "y"};
  return made;
}

}  // namespace

RandomFields::RandomFields(const RandomFieldsOptions& o, const data::Sampler& sampler)
    : Loader(collation(o), sampler,
             {.workers = o.workers,
              .prefetch = std::max(o.workers, 1),
              .drop_last = true,
              .seed = o.seed,
              .device = o.device}) {}

}  // namespace weft::nersc
