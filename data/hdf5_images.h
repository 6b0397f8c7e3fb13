// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "data/encoded_dataset.h"

namespace weft::data {

/// One part of an HDF5 file of images, in the layout of the supercomputing course of JSC
/// (HelmholtzAI-FZJ/2023-getting-started-with-ai-on-supercomputers, to_h5.py):
///   /train/images    [n], variable-length sequences of u8: the JPEG or PNG bytes of each image
///   /train/targets   [n], whole numbers, i16 there: the labels
/// and the same below /val and /test. hdf5_writer() adds the attribute `classes` of the root, texts of one length;
/// texts of any length, as h5py writes them, and a dataset `classes` are read too. Without them the classes are the
/// numbers 0 to the largest label. libhdf5 reads what stands around the images when the file is opened; the images are
/// then read from their places (global_heap.h), from any number of threads at once. Errors name the file: no HDF5, no
/// such part, other types; images that are compressed or kept in another file; labels packed by a filter that libhdf5
/// lacks (the text names the cure); counts that differ, references beyond the end; Weft built without HDF5. libhdf5 can
/// crash on files that were damaged on purpose: open files of people you trust.
std::shared_ptr<const EncodedDataset> hdf5_images(const std::filesystem::path& path, const std::string& part,
                                                  DecodeOptions decoding = {});
/// The parts among train, val and test that the file has, by any of their names (part_named()).
std::vector<std::string> hdf5_parts(const std::filesystem::path& path);

}  // namespace weft::data
