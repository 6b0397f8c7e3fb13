// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/node_list.h"

#include <charconv>
#include <cstdint>

#include "core/printable.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

constexpr size_t kMaxHosts = 65'536, kMaxText = 1 << 20;

struct Parser {
  std::string_view list;

  [[noreturn]] void refuse(std::string_view why) const {
    fail("node list: expected names such as jwb[0021-0024,0030], got '", printable(list.substr(0, 200)), "': ", why);
  }

  /// At most 18 digits, so that the value fits.
  uint64_t number(std::string_view digits) const {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || digits.size() > 18 || error != std::errc{} || end != digits.data() + digits.size())
      refuse(str("'", printable(digits.substr(0, 40)), "' is no number"));
    return value;
  }

  /// Appends the numbers of `0021-0024,0030`. A range has the width of its first number.
  void expand_bracket(std::string_view inside, std::vector<std::string>& pieces) const {
    while (true) {
      const size_t comma = inside.find(',');
      const std::string_view part = inside.substr(0, comma);
      const size_t dash = part.find('-');
      const std::string_view low = part.substr(0, dash);
      const uint64_t first = number(low);
      const uint64_t last = dash == part.npos ? first : number(part.substr(dash + 1));
      if (last < first) refuse(str("the range ", part, " runs backwards"));
      if (last - first >= kMaxHosts - pieces.size()) refuse(str("more than ", kMaxHosts, " hosts"));
      for (uint64_t value = first; value <= last; ++value) {
        std::string digits = std::to_string(value);
        if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
        pieces.push_back(std::move(digits));
      }
      if (comma == inside.npos) return;
      inside.remove_prefix(comma + 1);
    }
  }

  /// `rack[1-2]n[01-04]` becomes its eight names.
  std::vector<std::string> expand_name(std::string_view name) const {
    std::vector<std::string> hosts{""};
    while (!name.empty()) {
      std::vector<std::string> pieces;
      if (name.front() == '[') {
        const size_t close = name.find(']');
        if (close == name.npos) refuse("a bracket is not closed");
        expand_bracket(name.substr(1, close - 1), pieces);
        name.remove_prefix(close + 1);
      } else {
        const size_t open = std::min(name.find('['), name.size());
        pieces.emplace_back(name.substr(0, open));
        for (const char c : pieces.back())
          if (c <= ' ' || c > '~' || c == ']') refuse(str("'", printable(std::string(1, c)), "' in a name"));
        name.remove_prefix(open);
      }
      if (hosts.size() * pieces.size() > kMaxHosts) refuse(str("more than ", kMaxHosts, " hosts"));
      std::vector<std::string> longer;
      longer.reserve(hosts.size() * pieces.size());
      for (const std::string& host : hosts)
        for (const std::string& piece : pieces) longer.push_back(host + piece);
      hosts = std::move(longer);
    }
    return hosts;
  }
};

}  // namespace

std::vector<std::string> parse_node_list(std::string_view list) {
  const Parser parser{list};
  if (list.empty()) parser.refuse("it is empty");
  if (list.size() > kMaxText) parser.refuse("it is longer than 1 MiB");
  std::vector<std::string> hosts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[' && ++depth > 1) parser.refuse("a bracket in a bracket");
    if (i < list.size() && list[i] == ']' && --depth < 0) parser.refuse("a bracket is not opened");
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    const std::string_view name = list.substr(begin, i - begin);
    if (name.empty()) parser.refuse("a name is empty");
    for (std::string& host : parser.expand_name(name)) hosts.push_back(std::move(host));
    if (hosts.size() > kMaxHosts) parser.refuse(str("more than ", kMaxHosts, " hosts"));
    begin = i + 1;
  }
  return hosts;
}

std::string fast_network_name(const std::string& host, const std::string& system) {
  if (system != "juwels" && system != "juwelsbooster" && system != "jureca") return host;
  std::string name = host;
  return name.insert(std::min(name.find('.'), name.size()), "i");
}

}  // namespace weft::dist
