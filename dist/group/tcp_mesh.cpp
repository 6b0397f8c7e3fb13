// SPDX-License-Identifier: Apache-2.0
#include "dist/group/tcp_mesh.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "dist/rendezvous/address.h"
#include "dist/rendezvous/crypto.h"
#include "dist/rendezvous/handshake.h"
#include "dist/rendezvous/message.h"
#include "dist/rendezvous/refusal_log.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/tcp_store.h"

namespace weft::dist {
namespace {

// For a connection from outside to prove itself, and for one to another rank to be made.
constexpr std::chrono::seconds kProof{5};
constexpr size_t kMostUnproven = 256;
constexpr Milliseconds kSlice{100};

std::string wish_of(int from, int to) { return str("rank ", from, " to ", to); }

/// Waits for the other ranks, as long as none is known to be dead.
class Meeting {
 public:
  Meeting(const TcpMeshOptions& options, Link::Deadline deadline) : options_(options), deadline_(deadline) {
    if (options.membership)
      callback_ = options.membership->on_failure([this](const Failure& failure) {
        {
          const std::lock_guard lock(mutex_);
          failure_ = failure.reason;
        }
        options_.store->end_waits(failure.reason);
      });
  }
  ~Meeting() {
    if (options_.membership) options_.membership->remove(callback_);
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Errors: a rank is dead.
  void check() const {
    const std::lock_guard lock(mutex_);
    WEFT_CHECK(failure_.empty(), "process group gloo: ", failure_);
  }

  /// The ranks that say nothing, or `otherwise`.
  std::string or_silence(const std::string& otherwise) const {
    const std::string silence =
        options_.membership ? silence_in(options_.membership->states(kQuietSeconds), kQuietSeconds) : "";
    return silence.empty() ? otherwise : silence;
  }

  /// The texts of all ranks, by rank.
  std::vector<std::string> gather(const std::string& what, const std::string& own) const {
    const std::string key = str(options_.prefix, '/', what);
    options_.store->set(str(key, '/', options_.rank), own);
    std::vector<std::string> texts =
        options_.store->find_all(key, options_.size, std::chrono::ceil<Milliseconds>(deadline_ - Clock::now()));
    if (texts.size() == static_cast<size_t>(options_.size)) return texts;
    check();
    fail("process group gloo: ", or_silence(str("rank ", texts.size(), " of ", options_.size, " did not come")));
  }

 private:
  const TcpMeshOptions& options_;
  const Link::Deadline deadline_;
  int callback_ = 0;
  mutable std::mutex mutex_;
  std::string failure_;
};

/// A connection during its handshake: to a rank, or from one that says so.
struct Unproven {
  Descriptor socket;
  std::string peer;
  TimePoint since = Clock::now();
  int rank = -1;  // that it leads to; -1: it came from outside
  FrameBuffer in{kMaxUnprovenMessage};
  std::optional<ClientHandshake> client{};
  std::optional<ServerHandshake> server{};
  bool answered = false;  // the server's proof is right, and this side's was sent
};

class Mesh {
 public:
  Mesh(const TcpMeshOptions& options, const Meeting& meeting, Link::Deadline deadline)
      : rank_(options.rank),
        deadline_(deadline),
        meeting_(meeting),
        secret_(keyed_hash(options.store->secret(), "tensors of " + options.prefix)),
        log_("process group gloo"),
        peers_(static_cast<size_t>(options.size)) {
    allow_connections(static_cast<size_t>(options.size) + kMostUnproven);
    const std::vector<std::string> cards =
        meeting.gather("host", str(static_cast<int>(options.secure), '\n', host_card()));
    std::vector<std::string> hosts;
    for (int r = 0; r < options.size; ++r) {
      const std::string& card = cards[static_cast<size_t>(r)];
      WEFT_CHECK(card.size() >= 2 && card.front() >= '0' && card.front() <= '3', "process group gloo: rank ", r,
                 " did not say how it is secured");
      const auto theirs = static_cast<Secure>(card.front() - '0');
      WEFT_CHECK(theirs == options.secure, "process group gloo: rank ", r, " has WEFT_SECURE=", name(theirs), ", rank ",
                 rank_, " ", name(options.secure), ": set the same on all ranks");
      hosts.push_back(card.substr(2));
    }
    const std::string here = host_identity() + '\n';
    for (const std::string& host : hosts)
      secure_.push_back(options.secure != Secure::automatic ? options.secure
                        : host.starts_with(here)            ? Secure::off
                                                            : Secure::mac);
    const std::string address = address_for_all(hosts, here);
    own_ = "from " + address;
    WEFT_CHECK(try_listen({address, 0}, resolve({address, 0}), listeners_) == 0, "process group gloo: rank ", rank_,
               " cannot listen on ", address);
    for (const std::string& text : meeting.gather("address", str(listeners_.address)))
      addresses_.push_back(resolve(parse_address("process group gloo", text)).front());
  }

