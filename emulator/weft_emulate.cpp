// SPDX-License-Identifier: Apache-2.0
// weft-emulate [options] PROGRAM [arguments]: starts the program with our libcudart, libcuda and libnccl in front of
// the system's. The options travel as environment variables, so that ranks which the program starts are emulated too.
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "emulator/machine/gpu.h"
#include "emulator/machine/options.h"
#include "emulator/machine/time_table.h"
#include "emulator/machine/timeline.h"
#include "emulator/program_look.h"
#include "emulator/report.h"

namespace {

namespace fs = std::filesystem;

/// The folder of our libraries: beside this program where it was built or installed.
fs::path library_folder() {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& folder : {program / "../emulator/lib", program / "../" INSTALLED_LIBRARIES})
    if (fs::exists(folder / "libcudart.so.13")) return fs::canonical(folder);
  return {};
}

void set(const char* name, const std::string& value) {
  if (!value.empty()) setenv(name, value.c_str(), 1);
}

int print_ptx(const std::string& path, const emulator::Gpu& gpu) {
  const emulator::MappedFile file(path);
  if (!file.valid()) {
    std::cerr << "weft-emulate: cannot read " << path << '\n';
    return 2;
  }
  bool found = false;
  try {
    for (const emulator::cuda::Fatbin& binary : emulator::fat_binaries(file)) {
      const std::string text = binary.ptx_for(gpu.capability());
      std::cout << text;
      found = found || !text.empty();
    }
  } catch (...) {  // the error has been printed
    return 1;
  }
  if (!found)
    std::cerr << "weft-emulate: no PTX in " << path << " that a GPU of compute capability " << gpu.capability()
              << " can run\n";
  return found ? 0 : 1;
}

/// Predictions of the launches in a file of --time-table, a line each: kernel, seconds, limit.
int print_predictions(const std::string& path, const std::string& key, double overlap, double ghz) {
  namespace model = emulator::time_model;
  std::ifstream file(path);
  std::string text;
  if (!file) std::cerr << "weft-emulate: cannot read " << path << '\n';
  while (std::getline(file, text)) {
    model::TableLine line;
    if (!model::from_text(text, line)) {
      std::cerr << "weft-emulate: " << path << ": no line of --time-table: " << text << '\n';
      return 1;
    }
    const model::Chip* const chip = model::find_chip(key.empty() ? line.gpu : key);
    if (!chip) {
      std::cerr << "weft-emulate: the model of time has no figures of " << (key.empty() ? line.gpu : key) << '\n';
      return 1;
    }
    model::Constants constants{.ghz = ghz};
    if (overlap > 0) constants.overlap = overlap;
    const model::Prediction p = model::predict(*chip, line.work, constants);
    std::cout << line.kernel << '\t' << p.seconds << '\t' << model::name_of(p.limit);
    for (size_t k = 0; k < model::kLimits; ++k)
      std::cout << '\t' << model::name_of(static_cast<model::Limit>(k)) << '=' << p.cycles[k] / p.ghz * 1e-9;
    std::cout << '\n';
  }
  return file.eof() ? 0 : 1;
}

/// compute-sanitizer's tools, and the checks that see what they see. Barriers are checked always, as bounds are.
struct Tool {
  std::string_view name, check;
};
constexpr Tool kTools[] = {{"memcheck", "bounds"}, {"synccheck", "bounds"}, {"racecheck", "races"}, {"initcheck", "uninitialised"}};

volatile pid_t started = 0;

/// Sends the program a signal that was sent to this process alone; the terminal sends its own to both.
void forward(int signal, siginfo_t* info, void*) {
  if (started > 0 && info->si_code <= 0) kill(started, signal);
}

