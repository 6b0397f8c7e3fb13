// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>
#include <utility>

#include "data/encoded_dataset.h"

namespace weft::data {

/// Images of one part: ROOT/CLASS/**, files whose suffix is one of image_suffixes(), in any case; classes in byte order
/// of their names, images in byte order of their paths. Every image is decoded to upright RGB when it is asked for.
/// Hidden files and folders (is_hidden()) are skipped at any depth, links are followed, and describe() counts what else
/// is left out. `expected_classes` (where not empty): the classes that the folder must have, so that a val part gets
/// the labels of its train part. Errors: no such folder, no class, a class without images, a class too many or missing;
/// an unreadable folder; a link to nothing or to a folder above the link.
std::shared_ptr<const EncodedDataset> image_folder_root(const std::filesystem::path& root, const std::string& title,
                                                        std::vector<std::string> expected_classes = {},
                                                        DecodeOptions decoding = {});

/// The parts of DIR with their folders, in the order train, val, test. Names count in any case, and so do those that
/// people give: train (training), val (valid, validation, dev), test (testing). Errors: two folders for one part.
std::vector<std::pair<std::string, std::filesystem::path>> image_folder_parts(const std::filesystem::path& directory);

/// The part of DIR that `split` asks for (part_for()). Errors: as above; no such part.
std::shared_ptr<const EncodedDataset> image_folder(const std::filesystem::path& directory, Split split,
                                                   DecodeOptions decoding = {});

/// The set of a list: `labels[i]` is the class of `paths[i]`; `left_out` ends what describe() says. Errors: a label
/// outside the classes.
std::shared_ptr<const EncodedDataset> image_files(const std::string& title, std::vector<std::string> classes,
                                                  std::vector<std::filesystem::path> paths, std::vector<int64_t> labels,
                                                  DecodeOptions decoding = {}, const std::string& left_out = "");

/// The images right in `folder`, in byte order of their names. Errors: those of image_folder_root() about links and
/// folders that cannot be read.
std::vector<std::filesystem::path> images_in(const std::filesystem::path& folder);
/// The classes of ROOT: its folders in byte order of their names, hidden ones left out. Errors: as images_in().
std::vector<std::string> image_folder_classes(const std::filesystem::path& root);
/// Whether programs made this file or folder for themselves: `.ipynb_checkpoints`, `._1.jpg`, `__MACOSX`, `@eaDir`,
/// `Thumbs.db`, ….
bool is_hidden(const std::filesystem::path& path);

}  // namespace weft::data
