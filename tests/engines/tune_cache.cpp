// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/tune_cache.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/support/error_text.h"

namespace weft::kernels::vendor {
namespace {

namespace fs = std::filesystem;

class TuneCacheTest : public testing::Test {
 protected:
  TuneCacheTest()
      : folder(fs::temp_directory_path() / ("weft_tune_cache_" + std::to_string(std::random_device{}()))),
        path((folder / "tune.tsv").string()) {
    fs::create_directories(folder);
  }
  ~TuneCacheTest() override {
    fs::permissions(folder, fs::perms::owner_all);
    fs::remove_all(folder);
  }

  std::string text() const {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
  void write(const std::string& content) const { std::ofstream(path, std::ios::binary) << content; }

  /// The stderr of `work`.
  template <class Work>
  static std::string warnings(Work&& work) {
    testing::internal::CaptureStderr();
    work();
    return testing::internal::GetCapturedStderr();
  }

  const fs::path folder;
  const std::string path;
};

using Found = std::optional<std::string>;

TEST_F(TuneCacheTest, KeepsWinnersAcrossObjects) {
  const std::string said = warnings([&] {
    TuneCache cache(path);
    EXPECT_EQ(cache.find("m", "p"), Found());
    cache.add("m", "p", "own", "own 1 us");
    cache.add("m", "q", "cublaslt", "");
    EXPECT_EQ(cache.find("m", "p"), "own");
    TuneCache other(path);
    EXPECT_EQ(other.find("m", "q"), "cublaslt");
    EXPECT_EQ(other.find("n", "p"), Found());
    EXPECT_EQ(other.find("m", "r"), Found());
  });
  EXPECT_EQ(said, "");
}

TEST_F(TuneCacheTest, SeesWhatOthersAppendAfterItsFirstLook) {
  TuneCache one(path), two(path);
  EXPECT_EQ(one.find("m", "p"), Found());
  two.add("m", "p", "cudnn#1", "");
  EXPECT_EQ(one.find("m", "p"), "cudnn#1");
}

TEST_F(TuneCacheTest, TheFirstLineDecides) {
  TuneCache one(path), two(path);
  one.add("m", "p", "own", "");
  two.add("m", "p", "cublaslt", "");
  for (int run = 0; run < 3; ++run) EXPECT_EQ(TuneCache(path).find("m", "p"), "own");
}

TEST_F(TuneCacheTest, TabsAndLinesInNamesDoNotBreakALine) {
  TuneCache cache(path);
  cache.add("GPU\tof\nmine", "p\tq", "own", "x\ny");
  EXPECT_EQ(TuneCache(path).find("GPU\tof\nmine", "p\tq"), "own");
}

TEST_F(TuneCacheTest, BadLinesAreIgnoredWithOneWarning) {
  {
    TuneCache cache(path);
    for (const char* problem : {"p1", "p2", "p3"}) cache.add("m", problem, "own", "");
  }
  std::string content = text();
  content.replace(content.find("p2"), 2, "p9");  // altered: its checksum does not fit
  write("something else\n\tx\t\t\n" + content +
        "weft-tune-2\tm\tp4\town\t\t00000000\nweft-tune-1\tm\tp5\town\t\tzzzzzzzz\n" + std::string("\0\xff\x80\n", 4));
  const std::string said = warnings([&] {
    TuneCache cache(path);
    EXPECT_EQ(cache.find("m", "p1"), "own");
    EXPECT_EQ(cache.find("m", "p3"), "own");
    for (const char* problem : {"p2", "p9", "p4", "p5"}) EXPECT_EQ(cache.find("m", problem), Found()) << problem;
    cache.add("m", "p2", "cublaslt", "");
    EXPECT_EQ(cache.find("m", "p2"), "cublaslt");
  });
  EXPECT_EQ(said, "weft: tune cache " + path +
                      ": has lines that are torn, altered or from another version; they are ignored\n");
}

TEST_F(TuneCacheTest, EveryAlteredByteIsSeen) {
  TuneCache(path).add("H200", "matmul N=64", "cublaslt#1", "own 3 us");
  const std::string good = text();
  for (size_t i = 1; i + 1 < good.size(); ++i) {  // but for the empty line before and the end
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    write(bad);
    testing::internal::CaptureStderr();
    EXPECT_EQ(TuneCache(path).find("H200", "matmul N=64"), Found()) << i;
    testing::internal::GetCapturedStderr();
  }
}

TEST_F(TuneCacheTest, ATornLineCostsItselfAlone) {
  TuneCache(path).add("m", "p", "own", "");
  const std::string line = text();
  for (size_t length = 1; length < line.size(); ++length) {
    write(line.substr(0, length));  // a process died here
    testing::internal::CaptureStderr();
    TuneCache cache(path);
    EXPECT_EQ(cache.find("m", "p"), Found());
    cache.add("m", "q", "cudnn", "");
    EXPECT_EQ(TuneCache(path).find("m", "q"), "cudnn") << length;
    EXPECT_EQ(cache.find("m", "q"), "cudnn");
    testing::internal::GetCapturedStderr();
  }
}

TEST_F(TuneCacheTest, ALineStillBeingWrittenIsReadWhenItIsWhole) {
  TuneCache(path).add("m", "p", "own", "");
  const std::string line = text();
  write(line.substr(0, line.size() / 2));
  TuneCache cache(path);
  EXPECT_EQ(cache.find("m", "p"), Found());
  std::ofstream(path, std::ios::app) << line.substr(line.size() / 2);
  EXPECT_EQ(cache.find("m", "p"), "own");
}

TEST_F(TuneCacheTest, AFileBegunAnewIsReadFromItsStart) {
  TuneCache cache(path), other(path);
  cache.add("m", "a long problem of many words", "own", "");
  EXPECT_EQ(cache.find("m", "a long problem of many words"), "own");
  write("");
  other.add("m", "p", "cudnn", "");
  EXPECT_EQ(cache.find("m", "p"), "cudnn");
}

TEST_F(TuneCacheTest, ManyProcessesAppendAtOnce) {
  constexpr int kProcesses = 8, kLines = 200;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = fork();
    if (child == 0) {
      TuneCache cache(path);
      for (int i = 0; i < kLines; ++i)
        cache.add("m", "process " + std::to_string(process) + " line " + std::to_string(i), "own", std::string(i, 'x'));
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const std::string said = warnings([&] {
    TuneCache cache(path);
    for (int process = 0; process < kProcesses; ++process)
      for (int i = 0; i < kLines; ++i)
        EXPECT_EQ(cache.find("m", "process " + std::to_string(process) + " line " + std::to_string(i)), "own");
  });
  EXPECT_EQ(said, "");
}

TEST_F(TuneCacheTest, WhatCannotBeWrittenIsOneWarning) {
  const std::string file = (folder / "file").string();
  std::ofstream(file) << "not a folder";
  const std::string below = file + "/weft/tune.tsv";
  const std::string said = warnings([&] {
    TuneCache cache(below);
    EXPECT_EQ(cache.find("m", "p"), Found());
    cache.add("m", "p", "own", "");
    cache.add("m", "q", "own", "");
    EXPECT_EQ(cache.find("m", "p"), Found());
  });
  EXPECT_EQ(said, "weft: tune cache " + below + ": cannot be written: Not a directory\n");
}

TEST_F(TuneCacheTest, AFolderWithoutPermissionIsOneWarning) {
  const uid_t user = geteuid();
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  ASSERT_TRUE(user != 0 || seteuid(65534) == 0);  // root may write anywhere
  const std::string said = warnings([&] {
    TuneCache cache(path);
    cache.add("m", "p", "own", "");
    cache.add("m", "q", "own", "");
  });
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_EQ(said, "weft: tune cache " + path + ": cannot be written: Permission denied\n");
}

TEST_F(TuneCacheTest, AFullDiskIsOneWarning) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "needs /dev/full";
  const std::string said = warnings([&] {
    TuneCache cache("/dev/full");
    cache.add("m", "p", "own", "");
    cache.add("m", "q", "own", "");
  });
  EXPECT_EQ(said, "weft: tune cache /dev/full: cannot be written: No space left on device\n");
}

TEST_F(TuneCacheTest, AFolderOrPipeInItsPlaceIsOneWarning) {
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& other : {pipe, folder.string()}) {
    const std::string said = warnings([&] {
      TuneCache cache(other);
      EXPECT_EQ(cache.find("m", "p"), Found());
      cache.add("m", "p", "own", "");
    });
    EXPECT_EQ(said, "weft: tune cache " + other + ": is no regular file\n");
  }
}

TEST_F(TuneCacheTest, AFileFarTooLargeIsNotRead) {
  write("");
  fs::resize_file(path, (uintmax_t{64} << 20) + 1);
  const std::string said = warnings([&] { EXPECT_EQ(TuneCache(path).find("m", "p"), Found()); });
  EXPECT_EQ(said, "weft: tune cache " + path + ": is larger than 64 MiB and was not read. Remove it\n");
}

TEST_F(TuneCacheTest, AnEmptyPathIsNoFile) {
  TuneCache cache("");
  EXPECT_EQ(warnings([&] { cache.add("m", "p", "own", ""); }), "");
  EXPECT_EQ(cache.find("m", "p"), Found());
}

/// An environment variable with another value, or none, while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* const old = std::getenv(name);
    if (old) old_ = old;
    set(value);
  }
  ~Variable() { set(old_ ? old_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value)
      setenv(name_, value, 1);
    else
      unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> old_;
};

TEST_F(TuneCacheTest, WhereItLies) {
  const auto with = [](const char* named, const char* cache, const char* home) {
    const Variable one("WEFT_TUNE_CACHE", named), two("XDG_CACHE_HOME", cache), three("HOME", home);
    return TuneCache::default_path();
  };
  EXPECT_EQ(with("/a/b", "/c", "/d"), "/a/b");
  EXPECT_EQ(with("", "/c", "/d"), "");
  EXPECT_EQ(with(nullptr, "/c", "/d"), "/c/weft/tune.tsv");
  EXPECT_EQ(with(nullptr, "relative", "/d"), "/d/.cache/weft/tune.tsv");
  EXPECT_EQ(with(nullptr, nullptr, "/d"), "/d/.cache/weft/tune.tsv");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
}

}  // namespace
}  // namespace weft::kernels::vendor
