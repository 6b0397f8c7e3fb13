// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>

#include "data/dataset.h"

namespace weft::data {

/// MNIST and its family: IDX files (http://yann.lecun.com/exdb/mnist/) of unsigned bytes, plain or .gz.
/// train: {train-images-idx3-ubyte,train-labels-idx1-ubyte}[.gz]; val: t10k-… of the same. Images are [n, h, w] (one
/// channel) or [n, h, w, c]. Classes are numbered 0 to the largest label of both parts, at least ten.
/// Errors: missing files (lists what was looked for), wrong magic number, truncated, oversized, counts that differ.
std::shared_ptr<const Dataset> idx(const std::filesystem::path& directory, Split split);

}  // namespace weft::data
