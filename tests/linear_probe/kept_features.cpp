// SPDX-License-Identifier: Apache-2.0
// Features in a file, and the evaluation on them, with the program started as its users do.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "data/image_writer.h"
#include "data/packed_images.h"
#include "io/file_reader.h"
#include "io/safetensors.h"
#include "tests/dist/child.h"
#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"
#include "train/exit.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

// 44 images: neither 16 nor two ranks of 8 divide them.
const std::string kKept =
    "--data random:44x32x32x3 --model vit_tiny4 --workers 1 --precision f32 -b 16 -e 1 -lr 1e-3 --phases probe "
    "--overwrite ";

struct Program {
  TemporaryFolder folder;
  std::string before;  ///< text in front of the program

  Outcome run(const std::string& arguments, const std::string& out = "run") const {
    return shell("OMP_WAIT_POLICY=passive " + before + " " LINEAR_PROBE " " + kKept + arguments + " --out " +
                 (folder / out));
  }
  Outcome run_on_two(const std::string& arguments, const std::string& out) const {
    return shell("OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 " WEFT_RUN " --nproc_per_node 2 " LINEAR_PROBE " " + kKept +
                 "-b 8 " + arguments + " --out " + (folder / out));
  }
  std::string file() const { return folder / "kept.safetensors"; }
  std::string keep() const { return "--cache-features " + file() + " "; }
  std::string classifier(const std::string& out = "run") const {
    return read_text(folder / (out + "/probe.safetensors"));
  }
};

void expect_error(const Outcome& run, int code, const std::string& text) {
  EXPECT_EQ(run.exit_code, code) << run.output;
  EXPECT_THAT(run.output, HasSubstr("linear_probe: error: " + text));
}

TEST(KeptFeatures, AFileChangesNotABitAndIsReadByTheNextRun) {
  const Program program;
  ASSERT_EQ(program.run("--cache-features off", "off").exit_code, 0);
  const Outcome first = program.run(program.keep(), "first");
  ASSERT_EQ(first.exit_code, 0) << first.output;
  EXPECT_THAT(first.output, HasSubstr("features " + program.file() + ": computed\n"));
  const std::string bytes = read_text(program.file());
  const Outcome second = program.run(program.keep(), "second");
  ASSERT_EQ(second.exit_code, 0) << second.output;
  EXPECT_THAT(second.output, HasSubstr("features " + program.file() + ": read, 44 + 44 images\n"));
  EXPECT_EQ(program.classifier("first"), program.classifier("off"));
  EXPECT_EQ(program.classifier("second"), program.classifier("off"));
  EXPECT_EQ(read_text(program.file()), bytes);
}

TEST(KeptFeatures, AreComputedAnewWhenTheyWouldBeOthers) {
  const Program program;
  ASSERT_EQ(program.run(program.keep()).exit_code, 0);
  const auto anew = [&](const std::string& arguments, const std::string& what) {
    const Outcome run = program.run(program.keep() + arguments);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("features " + program.file() +
                                      ": recomputed, because these changed since they were stored: " + what + "\n"));
    const std::string with_file = program.classifier();
    ASSERT_EQ(program.run("--cache-features off " + arguments).exit_code, 0);
    EXPECT_EQ(with_file, program.classifier()) << arguments;
  };
  anew("--seed 7", "the weights");
  anew("--seed 7 --resize 40", "the preprocessing");
  anew("--seed 7 --resize 40 --interpolation bicubic --precision bf16", "the preprocessing, the precision");
  anew("--seed 7 --data random:40x32x32x3", "the images, the preprocessing, the precision");
}

TEST(KeptFeatures, AreComputedAnewForOtherImagesInAFileOfTheSameName) {
  const Program program;
  const std::string file = program.folder / "images.packed";
  const auto images = [&](const char* image) {
    const auto writer = data::packed_writer(file, {"ants", "bees"});
    for (const char* part : {"train", "val"}) {
      writer->begin_part(part, 8);
      for (int i = 0; i < 8; ++i) writer->add(read_file(WEFT_GOLDEN_FOLDER + std::string(image)), i % 2);
    }
    writer->commit();
  };
  const auto says = [&](const std::string& text) {
    const Outcome run = program.run(program.keep() + "-b 4 --data packed:" + file);
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.output, HasSubstr("features " + program.file() + ": " + text));
  };
  images("/images/baseline.jpg");
  says("computed");
  says("read, 8 + 8 images");
  images("/images/grey.jpg");
  says("recomputed, because these changed since they were stored: the images\n");
}

TEST(KeptFeatures, AFileOfSomebodyElseIsLeftAlone) {
  const Program program;
  shell("echo mine > " + program.file());
  expect_error(program.run(program.keep()), 1,
               "--cache-features " + program.file() + ": expected features that linear_probe wrote, got another file");
  EXPECT_EQ(read_text(program.file()), "mine\n");

  shell("rm " + program.file());
  ASSERT_EQ(program.run(program.keep()).exit_code, 0);
  const std::string whole = read_text(program.file());
  shell("printf x | dd of=" + program.file() + " bs=1 seek=5000 conv=notrunc");
  ASSERT_NE(read_text(program.file()), whole);
  expect_error(program.run(program.keep()), 1, "--cache-features " + program.file());
  shell("truncate -s 5000 " + program.file());
  expect_error(program.run(program.keep()), 1, "--cache-features " + program.file());
}

TEST(KeptFeatures, PlacesThatCannotBeWritten) {
  const Program program;
  expect_error(program.run("--cache-features /nowhere/kept.safetensors"), 1, "--cache-features: ");
  expect_error(program.run("--cache-features yes"), 2,
               "--cache-features: expected auto, on, off or a file that ends in .safetensors, got 'yes'");
}

