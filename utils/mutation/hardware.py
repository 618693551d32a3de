"""The table of what ptxas, a card and compute-sanitizer said of the mutants, as text and in docs/detection.md."""
import collections

from mutation.card import CONTROL, LAUNCHES, SAMPLE, SANITIZERS, kept_away
from mutation.report import order_of

MARKS = "<!-- others: written by utils/mutate --measured --write-docs -->", "<!-- end of the others -->"
ON_CARD = ("refused", "wrong", "fault", "gave up", "timeout", "right")
HEAD = ["operator", "mistakes", "`gemmc check`", "ptxas: refused, warned", "driver refuses", "wrong D", "fault", "gave up waiting", "killed",
        "right D", "not run", *SANITIZERS]


def cell(number):
    return str(number) if number else ""


def reported(answers, family, tool):
    """Whether the tool reports the family's kernel with no mistake: then its word says nothing of a mutant."""
    return answers.get(family, {}).get(tool, {}).get("result") == "reports"


def row_of(name, rows, answers):
    """The cells of an operator's mistakes (`rows`: the emulator's verdicts)."""
    said = lambda step, rows=rows: collections.Counter(answers[row["digest"]][step]["result"] for row in rows
                                                       if step in answers.get(row["digest"], {}))
    ptxas, card = said("ptxas"), said("card")
    detected = sum(row["verdict"] == "detected" for row in rows)
    others = sum(card.values()) - sum(card[result] for result in ON_CARD)  # errors of ours
    away = len(rows) - sum(card.values()) + others
    warned = ", ".join(f"{number} {what}" for what, number in ((("refused"), ptxas["refused"]), ("warned", ptxas["warns"]))
                       if number) if ptxas else "not asked"
    tools = []
    for tool in SANITIZERS:
        found = said(tool, [row for row in rows if not reported(answers, row["family"], tool)])
        tools.append(f"{found['reports']} of {sum(found.values())}" if found else "-")
    return [name, str(len(rows)), cell(detected), warned, *(cell(card[result]) for result in ON_CARD), cell(away), *tools]


def report(rows, answers, titles):
    """The table, and what stands around it."""
    groups, mistakes = collections.defaultdict(list), [row for row in rows if row["verdict"] == "detected"]
    for row in mistakes:
        groups[row["operator"]].append(row)
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    for name in sorted(groups, key=order_of):
        lines.append("| " + " | ".join(row_of(f"{name} {titles[name]}", groups[name], answers)) + " |")
    lines.append("| " + " | ".join(row_of("**all**", mistakes, answers)) + " |")
    return "\n".join(lines + ["", *remarks(rows, mistakes, answers)])


def remarks(rows, mistakes, answers):
    card = lambda digest: answers.get(digest, {}).get("card", {}).get("result")
    if not any("card" in steps for steps in answers.values()):
        yield "Only ptxas has been asked: no card and no compute-sanitizer yet."
        return
    equal = collections.Counter(card(row["digest"]) or "not run" for row in rows if row["verdict"] == "equivalent")
    yield (f"Of the mutants that are proven equivalent, the card's D: "
           f"{', '.join(f'{number} {what}' for what, number in sorted(equal.items()))}.")
    away = collections.Counter(kept_away(row) for row in mistakes if kept_away(row))
    late = sum(not kept_away(row) and card(row["digest"]) is None for row in mistakes)
    yield (f"Not run: {', '.join(f'{number} {why}' for why, number in sorted(away.items()))}"
           f"{f', {late} for want of time' if late else ''}.")
    faults = collections.Counter(answers[row["digest"]]["card"]["detail"] for row in mistakes
                                 if card(row["digest"]) == "fault")
    if faults:
        yield f"Faults: {', '.join(f'{number} {what}' for what, number in faults.most_common())}."
    controls = {digest: steps for digest, steps in answers.items()
                if any(row["operator"] == CONTROL for row in steps.values())}
    for step in ("card", *SANITIZERS):
        found = collections.defaultdict(list)
        for digest, steps in sorted(controls.items()):
            if step in steps:
                found[steps[step]["result"]].append(digest)
        if found:
            yield (f"The kernels with no mistake, {step}: " + ", ".join(
                f"{len(names)} {what}" + (f" ({', '.join(names)})" if what not in ("right", "silent") else "")
                for what, names in sorted(found.items())) + ".")
    yield (f"Each mutant was launched up to {LAUNCHES} times with other inputs; compute-sanitizer saw up to {SAMPLE} mutants of "
           "each operator, one launch each.")


def write_docs(path, text):
    page = path.read_text()
    begin, end = page.index(MARKS[0]) + len(MARKS[0]), page.index(MARKS[1])
    path.write_text(f"{page[:begin]}\n{text}\n{page[end:]}")
