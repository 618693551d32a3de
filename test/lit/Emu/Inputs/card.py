"""mutation/card.py without a card: what stands for the tools says what real ones print."""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "utils"))
from mutation import barriers, card, hardware
from mutation.bounded import MISALIGNED, UNMAPPED, bounded, on_grid_of, wait_loops
from mutation.families import FAMILIES
from mutation.judge import Judge
from mutation.kernel import OPERATORS, mutants_of, text_of

gemmc, family = sys.argv[1], "d_col"
judge = Judge(gemmc)
kernel = judge.compile(family, *FAMILIES[family], checked=False)


def verdict(statements):
    report = judge.check("bounded", text_of(statements), ["--schedules=2"])[1]
    return report["verdict"], " ".join(finding["message"] for finding in report["findings"])


# Bounded waits change nothing in a kernel with no mistake, and one whose bound is 0 gives up at its first False.
grid = on_grid_of(kernel.statements, kernel.arguments)
assert len(wait_loops(kernel.statements)) == 3
assert verdict(bounded(grid))[0] == "clean", verdict(bounded(grid))
for tries, way in (0, MISALIGNED), (0, UNMAPPED):
    assert f"address 0x{way:x} " in verdict(bounded(grid, tries, way))[1]
# A kernel that hangs gives up as well: M11 waits for a phase that does not come.
hanging = next(mutant for mutant in mutants_of(kernel, ["M11"]) if "deadlock" in judge.judge(kernel, mutant)["codes"])
statements = type(kernel)(family, "", hanging.text, []).statements
assert "address 0x1 " in verdict(bounded(statements, 0))[1]

# What tools print.
assert card.ptxas_says(255, "ptxas x.ptx, line 3; error : no\n") == ("refused", "ptxas x.ptx, line 3; error : no")
assert card.ptxas_says(0, "ptxas info : (C7510) serialized")[0] == "warns" and card.ptxas_says(0, "")[0] == "accepted"
right, wrong = json.dumps({"verified": True}), json.dumps({"verified": False, "runs": 7, "verification": "NOT verified"})
assert card.card_says(0, right, "") == ("right", "") and card.card_says(1, wrong, "") == ("wrong", "launch 7: NOT verified")
ran = "error: running kernel `gemm` failed: CUDA_ERROR_%s (700), text\n"
assert card.card_says(1, "", ran % "ILLEGAL_ADDRESS") == ("fault", "ILLEGAL_ADDRESS")
assert card.card_says(3, "", "error: encoding tensor map `a` failed: CUDA_ERROR_INVALID_VALUE (1)")[0] == "refused"
assert card.card_says(3, "", "error: allocating `a` failed: CUDA_ERROR_OUT_OF_MEMORY (2)")[0] == "error"
assert card.card_says(None, "", "") == ("timeout", "") and card.card_says(3, "", "no device")[0] == "error"
assert card.sanitizer_says(0, "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n") == ("silent", "")
read = "========= Invalid __global__ read of size 4 bytes\n=========     Address 0x%x is out of bounds\n"
assert card.sanitizer_says(1, read % 0x7f10 + "========= ERROR SUMMARY: 1 error\n") == (
    "reports", "Invalid __global__ read of size N bytes")
assert card.sanitizer_says(1, read % 1 + "========= ERROR SUMMARY: 1 error\n") == ("gave up", "")
assert card.sanitizer_says(1, "========= Program hit CUDA_ERROR_LAUNCH_FAILED\n========= ERROR SUMMARY: 1 error\n")[0] == "fault"
assert card.sanitizer_says(0, "========= Error: Race reported between Read access\n========= RACECHECK SUMMARY: 1 hazard"
                           " displayed (1 error, 0 warnings)\n")[0] == "reports"
assert card.sanitizer_says(1, "could not start")[0] == "error"
assert card.execute(["sleep", "30"], 0.2)[0] is None and card.execute(["echo", "x"], 5)[:2] == (0, "x\n")

# Who may run.
row = {"hang": "", "verdict": "detected", "operator": "M7", "codes": "WG-2"}
assert card.kept_away(row) is None and card.kept_away(row | {"hang": "deadlock"}) == "hangs"
assert card.kept_away(row | {"codes": "NB-2"}) == card.kept_away(row | {"operator": "M38"}) == "may block"
assert card.kept_away(row | {"verdict": "timeout"}) == "timeout"
assert card.kept_away(row | {"codes": "CA-5 NB-8"}) is None

# A whole run: M9 gives up and memcheck reports it, M17 is kept away, M45 is right; racecheck reports everything, which counts
# for nothing.
asked = []


def tools(command, seconds):
    text = pathlib.Path(next(word for word in map(str, command) if word.endswith(".ptx"))).read_text()
    asked.append((command[0], text))
    if command[0] == "ptxas":
        return 0, "", ""
    assert "max(1, sms)" not in text and "%bound_n, 1048576;" in text
    if "racecheck" in command:
        return 0, "========= Error: Race\n========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n", ""
    if "memcheck" in command and text.count("_wait.parity") < 3:
        return 1, read % 0x7f10 + "========= ERROR SUMMARY: 1 error\n", ""
    if command[0] == "sanitizer":
        return 0, "========= ERROR SUMMARY: 0 errors\n", ""
    if text.count("_wait.parity") == 3:
        return 0, right, ""
    return 1, "", ran % ("MISALIGNED_ADDRESS" if f"%bound_a, {MISALIGNED};" in text else "ILLEGAL_ADDRESS")


card.SAMPLE = 6  # all of them
work = [(kernel, mutant) for mutant in mutants_of(kernel, ["M9", "M17", "M45"])]
known = {mutant.digest: row | {"digest": mutant.digest, "family": family, "operator": mutant.operator,
                               "hang": "deadlock" if mutant.operator == "M17" else ""} for _, mutant in work}
with tempfile.TemporaryDirectory() as folder:
    path, said = pathlib.Path(folder) / "answers", []
    lab = card.Lab("gemmc", folder, 60, "ptxas", "sanitizer", tools)
    assert card.measure(lab, card.plan(work, [kernel], known, list(card.STEPS)), path, 2, said.append) == 0
    answers = card.answers(path)
    for _, mutant in work:
        found = {step: row["result"] for step, row in answers[mutant.digest].items()}
        expected = {"ptxas": "accepted"} if mutant.operator == "M17" else {
            "ptxas": "accepted", "card": "gave up" if mutant.operator == "M9" else "right", "memcheck": "reports" if mutant.operator == "M9" else "silent", "racecheck": "reports", "synccheck": "silent"}
        assert found == expected, (mutant.name, found)
    assert answers[family]["card"]["operator"] == card.CONTROL and answers[family]["card"]["result"] == "right"
    rows = list(known.values())
    print(hardware.report(rows, answers, {name: title for name, (title, _) in OPERATORS.items()}))
    # Without time nothing is done, and that is said.
    late = card.Lab("gemmc", folder, 1, "ptxas", "sanitizer", tools)
    assert card.measure(late, card.plan(work, [kernel], known, ["card"]), path, 2, said.append) == 0  # all have answers
    path.unlink()
    left = card.measure(late, card.plan(work, [kernel], known, ["card"]), path, 2, said.append)
    assert left > 0 and "not run" in said[-1], said
