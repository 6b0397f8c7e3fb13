// SPDX-License-Identifier: Apache-2.0
// Backend gloo: Weft's collectives over TCP. The name is that of PyTorch's backend for the same purpose.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "dist/group/backends.h"
#include "dist/group/tcp_mesh.h"

namespace weft::dist {
namespace {

// Longer messages are sent when their receiver is ready, so that nothing long is ever kept for a receive to come.
constexpr size_t kEager = 64 << 10;
// Bytes that are sealed at a time, and sent while in the cache.
constexpr size_t kChunk = 128 << 10;
constexpr size_t kBuffer = 64 << 10, kReadsPerTurn = 16;

/// Before each message, in the byte order of the ranks' machines; its tag, the bytes of the message and their tag
/// follow.
struct Header {
  uint64_t hash = 0, bytes = 0;
  uint8_t code = 0;
  bool is_ready = false;  ///< no message: its sender awaits a message of `bytes` bytes
  uint8_t zero[6] = {};
};
static_assert(sizeof(Header) == 24);

std::string_view view(const Header& header) { return {reinterpret_cast<const char*>(&header), sizeof header}; }

class TcpLink;

class TcpMessage final : public Link::Message {
 public:
  TcpMessage(TcpLink& link_, int peer_, bool is_send_, Link::Slot slot_, std::byte* data_, size_t bytes_)
      : Message(peer_, is_send_), link(link_), slot(slot_), data(data_), bytes(bytes_) {}
  ~TcpMessage() override;
  TcpLink& link;
  const Link::Slot slot;
  std::byte* const data;
  const size_t bytes;
  std::atomic<bool> done{false};
};

class TcpLink final : public Link {
 public:
  TcpLink(const TcpMeshOptions& options, Deadline deadline)
      : Link(options.rank, options.size), options_(options), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (size_ == 1) return;
    std::vector<TcpPeer> mesh = connect_ranks(options, deadline);
    poll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
    watch(EPOLL_CTL_ADD, wake_.fd(), EPOLLIN, static_cast<uint64_t>(rank_));
    for (int r = 0; r < size_; ++r) {
      peers_.push_back(std::make_unique<Peer>(r, std::move(mesh[static_cast<size_t>(r)])));
      if (r != rank_) watch(EPOLL_CTL_ADD, peers_.back()->fd(), EPOLLIN, static_cast<uint64_t>(r));
    }
    thread_ = std::thread([this] { run(); });
  }

  ~TcpLink() override {
    ending_ = true;
    const uint64_t one = 1;
    while (thread_.joinable() && ::write(wake_.fd(), &one, sizeof one) < 0 && errno == EINTR) continue;
    if (thread_.joinable()) thread_.join();
  }

  MessagePtr send(int to, Slot slot, const std::byte* data, size_t bytes) override {
    auto message = std::make_unique<TcpMessage>(*this, to, true, slot, const_cast<std::byte*>(data), bytes);
    submit(to,
           {.header = {.hash = slot.hash, .bytes = bytes, .code = slot.code}, .data = data, .message = message.get()});
    return message;
  }

  void post(int to, Slot slot, std::vector<std::byte> data) override {
    const size_t bytes = data.size();
    submit(to, {.header = {.hash = slot.hash, .bytes = bytes, .code = slot.code}, .owned = std::move(data)});
  }

  MessagePtr receive(int from, Slot slot, std::byte* data, size_t bytes) override {
    auto message = std::make_unique<TcpMessage>(*this, from, false, slot, data, bytes);
    Peer& peer = *peers_[static_cast<size_t>(from)];
    {
      const std::lock_guard lock(mutex_);
      check_alive(peer);
      if (const auto early = peer.early.find(slot); early != peer.early.end()) {
        const std::vector<std::byte> arrived = take_first(peer.early, early);
        check_size(peer, arrived.size(), bytes);
        std::copy(arrived.begin(), arrived.end(), data);  // both ends of an empty message may be null
        message->done = true;
        return message;
      }
      peer.expected[slot].push_back(message.get());
      if (bytes <= kEager) return message;
      peer.queue.push_back({.header = {.hash = slot.hash, .bytes = bytes, .code = slot.code, .is_ready = true}});
    }
    write(peer);
    return message;
  }

