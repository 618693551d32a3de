"""The seeds' ladder: examples/ladder/NN_name.yaml, measured on the card, as the table of docs/ladder.md.

A spec's comment names its rung and the seed's file and section, and says what the rung adds:

    # Rung 4: seed 004_cc28db999e81b189.txt, section 5 (...). ldmatrix.x4 fills a fragment with one instruction.
    # claims: 15.9 ms at 16384^3, RTX A6000        (optional: what the seed says it reached)

Figures go to docs/ladder.json, from which `table` is made; docs/ladder.md holds the table between two marks."""
import csv
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples" / "ladder"
PAGE, FIGURES = ROOT / "docs" / "ladder.md", ROOT / "docs" / "ladder.json"
BEGIN, END = "<!-- table: utils/gpu-check ladder -->", "<!-- end of table -->"
LARGE = 2048**3  # problems of at least so many products are timed
# ncu counts these for each SASS instruction by patching it, so they are exact; the hardware's own counters
# (l1tex__data_bank_conflicts_*) also count arbitration and differ from run to run.
WAVEFRONTS, IDEAL = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
KINDS = {"LDS": "loads", "LDSM": "loads", "STS": "stores", "STSM": "stores"}
# Why a rung is as fast as it is: what is busy, and what a warp waits for between two instructions.
PROFILE = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": "tensor_pipe",
           "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed": "shared_pipe",
           "smsp__inst_executed.sum": "warp_instructions",
           "sm__warps_active.avg.per_cycle_active": "warps"}
STALL, PER_ISSUE = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
STALLS = ("long_scoreboard", "short_scoreboard", "mio_throttle", "barrier", "math_pipe_throttle", "wait", "lg_throttle")
PROFILED = range(1, 15)  # the rungs whose text explains itself by these counters
TELLING = re.compile(r"^(wgmma\.mma|mma\.|wmma\.|ldmatrix|stmatrix|cp\.async|ld\.shared|st\.shared|setmaxnreg|mbarrier\.try)")


def specs():
    return sorted(FOLDER.glob("*.yaml"))


def words(path):
    """(rung, what its comment says, claim) of a spec."""
    lines = [line[1:].strip() for line in path.read_text().splitlines() if line.startswith("#")]
    claim = next((line.removeprefix("claims:").strip() for line in lines if line.startswith("claims:")), "")
    text = " ".join(line for line in lines if not re.match(r"(claims|args|floor):", line))
    head = re.match(r"Rung (\d+)[:,] (.*)", text)
    if not head or not re.search(r"00\d_[0-9a-f]+\.txt", text):
        raise ValueError(f"{path.name}: its comment does not say `Rung N: ...` with the file of the seed")
    return int(head[1]), head[2], claim


def instructions(ptx):
    """The telling instructions of a kernel, each once, without what all of them have in common."""
    seen = {}
    for line in ptx.splitlines():
        text = re.sub(r"^\s*(@!?%?\w+\s+)?", "", line)
        if TELLING.match(text):
            name = text.split()[0]
            for noise in (".sync", ".aligned", ".mbarrier::complete_tx::bytes", ".tile", ".global", ".commit_group",
                          ".row.col"):
                name = name.replace(noise, "")
            seen[name.rstrip(";")] = None
    return [name for name in seen if not name.startswith(("cp.async.wait", "mbarrier")) and name != "cp.async"]


def compiled(path, gemmc, folder):
    """What the compiler and ptxas say: instructions, shared bytes, registers; `problem` when something is wrong."""
    ptx = pathlib.Path(folder) / f"{path.stem}.ptx"
    run = subprocess.run([gemmc, "compile", path, "-o", ptx], capture_output=True, text=True)
    if run.returncode:
        return {"problem": run.stderr.strip()[:300]}
    text = ptx.read_text()
    check = subprocess.run(["python3", ROOT / "utils" / "ptxas-check", "-v", ptx], capture_output=True, text=True)
    shared = re.search(r"shared: (\d+)", text)
    registers = [int(count) for count in re.findall(r"Used (\d+) registers", check.stdout)]
    result = {"instructions": instructions(text), "shared": int(shared[1]) if shared else 0,
              "registers": max(registers, default=None)}
    if check.returncode:
        result["problem"] = check.stderr.strip()[:300]
    return result


def predicted(path, gemmc, arguments):
    """Bank conflicts of loads and stores in one small launch, as the emulator counts them; None when it fails."""
    run = subprocess.run([gemmc, "run", path, "--input", "integer", *arguments, "--device", "emulator", "--json"],
                         capture_output=True, text=True, timeout=300)
    found = json.loads(run.stdout) if run.returncode == 0 else None
    return found and {kind: found[kind]["bank_conflicts"] for kind in KINDS.values()}


