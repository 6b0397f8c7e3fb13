// SPDX-License-Identifier: Apache-2.0
// A process that does not link HDF5: when and from where HDF5 is loaded, and the error if missing.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "data/hdf5_fields.h"
#include "data/hdf5_images.h"
#include "data/image_writer.h"
#include "io/hdf5/hdf5_library.h"
#include "io/hdf5/hdf5_state.h"
#include "tests/support/error_text.h"
#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

namespace weft::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tests::Outcome;
using tests::shell;
using tests::TemporaryFolder;
namespace fs = std::filesystem;

const std::string kVersion = str(H5_VERS_MAJOR, '.', H5_VERS_MINOR, '.', H5_VERS_RELEASE);

bool is_mapped(const std::string& library) {
  return tests::read_text("/proc/self/maps").find(library) != std::string::npos;
}

/// Before main, and before HDF5 can have looked for plugins.
const bool loaded_at_start = [] {
  setenv("HDF5_PLUGIN_PATH", PLUGINS, 1);
  return is_mapped("libhdf5") || is_mapped("libcurl");
}();

/// The error of a machine without the library, in one line.
void expect_missing(const std::string& text, const std::string& where) {
  EXPECT_THAT(text,
              AllOf(HasSubstr("hdf5: cannot load " HDF5_FILE " of HDF5 " + kVersion + " ("),
                    HasSubstr("cannot open shared object file: No such file or directory"),
                    HasSubstr("On Debian: apt-get install libhdf5-dev; elsewhere put its folder into LD_LIBRARY_PATH")))
      << where;
  const size_t at = text.find("hdf5: cannot load");
  EXPECT_EQ(text.find('\n', at), text.find_last_of('\n')) << where;
}

TEST(Hdf5Loading, ComesWithTheFirstUse) {
  EXPECT_FALSE(loaded_at_start);
  EXPECT_EQ(hdf5_parts(fs::path(WEFT_GOLDEN) / "hdf5/jsc.h5"), (std::vector<std::string>{"train", "val"}));
  EXPECT_TRUE(is_mapped("libhdf5"));
  EXPECT_EQ(describe_hdf5(), HDF5_FILE ", HDF5 " + kVersion);
}

// Data packed by deflate and plugins from HDF5_PLUGIN_PATH: one plugin is linked with HDF5, another finds its functions
// in the process.
TEST(Hdf5Loading, FiltersWork) {
  const TemporaryFolder folder;
  for (const char* filter : {"deflate", "plugin", "unlinked"}) {
    const std::string path = folder / (std::string(filter) + ".h5");
    const Outcome written = shell(str(FILTERED_FILE, ' ', path, ' ', filter));
    ASSERT_EQ(written.exit_code, 0) << written.output;
    const auto fields = open_fields(path);
    std::vector<float> values(3 * 4 * 5), expected(values.size());
    for (int64_t time = 0; time < 2; ++time) {
      fields->read(time, fields->size(), values.data());
      std::iota(expected.begin(), expected.end(), static_cast<float>(time * 3 * 4 * 5));
      EXPECT_EQ(values, expected) << filter;
    }
  }
}

TEST(Hdf5Loading, SaysWhatIsMissing) {
  const std::string none = error_text([] { load_hdf5("libweft_hdf5_none.so.7", "/nowhere"); });
  EXPECT_THAT(none, StartsWith("hdf5: cannot load libweft_hdf5_none.so.7 of HDF5 " + kVersion +
                               " (libweft_hdf5_none.so.7: cannot open shared object file"));
  EXPECT_THAT(none, HasSubstr("; /nowhere/libweft_hdf5_none.so.7: cannot open shared object file"));
  EXPECT_THAT(error_text([] { load_hdf5(OLD, ""); }), HasSubstr("(" OLD ": is HDF5 1.8.23)"));
  EXPECT_THAT(error_text([] { load_hdf5(BARE, ""); }), HasSubstr("(" BARE ": has no H5Aclose)"));
}

