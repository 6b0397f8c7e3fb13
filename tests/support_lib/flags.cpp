// SPDX-License-Identifier: Apache-2.0
#include "apps/support/flags.h"
#include "apps/support/run_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/train/temporary_folder.h"

namespace weft::support {
namespace {

using test::error_of;
using test::TemporaryFolder;
using test::write_file;

/// A program with a flag of every kind.
struct Program {
  int64_t epochs = 10;
  int workers = 2;
  double lr = 0.1;
  std::string out = "runs/a";
  bool deterministic = false;
  std::vector<double> mean;
  std::string optimizer = "sgd";
  Flags flags{"train", "Trains."};

  Program() {
    flags.add("epochs", epochs, "passes", {.min = 1, .max = 1000});
    flags.add("workers", workers, "threads", {.min = 0});
    flags.add("lr", lr, "learning rate", {.min = 0, .above = true});
    flags.add("out-dir", out, "run folder");
    flags.add("deterministic", deterministic, "same bits on every run");
    flags.add("mean", mean, 3, "of each channel");
    flags.add_choice("optimizer", optimizer, {"sgd", "adam", "adamw"}, "how weights are updated");
  }
  std::string error(const std::vector<std::string>& arguments) {
    return error_of([&] { flags.parse(arguments); });
  }
};

TEST(Flags, ReadsEveryKind) {
  Program p;
  EXPECT_TRUE(p.flags.parse({"--epochs", "3", "--workers=0", "--lr", "5e-4", "--out-dir", "/tmp/x y", "--deterministic",
                             "--mean", "0.1,0.2, 0.3", "--optimizer", "adamw"}));
  EXPECT_EQ(p.epochs, 3);
  EXPECT_EQ(p.workers, 0);
  EXPECT_EQ(p.lr, 5e-4);
  EXPECT_EQ(p.out, "/tmp/x y");
  EXPECT_TRUE(p.deterministic);
  EXPECT_EQ(p.mean, (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(p.optimizer, "adamw");
  EXPECT_TRUE(p.flags.given("lr"));
}

TEST(Flags, ATildeIsTheHomeFolderButNotInATextThatIsNoPath) {
  std::string path, text;
  Flags flags("sample", "Samples.");
  flags.add("out", path, "a folder");
  flags.add_text("prompt", text, "a text");
  const std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  if (home.empty()) GTEST_SKIP() << "needs HOME";
  flags.parse({"--out=~/x", "--prompt=~/x"});
  EXPECT_EQ(path, home + "/x");
  EXPECT_EQ(text, "~/x");
}

// Programs whose users know `--config` as something else.
TEST(Flags, ConfigMayBeAFlagOfTheProgramsOwn) {
  std::string section = "default", yaml = "a.yaml";
  Flags flags("train", "Trains.", ConfigFlag::none);
  flags.add("config", section, "section of the file");
  flags.add("yaml_config", yaml, "file");
  EXPECT_TRUE(flags.parse({"--config=test", "--yaml_config", "b.yaml"}));
  EXPECT_EQ(section, "test");
  EXPECT_EQ(yaml, "b.yaml");
  EXPECT_EQ(error_of([&] {
              flags.parse({"--yaml-config", "b.yaml"});
            }),
            "unknown flag --yaml-config. Did you mean --yaml_config?");
}

TEST(Flags, DefaultsStay) {
  Program p;
  const char* argv[] = {"train"};
  EXPECT_TRUE(p.flags.parse(1, argv));
  EXPECT_EQ(p.epochs, 10);
  EXPECT_FALSE(p.deterministic);
  EXPECT_FALSE(p.flags.given("epochs"));
}

TEST(Flags, TheLastWins) {
  Program p;
  p.flags.parse({"--epochs", "3", "--epochs", "4"});
  EXPECT_EQ(p.epochs, 4);
}

TEST(Flags, ASwitchTakesAWord) {
  Program p;
  p.flags.parse({"--deterministic", "--lr", "1"});
  EXPECT_TRUE(p.deterministic);
  EXPECT_EQ(p.lr, 1);
  Program q;
  q.deterministic = true;
  q.flags.parse({"--deterministic=false"});
  EXPECT_FALSE(q.deterministic);
  Program r;
  EXPECT_EQ(r.error({"--deterministic=maybe"}), "--deterministic: expected true or false, got 'maybe'");
}

TEST(Flags, UnknownFlagSuggestsTheNearest) {
  Program p;
  EXPECT_EQ(p.error({"--epcohs", "5"}), "unknown flag --epcohs. Did you mean --epochs?");
  Program q;
  EXPECT_EQ(q.error({"--out_dri=x"}), "unknown flag --out_dri. Did you mean --out-dir?");
  Program r;
  EXPECT_EQ(r.error({"--frobnicate-it"}), "unknown flag --frobnicate-it.");
  Program s;
  EXPECT_EQ(s.error({"cifar10"}), "expected flags (--name value), got 'cifar10'");
}

TEST(Flags, UnderscoresAreDashes) {
  Program p;
  p.flags.parse({"--out_dir", "a_b", "--lr=0.5"});
  EXPECT_EQ(p.out, "a_b");
  p.flags.parse({"--out_dir=c_d"});
  EXPECT_EQ(p.out, "c_d");
}

/// `program 50 10`.
struct Positional {
  int64_t total = 0, every = 0;
  bool dry = false;
  Flags flags{"program", "Trains."};

  Positional() {
    flags.add_positional("total_epochs", total, "passes", {.min = 1});
    flags.add_positional("save_every", every, "a checkpoint after so many");
    flags.add("dry-run", dry, "trains nothing");
  }
  std::string error(const std::vector<std::string>& arguments) {
    return error_of([&] { flags.parse(arguments); });
  }
};

TEST(Flags, PositionalArgumentsComeInTheirOrder) {
  for (const auto& arguments : {std::vector<std::string>{"50", "10", "--dry-run"},
                                {"--dry-run", "50", "10"},
                                {"50", "--dry-run", "10"},
                                {"50", "10", "--dry_run=true"}}) {
    Positional p;
    EXPECT_TRUE(p.flags.parse(arguments));
    EXPECT_EQ(p.total, 50);
    EXPECT_EQ(p.every, 10);
    EXPECT_TRUE(p.dry);
    EXPECT_TRUE(p.flags.given("total-epochs"));
  }
  const TemporaryFolder folder;
  write_file(folder / "a.toml", "total_epochs = 3\nsave_every = 1\n");
  Positional p;
  p.flags.parse({"--config", (folder / "a.toml").string()});
  EXPECT_EQ(p.total, 3);
}

TEST(Flags, PositionalArgumentsMustBeThere) {
  EXPECT_EQ(Positional().error({}), "expected total_epochs (passes), got no such argument");
  EXPECT_EQ(Positional().error({"50"}), "expected save_every (a checkpoint after so many), got no such argument");
  EXPECT_EQ(Positional().error({"0", "1"}), "total_epochs: expected a value at least 1, got 0");
  EXPECT_EQ(Positional().error({"x", "1"}), "total_epochs: expected a whole number, got 'x'");
  EXPECT_EQ(Positional().error({"1", "2", "3"}), "expected flags (--name value), got '3'");
}

TEST(Flags, WrongValues) {
  EXPECT_EQ(Program().error({"--epochs", "many"}), "--epochs: expected a whole number, got 'many'");
  EXPECT_EQ(Program().error({"--epochs", "3.5"}), "--epochs: expected a whole number, got '3.5'");
  EXPECT_EQ(Program().error({"--epochs", "99999999999999999999"}),
            "--epochs: expected a whole number, got '99999999999999999999'");
  EXPECT_EQ(Program().error({"--epochs", "0"}), "--epochs: expected a value at least 1 and at most 1000, got 0");
  EXPECT_EQ(Program().error({"--workers", "-1"}),
            "--workers: expected a value at least 0 and at most 2147483647, got -1");
  EXPECT_EQ(Program().error({"--workers", "3000000000"}),
            "--workers: expected a value at least 0 and at most 2147483647, got 3000000000");
  EXPECT_EQ(Program().error({"--lr", "fast"}), "--lr: expected a number, got 'fast'");
  EXPECT_EQ(Program().error({"--lr", "nan"}), "--lr: expected a number, got 'nan'");
  EXPECT_EQ(Program().error({"--lr", "0"}), "--lr: expected a value above 0, got 0");
  EXPECT_EQ(Program().error({"--mean", "1,2"}), "--mean: expected 3 numbers between commas, got 2 in '1,2'");
  EXPECT_EQ(Program().error({"--mean", "1,,2"}), "--mean: expected a number, got ''");
  EXPECT_EQ(Program().error({"--optimizer", "adamv"}), "--optimizer: unknown value 'adamv'. Did you mean 'adam'?");
  EXPECT_EQ(Program().error({"--optimizer", "lion"}), "--optimizer: unknown value 'lion'. Known: sgd, adam, adamw.");
  EXPECT_THAT(Program().error({"--epochs"}), testing::HasSubstr("--epochs"));
}

TEST(Flags, ErrorsAreUsageErrors) { EXPECT_THROW(Program().flags.parse({"--epochs", "x"}), train::UsageError); }

TEST(Flags, CommandLineBeatsFileBeatsDefault) {
  const TemporaryFolder folder;
  write_file(folder / "a.toml",
             "epochs = 5\nlr = 2\nout_dir = \"from file\"\nmean = [0.5, 1, 2]\ndeterministic = true\n");
  Program p;
  p.flags.parse({"--lr", "3", "--config", (folder / "a.toml").string()});
  EXPECT_EQ(p.epochs, 5);
  EXPECT_EQ(p.lr, 3);
  EXPECT_EQ(p.out, "from file");
  EXPECT_EQ(p.mean, (std::vector<double>{0.5, 1, 2}));
  EXPECT_TRUE(p.deterministic);
  EXPECT_EQ(p.workers, 2);
}

TEST(Flags, ConfigErrorsNameTheLine) {
  const TemporaryFolder folder;
  const std::string path = (folder / "a.toml").string();
  const auto error = [&](const std::string& text) {
    write_file(path, text);
    return Program().error({"--config", path});
  };
  EXPECT_EQ(error("lr = 1\nepohcs = 3\n"), path + " line 2: unknown key 'epohcs'. Did you mean 'epochs'?");
  EXPECT_EQ(error("\n\nepochs = \"x\"\n"), path + " line 3: --epochs: expected a whole number, got 'x'");
  EXPECT_EQ(error("optimizer = \"adamx\"\n"),
            path + " line 1: --optimizer: unknown value 'adamx'. Did you mean 'adam'?");
  EXPECT_EQ(error("out_dir = \"a\"\nout-dir = \"b\"\n"), path + " line 1: 'out_dir' and 'out-dir' are one key");
  EXPECT_EQ(error("[train]\nepochs = 3\n"), path + " line 1: unknown key 'train'.");
  EXPECT_EQ(error("mean = [[1], 2, 3]\n"), path + " line 1: expected a flat list");
  EXPECT_EQ(error("lr = 1979-05-27\n"), path + " line 1: expected a text, number, true, false or list");
  for (const char* table :
       {"{}", "{a = 1}", "{bytes = 3}", "{bytes = [0]}", "{bytes = [256]}", "{bytes = [65], a = 1}"})
    EXPECT_EQ(error(std::string("out-dir = ") + table),
              path + " line 1: expected a text, number, true, false or list, got a table");
  EXPECT_THAT(error("lr = 1\nlr =\n"), testing::StartsWith(path + " line 2: not TOML: "));
  EXPECT_EQ(error("[= 5]\n"), path + ": not TOML: a table header or key is malformed");
  EXPECT_EQ(Program().error({"--config", path + "x"}), "--config: expected a file, got none at " + path + "x");
}

TEST(Flags, TomlReadsBackToTheSameValues) {
  const TemporaryFolder folder;
  Program p;
  p.flags.parse({"--lr", "0.30000000000000004", "--out-dir", "a \"b\" \\ c\td", "--mean", "1,2e-9,3"});
  write_file(folder / "config.toml", p.flags.toml());
  Program q;
  q.flags.parse({"--config", (folder / "config.toml").string()});
  EXPECT_EQ(q.lr, p.lr);
  EXPECT_EQ(q.out, p.out);
  EXPECT_EQ(q.mean, p.mean);
  EXPECT_EQ(q.flags.toml(), p.flags.toml());
  for (const std::string out : {"umlaut \u00e4", "no UTF-8 \xe4", "\xff", "\x7f delete", "zero\u200bwidth"}) {
    Program one, other;
    one.flags.parse({"--out-dir", out});
    write_file(folder / "config.toml", one.flags.toml());
    other.flags.parse({"--config", (folder / "config.toml").string()});
    EXPECT_EQ(other.out, out);
  }
  Program defaults;  // an empty list is not set
  write_file(folder / "config.toml", defaults.flags.toml());
  Program r;
  r.flags.parse({"--config", (folder / "config.toml").string()});
  EXPECT_TRUE(r.mean.empty());
}

TEST(Flags, HelpListsFlagsAndDefaults) {
  Program p;
  testing::internal::CaptureStdout();
  EXPECT_FALSE(p.flags.parse({"--help"}));
  const std::string help = testing::internal::GetCapturedStdout();
  for (const char* part : {"--epochs", "10", "sgd|adam|adamw", "R,G,B", "--config", "learning rate"})
    EXPECT_THAT(help, testing::HasSubstr(part));
}

TEST(Flags, HelpShowsDefaultsUsageAndExamples) {
  bool verbose = false;
  int64_t steps = 5;
  std::string out, name = "a";
  std::vector<double> mean;
  Flags flags("train", "Trains.", ConfigFlag::none);
  flags.add("verbose", verbose, "say more");
  flags.add("steps", steps, "how many");
  flags.add("out", out, "where to");
  flags.add("name", name, "of the run");
  flags.add("mean", mean, 3, "of the pixels");
  flags.add_positional("epochs", steps, "epochs to train");
  flags.arguments("FILE…");
  flags.example("train --steps 3");
  flags.example("train --name b   # another");
  testing::internal::CaptureStdout();
  EXPECT_FALSE(flags.parse({"--help"}));
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_THAT(help, testing::StartsWith("Trains.\nUsage: train [flags] epochs FILE…\n"));
  for (const char* part : {"--verbose [off] ", "--steps N [5] ", "--out TEXT [none] ", "--name TEXT [a] ",
                           "--mean R,G,B [none] ", "\nExamples:\n  train --steps 3\n  train --name b   # another\n"})
    EXPECT_THAT(help, testing::HasSubstr(part));
}

std::string printed(Flags& flags, const std::string& flag) {
  testing::internal::CaptureStdout();
  EXPECT_FALSE(flags.parse({flag}));
  return testing::internal::GetCapturedStdout();
}

TEST(Flags, HelpHasGroupsAndLinesThatATerminalNeedNotBreak) {
  int64_t steps = 5, other = 0;
  Flags flags("train", "Trains.");
  flags.group("Run");
  flags.add("steps", steps, "how many of them " + std::string(90, 'x') + " and ü no more");
  flags.group("Ranks");
  flags.add("a-name-that-leaves-its-text-no-place", other, "of ranks");
  EXPECT_THAT(printed(flags, "--help"),
              testing::HasSubstr("\n\nRun:\n"
                                 "  --steps N [5]               how many of them\n" +
                                 std::string(30, ' ') + std::string(90, 'x') + "\n" + std::string(30, ' ') +
                                 "and ü no more\n"
                                 "\nRanks:\n"
                                 "  --a-name-that-leaves-its-text-no-place N [0]\n" +
                                 std::string(30, ' ') + "of ranks\n"));
}

TEST(Flags, VersionNamesTheProgramAndTheLibrary) {
  Flags flags("train", "Trains.");
  EXPECT_THAT(printed(flags, "--version"), testing::MatchesRegex("train of Weft [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(RunFlags, AreThoseThatAreNamed) {
  train::RunOptions options;
  Flags flags("train", "Trains.");
  add_run_flags(flags, options, "epochs ema fp8 seed");
  EXPECT_TRUE(flags.parse({"--epochs", "3", "--ema=0.9", "--precision", "fp8", "--seed", "7"}));
  EXPECT_EQ(flags.toml(), "epochs = 3\nema = 0.9\nema-warmup = false\nprecision = \"fp8\"\nseed = 7\n");
  EXPECT_EQ(options.dtype(), DType::bf16);
  EXPECT_EQ(error_of([&] { add_run_flags(flags, options, "epoch"); }), "flags: expected shared flags, got 'epoch'");
}

TEST(Flags, OneNameOneFlag) {
  Program p;
  int64_t again = 0;
  EXPECT_EQ(error_of([&] { p.flags.add("epochs", again, ""); }),
            "flags: expected each flag once, got a second --epochs");
  EXPECT_EQ(error_of([&] { static_cast<void>(p.flags.given("nothing")); }),
            "flags: expected a flag of this program, got --nothing");
}

}  // namespace
}  // namespace weft::support
