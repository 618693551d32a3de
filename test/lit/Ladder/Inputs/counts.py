"""counts.py without ncu: the lines of machine instructions, and a source page made up from the emulator's counts."""
import csv
import io
import json
import pathlib
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(root / "utils"))
import counts
from lineinfo import INSTRUCTION, lines_of, sections
from toolkit import find_ptxas

# The low 12 bits of an instruction of sm_80 to sm_90 that tell these, and the PTX instructions that become one.
ENCODED = {0x83B: ("LDSM", "ldmatrix|wmma.load"), 0xFAE: ("LDGSTS", "cp.async"), 0x986: ("STG", "st.global"),
           0x388: ("STS", "st.shared|wmma.store"), 0x984: ("LDS", "ld.shared|wmma.load"), 0x981: ("LDG", "ld.global")}
NOTHING = "NOP", ""


def decoded(word):
    """The next four bits are the guard; 15 is never (ptxas puts such loads in front of LDGSTS)."""
    return NOTHING if word >> 12 == 15 else ENCODED.get(word & 0xFFF, NOTHING)


gemmc, spec, arguments = sys.argv[1], root / sys.argv[2], sys.argv[3:]

with tempfile.TemporaryDirectory() as folder:
    path, cubin, ptx, rest = counts.compiled(spec, arguments, gemmc, find_ptxas(), folder, "sm_80")
    machine = cubin.read_bytes()
    entry = counts.entry_of(ptx)
    lines = lines_of(machine, entry)
    report = json.loads(counts.run(gemmc, "run", path, *rest, "--input", "integer", "--device", "emulator", "--json"))
code, text = sections(machine)[0][f".text.{entry}"][1], ptx.splitlines()
names = [decoded(int.from_bytes(code[at:at + 2], "little")) for at in range(0, len(code), INSTRUCTION)]
assert len(names) == len(lines)
found = {name for name, _ in names}
for (name, origin), line in zip(names, lines):
    assert any(one in text[line - 1] for one in origin.split("|")), (name, line, text[line - 1])
print(path.stem, "machine instructions:", *sorted(found - {"NOP"}))

emulator = counts.predicted(report, ptx)
assert sum(both[1] for both in emulator.values()) == sum(report[kind]["sectors"] for kind in ("loads", "stores", "copies"))
assert sum(both[0] for both in emulator.values()) == sum(report[kind]["bank_conflicts"] for kind in ("loads", "stores"))


def page(change=0):
    """The whole count of a line in its first machine instruction that may have it; `change` more sectors in one of them."""
    out, done = io.StringIO(), set()
    writer = csv.writer(out)
    writer.writerow(["#", "Source", counts.WAVEFRONTS, counts.IDEAL, counts.SECTORS])
    for number, ((name, _), line) in enumerate(zip(names, lines)):
        conflicts, sectors = emulator.get(line, (0, 0)) if name != "NOP" and line not in done else (0, 0)
        done |= {line} if name != "NOP" else set()
        if sectors and change:
            sectors, change = sectors + change, 0
        writer.writerow([number, f"@P0 {name}.X R1", conflicts + 7 if conflicts else 0, 7 if conflicts else 0, sectors])
    return "==PROF== Connected\n" + out.getvalue()


assert not (found := list(counts.differences(ptx, counts.counted(counts.page(page()), lines), emulator))), found
differ, = counts.differences(ptx, counts.counted(counts.page(page(3)), lines), emulator)
print(differ)
try:
    counts.counted(counts.page(page())[1:], lines)
    assert False
except ValueError as error:
    print(error)
