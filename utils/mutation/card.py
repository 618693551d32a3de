"""What ptxas, a card and compute-sanitizer say of mutants: a step each, a line in a file for each answer.

A mutant that the emulator says hangs never runs, nor one that might block where no bound can be set (a barrier of threads,
setmaxnreg). All others run with bounded waits (mutation/bounded.py), several launches with fresh inputs in a process that is
killed after some seconds. What there was no time for has no line: it was not run, and nobody may say more of it."""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

import given
from mutation.bounded import MISALIGNED, TRIES, UNMAPPED, bounded, on_grid_of
from mutation.kernel import Kernel, text_of

SANITIZERS = "memcheck", "racecheck", "synccheck"
STEPS = ("ptxas", "card", *SANITIZERS)
LAUNCHES = 20          # of a mutant in one process
SAMPLE = 3             # mutants of each operator that compute-sanitizer sees
LIMITS = {"ptxas": 60, "card": 20, **dict.fromkeys(SANITIZERS, 40)}  # seconds of a process
# Operators whose mistakes may block a warp in an instruction that cannot be bounded, and the rules that speak of such.
BLOCKING = {"M38", "M39", "M46", "M47", "M48"}
BLOCKING_RULES = re.compile(r"\b(NB-(?!8\b)|SR-)")
CONTROL = "none"       # the operator of a kernel with no mistake
NOISE = re.compile(r"COMPUTE-SANITIZER|.*SUMMARY|Program hit|Target application|Error: process didn't|LEAK")


