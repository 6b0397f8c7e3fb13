// SPDX-License-Identifier: Apache-2.0
// weft-sweep as its users start it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/ml_dist/idx_files.h"
#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

namespace weft::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
namespace fs = std::filesystem;

/// A program whose loss at its second step is (x - 2)^2 + y, which counts its starts, and which can be made to fail.
constexpr const char* kProgram = R"(#!/bin/bash
for word in "$@"; do
  case $word in --x=*) x=${word#*=};; --y=*) y=${word#*=};; --out=*) out=${word#*=};; esac
done
echo "start $x $y gpus ${CUDA_VISIBLE_DEVICES:-all}" >> "$out/../starts"
[[ -f $out/../fail_$x ]] && { echo "it cannot be done"; exit 3; }
[[ -f $out/../requeue_$x ]] && exit 75
[[ -f $out/../sleep_$x ]] && { echo $$ > "$out/../pid"; sleep 300; }
loss=$(( (x - 2) * (x - 2) + ${y:-0} ))
[[ -f $out/../diverge_$x ]] && loss=null
printf '{"step":1,"val_loss":%d.5}\n{"step":2,"val_loss":%s}\n' 0 "$loss" > "$out/metrics.jsonl"
)";

class WeftSweep : public testing::Test {
 protected:
  WeftSweep() : out_(folder_ / "sweep"), program_(folder_ / "train") {
    std::ofstream(program_) << kProgram;
    chmod(program_.c_str(), 0755);
  }
  Outcome sweep(const std::string& arguments) const {
    return shell("cd " + (folder_ / "") + " && env -u CUDA_VISIBLE_DEVICES " + WEFT_SWEEP + ' ' + arguments);
  }
  /// The usual sweep of x, with more flags in front.
  Outcome usual(const std::string& flags = "", const std::string& x = "1,2,3,4") const {
    return sweep(flags + " --grid x=" + x + " --metric val_loss --out " + out_ + " -- " + program_ + " --out={run}");
  }
  void touch(const std::string& name) const {
    fs::create_directories(out_);
    std::ofstream(out_ + "/" + name) << "";
  }
  size_t starts() const {
    const std::string text = read_text(out_ + "/starts");
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  json ranking() const { return json::parse(read_text(out_ + "/ranking.json")); }

  TemporaryFolder folder_;
  std::string out_, program_;
};

TEST_F(WeftSweep, HelpSaysHow) {
  const Outcome help = sweep("--help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* text :
       {"--grid lr=1e-5,5e-5,1e-4 batch_size=16,32", "--random", "--slurm", "{run}", "not run again"})
    EXPECT_THAT(help.output, HasSubstr(text));
}

TEST_F(WeftSweep, RanksAGrid) {
  const Outcome run =
      sweep("--grid x=1,2 y=5,7 --metric val_loss --goal min --out " + out_ + " -- " + program_ + " --out={run}");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, MatchesRegex("\\[1/4\\] x=1,y=5: done, [0-9]+:[0-9]+\n(.|\n)*"
                                       "   1  x=2,y=5 +5 +0.5 +1 +[0-9]+:[0-9]+\n"
                                       "   2  x=1,y=5 +6 +0.5 +1 +[0-9]+:[0-9]+\n"
                                       "   3  x=2,y=7 +7 +0.5 +1 +[0-9]+:[0-9]+\n"
                                       "   4  x=1,y=7 +8 +0.5 +1 +[0-9]+:[0-9]+\n"
                                       "wrote .*/sweep/sweep.html\n"));
  const json best = ranking()["runs"][0];
  EXPECT_EQ(best["values"], json::parse(R"({"x": "2", "y": "5"})"));
  EXPECT_EQ(best["last"], 5);
  EXPECT_EQ(best["best"], 0.5);
  EXPECT_EQ(best["best_step"], 1);
  EXPECT_EQ(best["folder"], out_ + "/x=2,y=5");
  EXPECT_EQ(ranking()["metric"], "val_loss");
  const std::string page = read_text(out_ + "/sweep.html");
  for (const char* text :
       {"4 done. Best: x=2,y=5, val_loss 5<", "<figcaption>val_loss</figcaption>",
        "<figcaption>best val_loss so far</figcaption>", "<figcaption>val_loss over x</figcaption>",
        "<figcaption>val_loss over y</figcaption>", "<title>x=1,y=7: 8 at y 7</title>", "<a href=\"x=2,y=5/log.txt\">"})
    EXPECT_THAT(page, HasSubstr(text));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

TEST_F(WeftSweep, TheLargestOrTheBestMayWin) {
  EXPECT_EQ(usual("--goal max").exit_code, 0);
  EXPECT_EQ(ranking()["runs"][0]["values"]["x"], "4");
  const Outcome again = sweep("--out " + out_ + " --rank --metric val_loss --by best");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(ranking()["by"], "best");
  EXPECT_EQ(ranking()["runs"][0]["values"]["x"], "2");
  EXPECT_EQ(ranking()["runs"][0]["last"], 0);
  EXPECT_EQ(starts(), 4u);
}

TEST_F(WeftSweep, ARunThatDivergedIsBehindThoseThatDidNot) {
  touch("diverge_2");
  const Outcome run = usual();
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("   -  x=2    done (its last 'val_loss' is no number)\n"));
  EXPECT_EQ(ranking()["runs"][0]["values"]["x"], "1");
  EXPECT_EQ(ranking()["runs"][3]["values"]["x"], "2");
  EXPECT_TRUE(ranking()["runs"][3]["last"].is_null());
  EXPECT_EQ(sweep("--out " + out_ + " --rank --metric val_loss --by best").exit_code, 0);
  EXPECT_EQ(ranking()["runs"][0]["best"], 0.5) << "what it reached counts, if asked for";
}

