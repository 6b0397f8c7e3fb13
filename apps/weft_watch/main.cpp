// SPDX-License-Identifier: Apache-2.0
// Draws the curves of runs in the terminal, or as a page; see docs/watching.md.
#include <chrono>
#include <iostream>
#include <thread>

#include "apps/weft_watch/comparison.h"
#include "apps/weft_watch/html_page.h"
#include "apps/weft_watch/summary_table.h"
#include "apps/weft_watch/terminal_chart.h"
#include "core/text.h"
#include "io/atomic_file.h"
#include "train/exit.h"

namespace weft::weft_watch {
namespace {

constexpr int kNarrowestChart = 60, kBetween = 2;  // columns; wider terminals get charts side by side

/// Charts, side by side if the width allows, and the table.
std::string terminal_page(const Comparison& comparison, const std::vector<Chart>& charts, const Options& options) {
  const Style whole = terminal_style(options, comparison.runs().size());
  const int fitting = std::max(1, (whole.width + kBetween) / (kNarrowestChart + kBetween));
  const size_t beside = std::clamp<size_t>(charts.size(), 1, static_cast<size_t>(fitting));
  Style style = whole;
  style.width = (whole.width + kBetween) / static_cast<int>(beside) - kBetween;
  std::string out;
  for (size_t begin = 0; begin < charts.size(); begin += beside) {
    std::vector<std::vector<std::string>> row;
    size_t lines = 0;
    for (size_t i = begin; i < std::min(begin + beside, charts.size()); ++i) {
      row.push_back(draw_chart(charts[i], options.x, options.log, style));
      lines = std::max(lines, row.back().size());
    }
    for (size_t line = 0; line < lines; ++line) {
      for (size_t i = 0; i < row.size(); ++i)
        out += (i ? std::string(kBetween, ' ') : "") +
               (line < row[i].size() ? row[i][line] : std::string(static_cast<size_t>(style.width), ' '));
      out += '\n';
    }
    out += '\n';
  }
  for (const std::string& line : text_of(SummaryTable(comparison.runs(), charts), whole)) out += line + '\n';
  for (const std::string& note : comparison.notes()) out += "note: " + note + '\n';
  return out;
}

/// Draws over the previous frame: clears the rest of each line and everything below the last one.
void print(const std::string& page, bool again) {
  if (!again || !is_terminal()) {
    std::cout << page << std::flush;
    return;
  }
  std::string out = "\033[H";
  for (const char c : page) out += c == '\n' ? "\033[K\n" : std::string(1, c);
  std::cout << out << "\033[J" << std::flush;
}

void list(const Comparison& comparison) {
  for (const std::string& name : comparison.names()) {
    size_t runs = 0, points = 0;
    for (const Run& run : comparison.runs())
      if (const support::Curve* curve = run.reader->find(name)) ++runs, points += curve->points.size();
    std::cout << printable(name) << "  " << points << (points == 1 ? " point in " : " points in ") << runs
              << (runs == 1 ? " run\n" : " runs\n");
  }
  for (const std::string& note : comparison.notes()) std::cerr << "note: " << note << '\n';
}

int run(const Options& options) {
  Comparison comparison(options);
  comparison.refresh();
  if (options.list) {
    list(comparison);
    return train::kExitOk;
  }
  if (options.follow && is_terminal() && options.html.empty()) std::cout << "\033[2J";
  while (true) {
    const bool last = !options.follow || comparison.all_ended();
    const std::vector<Chart> charts = comparison.charts();
    if (options.html.empty()) {
      print(terminal_page(comparison, charts, options), options.follow);
    } else {
      const SummaryTable table(comparison.runs(), charts);
      write_atomically(
          options.html,
          html_page(comparison.runs(), charts, table, comparison.notes(), options, last ? 0 : options.interval),
          "page");
      std::cout << "wrote " << options.html << ": " << comparison.runs().size() << " runs, " << charts.size()
                << " charts" << std::endl;
    }
    if (last) return train::kExitOk;
    do std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
    while (!comparison.refresh());
  }
}

}  // namespace
}  // namespace weft::weft_watch

int main(int argc, char** argv) {
  using namespace weft::weft_watch;
  return weft::train::guarded_main("weft-watch", [&] {
    const auto options = parse_options({argv + 1, argv + argc});
    return options ? run(*options) : weft::train::kExitOk;
  });
}
