// SPDX-License-Identifier: Apache-2.0
#include "data/image_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include "kernels/engines/nvjpeg.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

void place(const std::string& image, const fs::path& to) {
  fs::create_directories(to.parent_path());
  fs::copy_file(golden(image), to);
}

TEST(ImageFolder, OrdersClassesAndImagesByTheirBytes) {
  WEFT_NEED_PART(JPEG, "libjpeg-turbo");
  WEFT_NEED_PART(SPNG, "libspng");
  const TemporaryFolder folder;
  place("rgb.png", folder / "train/bees/b.PNG");
  place("baseline.jpg", folder / "train/bees/B b.JpEg");
  place("grey.jpg", folder / "train/ants/deep/er.jpg");
  place("rgb.png", folder / "train/ants/a.jpg");  // known by its bytes, whatever its name
  place("rgb.png", folder / "train/Wasps/1.png");
  write_file(folder / "train/ants/.hidden.jpg", {1});
  write_file(folder / "train/ants/notes.txt", {1});
  write_file(folder / "train/stray.jpg", {1});
  const auto set = image_folder(folder.path(), Split::train);
  EXPECT_EQ(set->classes(), (std::vector<std::string>{"Wasps", "ants", "bees"}));
  ASSERT_EQ(set->size(), 5);
  const std::vector<std::string> order{"Wasps/1.png", "ants/a.jpg", "ants/deep/er.jpg", "bees/B b.JpEg", "bees/b.PNG"};
  const std::vector<int64_t> labels{0, 1, 1, 2, 2};
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_THAT(set->origin(i), ::testing::EndsWith(order[i]));
    const Image image = set->get(i);
    EXPECT_EQ(image.label, labels[i]);
    EXPECT_EQ(image.channels, 3);
  }
  EXPECT_EQ(set->storage(), nullptr);
}

TEST(ImageFolder, TheValPartHasTheTrainPartsClasses) {
  const TemporaryFolder folder;
  place("rgb.png", folder / "train/a/1.png");
  place("rgb.png", folder / "train/b/1.png");
  place("rgb.png", folder / "val/b/1.png");
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::val); }), HasSubstr("'a' is missing"));
  place("rgb.png", folder / "val/a/1.png");
  EXPECT_EQ(image_folder(folder.path(), Split::val)->size(), 2);
  place("rgb.png", folder / "val/c/1.png");
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::val); }), HasSubstr("got the new class 'c'"));
}

TEST(ImageFolder, RefusesWhatItCannotUse) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_text([&] { image_folder(folder / "none", Split::train); }), HasSubstr("which does not exist"));
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::train); }), HasSubstr("DIR/{train,val}/CLASS"));
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::val); }), HasSubstr("expected val or test in"));
  write_file(folder / "file", {1});
  EXPECT_THAT(error_text([&] { image_folder(folder / "file", Split::train); }), HasSubstr("which is a file"));
  fs::create_directories(folder / "train");
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::train); }),
              HasSubstr("expected one folder per class in"));
  place("rgb.png", folder / "train/full/1.png");
  fs::create_directories(folder / "train/hollow");
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::train); }),
              HasSubstr("train/hollow, got none. Add some, or remove the class."));
  place("rgb.png", folder / "train/hollow/1.png");
  if (const std::string& why = kernels::vendor::nvjpeg::missing(); !why.empty()) {
    EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::train, {.gpu = 0}); }),
                HasSubstr("images cannot be decoded on a GPU: " + why));
  }
}

TEST(ImageFolder, NamesTheUnreadableFolder) {
  const TemporaryFolder folder;
  place("rgb.png", folder / "train/a/deep/1.png");
  fs::permissions(folder / "train/a/deep", fs::perms::none);
  fs::permissions(folder.path(), fs::perms::all);
  const pid_t child = ::fork();
  if (child == 0) {  // as a user whom permissions bind
    if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(2);
    const std::string text = error_text([&] { image_folder(folder.path(), Split::train); });
    ::_exit(text == "folder: expected to read " + (folder / "train/a/deep").string() + ", got 'Permission denied'" ? 0
                                                                                                                   : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  fs::permissions(folder / "train/a/deep", fs::perms::owner_all);
}

TEST(ImageFolder, NamesOnOneLine) {
  const TemporaryFolder folder;
  place("rgb.png", folder / "train/a/1.png");
  place("rgb.png", folder / "val/a/1.png");
  place("rgb.png", folder / "val/b\n\x1b[2J/1.png");
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::val); }),
              HasSubstr("the new class 'b\\x0a\\x1b[2J'"));
  write_file(folder / "train/a/bad\n.jpg", {1});
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::train)->get(1); }), HasSubstr("bad\\x0a.jpg"));
}

TEST(ImageFolder, NamesTheUnreadableImage) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "train/a");
  write_file(folder / "train/a/bad.jpg", {0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 1});
  const auto set = image_folder(folder.path(), Split::train);
  EXPECT_THAT(error_text([&] { set->get(0); }), HasSubstr("train/a/bad.jpg"));
  EXPECT_THAT(error_text([&] { set->get(1); }), HasSubstr("expected an index below 1, got 1"));
}

TEST(ImageFolder, DecodesEveryImageOfHymenoptera) {
  const fs::path folder = shared_data("hymenoptera_data");
  WEFT_NEED_SHARED_DATA(folder);
  WEFT_NEED_PART(JPEG, "libjpeg-turbo");
  const auto train = image_folder(folder, Split::train), val = image_folder(folder, Split::val);
  EXPECT_EQ(train->size(), 244);
  EXPECT_EQ(val->size(), 153);
  EXPECT_EQ(val->classes(), (std::vector<std::string>{"ants", "bees"}));
  for (const auto& set : {train, val})
    for (int64_t i = 0; i < set->size(); ++i) {
      const Image image = set->get(i);
      EXPECT_GE(image.height, 64) << set->origin(i);
      EXPECT_EQ(static_cast<int64_t>(image.pixels.size()), image.height * image.width * 3);
    }
}

}  // namespace
}  // namespace weft::data::testing
