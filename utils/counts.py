"""Bank conflicts of shared memory and sectors of global memory, instruction by instruction: ncu's source page of a kernel that
ptxas assembled with line information (lineinfo.py), against the emulator's counts by PTX line (`gemmc run --json`).

A difference names the line, its instruction and both numbers. What ncu counts for a machine instruction by patching it is
exact and the same in every run; TMA and wgmma have no such counts."""
import collections
import csv
import json
import pathlib
import re
import subprocess

from lineinfo import lines_of, located

WAVEFRONTS, IDEAL = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
SECTORS = "memory_l2_theoretical_sectors_global"
# What the emulator models of a machine instruction, by its name. The conflicts of LDGSTS and all of shared atomics are left
# out: they are not those of the addresses alone. Its sectors are not always, either: ncu counts what a guard keeps back, by
# addresses that nobody has computed, and counts a sector again that lands in two wavefronts of shared memory (32 lanes that
# copy 512 bytes in a row, to an odd multiple of 16 bytes: 24). Such copies are told apart (`unclear`).
CONFLICTS = {"LDS", "LDSM", "STS", "STSM"}
GLOBAL = {"LDG", "LD", "STG", "ST", "LDGSTS", "ATOMG", "ATOM", "RED", "REDG"}


def compiled(spec, arguments, gemmc, ptxas, folder, chip):
    """(path of the PTX, path of the cubin for `chip`, PTX text, arguments that are left for a run); raises ValueError."""
    sets, rest = [], []
    words = iter(arguments)
    for word in words:
        if word == "--set":
            sets += [word, next(words)]
        else:
            (sets if word.startswith("--set=") else rest).append(word)
    base = pathlib.Path(folder) / spec.stem
    ptx, marked, cubin = (base.with_suffix(suffix) for suffix in (".ptx", ".loc.ptx", ".cubin"))
    run(gemmc, "compile", spec, *sets, "-o", ptx)
    text = ptx.read_text()
    marked.write_text(located(text))
    target = re.search(r"^\.target\s+(\w+)", text, re.M)[1]
    run(ptxas, "-lineinfo", "-arch=" + (target if target.endswith("a") else chip), "-o", cubin, marked)
    return ptx, cubin, text, rest


def run(*command, seconds=120):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", timeout=seconds,
                          stdin=subprocess.DEVNULL)
    if done.returncode:
        raise ValueError(f"{pathlib.Path(str(command[0])).name} exits {done.returncode}: "
                         f"{(done.stderr.strip() or done.stdout.strip())[-300:]}")
    return done.stdout


def page(text):
    """[(machine instruction, {column: number})] of ncu's source page as CSV, in the order of addresses."""
    rows = [row for row in csv.reader(text.splitlines()) if row]
    header = next((row for row in rows if "Source" in row), None)
    if header is None:
        raise ValueError("ncu printed no source page")
    found = []
    for row in rows[rows.index(header) + 1:]:
        if len(row) != len(header):
            continue
        cells = dict(zip(header, row))
        number = lambda name: int(float(cells.get(name) or 0)) if (cells.get(name) or "0").replace(".", "").isdigit() else 0
        found.append((cells["Source"], {name: number(name) for name in (WAVEFRONTS, IDEAL, SECTORS)}))
    return found


def opcode(sass):
    words = [word for word in sass.split() if not word.startswith("@")]
    return words[0].rstrip(";").split(".")[0] if words else ""


def unclear_copies(rows, lines):
    """The lines of LDGSTS that a guard may keep back, or whose place in shared memory cuts them into uneven wavefronts."""
    return {line for (sass, numbers), line in zip(rows, lines) if opcode(sass) == "LDGSTS" and
            (sass.strip().startswith("@") or (numbers[IDEAL] and numbers[WAVEFRONTS] % numbers[IDEAL]))}


def counted(rows, lines):
    """{line: [conflicts, sectors]} of a source page whose instructions come from `lines`."""
    if len(rows) != len(lines):
        raise ValueError(f"ncu shows {len(rows)} instructions, the cubin has {len(lines)}: not the same code")
    totals = collections.defaultdict(lambda: [0, 0])
    for (sass, numbers), line in zip(rows, lines):
        name = opcode(sass)
        if name in CONFLICTS:
            totals[line][0] += numbers[WAVEFRONTS] - numbers[IDEAL]
        if name in GLOBAL:
            totals[line][1] += numbers[SECTORS]
    return {line: both for line, both in totals.items() if any(both)}


def predicted(report, ptx):
    """The same of the emulator's JSON, for the kernel that ncu is asked for."""
    totals, text = {}, ptx.splitlines()
    entries = [number for number, line in enumerate(text, 1) if ".entry" in line] + [len(text) + 1]
    first = next(number for number in entries if f".entry {entry_of(ptx)}(" in text[number - 1])
    last = next(number for number in entries if number > first)
    for one in report["instructions"]:
        if not first < one["line"] < last:
            continue
        copies = "cp.async" in text[one["line"] - 1]
        totals[one["line"]] = [0 if copies else one["bank_conflicts"], one["sectors"]]
    return {line: both for line, both in totals.items() if any(both)}


def differences(ptx, ncu, emulator):
    """A text for each line whose numbers differ."""
    text = ptx.splitlines()
    for line in sorted(set(ncu) | set(emulator), key=lambda line: line or 0):
        card, ours = ncu.get(line, [0, 0]), emulator.get(line, [0, 0])
        if list(card) != list(ours):
            what = " ".join(text[line - 1].split())[:90] if line else "no line"
            yield f"line {line}: ncu {card[0]} conflicts, {card[1]} sectors; emulator {ours[0]}, {ours[1]}: {what}"


def entry_of(ptx):
    """The kernel that ncu is asked for."""
    return next(name for name in re.findall(r"\.entry (\w+)", ptx) if not name.endswith("_clear"))


class Comparison:
    """One kernel: what the emulator counts, and then what ncu does. Raises ValueError where something fails."""

    def __init__(self, spec, arguments, gemmc, ptxas, folder, chip="sm_90", sms=132):
        path, self.cubin, self.ptx, rest = compiled(spec, arguments, gemmc, ptxas, folder, chip)
        self.command = [gemmc, "run", path, "--input", "integer", *rest, "--json"]
        report = json.loads(run(*self.command, "--device", "emulator", "--sms", sms, "--chip", chip, seconds=300))
        self.fallback = bool(report.get("fallback"))  # then another kernel runs than the one in the PTX
        self.emulator = predicted(report, self.ptx)

    def count(self, ncu):
        self.page = run(ncu, "--clock-control", "none", "--csv", "--page", "source", "--metrics",
                        ",".join((WAVEFRONTS, IDEAL, SECTORS)), "--kernel-name", f"regex:^{entry_of(self.ptx)}$", "--launch-count",
                        "1", *self.command, "--device", "gpu", "--cubin", self.cubin)
        rows, lines = page(self.page), lines_of(self.cubin.read_bytes(), entry_of(self.ptx))
        self.card = counted(rows, lines)
        self.unclear = unclear_copies(rows, lines)

    def differences(self):
        return list(differences(self.ptx, *({line: both for line, both in counts.items() if line not in self.unclear}
                                            for counts in (self.card, self.emulator))))
