// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/tcp_store.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "core/text.h"
#include "dist/rendezvous/crypto.h"
#include "dist/rendezvous/handshake.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

// A server answers within a round trip, unless a thousand ranks connect at once. Another program on the port may wait
// for more input: the limit keeps that from using up the whole time.
constexpr std::chrono::seconds kPatience{5};

/// The state of each port: `port 29500 has another secret, ports 29501 to 29507: Connection refused`.
std::string describe(uint16_t first, const std::vector<std::string>& findings) {
  std::string text;
  for (size_t begin = 0; begin < findings.size();) {
    size_t end = begin + 1;
    while (end < findings.size() && findings[end] == findings[begin]) ++end;
    const bool one = end == begin + 1;
    text += str(text.empty() ? "" : "; ", "port", one ? " " : "s ", first + begin,
                one ? "" : str(" to ", first + end - 1), " ", findings[begin]);
    begin = end;
  }
  return text;
}

}  // namespace

std::string wish_for_store(uint16_t port) { return str("store at port ", port); }

bool try_store(const Endpoint& endpoint, const std::string& secret, TimePoint deadline, StoreConnection& connection,
               std::string& why) {
  StoreConnection made;
  made.endpoint = endpoint;
  made.secret = secret;
  if (const int error = connect_to(endpoint, deadline, made.socket); error != 0) {
    why = error == ETIMEDOUT ? "does not answer" : str("cannot be reached: ", error_words(error));
    return false;
  }
  const int fd = made.socket.fd();
  const auto send_body = [&](const std::string& body) {
    const int error = send_all(fd, frame(body), deadline);
    WEFT_CHECK(error == 0, "ends the connection");
  };
  try {
    ClientHandshake handshake(secret, wish_for_store(endpoint.port()));
    send_body(handshake.greeting());
    while (true) {
      while (const std::optional<std::string> body = made.in.next()) {
        if (!made.out) {
          send_body(handshake.answer(*body));
          made.in.set_proven(FrameSeal(handshake.key("from the server"), /*encrypt=*/true), kMaxMessage);
          made.out = FrameSeal(handshake.key("from the client"), /*encrypt=*/true);
          continue;
        }
        WEFT_CHECK(*body == kWelcome, *body);
        connection = std::move(made);
        return true;
      }
      WEFT_CHECK(wait_readable(fd, deadline), "holds a program that does not answer");
      const int status = receive_some(fd, made.in.bytes());
      WEFT_CHECK(status == 0 || status == EAGAIN, "holds a program that ends the connection");
    }
  } catch (const Error& error) {
    why = error.what();
    if (why.starts_with("announces")) why = "speaks another protocol";
    return false;
  }
}

