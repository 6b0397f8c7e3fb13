// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <string>

#include "io/file_kind.h"
#include "io/hdf5/hdf5_handle.h"

namespace weft {

/// Opens a file of data for reading. Errors: another format; its writer has not closed the file, or libhdf5 is too old;
/// locks; cut short.
inline Hdf5Id hdf5_file(const FileReader& file, const std::string& expected = "an HDF5 file",
                        const std::string& otherwise = "another") {
  if (hdf5().Fis_hdf5(file.path().c_str()) <= 0) refuse(file, expected, otherwise);
  Hdf5Id opened(hdf5().Fopen(file.path().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), hdf5().Fclose);
  if (opened.valid()) return opened;
  // The superblock: signature, version, sizes of offsets and lengths, and from version 3 on flags of an open file.
  std::array<unsigned char, 12> start{};
  constexpr unsigned kNewest = 3, kOpen = 1;
  if (file.size() >= start.size()) file.read(0, start.data(), start.size());
  if (start[0] == 0x89 && start[8] > kNewest)
    file.bad("expected an HDF5 file of superblock version ", kNewest, " at most, got ", unsigned{start[8]},
             ". Install a newer libhdf5, or write it again with libver='v110'");
  if (start[0] == 0x89 && start[8] == kNewest && (start[11] & kOpen) != 0)
    file.bad("it was not closed by the program that writes it, which still runs or was ended. Wait for it, or clear ",
             "the mark: h5clear -s FILE");
  file.bad("libhdf5 cannot open it. Is it cut short, or open for writing? Where the file system has no locks: ",
           "HDF5_USE_FILE_LOCKING=FALSE");
}

/// How a dataset's values were packed, where this libhdf5 cannot unpack them: `packed by lzf (filter 32000), … CURE`.
/// "" where it can.
inline std::string hdf5_missing_filter(hid_t dataset) {
  const Hdf5Id plist(hdf5().Dget_create_plist(dataset), hdf5().Pclose);
  const int count = hdf5().Pget_nfilters(plist);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    std::array<char, 64> name{};
    const H5Z_filter_t id = hdf5().Pget_filter2(plist, static_cast<unsigned>(i), &flags, &values, nullptr,
                                                name.size() - 1, name.data(), &config);
    const bool decodes = hdf5().Zfilter_avail(id) > 0 && hdf5().Zget_filter_info(id, &config) >= 0 &&
                         (config & H5Z_FILTER_CONFIG_DECODE_ENABLED) != 0;
    if (decodes) continue;
    constexpr std::pair<H5Z_filter_t, const char*> known[] = {
        {1, "gzip"},           {4, "szip"},    {307, "bzip2"},  {32000, "lzf"}, {32001, "blosc"}, {32004, "lz4"},
        {32008, "bitshuffle"}, {32013, "zfp"}, {32015, "zstd"}, {32017, "sz"},  {32026, "blosc2"}};
    std::string text(name.data());
    for (const auto& [number, word] : known)
      if (number == id) text = word;
    return str("packed by ", text.empty() ? "a filter" : text.substr(0, 40), " (filter ", id,
               "), which this libhdf5 does not have. Name the folder of its plugin in HDF5_PLUGIN_PATH (hdf5plugin of ",
               "PyPI has many), or write it again with compression='gzip'");
  }
  return "";
}

}  // namespace weft
