// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "core/random.h"
#include "dist/group/backends.h"

namespace weft::dist {
namespace {

/// One side of a message between threads: the side that comes second copies the data.
struct Parcel {
  bool is_send;
  std::byte* data;
  size_t bytes;
  bool done = false;
  std::vector<std::byte> kept = {};  // the data of a post
};
using ParcelPtr = std::shared_ptr<Parcel>;

/// The messages under way to one rank.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, Link::Slot>, std::deque<ParcelPtr>> waiting;  // messages by sender
  std::set<int> left = {};                                              // ranks that send and receive nothing more
  bool aborted = false;
  std::string reason;
};

/// Where the ranks of a group of threads meet.
class ThreadRoom {
 public:
  /// `members`: ranks of the room that was split; left out: all threads.
  explicit ThreadRoom(int size, std::vector<int> members = {})
      : boxes_(static_cast<size_t>(size)), members_(std::move(members)) {}

  Mailbox& box(int rank) { return boxes_[static_cast<size_t>(rank)]; }
  int size() const { return static_cast<int>(boxes_.size()); }

  void abort(const std::string& reason) {
    for (Mailbox& box : boxes_) {
      const std::lock_guard lock(box.mutex);
      if (!box.aborted) box.reason = reason;
      box.aborted = true;
      box.changed.notify_all();
    }
    const std::lock_guard lock(mutex_);
    for (const auto& [key, part] : parts_) part->abort(reason);
  }

  /// Who waits for this rank, now or later, learns that it has returned.
  void leave(int rank) {
    for (Mailbox& box : boxes_) {
      const std::lock_guard lock(box.mutex);
      box.left.insert(rank);
      box.changed.notify_all();
    }
    const std::lock_guard lock(mutex_);
    for (const auto& [key, part] : parts_) {
      const auto at = std::ranges::find(part->members_, rank);
      if (at != part->members_.end()) part->leave(static_cast<int>(at - part->members_.begin()));
    }
  }

  /// The room of one part of a split: made by the first rank that asks.
  std::shared_ptr<ThreadRoom> part(uint64_t number, int color, const std::vector<int>& members) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<ThreadRoom>& part = parts_[{number, color}];
    if (!part) part = std::make_shared<ThreadRoom>(static_cast<int>(members.size()), members);
    return part;
  }

 private:
  std::deque<Mailbox> boxes_;
  const std::vector<int> members_;
  std::mutex mutex_;
  std::map<std::pair<uint64_t, int>, std::shared_ptr<ThreadRoom>> parts_;
};

class ThreadMessage final : public Link::Message {
 public:
  ThreadMessage(int peer_, Mailbox& box_, std::pair<int, Link::Slot> key, ParcelPtr parcel_)
      : Message(peer_, parcel_->is_send), box(box_), parcel(std::move(parcel_)), key_(key) {}
  /// Nobody touches the memory any more.
  ~ThreadMessage() override {
    const std::lock_guard lock(box.mutex);
    const auto found = box.waiting.find(key_);
    if (parcel->done || found == box.waiting.end()) return;
    std::erase(found->second, parcel);
  }
  Mailbox& box;
  const ParcelPtr parcel;

 private:
  const std::pair<int, Link::Slot> key_;
};

/// Ranks are threads of one process and copy from each other's memory.
class ThreadLink final : public Link {
 public:
  ThreadLink(std::shared_ptr<ThreadRoom> room, int rank) : Link(rank, room->size()), room_(std::move(room)) {}

  MessagePtr send(int to, Slot slot, const std::byte* data, size_t bytes) override {
    return start(to, to, {rank_, slot}, {true, const_cast<std::byte*>(data), bytes});
  }
  MessagePtr receive(int from, Slot slot, std::byte* data, size_t bytes) override {
    return start(from, rank_, {from, slot}, {false, data, bytes});
  }
  void post(int to, Slot slot, std::vector<std::byte> data) override {
    const auto parcel = std::make_shared<Parcel>(Parcel{true, data.data(), data.size()});
    parcel->kept = std::move(data);
    bring(room_->box(to), {rank_, slot}, parcel);
  }

  void wait(Message& message, Deadline deadline) override {
    const auto& m = static_cast<const ThreadMessage&>(message);
    Mailbox& box = m.box;
    std::unique_lock lock(box.mutex);
    const bool in_time = box.changed.wait_until(
        lock, deadline, [&] { return m.parcel->done || box.aborted || box.left.contains(m.peer); });
    if (m.parcel->done) return;
    if (!in_time) throw LinkError(LinkError::Kind::deadline, "deadline");
    throw LinkError(LinkError::Kind::aborted,
                    box.aborted ? box.reason : str("rank ", m.peer, " has returned, and so never calls it"));
  }
  void flush(Deadline) override {}
  bool keeps_messages() const override { return true; }
  bool may_overlap() const override { return true; }
  size_t segment_bytes() const override { return 512 << 10; }
  void abort(const std::string& reason) override { room_->abort(reason); }

  std::unique_ptr<Link> split(uint64_t number, int color, const std::vector<int>& members, const std::string&,
                              Deadline) override {
    const auto place = std::ranges::find(members, rank_) - members.begin();
    return std::make_unique<ThreadLink>(room_->part(number, color, members), static_cast<int>(place));
  }

 private:
  MessagePtr start(int peer, int receiver, std::pair<int, Slot> key, Parcel parcel) {
    auto message =
        std::make_unique<ThreadMessage>(peer, room_->box(receiver), key, std::make_shared<Parcel>(std::move(parcel)));
    bring(message->box, key, message->parcel);
    return message;
  }

  static void bring(Mailbox& box, const std::pair<int, Slot>& key, const ParcelPtr& mine) {
    const std::lock_guard lock(box.mutex);
    std::deque<ParcelPtr>& queue = box.waiting[key];
    if (queue.empty() || queue.front()->is_send == mine->is_send) return queue.push_back(mine);
    const ParcelPtr other = std::move(queue.front());
    queue.pop_front();
    if (queue.empty()) box.waiting.erase(key);
    const Parcel &from = mine->is_send ? *mine : *other, &to = mine->is_send ? *other : *mine;
    std::copy_n(from.data, to.bytes, to.data);  // both ends of an empty message may be null
    mine->done = other->done = true;
    box.changed.notify_all();
  }

  const std::shared_ptr<ThreadRoom> room_;
};

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

void run_ranks(int size, const std::function<void(const ProcessGroupPtr&)>& function, const GroupOptions& options) {
  WEFT_CHECK(size > 0, "run_ranks: expected a positive number of ranks, got ", size);
  WEFT_CHECK(function, "run_ranks: expected a function, got none");
  const auto room = std::make_shared<ThreadRoom>(size);
  std::mutex mutex;
  std::exception_ptr first, first_aborted;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const ThreadGenerators generators;
      ProcessGroupPtr group = make_host_group(std::make_shared<GroupRecord>("world", rank, size, options),
                                              std::make_unique<ThreadLink>(room, rank), "threads");
      try {
        function(group);
      } catch (const GroupAborted&) {  // it follows from another rank's exception, which may be caught later than this
        const std::lock_guard lock(mutex);
        if (!first_aborted) first_aborted = std::current_exception();
      } catch (...) {
        {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
        group->abort(str("rank ", rank, " ended with: ", text_of(std::current_exception())));
      }
      group.reset();  // its work is done
      room->leave(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
  if (first_aborted) std::rethrow_exception(first_aborted);
}

}  // namespace weft::dist
