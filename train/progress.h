// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace weft::train {

/// The content of a progress line.
struct ProgressState {
  std::string label;  ///< `epoch 3/20`
  int64_t step = 0, steps = 0;
  int64_t first_step = 0;                ///< steps made before the clock started (a resumed epoch)
  std::optional<double> loss, accuracy;  ///< means since then; accuracy is a share; left out when unknown
  double images_per_second = 0;
  double data_wait = -1;        ///< share of the time spent waiting for data; -1: not known
  double elapsed = 0;           ///< seconds since the epoch began
  std::string unit = "images";  ///< unit of the counts: `texts`, `tensors`
};

namespace detail {
/// One line of at most `width` characters with a bar of eighth blocks, for a terminal that reads UTF-8. When the width
/// is short, the bar shrinks first, then the last items go.
std::string bar_line(const ProgressState& state, int width);
/// The state as plain ASCII text, for a log file.
std::string plain_line(const ProgressState& state);
}  // namespace detail

/// `0:09`, `12:34`, `1:02:03`.
std::string clock_text(double seconds);

struct ProgressOptions {
  std::FILE* out = nullptr;                ///< stderr when null
  int width = 0;                           ///< columns; 0: ask the terminal, each time
  int terminal = -1;                       ///< 1 a bar, 0 plain lines, -1 whatever `out` is
  std::string unit = "images";             ///< unit of a step's counts
  bool quiet = false;                      ///< nothing is shown: of all ranks but the first
  double bar_interval = 0.1;               ///< seconds between two bars
  double plain_interval = 10.0;            ///< seconds between two plain lines
  int rank = 0;                            ///< whose lines they are
  std::function<double()> clock = {};      ///< seconds; the steady clock when empty
  std::function<std::string()> date = {};  ///< date on a plain line; `2026-11-25 03:08:07`, local time, when empty
};

/// Shows how an epoch goes on: a bar that is drawn over itself on a terminal; in a log file one plain line an interval,
/// with date and rank.
///   progress.begin("epoch 3/20", steps);
///   for (…) progress.step({.images = 128, .loss = loss, .correct = correct, .waited = seconds});
///   progress.end("val loss 0.41 accuracy 88.1%");
class Progress {
 public:
  explicit Progress(ProgressOptions options = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  struct Step {
    int64_t images = 0;
    std::optional<double> loss = {};  ///< mean over the images; none: not known
    double correct = -1;              ///< how many of the images were right; -1: not known
    double waited = -1;               ///< seconds spent waiting for data; -1: not known
    int64_t steps = 1;                ///< that all of this is of: a GPU's losses are read every few steps
  };

  /// `done` steps were made before (a resumed epoch).
  void begin(std::string label, int64_t steps, int64_t done = 0);
  void step(const Step& step);
  /// The epoch's last line, with `more` after it; it stays on the terminal. A log gets the line if `more` is not empty,
  /// or the interval is over.
  void end(const std::string& more = "");
  /// Ends without a last line; a bar goes from the terminal.
  void drop();
  /// A line of text that does not tear the bar apart.
  void note(const std::string& text);
  /// Takes the bar off the terminal before something else writes a line to it; the next step draws it again.
  void make_way();

  /// The state as it stands: means over the epoch so far, for metrics and summaries.
  ProgressState state() const;
  int64_t images() const { return images_; }

 private:
  void show(const std::string& more);
  std::string stamp() const;
  void clear_bar();
  int width() const;

  ProgressOptions options_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere_{nullptr, std::fclose};
  bool terminal_ = false, open_ = false, drawn_ = false;
  std::string label_;
  int64_t step_ = 0, steps_ = 0, first_step_ = 0, images_ = 0;
  double loss_sum_ = 0, correct_ = 0, started_ = 0, shown_ = 0;
  double waited_ = -1;  // -1: not known
  bool knows_loss_ = true, knows_accuracy_ = true;
};

}  // namespace weft::train
