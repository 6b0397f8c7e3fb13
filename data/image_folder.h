// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>

#include "data/dataset.h"
#include "data/decode.h"

namespace weft::data {

/// Pictures of one split: ROOT/CLASS/**/*.{jpg,jpeg,png}, the extension in any case; classes in byte order of their
/// names, pictures in byte order of their paths. Every picture is decoded to upright RGB when it is asked for.
/// `expected_classes` (where not empty): the classes that the folder must have, so that a val part gets the labels of
/// its train part. Errors: no such folder, no class, a class without pictures, a class too many or missing.
std::shared_ptr<const Dataset> image_folder_root(const std::filesystem::path& root, const std::string& title,
                                                 std::vector<std::string> expected_classes = {},
                                                 DecodeOptions decoding = {});

/// DIR/train and DIR/val (or DIR/test). Errors: as above; no folder for the split (lists what was looked for).
std::shared_ptr<const Dataset> image_folder(const std::filesystem::path& directory, Split split,
                                            DecodeOptions decoding = {});

}  // namespace weft::data