// Another user of the folder may have put them there.
TEST_F(WeftSweep, LinksAreNotFollowed) {
  for (const char* name : {"log.txt", ".lock"}) {
    fs::remove_all(out_);
    fs::create_directories(out_ + "/x=1");
    fs::create_symlink(folder_ / "outside", out_ + "/x=1/" + name);
    EXPECT_THAT(usual("", "1").output, HasSubstr("Too many levels of symbolic links")) << name;
    EXPECT_FALSE(fs::exists(folder_ / "outside")) << name;
  }
}

TEST_F(WeftSweep, GoesOnWhenNobodyReadsItsLines) {
  sweep("--grid x=1,2,3 --metric val_loss --out " + out_ + " -- " + program_ + " --out={run} | true");
  EXPECT_EQ(starts(), 3u);
  EXPECT_EQ(ranking()["runs"].size(), 3u);
  EXPECT_TRUE(fs::exists(out_ + "/sweep.html"));
}

TEST_F(WeftSweep, PointsThatAreDoneAreNotRunAgain) {
  EXPECT_EQ(usual("", "1,2").exit_code, 0);
  const Outcome more = usual("", "1,2,3");  // the grid has grown
  EXPECT_THAT(more.output, HasSubstr("2 of 3 points are done already\n[1/1] x=3: done"));
  EXPECT_EQ(starts(), 3u);
  EXPECT_THAT(sweep("--out " + out_).output,
              HasSubstr("3 of 3 points are done already\n"));  // the folder stores the rest
  EXPECT_EQ(starts(), 3u);
}

/// A program of nine steps, of which the second point's are the best; the others rest after each third step until they
/// are told to stop.
constexpr const char* kSteps = R"(#!/bin/bash
x=${1#--x=} out=${2#--out=}
echo "start $x" >> "$out/../starts"
for step in 1 2 3 4 5 6 7 8 9; do
  echo "{\"step\":$step,\"val_loss\":$(( (x - 2) * (x - 2) * 10 - step ))}" >> "$out/metrics.jsonl"
  if [[ $x != 2 && $step == 3 ]]; then sleep 300 & wait; fi
done
)";

