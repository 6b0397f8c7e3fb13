// SPDX-License-Identifier: Apache-2.0
#include "dist/group/step_times.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "core/text.h"
#include "dist/rendezvous/socket.h"

namespace weft::dist {

void StepTimes::step() {
  if (every_ == 0 || world_.size() == 1) return;
  const auto now = std::chrono::steady_clock::now();
  if (++steps_ % every_ != 0 && steps_ > 1) return;
  const double seconds = std::chrono::duration<double>(now - since_).count();
  const double waited = world_.group()->seconds_in_collectives();
  if (steps_ % every_ == 0 && steps_ > 1) {
    const int64_t first = std::max<int64_t>(steps_ - every_, 1) + 1, count = steps_ - first + 1;  // the first warms up
    const double own = (seconds - (waited - in_collectives_)) / static_cast<double>(count);
    std::vector<double> all;
    std::vector<std::string> hosts;
    for (const std::string& text : world_.texts(str(own, ' ', host_name()), "step times")) {
      std::istringstream words(text);
      words >> all.emplace_back() >> hosts.emplace_back();
    }
    if (world_.is_first())
      std::fputs(
          ("weft: " + describe_step_times(first, steps_, seconds / static_cast<double>(count), all, hosts) + '\n')
              .c_str(),
          stderr);
  }
  since_ = std::chrono::steady_clock::now();
  in_collectives_ = world_.group()->seconds_in_collectives();
}

std::string describe_step_times(int64_t first, int64_t last, double seconds, const std::vector<double>& own,
                                const std::vector<std::string>& hosts) {
  const auto ms = [](double s) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g ms", 1e3 * s);
    return std::string(text);
  };
  std::vector<double> sorted = own;
  std::ranges::sort(sorted);
  const auto slowest = static_cast<size_t>(std::ranges::max_element(own) - own.begin());
  return str("steps ", first, " to ", last, ": ", ms(seconds), " each, ", ms(sorted.front()), " to ", ms(sorted.back()),
             " of it outside of collectives; slowest: rank ", slowest, " on ", printable(hosts[slowest]), " with ",
             ms(own[slowest]), ", the median rank has ", ms(sorted[(sorted.size() - 1) / 2]));
}

}  // namespace weft::dist
