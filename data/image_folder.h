// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>

#include "data/encoded_dataset.h"

namespace weft::data {

/// Images of one split: ROOT/CLASS/**/*.{jpg,jpeg,png}, the extension in any case; classes in byte order of their
/// names, images in byte order of their paths. Every image is decoded to upright RGB when it is asked for.
/// `expected_classes` (where not empty): the classes that the folder must have, so that a val part gets the labels of
/// its train part. Errors: no such folder, no class, a class without images, a class too many or missing.
std::shared_ptr<const EncodedDataset> image_folder_root(const std::filesystem::path& root, const std::string& title,
                                                        std::vector<std::string> expected_classes = {},
                                                        DecodeOptions decoding = {});

/// DIR/train and DIR/val (or DIR/test). Errors: as above; no folder for the split (lists what was looked for).
std::shared_ptr<const EncodedDataset> image_folder(const std::filesystem::path& directory, Split split,
                                                   DecodeOptions decoding = {});

/// The same of a list: `labels[i]` is the class of `paths[i]`. Errors: a label outside the classes.
std::shared_ptr<const EncodedDataset> image_files(const std::string& title, std::vector<std::string> classes,
                                                  std::vector<std::filesystem::path> paths, std::vector<int64_t> labels,
                                                  DecodeOptions decoding = {});

/// The classes of ROOT: its folders in byte order of their names, hidden ones left out.
std::vector<std::string> image_folder_classes(const std::filesystem::path& root);
/// Whether a file of this name counts as an image.
bool is_image_name(const std::filesystem::path& path);

}  // namespace weft::data