def counted(path, gemmc, arguments, ncu):
    """The same from ncu's source page: wavefronts beyond the ideal, summed over the SASS instructions of each kind."""
    run = subprocess.run([ncu, "--clock-control", "none", "--csv", "--page", "source", "--metrics", f"{WAVEFRONTS},{IDEAL}",
                          "--kernel-name", "regex:^(?!.*_clear$)", "--launch-count", "1", gemmc, "run", path, "--input",
                          "integer", *arguments, "--device", "gpu"],
                         capture_output=True, text=True, errors="replace", timeout=300)
    rows = [row for row in csv.reader(run.stdout.splitlines()) if row]
    header = next((row for row in rows if "Source" in row), None)
    if run.returncode or header is None:
        return None
    totals = dict.fromkeys(KINDS.values(), 0)
    if WAVEFRONTS not in header:
        return totals  # the kernel does not touch shared memory
    source, found, ideal = (header.index(name) for name in ("Source", WAVEFRONTS, IDEAL))
    for row in rows[rows.index(header) + 1:]:
        words = [word for word in (row[source] if len(row) == len(header) else "").split() if not word.startswith("@")]
        if words and (kind := KINDS.get(words[0].split(".")[0])):
            totals[kind] += int(row[found] or 0) - int(row[ideal] or 0)
    return totals


def profiled(path, gemmc, ncu):
    """What ncu counts in one launch of the spec's own problem; None where it counts nothing."""
    metrics = [*PROFILE, *(STALL + name + PER_ISSUE for name in STALLS)]
    run = subprocess.run([ncu, "--clock-control", "none", "--csv", "--metrics", ",".join(metrics), "--launch-count", "1",
                          gemmc, "run", path, "--device", "gpu"], capture_output=True, text=True, errors="replace",
                         timeout=300)
    values = {row[-3]: float(row[-1].replace(",", "")) for row in csv.reader(run.stdout.splitlines())
              if len(row) > 3 and row[-3] in metrics}
    if len(values) < len(metrics):
        return None
    waits = {name: values[STALL + name + PER_ISSUE] for name in STALLS}
    return {**{name: values[metric] for metric, name in PROFILE.items()}, "stalls": waits}


def timed(path, gemmc):
    run = subprocess.run([gemmc, "bench", path, "--vs", "cublaslt", "--json"], capture_output=True, text=True, timeout=300)
    try:
        found = json.loads(run.stdout)
    except ValueError:
        return {"problem": (run.stderr or run.stdout).strip()[:300]}
    return {"us": found["gemmc"]["median_us"], "tflops": found["gemmc"]["tflops"], "ratio": found.get("ratio"),
            "device": found.get("device")}


def row(path, figures):
    rung, adds, claim = words(path)
    found = figures.get(path.stem, {})
    banks, profile = found.get("conflicts"), found.get("ncu")
    if profile:
        longest = max(profile["stalls"], key=profile["stalls"].get)
        busy = f"{profile['tensor_pipe']:.0f}% / {profile['shared_pipe']:.0f}%"
        waits = f"{longest} {profile['stalls'][longest]:.1f}"
    number = lambda value, form: form.format(value) if value is not None else "-"
    cells = [str(rung), f"[{path.stem}](../examples/ladder/{path.name})", adds,
             "<br>".join(f"`{name}`" for name in found.get("instructions", [])), number(found.get("shared"), "{:,}"),
             number(found.get("registers"), "{}"),
             " / ".join(f"{sum(banks[side].values()):,}" if banks and banks[side] else "-" for side in ("ncu", "emulator")),
             busy if profile else "-", waits if profile else "-", number(found.get("tflops"), "{:.0f}"), number(found.get("ratio"), "{:.3f}"), claim or "-"]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(figures):
    head = ("rung", "spec", "what it is", "instructions", "shared bytes", "registers",
            "bank conflicts, ncu / emulator", "busy: tensor pipe / shared memory", "longest wait (cycles an instruction)", "TFLOP/s", "of cuBLASLt's best", "the seed's figure")
    order = sorted(specs(), key=lambda path: (words(path)[0], path.stem))
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *(row(path, figures) for path in order)])


def rewrite(figures, note):
    """Puts figures and table into docs/; also into $OUT, from where they come back."""
    page = PAGE.read_text()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(f"{page[:begin]}\n{note}\n\n{table(figures)}\n{page[end:]}")
    FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
    if out := os.environ.get("OUT"):
        for file in (PAGE, FIGURES):
            (pathlib.Path(out) / file.name).write_text(file.read_text())
