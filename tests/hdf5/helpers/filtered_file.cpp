// SPDX-License-Identifier: Apache-2.0
// filtered_file FILE FILTER: fields [2, 3, 4, 5] of the numbers 0, 1, 2, …, in chunks that FILTER (deflate or plugin)
// packs.
#include <hdf5.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/hdf5/helpers/filter.h"

int main(int, char** argv) {
  const hsize_t sizes[] = {2, 3, 4, 5}, chunk[] = {1, 3, 4, 5};
  std::vector<float> values(2 * 3 * 4 * 5);
  std::iota(values.begin(), values.end(), 0.0f);
  const hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(4, sizes, nullptr), storage = H5Pcreate(H5P_DATASET_CREATE);
  bool good = H5Pset_chunk(storage, 4, chunk) >= 0;
  const std::string filter = argv[2];
  if (filter == "deflate")
    good = good && H5Pset_deflate(storage, 6) >= 0;
  else
    good = good && H5Pset_filter(storage, filter == "plugin" ? kAddsOne : kAddsOneUnlinked, H5Z_FLAG_MANDATORY, 0,
                                 nullptr) >= 0;
  const hid_t set = H5Dcreate2(file, "fields", H5T_IEEE_F32LE, space, H5P_DEFAULT, storage, H5P_DEFAULT);
  good = good && H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0;
  good = H5Dclose(set) >= 0 && H5Pclose(storage) >= 0 && H5Sclose(space) >= 0 && H5Fclose(file) >= 0 && good;
  return good ? 0 : 1;
}
