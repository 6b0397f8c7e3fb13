// SPDX-License-Identifier: Apache-2.0
// Several launchers, which play the nodes of a job: on this host, and in network namespaces of their own.
#include "dist/rendezvous/socket.h"
#include "tests/support/shell.h"
#include "tests/weft_run/launch.h"
#include "train/exit.h"

namespace weft::weft_run {
namespace {

/// `HOST:PORT` with a port that was free a moment ago.
std::string free_endpoint() {
  dist::Listeners listeners;
  EXPECT_EQ(dist::try_listen({"127.0.0.1", 0}, dist::resolve({"127.0.0.1", 0}), listeners), 0);
  return str(listeners.address);
}

/// A home folder for the cookie.
std::vector<std::string> home(const test::TemporaryFolder& folder) {
  return {"HOME=" + folder.path().string(), "OMP_NUM_THREADS=1"};
}

TEST(SeveralNodes, NumbersAreAgreedAtTheEndpoint) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::string endpoint = free_endpoint();
  const std::string script =
      "echo \"$RANK of $WORLD_SIZE: local $LOCAL_RANK of $LOCAL_WORLD_SIZE, group $GROUP_RANK of $GROUP_WORLD_SIZE, "
      "$MASTER_ADDR:$MASTER_PORT $WEFT_JOB_SECRET\"";
  const auto flags = [&](const char* ranks) {
    return line(
        {"--nnodes=3", "--nproc_per_node", ranks, "--rdzv_backend=c10d", "--rdzv_endpoint", endpoint, "--rdzv_id=7"},
        script);
  };
  Child a(flags("2"), home(folder)), b(flags("2"), home(folder)), c(flags("2"), home(folder));
  std::string all;
  for (Child* node : {&a, &b, &c}) {
    EXPECT_EQ(node->exit_code(), 0) << node->output();
    all += node->output();
  }
  for (int rank = 0; rank < 6; ++rank)
    EXPECT_EQ(count(all, str(rank, " of 6: local ", rank % 2, " of 2, group ", rank / 2, " of 3, 127.0.0.1:")), 1)
        << all;
  const std::string meeting = all.substr(all.find("127.0.0.1:"), all.find('\n') - all.find("127.0.0.1:"));
  EXPECT_EQ(count(all, meeting), 6) << "one port and one secret for all:\n" << all;
}

TEST(SeveralNodes, ARankThatIsStoppedWhenThoseOfTheOtherNodeHaveEndedIsLost) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::string endpoint = free_endpoint();
  const auto node = [&](const char* number) {
    std::vector<std::string> variables = home(folder);
    variables.push_back("WEFT_TIMEOUT=2");
    return std::make_unique<Child>(
        line({"--nnodes=2", "--node_rank", number, "--max_restarts=1", "--grace=1", "--rdzv_endpoint", endpoint},
             "echo round $TORCHELASTIC_RESTART_COUNT; if [ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ]; then kill -STOP "
             "$$; fi"),
        variables);
  };
  const auto zero = node("0"), one = node("1");
  for (const auto& launcher : {zero.get(), one.get()}) {
    EXPECT_EQ(launcher->exit_code(), 0);
    EXPECT_THAT(launcher->output(), HasSubstr("weft-run: rank 1 is stopped, and others have ended 2 s ago or more\n"));
    EXPECT_THAT(launcher->output(), HasSubstr("round 1\n"));
  }
}

TEST(SeveralNodes, ASignalEndsALauncherThatWaitsForTheOthers) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  for (const auto& [signal, code] : {std::pair(SIGTERM, train::kExitRequeue), std::pair(SIGINT, 128 + SIGINT)}) {
    const dist::Address endpoint = dist::parse_address("endpoint", free_endpoint());
    Child node(
        line({"--nnodes=2", "--node_rank=0", "--start_timeout=20", "--rdzv_endpoint", str(endpoint)}, "echo begin"),
        home(folder));
    EXPECT_TRUE(dist::listens(endpoint.port));  // now it waits
    node.signal(signal);
    EXPECT_EQ(node.exit_code(), code) << node.output();
    EXPECT_THAT(node.output(), HasSubstr(") before the launchers had met\n"));
    EXPECT_THAT(node.output(), Not(HasSubstr("begin\n")));
  }
}

