// SPDX-License-Identifier: Apache-2.0
#include "dist/gloo_link.h"

#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "dist/broken_pipe.h"
#include "dist/gloo_outbox.h"
#include "dist/local_address.h"

namespace weft::dist {
namespace {

using Clock = std::chrono::steady_clock;

Milliseconds time_to(Transport::Deadline deadline) {
  return std::max(Milliseconds(1), std::chrono::ceil<Milliseconds>(deadline - Clock::now()));
}

/// Gloo's view of our store.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(dist::Store& store, std::string prefix, Transport::Deadline deadline)
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
  const Transport::Deadline deadline_;
};

/// Tells where this rank is and hears where the others are; returns the address that the others shall connect to.
std::string address_for_all(int rank, int size, dist::Store& store, const std::string& prefix,
                            Transport::Deadline deadline) {
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
void wait_until_all_are_connected(int size, dist::Store& store, const std::string& prefix,
                                  Transport::Deadline deadline) {
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
      : store_(std::move(store)), prefix_(std::move(prefix)), rank_(rank), size_(size) {
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

  int rank() const override { return rank_; }
  int size() const override { return size_; }

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
      if (aborted_) throw TransportError(TransportError::Kind::aborted, reason_);
      waiting_ = &m;
    }
    std::string trouble;
    m.done = has_come(m, time_to(deadline), trouble);
    const std::lock_guard lock(mutex_);
    waiting_ = nullptr;
    if (m.done) return;
    if (aborted_) throw TransportError(TransportError::Kind::aborted, reason_);
    // At the deadline Gloo breaks all connections itself, which look() may have seen.
    if (Clock::now() >= deadline) throw TransportError(TransportError::Kind::deadline, "deadline");
    if (!lost_.empty()) {
      // What has arrived whole counts, even if look() was faster. (A wait in vain ends all connections; the group
      // ends.)
      m.done = has_come(m, Milliseconds(1), trouble);
      if (m.done) return lost_.clear();
      trouble = lost_;
    }
    throw TransportError(TransportError::Kind::lost, str("the connection to rank ", m.peer, " broke: ", trouble));
  }

  void post(int to, Slot slot, std::vector<std::byte> data) override {
    auto buffer = start(to, /*is_send=*/true, slot, data.data(), data.size());
    outbox_.keep(std::move(buffer), std::move(data));
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
    if (!waiting_ || aborted_ || !lost_.empty()) return;
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
      if (aborted_) throw TransportError(TransportError::Kind::aborted, reason_);
      throw TransportError(TransportError::Kind::lost, str("the connection to rank ", peer, " broke: ", error.what()));
    }
  }

  const std::shared_ptr<Store> store_;
  const std::string prefix_;
  const int rank_, size_;
  std::shared_ptr<gloo::rendezvous::Context> context_;

  std::vector<std::unique_ptr<Tripwire>> tripwires_;  // per rank; null: this one
  GlooOutbox outbox_;

  std::mutex mutex_;
  GlooMessage* waiting_ = nullptr;
  std::string lost_;  // why the connection to the rank that is waited for is gone, where Gloo did not say so itself
  bool aborted_ = false;
  std::string reason_;
};

}  // namespace

std::unique_ptr<Link> make_gloo_link(int rank, int size, std::shared_ptr<Store> store, const std::string& prefix,
                                     Transport::Deadline deadline) {
  return std::make_unique<GlooLink>(rank, size, std::move(store), prefix, deadline);
}

}  // namespace weft::dist
