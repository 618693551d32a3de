#!/usr/bin/env python3
"""All checks of gemmc, stage by stage, with a count at the end. Called by utils/test, which installs what is missing.

A stage adds to a `Tally`; one that raises or whose command fails counts as a failure and shows the end of its log.
Logs and reports are under build/checks. The last line of the output is `N passed, N failed, N skipped`."""
import argparse
import collections
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
SANITIZED = ROOT / "build-sanitize"
REPORTS = BUILD / "checks"
JOBS = os.cpu_count() or 1
FUZZ_SECONDS = 5
RANDOM_SPECS = 300
MUTANTS = 120  # of the full table: utils/mutate


class Tally:
    """What a stage, or all of them, found."""

    def __init__(self):
        self.passed = 0
        self.failed = []  # names
        self.skipped = collections.Counter()  # reason -> count

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        return f"{self.passed} passed, {len(self.failed)} failed, {self.skipped.total()} skipped"


class Stage:
    """One stage at work: runs commands into its log, counts into its tally."""

    def __init__(self, name):
        self.name, self.tally, self.note = name, Tally(), ""
        self.log = REPORTS / f"{name}.log"
        self.log.write_bytes(b"")

    def run(self, *command, seconds=900, **environment):
        """Runs a command with its output in the log; True when it exits 0."""
        start = self.log.stat().st_size
        with open(self.log, "ab") as log:
            log.write(f"$ {' '.join(map(str, command))}\n".encode())
            log.flush()
            try:
                done = subprocess.run([str(word) for word in command], stdout=log, stderr=subprocess.STDOUT, cwd=ROOT,
                                      env=os.environ | {key: str(value) for key, value in environment.items()},
                                      stdin=subprocess.DEVNULL, timeout=seconds).returncode
            except subprocess.TimeoutExpired:
                log.write(f"\nstopped: it took more than {seconds} s\n".encode())
                done = "timeout"
        self.output = self.log.read_bytes()[start:].decode(errors="replace")
        return done == 0

    def expect(self, name, *command, **options):
        """A command that is one check."""
        good = self.run(*command, **options)
        if good:
            self.tally.passed += 1
        else:
            self.fail(name)
        return good

    def fail(self, name):
        self.tally.failed.append(f"{self.name}: {name}")

    def skip(self, reason, count=1):
        self.tally.skipped[reason] += count


class NotBuilt(Exception):
    """The build that a stage tests failed; that failure is told once."""


# ---- stages ----------------------------------------------------------------------------------------------------------


def includes(stage):
    stage.expect("rooms include only what docs/design.md allows", "utils/check-includes")
    stage.expect("that check can fail", "utils/check-includes", "--self-test")
    stage.expect("sections that comments and pages name exist", "utils/check-titles")
    stage.expect("that check can fail", "utils/check-titles", "--self-test")


def format_(stage):
    for tool in ("clang-format-19", "/usr/lib/llvm-19/bin/clang-format"):
        if shutil.which(tool):
            if not stage.run(tool, "--dry-run", "-Werror", *git_files("*.cpp", "*.h")):
                files = sorted(set(re.findall(r"^([^:\s]+):\d+:\d+: error", stage.output, re.M)))
                stage.fail(f"{len(files)} files to format (run utils/format): {' '.join(files)}")
                stage.log.write_text("")
            else:
                stage.tally.passed += 1
            return
    stage.skip("no clang-format-19 on PATH")


def build(stage):
    configure(stage, BUILD)
    make(stage, BUILD)
    (BUILD / "diagnostics.txt").unlink(missing_ok=True)


def unit(stage):
    (BUILD / "diagnostics.txt").unlink(missing_ok=True)
    unit_tests(stage, BUILD)


def lit(stage):
    lit_tests(stage, BUILD)


def diagnostics(stage):
    """After unit and lit: every row of the tables of diagnostics was produced by a test."""
    need(BUILD)
    stage.expect("every diagnostic is produced by a test", "test/diag_coverage.py", "--build", BUILD)


def specs(stage):
    """Random valid specs: compile, assemble, emulate bit-exact."""
    random_specs(stage, RANDOM_SPECS, BUILD)