// The run has its features nevertheless. A limit on file sizes stands for the full disk.
TEST(KeptFeatures, AFullDiskDoesNotEndTheRun) {
  Program program;
  program.before = "trap '' XFSZ; ulimit -f 200;";  // blocks of 512 bytes, or of 1024 in bash
  const Outcome run = program.run("--data random:200x32x32x3 " + program.keep());
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("features " + program.file() + ": not kept: "));
  EXPECT_NE(shell("test -e " + program.file()).exit_code, 0);
}

#if WEFT_HAVE_RANKS
TEST(KeptFeatures, OfTwoRanksAreThoseOfOne) {
  const WithoutGpus on_the_cpu;
  const Program program;
  const Outcome written = program.run_on_two(program.keep() + "--parallel ddp", "written");
  ASSERT_EQ(written.exit_code, 0) << written.output;
  const Outcome read = program.run_on_two(program.keep() + "--parallel ddp", "read");
  ASSERT_EQ(read.exit_code, 0) << read.output;
  EXPECT_THAT(read.output, HasSubstr("read, 44 + 44 images"));
  EXPECT_EQ(program.classifier("read"), program.classifier("written"));
  const Outcome alone = program.run(program.keep(), "alone");
  EXPECT_THAT(alone.output, HasSubstr("read, 44 + 44 images"));

  shell("echo mine > " + program.file());
  const Outcome refused = program.run_on_two(program.keep(), "refused");
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.output, HasSubstr("expected features that linear_probe wrote"));
}

TEST(Evaluation, IsTheSameOnTwoRanks) {
  const WithoutGpus on_the_cpu;
  const Program program;
  ASSERT_EQ(program.run("--eval logreg --logreg-values 3 --logreg-iterations 40 " + program.keep(), "one").exit_code,
            0);
  const Outcome two =
      program.run_on_two("--eval logreg --logreg-values 3 --logreg-iterations 40 " + program.keep(), "two");
  ASSERT_EQ(two.exit_code, 0) << two.output;
  const auto summary = [&](const std::string& out) {
    return nlohmann::json::parse(read_text(program.folder / (out + "/summary.json")));
  };
  EXPECT_EQ(summary("one")["logreg_accuracy"], summary("two")["logreg_accuracy"]);
  EXPECT_EQ(summary("one")["logreg_c"], summary("two")["logreg_c"]);
}
#endif

TEST(Evaluation, ALogisticRegressionInThePlaceOfThePhases) {
  const Program program;
  const Outcome run = program.run("--eval logreg --logreg-values 6 --logreg-iterations 60");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, Not(HasSubstr("linear probe")));
  for (const char* c : {"1e-06", "0.000158489", "0.0251189", "3.98107", "630.957", "100000"})
    EXPECT_THAT(run.output, HasSubstr(std::string("logreg C ") + c + ": held-out accuracy "));
  EXPECT_THAT(run.output, HasSubstr(": validation accuracy "));
  const auto summary = nlohmann::json::parse(read_text(program.folder / "run/summary.json"));
  EXPECT_GT(summary["logreg_iterations"], 0);
  const StateDict classifier = read_safetensors(program.folder / "run/logreg.safetensors").state;
  EXPECT_EQ(classifier.tensor("weight").size(1), 192);
  EXPECT_EQ(classifier.tensor("bias").numel(), classifier.tensor("weight").size(0));

  const Outcome limited = program.run("--eval logreg --logreg-values 1 --logreg-iterations 2 --logreg-precision f32");
  EXPECT_THAT(limited.output, HasSubstr("logreg C 1: held-out accuracy"));
  EXPECT_THAT(limited.output, HasSubstr("2 iterations (the limit)"));
  expect_error(program.run("--eval knn"), 2, "--eval: ");
}

#if WEFT_HAVE_RANKS
TEST(LinearProbe, RanksWithOtherImagesAreNamed) {
  const TemporaryFolder folder;
  const Outcome run = shell("OMP_NUM_THREADS=1 " WEFT_RUN " --nproc_per_node 2 sh -c '" LINEAR_PROBE
                            " --data random:$((44 + RANK))x32x32x3 --model vit_tiny4 --workers 1 --out " +
                            (folder / "run") + "'");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("data: the set is not the same on all ranks: at entry 1 rank 0 has '44 images for "
                                    "training', rank 1 has '45 images for training'"));
}
#endif

TEST(Evaluation, StopsWhenASignalAsks) {
  const TemporaryFolder folder;
  const std::string long_run = "exec " LINEAR_PROBE " " + kKept +
                               "--eval logreg --logreg-values 1000 --logreg-iterations 100000 --out " +
                               (folder / "run");
  const auto stop = [&](int signal) {
    auto run = std::make_unique<dist::Child>(std::vector<std::string>{"sh", "-c", long_run});
    EXPECT_TRUE(run->prints("held-out accuracy")) << run->output();
    run->signal(signal);
    return run;
  };
  const auto interrupted = stop(SIGINT);
  EXPECT_EQ(interrupted->exit_code(), 1);
  EXPECT_THAT(interrupted->output(), HasSubstr("linear_probe: error: stopped by a signal after C "));
  const auto ended = stop(SIGTERM);
  EXPECT_EQ(ended->exit_code(), train::kExitRequeue);
  EXPECT_THAT(ended->output(), HasSubstr("SIGTERM outside of the training loop"));
}

}  // namespace
}  // namespace weft::tests
