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
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::val); }), HasSubstr("got neither"));
  write_file(folder / "file", {1});
  EXPECT_THAT(error_text([&] { image_folder(folder / "file", Split::train); }), HasSubstr("which is a file"));
  fs::create_directories(folder / "train");
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::train); }),
              HasSubstr("expected one folder per class in"));
  place("rgb.png", folder / "train/full/1.png");
  fs::create_directories(folder / "train/hollow");
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::train); }),
              HasSubstr("in each class, got none in " + (folder / "train/hollow").string() +
                        ". Add some, or remove the class"));
  place("rgb.png", folder / "train/hollow/1.png");
  if (const std::string& why = kernels::vendor::nvjpeg::missing(); !why.empty()) {
    EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::train, {.gpu = 0}); }),
                HasSubstr("images cannot be decoded on a GPU: " + why));
  }
}

TEST(ImageFolder, SkipsHiddenFilesAndFoldersAtAnyDepth) {
  const TemporaryFolder folder;
  place("rgb.png", folder / "train/a/1.png");
  for (const char* hidden : {"train/a/.ipynb_checkpoints/1-checkpoint.png", "train/.ipynb_checkpoints/1.png",
                             "train/__MACOSX/a/._1.png", "train/a/._1.png", "train/a/deep/@eaDir/1.png/1.png",
                             "train/a/deep/Thumbs.db", "train/a/.DS_Store", ".val/a/1.png"})
    place("rgb.png", folder / hidden);
  const auto set = image_folder(folder.path(), Split::train);
  EXPECT_EQ(set->classes(), std::vector<std::string>{"a"});
  EXPECT_EQ(set->size(), 1);
  EXPECT_EQ(set->describe(), "folder train: 1 images of varying size, 1 classes");
}

TEST(ImageFolder, SaysWhatIsLeftOut) {
  const TemporaryFolder folder;
  for (const char* file : {"train/a/1.png", "train/a/2.JPE", "train/a/3.jfif", "train/b/1.JPEG", "train/stray.png",
                           "train/b/1.heic", "train/b/2.heic", "train/b/notes.txt", "train/README"})
    place("rgb.png", folder / file);
  const auto set = image_folder(folder.path(), Split::train);
  EXPECT_EQ(set->size(), 4);
  EXPECT_EQ(set->describe(),
            "folder train: 4 images of varying size, 2 classes; left out: 1 without suffix, 2 .heic, 1 .txt, 1 images "
            "beside the classes' folders, such as " +
                (folder / "train/stray.png").string());
  place("rgb.png", folder / "train/c/1.heic");
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::train); }),
              HasSubstr("got none in " + (folder / "train/c").string() + " (1 .heic). Add some"));
}

TEST(ImageFolder, ReadsAsManyFormatsAsTheBuild) {
  const TemporaryFolder folder;
  place("rgb.png", folder / "train/a/1.png");
  place("rgb.webp", folder / "train/a/2.WebP");
  const auto set = image_folder(folder.path(), Split::train);
  EXPECT_EQ(set->size(), WEFT_HAVE_LEPTONICA ? 2 : 1);
  if (WEFT_HAVE_LEPTONICA) {
    EXPECT_EQ(set->get(1).pixels, read_ppm(golden("rgb.ppm")).pixels);
  } else {
    EXPECT_THAT(set->describe(), HasSubstr("left out: 1 .webp (needs Leptonica: apt-get install libleptonica-dev)"));
  }
}

