// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/tcp_membership.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "core/text.h"
#include "dist/rendezvous/store_service.h"
#include "io/disk_work.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

constexpr std::chrono::seconds kSendPatience{20};

std::string cut(const std::string& text, size_t size) { return text.substr(0, size); }

}  // namespace

class TcpMembership::Client {
 public:
  Client(StoreConnection connection, const TcpMembershipOptions& options)
      : connection_(std::move(connection)), options_(options), heard_(Clock::now()) {
    MessageWriter join(MessageKind::join);
    send(join.number(options.rank).text(cut(host_name(), kMaxName)).number(::getpid()).frame());
    thread_ = std::thread([this] { run(); });
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, options.joining, [&] { return joined_ || !refused_.empty() || ended_; });
    if (joined_) return;
    lock.unlock();
    end();
    if (failure_) fail("membership: ", failure_->reason);
    fail("membership: ", refused_.empty() ? str("rank 0 at ", connection_.endpoint.text(), " does not answer rank ",
                                                options.rank, ": is it stopped?")
                                          : refused_);
  }

  ~Client() { end(); }

  void wait_for_all(Milliseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return complete_ || failure_; });
    WEFT_CHECK(!failure_, "membership: ", failure_->reason, " before all ranks had joined");
    if (complete_) return;
    lock.unlock();
    const std::optional<Answer> absent = ask(MessageKind::absent, [](MessageWriter&) {});
    WEFT_CHECK(absent, "membership: ", silence_in({silent_first()}), " before all ranks had joined");
    if (absent->number == 0) return;  // the last joined meanwhile
    fail("membership: ", absent->number, " of ", options_.size, " ranks did not join within ",
         static_cast<double>(timeout.count()) / 1e3, " s: missing rank", absent->number > 1 ? "s " : " ", absent->text);
  }

  int on_failure(std::function<void(const Failure&)> callback) {
    std::unique_lock lock(mutex_);
    const int number = ++callbacks_made_;
    if (!failure_) {
      callbacks_[number] = std::move(callback);
      return number;
    }
    lock.unlock();
    callback(*failure_);  // never changes once set
    return number;
  }

  void remove(int number) {
    std::unique_lock lock(mutex_);
    callbacks_.erase(number);
    if (std::this_thread::get_id() != thread_.get_id()) changed_.wait(lock, [&] { return running_ != number; });
  }

  void report(const Progress& progress) {
    const std::lock_guard lock(mutex_);
    keep(own_, progress);
  }

  void send(const std::string& frame) {
    const std::lock_guard one(send_mutex_);
    const int error = send_all(connection_.socket.fd(), sealed(connection_.out, frame), Clock::now() + kSendPatience);
    if (error != 0) ::shutdown(connection_.socket.fd(), SHUT_RDWR);  // the thread notices
  }

  std::vector<MemberState> states(double quiet) {
    const auto milliseconds = static_cast<int64_t>(std::min(quiet, 1e9) * 1e3);  // infinity too
    std::optional<Answer> answer =
        ask(MessageKind::states, [&](MessageWriter& writer) { writer.number(milliseconds); });
    if (answer) return std::move(answer->states);
    return {silent_first()};
  }

  bool claim(const std::string& topic, Milliseconds time) {
    const std::optional<Answer> answer =
        ask(MessageKind::claim, [&](MessageWriter& writer) { writer.number(time.count()).text(cut(topic, kMaxName)); });
    return !answer || answer->number != 0;
  }

  void leave() {
    leaving_ = true;
    send(MessageWriter(MessageKind::leave).frame());
  }

 private:
  struct Answer {
    bool whole = false;
    std::vector<MemberState> states{};
    int64_t number = 0;
    std::string text{};
  };

  /// `write` appends to the request. Nothing: rank 0 does not answer. It answers each heartbeat: after a long silence
  /// nobody waits for it once more.
  template <class Write>
  std::optional<Answer> ask(MessageKind kind, Write&& write) {
    std::unique_lock lock(mutex_);
    if (Clock::now() - heard_ >= options_.heartbeat + options_.patience) return std::nullopt;
    const int64_t request = ++requests_;
    answers_[request];
    lock.unlock();
    MessageWriter writer(kind);
    writer.number(request);
    write(writer);
    send(writer.frame());
    lock.lock();
    changed_.wait_for(lock, options_.patience, [&] { return answers_[request].whole || ended_; });
    Answer answer = std::move(answers_[request]);
    answers_.erase(request);
    if (!answer.whole) return std::nullopt;
    return answer;
  }

  MemberState silent_first() {
    const std::lock_guard lock(mutex_);
    MemberState silent = first_;
    if (silent.process == 0) silent.host = connection_.endpoint.text();
    silent.seconds_since_heard = std::chrono::duration<double>(Clock::now() - heard_).count();
    silent.silent = !ended_;
    return silent;
  }

  std::string heartbeat() {
    const std::lock_guard lock(mutex_);
    MessageWriter writer(MessageKind::heartbeat);
    write_progress(writer, own_);
    const DiskWork::Longest disk = DiskWork::longest().value_or(DiskWork::Longest{});
    writer.text(cut(printable(disk.what), kMaxName));
    return writer.number(std::llround(disk.seconds * 1e3)).frame();
  }

  void end() {
    stop_ = true;
    ::shutdown(connection_.socket.fd(), SHUT_RDWR);  // wakes the thread
    if (thread_.joinable()) thread_.join();
    connection_.socket.close();
  }

  void run() {
    const int fd = connection_.socket.fd();
    TimePoint next = Clock::now() + options_.heartbeat;
    std::string why;
    int status = 0;
    try {
      while (!stop_) {
        while (const std::optional<std::string> body = connection_.in.next()) take(*body);
        if (farewell_) break;
        if (Clock::now() >= next) {
          send(heartbeat());
          next = Clock::now() + options_.heartbeat;
        }
        if (!wait_readable(fd, next)) continue;
        status = receive_some(fd, connection_.in.bytes());
        if (status != 0 && status != EAGAIN) break;
      }
    } catch (const Error& error) {
      why = error.what();
    }
    // The server waits for this close after its farewell.
    ::shutdown(fd, SHUT_RDWR);
    if (!stop_ && !leaving_ && !farewell_) {
      const std::string first = options_.rank == 0 || first_.process == 0
                                    ? str("rank 0 (at ", connection_.endpoint.text(), ")")
                                    : describe(first_);
      const bool lost = status == ETIMEDOUT || status == EHOSTUNREACH || status == ENETUNREACH;
      fail_once(
          {0, "",
           str(first, why.empty() ? lost ? " is unreachable" : " has died" : " sent an invalid message: " + why)});
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  void take(const std::string& body) {
    MessageReader message(body);
    std::unique_lock lock(mutex_);
    heard_ = Clock::now();
    switch (message.kind()) {
      case MessageKind::heartbeat:
        joined_ = true;
        break;
      case MessageKind::complete:
        complete_ = true;
        first_.host = message.text();
        first_.process = message.number();
        break;
      case MessageKind::refused:
        refused_ = message.text();
        stop_ = true;
        break;
      case MessageKind::farewell:
        farewell_ = true;
        break;
      case MessageKind::states:
        take_states(message);
        break;
      case MessageKind::claim:
      case MessageKind::absent: {
        const int64_t request = message.number();
        Answer answer{.whole = true, .number = message.number(), .text = message.text(kMaxReason)};
        message.end();
        if (const auto entry = answers_.find(request); entry != answers_.end()) entry->second = std::move(answer);
        break;
      }
      case MessageKind::failure:
        lock.unlock();
        return fail_once(read_failure(message));
      default:
        fail("rank 0 sent a message of kind ", static_cast<int>(message.kind()));
    }
    changed_.notify_all();
  }

  void take_states(MessageReader& message) {
    const int64_t request = message.number();
    const bool last = message.number() != 0;
    const int64_t count = message.number();
    const auto answer = answers_.find(request);
    for (int64_t i = 0; i < count; ++i) {
      MemberState state = read_state(message);
      if (answer != answers_.end()) answer->second.states.push_back(std::move(state));
    }
    message.end();
    if (answer != answers_.end()) answer->second.whole = last;
  }

  /// Runs on the thread only.
  void fail_once(Failure failure) {
    std::unique_lock lock(mutex_);
    if (failure_) return;
    failure_ = std::move(failure);
    changed_.notify_all();
    while (!callbacks_.empty()) {
      auto entry = callbacks_.extract(callbacks_.begin());
      running_ = entry.key();
      lock.unlock();
      entry.mapped()(*failure_);
      lock.lock();
      running_ = 0;
      changed_.notify_all();
    }
  }

  StoreConnection connection_;
  const TcpMembershipOptions options_;
  std::mutex mutex_, send_mutex_;
  std::condition_variable changed_;
  MemberState own_;  // its progress
  TimePoint heard_;
  bool joined_ = false, complete_ = false, ended_ = false;
  std::string refused_;
  MemberState first_;  // rank 0's host and process, once all have joined
  std::optional<Failure> failure_;
  std::map<int, std::function<void(const Failure&)>> callbacks_;
  int callbacks_made_ = 0, running_ = 0;
  int64_t requests_ = 0;
  std::map<int64_t, Answer> answers_;
  std::atomic<bool> stop_{false}, leaving_{false}, farewell_{false};
  std::thread thread_;
};

TcpMembership::TcpMembership(StoreConnection connection, const TcpMembershipOptions& options)
    : client_(std::make_unique<Client>(std::move(connection), options)) {}
TcpMembership::~TcpMembership() = default;

void TcpMembership::wait_for_all(Milliseconds timeout) { client_->wait_for_all(timeout); }
int TcpMembership::on_failure(std::function<void(const Failure&)> callback) {
  return client_->on_failure(std::move(callback));
}
void TcpMembership::remove(int number) { client_->remove(number); }
void TcpMembership::announce(const std::string& reason) {
  client_->send(MessageWriter(MessageKind::announce).text(cut(reason, kMaxReason)).frame());
}
void TcpMembership::report(const Progress& progress) { client_->report(progress); }
std::vector<MemberState> TcpMembership::states(double quiet) { return client_->states(quiet); }
bool TcpMembership::claim(const std::string& topic, std::chrono::milliseconds time) {
  return client_->claim(topic, time);
}
void TcpMembership::leave() { client_->leave(); }

}  // namespace weft::dist