def execute(command, seconds):
    """(exit code or None when the time was up, output, errors): the whole group of processes is killed then."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=errors, stdin=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
        out.seek(0), errors.seek(0)
        return code, out.read().decode(errors="replace"), errors.read().decode(errors="replace")


def kept_away(row):
    """Why a mutant must not run on a card; None when it may. `row` is what the emulator said."""
    if row["hang"]:
        return "hangs"
    if row["verdict"] not in ("detected", "equivalent"):
        return row["verdict"]
    if row["verdict"] == "detected" and (row["operator"] in BLOCKING or BLOCKING_RULES.search(row["codes"])):
        return "may block"
    return None


def ptxas_says(code, output):
    if code is None:
        return "timeout", ""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if code:
        return "refused", next((line for line in lines if "error" in line), "")[:200]
    if warned := next((line for line in lines if re.search(r"\bC75\d\d\b", line)), None):
        return "warns", warned[:200]
    return "accepted", ""


def card_says(code, output, errors):
    """(result, detail): right, wrong, fault, timeout, refused (by the driver); anything else is an error of ours."""
    if code is None:
        return "timeout", ""
    try:
        report = json.loads(output)
        return ("right", "") if report["verified"] else ("wrong", f"launch {report['runs']}: {report['verification'][:120]}")
    except (ValueError, KeyError):
        pass
    if ran := re.search(r"running kernel .*CUDA_ERROR_(\w+)", errors):
        return "fault", ran[1]
    if refused := re.search(r"(does not accept the PTX|loading the kernel|encoding tensor map|launching kernel).*", errors):
        return "refused", refused[0][:200]
    return "error", (errors.strip().splitlines() or ["no output"])[0][:200]


def sanitizer_says(code, output):
    """reports: a finding of the tool's own; gave up: only the load of a thread that waited too long; fault: only that the
    kernel ended badly; silent."""
    if code is None:
        return "timeout", ""
    summary = re.search(r"SUMMARY: (\d+)", output)
    if not summary:
        return "error", " ".join(output.split())[:200]
    findings, gave_up = {}, False
    for block in re.split(r"^(?========== \S)", output, flags=re.M):
        head = block.splitlines()[0].removeprefix("========= ") if block.startswith("=========") else "SUMMARY"
        ours = re.search(rf"Address 0x{MISALIGNED:x}\b", block)
        gave_up |= bool(ours)
        if not ours and not NOISE.match(head):
            findings[re.sub(r"0x[0-9a-f]+|\d+", "N", head)[:100]] = None
    if int(summary[1]) and findings:
        return "reports", "; ".join(list(findings)[:3])
    return ("gave up" if gave_up else "fault" if int(summary[1]) or "Program hit" in output else "silent"), ""


class Lab:
    """The tools and the time that is left. `run` stands for `execute`; tests give another."""

    def __init__(self, gemmc, folder, seconds, ptxas=None, sanitizer=None, run=execute):
        self.gemmc, self.folder, self.ptxas, self.sanitizer, self.run = gemmc, pathlib.Path(folder), ptxas, sanitizer, run
        self.end = time.monotonic() + seconds if seconds else None

    def left(self):
        return float("inf") if self.end is None else self.end - time.monotonic()

    def write(self, kernel, text, way=None, tries=TRIES):
        """The file of a mutant: as it is, or ready for a card."""
        if way:
            statements = on_grid_of(Kernel(kernel.family, kernel.spec, text, kernel.arguments).statements, kernel.arguments)
            text = text_of(bounded(statements, tries, way))
        with tempfile.NamedTemporaryFile("w", suffix=".ptx", dir=self.folder, delete=False) as file:
            file.write(text)
        return file.name

    def command(self, kernel, path, launches):
        arguments = [word for word in kernel.arguments if not word.startswith("--sms")]
        return [self.gemmc, "run", path, "--device=gpu", "--input=integer", "--json", f"--repeat={launches}", "--threads=1",
                *arguments]

    def launch(self, kernel, text, way, tries=TRIES):
        path = self.write(kernel, text, way, tries)
        try:
            return card_says(*self.run(self.command(kernel, path, LAUNCHES), min(LIMITS["card"], max(1, self.left()))))
        finally:
            os.unlink(path)

    def on_card(self, kernel, text):
        found = self.launch(kernel, text, MISALIGNED)
        # A fault of ours, or the mutant's own: only ours becomes another one.
        if found == ("fault", "MISALIGNED_ADDRESS") and "_wait.parity" in text and self.launch(
                kernel, text, UNMAPPED) == ("fault", "ILLEGAL_ADDRESS"):
            return "gave up", ""
        return found

    def assembled(self, text):
        target = re.search(r"^\s*\.target\s+(sm_\w+)", text, re.M)[1]
        path = self.write(None, text)
        try:
            code, out, errors = self.run([self.ptxas, f"-arch={target}", "-o", os.devnull, path], LIMITS["ptxas"])
        finally:
            os.unlink(path)
        return ptxas_says(code, out + errors)

    def sanitized(self, kernel, text, tool):
        path = self.write(kernel, text, MISALIGNED)
        try:
            code, out, errors = self.run([self.sanitizer, "--tool", tool, *self.command(kernel, path, 1)],
                                         min(LIMITS[tool], max(1, self.left())))
        finally:
            os.unlink(path)
        return sanitizer_says(code, out + errors)

    def answer(self, step, kernel, text):
        if step == "ptxas":
            return self.assembled(text)
        return self.on_card(kernel, text) if step == "card" else self.sanitized(kernel, text, step)


def in_rounds(pairs, limit=None):
    """One mutant of each operator after the other, in an order that does not depend on the run; `limit` of each."""
    groups = collections.defaultdict(list)
    for kernel, mutant in sorted(pairs, key=lambda pair: pair[1].digest):
        groups[mutant.operator].append((kernel, mutant))
    groups = [group[:limit] for _, group in sorted(groups.items())]
    return [group[i] for i in range(max(map(len, groups), default=0)) for group in groups if i < len(group)]


def plan(work, kernels, verdicts, steps):
    """(step, kernel, operator, digest, text) in the order in which they are done. First kernels with no mistake: what a tool
    says of those counts for nothing."""
    allowed = [pair for pair in work if pair[1].digest in verdicts and not kept_away(verdicts[pair[1].digest])]
    jobs = []
    for step in steps:
        if step == "ptxas":
            chosen = work
        else:
            chosen = in_rounds(allowed, SAMPLE if step in SANITIZERS else None)
            jobs += [(step, kernel, CONTROL, kernel.family, text_of(kernel.statements)) for kernel in kernels]
        jobs += [(step, kernel, mutant.operator, mutant.digest, mutant.text) for kernel, mutant in chosen]
    if all(step in SANITIZERS for step in steps[-2:]):  # the same mutants for all tools, however far the time goes
        rank = {step: i for i, step in enumerate(steps)}
        tools = [job for job in jobs if job[0] in SANITIZERS]
        place = {}
        for job in tools:
            place.setdefault(job[3], len(place))
        jobs = [job for job in jobs if job[0] not in SANITIZERS] + sorted(tools, key=lambda job: (place[job[3]], rank[job[0]]))
    return jobs


def measure(lab, jobs, path, threads, say=print):
    """Does the jobs while there is time; a line in `path` for each answer. What has one there from before is not asked again.
    The number of those not run."""
    before = answers(path) if pathlib.Path(path).exists() else {}
    jobs = [job for job in jobs if before.get(job[3], {}).get(job[0], {}).get("result", "error") == "error"]
    lock, counts, skipped = threading.Lock(), collections.Counter(), collections.Counter()
    with given.append(pathlib.Path(path)) as out, concurrent.futures.ThreadPoolExecutor(threads) as pool:
        def one(job):
            step, kernel, operator, digest, text = job
            if lab.left() < 5:
                skipped[step] += 1
                return
            begun = time.monotonic()
            result, detail = lab.answer(step, kernel, text)
            if lab.left() <= 0 and result == "timeout":
                skipped[step] += 1  # it was we who had no time
                return
            row = {"digest": digest, "family": kernel.family, "operator": operator, "step": step, "result": result,
                   "detail": detail, "seconds": round(time.monotonic() - begun, 2)}
            with lock:
                counts[step, result] += 1
                out.write(json.dumps(row) + "\n")
                out.flush()
        list(pool.map(one, jobs))
    for step in dict.fromkeys(job[0] for job in jobs):
        found = ", ".join(f"{number} {result}" for (which, result), number in sorted(counts.items()) if which == step)
        say(f"{step}: {found or 'nothing'}{f', {skipped[step]} not run' if skipped[step] else ''}")
    return sum(skipped.values())


def answers(path):
    """{digest: {step: row}} of a file; the last answer counts."""
    def checked(row):
        if not all(isinstance(row[word], str) for word in ("digest", "operator", "step", "result", "detail")):
            raise TypeError("all of these are texts")
        return row

    found = collections.defaultdict(dict)
    for row in given.rows(pathlib.Path(path), checked, "`utils/mutate --measured`"):
        found[row["digest"]][row["step"]] = row
    return found