TEST(Hdf5Loading, LooksIntoTheFolderOfTheBuild) {
  const TemporaryFolder folder;
  const std::string name = "libweft_hdf5_old.so.7";
  fs::create_symlink(HDF5_PATH, folder / name);
  const Hdf5Library found = load_hdf5(name, folder.path());
  EXPECT_GE(found.open(), 0);
  EXPECT_GT(found.T_IEEE_F32LE(), 0);
  // But a second copy would call functions of the one that the program has loaded.
  void* const of_the_program = dlopen(OLD, RTLD_NOW);
  ASSERT_NE(of_the_program, nullptr);
  EXPECT_THAT(error_text([&] { load_hdf5(name, folder.path()); }),
              HasSubstr("(libweft_hdf5_old.so.7: is HDF5 1.8.23). On Debian"));
  dlclose(of_the_program);
}

TEST(Hdf5Loading, GoesOnBehindALibraryOfAnotherVersion) {
  const TemporaryFolder folder;
  fs::copy_file(OLD, folder / HDF5_FILE);
  EXPECT_EQ(shell(str("LD_LIBRARY_PATH=", folder.path().string(), ' ', STATE)).output,
            str(HDF5_FILE, ", HDF5 ", kVersion, '\n'));
}

#if !defined(__SANITIZE_ADDRESS__)
constexpr const char* kHidden = "LD_PRELOAD=" HIDE " OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive ";
#else
constexpr const char* kHidden =
    "ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=" HIDE " OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive ";
#endif

TEST(WithoutHdf5, AProcessStartsAndSaysSo) {
  const Outcome run = shell(str(kHidden, STATE));
  EXPECT_EQ(run.exit_code, 0);
  expect_missing(run.output, "state");
}

// All that needs it, in a process of its own: this test starts itself.
TEST(WithoutHdf5, EveryUseIsTheSameErrorEachTime) {
  if (std::getenv("WEFT_HDF5_IS_HIDDEN") == nullptr) {
    const Outcome run = shell(str("WEFT_HDF5_IS_HIDDEN=1 ", kHidden, fs::read_symlink("/proc/self/exe").string(),
                                  " --gtest_filter=WithoutHdf5.EveryUseIsTheSameErrorEachTime"));
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("[  PASSED  ] 1 test."));
    return;
  }
  const TemporaryFolder folder;
  const fs::path images = fs::path(WEFT_GOLDEN) / "hdf5/jsc.h5";
  for (int time = 0; time < 2; ++time) {
    expect_missing(error_text([&] { hdf5_parts(images); }), "parts");
    expect_missing(error_text([&] { hdf5_images(images, "train"); }), "images");
    expect_missing(error_text([&] { hdf5_writer(folder / "a.h5", {"a"}); }), "writer");
    expect_missing(error_text([&] { open_fields(images); }), "fields");
    expect_missing(error_text([&] { write_fields(folder / "b.h5", {1, 1, 1, 1}, [](int64_t, float*) {}); }), "fields");
  }
  EXPECT_EQ(folder.files(), 0u);
}

#if WEFT_APPS
TEST(WithoutHdf5, ProgramsStartAndTrain) {
  const TemporaryFolder folder;
  expect_missing(shell(str(kHidden, BIN, "/weft-info | grep '^HDF5 '")).output, "weft-info");
  const std::string train =
      str(BIN, "/train_image --data shapes --device cpu --model resnet8 --max-steps 1 --out ", folder / "run");
  const Outcome run = shell(kHidden + train);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_TRUE(fs::exists(folder / "run/checkpoint_last.safetensors"));
  const Outcome tested = shell(kHidden + train + " --eval-only");
  EXPECT_EQ(tested.exit_code, 0) << tested.output;
}
#endif

}  // namespace
}  // namespace weft::data
