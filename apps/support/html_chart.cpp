// SPDX-License-Identifier: Apache-2.0
#include "apps/support/html_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/support/axis.h"
#include "core/text.h"

namespace weft::support {
namespace {

// In the units of the view box.
constexpr double kWidth = 460, kHeight = 260, kLeft = 58, kRight = 12, kTop = 10, kBottom = 40;
constexpr int kColumns = 390;      // width of the plot; thinning keeps the extremes of each
constexpr size_t kMostDots = 120;  // points that get a dot with their numbers; a longer curve is a line alone

struct Frame {
  Axis x, y;
  double left(double value) const { return kLeft + x.share(value) * (kWidth - kLeft - kRight); }
  double top(double value) const { return kHeight - kBottom - y.share(value) * (kHeight - kTop - kBottom); }
};

bool is_drawn(const Point& p, bool log) { return !p.is_gap() && (!log || p.y > 0); }

/// The line through the points, broken at gaps. A point between two gaps is a line of no length, which round caps show.
std::string path_of(const std::vector<Point>& points, const Frame& frame, bool log) {
  std::string out;
  bool pen_down = false, alone = false;
  const auto end = [&] {
    if (alone) out += "h0";
  };
  for (const Point& p : points) {
    if (!is_drawn(p, log)) {
      end();
      pen_down = alone = false;
      continue;
    }
    out += fmt::format("{}{:.1f} {:.1f}", pen_down ? 'L' : 'M', frame.left(p.x), frame.top(p.y));
    alone = !pen_down;
    pen_down = true;
  }
  end();
  return out;
}

std::string grid(const Frame& frame, const std::string& x_name) {
  std::string out;
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  for (const Axis::Tick& tick : frame.y.ticks()) {
    const double y = frame.top(tick.value);
    out += fmt::format("<path class=grid d=\"M{} {:.1f}H{}\"/>", kLeft, y, right);
    out +=
        fmt::format("<text class=tick x=\"{}\" y=\"{:.1f}\" text-anchor=end>{}</text>\n", kLeft - 6, y + 4, tick.text);
  }
  for (const Axis::Tick& tick : frame.x.ticks()) {
    const double x = frame.left(tick.value);
    out += fmt::format("<path class=grid d=\"M{:.1f} {}V{}\"/>", x, kTop, bottom);
    out +=
        fmt::format("<text class=tick x=\"{:.1f}\" y=\"{}\" text-anchor=middle>{}</text>\n", x, bottom + 16, tick.text);
  }
  return out + fmt::format("<text class=tick x=\"{}\" y=\"{}\" text-anchor=end>{}</text>\n", right, kHeight - 4,
                           html_text(x_name));
}

/// A dot with a tooltip at each point.
std::string dots(const Trace& trace, const std::string& run, const Frame& frame, const std::string& x_name, bool log) {
  std::string out;
  if (trace.raw.size() > kMostDots) return out;
  for (const Point& p : trace.shown())
    if (is_drawn(p, log))
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\"><title>{}: {} at {} {}</title></circle>\n",
                         frame.left(p.x), frame.top(p.y), run, number_text(p.y), x_name, number_text(p.x));
  return out;
}

constexpr const char* kCss = R"(
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1c2024; --pale: #6a737d; --rule: #e3e6ea; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --ink: #e6e9ec; --pale: #98a2ad; --rule: #2b3036; } }
body { margin: 1.5rem auto; max-width: 90rem; padding: 0 1rem; background: var(--ground); color: var(--ink);
       font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.25rem; margin: 0 0 .75rem; }
label { display: inline-block; margin: 0 1.1rem .35rem .2rem; }
label b { display: inline-block; width: 1.6rem; height: 0; border-top: 3px solid; vertical-align: middle; margin-right: .35rem; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(26rem, 1fr)); gap: 1.25rem; margin-top: 1rem; }
figure { margin: 0; border: 1px solid var(--rule); border-radius: 6px; padding: .6rem .7rem .2rem; }
figcaption { font-weight: 600; }
svg { display: block; width: 100%; height: auto; }
svg path { fill: none; stroke: currentColor; stroke-linecap: round; stroke-linejoin: round; }
svg .line { stroke-width: 1.8; }
svg .raw { stroke-width: 1; opacity: .35; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .tick { fill: var(--pale); font-size: 11px; }
svg circle { fill: currentColor; }
svg circle:hover { stroke: currentColor; stroke-width: 6; }
.scroll { overflow-x: auto; margin-top: 1.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td small, .note { color: var(--pale); }
figure p { color: var(--pale); margin: 4rem 0; text-align: center; }
#log:not(:checked) ~ main .log, #log:checked ~ main .linear { display: none; }
#raw:not(:checked) ~ main .raw { display: none; }
)";

}  // namespace

