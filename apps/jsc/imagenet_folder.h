// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "data/encoded_dataset.h"

namespace weft::jsc {

/// ImageNet as its archive unpacks, below ROOT/ILSVRC/Data/CLS-LOC: train/SYNSET/*.JPEG, and val/*.JPEG without
/// folders, whose synsets stand in ROOT/ILSVRC2012_val_labels.json, {"ILSVRC2012_val_00000001.JPEG": "n01751748", …}.
bool is_imagenet_folder(const std::filesystem::path& root);

/// `train` or `val`; classes are the synsets in byte order, which is the order of the published class numbers. Errors:
/// no labels for val, an image without one, a synset that train has not.
std::shared_ptr<const data::EncodedDataset> imagenet_folder(const std::filesystem::path& root, const std::string& part);

}  // namespace weft::jsc
