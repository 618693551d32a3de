# What the scripts of utils/ cannot do is refused in a line that says so, with exit code 2, before anything is done: never
# a trace of Python's stack, never a check that passes on nothing.
#   refusals.py ROOT GEMMC FOLDER     FOLDER is made anew
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

root, gemmc, folder = map(pathlib.Path, sys.argv[1:])
FILES = {"binary": b"\xff\xfe\x00", "text": b"what is this\n", "object": b"{}\n", "list": b"[]\n", "name": b'{"name": 3}\n',
         "spec.yaml": b"problem: {m: 8, n: 8, k: 8}\n", "block.yaml": b"problems:\n  - name: one\n",
         "half.yaml": b"problems:\n  - {name: one, problem: {m: 8}}\n", "empty": b"",
         "lines": b'{"name": "one", "report": {"gemmc": {"name": "gemmc", "median_us": 0}, "also": [], "cublaslt": []}}\n'}
BUILD, GEMMC = ["--build", str(gemmc.parent.parent)], ["--gemmc", str(gemmc)]
CASES = []


def refused(script, *cases, before=(), after=()):
    """Cases are words, and what is said of them."""
    CASES.extend((script, [*before, *words.split(), *after], told) for words, told in cases)


RESULTS = [("folder", "`folder` is a folder: name a file"), ("binary", "binary is no text"), ("text", "text:1: no result of"),
           ("object", "object:1: no result of"), ("list", "list:1: no result of"), ("name", "name:1: no result of"),
           ("lines", "lines:1: no result of"), ("gone", "`gone` does not exist")]
SUITES = [("folder", "`folder` is a folder: name a file"), ("binary", "binary is no text"), ("gone", "`gone` does not exist"),
          ("spec.yaml", "spec.yaml has no problems"), ("block.yaml", "block.yaml:2: a suite has a problem a line"),
          ("half.yaml", "half.yaml:2: a suite has a problem a line")]
JOBS = [(f"--jobs {number}", f"`{number}` is less than 1") for number in (0, -1)]
refused("race-builds", *RESULTS, before=["report"])
refused("race-kernels", *RESULTS, before=["report"])
refused("race-kernels", *RESULTS, before=["judge"], after=["folder", *GEMMC])
refused("race-kernels", ("empty text", "`text` is a file: name a folder"), before=["judge"])
refused("race-builds", *SUITES, before=["prepare", str(gemmc)], after=["made", *GEMMC])
refused("race-builds", ("spec.yaml text/made", "`text` is a file"), before=["prepare", str(gemmc)], after=GEMMC)
refused("race-kernels", *SUITES, before=["choose"], after=["made", *GEMMC])
refused("plot-suite", *RESULTS, after=["made.svg"])
refused("plot-suite", ("empty folder", "`folder` is a folder"), ("empty gone/x", "there is no folder `gone`"))
refused("suite-check", *((f"--suite {name}", told) for name, told in SUITES), *JOBS, after=BUILD)
refused("suite-check", ("--only large --only zzz", "`zzz`: no problem has it in its name or class"),
        ("--only [", "`[` is no regular expression"), after=BUILD)
refused("suite-check", ("--build folder", "folder/bin/gemmc is missing: build it first"))
refused("random-specs", *JOBS, ("--count 0", "`0` is less than 1"), ("--count -1", "`-1` is less than 1"),
        ("--check --schedules 0", "`0` is less than 1"), ("--json folder", "`folder` is a folder"), after=BUILD)
refused("random-specs", ("--build folder", "folder/bin/gemmc is missing"))
refused("random-orders", ("--count 0", "`0` is less than 1"), ("--count 1 --schedules 0", "`0` is less than 1"),
        ("--schedules 1000001", "`1000001` is more than 1000000"), ("--only 1 --keep text", "`text` is a file"), after=GEMMC)
refused("random-orders", ("--gemmc gone", "`gone` is no program"), ("--gemmc folder", "`folder` is no program"))
refused("gpu-check", *JOBS, ("--only zzz", "`zzz`: no problem has it"), ("--suite spec.yaml", "has no problems"), after=BUILD)
refused("gpu-check", ("--build folder", "folder/bin/gemmc is missing"))
refused("mutate", *JOBS, ("--sample -1", "`-1` is less than 1"), ("--json folder", "`folder` is a folder"),
        ("--json gone/x", "there is no folder `gone`"), ("--resume", "--resume needs --json FILE"),
        ("--resume --json text", "text:1: no result of"), ("--resume --json object", "object:1: no result of"),
        ("--measured text", "text:1: no result of"), ("--measured list", "list:1: no result of"),
        ("--measured gone", "`gone` does not exist"), ("--only M0", "invalid choice: 'M0'"), after=GEMMC)
refused("mutate-emulator", *JOBS, ("--only -1", "`-1` is less than 0"), ("--build folder", "is no build"))
refused("foreign", ("--into made --only gone", "no source makes `gone`"))
for script in "check-includes", "check-titles", "rules-page":
    refused(script, ("bogus", "unrecognized arguments: bogus"))
refused("clean-root-test", ("folder", "folder exists already"), ("--keep folder", "folder exists already"),
        ("folder --keep", "folder exists already"), ("--kept new", "no option `--kept`"), ("one two", "one folder, not 2"))

shutil.rmtree(folder, ignore_errors=True)
(folder / "folder").mkdir(parents=True)
(folder / "folder" / "precious").touch()
(folder / "bin").mkdir()
(folder / "bin" / "debootstrap").write_text("#!/bin/sh\nexit 9\n")
(folder / "bin" / "debootstrap").chmod(0o755)
for name, text in FILES.items():
    (folder / name).write_bytes(text)


def run(case):
    script, words, _ = case
    return subprocess.run([root / "utils" / script, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", env=os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}"})


wrong = 0
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for (script, words, told), done in zip(CASES, pool.map(run, CASES)):
        if done.returncode != 2 or told not in done.stderr.splitlines()[-1] or "Traceback" in done.stderr or done.stdout:
            wrong += 1
            print(f"{script} {' '.join(words)}: exit code {done.returncode}, not `{told}`:\n{done.stdout}{done.stderr}")
left = sorted(path.name for path in folder.iterdir())
print(f"{len(CASES)} cases, {wrong} wrong, there are {' '.join(left)}")
sys.exit(wrong or left != sorted(["folder", "bin", *FILES]) or not (folder / "folder" / "precious").exists())
