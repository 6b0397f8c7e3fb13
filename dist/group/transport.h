// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace weft::dist {

/// How NCCL reaches other ranks from this one, as far as its log (NCCL_DEBUG=INFO) says.
struct Transport {
  int hosts = 0;                    ///< 0: it does not say
  std::string network;              ///< `IB`, `Socket`, `AWS Libfabric`; empty: it does not say
  std::string cards;                ///< its interfaces: `mlx5_0:1/IB`, `eth0`
  std::vector<std::string> ways{};  ///< to the neighbours of this rank, each once: `P2P/CUMEM`, `SHM`, `NET/IB`
  std::string link{};               ///< between GPUs of the host: `NVLink`, `NVLink-C2C`, `PCIe`; empty: no `P2P`
  bool nvls = false;                ///< switches can add (NVLink SHARP)
};

Transport read_transport(const std::string& log);

/// `NCCL 2.28.3 connects 8 ranks on 2 hosts: P2P/CUMEM over NVLink in a host, IB (mlx5_0:1/IB) between hosts`, and a
/// warning where that is TCP on `sockets` of the ranks. Empty: the log says nothing.
std::string describe(const Transport& transport, const std::string& version, int ranks, int sockets);

}  // namespace weft::dist
