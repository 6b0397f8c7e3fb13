// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/crypto.h"

#include <random>

#include "dist/rendezvous/handshake.h"
#include "dist/rendezvous/message.h"
#include "tests/dist/meeting.h"

namespace weft::dist {
namespace {

const std::string kKey(32, 'k');

/// The bodies that a receiver takes from the wire, to the first error.
struct Taken {
  std::vector<std::string> bodies;
  std::string error;
};
Taken take(const std::string& wire, const std::string& key = kKey) {
  Taken taken;
  FrameBuffer buffer(kMaxUnprovenMessage);
  buffer.set_proven(FrameSeal(key, true), kMaxMessage);
  buffer.bytes() = wire;
  try {
    while (const auto body = buffer.next()) taken.bodies.push_back(*body);
  } catch (const Error& error) {
    taken.error = error.what();
  }
  return taken;
}

std::vector<std::string> three_frames() {
  FrameSeal seal(kKey, true);
  std::vector<std::string> frames;
  for (const char* body : {"one", "two", "a third and longer one"}) frames.push_back(sealed(seal, frame(body)));
  return frames;
}

constexpr const char* kForged =
    "a frame failed its authentication: it was changed, repeated or left out on the way. Does another program relay "
    "this "
    "connection?";

TEST(FrameSeal, FramesArriveAsTheyWereSent) {
  WEFT_NEEDS_CRYPTO();
  const auto f = three_frames();
  const Taken taken = take(f[0] + f[1] + f[2]);
  EXPECT_THAT(taken.bodies, ::testing::ElementsAre("one", "two", "a third and longer one"));
  EXPECT_EQ(taken.error, "");
  EXPECT_EQ(f[2].find("third"), std::string::npos) << "bodies are encrypted";
}

TEST(FrameSeal, RepeatedSwappedAndMissingFramesFail) {
  WEFT_NEEDS_CRYPTO();
  const auto f = three_frames();
  for (const std::string& wire : {f[0] + f[0], f[0] + f[2], f[0] + f[2] + f[1]}) {
    const Taken taken = take(wire);
    EXPECT_THAT(taken.bodies, ::testing::ElementsAre("one"));
    EXPECT_EQ(taken.error, kForged);
  }
  EXPECT_EQ(take(f[1]).error, kForged);
  EXPECT_EQ(take(f[0], std::string(32, 'l')).error, kForged) << "the key of the other direction";
}

TEST(FrameSeal, EveryBitCounts) {
  WEFT_NEEDS_CRYPTO();
  const std::string whole = three_frames()[0];
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string wire = whole;
    wire[bit / 8] = static_cast<char>(wire[bit / 8] ^ (1 << bit % 8));
    const Taken taken = take(wire);
    EXPECT_TRUE(taken.bodies.empty()) << "bit " << bit;
    EXPECT_EQ(taken.error, kForged) << "bit " << bit;
  }
}

TEST(FrameSeal, CutFramesAreNeverTaken) {
  WEFT_NEEDS_CRYPTO();
  const auto f = three_frames();
  for (size_t bytes = 0; bytes < f[0].size(); ++bytes) EXPECT_TRUE(take(f[0].substr(0, bytes)).bodies.empty());
  for (size_t cut = 1; cut < f[0].size(); ++cut) {
    const Taken taken = take(f[0].substr(0, f[0].size() - cut) + f[1] + f[2]);
    EXPECT_TRUE(taken.bodies.empty()) << cut;
    EXPECT_NE(taken.error, "") << cut;
  }
}

TEST(FrameSeal, PiecesOfABodyMakeTheSameFrame) {
  WEFT_NEEDS_CRYPTO();
  std::vector<std::byte> body(1000), sent(1000);
  std::mt19937 random(7);
  for (std::byte& byte : body) byte = static_cast<std::byte>(random());
  for (const bool encrypt : {false, true}) {
    FrameSeal whole(kKey, encrypt), pieces(kKey, encrypt), opens(kKey, encrypt);
    for (int i = 0; i < 3; ++i) {
      whole.begin();
      std::vector<std::byte> expected(1000);
      whole.seal(body.data(), expected.data(), 1000);
      pieces.begin();
      for (const auto& [at, count] : {std::pair<size_t, size_t>{0, 64}, {64, 640}, {704, 296}})
        pieces.seal(body.data() + at, sent.data() + at, count);
      const FrameSeal::Tag tag = pieces.tag();
      EXPECT_EQ(tag, whole.tag());
      EXPECT_EQ(sent, expected);
      std::vector<std::byte>& wire = encrypt ? sent : body;
      std::vector<std::byte> got = wire;
      opens.begin();
      opens.open(got.data(), 128);
      opens.open(got.data() + 128, 872);
      opens.check({tag.data(), tag.size()});
      EXPECT_EQ(got, body);
    }
  }
}

/// As libsodium's ChaCha20, Poly1305 and HMAC-SHA256 make them.
TEST(FrameSeal, KnownAnswers) {
  WEFT_NEEDS_CRYPTO();
  const auto hex = [](const FrameSeal::Tag& tag) { return hexadecimal({tag.data(), tag.size()}); };
  FrameSeal seal(kKey, true);
  EXPECT_EQ(hex(seal.seal_header("header")), "4fa2e294c73fccce098a280800375308");
  std::string body(100, 'b');
  auto* const bytes = reinterpret_cast<std::byte*>(body.data());
  seal.begin();
  seal.seal(bytes, bytes, body.size());
  EXPECT_EQ(hex(seal.tag()), "8121f46738234a9ca79cda5197f15ef5");
  EXPECT_EQ(hexadecimal(body.substr(0, 8)), "4c5932c020ade087");
  EXPECT_EQ(hexadecimal(keyed_hash("key", "message")),
            "6e9ef29b75fffc5b7abae527d58fdadb2fe42e7219011976917343065f58ed4a");
}

TEST(FrameSeal, AKeyOfAnotherLengthIsRefused) {
  WEFT_NEEDS_CRYPTO();
  EXPECT_EQ(error_text([] { FrameSeal("short", false); }), "frame seal: expected a key of 32 bytes, got 5");
}

TEST(Handshake, KeysComeFromSecretNoncesAndWish) {
  WEFT_NEEDS_CRYPTO();
  const std::string secret = kSecret;
  const auto meet = [&] {
    ServerHandshake server(secret);
    ClientHandshake client(secret, "a wish");
    const std::string proof = client.answer(server.answer(client.greeting()));
    EXPECT_FALSE(server.done());
    EXPECT_EQ(server.answer(proof), "");
    EXPECT_TRUE(server.done());
    EXPECT_EQ(server.wish(), "a wish");
    EXPECT_EQ(client.key("use"), server.key("use"));
    EXPECT_NE(client.key("use"), client.key("other use"));
    return client.key("use");
  };
  EXPECT_NE(meet(), meet()) << "nonces are fresh";
}

TEST(Handshake, AWishThatWasChangedOnTheWayFails) {
  WEFT_NEEDS_CRYPTO();
  const std::string secret = kSecret;
  ServerHandshake server(secret);
  ClientHandshake client(secret, "rank 1 to 0");
  std::string greeting = client.greeting();
  greeting[greeting.size() - 6] = '2';
  const std::string answer = server.answer(greeting);
  EXPECT_EQ(error_text([&] { client.answer(answer); }), "has another secret");
}

}  // namespace
}  // namespace weft::dist
