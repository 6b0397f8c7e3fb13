// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/dist/herd.h"

#include <sys/epoll.h>

#include <cerrno>
#include <deque>
#include <memory>
#include <optional>

#include "dist/rendezvous/file_store.h"
#include "dist/rendezvous/handshake.h"
#include "dist/rendezvous/membership.h"
#include "dist/rendezvous/message.h"
#include "dist/rendezvous/rank_place.h"
#include "dist/rendezvous/session.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_service.h"
#include "dist/rendezvous/tcp_store.h"
#include "kernels/error.h"

namespace weft::benchmarks {
namespace {

using namespace dist;

constexpr const char* kSecret = "the secret of a herd, 32 bytes long";
constexpr int kGpus = 4;  // a node
constexpr size_t kId = 128;

LaunchEnvironment environment_of(int rank, int ranks) {
  LaunchEnvironment environment{.launcher = "herd", .rank = rank, .size = ranks};
  environment.local_rank = rank % kGpus;
  environment.local_size = ranks;  // the store is on this host
  environment.job = "herd";
  return environment;
}

RankPlace place_of(int rank, bool has_device) {
  RankPlace place;
  place.host = str("nid", 100000 + rank / kGpus);
  place.local_rank = rank % kGpus;
  place.machine = str(place.host, " 01234567-89ab-cdef-0123-456789abcdef net:[4026531840]");
  if (!has_device) return place;
  place.device = {DeviceKind::cuda, rank % kGpus};
  place.gpu = str("GPU-01234567-89ab-cdef-0123-", 100000 + rank);
  place.backend = "nccl";
  return place;
}

int root_of(int root, const HerdOptions& options) {
  return static_cast<int>(int64_t{root} * options.ranks / options.roots);
}

/// One connection of a played rank.
struct Wire {
  Descriptor socket;
  std::unique_ptr<ClientHandshake> handshake{};
  FrameBuffer in{kMaxUnprovenMessage};
  FrameSeal out{};
  bool proven = false;
  Traffic sent_before{}, received_before{};  // the rank's, when this handshake began
};

/// A rank waits for these, in this order.
enum class Stage {
  store,
  member,
  complete,
  host,
  host_answer,
  place,
  place_answer,
  own_ids,
  ids,
  ready,
  claim,
  states,
  done
};

struct Rank {
  Wire store, member;
  Stage stage = Stage::store;
  int root = 0, ids = 0;
};

class Herd {
 public:
  explicit Herd(const HerdOptions& options)
      : options_(options),
        secret_(keyed_hash(job_secret({{"WEFT_JOB_SECRET", kSecret}}, "herd", options.folder / "cookie"), "start 0")),
        ranks_(static_cast<size_t>(options.ranks)),
        poll_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (auto* counts : {&result_.sent, &result_.received, &result_.stall_sent, &result_.stall_received})
      counts->resize(ranks_.size());
    allow_connections(2 * ranks_.size());
    FileStore files(options.folder);
    const Address address = parse_address("herd", files.get("store herd start 0", options.timeout));
    endpoint_ = resolve(address).front();
    wish_ = wish_for_store(endpoint_.port());
  }

  HerdResult play(const std::function<void()>& before_leaving) {
    const TimePoint begin = Clock::now();
    deadline_ = begin + options_.timeout;
    next_beat_ = begin + options_.beats;
    for (int rank = 1; rank < options_.ranks; ++rank) to_connect_.push_back(2 * rank);
    run_to(Stage::ready);
    result_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const TimePoint stall = Clock::now();
    for (int rank = 1; rank < options_.ranks; ++rank) {
      ranks_[static_cast<size_t>(rank)].stage = Stage::claim;
      MessageWriter claim(MessageKind::claim);
      send(2 * rank + 1, claim.number(1).number(3'600'000).text("stall 412 of world").frame());
    }
    at_stage_ = 0;
    run_to(Stage::done);
    result_.stall_seconds = std::chrono::duration<double>(Clock::now() - stall).count();
    if (before_leaving) before_leaving();
    for (int rank = 1; rank < options_.ranks; ++rank) send(2 * rank + 1, MessageWriter(MessageKind::leave).frame());
    return std::move(result_);
  }

 private:
  static constexpr size_t kConnects = 64;  // before the messages that have come are read

  Wire& wire(int number) {
    Rank& rank = ranks_[static_cast<size_t>(number / 2)];
    return number % 2 == 0 ? rank.store : rank.member;
  }

