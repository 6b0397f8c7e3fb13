// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/store_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>
#include <thread>
#include <unordered_map>

#include "dist/rendezvous/crypto.h"
#include "dist/rendezvous/handshake.h"
#include "dist/rendezvous/refusal_log.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_service.h"
#include "dist/rendezvous/tcp_store.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

constexpr size_t kMaxUnsent = 4 << 20;  // per connection; requests are read only when this has been sent
constexpr std::chrono::seconds kAfterFailure{1}, kAfterFarewell{1};

struct Connection {
  Connection(Descriptor descriptor, const std::string& secret, TimePoint now)
      : socket(std::move(descriptor)), peer(peer_of(socket.fd()).text()), handshake(secret), since(now) {}

  Descriptor socket;
  std::string peer;
  ServerHandshake handshake;
  TimePoint since;
  FrameBuffer in{kMaxUnprovenMessage};
  FrameSeal out;
  std::string unsent;
  uint32_t interest = EPOLLIN;
  bool is_member = false;
};

}  // namespace

class StoreServer::Loop {
 public:
  Loop(const Address& address, StoreServerOptions options)
      : options_(std::move(options)),
        listeners_(listen_at(address, options_.ports)),
        poll_(::epoll_create1(EPOLL_CLOEXEC)),
        wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        log_("store", options_.log),
        members_(options_.size) {
    WEFT_CHECK(poll_ && wake_, "store: cannot wait for connections: ", error_words(errno));
    watch(wake_.fd(), 0);
    for (const Descriptor& socket : listeners_.sockets) watch(socket.fd(), next_++);
    first_connection_ = next_;
    thread_ = std::thread([this] { run(); });
  }

  ~Loop() {
    stop_ = true;
    const uint64_t one = 1;
    if (::write(wake_.fd(), &one, sizeof one) < 0) stop_ = true;  // the loop checks it within a second anyway
    thread_.join();
  }

  const Listeners& listeners() const { return listeners_; }