  void wait(Message& message, Deadline deadline) override {
    auto& m = static_cast<TcpMessage&>(message);
    if (m.done) return;
    Peer& peer = *peers_[static_cast<size_t>(m.peer)];
    std::unique_lock lock(mutex_);
    waiting_ = &m;
    const bool ended = changed_.wait_until(lock, deadline, [&] { return m.done || aborted_ || !peer.lost.empty(); });
    waiting_ = nullptr;
    if (m.done) return;  // a message that has arrived whole counts in any case
    check_alive(peer);
    if (!ended) throw LinkError(LinkError::Kind::deadline, "deadline");
  }

  bool may_overlap() const override { return true; }
  size_t segment_bytes() const override { return 1 << 20; }  // each costs its receiver a message of readiness

  void flush(Deadline deadline) override {
    std::unique_lock lock(mutex_);
    flushing_ = true;
    changed_.wait_until(lock, deadline, [&] {
      return aborted_ || std::ranges::all_of(peers_, [](const auto& peer) {
               return !peer->lost.empty() || (peer->queue.empty() && peer->held.empty());
             });
    });
    flushing_ = false;
  }

  void abort(const std::string& reason) override {
    {
      const std::lock_guard lock(mutex_);
      if (aborted_) return;
      aborted_ = true;
      reason_ = reason;
    }
    changed_.notify_all();
    try {
      options_.store->hurry();
      options_.store->set(options_.prefix + "/aborted", reason);
    } catch (const std::exception&) {
      // The connections that close tell it too.
    }
    for (const auto& peer : peers_)
      if (peer->rank != rank_) ::shutdown(peer->fd(), SHUT_RDWR);
  }

  /// Over the store, which also reaches a rank that waits for another one than the rank that has aborted.
  std::string failure_elsewhere() override {
    try {
      const std::string key = options_.prefix + "/aborted";
      return options_.store->has(key) ? options_.store->get(key, Milliseconds(1000)) : "";
    } catch (const std::exception&) {
      return "";
    }
  }

  std::unique_ptr<Link> split(uint64_t number, int color, const std::vector<int>& members, const std::string&,
                              Deadline deadline) override {
    TcpMeshOptions part = options_;
    part.rank = static_cast<int>(std::ranges::find(members, rank_) - members.begin());
    part.size = static_cast<int>(members.size());
    part.prefix = str(options_.prefix, "/split/", number, '.', color);
    return make_tcp_link(part, deadline);
  }

  /// Nobody waits for the message any more.
  void forget(TcpMessage& m) {
    Peer& peer = *peers_[static_cast<size_t>(m.peer)];
    std::unique_lock lock(mutex_);
    if (m.done) return;
    remove(peer.expected, m.slot, [&](const TcpMessage* other) { return other == &m; });
    remove(peer.held, m.slot, [&](const Outgoing& other) { return other.message == &m; });
    const auto queued = std::ranges::find(peer.queue, &m, &Outgoing::message);
    if (peer.arriving != &m && queued == peer.queue.end()) return;
    // Under way: the connection cannot go on without it.
    if (peer.lost.empty()) peer.lost = "this rank has given up a message";
    changed_.wait(lock, [&] { return !peer.reading && !peer.writing; });
    if (peer.arriving == &m) peer.arriving = nullptr;
    std::erase_if(peer.queue, [&](const Outgoing& other) { return other.message == &m; });
  }

 private:
  struct Outgoing {
    Header header{};
    const std::byte* data = nullptr;  // null: owned
    TcpMessage* message = nullptr;
    std::vector<std::byte> owned{};
    const std::byte* body() const { return data ? data : owned.data(); }
    size_t body_bytes() const { return header.is_ready ? 0 : header.bytes; }
  };

