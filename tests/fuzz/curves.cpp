// SPDX-License-Identifier: Apache-2.0
// The readers of weft-watch and weft-sweep on a foreign run folder. Input: length of metrics.jsonl, that file, which is
// read in two pieces, as it grows; length of the run's config, that file; a switch: the event file is unchanged, or
// records that get checksums. The curves are drawn as text and as a page.
#include "apps/support/run_reader.h"
#include "apps/weft_watch/html_page.h"
#include "apps/weft_watch/terminal_chart.h"
#include "tests/fuzz/fuzz.h"
#include "train/record/event_file.h"

using namespace weft;
using namespace weft::weft_watch;

namespace {

std::vector<uint8_t> records(fuzz::Input& input) {
  std::vector<uint8_t> file;
  while (!input.empty()) {
    const std::vector<uint8_t> bytes = input.take(input.word());
    const std::string record = train::event_record({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    file.insert(file.end(), record.begin(), record.end());
  }
  return file;
}

void draw(const Options& options, Comparison& comparison, const std::string& run) {
  comparison.refresh();
  const std::vector<Chart> charts = comparison.charts();
  const SummaryTable table(comparison.runs(), charts);
  const Style style{.width = 80, .height = 6};
  for (const Chart& chart : charts)
    for (const std::string& line : draw_chart(chart, options.x, options.log, style)) fuzz::expect_one_line(line);
  for (const std::string& line : text_of(table, style)) fuzz::expect_one_line(line);
  for (const std::string& note : comparison.notes()) fuzz::expect_one_line(note);
  const std::string page = html_page(comparison.runs(), charts, table, comparison.notes(), options, 0);
  if (page.find("<script") != std::string::npos || page.find(" onload") != std::string::npos) std::abort();
  static_cast<void>(support::read_run_config(run));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  const std::vector<uint8_t> metrics = input.take(input.word());
  const uint8_t what = input.byte();
  folder.remove("config.yaml");
  folder.write(what & 1 ? "config.yaml" : "config.toml", input.take(input.word()));
  folder.write("events.out.tfevents.1", what & 2 ? input.rest() : records(input));
  folder.write("metrics.jsonl", {metrics.begin(), metrics.begin() + static_cast<ptrdiff_t>(metrics.size() / 2)});
  const std::string run = folder.path().string();
  Options options;
  options.runs = {run};
  options.metrics = "all";
  options.x = what & 4 ? "time" : what & 8 ? "epoch" : "step";
  options.smooth = what & 16 ? 0.9 : 0;
  options.log = (what & 32) != 0;
  options.follow = true;
  fuzz::expect_value_or_error([&] {
    Comparison comparison(options);
    draw(options, comparison, run);
    folder.write("metrics.jsonl", metrics);
    draw(options, comparison, run);
  });
  return 0;
}
