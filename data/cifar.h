// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>

#include "data/dataset.h"

namespace weft::data {

/// CIFAR-10, binary version (https://www.cs.toronto.edu/~kriz/cifar.html): records of 1 label byte and 3072 pixel
/// bytes, planes red, green, blue of 32x32. train: every data_batch_{1…5}.bin that is there, at least one; val:
/// test_batch.bin; each of any number of records. Looks in `directory` and in its cifar-10-batches-bin. Class names
/// from batches.meta.txt where present. Errors: no file (lists what was looked for), a size that is no whole number of
/// records, a label above 9 (file and record). Where none of these files is there, the python version is read, which
/// torchvision keeps: data_batch_{1…5} and test_batch, in `directory` or in its cifar-10-batches-py, names from
/// batches.meta.
std::shared_ptr<const Dataset> cifar10(const std::filesystem::path& directory, Split split);

enum class CifarLabels : uint8_t { fine, coarse };

/// CIFAR-100, binary version: records of 1 coarse label byte, 1 fine label byte and 3072 pixel bytes; train.bin and
/// test.bin in `directory` or in its cifar-100-binary. Class names from {fine,coarse}_label_names.txt where present. Or
/// the python version: train and test, in `directory` or in its cifar-100-python, names from meta.
std::shared_ptr<const Dataset> cifar100(const std::filesystem::path& directory, Split split,
                                        CifarLabels labels = CifarLabels::fine);

/// Packs images u8 [n, 32, 32, 3] and labels into CIFAR-10's records, the inverse of reading.
std::vector<uint8_t> cifar10_records(const uint8_t* pixels, const int64_t* labels, int64_t count);

}  // namespace weft::data