StoreConnection find_store(const Address& address, const std::string& secret, const std::string& who,
                           Milliseconds timeout, int ports) {
  require_keyed_hash();
  const TimePoint deadline = Clock::now() + timeout;
  const std::vector<Endpoint> endpoints = resolve(address);
  ports = std::min(ports, 65536 - address.port);
  std::vector<std::string> findings(static_cast<size_t>(ports), "was not tried");
  auto pause = std::chrono::milliseconds(20 + ::getpid() % 20);  // spreads ranks that start together
  while (true) {
    for (int i = 0; i < ports; ++i)
      for (Endpoint endpoint : endpoints) {
        endpoint.set_port(static_cast<uint16_t>(address.port + i));
        StoreConnection connection;
        std::string why;
        if (try_store(endpoint, secret, std::min(deadline, Clock::now() + kPatience), connection, why))
          return connection;
        findings[static_cast<size_t>(i)] = why;
      }
    if (Clock::now() + pause >= deadline) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(500));
  }
  const bool other_secret = std::find(findings.begin(), findings.end(), "has another secret") != findings.end();
  fail("store: ", who, " on ", host_name(), " has not found its job at ", address, " within ",
       static_cast<double>(timeout.count()) / 1e3, " s (", describe(address.port, findings), "). ",
       other_secret
           ? "Do all ranks have the same WEFT_JOB_SECRET, or the same cookie file in the home folder, and the same "
             "port (MASTER_PORT, or where launchers meet)?"
           : "Does rank 0 (or node 0 of weft-run) run there, or is it stopped? Can its host be reached from here?");
}

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

  void end_waits(const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      if (why_ended_.empty()) why_ended_ = why;
    }
    answered_.notify_all();
  }
  std::string why_ended() {
    const std::lock_guard lock(mutex_);
    return why_ended_;
  }

  /// A request that waits in the server until `timeout` or end_waits().
  template <class... Fields>
  Answer wait_for(MessageKind kind, const std::string& key, Milliseconds timeout, const Fields&... fields) {
    if (why_ended().empty()) {
      Answer answer = ask(kind, key, timeout, int64_t{timeout.count()}, fields...);
      if (answer.worked || why_ended().empty()) return answer;
    }
    return ask(kind, key, Milliseconds(0), int64_t{0}, fields...);  // it may have been set just before the end
  }

  template <class... Fields>
  Answer ask(MessageKind kind, const std::string& key, Milliseconds wait, const Fields&... fields) {
    WEFT_CHECK(!key.empty() && key.size() <= kMaxKey, "store: expected a key of 1 to ", kMaxKey, " bytes, got ",
               key.size());
    const bool waits = wait.count() > 0;
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
    const bool came = answered_.wait_until(lock, deadline, [&] {
      return entry->second.has_value() || !broken_.empty() || (waits && !why_ended_.empty());
    });
    const std::optional<Answer> answer = std::move(entry->second);
    waiting_.erase(entry);
    if (answer) return *answer;
    if (came && broken_.empty()) return {};  // end_waits()
    WEFT_CHECK(!came, "store: ", who_, " cannot ask for '", printable(key), "': ", broken_);
    fail("store: rank 0's store at ", connection_.endpoint.text(), " has not answered ", who_, " for ",
         static_cast<double>(wait.count()) / 1e3, " s (key '", printable(key), "'): is rank 0 stopped?");
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
  std::atomic<Milliseconds> patience_;  // for the server, in addition to the request's own timeout
  std::mutex mutex_, send_mutex_;
  std::condition_variable answered_;
  std::map<int64_t, std::optional<Answer>> waiting_;
  int64_t requests_ = 0;
  std::string broken_, why_ended_;
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

std::optional<std::string> TcpStore::find(const std::string& key, Milliseconds timeout) {
  Answer answer = client_->wait_for(MessageKind::get, key, timeout);
  if (!answer.worked) return std::nullopt;
  return std::move(answer.value);
}

std::vector<std::string> TcpStore::find_run(const std::string& prefix, int first, Milliseconds timeout) {
  const Answer answer = client_->wait_for(MessageKind::find_run, prefix, timeout, int64_t{first});
  return answer.worked ? unpacked(answer.value) : std::vector<std::string>();
}

void TcpStore::set_all(const std::string& prefix, const std::vector<std::string>& values) {
  for (size_t begin = 0; begin < values.size();) {
    std::vector<std::string> part;
    size_t bytes = 1;
    const size_t first = begin;
    while (begin < values.size() && (bytes += 4 + values[begin].size()) <= kMaxValue) part.push_back(values[begin++]);
    WEFT_CHECK(!part.empty(), "store: expected values of at most ", kMaxValue - 5, " bytes for '", printable(prefix),
               "/…', got ", values[begin].size());
    client_->ask(MessageKind::set_all, prefix, Milliseconds(0), static_cast<int64_t>(first), packed(part));
  }
}

bool TcpStore::has(const std::string& key) { return client_->ask(MessageKind::has, key, Milliseconds(0)).value == "1"; }

int64_t TcpStore::add(const std::string& key, int64_t amount) {
  const Answer answer = client_->ask(MessageKind::add, key, Milliseconds(0), amount);
  WEFT_CHECK(answer.worked, "store: cannot add to '", printable(key), "': ", answer.value);
  return std::stoll(answer.value);
}

void TcpStore::end_waits(const std::string& why) { client_->end_waits(why); }
std::string TcpStore::why_ended() const { return client_->why_ended(); }
void TcpStore::hurry() { client_->hurry(); }

void TcpStore::remove(const std::string& key) { client_->ask(MessageKind::remove, key, Milliseconds(0)); }

}  // namespace weft::dist