/// Starts the program, waits for its end and writes the report. Returns the program's exit code, 128 + N after signal N.
int run_and_report(std::vector<char*>& words, const fs::path& report) {
  const auto fails = [&](const fs::path& name) {
    std::cerr << "weft-emulate: cannot write " << name.string() << ": " << std::strerror(errno) << '\n';
    return 2;
  };
  if (!std::ofstream(report, std::ios::app)) return fails(report);  // before the program has run
  std::string lines = fs::absolute(report).string() + ".XXXXXX";
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);  // until the handlers are there
  const int file = mkstemp(lines.data());
  if (file < 0) return fails(lines);
  close(file);
  set("WEFT_EMULATE_REPORT", lines);
  const auto gives_up = [&](const char* what) {
    std::cerr << "weft-emulate: cannot " << what << ' ' << words[0] << ": " << std::strerror(errno) << '\n';
    fs::remove(lines);
    return 2;
  };
  const pid_t child = fork();
  if (child < 0) return gives_up("start");
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execvp(words[0], words.data());
    std::cerr << "weft-emulate: cannot start " << words[0] << ": " << std::strerror(errno) << '\n';
    _exit(127);
  }
  started = child;
  struct sigaction action {};
  action.sa_sigaction = forward;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2}) sigaction(signal, &action, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return gives_up("wait for");
  std::vector<emulator::Reported> findings = emulator::read_reported(lines);
  if (WIFSIGNALED(status))
    findings.push_back({"end", "the program was ended by signal " + std::to_string(WTERMSIG(status))});
  else if (WEXITSTATUS(status) == 127)
    findings.push_back({"end", "the program could not be started, or ended with exit code 127"});
  std::ofstream out(report);
  out << emulator::report_text(report, words[0], findings);
  out.close();
  if (!out) return fails(report);
  fs::remove(lines);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Runs a CUDA program, or a script or test runner that starts some, on an emulated GPU. Programs must hold PTX\n"
      "(nvcc -gencode arch=compute_90a,code=compute_90a or -arch=compute_80). Findings end them with exit code 86.",
      "weft-emulate"};
  std::string gpu, gpus, report, exit_code, memory, streams, check, seed, threads, break_at, ptx, profile, waves, time_table, time_known,
      time_of;
  std::string trace, cluster;
  bool count = false, time = false, allow_none = false, no_preload = false;
  double overlap = 0, clock = 0;
  app.add_option("--gpu", gpu, "Which GPU: " + std::string(emulator::gpu_keys()) + " (default h100)");
  app.add_option("--gpus", gpus, "How many of it (default 1)");
  app.add_option("--memory", memory, "MiB of each GPU, at most what this machine has (default: as the model)");
  app.add_option(
      "--streams", streams,
      "The order of work in streams: inorder (default), lazy (nothing runs before it is waited for), "
      "random (by --seed), starve:K (stream K as late as lazy), queues:N (streams share N hardware queues, or "
      "as many as CUDA_DEVICE_MAX_CONNECTIONS says)");
  app.add_option("--check", check,
                 "What is checked besides bounds: races, uninitialised, streams, with commas between, or all");
  std::vector<std::string> tools;
  app.add_option("--tool", tools,
                 "compute-sanitizer's name of a check: memcheck and synccheck (always on), racecheck (races), initcheck "
                 "(uninitialised)")
      ->allow_extra_args(false);
  app.add_option("--error-exitcode", exit_code, "Exit code of a program with findings (default 86)");
  app.add_option("--report", report,
                 "Write the findings of the program and of those it starts to this file when it ends: FILE.sarif, FILE.xml "
                 "(JUnit) or FILE.json");
  app.add_option("--seed", seed, "Order of streams, blocks, warps and asynchronous copies; 0 (default): fixed orders");
  app.add_option("--threads", threads, "Threads of this machine that run blocks (default: all processors)");
  app.add_option("--break", break_at, "KERNEL or KERNEL:LINE: print the registers of the first warp that comes there");
  app.add_option("--ptx", ptx,
                 "Print the PTX in this program, library or object that the GPU would run, and run nothing");
  app.add_flag("--count", count, "Print at the end what each kernel cost: time, launches, instructions");
  app.add_option("--profile", profile,
                 "Write what each instruction cost to this file, as JSON: tools/weft-lab shows it");
  app.add_flag("--time", time, "Print at the end how long each kernel would take on the GPU, and what limits it");
  app.add_option(
      "--time-waves", waves,
      "With --time: run only so many waves of resident blocks of each launch, from its middle, and scale the counts; "
      "the program's results are wrong then: tensor cores multiply nothing, TMA brings no bytes, and equal launches "
      "run once");
  app.add_option("--time-table", time_table,
                 "With --time: append counts and predictions to this file, a launch a line");
  app.add_option("--time-known", time_known,
                 "With --time-waves: launches that this file has counts of do not run; others are added to it");
  app.add_option("--time-trace", trace, "With --time: write the predicted clock of kernels and collectives to this file, for chrome://tracing");
  app.add_option("--cluster", cluster,
                 "With --time: the links between GPUs, " + emulator::collective_time::cluster_keys() +
                     " (default: a node that has this GPU)");
  app.add_option("--time-of", time_of, "Predict the launches in a file of --time-table once more, and run nothing");
  app.add_option("--overlap", overlap, "With --time-of: the model's constant, instead of the fitted one");
  app.add_option("--clock", clock, "With --time-of: GHz of the SMs, where they were measured");
  app.add_flag("--allow-none", allow_none,
               "Say nothing of a PROGRAM that links no CUDA library, a launcher for example");
  app.add_flag("--no-preload", no_preload,
               "Preload nothing into what a PROGRAM without CUDA starts: for runners of programs that a sanitizer is linked "
               "into; those with CUDA's runtime inside do not run then");
  app.prefix_command();  // all after the first word that is no option belongs to the program
  CLI11_PARSE(app, argc, argv);
  if (!time_of.empty()) return print_predictions(time_of, gpu, overlap, clock);
  set("WEFT_EMULATE_GPU", gpu);
  setenv("WEFT_EMULATE_GPU", "h100", 0);  // always there: programs look for this variable to detect emulation
  set("WEFT_EMULATE_GPUS", gpus);
  set("WEFT_EMULATE_MEMORY", memory);
  set("WEFT_EMULATE_STREAMS", streams);
  for (const std::string& tool : tools) {
    const auto found = std::find_if(std::begin(kTools), std::end(kTools), [&](const Tool& one) { return one.name == tool; });
    if (found == std::end(kTools)) {
      std::cerr << "weft-emulate: --tool: expected memcheck, racecheck, initcheck or synccheck, got '" << tool << "'\n";
      return 2;
    }
    check += (check.empty() ? "" : ",") + std::string(found->check);
  }
  if (!report.empty() && !emulator::is_report_name(report)) {
    std::cerr << "weft-emulate: --report: expected a name that ends in .sarif, .xml or .json, got '" << report << "'\n";
    return 2;
  }
  set("WEFT_EMULATE_CHECK", check);
  set("WEFT_EMULATE_ERROR_EXITCODE", exit_code);
  set("WEFT_EMULATE_SEED", seed);
  set("WEFT_EMULATE_THREADS", threads);
  set("WEFT_EMULATE_BREAK", break_at);
  if (!profile.empty()) set("WEFT_EMULATE_PROFILE", fs::absolute(profile).string());
  if (count) set("WEFT_EMULATE_COUNT", "1");
  if (time || !waves.empty() || !time_table.empty() || !trace.empty()) set("WEFT_EMULATE_TIME", "1");
  if (!trace.empty()) {
    trace = fs::absolute(trace).string();
    if (!std::ofstream(trace)) {  // empties it: the program's processes add to it
      std::cerr << "weft-emulate: cannot write " << trace << ": " << std::strerror(errno) << '\n';
      return 2;
    }
    set("WEFT_EMULATE_TIME_TRACE", trace);
  }
  set("WEFT_EMULATE_CLUSTER", cluster);
  set("WEFT_EMULATE_TIME_WAVES", waves);
  if (!time_table.empty()) set("WEFT_EMULATE_TIME_TABLE", fs::absolute(time_table).string());
  if (!time_known.empty()) set("WEFT_EMULATE_TIME_KNOWN", fs::absolute(time_known).string());
  const emulator::Options& chosen = emulator::options();  // a wrong word ends here, before the program starts
  emulator::timeline::cluster();
  if (!ptx.empty()) return print_ptx(ptx, *chosen.gpu);
  std::vector<std::string> program = app.remaining();
  if (program.empty() || program[0].starts_with("-")) {
    std::cerr << "weft-emulate: " << (program.empty() ? "expected a PROGRAM" : "unknown option " + program[0])
              << "; weft-emulate --help lists the options\n";
    return 2;
  }

  const fs::path folder = library_folder();
  if (folder.empty()) {
    std::cerr
        << "weft-emulate: libcudart.so.13 of the emulator is not beside this program: expected ../emulator/lib or "
           "../lib/weft-emulate\n";
    return 2;
  }
  const std::string file = emulator::found_on_path(program[0]);
  if (const std::string text = emulator::objection(file, *chosen.gpu); !text.empty()) {
    std::cerr << "weft-emulate: " << text << '\n';
    return 2;
  }
  const bool no_cuda = emulator::uses_no_cuda(file);
  if (!allow_none && no_cuda)
    std::cerr << "weft-emulate: " << program[0]
              << " links no CUDA library: only CUDA programs that it starts are emulated (--allow-none: "
              << "do not say so)\n";

  const auto in_front = [](const char* variable, const std::string& value) {
    const char* const others = std::getenv(variable);
    setenv(variable, (value + (others && *others ? ":" + std::string(others) : "")).c_str(), 1);
  };
  in_front("LD_LIBRARY_PATH", folder.string());
  // static_runtime/audit.cpp leads the runtime inside a program, or in what a script may load, to the emulator's. It makes
  // NVRTC give PTX in place of machine code.
  const int inside = emulator::runtime_inside(file);
  const bool scripts = emulator::is_interpreter(file) || (!no_preload && no_cuda);
  // A loader by full paths, as Python's wheels have one, takes a library that is there already: nvJitLink's too.
  const auto preload = [&](const char* library, int version) {
    in_front("LD_PRELOAD", (folder / (library + std::to_string(version))).string());
  };
  for (const int version : {12, 13}) {
    if (scripts || inside == version) preload("libcudart.so.", version);
    if (scripts) preload("libnvJitLink.so.", version);
  }
  // CuPy and Triton: PTX in place of machine code; none of CuPy's own kernels, which are machine code.
  if (scripts) {
    setenv("CUPY_COMPILE_WITH_PTX", "1", 0);
    setenv("CUPY_ACCELERATORS", "", 0);
    for (const char* variable : {"TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"})
      setenv(variable, (folder / "triton_ptxas").c_str(), 0);
  }
  if (scripts || inside != 0 || emulator::names_nvrtc(file)) in_front("LD_AUDIT", (folder / "libweft_static_runtime.so").string());

  std::vector<char*> words;
  for (std::string& word : program) words.push_back(word.data());
  words.push_back(nullptr);
  if (!report.empty()) return run_and_report(words, report);
  execvp(words[0], words.data());
  std::cerr << "weft-emulate: cannot start " << program[0] << ": " << std::strerror(errno) << '\n';
  return 127;
}
