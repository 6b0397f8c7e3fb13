// SPDX-License-Identifier: Apache-2.0
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>
#include <utility>

#include "dist/group/backends.h"
#include "dist/group/gloo_outbox.h"
#include "dist/group/host_math.h"
#include "dist/rendezvous/local_address.h"

namespace weft::dist {
namespace {

/// Gloo writes to sockets without MSG_NOSIGNAL, which ends the process when the other side has closed. While this
/// lives, the thread (and those that it starts) gets the write's error instead; a SIGPIPE of that time is swallowed.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &previous_);
  }
  ~NoBrokenPipe() {
    constexpr timespec kNow{};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &kNow);
    pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  sigset_t pipe_, previous_;
  bool was_pending_ = false;
};

Milliseconds time_to(Link::Deadline deadline) {
  return std::max(Milliseconds(1), std::chrono::ceil<Milliseconds>(deadline - Clock::now()));
}

/// Gloo's view of our store.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(dist::Store& store, std::string prefix, Link::Deadline deadline)
      : store_(store), prefix_(std::move(prefix)), deadline_(deadline) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(prefix_ + key, {data.begin(), data.end()});
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(prefix_ + key, time_to(deadline_));
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const Milliseconds&) override { wait(keys); }

 private:
  dist::Store& store_;
  const std::string prefix_;
  const Link::Deadline deadline_;
};

/// Tells where this rank is and hears where the others are; returns the address that the others shall connect to.
std::string address_for_all(int rank, int size, dist::Store& store, const std::string& prefix,
                            Link::Deadline deadline) {
  store.set(str(prefix, "/host/", rank), host_card());
  std::vector<std::string> cards;
  for (int r = 0; r < size; ++r) {
    try {
      cards.push_back(store.get(str(prefix, "/host/", r), time_to(deadline)));
    } catch (const Error& error) {
      fail("process group gloo: rank ", r, " of ", size, " did not come: ", error.what());
    }
  }
  const std::vector<std::string> others = addresses_elsewhere(cards);
  const bool one_host = std::ranges::all_of(
      cards, [here = host_identity() + '\n'](const std::string& card) { return card.starts_with(here); });
  if (one_host && !std::getenv("WEFT_SOCKET_IFNAME")) return "127.0.0.1";
  return one_host ? local_addresses().front() : address_towards(others);
}

/// A rank that went on at once, failed and left would break off connections that others are still making, and they
/// would tell of that instead of what the rank met.
void wait_until_all_are_connected(int size, dist::Store& store, const std::string& prefix, Link::Deadline deadline) {
  const std::string connected = prefix + "/connected";
  if (store.add(connected, 1) == size) store.set(connected + "/all", "");
  store.get(connected + "/all", time_to(deadline));
}

/// Tells whether the connection to a rank still stands. When one breaks, Gloo 2022 wakes who waits for a message that
/// has not begun, but not who waits for one that has arrived or gone in part: it has taken that one from the lists
/// which Pair::signalException() goes through. So a receive that never begins is posted on each connection, and asked.
class Tripwire {
 public:
  static constexpr uint64_t kSlot = 15;  // below the first collective's, and no code of a collective

  Tripwire(gloo::Context& context, int peer) : buffer_(context.createUnboundBuffer(&byte_, 1)) {
    buffer_->recv(peer, kSlot);
  }
  /// What Gloo says of a connection that is gone; empty while it stands. From one thread at a time.
  std::string trouble() {
    try {
      buffer_->abortWaitRecv();  // the wait looks for an error first, then returns at once
      buffer_->waitRecv(nullptr, Milliseconds(1000));
      return {};
    } catch (const gloo::Exception& error) {
      return error.what();
    }
  }

