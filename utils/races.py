"""What the scripts that race kernels on a GPU have in common (utils/race-builds, utils/race-kernels)."""
import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import time

import given

NO_DEVICE = 3  # gemmc's exit code where there is no GPU
MOST_SECONDS = 90  # of one race: gemmc itself waits 60 for a kernel that hangs


def folder_for(command, folder, suite, endings):
    """Makes `folder` anew, which holds nothing but files of these endings; `command` is a script and its step."""
    script, step = command.split()
    if folder.exists():
        made = folder.is_dir() and all(each.name.endswith(endings) for each in folder.iterdir())
        if not made or suite.resolve().parent == folder.resolve():
            raise SystemExit(f"{script}: {folder} has other things than `{step}` makes: name another folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def race(arguments, specs, others, warm_up):
    """Each spec's plan and what `others(spec)` adds to `gemmc bench`, in turns; a line of JSON each on stdout."""
    random.Random(0).shuffle(specs)  # what there is no time for is not all of one kind
    end, raced, failed = time.monotonic() + arguments.seconds, 0, 0
    for spec in specs:
        if time.monotonic() > end:
            break
        command = ["timeout", str(MOST_SECONDS), arguments.gemmc, "bench", spec, "--no-tuning", *others(spec),
                   "--rounds", str(arguments.rounds), "--warm-up", str(warm_up), "--json"]
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode == NO_DEVICE:
            print(made.stderr.strip(), file=sys.stderr)
            return 1
        raced += 1
        if made.returncode:
            failed += 1
            print(f"{spec.name}: {made.stderr.strip() or f'exit code {made.returncode}'}", file=sys.stderr)
            continue
        print(json.dumps({"name": spec.stem, "report": json.loads(made.stdout)}), flush=True)
    print(f"{raced} of {len(specs)} raced, {failed} failed", file=sys.stderr)
    return 0 if raced and not failed else 1


def results(path, read):
    """What `read` makes of the name and the report of each line; problems that failed are counted and left out."""
    def one(entry):
        if not isinstance(entry["name"], str):
            raise TypeError("a name is a text")
        return None if isinstance(entry.get("failure"), str) else read(entry["name"], entry["report"])

    found = given.rows(path, one, f"`{pathlib.Path(sys.argv[0]).name} run`")
    if failed := found.count(None):
        print(f"{path}: {failed} of {len(found)} problems failed, left out", file=sys.stderr)
    return [each for each in found if each is not None]


def median(kernel):
    return given.positive(kernel["median_us"])


def best_rival(report):
    """The least time of cuBLASLt's algorithms; None where it has none."""
    return min(map(median, report["cublaslt"]), default=None)


# ---- arguments -------------------------------------------------------------------------------------------------------


def bounds(text):
    low, high = map(int, text.split(":"))
    if not 0 < low <= high:
        raise argparse.ArgumentTypeError(f"`{text}` is no range: LOW:HIGH with 0 < LOW <= HIGH")
    return low, high


def add_run(parser, rounds):
    parser.add_argument("folder", type=given.folder)
    parser.add_argument("--seconds", type=float, default=120, help="default: 120")
    parser.add_argument("--rounds", type=given.natural, default=rounds, help=f"default: {rounds}")