  std::vector<TcpPeer> connect() {
    for (int r = 0; r < static_cast<int>(peers_.size()); ++r)
      if (r != rank_) missing_.insert(r);
    for (int r = 0; r < rank_; ++r) call(r);
    while (!missing_.empty()) {
      meeting_.check();
      WEFT_CHECK(Clock::now() < deadline_, "process group gloo: rank ", rank_, " cannot connect to the others ", own_,
                 ": ",
                 meeting_.or_silence(str("rank ", *missing_.begin(), " at ",
                                         addresses_[static_cast<size_t>(*missing_.begin())].text(), " did not come",
                                         why_.empty() ? "" : " (" + why_ + ")")));
      turn();
    }
    return std::move(peers_);
  }

 private:
  std::string address_for_all(const std::vector<std::string>& hosts, const std::string& here) const {
    const bool one_host = std::ranges::all_of(hosts, [&](const std::string& host) { return host.starts_with(here); });
    if (one_host && !std::getenv("WEFT_SOCKET_IFNAME")) return "127.0.0.1";
    return one_host ? local_addresses().front() : address_towards(addresses_elsewhere(hosts));
  }

  /// Begins a connection to a rank.
  void call(int to) {
    const Endpoint& endpoint = addresses_[static_cast<size_t>(to)];
    Unproven made{.socket = {}, .peer = endpoint.text(), .rank = to};
    made.client.emplace(secret_, wish_of(rank_, to));
    int error = ETIMEDOUT;
    while (error != 0 && Clock::now() < deadline_) {
      meeting_.check();
      error = connect_to(endpoint, std::min<TimePoint>(deadline_, Clock::now() + Milliseconds(1000)), made.socket);
      if (error == 0) error = send_all(made.socket.fd(), frame(made.client->greeting()), deadline_);
      if (error == 0) break;
      why_ = error_words(error);
      std::this_thread::sleep_for(Milliseconds(20));
    }
    if (error == 0) unproven_.push_back(std::move(made));
  }

  void turn() {
    std::vector<pollfd> entries{{listeners_.sockets.front().fd(), POLLIN, 0}};
    for (const Unproven& u : unproven_) entries.push_back({u.socket.fd(), POLLIN, 0});
    ::poll(entries.data(), entries.size(), static_cast<int>(kSlice.count()));
    size_t i = 0;
    std::vector<int> again;
    for (auto u = unproven_.begin(); u != unproven_.end();) {
      const bool readable = entries[++i].revents != 0;
      std::string why;
      bool proven = false;
      try {
        proven = readable && advance(*u);
        WEFT_CHECK(proven || u->rank >= 0 || Clock::now() < u->since + kProof, "did not prove in ", kProof.count(),
                   " s which rank it is");
      } catch (const Error& error) {
        why = error.what();
      }
      const int to = u->rank;
      if (!why.empty() && to < 0) log_.refused(u->peer, why, Clock::now());
      if (proven || !why.empty())
        u = unproven_.erase(u);
      else
        ++u;
      if (why.empty() || to < 0) continue;
      why_ = why;
      again.push_back(to);
    }
    if (entries.front().revents != 0) accept();
    // Another program may have taken the address of a rank that is dead: then the membership or the deadline tells.
    if (!again.empty()) std::this_thread::sleep_for(Milliseconds(50));
    for (const int to : again) call(to);
  }