TEST_F(WeftSweep, TheWorseAreStoppedEarly) {
  std::ofstream(program_) << kSteps;
  const std::string flags = " --metric val_loss --out " + out_ + " -- " + program_ + " --x={x} --out={run}";
  const Outcome run = sweep("--grid x=2,1,3 --min-iter 3" + flags);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output,
              MatchesRegex("\\[1/3\\] x=2: done, [0-9]+:[0-9]+\n\\[2/3\\] x=1: stopped early, [0-9]+:[0-9]+\n"
                           "\\[3/3\\] x=3: stopped early, [0-9]+:[0-9]+\n(.|\n)*"
                           "   1  x=2 +-9 +-9 +9 +[0-9]+:[0-9]+\n"
                           "   2  x=1 +7 +7 +3 +[0-9]+:[0-9]+  stopped after 3\n"
                           "   3  x=3 +7 +7 +3 +[0-9]+:[0-9]+  stopped after 3\n(.|\n)*"));
  EXPECT_THAT(read_text(out_ + "/sweep.html"), HasSubstr("1 done, 2 stopped early. Best: x=2, val_loss -9<"));
  // The folder keeps the rule, and what was stopped early is over.
  EXPECT_THAT(sweep("--out " + out_).output, HasSubstr("3 of 3 points are done already\n"));
  EXPECT_THAT(sweep("--grid x=2,1,3,4 --min-iter 3" + flags).output, HasSubstr("[1/1] x=4: stopped early"));
  EXPECT_EQ(starts(), 4u);
}

TEST_F(WeftSweep, ATaskOfAnArrayStopsEarlyByItself) {
  std::ofstream(program_) << kSteps;
  ASSERT_EQ(sweep("--slurm --grid x=2,1 --min-iter 3 --metric val_loss --out " + out_ + " -- " + program_ +
                  " --x={x} --out={run}")
                .exit_code,
            0);
  EXPECT_EQ(sweep("--out " + out_ + " --point 0").exit_code, 0);
  const Outcome second = sweep("--out " + out_ + " --point 1");
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_THAT(second.output, HasSubstr("x=1: stopped early"));
}

TEST_F(WeftSweep, BayesWithoutOptunaIsOneError) {
  const std::string flags = "--bayes x=int:1..4 --trials 2 --metric val_loss --out " + out_ + " -- " + program_;
  fs::create_directory(folder_ / "hidden");
  std::ofstream(folder_ / "hidden/optuna.py") << "raise ImportError('none')\n";
  const Outcome without = shell("PYTHONPATH=" + (folder_ / "hidden") + ' ' + WEFT_SWEEP + ' ' + flags + " --out={run}");
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_EQ(without.output,
            "weft-sweep: error: --bayes: expected Optuna 3 or newer for python3, got none. apt-get install "
            "python3-optuna, or pip install optuna; --random needs neither\n");
  EXPECT_FALSE(fs::exists(out_ + "/starts"));

  // Modules in the working folder may be anybody's: none is loaded.
  fs::create_directory(folder_ / "planted");
  for (const char* name : {"json.py", "optuna.py"})
    std::ofstream(folder_ / (str("planted/", name))) << "open('ran', 'w')\n";
  shell("cd " + (folder_ / "planted") + " && PYTHONPATH=" + (folder_ / "hidden") + ' ' + WEFT_SWEEP + ' ' + flags +
        " --out={run}");
  EXPECT_FALSE(fs::exists(folder_ / "planted/ran"));
}

TEST_F(WeftSweep, ABayesianSearchShowsItsCommandFirst) {
  const Outcome dry = sweep("--dry-run --bayes x=int:1..4 --trials 2 --metric m --out " + out_ + " -- prog {run}");
  EXPECT_EQ(dry.output, "prog '" + out_ + "/x=_x_~" + dry.output.substr(dry.output.find('~') + 1, 8) + "' '--x={x}'\n");
  EXPECT_FALSE(fs::exists(out_));
}

