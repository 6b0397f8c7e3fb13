// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/handshake.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/text.h"
#include "dist/rendezvous/crypto.h"
#include "dist/rendezvous/socket.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCookieBytes = 32, kLeastSecret = 16;
constexpr const char* kOtherWay = ". Or set WEFT_JOB_SECRET to the same string of 16 characters or more on all ranks";

[[noreturn]] void refuse(const fs::path& file, const std::string& why) {
  fail("cookie: cannot use ", printable(file.string()), ": ", why, kOtherWay);
}

/// Creates the file with new random bytes atomically, unless it exists: all ranks of a host may do this at the same
/// time.
void make_cookie(const fs::path& file) {
  std::string temporary = file.string() + ".XXXXXX";
  const Descriptor made(::mkostemp(temporary.data(), O_CLOEXEC));  // with mode 0600
  if (!made) refuse(file, str("it is not there and cannot be made: ", error_words(errno)));
  const std::string bytes = random_bytes(kCookieBytes);
  const bool written =
      ::write(made.fd(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) && ::fsync(made.fd()) == 0;
  const int status = written ? ::link(temporary.c_str(), file.c_str()) : -1;
  const int number = errno;
  ::unlink(temporary.c_str());
  if (status != 0 && number != EEXIST) refuse(file, str("it is not there and cannot be made: ", error_words(number)));
}

fs::path home_folder(const EnvironmentVariables& variables) {
  const auto home = variables.find("HOME");
  if (home != variables.end() && !home->second.empty()) return home->second;
  const passwd* user = ::getpwuid(::geteuid());
  WEFT_CHECK(user != nullptr && user->pw_dir != nullptr, "cookie: this process has no home folder to keep it in",
             kOtherWay);
  return user->pw_dir;
}

}  // namespace

std::string read_cookie(const fs::path& file) {
  Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!opened && errno == ENOENT) {
    make_cookie(file);
    opened = Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  }
  if (!opened) refuse(file, errno == ELOOP ? "it is a symbolic link" : error_words(errno));
  struct stat status {};
  if (::fstat(opened.fd(), &status) != 0) refuse(file, error_words(errno));
  if (!S_ISREG(status.st_mode)) refuse(file, "it is no ordinary file");
  if (status.st_uid != ::geteuid()) refuse(file, "it belongs to another user");
  if ((status.st_mode & 077) != 0)
    refuse(file, "others than its owner have rights on it. chmod 600 " + printable(file.string()));
  std::string bytes(4096, '\0');
  const ssize_t got = ::read(opened.fd(), bytes.data(), bytes.size());
  if (got < static_cast<ssize_t>(kCookieBytes))
    refuse(file, str("it holds less than ", kCookieBytes, " bytes. Remove it, and a new one is made"));
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

std::string job_secret(const EnvironmentVariables& variables, const std::string& job, const fs::path& cookie) {
  require_keyed_hash();
  const auto said = variables.find("WEFT_JOB_SECRET");
  if (said == variables.end() || said->second.empty())
    return hexadecimal(keyed_hash(read_cookie(cookie), "job " + job));
  WEFT_CHECK(said->second.size() >= kLeastSecret, "WEFT_JOB_SECRET: expected at least ", kLeastSecret,
             " characters, got ", said->second.size());
  return said->second;
}

std::string job_secret(const EnvironmentVariables& variables, const std::string& job) {
  const auto said = variables.find("WEFT_JOB_SECRET");
  const bool needs_cookie = said == variables.end() || said->second.empty();
  return job_secret(variables, job, needs_cookie ? home_folder(variables) / ".weft_cookie" : fs::path());
}

namespace {

// The digit is the version of the whole protocol.
constexpr std::string_view kAnyGreeting = "weft store ", kGreeting = "weft store 5\n";
constexpr size_t kOpening = kGreeting.size() + kHashBytes;

}  // namespace

std::string ServerHandshake::answer(std::string_view body) {
  if (transcript_.empty()) {
    WEFT_CHECK(body.size() >= kOpening && body.starts_with(kGreeting),
               body.starts_with(kAnyGreeting) ? "is of another version of Weft: start all ranks from one installation"
                                              : "speaks another protocol");
    wish_ = body.substr(kOpening);
    const std::string opening = std::string(kGreeting) + random_bytes(kHashBytes);
    transcript_ = std::string(body) + opening;
    return opening + key("server");
  }
  WEFT_CHECK(!done_ && same_hash(body, key("client")), "does not know the secret of this job");
  done_ = true;
  return {};
}

std::string ServerHandshake::key(std::string_view use) const {
  return keyed_hash(secret_, str(use, '\n', transcript_));
}

ClientHandshake::ClientHandshake(const std::string& secret, const std::string& wish)
    : secret_(secret), transcript_(std::string(kGreeting) + random_bytes(kHashBytes) + wish) {}

std::string ClientHandshake::answer(std::string_view body) {
  WEFT_CHECK(body.size() == kOpening + kHashBytes && body.starts_with(kGreeting), "speaks another protocol");
  transcript_ += body.substr(0, kOpening);
  WEFT_CHECK(same_hash(body.substr(kOpening), key("server")), "has another secret");
  return key("client");
}

std::string ClientHandshake::key(std::string_view use) const {
  return keyed_hash(secret_, str(use, '\n', transcript_));
}

}  // namespace weft::dist
