"""The text of a mutant as it may run on a card: no wait without an end, and the grid that the emulator ran.

Only loops around mbarrier.try_wait and test_wait spin in the kernels of mutation/families.py. A card says False at once
(docs/emulator.md, question 11), so that a thread that has been told so a million times waits for what never comes."""
import re

from mutation.kernel import guard_of

TRIES = 1 << 20
# Where a thread loads from that gives up: a fault ends the launch. There are two, since a mutant may fault by itself. (A trap
# or an exit is a branch for ptxas: it serializes the wgmma of some kernels behind it, C7518, and hides their mistakes.)
MISALIGNED, UNMAPPED = 1, 4


def wait_loops(statements):
    """Indices of the branches back to a label over a wait for an mbarrier."""
    labels, found = {}, []
    for i, statement in enumerate(statements):
        text = statement.strip()
        if text == "}":
            labels = {}
        elif label := re.fullmatch(r"(\w+):", text):
            labels[label[1]] = i
        elif branch := re.match(r"(?:@\S+\s+)?bra(?:\.uni)?\s+(\w+);", text):
            body = statements[labels.get(branch[1], i):i]
            if len(body) < 8 and any(re.search(r"mbarrier\.(try|test)_wait", one) for one in body):
                found.append(i)
    return found


def bounded(statements, tries=TRIES, gives_up=MISALIGNED):
    """The statements with a bound on all waits of a thread together; the same where nothing waits."""
    out, start, begun = [], 0, None
    for i in wait_loops(statements):
        guard = guard_of(statements[i])
        entry = max(j for j in range(i) if statements[j] == "{")
        first = next(j for j in range(entry + 1, i) if statements[j].strip() and not statements[j].strip().startswith("."))
        if begun != entry:
            begun = entry
            out += statements[start:entry + 1] + ["    .reg .b32 %bound_n;", "    .reg .b64 %bound_a;",
                                                  "    .reg .pred %bound_p;"]
            out += statements[entry + 1:first] + ["    mov.u32 %bound_n, 0;",
                                                f"    mov.u64 %bound_a, {gives_up};"]
            start = first
        out += statements[start:i] + [f"    {'@' + guard + ' ' if guard else ''}add.u32 %bound_n, %bound_n, 1;",
                                      f"    setp.gt.u32 %bound_p, %bound_n, {tries};",
                                      "    @%bound_p ld.volatile.global.u32 %bound_n, [%bound_a];"]
        start = i
    return out + statements[start:]


def on_grid_of(statements, arguments):
    """A launch as on as many multiprocessors as `--sms=N` of `arguments` says, whatever the device has."""
    sms = next((word.removeprefix("--sms=") for word in arguments if word.startswith("--sms=")), None)
    if sms is None:
        return statements
    return [re.sub(r"\bsms\b", sms, one) if re.match(r"//!\s+(grid|workspace):", one) else one for one in statements]