  struct Peer {
    Peer(int rank_, TcpPeer connection_) : rank(rank_), connection(std::move(connection_)) {}
    int fd() const { return connection.socket.fd(); }

    const int rank;
    TcpPeer connection;

    // Under mutex_.
    std::map<Slot, std::deque<TcpMessage*>> expected;          // receives that have not begun
    std::map<Slot, std::deque<std::vector<std::byte>>> early;  // short messages that came before their receives
    std::map<Slot, std::deque<Outgoing>> held;                 // until their receiver is ready
    std::map<Slot, size_t> ready;                              // came before its message
    std::deque<Outgoing> queue;                                // the first one is being sent
    TcpMessage* arriving = nullptr;
    bool reading = false, writing = false;  // a thread uses messages' memory
    std::string lost;                       // why no more will come
    bool forged = false;

    // For the first in the queue: bytes sent of its total, bytes sealed of its body. Under send_mutex.
    std::mutex send_mutex;
    bool begun = false;
    size_t sent = 0, sealed = 0;
    std::array<char, sizeof(Header) + FrameSeal::kTag> front{};  // header and its tag
    FrameSeal::Tag tag{};
    std::vector<std::byte> cipher;  // the chunk that is being sent, encrypted
    bool wants_to_write = false;

    // The arriving frame; only the thread uses the buffer.
    std::vector<std::byte> buffer = std::vector<std::byte>(kBuffer);
    size_t begin = 0, end = 0;  // unused bytes of the buffer
    bool in_frame = false;
    Header header;
    std::byte* body = nullptr;
    size_t received = 0, opened = 0;
    std::vector<std::byte> unexpected;
  };

  void watch(int what, int fd, uint32_t events, uint64_t tag) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag;
    WEFT_CHECK(::epoll_ctl(poll_.fd(), what, fd, &event) == 0,
               "process group gloo: cannot watch a connection: ", error_words(errno));
  }

  /// The first of a slot's queue, which goes with its last entry.
  template <class Queues>
  static typename Queues::mapped_type::value_type take_first(Queues& queues, typename Queues::iterator at) {
    auto first = std::move(at->second.front());
    at->second.pop_front();
    if (at->second.empty()) queues.erase(at);
    return first;
  }
  template <class Queues, class Condition>
  static void remove(Queues& queues, Slot slot, Condition condition) {
    const auto at = queues.find(slot);
    if (at == queues.end()) return;
    std::erase_if(at->second, condition);
    if (at->second.empty()) queues.erase(at);
  }

  // Under mutex_, these four.
  void check_alive(const Peer& peer) const {
    if (aborted_) throw LinkError(LinkError::Kind::aborted, reason_);
    if (peer.lost.empty()) return;
    throw LinkError(peer.forged ? LinkError::Kind::forged : LinkError::Kind::lost,
                    str("the connection to rank ", peer.rank, " broke: ", peer.lost));
  }
  static void check_size(const Peer& peer, size_t sent, size_t wanted) {
    if (sent != wanted)
      throw LinkError(LinkError::Kind::lost,
                      str("rank ", peer.rank, " sent a message of ", sent, " bytes, expected ", wanted));
  }
  void finish(TcpMessage* message) {
    if (!message) return;
    message->done = true;
    if (message == waiting_) changed_.notify_all();
  }
  /// Sends what the receiver is ready for: a long message, and short ones after it that had to wait for their turn.
  static void release(Peer& peer, Slot slot) {
    auto at = peer.held.find(slot);
    if (at == peer.held.end()) {
      ++peer.ready[slot];
      return;
    }
    auto& held = at->second;
    do {
      peer.queue.push_back(std::move(held.front()));
      held.pop_front();
    } while (!held.empty() && held.front().header.bytes <= kEager);
    if (held.empty()) peer.held.erase(at);
  }