  void run_to(Stage stage) {
    const int others = options_.ranks - 1;
    goal_ = stage;
    while (at_stage_ < others) {
      WEFT_CHECK(Clock::now() < deadline_, "herd: ", others - at_stage_, " of ", others,
                 " ranks are not ready in time");
      for (size_t i = 0; i < kConnects && !to_connect_.empty() && unproven_ < options_.at_once; ++i) {
        connect(to_connect_.front());
        to_connect_.pop_front();
      }
      if (Clock::now() >= next_beat_) beat();
      epoll_event events[256];
      const bool connects = !to_connect_.empty() && unproven_ < options_.at_once;
      const int count = ::epoll_wait(poll_.fd(), events, 256, connects ? 0 : 100);
      for (int i = 0; i < count; ++i) read(static_cast<int>(events[i].data.u64));
    }
  }

  void connect(int number) {
    Wire& w = wire(number) = {};
    w.sent_before = result_.sent[static_cast<size_t>(number / 2)];
    w.received_before = result_.received[static_cast<size_t>(number / 2)];
    const int error = connect_to(endpoint_, deadline_, w.socket);
    WEFT_CHECK(error == 0, "herd: cannot connect: ", error_words(error));
    w.handshake = std::make_unique<ClientHandshake>(secret_, wish_);
    ++unproven_;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = static_cast<uint64_t>(number);
    WEFT_CHECK(::epoll_ctl(poll_.fd(), EPOLL_CTL_ADD, w.socket.fd(), &event) == 0, "herd: ", error_words(errno));
    send_bytes(number, frame(w.handshake->greeting()));
  }

  void beat() {
    next_beat_ = Clock::now() + options_.beats;
    MessageWriter writer(MessageKind::heartbeat);
    write_progress(writer, {});
    const std::string frame = writer.text("").number(0).frame();
    for (int rank = 1; rank < options_.ranks; ++rank)
      if (ranks_[static_cast<size_t>(rank)].stage > Stage::member) send(2 * rank + 1, frame, /*counted=*/false);
  }

  void send(int number, const std::string& frame, bool counted = true) {
    send_bytes(number, sealed(wire(number).out, frame), counted);
  }

  void count(int number, size_t bytes, std::vector<Traffic>& start, std::vector<Traffic>& stall) {
    const auto rank = static_cast<size_t>(number / 2);
    (ranks_[rank].stage < Stage::claim ? start : stall)[rank] += {1, static_cast<int64_t>(bytes)};
  }

  void send_bytes(int number, const std::string& bytes, bool counted = true) {
    if (counted) count(number, bytes.size(), result_.sent, result_.stall_sent);
    const int error = send_all(wire(number).socket.fd(), bytes, deadline_);
    WEFT_CHECK(error == 0 || !wire(number).proven, "herd: rank 0 has gone: ", error_words(error));
  }

  void read(int number) {
    Wire& w = wire(number);
    const int status = receive_some(w.socket.fd(), w.in.bytes());
    while (const std::optional<std::string> body = w.in.next()) take(number, w, *body);
    if (status == 0 || status == EAGAIN) return;
    WEFT_CHECK(!w.proven, "herd: rank 0 has closed rank ", number / 2, "'s connection ", number % 2, ": ",
               status < 0 ? "in order" : error_words(status));
    ++result_.lost_handshakes;
    --unproven_;
    result_.sent[static_cast<size_t>(number / 2)] = w.sent_before;
    result_.received[static_cast<size_t>(number / 2)] = w.received_before;
    w.socket.close();
    to_connect_.push_back(number);
  }

