// SPDX-License-Identifier: Apache-2.0
#include "data/field_loader.h"

namespace weft::data {
namespace {

Recipe recipe(const std::shared_ptr<const FieldSeries>& series) {
  const FieldSeriesOptions& o = series->options();
  Recipe made;
  made.parts = {{DType::f32, {o.rows, o.columns, o.in_channels}}, {DType::f32, {o.rows, o.columns, o.out_channels}}};
  made.write = [series](int64_t index, Draw&, const Row& row) {
    series->read(index, row.part<float>(0), row.part<float>(1));
  };
  made.description = series->describe();
  made.upload_scope = "data copy in";
  return made;
}

}  // namespace

FieldLoader::FieldLoader(const std::shared_ptr<const FieldSeries>& series, const Sampler& sampler,
                         const LoaderOptions& options)
    : BatchLoader(recipe(series), sampler, options) {}

}  // namespace weft::data