  void submit(int to, Outgoing outgoing) {
    Peer& peer = *peers_[static_cast<size_t>(to)];
    {
      const std::lock_guard lock(mutex_);
      check_alive(peer);
      const Slot slot{outgoing.header.hash, outgoing.header.code};
      const bool waits = peer.held.contains(slot);
      if (waits || outgoing.header.bytes > kEager) {
        const auto ready = peer.ready.find(slot);
        if (waits || ready == peer.ready.end()) {
          peer.held[slot].push_back(std::move(outgoing));
          return;
        }
        if (--ready->second == 0) peer.ready.erase(ready);
      }
      peer.queue.push_back(std::move(outgoing));
    }
    write(peer);
  }

  /// No more comes from this rank, and nothing goes to it. The connection stays open: closing it belongs to abort(), so
  /// that the others hear the reason before they see the end.
  void lose(Peer& peer, const std::string& why, bool forged = false) {
    {
      const std::lock_guard lock(mutex_);
      if (peer.lost.empty()) {
        peer.lost = why;
        peer.forged = forged;
      }
    }
    changed_.notify_all();
    ::epoll_ctl(poll_.fd(), EPOLL_CTL_DEL, peer.fd(), nullptr);
  }

  /// Sends as much as the connection takes.
  void write(Peer& peer) {
    const std::lock_guard one(peer.send_mutex);
    while (true) {
      Outgoing* first = nullptr;
      {
        const std::lock_guard lock(mutex_);
        if (peer.queue.empty() || aborted_ || !peer.lost.empty()) break;
        first = &peer.queue.front();
        peer.writing = true;
      }
      const int error = send_frame(peer, *first);
      Outgoing gone;  // owns memory, freed after the lock
      {
        const std::lock_guard lock(mutex_);
        peer.writing = false;
        if (error == 0) {
          gone = std::move(peer.queue.front());
          peer.queue.pop_front();
          peer.begun = false;
          peer.sent = peer.sealed = 0;
          finish(gone.message);
        }
        if (flushing_ || !peer.lost.empty()) changed_.notify_all();
      }
      if (error == EAGAIN) {
        if (!std::exchange(peer.wants_to_write, true)) watch_writing(peer);
        return;
      }
      // Its reason may still be unread: the thread that reads meets the end, too.
      if (error != 0) return;
    }
    if (std::exchange(peer.wants_to_write, false)) watch_writing(peer);
  }
  void watch_writing(const Peer& peer) const {
    epoll_event event{};
    event.events = EPOLLIN | (peer.wants_to_write ? uint32_t{EPOLLOUT} : 0u);
    event.data.u64 = static_cast<uint64_t>(peer.rank);
    ::epoll_ctl(poll_.fd(), EPOLL_CTL_MOD, peer.fd(), &event);  // fails where the connection is lost
  }

  /// 0: all was sent; else the error number.
  static int send_frame(Peer& peer, const Outgoing& frame) {
    FrameSeal& seal = peer.connection.out;
    const size_t bytes = frame.body_bytes(), front = sizeof(Header) + seal.tag_bytes(),
                 whole = front + bytes + (bytes > 0 ? seal.tag_bytes() : 0);
    if (!std::exchange(peer.begun, true)) {
      view(frame.header).copy(peer.front.data(), sizeof(Header));
      if (seal) std::ranges::copy(seal.seal_header(view(frame.header)), peer.front.data() + sizeof(Header));
      if (seal && bytes > 0) seal.begin();
    }
    while (peer.sent < whole) {
      const size_t sent = peer.sent < front ? 0 : std::min(peer.sent - front, bytes);  // bytes of the body
      if (!seal) peer.sealed = bytes;
      if (sent == peer.sealed && sent < bytes) {
        const size_t piece = std::min(kChunk, bytes - sent);
        if (seal.encrypts()) peer.cipher.resize(kChunk);
        seal.seal(frame.body() + sent, peer.cipher.data(), piece);
        peer.sealed += piece;
        if (peer.sealed == bytes) peer.tag = seal.tag();
      }
      std::array<iovec, 3> parts;
      size_t count = 0;
      const auto part = [&](const void* from, size_t n) { parts[count++] = {const_cast<void*>(from), n}; };
      if (peer.sent < front) part(peer.front.data() + peer.sent, front - peer.sent);
      if (sent < peer.sealed)
        part(seal.encrypts() ? peer.cipher.data() + sent % kChunk : frame.body() + sent, peer.sealed - sent);
      if (peer.sealed == bytes && front + bytes < whole) {
        const size_t gone = peer.sent > front + bytes ? peer.sent - front - bytes : 0;
        part(peer.tag.data() + gone, peer.tag.size() - gone);
      }
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = count;
      const ssize_t got = ::sendmsg(peer.fd(), &message, MSG_NOSIGNAL);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno;
      peer.sent += static_cast<size_t>(got);
    }
    return 0;
  }

