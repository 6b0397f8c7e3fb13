// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/tcp_store.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "core/printable.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

constexpr Milliseconds kHurried{1000};

struct Answer {
  bool worked = false;
  std::string value;
};

}  // namespace

/// Requests of several threads share one connection; another thread reads the answers.
class TcpStore::Client {
 public:
  Client(StoreConnection connection, std::string who, Milliseconds patience)
      : connection_(std::move(connection)), who_(std::move(who)), patience_(patience) {
    reader_ = std::thread([this] { read(); });
  }

  ~Client() {
    ::shutdown(connection_.socket.fd(), SHUT_RDWR);  // wakes the reader
    reader_.join();
  }

  const StoreConnection& connection() const { return connection_; }
  void hurry() { patience_ = std::min(patience_.load(), kHurried); }

  template <class... Fields>
  Answer ask(MessageKind kind, const std::string& key, Milliseconds wait, const Fields&... fields) {
    WEFT_CHECK(!key.empty() && key.size() <= kMaxKey, "store: expected a key of 1 to ", kMaxKey, " bytes, got ",
               key.size());
    wait += patience_.load();
    const TimePoint deadline = Clock::now() + wait;
    std::unique_lock lock(mutex_);
    const int64_t request = ++requests_;
    MessageWriter writer(kind);
    writer.number(request).text(key);
    (append(writer, fields), ...);
    waiting_.emplace(request, std::nullopt);
    lock.unlock();
    send(writer.frame(), deadline);
    lock.lock();
    const auto entry = waiting_.find(request);
    const bool came =
        answered_.wait_until(lock, deadline, [&] { return entry->second.has_value() || !broken_.empty(); });
    const std::optional<Answer> answer = std::move(entry->second);
    waiting_.erase(entry);
    if (answer) return *answer;
    WEFT_CHECK(!came, "store: ", who_, " cannot ask for '", printable(key), "': ", broken_);
    fail("store: rank 0's store at ", connection_.endpoint.text(), " has not answered ", who_, " for ",
         static_cast<double>(wait.count()) / 1e3, " s (key '", printable(key), "')");
  }

 private:
  static void append(MessageWriter& writer, int64_t number) { writer.number(number); }
  static void append(MessageWriter& writer, const std::string& text) { writer.text(text); }

  void send(const std::string& frame, TimePoint deadline) {
    const std::lock_guard one(send_mutex_);
    const int error = send_all(connection_.socket.fd(), sealed(connection_.out, frame), deadline);
    if (error != 0) break_off(error_words(error));
  }

  void break_off(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (broken_.empty())
      broken_ = str("the connection to rank 0's store at ", connection_.endpoint.text(), " is broken (", why, ')');
    answered_.notify_all();
  }

  void read() {
    const int fd = connection_.socket.fd();
    try {
      while (true) {
        while (const std::optional<std::string> body = connection_.in.next()) take(*body);
        wait_readable(fd, Clock::now() + std::chrono::hours(1));
        const int status = receive_some(fd, connection_.in.bytes());
        if (status == -1) return break_off("rank 0 has closed it");
        if (status != 0 && status != EAGAIN) return break_off(error_words(status));
      }
    } catch (const Error& error) {
      break_off(error.what());
    }
  }

  void take(const std::string& body) {
    MessageReader message(body);
    WEFT_CHECK(message.kind() == MessageKind::answer, "the server sent a message of kind ",
               static_cast<int>(message.kind()));
    const int64_t request = message.number();
    Answer answer;
    answer.worked = message.number() != 0;
    answer.value = message.text();
    message.end();
    const std::lock_guard lock(mutex_);
    if (const auto entry = waiting_.find(request); entry != waiting_.end()) entry->second = std::move(answer);
    answered_.notify_all();
  }

  StoreConnection connection_;
  std::string who_;
  std::atomic<Milliseconds> patience_;  // for the server, besides the request's own timeout
  std::mutex mutex_, send_mutex_;
  std::condition_variable answered_;
  std::map<int64_t, std::optional<Answer>> waiting_;
  int64_t requests_ = 0;
  std::string broken_;
  std::thread reader_;
};

TcpStore::TcpStore(StoreConnection connection, std::string who, Milliseconds patience)
    : client_(std::make_unique<Client>(std::move(connection), std::move(who), patience)) {}
TcpStore::~TcpStore() = default;

const Endpoint& TcpStore::endpoint() const { return client_->connection().endpoint; }
std::string TcpStore::secret() const { return client_->connection().secret; }

void TcpStore::set(const std::string& key, const std::string& value) {
  WEFT_CHECK(value.size() <= kMaxValue, "store: expected a value of at most ", kMaxValue, " bytes for '",
             printable(key), "', got ", value.size());
  client_->ask(MessageKind::set, key, Milliseconds(0), value);
}

std::string TcpStore::get(const std::string& key, Milliseconds timeout) {
  Answer answer = client_->ask(MessageKind::get, key, timeout, int64_t{timeout.count()});
  WEFT_CHECK(answer.worked, "store: no rank has set '", printable(key), "' within ", timeout.count(), " ms");
  return std::move(answer.value);
}

bool TcpStore::has(const std::string& key) { return client_->ask(MessageKind::has, key, Milliseconds(0)).value == "1"; }

int64_t TcpStore::add(const std::string& key, int64_t amount) {
  const Answer answer = client_->ask(MessageKind::add, key, Milliseconds(0), amount);
  WEFT_CHECK(answer.worked, "store: cannot add to '", printable(key), "': ", answer.value);
  return std::stoll(answer.value);
}

void TcpStore::hurry() { client_->hurry(); }

void TcpStore::remove(const std::string& key) { client_->ask(MessageKind::remove, key, Milliseconds(0)); }

}  // namespace weft::dist
