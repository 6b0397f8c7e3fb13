// SPDX-License-Identifier: Apache-2.0
#include "train/record/run_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "dist/rendezvous/socket.h"
#include "tests/train/temporary_folder.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

/// Another process that holds a folder. It ends by a kill, after its time, or with this test.
class Holder {
 public:
  /// `then`: its action once it has the folder, before this constructor returns.
  explicit Holder(
      const fs::path& folder, milliseconds time = milliseconds(60'000), const std::function<void()>& then = [] {}) {
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) std::abort();
    process_ = ::fork();
    if (process_ == 0) {
      const RunFolder run(folder);
      then();
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      ::usleep(static_cast<useconds_t>(time.count()) * 1000);
      ::_exit(0);  // no destructor gives the folder back: the kernel does
    }
    ::close(ready[1]);
    char byte;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the other process does not hold the folder";
    ::close(ready[0]);
  }
  ~Holder() { end(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  void end() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  std::string name() const { return str("process ", process_, " on ", dist::host_name()); }

 private:
  pid_t process_ = 0;
};

/// Patience in milliseconds; a file system without locks is a failure.
RunLockOptions patient(int patience) {
  return {.patience = milliseconds(patience), .warn = [](const std::string& text) { ADD_FAILURE() << text; }};
}

TEST(RunLock, ASecondProcessIsRefusedByTheHoldersName) {
  const TemporaryFolder folder;
  const Holder holder(folder.path());
  const auto begin = Clock::now();
  EXPECT_EQ(error_of([&] { RunFolder(folder.path(), patient(250)); }),
            str("run folder: ", folder.path().string(), " is in use by ", holder.name(),
                ", and was for the 0.25 s that this run has waited. End that run, or name another folder"));
  EXPECT_GE(Clock::now() - begin, milliseconds(250));
  EXPECT_EQ(error_of([&] { RunFolder(folder / "another", patient(0)); }), "(no error)");
}

TEST(RunLock, AKilledHolderLeavesNothingThatRefuses) {
  const TemporaryFolder folder;
  Holder holder(folder.path());
  const std::string name = holder.name();
  holder.end();
  EXPECT_EQ(read_file(folder / RunLock::kFile), name + "\n") << "what a kill leaves";
  const RunFolder run(folder.path(), patient(0));
  EXPECT_EQ(read_file(folder / RunLock::kFile), str("process ", ::getpid(), " on ", dist::host_name(), '\n'));
}

TEST(RunLock, AnAttemptThatIsEndingIsWaitedFor) {
  const TemporaryFolder folder;
  const auto begin = Clock::now();
  const Holder holder(folder.path(), milliseconds(700));
  EXPECT_EQ(error_of([&] { RunFolder(folder.path(), patient(60'000)); }), "(no error)");
  EXPECT_GE(Clock::now() - begin, milliseconds(500));
  EXPECT_LT(Clock::now() - begin, milliseconds(30'000));
}

TEST(RunLock, WaitsLongerInARestartedAttempt) {
  for (const char* name : {"SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT"}) {
    ::unsetenv(name);
    EXPECT_EQ(run_lock_patience(), milliseconds(10'000));
    ::setenv(name, "0", 1);
    EXPECT_EQ(run_lock_patience(), milliseconds(10'000));
    ::setenv(name, "1", 1);
    EXPECT_EQ(run_lock_patience(), milliseconds(120'000)) << name;
    ::unsetenv(name);
  }
}

TEST(RunLock, OneProcessHasAFolderAsOftenAsItLikes) {
  const TemporaryFolder folder;
  const auto elsewhere = [&] { return error_of([&] { RunFolder(folder.path(), patient(0)); }); };
  const auto in_another_process = [&] {
    const pid_t process = ::fork();
    if (process == 0) ::_exit(elsewhere() == "(no error)" ? 0 : 1);
    int status = 0;
    ::waitpid(process, &status, 0);
    return WEXITSTATUS(status) == 0 ? "free" : "held";
  };
  {
    auto first = std::make_unique<RunFolder>(folder.path(), patient(0));
    const RunFolder copy = *first, second(folder.path() / "." / "", patient(0));
    EXPECT_STREQ(in_another_process(), "held");
    first.reset();
    EXPECT_STREQ(in_another_process(), "held") << "two are left";
    EXPECT_TRUE(fs::exists(folder / RunLock::kFile));
  }
  EXPECT_EQ(folder.files(), 0u) << "given back, the lock leaves no file";
  EXPECT_STREQ(in_another_process(), "free");
  EXPECT_EQ(elsewhere(), "(no error)");
}

// A child has the descriptors of its parent, and could keep the folder behind its end.
TEST(RunLock, ChildrenDoNotKeepIt) {
  for (const bool starts_a_program : {false, true}) {
    const TemporaryFolder folder;
    int child[2];
    ASSERT_EQ(::pipe2(child, O_CLOEXEC), 0);
    Holder holder(folder.path(), milliseconds(60'000), [&] {
      char name[] = "sleep", seconds[] = "60";
      char* const words[] = {name, seconds, nullptr};
      pid_t process = 0;
      const auto tell = [&] {
        if (::write(child[1], &process, sizeof process) != sizeof process) ::_exit(1);
      };
      if (starts_a_program) {
        if (::posix_spawnp(&process, name, nullptr, nullptr, words, environ) != 0) ::_exit(1);
        tell();
      } else if (::fork() == 0) {  // the child reports: until its first step it still has the descriptor
        process = ::getpid();
        tell();
        ::usleep(60'000'000);
        ::_exit(0);
      }
    });
    pid_t process = 0;
    ASSERT_EQ(::read(child[0], &process, sizeof process), static_cast<ssize_t>(sizeof process));
    holder.end();
    EXPECT_EQ(error_of([&] { RunFolder(folder.path(), patient(0)); }), "(no error)") << starts_a_program;
    EXPECT_EQ(::kill(process, 0), 0) << "the child lives";
    ::kill(process, SIGKILL);
    ::close(child[0]);
    ::close(child[1]);
  }
}

TEST(RunLock, AForkedChildNeitherHasNorEndsTheLock) {
  const TemporaryFolder folder;
  auto run = std::make_unique<RunFolder>(folder.path(), patient(0));
  const pid_t process = ::fork();
  if (process == 0) {
    const bool refused = error_of([&] { RunFolder(folder.path(), patient(0)); }) != "(no error)";
    run.reset();
    ::_exit(refused && fs::exists(folder / RunLock::kFile) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(folder / RunLock::kFile));
}

// A holder may remove the file between another's open and lock: then the lock keeps nobody out.
TEST(RunLock, ARemovedFileIsNoLock) {
  const TemporaryFolder folder;
  int calls = 0;
  RunLockOptions options = patient(0);
  options.lock = [&](int fd) {
    if (++calls == 1) fs::remove(folder / RunLock::kFile);
    return lock_whole_file(fd);
  };
  const RunFolder run(folder.path(), options);
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(fs::exists(folder / RunLock::kFile));
}

TEST(RunLock, ADeletedFileIsMadeAgainAtTheNextCheckpoint) {
  const TemporaryFolder folder;
  const RunFolder run(folder.path(), patient(0));
  run.save(RunFolder::kLastCheckpoint, {});
  fs::remove(folder / RunLock::kFile);
  run.save(RunFolder::kLastCheckpoint, {});
  EXPECT_EQ(read_file(folder / RunLock::kFile), str("process ", ::getpid(), " on ", dist::host_name(), '\n'));
  const pid_t other = ::fork();
  if (other == 0) ::_exit(error_of([&] { RunFolder(folder.path(), patient(0)); }) == "(no error)" ? 1 : 0);
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "it is locked again";
}

TEST(RunLock, ASecondRunAfterADeletedFileEndsTheFirst) {
  const TemporaryFolder folder;
  auto run = std::make_unique<RunFolder>(folder.path(), patient(0));
  run->save(RunFolder::kLastCheckpoint, {});
  const std::string before = read_file(run->last_checkpoint());
  fs::remove(folder / RunLock::kFile);
  const Holder other(folder.path());
  Checkpoint next;
  next.integers["step"] = 2;
  EXPECT_EQ(error_of([&] { run->save(RunFolder::kLastCheckpoint, next); }),
            str("run folder: the file ", (folder / RunLock::kFile).string(), " was deleted, and ", other.name(),
                " has the folder now. Two runs must not write into one: this one ends"));
  EXPECT_EQ(read_file(run->last_checkpoint()), before);
  run.reset();
  EXPECT_EQ(read_file(folder / RunLock::kFile), other.name() + "\n") << "it takes its own lock away, no other's";
}

TEST(RunLock, AFileSystemWithoutLocksIsToldOfAndUsed) {
  for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS}) {
    const TemporaryFolder folder;
    std::vector<std::string> heard;
    const RunLockOptions options{.lock = [&](int) { return error; },
                                 .warn = [&](const std::string& text) { heard.push_back(text); }};
    const auto begin = Clock::now();
    const RunFolder run(folder.path(), options);
    EXPECT_LT(Clock::now() - begin, milliseconds(8'000)) << "there is nothing to wait for";
    run.write_config("a = 1\n");
    EXPECT_THAT(heard, testing::ElementsAre(str("run folder: ", folder.path().string(), " cannot be locked ('",
                                                dist::error_words(error),
                                                "'): nothing keeps a second run from writing into it")));
  }
}

TEST(RunLock, AFileThatCannotBeOpenedIsToldOfToo) {
  const TemporaryFolder folder;
  fs::create_directory(folder / RunLock::kFile);
  std::string heard;
  RunLockOptions options = patient(0);
  options.warn = [&](const std::string& text) { heard = text; };
  const RunFolder run(folder.path(), options);
  EXPECT_THAT(heard, HasSubstr("cannot be locked ('Is a directory')"));
}

// Whoever may write into the folder could name another user's file.
TEST(RunLock, ALinkIsNotFollowed) {
  const TemporaryFolder folder;
  write_file(folder / "precious", "text");
  fs::create_directory(folder / "run");
  fs::create_symlink(folder / "precious", folder / "run" / RunLock::kFile);
  std::string heard;
  RunLockOptions options = patient(0);
  options.warn = [&](const std::string& text) { heard = text; };
  const RunFolder run(folder / "run", options);
  EXPECT_THAT(heard, HasSubstr("cannot be locked ('Too many levels of symbolic links')"));
  EXPECT_EQ(read_file(folder / "precious"), "text");
}

TEST(RunLock, AProcessWarnsOnce) {
  const TemporaryFolder folder;
  const RunLockOptions options{.lock = [](int) { return ENOLCK; }};
  const auto two_folders = [&] {
    const RunFolder first(folder / "a", options);
    const RunFolder second(folder / "b", options);
    ::_exit(0);
  };
  EXPECT_EXIT(two_folders(), testing::ExitedWithCode(0), "^warning: run folder: [^\n]*/a cannot be locked [^\n]*\n$");
}

TEST(RunLock, AHolderWithoutANameIsAnotherRun) {
  const TemporaryFolder folder;
  const Holder holder(folder.path());
  write_file(folder / RunLock::kFile, "");
  EXPECT_THAT(error_of([&] { RunFolder(folder.path(), patient(0)); }), HasSubstr(" is in use by another run, and was"));
  write_file(folder / RunLock::kFile, "some\tbody\nelse");
  EXPECT_THAT(error_of([&] { RunFolder(folder.path(), patient(0)); }), HasSubstr(" is in use by some\\x09body, and"));
}

}  // namespace
}  // namespace weft::train