  void run() {
    std::array<epoll_event, 32> events;
    while (!ending_) {
      const int count = ::epoll_wait(poll_.fd(), events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        const auto& event = events[static_cast<size_t>(i)];
        if (event.data.u64 == static_cast<uint64_t>(rank_)) continue;
        Peer& peer = *peers_[event.data.u64];
        try {
          if (event.events & EPOLLOUT) write(peer);
          if (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read(peer);
        } catch (const ForgedFrame& error) {
          lose(peer, error.what(), /*forged=*/true);
        } catch (const std::exception& error) {
          lose(peer, error.what());
        }
      }
    }
  }

  /// Keeps a message that is forgotten in memory while this thread may write there.
  class Reading {
   public:
    Reading(TcpLink& link, Peer& peer) : link_(link), peer_(peer) {
      const std::lock_guard lock(link.mutex_);
      if (link.aborted_) fail("the group has ended");
      if (!peer.lost.empty()) fail(peer.lost);
      peer.reading = true;
    }
    ~Reading() {
      const std::lock_guard lock(link_.mutex_);
      peer_.reading = false;
      if (link_.aborted_ || !peer_.lost.empty()) link_.changed_.notify_all();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    TcpLink& link_;
    Peer& peer_;
  };

  void read(Peer& peer) {
    for (size_t i = 0; i < kReadsPerTurn; ++i) {
      const Reading reading(*this, peer);
      if (!read_some(peer)) return;
      while (advance(peer)) continue;
    }
  }

  /// Receives into the body that is awaited and then into the buffer. False: nothing more has arrived.
  static bool read_some(Peer& peer) {
    if (peer.begin > 0) {
      std::memmove(peer.buffer.data(), peer.buffer.data() + peer.begin, peer.end - peer.begin);
      peer.end -= std::exchange(peer.begin, 0);
    }
    const size_t missing = peer.in_frame && peer.end == 0 ? body_bytes(peer) - peer.received : 0;
    std::array<iovec, 2> parts{iovec{peer.body + peer.received, missing},
                               iovec{peer.buffer.data() + peer.end, kBuffer - peer.end}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t got = ::recvmsg(peer.fd(), &message, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got < 0) fail(error_words(errno));
    if (got == 0) fail("that rank has closed it");
    const size_t direct = std::min(missing, static_cast<size_t>(got));
    peer.received += direct;
    peer.end += static_cast<size_t>(got) - direct;
    return true;
  }

  static size_t body_bytes(const Peer& peer) { return peer.header.is_ready ? 0 : peer.header.bytes; }

  /// Goes on with the frame; true: it has come to its end.
  bool advance(Peer& peer) {
    FrameSeal& seal = peer.connection.in;
    if (!peer.in_frame) {
      if (peer.end - peer.begin < sizeof(Header) + seal.tag_bytes()) return false;
      std::memcpy(&peer.header, peer.buffer.data() + peer.begin, sizeof(Header));
      peer.begin += sizeof(Header);
      if (seal) seal.check_header(view(peer.header), take_tag(peer));
      begin_frame(peer);
      if (seal && body_bytes(peer) > 0) seal.begin();
    }
    const size_t bytes = body_bytes(peer), piece = std::min(peer.end - peer.begin, bytes - peer.received);
    if (piece > 0) std::memcpy(peer.body + peer.received, peer.buffer.data() + peer.begin, piece);
    peer.begin += piece;
    peer.received += piece;
    if (seal && bytes > 0) {
      const size_t until = peer.received == bytes ? bytes : peer.received / FrameSeal::kStep * FrameSeal::kStep;
      seal.open(peer.body + peer.opened, until - peer.opened);
      peer.opened = until;
    }
    if (peer.received < bytes || (bytes > 0 && peer.end - peer.begin < seal.tag_bytes())) return false;
    if (seal && bytes > 0) seal.check(take_tag(peer));
    peer.in_frame = false;
    end_frame(peer);
    return true;
  }

  static std::string_view take_tag(Peer& peer) {
    const auto* const at = reinterpret_cast<const char*>(peer.buffer.data() + peer.begin);
    peer.begin += FrameSeal::kTag;
    return {at, FrameSeal::kTag};
  }

  void begin_frame(Peer& peer) {
    const Header& header = peer.header;
    peer.in_frame = true;
    peer.received = peer.opened = 0;
    peer.body = nullptr;
    if (header.is_ready) return;
    const std::lock_guard lock(mutex_);
    if (const auto at = peer.expected.find({header.hash, header.code}); at != peer.expected.end()) {
      check_size(peer, header.bytes, at->second.front()->bytes);
      peer.arriving = take_first(peer.expected, at);
      peer.body = peer.arriving->data;
      return;
    }
    if (header.bytes > kEager) fail(str("it sent a message of ", header.bytes, " bytes that nobody had asked for"));
    peer.unexpected.resize(header.bytes);
    peer.body = peer.unexpected.data();
  }

  void end_frame(Peer& peer) {
    const Slot slot{peer.header.hash, peer.header.code};
    {
      const std::lock_guard lock(mutex_);
      if (peer.header.is_ready) {
        release(peer, slot);
      } else if (peer.arriving) {
        return finish(std::exchange(peer.arriving, nullptr));
      } else if (const auto at = peer.expected.find(slot); at != peer.expected.end()) {
        TcpMessage* const message = take_first(peer.expected, at);  // its receive came meanwhile
        check_size(peer, peer.header.bytes, message->bytes);
        std::copy(peer.unexpected.begin(), peer.unexpected.end(), message->data);
        return finish(message);
      } else {
        peer.early[slot].push_back(std::move(peer.unexpected));
        return;
      }
    }
    write(peer);
  }

  const TcpMeshOptions options_;
  Descriptor poll_, wake_;
  std::vector<std::unique_ptr<Peer>> peers_;  // indexed by rank

  std::mutex mutex_;
  std::condition_variable changed_;
  TcpMessage* waiting_ = nullptr;
  bool flushing_ = false;
  bool aborted_ = false;
  std::string reason_;

  std::atomic<bool> ending_{false};
  std::thread thread_;
};

TcpMessage::~TcpMessage() {
  if (!done) link.forget(*this);
}

}  // namespace

std::unique_ptr<Link> make_tcp_link(const TcpMeshOptions& options, Link::Deadline deadline) {
  return std::make_unique<TcpLink>(options, deadline);
}

ProcessGroupPtr make_tcp_group(GroupRecordPtr record, std::shared_ptr<Store> store) {
  WEFT_CHECK(store, "process group gloo: expected a store, got none");
  // Each group that a job makes has a place of its own; all ranks count in the same way.
  const int64_t number = store->add(str("gloo/made/", record->rank), 1);
  const TcpMeshOptions options{.rank = record->rank,
                               .size = record->size,
                               .store = store,
                               .prefix = str("gloo/", number),
                               .membership = record->membership,
                               .secure = record->options.secure};
  record->explain_in(store, options.prefix + "/failure");
  auto link = make_tcp_link(options, Clock::now() + record->options.timeout);
  return make_host_group(std::move(record), std::move(link), "gloo");
}

}  // namespace weft::dist