TEST(SeveralNodes, FixedNumbersAndUnevenRanks) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::string endpoint = free_endpoint(), port = endpoint.substr(endpoint.find(':') + 1);
  const auto flags = [&](const char* node, const char* ranks) {
    return line({"--nnodes=2", "--node_rank", node, "--nproc_per_node", ranks, "--master_addr=127.0.0.1",
                 "--master_port", port},
                "echo \"$RANK/$WORLD_SIZE in $GROUP_RANK at $MASTER_ADDR:$MASTER_PORT\"");
  };
  Child one(flags("1", "1"), home(folder)), zero(flags("0", "3"), home(folder));
  EXPECT_EQ(one.exit_code(), 0) << one.output();
  EXPECT_EQ(zero.exit_code(), 0) << zero.output();
  EXPECT_THAT(one.output(), HasSubstr("3/4 in 1 at " + endpoint));
  for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(zero.output(), HasSubstr(str(rank, "/4 in 0 at ", endpoint)));
}

TEST(SeveralNodes, FailureOnOneNodeEndsAndRestartsAll) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::vector<std::string> command =
      line({"--nnodes=2", "--nproc_per_node=1", "--max_restarts=1", "--rdzv_endpoint", free_endpoint()},
           "echo begin $RANK.$TORCHELASTIC_RESTART_COUNT; [ $RANK = 1 ] && exit 9; sleep 600");
  Child a(command, home(folder)), b(command, home(folder));
  EXPECT_EQ(a.exit_code(), 9) << a.output();
  EXPECT_EQ(b.exit_code(), 9) << b.output();
  EXPECT_EQ(count(a.output() + b.output(), "begin 1."), 2);
  for (const Child* node : {&a, &b})
    EXPECT_EQ(count(node->output(), "weft-run: rank 1 ended with exit code 9\n"), 2) << node->output();
}

TEST(SeveralNodes, NodeThatEndedWellWaitsForTheOthers) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::vector<std::string> command =
      line({"--nnodes=2", "--max_restarts=1", "--rdzv_endpoint", free_endpoint()},
           "echo begin $RANK.$TORCHELASTIC_RESTART_COUNT; if [ $RANK = 0 ]; then touch $HOME/ended; exit 0; fi; "
           "until [ -e $HOME/ended ]; do sleep 0.02; done; exit $((1 - TORCHELASTIC_RESTART_COUNT))");
  Child a(command, home(folder)), b(command, home(folder));
  EXPECT_EQ(a.exit_code(), 0) << a.output();
  EXPECT_EQ(b.exit_code(), 0) << b.output();
  EXPECT_EQ(count(a.output() + b.output(), "begin "), 4);
}

TEST(SeveralNodes, KilledLauncherEndsTheJob) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::vector<std::string> command = line({"--nnodes=2", "--max_restarts=3", "--rdzv_endpoint", free_endpoint()},
                                                "echo \"group $GROUP_RANK.\"; sleep 600");
  Child a(command, home(folder)), b(command, home(folder));
  ASSERT_TRUE(a.prints("group "));
  ASSERT_TRUE(b.prints("group "));
  Child& first = a.output().find("group 0.") != std::string::npos ? a : b;
  Child& second = &first == &a ? b : a;
  const pid_t killed = second.process();
  second.signal(SIGKILL);
  EXPECT_EQ(first.exit_code(), 1) << first.output();
  EXPECT_THAT(first.output(),
              HasSubstr(str("weft-run: the launcher of a node has ended: node 1 (process ", killed, " on ")));
}

TEST(SeveralNodes, MissingNodeIsNamedInTime) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder folder;
  const std::string endpoint = free_endpoint();
  Child first(line({"--nnodes=3", "--start_timeout=4", "--rdzv_endpoint", endpoint}, "true"), home(folder));
  EXPECT_EQ(first.exit_code(), 1);
  EXPECT_THAT(first.output(), HasSubstr("weft-run: error: not all nodes have come to " + endpoint +
                                        ": membership: 2 of 3 ranks did not join within 4 s: missing ranks 1 to 2"));
  Child second(line({"--nnodes=2", "--node_rank=1", "--start_timeout=4", "--master_addr=127.0.0.1",
                     "--master_port=" + endpoint.substr(10)},
                    "true"),
               home(folder));
  EXPECT_EQ(second.exit_code(), 1);
  EXPECT_THAT(second.output(), HasSubstr("weft-run: error: store: node 1 on "));
  EXPECT_THAT(second.output(), HasSubstr("has not found its job at " + endpoint + " within 4 s"));
}

