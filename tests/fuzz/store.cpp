// SPDX-License-Identifier: Apache-2.0
// Input: which reader of dist, and its text; for a store's server a list of pieces: what happens (bytes arrive, or the
// connection closes) on which of six connections, and the bytes. The connections are proven: a rank's bytes must not
// stop the server either.
#include "dist/rendezvous/file_store.h"
#include "dist/rendezvous/handshake.h"
#include "dist/rendezvous/launch_environment.h"
#include "dist/rendezvous/store_service.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;
using namespace weft::dist;

namespace {

void read_stream(fuzz::Input& input) {
  StoreService store;
  MemberService members(4);
  std::vector<Outgoing> out;
  const TimePoint now = Clock::now();
  std::map<ConnectionId, FrameBuffer> buffers;
  while (!input.empty()) {
    const uint8_t what = input.byte();
    const ConnectionId from = 1 + what % 6;
    if (what >= 250) {
      store.closed(from);
      members.closed(from, what % 2 == 0, out);
      buffers.erase(from);
      continue;
    }
    FrameBuffer& buffer = buffers.try_emplace(from, kMaxMessage).first->second;
    const std::vector<uint8_t> bytes = input.take(input.word());
    buffer.bytes().append(bytes.begin(), bytes.end());
    bool whole = false;
    fuzz::expect_value_or_error([&] {
      while (const std::optional<std::string> body = buffer.next()) {
        MessageReader message(*body);
        if (message.kind() <= MessageKind::answer)
          store.handle(from, message, now, out);
        else
          members.handle(from, message, now, out);
      }
      whole = true;
    });
    if (!whole) {  // the server ends such a connection
      store.closed(from);
      members.closed(from, false, out);
      buffers.erase(from);
    }
    store.expire(now + std::chrono::milliseconds(what), out);
  }
  members.say_farewell(out);
  // A client takes the server's answers.
  for (const Outgoing& message : out) {
    FrameBuffer buffer(kMaxMessage);
    buffer.bytes() = message.frame;
    WEFT_CHECK(buffer.next().has_value(), "the server sends half a message");
  }
}

constexpr size_t kKeyBytes = 32;

/// Both sides of a handshake, then a sealed frame, each with the bytes of a peer that need not know the secret.
void shake_hands(fuzz::Input& input) {
  const std::string secret(kKeyBytes, 's');  // secret of this job
  const bool encrypt = (input.byte() & 1) != 0;
  for (const bool relayed : {true, false}) {  // an honest client's bytes, or the input's
    ServerHandshake server(secret);
    ClientHandshake client(secret, "a wish");
    fuzz::expect_value_or_error([&] {
      const std::string said = server.answer(relayed ? client.greeting() : input.text(input.word()));
      server.answer(relayed ? client.answer(said) : input.text(input.word()));
      if (server.done() != relayed) std::abort();  // nobody proves a secret by chance
    });
    fuzz::expect_value_or_error([&] { client.answer(input.text(input.word())); });
  }
  fuzz::expect_value_or_error([&] {
    FrameBuffer buffer(kMaxMessage);
    buffer.set_proven(FrameSeal(secret, encrypt), kMaxMessage);
    buffer.bytes() = input.text();
    if (buffer.next()) std::abort();
  });
}

/// A store in a folder, one of whose files holds the input.
void read_file_store(const std::string& text) {
  static const fuzz::Folder folder;
  FileStore store(folder.path());
  store.set("count", text);
  if (store.get("count", std::chrono::milliseconds(0)) != text) std::abort();
  store.add("count", 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const int kind = input.byte() % 6;
  fuzz::expect_value_or_error([&] {
    if (kind == 0) return read_stream(input);
    if (kind == 4) return shake_hands(input);
    const std::vector<uint8_t> bytes = input.rest();
    const std::string text(bytes.begin(), bytes.end());
    if (kind == 5) read_file_store(text);
    if (kind == 1) parse_node_list(text);
    if (kind == 2) parse_address("MASTER_ADDR", text);
    if (kind == 3) {
      EnvironmentVariables variables;  // NAME=value lines
      for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size()), equals = text.find('=', begin);
        if (equals < end) variables[text.substr(begin, equals - begin)] = text.substr(equals + 1, end - equals - 1);
        begin = end + 1;
      }
      read_launch_environment(variables);
    }
  });
  return 0;
}