def mutants(stage):
    """A sample of kernels with one mistake each: `gemmc check` must notice all that are mistakes (docs/detection.md)."""
    need(BUILD)
    stage.expect("docs/rules.md and the tests of rules", "utils/rules-page", "--check")
    stage.expect("all mutants of our kernels are noticed", "utils/mutate", "--gemmc", BUILD / "bin" / "gemmc", "--sample",
                 MUTANTS)
    if rate := re.search(r"\d+ of the \d+ that are mistakes are detected", stage.output):
        stage.note = rate[0]


def package(stage):
    """Installs into a scratch folder and builds users of the CMake package against it."""
    need(BUILD)
    prefix, user = REPORTS / "prefix", REPORTS / "package-user"
    shutil.rmtree(prefix, ignore_errors=True)
    shutil.rmtree(user, ignore_errors=True)
    stage.expect("install", "cmake", "--install", BUILD, "--prefix", prefix)
    for project in ["test/package/CMakeLists.txt", "test/launches/CMakeLists.txt", *git_files("examples/*CMakeLists.txt")]:
        source = (ROOT / project).parent
        name = source.name
        good = stage.expect(f"configure {name}", "cmake", "-G", "Ninja", "-S", source, "-B", user / name,
                            f"-DCMAKE_PREFIX_PATH={prefix}")
        good = good and stage.expect(f"build {name}", "ninja", "-C", user / name)
        if good:
            ran = stage.expect(f"run {name}", "ctest", "--test-dir", user / name, "--output-on-failure",
                               "--no-tests=error")
            if ran and "***Skipped" in stage.output:
                stage.tally.passed -= 1
                stage.skip(f"{name}: no GPU")


def sanitize_build(stage):
    """ASan + UBSan + coverage for the fuzzers in one build, with clang, which also proves that clang compiles it."""
    clang = find_clang()
    configure(stage, SANITIZED, f"-DCMAKE_CXX_COMPILER={clang}", "-DCMAKE_BUILD_TYPE=Release",
              "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -gline-tables-only", "-DGEMMC_SANITIZE=ON", "-DGEMMC_FUZZ=ON",
              "-DGEMMC_INSTALL=OFF")
    make(stage, SANITIZED)


def sanitize_unit(stage):
    unit_tests(stage, SANITIZED)


def sanitize_lit(stage):
    lit_tests(stage, SANITIZED, "--param", "sanitizer=1")


def fuzz(stage):
    """Each fuzzer for a few seconds, from seeds that the test files give."""
    need(BUILD)
    need(SANITIZED)
    fuzzers = sorted((ROOT / "test" / "fuzz").glob("*Fuzzer.cpp"))
    for source in fuzzers:
        name = source.stem
        corpus, seeds = REPORTS / "corpus" / name, REPORTS / "seeds" / name
        shutil.rmtree(corpus, ignore_errors=True)
        corpus.mkdir(parents=True)
        collect_seeds(stage, name, seeds)
        good = stage.expect(name, SANITIZED / "bin" / name, f"-max_total_time={FUZZ_SECONDS}", "-timeout=5",
                            "-rss_limit_mb=1024", f"-max_len={SEED_BYTES}", "-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={REPORTS}/",
                            corpus, seeds, ROOT / "test" / "fuzz" / "regressions", seconds=120, **sanitizer_options())
        runs = re.search(r"number_of_executed_units: (\d+)", stage.output)
        if good and (not runs or int(runs[1]) < 10):
            stage.fail(f"{name} made no runs")


STAGES = [includes, format_, build, unit, lit, diagnostics, specs, mutants, package, sanitize_build, sanitize_unit,
          sanitize_lit, fuzz]


def stage_name(function):
    return function.__name__.strip("_").replace("_", "-")


# ---- what the stages share -------------------------------------------------------------------------------------------