class WithOptuna : public WeftSweep {
 protected:
  void SetUp() override {
    const std::string look = " -c 'from optuna.distributions import FloatDistribution' 2>/dev/null || ";
    if (shell("python3" + look + "/usr/bin/python3" + look + "exit 1").exit_code != 0)
      GTEST_SKIP() << "needs python3-optuna";
  }
  Outcome bayes(const std::string& space, const std::string& flags) const {
    return sweep("--bayes " + space + " --metric val_loss " + flags + " --out " + out_ + " -- " + program_ +
                 " --x={x} --out={run}");
  }
  std::vector<double> points() const {
    std::vector<double> out;
    const json written = json::parse(read_text(out_ + "/sweep.json"));
    for (const json& point : written["points"]) out.push_back(std::stod(point["x"].get<std::string>()));
    return out;
  }
};

// The least value is at x = 2, in one five-hundredth of the range. After ten random points Optuna's choices are nearer;
// the same seed chooses the same points, and a continued search equals a longer search.
TEST_F(WithOptuna, FindsTheValley) {
  const Outcome first = bayes("x=int:-500..500", "--seed 5 --trials 12");
  ASSERT_EQ(first.exit_code, 0) << first.output;
  EXPECT_THAT(first.output, HasSubstr("[12/12] x="));
  const Outcome more = bayes("x=int:-500..500", "--seed 5 --trials 18");
  ASSERT_EQ(more.exit_code, 0) << more.output;
  EXPECT_THAT(more.output, HasSubstr("12 of 18 points are done already\n[1/6] x="));
  const std::vector<double> xs = points();
  ASSERT_EQ(xs.size(), 18u);
  const auto distance = [&](size_t begin, size_t end) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += std::abs(xs[i] - 2);
    return sum / static_cast<double>(end - begin);
  };
  EXPECT_LT(distance(10, 18), 0.6 * distance(0, 10));
  fs::remove_all(out_);
  ASSERT_EQ(bayes("x=int:-500..500", "--seed 5 --trials 11").exit_code, 0);
  EXPECT_EQ(points(), std::vector<double>(xs.begin(), xs.begin() + 11));
}

// A search goes on from a grid, hears of what is stopped early, and chooses no point twice.
TEST_F(WithOptuna, EndsWhenThereAreNoMorePoints) {
  std::ofstream(program_) << kSteps;
  ASSERT_EQ(sweep("--grid x=2 --metric val_loss --out " + out_ + " -- " + program_ + " --x={x} --out={run}").exit_code,
            0);
  const Outcome run = bayes("x=2,1,3", "--trials 5 --min-iter 3");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("1 of 5 points are done already\n[1/4] x="));
  EXPECT_THAT(run.output, HasSubstr("there are no more than 3 points\n"));
  EXPECT_EQ(starts(), 3u);
  EXPECT_EQ(ranking()["runs"][0]["values"]["x"], "2");
  EXPECT_EQ(ranking()["runs"][2]["state"], "stopped early");
}

TEST_F(WithOptuna, AFailedPointIsNoValue) {
  touch("fail_1");
  const Outcome run = bayes("x=1,2", "--trials 2 --jobs 2");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("1 of 2 points failed"));
  EXPECT_EQ(starts(), 2u);
  fs::remove(out_ + "/fail_1");
  EXPECT_EQ(bayes("x=1,2", "--trials 2").exit_code, 0);
  EXPECT_EQ(starts(), 3u);
}

// Tasks of a job array start in any order, and choose for those before them.
TEST_F(WithOptuna, TasksOfAnArrayChooseTheirPoints) {
  ASSERT_EQ(bayes("x=int:1..9", "--trials 3 --slurm").exit_code, 0);
  EXPECT_THAT(read_text(out_ + "/sweep.sbatch"), HasSubstr("#SBATCH --array=0-2%1\n"));
  const Outcome both = shell(std::string(WEFT_SWEEP) + " --out " + out_ + " --point 2 & " + WEFT_SWEEP + " --out " +
                             out_ + " --point 0; wait $!");
  EXPECT_EQ(both.exit_code, 0) << both.output;
  EXPECT_EQ(starts(), 2u);
  EXPECT_EQ(points().size(), 3u);
}

