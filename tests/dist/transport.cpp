// SPDX-License-Identifier: Apache-2.0
#include "dist/group/transport.h"

#include <gmock/gmock.h>

namespace weft::dist::testing {
namespace {

const std::string kHead = "gpu1:4711:4730 [0] NCCL INFO ";

std::string log_of(const std::vector<std::string>& lines) {
  std::string log;
  for (const std::string& line : lines) log += kHead + line + '\n';
  return log;
}

// Lines in the forms of NCCL 2.18 to 2.30 (init.cc, net_ib, net_socket.cc, p2p.cc, shm.cc, net.cc, plugin/net.cc).
TEST(Transport, IsReadFromNcclsLog) {
  const Transport one = read_transport(
      log_of({"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB ib0:10.0.0.1<0>", "Using network IB",
              "NVLS multicast support is not available on dev 0",
              "Pattern 4, crossNic 0, nChannels 12, bw 20.0/20.0, type NVL/PIX, sameChannels 1",
              "Pattern 1, crossNic 0, nChannels 12, bw 20.0/20.0, type SYS/PIX, sameChannels 1",
              "comm 0x55 rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 MNNVL 0",
              "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read", "Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
              "Channel 00 : 0[0] -> 2[2] via SHM/direct/direct",
              "Channel 00/0 : 7[3] -> 0[0] [receive] via NET/IB/0/GDRDMA"}));
  EXPECT_EQ(one.hosts, 2);
  EXPECT_FALSE(one.nvls);
  EXPECT_THAT(one.ways, ::testing::ElementsAre("NET/IB", "P2P/CUMEM", "SHM"));
  EXPECT_EQ(
      describe(one, "2.28.3", 8, 0),
      "NCCL 2.28.3 connects 8 ranks on 2 hosts: P2P/CUMEM over NVLink and SHM in a host, IB (mlx5_0:1/IB mlx5_1:1/IB) "
      "between hosts");
  const Transport plugin = read_transport(log_of(
      {"NET/OFI Selected provider is cxi, fabric is cxi (found 4 nics)", "Assigned NET plugin AWS Libfabric to comm",
       "Using network AWS Libfabric", "comm 0x55 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0",
       "Channel 00/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/0(0)/GDRDMA/Shared"}));
  EXPECT_EQ(describe(plugin, "2.28.3", 2, 0), "NCCL 2.28.3 connects 2 ranks on 2 hosts: AWS Libfabric between hosts");
  const Transport switches =
      read_transport(log_of({"Using network Socket", "NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)",
                             "comm 0x55 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0",
                             "Pattern 4, crossNic 0, nChannels 2, bw 10.0/10.0, type PHB/PIX, sameChannels 1",
                             "Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer/read"}));
  EXPECT_EQ(describe(switches, "2.20.5", 8, 8),
            "NCCL 2.20.5 connects 8 ranks on 1 host: P2P over PCIe, with NVLink SHARP")
      << "no network is used";
  EXPECT_EQ(describe(read_transport(""), "2.28.3", 2, 0), "") << "NCCL_DEBUG is the user's";
}

TEST(Transport, TcpBetweenHostsIsWarnedOf) {
  const Transport tcp =
      read_transport(log_of({"NET/Socket : Using [0]eth0:10.0.0.1<0> [1]ib0:10.1.0.1<0>", "Using network Socket",
                             "comm 0x55 rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 MNNVL 0",
                             "Pattern 4, crossNic 0, nChannels 2, bw 10.0/10.0, type SYS/PIX, sameChannels 1",
                             "Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct"}));
  const std::string begin =
      "NCCL 2.28.3 connects 8 ranks on 2 hosts: SHM in a host, Socket (eth0 ib0) between hosts. Warning: ";
  EXPECT_THAT(describe(tcp, "2.28.3", 8, 8), ::testing::StartsWith(begin + "all ranks use TCP between hosts"));
  EXPECT_THAT(describe(tcp, "2.28.3", 8, 3), ::testing::StartsWith(begin + "3 ranks use TCP between hosts"));
}

}  // namespace
}  // namespace weft::dist::testing
