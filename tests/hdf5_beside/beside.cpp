// SPDX-License-Identifier: Apache-2.0
// A program that links HDF5 itself, as users' programs may: both use the same copy of the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include "data/hdf5_fields.h"
#include "io/hdf5/hdf5_library.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace weft::data {
namespace {

using ::testing::HasSubstr;
using tests::TemporaryFolder;

ssize_t open_files() { return H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_FILE); }

void write_ones(const std::string& path) {
  write_fields(path, {2, 1, 2, 2}, [](int64_t, float* values) { std::fill_n(values, 4, 1.0f); });
}

TEST(Hdf5Beside, TheProgramSeesWhatWeftHasOpened) {
  const TemporaryFolder folder;
  EXPECT_EQ(hdf5().Fopen, &H5Fopen);
  ASSERT_GE(H5open(), 0);
  EXPECT_EQ(hdf5().T_IEEE_F32LE(), H5T_IEEE_F32LE_g);
  write_ones(folder / "a.h5");
  EXPECT_EQ(open_files(), 0);
  {
    const auto fields = open_fields(folder / "a.h5");
    EXPECT_EQ(open_files(), 1);
  }
  EXPECT_EQ(open_files(), 0);
}

herr_t count_call(hid_t, void* calls) {
  ++*static_cast<int*>(calls);
  return 0;
}

TEST(Hdf5Beside, ErrorsOfWeftDoNotReachTheProgramsHandler) {
  const TemporaryFolder folder;
  int calls = 0;
  H5Eset_auto2(H5E_DEFAULT, count_call, &calls);
  write_ones(folder / "a.h5");
  std::filesystem::resize_file(folder / "a.h5", 600);
  EXPECT_THAT(error_text([&] { open_fields(folder / "a.h5"); }),
              HasSubstr("a.h5: libhdf5 cannot open it. Is it cut short"));
  EXPECT_EQ(calls, 0);
  H5E_auto2_t handler = nullptr;
  void* data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &handler, &data);
  EXPECT_EQ(handler, &count_call);
  EXPECT_EQ(data, &calls);
  EXPECT_LT(H5Fopen((folder / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), 0);
  EXPECT_EQ(calls, 1);
}

TEST(Hdf5Beside, TheProgramsFilesStayOpenAndItMayCloseTheLibrary) {
  const TemporaryFolder folder;
  const hid_t own = H5Fcreate((folder / "own.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(own, 0);
  write_ones(folder / "a.h5");
  EXPECT_EQ(open_files(), 1);
  EXPECT_GE(H5Gclose(H5Gcreate2(own, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)), 0);
  ASSERT_GE(H5close(), 0);  // own file and predefined types with it
  EXPECT_GT(hdf5().T_STD_I64LE(), 0);
  ASSERT_GE(H5close(), 0);
  write_ones(folder / "b.h5");
  EXPECT_TRUE(open_fields(folder / "b.h5"));
  ASSERT_GE(H5close(), 0);
  EXPECT_TRUE(open_fields(folder / "a.h5"));
}

}  // namespace
}  // namespace weft::data
