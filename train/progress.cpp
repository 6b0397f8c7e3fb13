// SPDX-License-Identifier: Apache-2.0
#include "train/progress.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <vector>

namespace weft::train {
namespace {

constexpr int kWidestBar = 30, kNarrowestBar = 6;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Columns that a UTF-8 text takes: every character here is one column wide.
int columns(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// The first `width` characters.
std::string cut(const std::string& text, int width) {
  size_t end = 0;
  for (int seen = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && ++seen > width) break;
  }
  return text.substr(0, end);
}

double share_done(const ProgressState& state) {
  return state.steps > 0 ? std::clamp(static_cast<double>(state.step) / static_cast<double>(state.steps), 0.0, 1.0) : 0;
}

/// `width` columns, filled to an eighth of a column.
std::string bar(double share, int width) {
  static const std::array<const char*, 9> eighths{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
  const int filled = static_cast<int>(std::lround(share * width * 8));
  std::string out;
  for (int column = 0; column < width; ++column)
    out += eighths[static_cast<size_t>(std::clamp(filled - column * 8, 0, 8))];
  return out;
}

/// The items after the step count, the most important first.
std::vector<std::string> facts(const ProgressState& state, double done_in) {
  std::vector<std::string> out;
  if (state.loss) out.push_back(fmt::format("loss {:.4f}", *state.loss));
  if (state.accuracy) out.push_back(fmt::format("accuracy {:.1f}%", 100 * *state.accuracy));
  if (done_in >= 0) out.push_back("ETA " + clock_text(done_in));
  out.push_back(fmt::format("{:.{}f} {}/s", state.images_per_second, state.images_per_second < 10 ? 1 : 0, state.unit));
  if (state.data_wait >= 0) out.push_back(fmt::format("data wait {:.0f}%", 100 * state.data_wait));
  return out;
}

/// Seconds that the rest of the epoch will take at the speed so far; negative when there is no rest or no telling.
double seconds_left(const ProgressState& state) {
  const int64_t made = state.step - state.first_step;
  if (made <= 0 || state.step >= state.steps) return -1;
  return state.elapsed * static_cast<double>(state.steps - state.step) / static_cast<double>(made);
}

std::string join(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += "  " + item;
  return out;
}

}  // namespace

std::string clock_text(double seconds) {
  const auto s = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string detail::bar_line(const ProgressState& state, int width) {
  const std::string head = state.label + " ";
  const std::string count =
      fmt::format(" {:3.0f}% {}/{}", std::floor(100 * share_done(state)), state.step, state.steps);
  std::vector<std::string> items = facts(state, seconds_left(state));
  const auto room = [&] { return width - columns(head) - columns(count) - columns(join(items)) - 2; };
  while (room() < kNarrowestBar && !items.empty()) items.pop_back();
  const int bar_width = std::clamp(room(), 0, kWidestBar);
  const std::string drawn = bar_width >= kNarrowestBar ? "│" + bar(share_done(state), bar_width) + "│" : "";
  return cut(head + drawn + count + join(items), std::max(width, 0));
}

std::string detail::plain_line(const ProgressState& state) {
  return fmt::format("{}  step {}/{}{}  elapsed {}", state.label, state.step, state.steps,
                     join(facts(state, seconds_left(state))), clock_text(state.elapsed));
}

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {
  if (options_.quiet) {
    nowhere_.reset(std::fopen("/dev/null", "w"));
    options_.out = nowhere_.get();
  }
  if (options_.out == nullptr) options_.out = stderr;
  if (!options_.clock) options_.clock = steady_seconds;
  if (!options_.date)
    options_.date = [] { return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr))); };
  terminal_ = options_.terminal < 0 ? ::isatty(::fileno(options_.out)) == 1 : options_.terminal == 1;
}

Progress::~Progress() {
  if (drawn_) std::fputs("\n", options_.out);  // an exception: leave the bar as it stood
}

int Progress::width() const {
  if (options_.width > 0) return options_.width;
  winsize size{};
  if (::ioctl(::fileno(options_.out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return std::max<int>(size.ws_col - 1, 1);  // the last column would wrap on some terminals
}

void Progress::begin(std::string label, int64_t steps, int64_t done) {
  label_ = std::move(label);
  steps_ = steps;
  step_ = first_step_ = done;
  images_ = 0;
  loss_sum_ = correct_ = 0;
  waited_ = -1;
  knows_loss_ = knows_accuracy_ = true;
  started_ = shown_ = options_.clock();
  open_ = true;
  if (terminal_) show("");
}

void Progress::step(const Step& step) {
  step_ += step.steps;
  images_ += step.images;
  knows_loss_ = knows_loss_ && step.loss;
  loss_sum_ += step.loss.value_or(0) * static_cast<double>(step.images);
  knows_accuracy_ = knows_accuracy_ && step.correct >= 0;
  correct_ += step.correct;
  if (step.waited >= 0) waited_ = std::max(waited_, 0.0) + step.waited;
  const double interval = terminal_ ? options_.bar_interval : options_.plain_interval;
  if (options_.clock() - shown_ >= interval) show("");
}

void Progress::end(const std::string& more) {
  if (!open_) return;
  if (terminal_ || !more.empty() || options_.clock() - shown_ >= options_.plain_interval) show(more);
  if (terminal_) std::fputs("\n", options_.out);
  std::fflush(options_.out);
  drawn_ = open_ = false;
}

void Progress::drop() {
  make_way();
  open_ = false;
}

void Progress::note(const std::string& text) {
  clear_bar();
  std::fprintf(options_.out, "%s%s\n", stamp().c_str(), text.c_str());
  if (terminal_ && open_) show("");
  std::fflush(options_.out);
}

ProgressState Progress::state() const {
  ProgressState state{.label = label_,
                      .step = step_,
                      .steps = steps_,
                      .first_step = first_step_,
                      .loss = {},
                      .accuracy = {},
                      .unit = options_.unit};
  state.elapsed = options_.clock() - started_;
  if (images_ > 0) {
    if (knows_loss_) state.loss = loss_sum_ / static_cast<double>(images_);
    if (knows_accuracy_) state.accuracy = correct_ / static_cast<double>(images_);
  }
  if (waited_ >= 0) state.data_wait = state.elapsed > 0 ? std::clamp(waited_ / state.elapsed, 0.0, 1.0) : 0;
  if (state.elapsed > 0) state.images_per_second = static_cast<double>(images_) / state.elapsed;
  return state;
}

std::string Progress::stamp() const {
  return terminal_ ? "" : fmt::format("{} rank {}: ", options_.date(), options_.rank);
}

void Progress::show(const std::string& more) {
  shown_ = options_.clock();
  const ProgressState now = state();
  const std::string tail = more.empty() ? "" : "  " + more;
  if (terminal_) {
    // "\r" returns to the line's start, "\033[K" clears what a longer line left behind.
    const int room = width();
    std::fprintf(options_.out, "\r%s%s\033[K", detail::bar_line(now, std::max(room - columns(tail), room / 2)).c_str(),
                 cut(tail, room / 2).c_str());
    drawn_ = true;
  } else {
    std::fprintf(options_.out, "%s%s%s\n", stamp().c_str(), detail::plain_line(now).c_str(), tail.c_str());
  }
  std::fflush(options_.out);
}

void Progress::make_way() {
  clear_bar();
  std::fflush(options_.out);
}

void Progress::clear_bar() {
  if (!drawn_) return;
  std::fputs("\r\033[K", options_.out);
  drawn_ = false;
}

}  // namespace weft::train