 private:
  void watch(int fd, ConnectionId id) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = id;
    WEFT_CHECK(::epoll_ctl(poll_.fd(), EPOLL_CTL_ADD, fd, &event) == 0,
               "store: cannot watch a connection: ", error_words(errno));
  }

  void run() {
    std::optional<TimePoint> end;  // deadline for the ranks that have not left
    bool farewell = false;
    while (true) {
      step();
      if (!stop_) continue;
      const TimePoint now = Clock::now();
      if (!end) end = now + options_.farewell;
      if (members_.has_failed()) end = std::min(*end, now + kAfterFailure);
      if (!farewell && (members_.all_gone() || now >= *end)) {
        farewell = true;
        end = now + kAfterFarewell;
        std::vector<Outgoing> out;
        members_.say_farewell(out);
        deliver(out);
      }
      // A client closes when it has read the farewell; before that a reset could overtake it.
      const auto here = [](const auto& entry) { return entry.second.is_member; };
      if (farewell && (now >= *end || std::none_of(connections_.begin(), connections_.end(), here))) return;
    }
  }

  int milliseconds_to_wait() const {
    TimePoint next = Clock::now() + (stop_ ? std::chrono::milliseconds(20) : std::chrono::milliseconds(1000));
    if (!unproven_.empty()) next = std::min(next, connections_.at(*unproven_.begin()).since + options_.patience);
    if (const auto deadline = store_.next_deadline()) next = std::min(next, *deadline);
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(wait, 0, 1000));
  }

  void step() {
    epoll_event events[64];
    const int count = ::epoll_wait(poll_.fd(), events, 64, milliseconds_to_wait());
    for (int i = 0; i < count; ++i) {
      const ConnectionId id = events[i].data.u64;
      if (id == 0) {
        uint64_t ignored;
        while (::read(wake_.fd(), &ignored, sizeof ignored) > 0) continue;
      } else if (id < first_connection_) {
        accept_all(listeners_.sockets[id - 1].fd());
      } else if (connections_.contains(id)) {  // or an earlier event has ended it
        flush(id);
        receive(id);
      }
    }
    std::vector<Outgoing> out;
    store_.expire(Clock::now(), out);
    deliver(out);
    const auto is_late = [&](ConnectionId id) { return connections_.at(id).since + options_.patience <= Clock::now(); };
    while (!unproven_.empty() && is_late(*unproven_.begin())) {
      const ConnectionId oldest = *unproven_.begin();
      receive(oldest);  // its word may have come while this thread had no processor
      if (unproven_.contains(oldest) && is_late(oldest))
        refuse(oldest, str("did not prove in ", options_.patience.count(), " ms that it knows the secret"));
    }
  }

  void accept_all(int listener) {
    for (int i = 0; i < 64; ++i) {  // then accepted connections have their turn
      Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) {
        const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (full && !unproven_.empty()) refuse(*unproven_.begin(), "took one of the last file descriptors");
        if (full) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return;
      }
      prepare_connection(socket.fd());
      const ConnectionId id = next_++;
      try {
        watch(socket.fd(), id);
      } catch (const Error& error) {  // this user may watch no more: no reason to end the job that meets here
        log_.refused(peer_of(socket.fd()).text(), str("could not be heard: ", error.what()), Clock::now());
        continue;
      }
      connections_.emplace(id, Connection(std::move(socket), options_.secret, Clock::now()));
      unproven_.insert(id);
      if (unproven_.size() > options_.max_unproven)
        refuse(*unproven_.begin(), "was the oldest of too many that prove nothing");
    }
  }

  /// Ends an unauthenticated connection.
  void refuse(ConnectionId id, const std::string& why) {
    log_.refused(connections_.at(id).peer, why, Clock::now());
    unproven_.erase(id);
    connections_.erase(id);
  }

  /// Ends a connection of a rank.
  void close(ConnectionId id, bool lost) {
    connections_.erase(id);
    store_.closed(id);
    std::vector<Outgoing> out;
    members_.closed(id, lost, out);
    deliver(out);
  }

  void receive(ConnectionId id) {
    Connection& connection = connections_.at(id);
    const bool unproven = unproven_.contains(id);
    const int status = receive_some(connection.socket.fd(), connection.in.bytes());
    try {
      // EAGAIN: earlier messages waited for room in the other direction.
      if (status == 0 || status == EAGAIN) read_messages(id, connection);
    } catch (const ForgedFrame& error) {
      std::vector<Outgoing> out;
      members_.fail_all({-1, "", str("the connection of ", connection.peer, " to rank 0's store: ", error.what())},
                        out);
      deliver(out);
      return close(id, false);
    } catch (const Error& error) {
      if (unproven_.contains(id)) return refuse(id, error.what());
      log_.refused(connection.peer, str("is authenticated, but: ", error.what()), Clock::now());
      return close(id, false);
    }
    if (status == 0 || status == EAGAIN) return;
    if (unproven)
      return refuse(id, status == -1 ? "closed before it had proven anything"
                                     : "was lost before it had proven anything: " + error_words(status));
    close(id, status == ETIMEDOUT || status == EHOSTUNREACH || status == ENETUNREACH);
  }

  void read_messages(ConnectionId id, Connection& connection) {
    std::vector<Outgoing> out;
    try {
      while (connection.unsent.size() <= kMaxUnsent) {
        const std::optional<std::string> body = connection.in.next();
        if (!body) break;
        read_message(id, connection, *body, out);
      }
    } catch (const Error&) {
      deliver(out);  // to the others: messages before the error count
      throw;
    }
    flush(id);
    deliver(out);
  }

  void read_message(ConnectionId id, Connection& connection, const std::string& body, std::vector<Outgoing>& out) {
    if (!connection.handshake.done()) {
      const std::string answer = connection.handshake.answer(body);
      if (!connection.handshake.done()) {
        connection.unsent += frame(answer);
        connection.since = Clock::now();  // the proof has a time of its own
        return;
      }
      connection.in.set_proven(FrameSeal(connection.handshake.key("from the client"), /*encrypt=*/true), kMaxMessage);
      connection.out = FrameSeal(connection.handshake.key("from the server"), /*encrypt=*/true);
      const bool direct = connection.handshake.wish() == wish_for_store(listeners_.address.port);
      const std::string other =
          str("belongs to another program, which relays to the store at port ", listeners_.address.port);
      connection.unsent += sealed(connection.out, frame(direct ? kWelcome : other));
      flush(id);
      WEFT_CHECK(direct, "came by the port of another program, which relays to this one");
      unproven_.erase(id);
      return;
    }
    MessageReader message(body);
    if (message.kind() <= MessageKind::answer) return store_.handle(id, message, Clock::now(), out);
    connection.is_member = true;
    members_.handle(id, message, Clock::now(), out);
  }

  void deliver(const std::vector<Outgoing>& out) {
    for (const Outgoing& message : out)
      if (const auto found = connections_.find(message.to); found != connections_.end())
        found->second.unsent += sealed(found->second.out, message.frame);
    for (const Outgoing& message : out)
      if (connections_.contains(message.to)) flush(message.to);
  }

  /// Sends as much as the connection accepts. The next read detects a broken connection.
  void flush(ConnectionId id) {
    Connection& connection = connections_.at(id);
    size_t sent = 0;
    while (sent < connection.unsent.size()) {
      const ssize_t count = ::send(connection.socket.fd(), connection.unsent.data() + sent,
                                   connection.unsent.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno != EAGAIN) connection.unsent.clear();
      if (count <= 0) break;
      sent += static_cast<size_t>(count);
    }
    connection.unsent.erase(0, std::min(sent, connection.unsent.size()));
    const uint32_t interest =
        (connection.unsent.size() <= kMaxUnsent ? EPOLLIN : 0u) | (connection.unsent.empty() ? 0u : EPOLLOUT);
    if (interest == connection.interest) return;
    connection.interest = interest;
    epoll_event event{};
    event.events = interest;
    event.data.u64 = id;
    ::epoll_ctl(poll_.fd(), EPOLL_CTL_MOD, connection.socket.fd(), &event);
  }

  StoreServerOptions options_;
  Listeners listeners_;
  Descriptor poll_, wake_;
  RefusalLog log_;
  StoreService store_;
  MemberService members_;
  std::unordered_map<ConnectionId, Connection> connections_;
  std::set<ConnectionId> unproven_;  // oldest first
  ConnectionId next_ = 1, first_connection_ = 1;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

StoreServer::StoreServer(const Address& address, StoreServerOptions options) {
  require_keyed_hash();
  WEFT_CHECK(!options.secret.empty(), "store: expected a secret, got none");
  constexpr size_t kOwn = 8;  // standard files, listeners and the like
  const size_t connections = 2 * static_cast<size_t>(options.size);
  allow_connections(connections + options.max_unproven, connections + kOwn);
  // All ranks may connect at once. A rank whose handshake is ended comes again, and the crowd grows.
  options.max_unproven = std::max(options.max_unproven, connections);
  loop_ = std::make_unique<Loop>(address, std::move(options));
}

StoreServer::~StoreServer() = default;

const Address& StoreServer::address() const { return loop_->listeners().address; }
bool StoreServer::is_loopback() const { return loop_->listeners().loopback; }

}  // namespace weft::dist