std::string html_text(const std::string& text) {
  std::string out;
  // JSON's writer replaces what is not UTF-8; printable() shows control characters.
  const std::string safe = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (const char c : printable(nlohmann::json::parse(safe).get<std::string>())) switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  return out;
}

std::string svg_chart(const Chart& chart, const std::vector<std::string>& runs, const std::string& x, bool log,
                      bool log_x) {
  Extent e = extent_of(chart, log);
  if (!e.drawable) return "";
  for (const Trace& trace : chart.traces)  // the pale raw curves must fit, too
    if (!trace.smooth.empty())
      for (const Point& p : trace.raw)
        if (is_drawn(p, log)) e.y_low = std::min(e.y_low, p.y), e.y_high = std::max(e.y_high, p.y);
  const Axis::Scale scale = log_x ? Axis::Scale::log : x == "time" ? Axis::Scale::clock : Axis::Scale::linear;
  const Frame frame{Axis(e.x_low, e.x_high, scale, 6),
                    Axis(e.y_low, e.y_high, log ? Axis::Scale::log : Axis::Scale::linear, 5)};
  std::string out = fmt::format("<svg class={} viewBox=\"0 0 {} {}\" role=img aria-label=\"{}\">\n",
                                log ? "log" : "linear", kWidth, kHeight, html_text(chart.name));
  out += grid(frame, x);
  for (const Trace& trace : chart.traces) {
    const auto line = [&](const std::vector<Point>& points, const char* kind) {
      const std::string path = path_of(thinned(points, e.x_low, e.x_high, kColumns), frame, log);
      if (!path.empty()) out += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", kind, path);
    };
    out += fmt::format("<g class=run{}>\n", trace.run);
    line(trace.raw, trace.smooth.empty() ? "line" : "raw");
    if (!trace.smooth.empty()) line(trace.smooth, "line");
    out += dots(trace, html_text(runs[trace.run]), frame, html_text(x), log) + "</g>\n";
  }
  return out + "</svg>\n";
}

std::string html_figure(const Chart& chart, const std::vector<std::string>& runs, const std::string& x, bool log_x) {
  const std::string linear = svg_chart(chart, runs, x, false, log_x), log = svg_chart(chart, runs, x, true, log_x);
  const std::string none = "no numbers to draw";
  return "<figure><figcaption>" + html_text(chart.name) + "</figcaption>\n" +
         (linear.empty() ? "<p class=linear>" + none + "</p>\n" : linear) +
         (log.empty() ? "<p class=log>" + none + ": a log scale shows what is positive</p>\n" : log) + "</figure>\n";
}

std::string html_head(const std::string& title, const std::string& more, double again) {
  std::string out =
      "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width\">\n";
  if (again > 0)
    out += fmt::format("<meta http-equiv=refresh content={}>\n", std::max(1, static_cast<int>(std::lround(again))));
  return out + "<title>" + html_text(title) + "</title>\n<style>" + kCss + more + "</style>\n<h1>" + html_text(title) +
         "</h1>\n";
}

}  // namespace weft::support
