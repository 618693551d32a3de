"""What the scripts that race kernels on a GPU have in common (utils/race-builds, utils/race-kernels)."""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GEMMC = ROOT / "build" / "bin" / "gemmc"
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


def results(path):
    """(name, report) of each line; what a `run` that was stopped has begun is named and passed over."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            entry = json.loads(line)
        except ValueError:
            print(f"{path}:{number}: no result: {line[:40]}", file=sys.stderr)
            continue
        yield entry["name"], entry["report"]


def best_rival(report):
    """The least time of cuBLASLt's algorithms; None where it has none."""
    return min((each["median_us"] for each in report["cublaslt"]), default=None)


# ---- arguments -------------------------------------------------------------------------------------------------------


def bounds(text):
    low, high = map(int, text.split(":"))
    if not 0 < low <= high:
        raise argparse.ArgumentTypeError(f"`{text}` is no range: LOW:HIGH with 0 < LOW <= HIGH")
    return low, high


def natural(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is less than 1")
    return int(text)


def program(text):  # not to be looked for on PATH
    path = pathlib.Path(text).resolve()
    if not os.access(path, os.X_OK) or path.is_dir():
        raise argparse.ArgumentTypeError(f"`{text}` is no program")
    return path


def there(text):
    if not pathlib.Path(text).exists():
        raise argparse.ArgumentTypeError(f"`{text}` does not exist")
    return pathlib.Path(text)


def add_gemmc(parser):
    parser.add_argument("--gemmc", type=program, default=str(GEMMC), help="default: build/bin/gemmc")


def add_run(parser, rounds):
    parser.add_argument("folder", type=there)
    parser.add_argument("--seconds", type=float, default=120, help="default: 120")
    parser.add_argument("--rounds", type=natural, default=rounds, help=f"default: {rounds}")