TEST(SeveralNodes, OtherCookieIsAnotherJob) {
  WEFT_NEEDS_CRYPTO();
  const test::TemporaryFolder mine, theirs;
  const std::string endpoint = free_endpoint();
  const auto flags = [&](const char* node, const char* timeout) {
    return line({"--nnodes=2", "--node_rank", node, "--start_timeout", timeout, "--master_addr=127.0.0.1",
                 "--master_port=" + endpoint.substr(10)},
                "true");
  };
  Child zero(flags("0", "10"), home(mine));
  EXPECT_TRUE(dist::listens(dist::parse_address("endpoint", endpoint).port));
  Child one(flags("1", "3"), home(theirs));
  EXPECT_EQ(one.exit_code(), 1);
  EXPECT_THAT(one.output(), HasSubstr("has another secret"));
  EXPECT_EQ(zero.exit_code(), 1);
  EXPECT_THAT(zero.output(), HasSubstr("missing rank 1"));
}

/// Two network namespaces with a cable between them, which go with the object.
class TwoHosts {
 public:
  TwoHosts() {
    const std::string a = name("a"), b = name("b");
    const tests::Outcome outcome = tests::shell(
        str("ip netns add ", a, " && ip netns add ", b, " && ip link add ", a, " netns ", a, " type veth peer name ", b,
            " netns ", b, " && ip -n ", a, " addr add 10.231.7.1/24 dev ", a, " && ip -n ", b,
            " addr add 10.231.7.2/24 dev ", b, " && ip -n ", a, " link set ", a, " up && ip -n ", b, " link set ", b,
            " up && ip -n ", a, " link set lo up && ip -n ", b, " link set lo up"));
    error = outcome.exit_code == 0 ? "" : outcome.output;
  }
  ~TwoHosts() { tests::shell("ip netns del " + name("a") + "; ip netns del " + name("b")); }
  static std::string name(const std::string& host) { return str("weft", ::getpid(), host); }

  std::string error;
};

TEST(SeveralNodes, TwoNetworkNamespaces) {
  WEFT_NEEDS_CRYPTO();
  const TwoHosts hosts;
  if (!hosts.error.empty()) GTEST_SKIP() << "NOT TESTED: two hosts need root and `ip netns`: " << hosts.error;
  const test::TemporaryFolder folder;
  const auto flags = [&](const char* host) {
    std::vector<std::string> command = line({"--nnodes=2", "--nproc_per_node=2", "--rdzv_endpoint=10.231.7.2:29500"},
                                            "echo \"$RANK in $GROUP_RANK at $MASTER_ADDR\"");
    command.insert(command.begin(), {"ip", "netns", "exec", TwoHosts::name(host)});
    return command;
  };
  Child a(flags("a"), home(folder)), b(flags("b"), home(folder));
  EXPECT_EQ(a.exit_code(), 0) << a.output();
  EXPECT_EQ(b.exit_code(), 0) << b.output();
  // The host of the endpoint owns the store, so it is node 0.
  EXPECT_THAT(b.output(), HasSubstr("0 in 0 at 10.231.7.2"));
  EXPECT_THAT(b.output(), HasSubstr("1 in 0 at 10.231.7.2"));
  EXPECT_THAT(a.output(), HasSubstr("3 in 1 at 10.231.7.2"));

#if WEFT_HAVE_GLOO
  const auto program = [&](const char* host) {
    return std::vector<std::string>{"ip",
                                    "netns",
                                    "exec",
                                    TwoHosts::name(host),
                                    WEFT_RUN,
                                    "--nnodes=2",
                                    "--nproc_per_node=2",
                                    "--rdzv_endpoint=10.231.7.1:29500",
                                    INIT_PROGRAM,
                                    "sum"};
  };
  Child c(program("a"), home(folder)), d(program("b"), home(folder));
  EXPECT_EQ(c.exit_code(60), 0) << c.output();
  EXPECT_EQ(d.exit_code(60), 0) << d.output();
  for (int number = 0; number < 4; ++number)
    EXPECT_THAT((number < 2 ? c : d).output(), HasSubstr(str("rank ", number, " of 4, local ", number % 2,
                                                             " of 2, RANK and WORLD_SIZE, gloo, sum 10")));
#endif
}

}  // namespace
}  // namespace weft::weft_run
