// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_watch/html_page.h"

#include <fmt/format.h>

#include <array>

#include "apps/support/html_chart.h"
#include "kernels/error.h"

namespace weft::weft_watch {
namespace {

using support::html_text;

// Ten common hues on white and on black, distinct and dark or light enough to read.
constexpr std::array<const char*, 10> kLight{"#0b62c4", "#d9600a", "#1a8a3f", "#c4262e", "#7a3fc2",
                                             "#8a5a2b", "#cc3f9a", "#5f6b76", "#8a8a00", "#0090a8"};
constexpr std::array<const char*, 10> kDark{"#5aa9ff", "#ff9a4d", "#54c878", "#ff6b6b", "#b98cff",
                                            "#c99a6b", "#ff8ad0", "#a9b4bf", "#c9c93f", "#3fd0e6"};
constexpr std::array<const char*, 4> kDashes{"none", "7 4", "2 4", "9 3 2 3"};  // one for each ten runs

std::string css(size_t runs) {
  std::string out, dark;
  for (size_t i = 0; i < runs; ++i) {
    out += fmt::format(".run{} {{ color: {}; }}\n", i, kLight[i % kLight.size()]);
    dark += fmt::format(".run{} {{ color: {}; }}\n", i, kDark[i % kDark.size()]);
    const char* dashes = kDashes[i / kLight.size() % kDashes.size()];
    if (i >= kLight.size()) out += fmt::format("svg .run{} .line {{ stroke-dasharray: {}; }}\n", i, dashes);
    out += fmt::format(
        "#show{}:not(:checked) ~ main .run{}, #show{}:not(:checked) ~ .scroll .row{} {{ display: none; }}\n", i, i, i,
        i);
  }
  return out + "@media (prefers-color-scheme: dark) {\n" + dark + "}\n";
}

std::string box(const std::string& id, bool checked, const std::string& label) {
  return fmt::format("<input type=checkbox id={}{}><label for={}>{}</label>\n", id, checked ? " checked" : "", id,
                     label);
}

std::string html_table(const SummaryTable& table) {
  std::string out = "<div class=scroll><table>\n<tr><th>run<th>state";
  for (const std::string& key : table.settings) out += "<th>" + html_text(key);
  for (const std::string& name : table.metrics) out += "<th>" + html_text(name);
  out += "\n";
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const SummaryTable::Row& row = table.rows[i];
    out += fmt::format("<tr class=row{}><td><span class=run{}>\u25CF</span> {}<td>{}", i, i, html_text(row.run),
                       html_text(row.state));
    for (const std::string& value : row.settings) out += "<td>" + html_text(value);
    for (const SummaryTable::Number& n : row.numbers)
      out +=
          n.last.empty() ? "<td>\u2013" : "<td>" + n.last + " <small>best " + n.best + " at " + n.best_at + "</small>";
    out += "\n";
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string html_page(const std::vector<Run>& runs, const std::vector<Chart>& charts, const SummaryTable& table,
                      const std::vector<std::string>& notes, const Options& options, double again) {
  const std::string title = runs.size() == 1 ? runs[0].name : str(runs.size(), " runs");
  std::string out = support::html_head(title, css(runs.size()), again);
  for (size_t i = 0; i < runs.size(); ++i)
    out += box(fmt::format("show{}", i), true, fmt::format("<b class=run{}></b>{}", i, html_text(runs[i].name)));
  out += "<br>\n" + box("log", options.log, "log scale");
  if (options.smooth > 0)
    out += box("raw", true, fmt::format("raw curves besides the means (smooth {})", options.smooth));
  out += "<main>\n";
  std::vector<std::string> names;
  for (const Run& run : runs) names.push_back(run.name);
  for (const Chart& chart : charts) out += support::html_figure(chart, names, options.x);
  out += "</main>\n" + html_table(table);
  for (const std::string& note : notes) out += "<p class=note>" + html_text(note) + "</p>\n";
  return out + "</html>\n";
}

}  // namespace weft::weft_watch
