"""The suite of examples/bench/suite.yaml: its problems, what each class must reach against cuBLASLt's best algorithm, and
how it is measured on one GPU or several (utils/gpu-check bench), checked (utils/suite-check) and drawn (utils/plot-suite).

Results are lines of JSON, one a measured problem: what `gemmc bench SUITE --lines` prints and the number of the run."""
import json
import math
import os
import pathlib
import re
import signal
import statistics
import subprocess
import tempfile
import threading
import time

import given

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITE = ROOT / "examples" / "bench" / "suite.yaml"

# class: classes of the file that count in it; least ratio of each shape and of their geometric mean to cuBLASLt's best
# algorithm, of the mean to its first choice; most time relative to that of the next aligned shape.
GOALS = {
    "large": {"of": ("large", "layouts"), "each": 0.99, "mean": 1.03, "first": 1.07},
    "mid": {"of": ("mid",), "each": 0.99, "mean": 1.05},
    "skinny": {"of": ("skinny",), "each": 1.00, "mean": 1.20},
    "odd": {"of": ("odd",), "mean": 4.0, "aligned": 1.25},
    "f16acc": {"of": ("f16acc",), "each": 1.02},
    # examples/bench/types.yaml
    "fp8": {"of": ("fp8",), "each": 1.00, "mean": 1.05},
    "fp8_f32": {"of": ("fp8_f32",), "each": 0.90, "mean": 1.05},
    "int8": {"of": ("int8",), "each": 1.05, "mean": 1.15},
    "tf32": {"of": ("tf32",), "each": 1.00, "mean": 1.05},
    "tf32, turned": {"of": ("tf32_turned",), "each": 1.00, "mean": 1.10},
    "turned": {"of": ("turned",)},
    "f64": {"of": ("f64",), "each": 0.90, "mean": 0.95},
    # examples/bench/batch.yaml
    "batches": {"of": ("heads", "experts", "batch_small", "batch_mid", "batch_large", "batch_shared", "batch_odd"),
                "each": 0.83, "mean": 1.10},
}
# Microseconds in which an H200 streams n x k weights of two bytes; at m <= 64 a product may take STREAMED times that.
STREAM = {(4096, 4096): 9.4, (2112, 7168): 8.4, (4096, 7168): 15.1, (24576, 1536): 19.5, (7168, 2048): 8.5,
          (8192, 8192): 32.8}
STREAMED = 1.15


# ---- problems --------------------------------------------------------------------------------------------------------


def merged(base, over):
    out = dict(base)
    for key, value in over.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


def flow(text):
    """A map in YAML's flow style, of plain words and numbers, as a dict."""
    quoted = re.sub(r"[\w.]*[A-Za-z_][\w.]*", lambda word: f'"{word[0]}"', text)
    return json.loads(quoted)


def to_flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {to_flow(inner)}" for key, inner in value.items()) + "}"
    return str(value)


def is_suite(path):
    """Whether a file has problems, not the fields of one spec."""
    return re.search(r"^problems:", given.text_of(path), re.M) is not None


def read(path=SUITE):
    """The problems of a suite, each a dict of `name`, `class` and the fields of its spec. What cannot be read, or has no
    problems, ends the script."""
    defaults, problems = {}, []
    for number, line in enumerate(given.text_of(path).splitlines(), 1):
        if not (found := re.match(r"(defaults:| *-)( |$)", line)):
            continue
        try:
            entry = merged({}, flow(re.sub(r"\s#.*", "", line[found.end():])))
            if found[1] == "defaults:":
                defaults = entry
                continue
            problems.append(merged(defaults, entry))
            if not isinstance(problems[-1]["name"], str) or not all(isinstance(size, int) for size in sizes(problems[-1])):
                raise TypeError("a name is a text, sizes are numbers")
        except (AttributeError, LookupError, TypeError, ValueError):
            given.refuse(f"{path}:{number}: a suite has a problem a line, `- {{name: one, problem: {{m: 8, n: 8, k: 8}}}}`, "
                         f"and `defaults: {{...}}` in front of them: {line.strip()[:40]}")
    if not problems:
        given.refuse(f"{path} has no problems: name a suite, as {SUITE.relative_to(ROOT)} is one")
    return problems


def sizes(problem):
    return tuple(problem["problem"][axis] for axis in "mnk")


def class_of(problem):
    return problem.get("class", "")


def flops(problem):
    return 2.0 * math.prod(sizes(problem))


def write_suite(problems, path):
    path.write_text("problems:\n" + "".join(f"  - {to_flow(problem)}\n" for problem in problems))


def write_spec(problem, path):
    path.write_text("".join(f"{key}: {to_flow(value)}\n" for key, value in problem.items() if key != "class"))


