// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/find_store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#include "dist/rendezvous/handshake.h"
#include "dist/rendezvous/keyed_hash.h"
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
       other_secret ? "Do all ranks have the same WEFT_JOB_SECRET, or the same cookie file in the home folder?"
                    : "Does rank 0 (or node 0 of weft-run) run there, and can its host be reached from here?");
}

}  // namespace weft::dist
