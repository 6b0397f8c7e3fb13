// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_weights/options.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iostream>
#include <set>

#include "apps/support/flags.h"
#include "core/text.h"

namespace weft::weft_weights {
namespace {

using train::UsageError;

constexpr const char* kHelp =
    R"(Shows, converts and compares files of weights.
Usage: weft-weights show|convert|diff …

  weft-weights show [flags] FILE          names, dtypes, shapes, sizes
  weft-weights convert [flags] FROM TO    writes TO: .safetensors or .pt (.pth, .th, .bin) by its name
  weft-weights diff [flags] A B           compares names, shapes and values; exit code 1 when they differ, 2 on an error

Reads safetensors, safetensors indexes (model.safetensors.index.json), PyTorch's files and Weft's checkpoints; the content
decides which. COMMAND --help lists its flags. Names can be changed on the way in, of the first file: --prefix, then --map,
then --add-prefix, then --leave-out.

Examples:
  weft-weights show dinov2_vits14_pretrain.pth
  weft-weights convert --dtype bf16 bert-base-uncased/pytorch_model.bin model.safetensors
  weft-weights diff a.safetensors b.pt --atol 1e-6
)";

struct Command {
  const char* name;
  const char* purpose;
  const char* arguments;
  const char* example;
  size_t files;
};
constexpr std::array<Command, 3> kCommands{
    {{"show", "Lists the tensors of a file.", "FILE", "weft-weights show --json model.safetensors", 1},
     {"convert", "Writes the tensors of FROM into TO, whose name decides the format.", "FROM TO",
      "weft-weights convert --max-shard-size 5GB pytorch_model.bin model.safetensors", 2},
     {"diff", "Compares the tensors of A and B; exit code 0 when equal, 1 when not, 2 on an error.", "A B",
      "weft-weights diff --atol 1e-6 a.safetensors b.pt", 2}}};

const Command& find_command(const std::string& name) {
  for (const Command& command : kCommands)
    if (name == command.name) return command;
  throw UsageError("expected a command, got '" + printable(name) + "'." +
                   suggestion(name, {"show", "convert", "diff"}));
}

/// Files, and flags with their values, in their order.
void split(const std::vector<std::string>& arguments, std::vector<std::string>& files,
           std::vector<std::string>& flags) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("-") || word == "-") {
      files.push_back(word);
      continue;
    }
    flags.push_back(word);
    static const std::set<std::string> switches{"--json", "--ignore-dtype", "--checkpoint", "--dry-run", "--help",
                                                "-h",     "--version"};
    const bool is_switch = switches.contains(word);
    if (!is_switch && word.find('=') == std::string::npos && i + 1 < arguments.size()) flags.push_back(arguments[++i]);
  }
}

}  // namespace

int printed(int code) {
  std::cout.flush();
  WEFT_CHECK(std::cout, "standard output: expected to write all of it, got '", std::strerror(errno), "'");
  return code;
}

uint64_t parse_bytes(const std::string& flag, const std::string& text) {
  constexpr std::pair<const char*, double> units[] = {
      {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1.0}};
  double factor = 1;
  std::string number = text;
  for (const auto& [unit, bytes] : units)
    if (text.ends_with(unit)) {
      factor = bytes;
      number = text.substr(0, text.size() - std::string_view(unit).size());
      break;
    }
  const double value = support::parse_number("--" + flag, number) * factor;
  if (!(value >= 0) || value > 1e18)
    throw UsageError("--" + flag + ": expected a size such as 5GB or 500MiB, got '" + printable(text) + "'");
  return static_cast<uint64_t>(std::llround(value));
}

std::optional<Options> parse_options(const std::vector<std::string>& arguments) {
  if (arguments.empty()) throw UsageError("expected a command: show, convert or diff");
  if (arguments[0] == "--help" || arguments[0] == "-h") {
    std::cout << kHelp;
    return std::nullopt;
  }
  if (arguments[0] == "--version") {
    std::cout << support::version_line("weft-weights") << '\n';
    return std::nullopt;
  }
  const Command& command = find_command(arguments[0]);
  Options o;
  o.command = command.name;
  std::vector<std::string> given;
  split(arguments, o.files, given);

  support::Flags flags(std::string("weft-weights ") + command.name, command.purpose);
  flags.add("key", o.key, "which dict of a PyTorch file (a.b for b in a), which part of a checkpoint; none: detected");
  flags.add("prefix", o.rename.prefix, "keep only names with this prefix, without it, such as backbone.");
  std::vector<std::string> maps = name_map_names();
  maps.insert(maps.begin(), {"none", "auto"});
  std::string map = "none";
  flags.add_choice("map", map, maps,
                   "rename by this table (docs/weights.md lists them); auto: detected from the file's names");
  flags.add("add-prefix", o.rename.add_prefix, "add this prefix to all names");
  flags.add("leave-out", o.rename.leave_out, "last, drop names with this prefix, such as head.");
  if (o.command == "show") flags.add("json", o.json, "as JSON");
  if (o.command == "convert") {
    flags.add_choice("dtype", o.dtype, {"keep", "f32", "f64", "bf16", "f16"},
                     "dtype of floating tensors in the output");
    flags.add("max-shard-size", o.max_shard_size,
              "more bytes of tensors (5GB, 500MiB) go into several .safetensors files with an index; 0: one file");
    flags.add("checkpoint", o.checkpoint,
              "FROM and TO are whole checkpoints, to be resumed: such as from the folder of a sharded one");
    flags.add("dry-run", o.dry_run, "say what would be written, write nothing");
  }
  if (o.command == "diff") {
    flags.add("atol", o.atol, "values differ when |a - b| > atol + rtol |b|", {.min = 0});
    flags.add("rtol", o.rtol, "see atol", {.min = 0});
    flags.add("ignore-dtype", o.ignore_dtype, "equal values of different dtypes are equal");
  }
  flags.arguments(command.arguments);
  flags.example(command.example);
  if (!flags.parse(given)) return std::nullopt;
  if (map != "none") o.rename.map = map;
  static_cast<void>(parse_bytes("max-shard-size", o.max_shard_size));
  if (o.files.size() != command.files)
    throw UsageError(str(command.name, ": expected ", command.files, command.files == 1 ? " file" : " files", ", got ",
                         o.files.size()));
  return o;
}

std::unique_ptr<WeightsFile> open_first(const Options& options) {
  return renamed_weights(open_weights(options.files[0], {.key = options.key}), options.rename);
}

}  // namespace weft::weft_weights
