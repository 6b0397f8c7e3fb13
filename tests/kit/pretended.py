# SPDX-License-Identifier: Apache-2.0
"""A GoogleTest program that is told what each of its tests does."""
import sys

PROGRAM = r'''#!{python} -B
import fnmatch, os, signal, subprocess, sys, time
TESTS = {tests!r}
flags = dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)
patterns = flags.get("gtest_filter", "*").split(":")
chosen = [test for test in TESTS if any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns)]
if "--gtest_list_tests" in sys.argv:
    print("Running main() from a pretended program")
    for suite in dict.fromkeys(test.split(".")[0] for test in chosen):
        print(suite + ".")
        for test in chosen:
            if test.startswith(suite + "."):
                print("  " + test.split(".", 1)[1] + ("  # GetParam() = x" if "/" in test else ""))
    sys.exit()
broken, status = False, 0
with open({log!r}, "a") as log:
    print(len(chosen), os.environ.get("WEFT_SYNC", ""), os.environ.get("WEFT_TEST_DEVICES", ""), file=log)
for test in chosen:
    what = "fail" if broken else TESTS[test]
    print("[ RUN      ] " + test, flush=True)
    if what in ("fail", "sticky"):
        broken = broken or what == "sticky"
        print("x.cpp:7: Failure" + ("\ncudaMemcpyAsync: an illegal memory access was encountered" if broken else ""))
        print("relu failed on cuda:0 (WEFT_SYNC=1)" if os.environ.get("WEFT_SYNC") else "raised by earlier work")
    if what == "crash":
        print("about to crash", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "orphan":  # ends, and a child keeps its output open
        subprocess.Popen(["sleep", "30"])
        os._exit(3)
    if what == "hang":
        print("no answer", flush=True)
        time.sleep(300)
    if what == "slow":
        time.sleep(0.3)
    if what == "flaky" and not os.environ.get("WEFT_SYNC"):
        what = "fail"
    word = {{"fail": "  FAILED  ", "sticky": "  FAILED  ", "skip": "  SKIPPED "}}.get(what, "       OK ")
    status |= word == "  FAILED  "
    last = what
    print(f"[{{word}}] {{test}}{{', where GetParam() = x' if 'F' in word and '/' in test else ''}} (3 ms)", flush=True)
if chosen and last == "crash at the end":
    os.kill(os.getpid(), signal.SIGSEGV)
if chosen and last == "hang at the end":
    time.sleep(300)
sys.exit(status)
'''


def googletest(path, tests, log):
    """Writes a program whose `tests` ({'Suite.Name': what}) pass, skip, fail, crash, hang, …; `log` gets a line per process: the
    number of its tests, WEFT_SYNC and WEFT_TEST_DEVICES."""
    path.write_text(PROGRAM.format(python=sys.executable, tests=tests, log=str(log)))
    path.chmod(0o755)