TEST_F(WeftSweep, FailedPointsAreReportedAndTriedAgain) {
  touch("fail_2");
  const Outcome run = usual();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("x=2: FAILED (exit code 3, see " + out_ + "/x=2/log.txt)"));
  EXPECT_THAT(run.output, HasSubstr("   -  x=2    failed (exit code 3: it cannot be done)\n"));
  EXPECT_THAT(run.output, HasSubstr("weft-sweep: error: 1 of 4 points failed; their logs are in " + out_ + "\n"));
  EXPECT_EQ(ranking()["runs"][3]["state"], "failed");
  EXPECT_TRUE(ranking()["runs"][3]["last"].is_null());
  fs::remove(out_ + "/fail_2");
  const Outcome again = usual();
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.output, HasSubstr("3 of 4 points are done already\n[1/1] x=2: done"));
  EXPECT_EQ(starts(), 5u);
}

TEST_F(WeftSweep, AMetricThatNobodyWroteIsAnError) {
  const Outcome run = sweep("--grid x=1,2 --metric accuracy --out " + out_ + " -- " + program_ + " --out={run}");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("x=1    done (no 'accuracy' among val_loss)"));
  EXPECT_THAT(run.output, HasSubstr("weft-sweep: error: 2 of 2 points have no value of 'accuracy'\n"));
}

TEST_F(WeftSweep, SeveralAtATimeShareTheGpus) {
  EXPECT_EQ(usual("--jobs 2 --gpus 4,5,6,7").exit_code, 0);
  const std::string text = read_text(out_ + "/starts");
  EXPECT_THAT(text, HasSubstr("gpus 4,5\n"));
  EXPECT_THAT(text, HasSubstr("gpus 6,7\n"));
  EXPECT_THAT(text, Not(HasSubstr("gpus all")));
}

TEST_F(WeftSweep, AStoppedSweepGoesOn) {
  touch("sleep_2");
  // SIGTERM as Slurm sends it, while the second point runs.
  const Outcome stopped =
      shell("cd " + (folder_ / "") + "; " + WEFT_SWEEP + " --grid x=1,2,3 --metric val_loss --out " + out_ + " -- " +
            program_ + " --out={run} & sweep=$!; for i in $(seq 1200); do [ -f " + out_ +
            "/pid ] && break; sleep 0.05; done; kill -TERM $sweep; wait $sweep");
  EXPECT_EQ(stopped.exit_code, 75) << stopped.output;
  EXPECT_THAT(stopped.output, HasSubstr("[1/3] x=1: done"));
  EXPECT_THAT(stopped.output, HasSubstr("[2/3] x=2: stopped"));
  EXPECT_NE(shell("kill -0 $(cat " + out_ + "/pid)").exit_code, 0);  // no process continues
  fs::remove(out_ + "/sleep_2");
  const Outcome again = usual("", "1,2,3");
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("1 of 3 points are done already"));
  EXPECT_EQ(starts(), 4u);
}

TEST_F(WeftSweep, ARunThatEndsWithACheckpointIsNotDone) {
  touch("requeue_2");
  EXPECT_THAT(usual().output, HasSubstr("x=2: stopped"));
  EXPECT_EQ(sweep("--out " + out_ + " --point 1").exit_code, 75);
  fs::remove(out_ + "/requeue_2");
  EXPECT_EQ(sweep("--out " + out_ + " --point 1").exit_code, 0);
  EXPECT_EQ(starts(), 6u);
}

TEST_F(WeftSweep, TwoSweepsOfOneFolderShareThePoints) {
  touch("sleep_1");
  const Outcome both =
      shell("cd " + (folder_ / "") + "; " + WEFT_SWEEP + " --grid x=1,2 --out " + out_ + " -- " + program_ +
            " --out={run} > first.txt & sweep=$!; for i in $(seq 1200); do [ -f " + out_ +
            "/pid ] && break; sleep 0.05; done; " + WEFT_SWEEP + " --out " + out_ + "; kill -TERM $sweep; wait $sweep");
  EXPECT_THAT(both.output, HasSubstr("x=1: another weft-sweep is running it\n[1/2] x=2: done"));
}

