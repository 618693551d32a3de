"""PTX text as statements, the table of operators, and small tools to write one.

An operator is a generator: it looks for its sites in a kernel and yields a `Mutant` for each. Helpers below make the
frequent ones from a pattern. What an operator knows about when its mistake is none, it says as a `Proof`."""
import dataclasses
import hashlib
import re


@dataclasses.dataclass
class Proof:
    """Why a mutant may be equivalent. With a probe, it is one when the probe never traps (equivalence.py)."""
    reason: str
    probe: list | None = None  # statements: the original with a trap where original and mutant would differ
    elsewhere: bool = False    # of some launches only: that of others is detected is no contradiction


@dataclasses.dataclass
class Mutant:
    family: str
    operator: str
    site: int
    what: str
    text: str
    proof: Proof | None = None

    @property
    def name(self):
        return f"{self.family} {self.operator}.{self.site}"

    @property
    def digest(self):
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


class Kernel:
    """The text as statements: whole instructions (which may span lines), labels, everything else."""

    def __init__(self, family, spec, text, arguments):
        self.family, self.spec, self.arguments = family, spec, arguments
        self.statements, pending = [], ""
        in_body = False
        for line in text.splitlines():
            code = line.split("//")[0].strip() if not line.startswith("//!") else ""
            if line == "{":
                in_body = True
            starts = in_body and code and code != ")" and not code.endswith((";", ":", "{", "}"))
            if pending or (starts and not code.startswith(".")):
                pending += ("\n" if pending else "") + line
                if code.endswith(";"):
                    self.statements.append(pending)
                    pending = ""
            else:
                self.statements.append(line)

    def find(self, pattern, after=-1):
        return [i for i, s in enumerate(self.statements)
                if i > after and not s.startswith("//!") and ".reg " not in s and re.search(pattern, s.strip())]

    def edit(self, index, *replacement):
        """The statements with `index` replaced."""
        return self.statements[:index] + list(replacement) + self.statements[index + 1:]

    def insert(self, index, *lines):
        """The statements with more before `index`."""
        return self.statements[:index] + list(lines) + self.statements[index:]

    def threads(self):
        return int(re.search(r"\.reqntid (\d+)", "\n".join(self.statements))[1])

    def grid_depends_on_sms(self):
        return any(s.startswith("//!") and "grid:" in s and "sms" in s for s in self.statements)


def text_of(statements):
    return "\n".join(statements) + "\n"


def guard_of(statement):
    """The predicate of an instruction as an operand, `!` included, or None."""
    found = re.match(r"@(!?%\w+)", statement.strip())
    return found[1] if found else None


def trapping(kernel, index, lines, predicate, start=()):
    """The original that traps before statement `index` in lanes where `predicate`, set by `lines`, is true."""
    statements = kernel.insert(index, *(f"    {line}" for line in lines), f"    @{predicate} trap;")
    body = max(i for i, s in enumerate(statements[:index + 1]) if s == "{") + 1  # of the kernel that has the statement
    declared = ["    .reg .pred %mut_p, %mut_q;", "    .reg .b32 %mut_a, %mut_b;"]
    first = next(i for i, s in enumerate(statements) if i > body and s.strip() and not s.strip().startswith("."))
    return statements[:body] + declared + statements[body:first] + list(start) + statements[first:]


def differing(kernel, index, old, new, reason, kind="u32"):
    """A proof for `old` replaced by `new` in statement `index`: the two are equal whenever it executes."""
    guard = guard_of(kernel.statements[index])
    test = (f"setp.ne.and.{kind} %mut_p, {old}, {new}, {guard};" if guard else f"setp.ne.{kind} %mut_p, {old}, {new};")
    return Proof(reason, trapping(kernel, index, [test], "%mut_p"))


def never(kernel, index, predicate, reason):
    """A proof: `predicate` (an operand like `%p` or `!%p`) is false whenever statement `index` is reached."""
    return Proof(reason, trapping(kernel, index, [], predicate))


OPERATORS = {}  # name -> (title, generator of (what, statements[, proof]))


def operator(name, title):
    def register(function):
        OPERATORS[name] = (title, function)
        return function
    return register


