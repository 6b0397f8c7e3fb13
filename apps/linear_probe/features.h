// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "apps/linear_probe/images.h"
#include "dist/group/world.h"
#include "nn/module.h"

namespace weft::linear_probe {

/// A frozen backbone's output for each image of a part, in the order of the set. Every rank has all features.
struct Features {
  Tensor values;  ///< [images, width], f32, on the device
  Tensor labels;  ///< i64 [images], on the device
};

/// Runs `backbone` (images [N, side, side, 3] to [N, width]) once over the part, each rank over its share, and brings
/// the shares together. All ranks call it.
Features compute_features(const Images& images, data::Split split, const dist::World& ranks,
                          const std::function<Tensor(const Tensor&)>& backbone);

/// Both parts of a set as a frozen backbone sees them.
struct FeatureSets {
  Features training, validation;
};

/// The dependencies of features, one line each: the backbone's weights (names, shapes, checksums), both parts of the
/// set (images and labels), the preprocessing of images, the precision. Equal texts mean equal features, up to
/// the order of sums on another device or for another batch size.
std::string features_fingerprint(nn::Module& backbone, const Images& images, const std::string& model,
                                 const std::string& precision);

/// Features in a file (io/checkpoint.h), so that the next run needs no backbone: read when the file was made from the
/// same fingerprint, else computed by `compute` and written, whole or not at all. Rank 0 reads and writes for all
/// ranks, at any number of them. Reports its action on stdout. All ranks call it. Errors: the file is no file of
/// features (then unchanged), is damaged, or its folder cannot be written.
FeatureSets features_of_file(const std::filesystem::path& path, const std::string& fingerprint,
                             const dist::World& ranks, const std::function<FeatureSets()>& compute);

/// A loader of rows of a table of features, in the order and the batches in which the images would be loaded.
std::shared_ptr<data::BatchQueue> make_loader(const Features& features, const data::Sampler& order, int64_t batch_size);

}  // namespace weft::linear_probe
