// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "train/exit.h"

namespace weft::support {

/// The permitted range of a number; both ends are allowed unless `above` excludes the lower one.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above = false;  ///< greater than min, not equal
};

/// Whether a program has the flag `--config FILE.toml`; without it `config` is a name as any other.
enum class ConfigFlag { toml, none };

/// A program's flags: from the command line, from `--config FILE.toml`, or their defaults, in this order of precedence.
///   Flags flags("train", "Trains a model.");
///   flags.add("lr", options.lr, "learning rate", {.min = 0});
///   flags.add_choice("optimizer", options.optimizer, {"sgd", "adamw"}, "how weights are updated");
///   flags.example("train --lr 0.1 --optimizer adamw");
///   if (!flags.parse(argc, argv)) return train::kExitOk;        // --help was asked for and printed
/// All errors are UsageErrors; an unknown flag, key or choice suggests the nearest. Flags read `--batch-size 64` or
/// `--batch_size=64`, TOML keys `batch-size = 64` or `batch_size = 64`; the last of several wins.
class Flags {
 public:
  Flags(std::string program, std::string purpose, ConfigFlag config = ConfigFlag::toml);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  /// Each `add` binds a flag to a variable whose present value is the default. The variable must outlive the Flags.
  void add(const std::string& name, int64_t& variable, const std::string& help, Range range = {});
  void add(const std::string& name, int& variable, const std::string& help, Range range = {});
  void add(const std::string& name, double& variable, const std::string& help, Range range = {});
  /// `~/` at the beginning, or behind a data set's kind (`folder:~/x`), becomes the home folder.
  void add(const std::string& name, std::string& variable, const std::string& help);
  /// A text that is no path: nothing becomes the home folder.
  void add_text(const std::string& name, std::string& variable, const std::string& help);
  /// A text each time that the flag occurs, in their order; in TOML a list.
  void add_texts(const std::string& name, std::vector<std::string>& variable, const std::string& help);
  /// `--name`, `--name=false`; in TOML true or false.
  void add(const std::string& name, bool& variable, const std::string& help);
  /// `--mean 0.49,0.48,0.45`; `count` numbers (0: any count). An empty list may be the default, never a value.
  void add(const std::string& name, std::vector<double>& variable, size_t count, const std::string& help);
  /// One word of a list.
  void add_choice(const std::string& name, std::string& variable, const std::vector<std::string>& choices,
                  const std::string& help);
  /// `--device`, as weft::choose_device() and dist::init() read it. For `emulated[:GPU]` parse() starts the program
  /// again under weft-emulate, before it has done anything else.
  void add_device(std::string& variable);
  /// A number without a flag, which must be given: `single_gpu 50 10`. They come in the order of their registration,
  /// between flags or after them.
  void add_positional(const std::string& name, int64_t& variable, const std::string& help, Range range = {});

  /// `--help` lists the flags that follow under this heading.
  void group(const std::string& name);
  /// A command line that `--help` shows below the flags; several in the order of the calls.
  void example(const std::string& line);
  /// Sets the usage line's text for arguments that the program takes out by itself: `RUN…`.
  void arguments(const std::string& shown);

  /// Reads the flags; false when `--help` was asked for, which has then been printed on stdout: purpose, usage, each
  /// flag with its default in brackets, examples; or `--version`.
  bool parse(int argc, const char* const* argv);
  /// As above, without the program's name in front.
  bool parse(const std::vector<std::string>& arguments);

  /// Whether the command line or the configuration file has set this flag.
  bool given(const std::string& name) const;

  /// The values in effect as a TOML file, which `--config` reads back to the same values; without `overwrite`, which is
  /// meant for a single run.
  std::string toml() const;

 private:
  struct Flag;
  struct Parser;
  Flag& make(const std::string& name);
  void set_integer(Flag& flag, const std::string& shown, int64_t& variable, Range range);
  std::vector<std::string> spelled_out(const std::vector<std::string>& arguments) const;
  void read_config(const std::filesystem::path& path);

  std::string program_;
  bool has_config_;
  std::vector<std::unique_ptr<Flag>> flags_;
  std::unique_ptr<Parser> parser_;
  std::string config_;
  const std::string* device_ = nullptr;
};

/// `0.1.0`, and what `PROGRAM --version` prints: `PROGRAM of Weft 0.1.0`.
std::string version();
std::string version_line(const std::string& program);

/// Errors unless the value is in the range; `text` is how the user wrote it: `--lr: expected a value at least 0, got
/// -1`.
void check_range(std::string_view flag, double value, const std::string& text, Range range);
/// Reads a number. Errors name the flag: `--lr: expected a number, got 'fast'`.
double parse_number(std::string_view flag, const std::string& text);
int64_t parse_integer(std::string_view flag, const std::string& text);
/// `true false yes no on off 1 0`.
bool parse_switch(std::string_view flag, const std::string& text);
/// `R,G,B`: numbers between commas; `count` of them (0: at least one).
std::vector<double> parse_list(std::string_view flag, const std::string& text, size_t count);

}  // namespace weft::support