TEST(ImageFolder, FollowsLinksAndNamesThoseThatLeadNowhereOrBack) {
  const TemporaryFolder folder;
  place("rgb.png", folder / "elsewhere/b/1.png");
  place("rgb.png", folder / "train/a/1.png");
  fs::create_directory_symlink(folder / "elsewhere/b", folder / "train/b");       // a class
  fs::create_directory_symlink(folder / "elsewhere", folder / "train/a/more");    // a folder of a class
  fs::create_symlink(folder / "elsewhere/b/1.png", folder / "train/a/link.png");  // an image
  const auto set = image_folder(folder.path(), Split::train);
  EXPECT_EQ(set->classes(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(set->size(), 4);
  const auto refusal = [&] { return error_text([&] { image_folder(folder.path(), Split::train); }); };
  for (const auto& [to, link] :
       {std::pair("train/a", "train/a/deep/back"), {"train", "train/a/up"}, {"elsewhere", "elsewhere/b/on"}}) {
    fs::create_directories((folder / link).parent_path());
    fs::create_directory_symlink(folder / to, folder / link);
    const std::string seen = std::string(link).starts_with("else") ? "train/a/more/b/on" : link;
    EXPECT_EQ(refusal(), "folder: expected a tree of folders, got the link " + (folder / seen).string() +
                             ", which leads back to " + fs::canonical(folder / to).string());
    fs::remove(folder / link);
  }
  fs::create_symlink(folder / "gone.png", folder / "train/a/0.png");
  EXPECT_EQ(refusal(), "folder: expected a file or a folder, got the link " + (folder / "train/a/0.png").string() +
                           ", which leads nowhere: No such file or directory");
  fs::remove(folder / "train/a/0.png");
  fs::create_symlink(folder / "train/c", folder / "train/c");
  EXPECT_THAT(refusal(), HasSubstr("train/c, which leads nowhere: Too many levels of symbolic links"));
}

TEST(ImageFolder, PartsHaveTheNamesThatPeopleGive) {
  for (const auto& [train, val] :
       {std::pair("Train", "Val"), {"training", "validation"}, {"TRAIN", "dev"}, {"train", "valid"}}) {
    const TemporaryFolder folder;
    place("rgb.png", folder / train / "a/1.png");
    for (const char* image : {"1.png", "2.png"}) place("rgb.png", folder / val / "a" / image);
    for (const char* image : {"1.png", "2.png", "3.png"}) place("rgb.png", folder / "test/a" / image);
    for (const Split split : {Split::val, Split::evaluation}) {
      const auto set = image_folder(folder.path() / "", split);
      EXPECT_EQ(set->size(), 2) << val;
      EXPECT_THAT(set->describe(), HasSubstr("folder val: "));
    }
    EXPECT_EQ(image_folder(folder.path(), Split::train)->size(), 1);
    fs::remove_all(folder / val);
    EXPECT_EQ(error_text([&] { image_folder(folder.path(), Split::val); }),
              "folder: " + folder.path().string() +
                  ": expected a part val (or valid, validation, dev), got train, test. test is for the "
                  "end, not to choose the best epoch by. Move some images of each class from train to val, or rename "
                  "test");
    EXPECT_EQ(image_folder(folder.path(), Split::evaluation)->describe(),
              "folder test: 3 images of varying size, 1 classes");
    fs::remove_all(folder / "test");
    EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::val); }),
                HasSubstr("got train. Move some images of each class from train to val"));
    fs::rename(folder / train, folder / "val");
    EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::train); }),
                HasSubstr("expected a part train, got val"));
  }
}

TEST(ImageFolder, OnePartHasOneFolder) {
  const TemporaryFolder folder;
  for (const char* part : {"train", "val", "valid"}) place("rgb.png", folder / part / "a/1.png");
  EXPECT_EQ(error_text([&] { image_folder(folder.path(), Split::train); }),
            "folder: expected one folder for val in " + folder.path().string() +
                ", got val and valid. Rename or merge one of them");
}

TEST(ImageFolder, SaysWhatAFolderWithoutPartsMayBe) {
  const TemporaryFolder folder;
  const auto refusal = [&](const fs::path& place) { return error_text([&] { image_folder(place, Split::train); }); };
  place("rgb.png", folder / "pets/cat/1.png");
  place("rgb.png", folder / "pets/dog/1.png");
  EXPECT_THAT(refusal(folder / "pets"), HasSubstr("got neither but the folders cat, dog. If these are classes, images "
                                                  "of each class go into " +
                                                  (folder / "pets/train/CLASS").string()));
  place("rgb.png", folder / "set/inner/train/cat/1.png");
  EXPECT_THAT(refusal(folder / "set"),
              HasSubstr("Its folder " + (folder / "set/inner").string() + " has parts: name that one"));
  EXPECT_THAT(refusal(folder / "set/inner/train"), HasSubstr("It seems to be the part train: name the folder above"));
  place("rgb.png", folder / "flat/train/1.png");
  EXPECT_THAT(refusal(folder / "flat"),
              HasSubstr("got none but 1 images, such as 1.png. Move each into the folder of its class"));
}