def git_files(*patterns):
    """Tracked files, and new ones that git does not ignore."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], cwd=ROOT, text=True,
                            capture_output=True, check=True).stdout.split("\n")
    return [name for name in listed if name and (ROOT / name).exists()]


def configure(stage, folder, *options):
    """A new folder builds several sources at a time; one that is there keeps what it has, for who works in it builds
    after each change."""
    whole = [] if (folder / "CMakeCache.txt").exists() else ["-DGEMMC_UNITY=ON"]
    stage.expect("configure", "cmake", "-G", "Ninja", "-S", ".", "-B", folder, "-DGEMMC_TESTS=ON", "-DGEMMC_PCH=ON",
                 *whole, *options)


def make(stage, folder):
    """Builds all, and leaves a mark that the stages which need it look for."""
    mark = folder / "checks-built"
    mark.unlink(missing_ok=True)
    if stage.expect("build", "ninja", "-k", 0, "-C", folder, seconds=2400):
        mark.touch()


def need(folder):
    if not (folder / "checks-built").exists():
        raise NotBuilt(f"no complete build in {folder.name} (stages build, sanitize-build)")


def find_clang():
    for version in (19, 20, 18, 17):
        clang = f"/usr/lib/llvm-{version}/bin/clang++"
        if os.path.exists(clang):
            return clang
    return shutil.which("clang++") or "clang++"


def sanitizer_options(more=""):
    # LLVM's own allocators poison memory in instrumented code only; the distribution's libLLVMSupport.a is not.
    return {"ASAN_OPTIONS": "allow_user_poisoning=0:detect_leaks=1:abort_on_error=0" + more,
            "UBSAN_OPTIONS": "print_stacktrace=1"}


def unit_tests(stage, build_folder):
    """ctest runs a binary per room; GoogleTest's XML reports give the single tests (its JSON lacks the
    reason of a skip before 1.13)."""
    need(build_folder)
    reports = REPORTS / f"{stage.name}-reports"
    shutil.rmtree(reports, ignore_errors=True)
    good = stage.run("ctest", "--test-dir", build_folder, "-j", JOBS, "--output-on-failure", "--no-tests=error",
                     "--timeout", 600, GTEST_OUTPUT=f"xml:{reports}/", **sanitizer_options())
    before = len(stage.tally.failed)
    for report in sorted(reports.glob("*.xml")):
        for test in xml.etree.ElementTree.parse(report).iter("testcase"):
            skipped = test.find("skipped")
            if test.get("result") == "skipped":
                message = "" if skipped is None else skipped.get("message", "")
                stage.skip((message.strip().splitlines() or ["no reason given"])[-1])
            elif test.find("failure") is not None:
                stage.fail(f"{test.get('classname')}.{test.get('name')}")
            elif test.get("result") == "completed":
                stage.tally.passed += 1
    if not good and len(stage.tally.failed) == before:
        stage.fail("a test binary ended without a report (see the log)")


def lit_tests(stage, build_folder, *options):
    need(build_folder)
    report, skips = REPORTS / f"{stage.name}.json", REPORTS / f"{stage.name}.skips"
    report.unlink(missing_ok=True)
    skips.write_text("")
    # Frames that outlive their call are half of what an emulated kernel costs under the sanitizer. The unit tests, which
    # walk each room, and the fuzzers look for uses of them.
    environment = sanitizer_options(":detect_stack_use_after_return=0")
    good = stage.run("utils/lit", "-v", "-j", JOBS, "--order=lexical", f"--param=build={build_folder}", *options, "-o",
                     report, "test/lit", GEMMC_SKIP_LOG=skips, seconds=1200, **environment)
    before = len(stage.tally.failed)
    for test in json.loads(report.read_text())["tests"] if report.exists() else []:
        if test["code"] in ("PASS", "XFAIL", "FLAKYPASS"):
            stage.tally.passed += 1
        elif test["code"] in ("UNSUPPORTED", "SKIPPED", "EXCLUDED"):
            stage.skip(lit_reason(test["output"]))
        else:
            stage.fail(test["name"])
    for line in skips.read_text().splitlines():
        stage.skip(line.split("\t")[0])
    if not good and len(stage.tally.failed) == before:
        stage.fail("lit (see the log)")


def lit_reason(output):
    if missing := re.search(r"(?:unavailable features|requires the following unavailable features): (.*)", output):
        return {"ptxas": "no ptxas on PATH", "gpu": "no GPU"}.get(missing[1].strip(), f"needs {missing[1].strip()}")
    if present := re.search(r"does not support the following features and/or targets: (.*)", output):
        return f"not for this build: {present[1].strip()}"
    return "unsupported"


def random_specs(stage, count, build_folder):
    need(build_folder)
    report = REPORTS / "random-specs.json"
    report.unlink(missing_ok=True)
    good = stage.run("utils/random-specs", "--count", count, "--jobs", JOBS, "--build", build_folder, "--json", report,
                     seconds=900)
    if not report.exists():
        stage.fail("utils/random-specs (see the log)")
        return
    result = json.loads(report.read_text())
    stage.tally.passed += result["passed"]
    for failure in result["failed"]:
        stage.fail(failure)
    for reason, skipped in result["skipped"].items():
        stage.skip(reason, skipped)
    if good != (not result["failed"]):
        stage.fail("utils/random-specs: its exit code and its report disagree")


# fuzzer -> which test files are seeds, and which output of the compiler on some examples
SEEDS = {"PtxFuzzer": (".ptx", "ptx"), "SpecFuzzer": (".yaml", "plan"), "TileFuzzer": (".tile", "tile"),
         "ExprFuzzer": (".expr", None)}
SEED_BYTES = 16384


def collect_seeds(stage, fuzzer, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    suffix, emit = SEEDS.get(fuzzer, (None, None))
    for number, name in enumerate(git_files("test/lit", "examples", "ptx_templates", "test/fuzz/seeds")):
        path = ROOT / name
        if path.suffix == suffix and path.stat().st_size <= SEED_BYTES:
            shutil.copy(path, folder / f"{number}-{path.name}")
    for spec in sorted((ROOT / "examples" / "specs").glob("*.yaml"))[::8] if emit else ():
        output = folder / f"{spec.stem}{suffix}"
        stage.run(BUILD / "bin" / "gemmc", "compile", spec, f"--emit={emit}", "-o", output)
        if output.exists() and output.stat().st_size > SEED_BYTES:
            output.unlink()


# ---- the run ---------------------------------------------------------------------------------------------------------


def run_stage(function):
    name = stage_name(function)
    stage = Stage(name)
    print(f"{name:<15}", end=" ", flush=True)
    start = time.monotonic()
    try:
        function(stage)
    except NotBuilt as error:
        stage.fail(f"not run: {error}")
    except Exception as error:  # a broken stage is a failed check, and the other stages still run
        stage.fail(f"{type(error).__name__}: {error}")
    note = f" ({stage.note})" if stage.note else ""
    print(f"{time.monotonic() - start:6.1f} s  {stage.tally}{note}", flush=True)
    for failure in stage.tally.failed:
        print(f"  FAILED {failure}")
    if stage.tally.failed:
        tail = stage.log.read_text(errors="replace").splitlines()[-60:]
        print(f"  the end of {stage.log.relative_to(ROOT)}:")
        print("".join(f"    {line}\n" for line in tail), end="", flush=True)
    return stage.tally


def alone(parser):
    """Two runs in one checkout would write over each other's files. Returns what must stay open; ends the second run."""
    lock = open(REPORTS / "lock", "a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        parser.exit(2, f"utils/test: process {lock.read() or '?'} runs checks in this checkout already and would be disturbed; "
                       "wait for it or stop it (another checkout or worktree has its own)\n")
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def main():
    parser = argparse.ArgumentParser(prog="utils/test", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = {stage_name(function): function for function in STAGES}
    parser.add_argument("--list", action="store_true", help="print the stages")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="run only these: " + " ".join(names))
    args = parser.parse_args()
    if unknown := [name for name in args.stages if name not in names]:
        parser.error(f"no stage {unknown[0]}; there are: {' '.join(names)}")
    if args.list:
        print("\n".join(names))
        return 0
    REPORTS.mkdir(parents=True, exist_ok=True)
    lock = alone(parser)
    start, total = time.monotonic(), Tally()
    for name in args.stages or names:
        total.add(run_stage(names[name]))
    print(f"\n{time.monotonic() - start:.0f} s on {JOBS} cores")
    for failure in total.failed:
        print(f"FAILED {failure}")
    for reason, count in total.skipped.most_common():
        print(f"skipped {count}: {reason}")
    print(total)
    lock.close()
    return 1 if total.failed else 0


sys.exit(main())