TEST_F(WeftSweep, ValuesGoWhereTheCommandSays) {
  const auto dry = [&](const std::string& arguments) {
    return sweep("--dry-run --out " + out_ + ' ' + arguments).output;
  };
  EXPECT_EQ(dry("--grid lr=0.1 -lr=3 seed=5 -- prog --out {run} s{seed}"),
            "prog --out " + out_ + "/lr=0.1,-lr=3,seed=5 s5 --lr=0.1 -lr 3\n");
  EXPECT_EQ(dry("--grid lr=0.1 -- weft-run --nproc_per_node 2 ./bin/train_multi_gpu --config x"),
            "weft-run --nproc_per_node 2 ./bin/train_multi_gpu --config x --root_dir=" + out_ +
                "/lr=0.1 --sweep_id=sweep --lr=0.1\n");
  EXPECT_EQ(dry("--grid lr=0.1 -- ddp_training"),
            "ddp_training --output-dir=" + out_ + "/lr=0.1 --log-dir=" + out_ + "/lr=0.1 --lr=0.1\n");
  // A point that was stopped or has failed goes on in its folder.
  for (const std::string flag :
       {"train_image --resume=auto", "train_gpt --resume=auto", "finetune --resume-from-checkpoint=auto",
        "train_image --overwrite", "train_image --resume x"}) {
    const size_t space = flag.find(' ');
    const std::string program = flag.substr(0, space), out = " --out=" + out_ + "/lr=0.1";
    if (flag.ends_with("=auto"))
      EXPECT_EQ(dry("--grid lr=0.1 -- " + program), program + out + flag.substr(space) + " --lr=0.1\n");
    else
      EXPECT_EQ(dry("--grid lr=0.1 -- " + flag), flag + out + " --lr=0.1\n");
  }
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(WeftSweep, AFileCapsItsGridAndNamesItsProgram) {
  if (!WEFT_HAVE_YAML) GTEST_SKIP() << "needs a build with yaml-cpp";
  const std::string file = folder_ / "s.yaml";
  std::ofstream(file)
      << "program: prog\nmethod: grid\nrun_cap: 2\nname: n\ncommand: ['${program}', '--out={run}', '${args}', last]\n"
         "parameters:\n  lr: {values: [0.1, 0.01, 0.001]}\n";
  const auto dry = [&](const std::string& rest) {
    return sweep("--sweep " + file + " --dry-run --out o" + rest).output;
  };
  const std::string notes = "weft-sweep: " + file + ": passed over, as wandb's own: name\n";
  EXPECT_EQ(dry(""), notes + "prog --out=o/lr=0.1 --lr=0.1 last\nprog --out=o/lr=0.01 --lr=0.01 last\n");
  EXPECT_EQ(dry(" -- other {run}"), notes + "weft-sweep: " + file +
                                        ": program and command are passed over: the command line has a program\n"
                                        "other o/lr=0.1 --lr=0.1\nother o/lr=0.01 --lr=0.01\n");
}

TEST_F(WithOptuna, ChoosesMultiplesOfAStep) {
  if (!WEFT_HAVE_YAML) GTEST_SKIP() << "needs a build with yaml-cpp";
  std::ofstream(folder_ / "s.yaml") << "method: bayes\nrun_cap: 12\nmetric: {name: val_loss}\nparameters:\n"
                                       "  x: {distribution: q_uniform, min: 1, max: 100, q: 5}\n";
  const Outcome run =
      sweep("--sweep " + (folder_ / "s.yaml") + " --out " + out_ + " -- " + program_ + " --x={x} --out={run}");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(points().size(), 12u);
  for (const double x : points()) EXPECT_TRUE(x >= 5 && x <= 100 && std::fmod(x, 5) == 0) << x;
}

TEST_F(WeftSweep, RandomSearchIsTheSeeds) {
  const std::string space = "--dry-run --random x=log:1e-3..1 n=int:1..9 --trials 5 --out " + out_ + " --seed ";
  const std::string one = sweep(space + "1 -- prog {run}").output;
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 5);
  EXPECT_EQ(sweep(space + "1 -- prog {run}").output, one);
  EXPECT_NE(sweep(space + "2 -- prog {run}").output, one);
}