  void accept() {
    Descriptor socket(::accept4(listeners_.sockets.front().fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EAGAIN) return;
      why_ = error_words(errno);
      std::this_thread::sleep_for(Milliseconds(5));  // no file may be free, and the listener stays readable
      return;
    }
    prepare_connection(socket.fd());
    Unproven made{.socket = {}, .peer = peer_of(socket.fd()).text()};
    made.socket = std::move(socket);
    made.server.emplace(secret_);
    unproven_.push_back(std::move(made));
    const auto from_outside = [](const Unproven& u) { return u.rank < 0; };
    if (static_cast<size_t>(std::ranges::count_if(unproven_, from_outside)) <= kMostUnproven) return;
    const auto oldest = std::ranges::find_if(unproven_, from_outside);
    log_.refused(oldest->peer, "was the oldest of too many that prove nothing", Clock::now());
    unproven_.erase(oldest);
  }

  /// Takes what has arrived; true: the connection is proven and has its place. Errors: the connection's fault.
  bool advance(Unproven& u) {
    const int status = receive_some(u.socket.fd(), u.in.bytes());
    while (const std::optional<std::string> body = u.in.next())
      if (u.rank >= 0 ? hear_server(u, *body) : hear_client(u, *body)) return true;
    WEFT_CHECK(status == 0 || status == EAGAIN,
               status == -1 ? "closed before it had proven anything" : "broke off: " + error_words(status));
    return false;
  }

  void send(const Unproven& u, const std::string& bytes) const {
    WEFT_CHECK(send_all(u.socket.fd(), bytes, Clock::now() + Milliseconds(1000)) == 0, "ends the connection");
  }

  bool hear_server(Unproven& u, const std::string& body) {
    if (u.answered) {
      WEFT_CHECK(body == kWelcome, "speaks another protocol");
      take(u, u.rank, *u.client, "server", "client");
      return true;
    }
    send(u, frame(u.client->answer(body)));
    u.answered = true;
    u.in.set_proven(FrameSeal(u.client->key("welcome"), /*encrypt=*/true), kMaxUnprovenMessage);
    return false;
  }

  bool hear_client(Unproven& u, const std::string& body) {
    const std::string answer = u.server->answer(body);
    if (!u.server->done()) {
      send(u, frame(answer));
      return false;
    }
    const auto from =
        std::ranges::find_if(missing_, [&](int r) { return r > rank_ && u.server->wish() == wish_of(r, rank_); });
    WEFT_CHECK(from != missing_.end(), "is '", u.server->wish(), "', which is not awaited here");
    FrameSeal seal(u.server->key("welcome"), /*encrypt=*/true);
    send(u, sealed(seal, frame(kWelcome)));
    take(u, *from, *u.server, "client", "server");
    return true;
  }

  template <class Handshake>
  void take(Unproven& u, int rank, const Handshake& handshake, const char* other_side, const char* this_side) {
    const Secure secure = secure_[static_cast<size_t>(rank)];
    TcpPeer& peer = peers_[static_cast<size_t>(rank)];
    peer.socket = std::move(u.socket);
    if (secure != Secure::off) {
      peer.in = FrameSeal(handshake.key(str("tensors from the ", other_side)), secure == Secure::encrypt);
      peer.out = FrameSeal(handshake.key(str("tensors from the ", this_side)), secure == Secure::encrypt);
    }
    // A stopped process is not dead, though it reads nothing: the membership tells of a host that is lost.
    const int never = 0;
    ::setsockopt(peer.socket.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &never, sizeof never);
    missing_.erase(rank);
  }

  const int rank_;
  const Link::Deadline deadline_;
  const Meeting& meeting_;
  const std::string secret_;
  RefusalLog log_;
  std::vector<Secure> secure_;
  std::string own_, why_;
  Listeners listeners_;
  std::vector<Endpoint> addresses_;
  std::list<Unproven> unproven_;  // oldest first
  std::set<int> missing_;
  std::vector<TcpPeer> peers_;
};

}  // namespace

std::vector<TcpPeer> connect_ranks(const TcpMeshOptions& options, Link::Deadline deadline) {
  require_keyed_hash();
  const Meeting meeting(options, deadline);
  std::vector<TcpPeer> peers = Mesh(options, meeting, deadline).connect();
  // A rank that goes on at once, fails and leaves would break connections that others are still making. They would then
  // report that break instead of the rank's error.
  meeting.gather("connected", "");
  return peers;
}

}  // namespace weft::dist
