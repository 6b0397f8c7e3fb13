// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/encoded_dataset.h"

namespace weft::jsc {

/// How images are kept: fs (a folder with a file for each), h5, packed.
inline const std::vector<std::string> kStorages{"fs", "h5", "packed"};

/// The file or folder that --data_root stands for: itself; or, for h5 or packed in a folder, ImageNetFinal.h5,
/// ImageNet1k.h5, ImageNet.h5, or the only file named *.h5 or *.packed. Errors: nothing there, several.
std::string storage_place(const std::string& storage, const std::string& data_root);

/// The parts (train, val, test) of a set. Errors: those of the readers; none of them.
std::vector<std::string> parts_of(const std::string& storage, const std::string& place);

/// One of them. A folder is DIR/PART/CLASS/*.jpg, or ImageNet as its archive unpacks, below ROOT/ILSVRC/Data/CLS-LOC:
/// train/SYNSET/*.JPEG, and val/*.JPEG without folders, whose synsets stand in ROOT/ILSVRC2012_val_labels.json,
/// {"ILSVRC2012_val_00000001.JPEG": "n01751748", …}. Errors: those of the readers; of ImageNet no labels for val, an
/// image without one, a synset that train has not.
std::shared_ptr<const data::EncodedDataset> open_part(const std::string& storage, const std::string& place,
                                                      const std::string& part);

}  // namespace weft::jsc