TEST_F(WeftSweep, Errors) {
  const auto expect = [&](const std::string& arguments, int code, const std::string& text) {
    const Outcome outcome = sweep(arguments);
    EXPECT_EQ(outcome.exit_code, code) << arguments;
    EXPECT_EQ(outcome.output, "weft-sweep: error: " + text + "\n") << arguments;
  };
  const std::string help = " (weft-sweep --help lists the flags)";
  expect("", 1, "expected a sweep in sweep, got no sweep/sweep.json");
  expect("--grid x=1", 2, "expected a program: weft-sweep … -- PROGRAM [its flags]" + help);
  expect("-- prog", 2, "expected --grid, --random, --bayes or --sweep, which give the values of flags" + help);
  expect("--grid x=1 --random y=2 -- prog", 2, "expected one of --grid, --random and --bayes, got several" + help);
  expect("--random x=1..2 -- prog {run}", 2, "--trials: expected the number of points of a search" + help);
  expect("--bayes x=1..2 --metric m -- prog {run}", 2, "--trials: expected the number of points of a search" + help);
  expect("--bayes x=1..2 --trials 3 -- prog {run}", 2, "--bayes: needs --metric, whose values it compares" + help);
  expect("--grid x=1 --min-iter 3 -- prog {run}", 2, "--min-iter: needs --metric, whose values it compares" + help);
  expect("--grid x=1 --eta 3 -- prog {run}", 2, "--eta: needs --min-iter" + help);
  expect("--grid x=1 --trials 3 -- prog", 2, "--trials: expected --random or --bayes, a grid has all points" + help);
  expect("--grid x=1 --sweep s.yaml -- prog", 2, "expected --sweep or --grid, --random, --bayes, got both" + help);
  expect("--grid x=1 --sbatch --time=5 -- prog {run}", 2, "--sbatch: needs --slurm" + help);
  expect("--grid x=1 --slurm --sbatch=hour --out " + out_ + "2 -- prog {run}", 2,
         "--sbatch: expected flags such as --time=60, got 'hour'" + help);
  expect("--grid x=1,2 --point 2 -- prog {run}", 2, "--point: expected a number below 2, got 2" + help);
  expect("--grid x=1 x=2 -- prog", 2, "x: expected each flag once, got it twice" + help);
  expect("--grid run=1 -- prog", 2, "run: expected another name, {run} is the folder of a run" + help);
  expect("--grid x=1 --goal low -- prog", 2, "--goal: unknown value 'low'. Known: min, max." + help);
  expect(
      "--grid x=1 -- prog", 2,
      "expected {run} in the command, which stands for the folder of a run: prog is not a program whose flag for it is "
      "known" +
          help);
  expect("--grid x=1 --out " + out_ + " -- /no/such/program {run}", 1,
         "cannot start /no/such/program: No such file or directory");
  expect("--grid x=1 --out " + out_ + " -- prog {run}", 1,
         out_ + " holds a sweep of another command (/no/such/program, {run}). Choose another --out");
  std::ofstream(out_ + "/sweep.json") << "[]";
  expect("--out " + out_, 1,
         out_ + "/sweep.json: expected a file of weft-sweep, got something else. Delete it to start over");
}

TEST_F(WeftSweep, ARealProgramsLearningRate) {
  const Outcome run =
      sweep("--grid lr=1e-6,0.05 --metric train_loss --out " + out_ + " -- " + TRAIN_IMAGE +
            " --data random:64x8x8x3 --model resnet8 --batch-size 32 --epochs 3 --device cpu --workers 0");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(ranking()["runs"][0]["values"]["lr"], "0.05");
  EXPECT_LT(ranking()["runs"][0]["last"], ranking()["runs"][1]["last"]);
}

