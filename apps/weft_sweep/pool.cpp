// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_sweep/pool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/text.h"
#include "train/exit.h"

namespace weft::weft_sweep {
namespace {

/// Runs in the child between fork and exec. Returns only after a failure, with errno.
void become(char* const* arguments, const char* log, int lock, const sigset_t& mask, pid_t parent) {
  if (::setpgid(0, 0) != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(128 + SIGTERM);  // the parent died before the line above
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::signal(SIGPIPE, SIG_DFL);  // which main() ignores
  ::fcntl(lock, F_SETFD, 0);  // the point stays locked while its program runs, even if the sweep ends
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int file = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (null < 0 || file < 0) return;
  if (::dup2(null, STDIN_FILENO) < 0 || ::dup2(file, STDOUT_FILENO) < 0 || ::dup2(file, STDERR_FILENO) < 0) return;
  ::execvp(arguments[0], arguments);
}

/// An exclusive lock on FOLDER/.lock; -1 if another process has it. On a file system without locks only the file.
int lock_folder(const std::filesystem::path& folder) {
  const int lock = ::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  WEFT_CHECK(lock >= 0, "expected to write into ", folder.string(), ", got '", std::strerror(errno), "'");
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return lock;
  ::close(lock);
  return -1;
}

/// The GPUs of job slot `place` of `places`.
std::string share(const std::vector<std::string>& gpus, int place, int places) {
  std::string out;
  const size_t count = gpus.size(), p = static_cast<size_t>(place), n = static_cast<size_t>(places);
  for (size_t i = count * p / n; i < std::max(count * (p + 1) / n, count * p / n + 1); ++i)
    out += (out.empty() ? "" : ",") + gpus[i % count];
  return out;
}

}  // namespace

Pool::Pool(const Sweep& sweep, Options options) : sweep_(sweep), options_(std::move(options)) {
  sigemptyset(&waited_for_);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGUSR1}) sigaddset(&waited_for_, number);
  ::sigprocmask(SIG_BLOCK, &waited_for_, &before_);
}

Pool::~Pool() {
  for (const Running& running : running_) {  // after an exception
    ::kill(-running.process, SIGTERM);
    ::waitpid(running.process, nullptr, 0);
    ::close(running.lock);
  }
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int Pool::free_place() const {
  int place = 0;
  const auto taken = [&](const Running& running) { return running.place == place; };
  while (std::any_of(running_.begin(), running_.end(), taken)) ++place;
  return place;
}

void Pool::run(const std::function<std::optional<size_t>()>& next,
               const std::function<void(size_t, const PointResult&)>& ended, const std::function<void(size_t)>& busy) {
  while (true) {
    while (static_cast<int>(running_.size()) >= options_.at_a_time) wait(ended);
    if (stopped_by_ != 0) break;
    const std::optional<size_t> point = next();
    if (!point) break;
    if (!start(*point)) busy(*point);
  }
  while (!running_.empty()) wait(ended);
}

bool Pool::start(size_t index) {
  const Point& point = sweep_.points[index];
  const std::filesystem::path folder = sweep_.folder_of(point);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  WEFT_CHECK(!error, "expected to create ", folder.string(), ", got '", error.message(), "'");
  const int lock = lock_folder(folder);
  if (lock < 0) return false;
  const std::vector<std::string> command = sweep_.command_of(point);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int place = free_place();
  if (!options_.gpus.empty())
    ::setenv("CUDA_VISIBLE_DEVICES", share(options_.gpus, place, options_.at_a_time).c_str(), 1);
  const std::string log = (folder / "log.txt").string();

  int failure[2];
  WEFT_CHECK(::pipe2(failure, O_CLOEXEC) == 0, "cannot make a pipe: ", std::strerror(errno));
  const pid_t parent = ::getpid(), process = ::fork();
  if (process == 0) {
    become(arguments.data(), log.c_str(), lock, before_, parent);
    const int number = errno;
    if (::write(failure[1], &number, sizeof number) < 0) ::_exit(126);
    ::_exit(127);
  }
  ::close(failure[1]);
  int number = 0;
  const bool failed = process < 0 || ::read(failure[0], &number, sizeof number) == sizeof number;
  if (process < 0) number = errno;
  ::close(failure[0]);
  if (failed) {
    if (process > 0) ::waitpid(process, nullptr, 0);
    ::close(lock);
    fail("cannot start ", printable(command[0]), ": ", std::strerror(number));
  }
  running_.push_back({process, index, place, lock, std::chrono::steady_clock::now(), false});
  return true;
}

void Pool::wait(const std::function<void(size_t, const PointResult&)>& ended) {
  constexpr timespec kBetweenLooks{0, 250'000'000};
  const int number =
      options_.loses ? sigtimedwait(&waited_for_, nullptr, &kBetweenLooks) : sigwaitinfo(&waited_for_, nullptr);
  if (number == SIGINT || number == SIGTERM || number == SIGUSR1) {
    const bool again = stopped_by_ != 0 && number != SIGUSR1;
    if (number != SIGUSR1) stopped_by_ = number;
    for (const Running& running : running_)
      ::kill(-running.process, again ? SIGKILL : number == SIGUSR1 ? SIGUSR1 : SIGTERM);
  }
  for (size_t i = running_.size(); i-- > 0;) {
    int status = 0;
    if (::waitpid(running_[i].process, &status, WNOHANG) != running_[i].process) continue;
    const Running running = running_[i];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    end(running, status, ended);
  }
  if (options_.loses && stopped_by_ == 0) stop_losers();  // only points that have not ended by themselves
}

void Pool::stop_losers() {
  for (Running& running : running_) {
    if (running.lost || !options_.loses(running.point)) continue;
    running.lost = true;
    ::kill(-running.process, SIGTERM);
  }
}

void Pool::end(const Running& running, int status, const std::function<void(size_t, const PointResult&)>& ended) {
  using State = PointResult::State;
  PointResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - running.start).count();
  const bool was_stopped = stopped_by_ != 0 || result.exit_code == train::kExitRequeue;
  // A program that a signal ended early may return 0: the point is done only if no signal was sent.
  result.state = running.lost            ? State::pruned
                 : was_stopped           ? State::stopped
                 : result.exit_code == 0 ? State::done
                                         : State::failed;
  const Point& point = sweep_.points[running.point];
  save_result(sweep_.folder_of(point), point, result);
  ::close(running.lock);
  ended(running.point, result);
}

}  // namespace weft::weft_sweep
