// SPDX-License-Identifier: Apache-2.0
#include "dist/group/transport.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/text.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

/// The text between `mark` and one of the characters of `end`; empty where the line lacks the mark.
std::string text_after(const std::string& line, const std::string& mark, const std::string& end = "") {
  const size_t found = line.find(mark);
  if (found == std::string::npos) return "";
  const std::string rest = line.substr(found + mark.size());
  return end.empty() ? rest : rest.substr(0, rest.find_first_of(end));
}

/// `P2P/CUMEM/read` -> `P2P/CUMEM`, `SHM/direct/direct` -> `SHM`, `NET/IB/0/GDRDMA` -> `NET/IB`.
std::string short_way(const std::string& way) {
  const size_t first = way.find('/'), second = way.find('/', first + 1);
  if (way.starts_with("SHM") || way.starts_with("P2P/direct") || way.starts_with("P2P/indirect"))
    return way.substr(0, first);
  return way.substr(0, second);
}

/// `[0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB ib0:10.0.0.1<0>` -> `mlx5_0:1/IB mlx5_1:1/IB`; `[0]eth0:10.0.0.1<0>` ->
/// `eth0`: the address is of no use in a log of many ranks.
std::string cards_of(const std::string& text) {
  std::istringstream words(text.substr(0, text.find(';')));
  std::string cards;
  for (std::string word; words >> word;) {
    const size_t number = word.find(']');
    if (!word.starts_with('[') || number + 1 >= word.size()) continue;
    word.erase(0, number + 1);
    if (word.ends_with('>')) word.erase(word.find(':'));
    cards += (cards.empty() ? "" : " ") + word;
  }
  return cards;
}

/// The link of a kind of path in NCCL's topology (topo.cc); empty: another kind.
std::string link_of(const std::string& path) {
  if (path == "NVL" || path == "NVB") return "NVLink";
  if (path == "C2C") return "NVLink-C2C";
  return path == "PIX" || path == "PXB" || path == "PHB" || path == "SYS" ? "PCIe" : "";
}

}  // namespace

Transport read_transport(const std::string& log) {
  Transport found;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (const std::string hosts = text_after(line, " nNodes ", " "); !hosts.empty())
      std::from_chars(hosts.data(), hosts.data() + hosts.size(), found.hosts);
    if (const std::string network = text_after(line, "Using network "); !network.empty()) found.network = network;
    if (const std::string network = text_after(line, "Assigned NET plugin "); !network.empty())
      found.network = network.substr(0, network.rfind(" to comm"));
    for (const char* net : {"NET/IB : Using ", "NET/Socket : Using "})
      if (const std::string cards = text_after(line, net); !cards.empty()) found.cards = cards_of(cards);
    found.nvls = found.nvls || line.find("NVLS multicast support is available") != std::string::npos;
    if (line.find("Pattern 4,") != std::string::npos) found.link = link_of(text_after(line, ", type ", "/"));  // a ring
    if (line.find("Channel ") == std::string::npos) continue;
    const std::string way = short_way(text_after(line, " via "));
    if (!way.empty() && std::ranges::find(found.ways, way) == found.ways.end()) found.ways.push_back(way);
  }
  std::ranges::sort(found.ways);
  if (std::ranges::none_of(found.ways, [](const std::string& way) { return way.starts_with("P2P"); })) found.link = "";
  return found;
}

std::string describe(const Transport& t, const std::string& version, int ranks, int sockets) {
  if (t.network.empty() && t.ways.empty()) return "";
  std::string inside;
  for (const std::string& way : t.ways)
    if (!way.starts_with("NET/"))
      inside +=
          (inside.empty() ? "" : " and ") + way + (way.starts_with("P2P") && !t.link.empty() ? " over " + t.link : "");
  const bool several = t.hosts > 1;
  const std::string network = t.network + (t.cards.empty() ? "" : " (" + t.cards + ")");
  std::string text = str("NCCL ", version, " connects ", ranks, " ranks",
                         t.hosts > 0 ? str(" on ", t.hosts, several ? " hosts" : " host") : "", ": ");
  if (!inside.empty()) text += inside + (several ? " in a host" : "") + (t.nvls ? ", with NVLink SHARP" : "");
  if (several || inside.empty()) text += (inside.empty() ? "" : ", ") + network + (several ? " between hosts" : "");
  text = printable(text);
  if (several && sockets > 0)
    text +=
        str(". Warning: ", sockets == ranks ? "all" : std::to_string(sockets), " ranks use TCP between hosts, since ",
            "NCCL found no other network there, and are several times slower than with one. Load the site's plugin of ",
            "NCCL (NVIDIA's for InfiniBand is built in; Slingshot and EFA need aws-ofi-nccl), or see NCCL_DEBUG=INFO");
  return text;
}

}  // namespace weft::dist