// An untracked configuration, as the shipped default: the sweep makes its runs write the metric that ranks
// them.
TEST_F(WeftSweep, NerscsProgramsAreRankedByTheirValidationLoss) {
  if (!WEFT_HAVE_YAML || !WEFT_HAVE_ZIP) GTEST_SKIP() << "needs a build with yaml-cpp and libzip";
  std::ofstream(folder_ / "small.yaml") << "default:\n  num_samples: 4\n  img_size: 4\n  depth: 2\n  batch_size: 4\n"
                                           "  valid_batch_size: 4\n  max_epochs: 2\n";
  const Outcome run = sweep("--grid lr=1e-4,0.5 batch_size=2,4 --metric val_loss --out sweeps/lr/ -- " TRAIN_MULTI_GPU
                            " --yaml_config small.yaml --config default --device cpu");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("last val_loss"));
  EXPECT_TRUE(fs::exists(folder_ / "sweeps/lr/lr=1e-4,batch_size=2/sweeps/lr/0/wandb/metrics.jsonl"));
  EXPECT_THAT(read_text(folder_ / "sweeps/lr/lr=1e-4,batch_size=2/sweeps/lr/0/hyperparams.yaml"),
              HasSubstr("lr: 0.0001\n"));
}

TEST_F(WeftSweep, MnistIsRankedByItsTest) {
  write_part(folder_ / "data/MNIST/raw", "train", made_up(64, 1));
  write_part(folder_ / "data/MNIST/raw", "t10k", made_up(20, 2));
  const Outcome run = sweep("--grid lr=1e-9,1 --metric test_loss --out " + out_ +
                            " -- " MNIST " --data-dir data --epochs 1 --batch-size 8 --device cpu");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(ranking()["runs"][0]["values"]["lr"], "1");
}

// A line break in a path would begin a command of the batch script.
TEST_F(WeftSweep, ABatchScriptHoldsNoLineOfAPath) {
  const Outcome out = sweep("--slurm --grid x=1 --out 's\ntouch evil\n' -- " + program_ + " --out={run}");
  EXPECT_EQ(out.exit_code, 2) << out.output;
  EXPECT_THAT(out.output, HasSubstr("--out: expected a path without control characters"));
  const std::string odd = "'" + (folder_ / "a\nb") + "'";
  const Outcome folder = shell("mkdir " + odd + " && cd " + odd + " && " + WEFT_SWEEP + " --slurm --grid x=1 --out " +
                               out_ + " -- " + program_ + " --out={run}");
  EXPECT_EQ(folder.exit_code, 2) << folder.output;
  EXPECT_THAT(folder.output, HasSubstr("the working folder: expected a path without control characters"));
  const Outcome spaced = sweep("--slurm --grid x=1 --out 'my \"runs' -- " + program_ + " --out={run}");
  ASSERT_EQ(spaced.exit_code, 0) << spaced.output;
  EXPECT_THAT(spaced.output, HasSubstr("sbatch 'my \"runs/sweep.sbatch'"));
  EXPECT_THAT(spaced.output, HasSubstr("weft-sweep --out 'my \"runs' --rank"));
  EXPECT_THAT(read_text(folder_ / "my \"runs/sweep.sbatch"), HasSubstr("/my \\\"runs/slurm-%A_%a.log\" --open-mode"));
}

TEST_F(WeftSweep, ValuesAreNotExpandedAgain) {
  const Outcome run =
      sweep("--dry-run --grid 'x={run},{y}' --grid y=1 --out " + out_ + " -- " + program_ + " --x={x} --out={run}");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr(" '--x={run}' '--out="));
  EXPECT_THAT(run.output, HasSubstr(" '--x={y}' '--out="));
}

}  // namespace
}  // namespace weft::tests
