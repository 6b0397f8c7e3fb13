// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/handshake.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>

#include "dist/rendezvous/crypto.h"
#include "tests/dist/meeting.h"
#include "tests/train/temporary_folder.h"

namespace weft::dist {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(JobSecret, EnvironmentWins) {
  WEFT_NEEDS_CRYPTO();
  EXPECT_EQ(job_secret({{"WEFT_JOB_SECRET", "0123456789abcdef"}, {"HOME", "/nowhere"}}, "job"), "0123456789abcdef");
  EXPECT_EQ(error_text([] {
              job_secret({{"WEFT_JOB_SECRET", "0123456789abcde"}}, "job");
            }),
            "WEFT_JOB_SECRET: expected at least 16 characters, got 15");
}

TEST(JobSecret, CookieIsMadeOnceForItsOwnerAlone) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder home;
  const EnvironmentVariables variables{{"HOME", home.path().string()}};
  const std::string secret = job_secret(variables, "slurm 1.0");
  EXPECT_EQ(secret.size(), 64u);
  EXPECT_EQ(job_secret(variables, "slurm 1.0"), secret);
  EXPECT_NE(job_secret(variables, "slurm 2.0"), secret);
  struct stat status {};
  ASSERT_EQ(::stat((home / ".weft_cookie").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(status.st_size, 32);
  EXPECT_EQ(home.files(), 1u);
  const test::TemporaryFolder other;
  EXPECT_NE(job_secret({{"HOME", other.path().string()}}, "slurm 1.0"), secret);
}

TEST(JobSecret, ManyRanksMakeOneCookie) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder home;
  std::vector<std::string> cookies(16);
  std::vector<std::thread> threads;
  for (std::string& cookie : cookies) threads.emplace_back([&] { cookie = read_cookie(home / "cookie"); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(cookies.begin(), cookies.end()).size(), 1u);
  EXPECT_EQ(home.files(), 1u);
}

TEST(JobSecret, CookieThatOthersCanReadIsRefused) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder home;
  const std::string cookie = (home / "cookie").string();
  const auto text = [&] { return error_text([&] { read_cookie(cookie); }); };
  read_cookie(cookie);
  for (const int mode : {0640, 0604, 0620, 0601}) {
    ::chmod(cookie.c_str(), static_cast<mode_t>(mode));
    EXPECT_THAT(text(), HasSubstr("cookie: cannot use " + cookie +
                                  ": others than its owner have rights on it. chmod 600 " + cookie));
  }
  EXPECT_THAT(text(), EndsWith("Or set WEFT_JOB_SECRET to the same string of 16 characters or more on all ranks"));
  ::chmod(cookie.c_str(), 0600);
  ::truncate(cookie.c_str(), 31);
  EXPECT_THAT(text(), HasSubstr("it holds less than 32 bytes. Remove it, and a new one is made"));
  std::filesystem::remove(cookie);
  std::filesystem::create_symlink("elsewhere", cookie);
  EXPECT_THAT(text(), HasSubstr("it is a symbolic link"));
  std::filesystem::remove(cookie);
  std::filesystem::create_directory(cookie);
  EXPECT_THAT(text(), HasSubstr("it is no ordinary file"));
  EXPECT_THAT(error_text([&] { read_cookie(home / "no" / "folder"); }),
              HasSubstr("it is not there and cannot be made: No such file or directory"));
  if (::geteuid() == 0) {
    std::filesystem::remove(cookie);
    read_cookie(cookie);
    ASSERT_EQ(::chown(cookie.c_str(), 65534, 65534), 0);
    EXPECT_THAT(text(), HasSubstr("it belongs to another user"));
  }
}

// RFC 4231, test case 2.
TEST(KeyedHash, IsHmacSha256) {
  WEFT_NEEDS_CRYPTO();
  EXPECT_EQ(hexadecimal(keyed_hash("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_TRUE(same_hash("abc", "abc"));
  EXPECT_FALSE(same_hash("abc", "abd"));
  EXPECT_FALSE(same_hash("abc", "ab"));
  EXPECT_NE(random_bytes(16), random_bytes(16));
}

}  // namespace
}  // namespace weft::dist