def dropping(name, title, pattern, proof=None):
    @operator(name, title)
    def drop(kernel):
        for i in kernel.find(pattern):
            yield kernel.statements[i].strip(), kernel.edit(i), proof(kernel, i) if proof else None


def replacing(name, title, pattern, *pairs):
    """Each `(old, new)` of `pairs` is a regular expression applied to the statement."""
    @operator(name, title)
    def replace(kernel):
        for i in kernel.find(pattern):
            for old, new in pairs:
                made = re.sub(old, new, kernel.statements[i], count=1)
                if made != kernel.statements[i]:
                    yield made.strip(), kernel.edit(i, made)


def bump(delta):
    """For `replacing`: the number in the first group, changed."""
    return lambda m: m[0][:m.start(1) - m.start(0)] + str(int(m[1]) + delta) + m[0][m.end(1) - m.start(0):]


NOTHING_TO_CLEAR = "the first tile of no CTA is a last one: nothing is cleared here, and what stands behind it is for nothing"
CLEARED_TWICE = "all of it comes before the first copy, which writes what is cleared too much before it is read"
CLEARED_BEHIND = "what is cleared too much lies behind the last stage: a buffer of the epilogue, written before it is read"


def clearing(kernel):
    """[(statements that clear what no copy brings or wait for that, the proof of what is wrong there)]."""
    begins = kernel.find(r"^// no copy brings what lies beyond")
    if not begins:
        return []
    meeting = next(iter(kernel.find(r"^bar\.sync\s+15,", begins[0])), None)
    if meeting is None:
        return [(range(begins[0], kernel.find(r"^fence\.proxy\.async", begins[0])[0] + 1), Proof(CLEARED_TWICE, elsewhere=True))]

    def trapped(places):
        made = kernel.statements
        for i in sorted(places, reverse=True):
            after = next(j for j in range(i + 1, len(made)) if not made[j].strip().startswith(("setp", "@!")))
            made = made[:after] + ["    trap;"] + made[after:]
        return Proof(NOTHING_TO_CLEAR, made)
    last = max(i for i in kernel.find(r"st\.shared\.v4\.b32") if i < meeting)
    ends = [kernel.find(r"^L_cleared\w*:|^// no copy brings|^fence\.proxy", i)[0] for i in begins]
    return ([(range(i, end + 1), trapped([i])) for i, end in zip(begins, ends)] +
            [(range(ends[-1], meeting + 1), trapped(begins))] +
            ([(range(last, last + 1), Proof(CLEARED_BEHIND, elsewhere=True))] if in_last_buffer(kernel, last) else []))


def in_last_buffer(kernel, index):
    """Whether the store at `index` writes to tiles of B, behind which the epilogue's buffers lie."""
    first = next(int(m[1]) for s in kernel.statements if (m := re.search(r"name: sB, offset: (\d+)", s)))
    return int(re.search(r"\+(\d+)\]", kernel.statements[index])[1]) >= first


def where(kernel, statements):
    """The original's statements that are others."""
    old, first = kernel.statements, 0
    while first < min(len(old), len(statements)) and old[first] == statements[first]:
        first += 1
    last = 0
    while last < min(len(old), len(statements)) - first and old[-1 - last] == statements[-1 - last]:
        last += 1
    return range(first, max(first + 1, len(old) - last))


def mutants_of(kernel, only=None):
    """Each text once, even where two operators make the same."""
    seen = {text_of(kernel.statements)}
    idle = clearing(kernel)
    for name in sorted(OPERATORS, key=lambda name: name.startswith("M37")):  # what drops any barrier comes last
        title, make = OPERATORS[name]
        if only and name not in only:
            continue
        for site, (what, statements, *proof) in enumerate(make(kernel)):
            text = text_of(statements)
            if text not in seen:
                seen.add(text)
                reason, changed = proof[0] if proof else None, where(kernel, statements)
                for place, known in idle:
                    if changed.start in place and changed.stop - 1 in place and (not reason if known.probe else name == "M55"):
                        reason = known
                yield Mutant(kernel.family, name, site, " ".join(what.split())[:100], text, reason)
