// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_watch/options.h"

#include <set>

#include "apps/support/flags.h"

namespace weft::weft_watch {
namespace {

constexpr const char* kPurpose =
    R"(Draws the curves of training runs in the terminal, several runs in one chart.

RUN is a run's folder (what a program got as --out), a metrics.jsonl, a TensorBoard event file, a table (.csv, with
names in its first line), Hugging Face's trainer_state.json, or a folder that holds several runs, such as that of a
sweep. NAME=RUN gives it a name of its own.
)";

/// Runs, and flags with their values.
void split(const std::vector<std::string>& arguments, std::vector<std::string>& runs, std::vector<std::string>& flags) {
  static const std::set<std::string> switches{"--log", "--follow", "--list", "--help", "-h", "--version"};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("-")) {
      runs.push_back(word);
      continue;
    }
    flags.push_back(word);
    if (!switches.contains(word) && word.find('=') == std::string::npos && i + 1 < arguments.size())
      flags.push_back(arguments[++i]);
  }
}

}  // namespace

std::optional<Options> parse_options(const std::vector<std::string>& arguments) {
  Options o;
  std::vector<std::string> given;
  split(arguments, o.runs, given);
  support::Flags flags("weft-watch", kPurpose);
  flags.add("metrics", o.metrics,
            "comma-separated curves: a name (val_loss is loss/val, too), a part of a name, or accuracy, throughput for "
            "all curves of that kind; all: every curve. The page has every curve unless this is given");
  flags.add_choice("x", o.x, {"step", "epoch", "time"}, "the x axis; time counts from each run's start");
  flags.add("smooth", o.smooth, "weight of earlier points in a moving mean of the curve; 0: no smoothing", {0, 0.999});
  flags.add("log", o.log, "logarithmic y axis; values that are not positive are left out");
  flags.add("html", o.html, "write a page to this file; it loads nothing else and runs no script");
  flags.add("follow", o.follow, "redraw until all runs have ended or Ctrl-C");
  flags.add("interval", o.interval, "with --follow: seconds between redraws", {0.05, 3600});
  flags.add("width", o.width, "columns; 0: the terminal's", {0, 1000});
  flags.add("height", o.height, "rows of a chart", {3, 200});
  flags.add_choice("color", o.color, {"auto", "always", "never"}, "auto: on a terminal, unless NO_COLOR is set");
  flags.add_choice("symbols", o.symbols, {"auto", "braille", "ascii"}, "auto: braille where the locale is UTF-8");
  flags.add("list", o.list, "list the curves, draw nothing");
  flags.arguments("RUN…");
  flags.example("weft-watch runs/a runs/b --follow            # while they go on");
  flags.example("weft-watch runs/* --html compare.html        # one page to look at in a browser, with all curves");
  flags.example("weft-watch sweep --metrics val_loss,grad --x epoch --smooth 0.6");
  if (!flags.parse(given)) return std::nullopt;
  if (o.runs.empty()) throw train::UsageError("expected at least one RUN, the folder of a run");
  if (!o.html.empty() && !flags.given("metrics")) o.metrics = "all";
  return o;
}

}  // namespace weft::weft_watch
