// SPDX-License-Identifier: Apache-2.0
// What others may have put in the way: links under temporary names, named pipes.
#include "io/file_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/atomic_file.h"
#include "io/checkpoint.h"
#include "io/npy.h"
#include "io/seal.h"
#include "io/weights/weights_file.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TemporaryFolder;

TEST(AtomicCreation, ALinkUnderTheTemporaryNameIsNotFollowed) {
  const TemporaryFolder folder;
  test::write_file(folder / "precious", "text");
  // Every name that a process with this number could have used without a random part.
  fs::create_symlink("precious", folder / str(".a.", ::getpid(), ".tmp"));
  fs::create_symlink("precious", folder / str("a", ::getpid(), ".part"));
  write_atomically(folder / "a", "new", "test");
  write_file(folder / "a", std::vector<uint8_t>{'n', 'e', 'w', 'e', 'r'});
  EXPECT_EQ(test::read_file(folder / "precious"), "text");
  EXPECT_EQ(test::read_file(folder / "a"), "newer");
  EXPECT_FALSE(fs::is_symlink(folder / "a"));
}

TEST(AtomicCreation, NamesAreNewEachTimeAndPermissionsTheUsersOwn) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  const AtomicFile one(folder / "a", "test"), two(folder / "a", "test");
  ::umask(before);
  EXPECT_NE(one.temporary(), two.temporary());
  struct stat facts {};
  ASSERT_EQ(::stat(one.temporary().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0640u);
}

TEST(AtomicCreation, PipesAndDevicesStay) {
  const TemporaryFolder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link");
  for (const fs::path& path : {pipe, folder / "link", fs::path("/dev/null"), fs::path("/dev/weft_test")})
    EXPECT_EQ(error_of([&] { AtomicFile(path, "test"); }),
              "test: expected a file, got something else: " + path.string());
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(folder.files(), 2u);
}

TEST(AtomicFile, KeepsTheLastOnes) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& text, int keep) {
    AtomicFile file(folder / "a.txt", "test");
    AtomicFile::Writer out(file);
    out.write(text.data(), text.size());
    out.close();
    file.commit(keep);
  };
  for (const char* text : {"1", "2", "3", "4"}) write(text, 3);
  EXPECT_EQ(test::read_file(folder / "a.txt"), "4");
  EXPECT_EQ(test::read_file(kept_file(folder / "a.txt", 1)), "3");
  EXPECT_EQ(test::read_file(folder / "a.2.txt"), "2");
  EXPECT_EQ(folder.files(), 3u);
  write("5", 1);
  EXPECT_EQ(test::read_file(folder / "a.1.txt"), "3") << "only what is asked for moves";
}

// A pipe without a writer would make open() wait for ever: each reader reports the pipe at once.
TEST(RegularFilesOnly, ANamedPipeIsRefusedByEveryReader) {
  const TemporaryFolder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const testing::Matcher<std::string> refusal = testing::HasSubstr("expected a file, got something else");
  ::alarm(60);
  EXPECT_THAT(error_of([&] { read_file(pipe); }), refusal);
  EXPECT_THAT(error_of([&] { read_text(pipe, "test"); }), refusal);
  EXPECT_THAT(error_of([&] { read_lines(pipe); }), refusal);
  EXPECT_THAT(error_of([&] { read_npy(pipe); }), refusal);
  EXPECT_THAT(error_of([&] { load_checkpoint(pipe); }), refusal);
  EXPECT_THAT(error_of([&] { open_weights(pipe); }), refusal);
  EXPECT_THAT(error_of([&] { open_torch(pipe); }), refusal);
  EXPECT_EQ(check_seal(pipe), SealState::broken);
  std::string why;
  EXPECT_LT(open_regular(folder.path(), why).fd, 0);
  EXPECT_EQ(why, "expected a file, got a folder");
  fs::create_symlink("pipe", folder / "link");
  EXPECT_THAT(error_of([&] { read_file(folder / "link"); }), refusal);
  ::alarm(0);
}

TEST(ReadText, HasALimit) {
  const TemporaryFolder folder;
  test::write_file(folder / "a", "12345");
  EXPECT_EQ(read_text(folder / "a", "test", 5), "12345");
  EXPECT_EQ(error_of([&] { read_text(folder / "a", "test", 4); }),
            "test: " + (folder / "a").string() + ": expected at most 4 bytes, got 5");
}

}  // namespace
}  // namespace weft