TEST(ImageFolder, NamesArchivesThatAreNotUnpacked) {
  const TemporaryFolder folder;
  write_file(folder / "pets.tar.gz", {1});
  const auto refusal = [&](const char* name) { return error_text([&] { image_folder(folder / name, Split::train); }); };
  const std::string hint = ". " + (folder / "pets.tar.gz").string() + " is an archive: unpack it first, with tar -xf";
  EXPECT_EQ(refusal("pets.tar.gz"),
            "folder: expected a folder, got " + (folder / "pets.tar.gz").string() + ", which is a file" + hint);
  EXPECT_THAT(refusal("pets"), HasSubstr("which does not exist" + hint));
  EXPECT_THAT(refusal(""), HasSubstr(hint));
  fs::create_directories(folder / "set/train");
  write_file(folder / "set/train/n01440764.tar", {1});
  write_file(folder / "set/train/n01443537.tar", {1});
  EXPECT_THAT(refusal("set"), HasSubstr("got none. " + (folder / "set/train/n01440764.tar").string() +
                                        " (and 1 more) is an archive: unpack it first, with tar -xf"));
  write_file(folder / "c10.zip", {1});
  for (const char* kind : {"cifar10", "cifar100", "idx"})
    EXPECT_THAT(error_text([&] { open_dataset(str(kind, ":", (folder / "c10").string()), Split::train); }),
                HasSubstr("c10.zip is an archive: unpack it first, with unzip"));
}

TEST(ImageFolder, NamesClassesThatDifferInCaseAlone) {
  const TemporaryFolder folder;
  place("rgb.png", folder / "train/dog/1.png");
  place("rgb.png", folder / "val/Dog/1.png");
  EXPECT_EQ(error_text([&] { image_folder(folder.path(), Split::val); }),
            "folder: expected in " + (folder / "val").string() +
                " only classes of the train part, got the new class 'Dog': 'dog' differs in case alone. Rename one of "
                "them");
}

TEST(ImageFolder, NamesClassesThatDifferInTheirAccentsBytesAlone) {
  WEFT_NEED_PART(UTF8PROC, "utf8proc");
  const TemporaryFolder folder;
  place("rgb.png", folder / "train/caf\u00e9/1.png");
  place("rgb.png", folder / "val/Cafe\u0301/1.png");
  EXPECT_THAT(error_text([&] { image_folder(folder.path(), Split::val); }),
              HasSubstr("'caf\u00e9' differs in how accents are stored (NFC, NFD) alone. Rename one of them"));
}

TEST(Dataset, LabelsCountAsOtherClassesDo) {
  const TemporaryFolder folder;
  for (const char* name : {"bee", "cat", "dog"}) place("rgb.png", folder / "train" / name / "ä 1.png");
  const auto set = with_classes(image_folder(folder.path(), Split::train), {"dog", "eel", "bee", "cat"});
  for (const auto& [index, label] : {std::pair(0, 2), {1, 3}, {2, 0}}) EXPECT_EQ(set->get(index).label, label);
  EXPECT_EQ(set->classes().size(), 4u);
  EXPECT_EQ(set->storage(), nullptr);
  const auto shapes = open_dataset("shapes", Split::val);
  std::vector<std::string> reversed(shapes->classes().rbegin(), shapes->classes().rend());
  const auto other = with_classes(shapes, reversed);
  const auto last = static_cast<int64_t>(reversed.size()) - 1;
  for (int64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(other->get(i).label, last - shapes->get(i).label);
    EXPECT_EQ(other->storage()->labels[i], other->get(i).label);
  }
  EXPECT_THAT(error_text([&] { with_classes(set, {"dog"}); }), HasSubstr("got the new class 'eel'"));
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