 private:
  char byte_ = 0;
  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

class GlooMessage final : public Link::Message {
 public:
  GlooMessage(int peer_, bool is_send_, std::unique_ptr<gloo::transport::UnboundBuffer> buffer_)
      : Message(peer_, is_send_), buffer(std::move(buffer_)) {}
  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  bool done = false;
};

class GlooLink final : public Link {
 public:
  GlooLink(int rank, int size, std::shared_ptr<Store> store, std::string prefix, Deadline deadline)
      : Link(rank, size), store_(std::move(store)), prefix_(std::move(prefix)) {
    const std::string address = address_for_all(rank, size, *store_, prefix_, deadline);
    if (size == 1) return;
    const NoBrokenPipe guard;  // Gloo's own thread begins here and keeps it
    try {
      std::shared_ptr<gloo::transport::Device> device =
          gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.c_str()));
      auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
      context->setTimeout(time_to(deadline));
      GlooStore meeting(*store_, prefix_ + "/pair/", deadline);
      context->connectFullMesh(meeting, device);
      for (int r = 0; r < size; ++r)
        tripwires_.push_back(r == rank ? nullptr : std::make_unique<Tripwire>(*context, r));
      context_ = std::move(context);
      wait_until_all_are_connected(size, *store_, prefix_, deadline);
    } catch (const gloo::Exception& error) {
      fail("process group gloo: rank ", rank, " cannot connect to the others from ", address, ": ", error.what());
    }
  }

  MessagePtr send(int to, Slot slot, const std::byte* data, size_t bytes) override {
    return std::make_unique<GlooMessage>(to, true,
                                         start(to, /*is_send=*/true, slot, const_cast<std::byte*>(data), bytes));
  }
  MessagePtr receive(int from, Slot slot, std::byte* data, size_t bytes) override {
    return std::make_unique<GlooMessage>(from, false, start(from, /*is_send=*/false, slot, data, bytes));
  }

  void wait(Message& message, Deadline deadline) override {
    auto& m = static_cast<GlooMessage&>(message);
    if (m.done) return;
    {
      const std::lock_guard lock(mutex_);
      if (aborted_) throw LinkError(LinkError::Kind::aborted, reason_);
      waiting_ = &m;
    }
    std::string trouble;
    m.done = has_come(m, time_to(deadline), trouble);
    const std::lock_guard lock(mutex_);
    waiting_ = nullptr;
    if (m.done) return;
    if (aborted_) throw LinkError(LinkError::Kind::aborted, reason_);
    // At the deadline Gloo breaks all connections itself, which look() may have seen.
    if (Clock::now() >= deadline) throw LinkError(LinkError::Kind::deadline, "deadline");
    if (!lost_.empty()) {
      // What has arrived whole counts, even if look() was faster. (A wait in vain ends all connections; the group
      // ends.)
      m.done = has_come(m, Milliseconds(1), trouble);
      if (m.done) return lost_.clear();
      trouble = lost_;
    }
    throw LinkError(LinkError::Kind::lost, str("the connection to rank ", m.peer, " broke: ", trouble));
  }

  void post(int to, Slot slot, std::vector<std::byte> data) override {
    auto buffer = start(to, /*is_send=*/true, slot, data.data(), data.size());
    outbox_.keep(std::move(buffer), std::move(data));
  }

  bool run(const HostCollective& c, Deadline deadline) override {
    // Gloo binds the buffers of its reduce_scatter anew for each tensor.
    if (c.kind == CollectiveKind::reduce_scatter) return false;
    {
      const std::lock_guard lock(mutex_);
      if (aborted_) throw LinkError(LinkError::Kind::aborted, reason_);
      in_collective_ = true;
    }
    const NoBrokenPipe guard;
    std::string trouble;
    try {
      call_gloo(c, time_to(deadline));
    } catch (const gloo::Exception& error) {
      trouble = error.what();
    }
    const std::lock_guard lock(mutex_);
    in_collective_ = false;
    if (trouble.empty()) return true;
    if (aborted_) throw LinkError(LinkError::Kind::aborted, reason_);
    if (Clock::now() >= deadline) throw LinkError(LinkError::Kind::deadline, "deadline");
    throw LinkError(LinkError::Kind::lost, str("a connection broke: ", lost_.empty() ? trouble : lost_));
  }

  bool may_overlap() const override { return true; }
  size_t segment_bytes() const override { return 1 << 20; }  // each costs its receiver a message of readiness
  void flush(Deadline deadline) override { outbox_.flush(deadline); }

  void abort(const std::string& reason) override {
    {
      const std::lock_guard lock(mutex_);
      if (aborted_) return;
      aborted_ = true;
      reason_ = reason;
      if (waiting_) {
        waiting_->buffer->abortWaitRecv();
        waiting_->buffer->abortWaitSend();
      }
    }
    try {
      store_->set(prefix_ + "/aborted", reason);
    } catch (const std::exception&) {
      // The connections that close tell it too.
    }
    outbox_.abort();
    const NoBrokenPipe guard;
    if (context_) context_->closeConnections();
  }

  /// Over the store, which also reaches a rank that waits for another one than the rank that has aborted.
  std::string failure_elsewhere() override {
    try {
      const std::string key = prefix_ + "/aborted";
      return store_->has(key) ? store_->get(key, Milliseconds(1000)) : "";
    } catch (const std::exception&) {
      return "";
    }
  }

  void look() override {
    const std::lock_guard lock(mutex_);
    if (aborted_ || !lost_.empty()) return;
    if (in_collective_) {  // which waits for any rank
      for (const auto& tripwire : tripwires_)
        if (tripwire && lost_.empty()) lost_ = tripwire->trouble();
      const NoBrokenPipe guard;
      if (!lost_.empty()) context_->closeConnections();
    }
    if (!waiting_) return;
    lost_ = tripwires_[static_cast<size_t>(waiting_->peer)]->trouble();
    if (lost_.empty()) return;
    waiting_->buffer->abortWaitRecv();
    waiting_->buffer->abortWaitSend();
  }

  std::unique_ptr<Link> split(uint64_t number, int color, const std::vector<int>& members, const std::string&,
                              Deadline deadline) override {
    const auto place = static_cast<int>(std::ranges::find(members, rank_) - members.begin());
    return make_gloo_link(place, static_cast<int>(members.size()), store_, str(prefix_, "/split/", number, '.', color),
                          deadline);
  }

 private:
  /// Waits; false with the reason where the connection broke, without one where the wait was aborted.
  static bool has_come(GlooMessage& m, Milliseconds time, std::string& trouble) {
    try {
      return m.is_send ? m.buffer->waitSend(nullptr, time) : m.buffer->waitRecv(nullptr, time);
    } catch (const gloo::Exception& error) {
      trouble = error.what();
      return false;
    }
  }

  void call_gloo(const HostCollective& c, Milliseconds time) {
    auto* const bytes = reinterpret_cast<uint8_t*>(c.output);
    const size_t size = c.count * size_of(c.dtype);
    if (c.kind == CollectiveKind::all_reduce) {
      const auto reduce_in = [&]<class T>(T*) {  // Gloo asks for a type and uses its size
        gloo::AllreduceOptions options(context_);
        options.setOutput(reinterpret_cast<T*>(c.output), c.count);
        options.setReduceFunction([&c](void* sum, const void* a, const void* b, size_t count) {
          const void* const both[] = {a, b};
          reduce(c.dtype, c.op == ReduceOp::max ? ReduceOp::max : ReduceOp::sum, sum, both, count);
        });
        options.setTimeout(time);
        gloo::allreduce(options);
      };
      switch (size_of(c.dtype)) {
        case 1:
          reduce_in(static_cast<uint8_t*>(nullptr));
          break;
        case 2:
          reduce_in(static_cast<uint16_t*>(nullptr));
          break;
        case 4:
          reduce_in(static_cast<uint32_t*>(nullptr));
          break;
        default:
          reduce_in(static_cast<uint64_t*>(nullptr));
      }
      if (c.op == ReduceOp::avg) scale(c.dtype, c.output, c.output, 1.0 / size_, c.count);
    } else if (c.kind == CollectiveKind::all_gather) {
      gloo::AllgatherOptions options(context_);
      std::byte* const own = c.output + static_cast<size_t>(rank_) * size;
      if (own != c.input) std::memcpy(own, c.input, size);
      options.setOutput(bytes, size * static_cast<size_t>(size_));
      options.setTimeout(time);
      gloo::allgather(options);
    } else if (c.kind == CollectiveKind::broadcast) {
      gloo::BroadcastOptions options(context_);
      options.setOutput(bytes, size);
      options.setRoot(c.peer);
      options.setTimeout(time);
      gloo::broadcast(options);
    } else {
      gloo::BarrierOptions options(context_);
      options.setTimeout(time);
      gloo::barrier(options);
    }
  }

  std::unique_ptr<gloo::transport::UnboundBuffer> start(int peer, bool is_send, Slot slot, std::byte* data,
                                                        size_t bytes) {
    const NoBrokenPipe guard;
    try {
      auto buffer = context_->createUnboundBuffer(data, bytes);
      const uint64_t number = slot.hash << 4 | slot.code;
      if (is_send)
        buffer->send(peer, number);
      else
        buffer->recv(peer, number);
      return buffer;
    } catch (const gloo::Exception& error) {
      const std::lock_guard lock(mutex_);
      if (aborted_) throw LinkError(LinkError::Kind::aborted, reason_);
      throw LinkError(LinkError::Kind::lost, str("the connection to rank ", peer, " broke: ", error.what()));
    }
  }

  const std::shared_ptr<Store> store_;
  const std::string prefix_;
  std::shared_ptr<gloo::rendezvous::Context> context_;

  std::vector<std::unique_ptr<Tripwire>> tripwires_;  // per rank; null: this one
  GlooOutbox outbox_;

  std::mutex mutex_;
  GlooMessage* waiting_ = nullptr;
  bool in_collective_ = false;  // of Gloo's own
  std::string lost_;  // why the connection to the rank that is waited for is gone, where Gloo did not say so itself
  bool aborted_ = false;
  std::string reason_;
};

}  // namespace

std::unique_ptr<Link> make_gloo_link(int rank, int size, std::shared_ptr<Store> store, const std::string& prefix,
                                     Link::Deadline deadline) {
  return std::make_unique<GlooLink>(rank, size, std::move(store), prefix, deadline);
}

ProcessGroupPtr make_gloo_group(GroupRecordPtr record, std::shared_ptr<Store> store) {
  WEFT_CHECK(store, "process group gloo: expected a store, got none");
  // Each group that a job makes has a place of its own; all ranks count alike.
  const int64_t number = store->add(str("gloo/made/", record->rank), 1);
  const std::string prefix = str("gloo/", number);
  record->explain_in(store, prefix + "/failure");
  auto link = make_gloo_link(record->rank, record->size, store, prefix, Clock::now() + record->options.timeout);
  return make_host_group(std::move(record), std::move(link), "gloo");
}

}  // namespace weft::dist