  void take(int number, Wire& w, const std::string& body) {
    const size_t bytes = body.size() + 4 + (w.out ? 2 * FrameSeal::kTag : 0);
    if (!w.out) {
      count(number, bytes, result_.received, result_.stall_received);
      send_bytes(number, frame(w.handshake->answer(body)));
      w.in.set_proven(FrameSeal(w.handshake->key("from the server"), /*encrypt=*/true), kMaxMessage);
      w.out = FrameSeal(w.handshake->key("from the client"), /*encrypt=*/true);
      return;
    }
    Rank& rank = ranks_[static_cast<size_t>(number / 2)];
    if (!w.proven) {
      WEFT_CHECK(body == kWelcome, "herd: rank 0 says ", body);
      count(number, bytes, result_.received, result_.stall_received);
      w.proven = true;
      --unproven_;
      return next(number / 2, rank);
    }
    MessageReader message(body);
    if (message.kind() == MessageKind::heartbeat) return;
    WEFT_CHECK(message.kind() != MessageKind::failure && message.kind() != MessageKind::refused,
               "herd: rank 0 ends the job: ", body.substr(1));
    count(number, bytes, result_.received, result_.stall_received);
    if (message.kind() == MessageKind::complete) return next(number / 2, rank);
    message.number();  // the request: a rank has one at a time
    if (rank.stage == Stage::claim) {
      const bool tells = message.number() != 0;
      result_.tellers += tells;
      rank.stage = tells ? Stage::states : Stage::done;
      if (tells) return send(number, MessageWriter(MessageKind::states).number(2).number(0).frame());
      return reach(rank.stage);
    }
    if (rank.stage == Stage::states) {
      if (message.number() == 0) return;  // more follows
      rank.stage = Stage::done;
      return reach(rank.stage);
    }
    WEFT_CHECK(message.number() != 0, "herd: a request of rank ", number / 2, " failed: ", message.text());
    if (rank.stage == Stage::ids) {
      rank.ids += static_cast<int>(unpacked(message.text()).size());
      if (rank.ids < options_.roots) return ask_ids(number / 2, rank);
    }
    next(number / 2, rank);
  }

  void ask_ids(int number, const Rank& rank) {
    ask(number, MessageKind::find_run, "ids",
        [&](MessageWriter& writer) { writer.number(options_.timeout.count()).number(rank.ids); });
  }

  template <class Fields>
  void ask(int number, MessageKind kind, const std::string& key, Fields&& fields) {
    MessageWriter writer(kind);
    writer.number(1).text(key);
    fields(writer);
    send(2 * number, writer.frame());
  }

  void reach(Stage stage) { at_stage_ += stage == goal_; }

  /// The rank has its answer.
  void next(int number, Rank& rank) {
    const auto set = [&](const std::string& key, const std::string& value) {
      ask(number, MessageKind::set, key, [&](MessageWriter& writer) { writer.text(value); });
    };
    const auto get = [&](const std::string& key) {
      ask(number, MessageKind::get, key, [&](MessageWriter& writer) { writer.number(options_.timeout.count()); });
    };
    rank.stage = static_cast<Stage>(static_cast<int>(rank.stage) + 1);
    switch (rank.stage) {
      case Stage::member:
        return connect(2 * number + 1);
      case Stage::complete: {
        MessageWriter join(MessageKind::join);
        return send(2 * number + 1, join.number(number).text(place_of(number, false).host).number(1000).frame());
      }
      case Stage::host:
        return set(str("host/", number), packed_place(place_of(number, false)));
      case Stage::host_answer:
        return get(str("host/answer/", number));
      case Stage::place:
        return set(str("place/", number), packed_place(place_of(number, true)));
      case Stage::place_answer:
        return get(str("place/answer/", number));
      case Stage::own_ids:
        for (int root = 0; root < options_.roots; ++root)
          if (root_of(root, options_) == number) return set(str("ids/", root), std::string(kId, 'i'));
        return next(number, rank);
      case Stage::ids:
        return ask_ids(number, rank);
      default:
        return reach(rank.stage);
    }
  }

  const HerdOptions& options_;
  const std::string secret_;
  std::vector<Rank> ranks_;
  Descriptor poll_;
  Endpoint endpoint_;
  std::string wish_;
  TimePoint deadline_, next_beat_;
  std::deque<int> to_connect_;  // wires: 2 * rank, and 1 for the membership
  Stage goal_ = Stage::ready;
  int at_stage_ = 0, unproven_ = 0;
  HerdResult result_;
};

}  // namespace

void start_rank_0(const HerdOptions& options) {
  const LaunchEnvironment environment = environment_of(0, options.ranks);
  Session session(environment, {{"WEFT_JOB_SECRET", kSecret}, {"WEFT_RENDEZVOUS", options.folder.string()}},
                  options.timeout);
  exchange_places(session, "host", place_of(0, false), environment, options.timeout);
  exchange_places(session, "place", place_of(0, true), environment, options.timeout);
  session.store().set("ids/0", std::string(kId, 'i'));
  session.wait_for_all("ids", options.roots, options.timeout);
}

HerdResult play_herd(const HerdOptions& options, const std::function<void()>& before_leaving) {
  return Herd(options).play(before_leaving);
}

}  // namespace weft::benchmarks