def chosen(problems, only):
    """Those that one of the texts describes: each of its words, a regular expression, is found in the name or class. A text
    that describes none ends the script."""
    def fits(problem, text):
        return all(re.search(word, problem["name"]) or re.search(word, class_of(problem)) for word in text.split())

    for text in only or ():
        try:
            found = any(fits(problem, text) for problem in problems)
        except re.error as error:
            given.refuse(f"--only `{text}` is no regular expression: {error}")
        if not found:
            classes = ", ".join(sorted(set(map(class_of, problems)) - {""})) or "none"
            given.refuse(f"--only `{text}`: no problem has it in its name or class; there are {problems[0]['name']} and "
                         f"others like it, the classes are: {classes}")
    return [problem for problem in problems if not only or any(fits(problem, text) for text in only)]


def key(problem):
    """What is multiplied, without name and class."""
    return to_flow({name: value for name, value in sorted(problem.items()) if name not in ("name", "class")})


def aligned(problem):
    """The same with all sizes rounded up to multiples of 8."""
    rounded = {axis: -(-size // 8) * 8 for axis, size in zip("mnk", sizes(problem))}
    kind = problem.get("a", {}).get("type", "?")
    layouts = "_row_b" if problem.get("b", {}).get("layout") == "row" else ""
    return merged(problem, {"name": "{}_{m}x{n}x{k}{}".format(kind, layouts, **rounded), "class": "aligned",
                            "problem": rounded})


def groups(problems):
    """Lists of what is measured together: an odd problem has its aligned neighbour behind it, unless the suite has that."""
    known, out = {key(problem) for problem in problems}, []
    for problem in problems:
        group = [problem]
        if class_of(problem) == "odd" and key(aligned(problem)) not in known:
            group.append(aligned(problem))
            known.add(key(group[-1]))
        out.append(group)
    return out


# ---- measuring -------------------------------------------------------------------------------------------------------


def shares(problems, count):
    """Dealt out to `count` GPUs, the longest first, each to who has least."""
    heaps = [[0.0, []] for _ in range(count)]
    for group in sorted(groups(problems), key=lambda group: -sum(map(flops, group))):
        least = min(heaps, key=lambda heap: heap[0])
        least[0] += sum(1.0 + flops(problem) / 1e12 for problem in group)
        least[1] += group
    order = {problem["name"]: index for index, problem in enumerate(sum(groups(problems), []))}
    return [sorted(heap[1], key=lambda problem: order[problem["name"]]) for heap in heaps if heap[1]]


class Session:
    """Measures problems, `runs` times each, and keeps a line of JSON for each in `path` as soon as it is there."""

    def __init__(self, gemmc, path, gpus, seconds, options=()):
        self.gemmc, self.path, self.gpus = gemmc, path, gpus
        self.end, self.options = time.monotonic() + seconds, list(options)
        self.lines, self.errors, self.lock = [], [], threading.Lock()

    def resume(self, lines):
        """Takes over those of an earlier session but failures."""
        for line in lines:
            if "failure" not in line:
                self.keep(line)

    def keep(self, line):
        with self.lock:
            self.lines.append(line)
            with open(self.path, "a") as file:
                file.write(json.dumps(line) + "\n")

    def measure(self, problems, runs):
        for run in range(1, runs + 1):
            done = {line["name"] for line in self.lines if line["run"] == run}
            missing = [problem for problem in sum(groups(problems), []) if problem["name"] not in done]
            threads = [threading.Thread(target=self.share, args=(gpu, share, run))
                       for gpu, share in zip(self.gpus, shares(missing, len(self.gpus)))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def share(self, gpu, problems, run):
        """One process on one GPU; at the end of the time it is told to stop, and what it has finished stays."""
        left = self.end - time.monotonic()
        if left <= 0:
            return
        with tempfile.TemporaryDirectory() as folder:
            suite = pathlib.Path(folder) / "share.yaml"
            write_suite(problems, suite)
            command = [str(self.gemmc), "bench", str(suite), "--lines", *self.options]
            with open(pathlib.Path(folder) / "errors", "w+") as errors:
                process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT,
                                           stdin=subprocess.DEVNULL, env=dict(os.environ, CUDA_VISIBLE_DEVICES=str(gpu)))
                timers = [threading.Timer(left + more, process.send_signal, [how])
                          for more, how in ((0, signal.SIGTERM), (20, signal.SIGKILL))]
                for timer in timers:
                    timer.start()
                for text in process.stdout:
                    try:
                        self.keep(dict(json.loads(text), run=run, gpu=str(gpu)))
                    except ValueError:
                        self.errors.append(text.rstrip())
                process.wait()
                for timer in timers:
                    timer.cancel()
                errors.seek(0)
                told = errors.read().strip()
                if process.returncode and told and time.monotonic() < self.end:
                    self.errors.append(f"GPU {gpu}, exit {process.returncode}: {told[-2000:]}")


# ---- results ---------------------------------------------------------------------------------------------------------


def checked(entry):
    """A line of results as it is; an exception where it is something else."""
    if not isinstance(entry["name"], str):
        raise TypeError("a name is a text")
    if "failure" not in entry:
        report = entry["report"]
        for number in (report["gemmc"]["median_us"], report.get("ratio"), report.get("ratio_to_first")):
            if number is not None:
                given.positive(number)
    return entry


def lines(path):
    return given.rows(path, checked, "`gemmc bench SUITE --lines`")


def lines_of_runs(path):
    """Those of a session, which say in which run each was measured."""
    return given.rows(path, lambda entry: {**checked(entry), "run": int(entry["run"])}, "`utils/gpu-check bench`")


class Result:
    """What the runs of one problem gave: medians over them. `ratio` is None where cuBLASLt was not measured."""

    def __init__(self, problem, lines):
        self.problem, self.name, self.group = problem, problem["name"], class_of(problem)
        reports = [line["report"] for line in lines if "report" in line]
        self.failure = next((line["failure"] for line in lines if "failure" in line), None)
        self.runs = len(reports)
        self.microseconds = self.middle(report["gemmc"]["median_us"] for report in reports)
        self.ratio = self.middle(report.get("ratio") for report in reports)
        self.first = self.middle(report.get("ratio_to_first") for report in reports)
        self.verified = min((report.get("verified", 0) for report in reports), default=0)
        self.remarks = sorted({report["remark"] for report in reports if report.get("remark")})
        self.host = self.middle(report.get("host_us") for report in reports)
        self.took = sum(line.get("took_s", 0) for line in lines)
        if reports and self.ratio is None:
            words = reports[0].get("remark", "")
            self.failure = words if words.startswith("not compared") else f"not compared with cuBLASLt: {words}"

    @staticmethod
    def middle(values):
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None


def results(problems, lines):
    by_name = {}
    for line in lines:
        by_name.setdefault(line["name"], []).append(line)
    return [Result(problem, by_name.get(problem["name"], [])) for problem in sum(groups(problems), [])]


def spent(lines):
    """Seconds that the measuring took in all, by its parts."""
    parts = {}
    for line in lines:
        for part, milliseconds in line.get("report", {}).get("spent_ms", {}).items():
            parts[part] = parts.get(part, 0) + milliseconds / 1e3
    parts["other"] = sum(line.get("took_s", 0) for line in lines) - sum(parts.values())
    return ", ".join(f"{part} {seconds:.1f} s" for part, seconds in parts.items())


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Verdict:
    def __init__(self, name, good, reason):
        self.name, self.good, self.reason = name, good, reason


def single(result, goal, by_key):
    """The verdicts on one problem: (what, reached, wanted, whether more is better)."""
    if "each" in goal:
        yield "ratio", result.ratio, goal["each"], True
    neighbour = by_key.get(key(aligned(result.problem)))
    if "aligned" in goal and neighbour and neighbour.microseconds:
        yield f"times the time of {neighbour.name}", result.microseconds / neighbour.microseconds, goal["aligned"], False
    m, n, k = sizes(result.problem)
    if result.group == "skinny" and m <= 64 and (n, k) in STREAM:
        yield "times the streaming floor", result.microseconds / STREAM[n, k], STREAMED, False


def judge(found):
    """The table of the classes as text, and a verdict for each goal that there is a measurement for."""
    by_key = {key(result.problem): result for result in found}
    text, verdicts = f"{'class':<9}{'shapes':>7}{'mean':>8}{'worst':>8}{'to first':>10}  goals\n", []
    for name, goal in GOALS.items():
        members = [result for result in found if result.group in goal["of"] and result.ratio]
        if not members:
            continue
        worst = min(members, key=lambda result: result.ratio)
        average = mean([result.ratio for result in members])
        first = mean([result.first or result.ratio for result in members])
        goals = [("mean", average, goal.get("mean")), ("to first", first, goal.get("first"))]
        if "each" in goal:
            goals.append(("worst", worst.ratio, goal["each"]))
        told = [f"{what} >= {wanted:.2f} {'ok' if reached >= wanted else 'MISSED'}"
                for what, reached, wanted in goals if wanted]
        verdicts += [Verdict(f"{name}: {what}", reached >= wanted, f"{reached:.3f} is below {wanted:.2f}")
                     for what, reached, wanted in goals if wanted and what != "worst"]
        for result in members:
            for what, reached, wanted, more in single(result, goal, by_key):
                good = reached >= wanted if more else reached <= wanted
                verdicts.append(Verdict(f"{result.name}: {what}", good,
                                        f"{reached:.3f}, {'at least' if more else 'at most'} {wanted:.2f} is wanted"))
        text += (f"{name:<9}{len(members):>7}{average:>8.3f}{worst.ratio:>8.3f}{first:>10.3f}  {', '.join(told)}"
                 f"  (worst: {worst.name})\n")
    return text, verdicts
