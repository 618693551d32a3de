"""The table of a run, as text, and in docs/detection.md."""
import collections
import datetime
import re

import given

# Operators of the list that have no place in a kernel of gemmc, and what stands for them.
NO_SITE = {"M50": "drop the acquire fence of a tensor map"}
MARKS = "<!-- table: written by utils/mutate --write-docs -->", "<!-- end of the table -->"
MISTAKES = ("detected", "missed", "review", "incomplete", "timeout", "crashed", "contradiction")


def checked(row):
    """A row as it was written; an exception where it is something else."""
    words = ["family", "operator", "what", "digest", "verdict", "codes", "hang"]
    words += ["reason"] if row["verdict"] == "equivalent" else []
    if not all(isinstance(row[word], str) for word in words):
        raise TypeError("all of these are texts")
    given.positive(1 + row["seconds"]), row["site"], row["hang"] and row["explained"]
    return row


def order_of(operator):
    number = re.match(r"M(\d+)(.*)", operator)
    return int(number[1]), number[2]


def count(rows):
    return collections.Counter(row["verdict"] for row in rows)


def missed_of(counts):
    return sum(counts[verdict] for verdict in MISTAKES) - counts["detected"]


def rate(rows):
    """(detected, mistakes, per cent)"""
    counts = count(rows)
    mistakes = sum(counts[verdict] for verdict in MISTAKES)
    return counts["detected"], mistakes, 100 * counts["detected"] / max(1, mistakes)


def table(rows, titles):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["operator"]].append(row)
    lines = ["| operator | mutants | detected | proven equivalent | missed | hangs | slowest | found as |",
             "|---|---|---|---|---|---|---|---|"]
    for name in sorted(set(groups) | set(NO_SITE), key=order_of):
        group = groups.get(name)
        if not group:
            lines.append(f"| {name} {NO_SITE[name]} | 0 | | | | | | |")
            continue
        counts = count(group)
        found = collections.Counter(code for row in group if row["verdict"] == "detected" for code in row["codes"].split())
        codes = ", ".join(code for code, _ in found.most_common(4))
        hangs = sum(bool(row["hang"]) for row in group)
        lines.append(f"| {name} {titles[name]} | {len(group)} | {counts['detected']} | {counts['equivalent'] or ''} | "
                     f"{missed_of(counts) or ''} | {hangs or ''} | {max(row['seconds'] for row in group):.1f} s | {codes} |")
    return "\n".join(lines)


def summary(rows):
    counts, (detected, mistakes, percent) = count(rows), rate(rows)
    families = len({row["family"] for row in rows})
    hangs = [row for row in rows if row["hang"]]
    text = (f"{len(rows)} mutants of {families} kernels: {detected} of the {mistakes} that are mistakes are detected "
            f"({percent:.1f}%), {counts['equivalent']} are proven equivalent")
    if counts["refused"]:
        text += f", {counts['refused']} are refused before they run"
    if hangs:
        explained = sum(row["explained"] for row in hangs)
        text += (f".\n{len(hangs)} of them hang; {explained} are explained in time, the slowest in "
                 f"{max(row['seconds'] for row in hangs):.1f} s")
    return text + "."


def misses(rows):
    for row in rows:
        if row["verdict"] not in ("detected", "equivalent") or (row["hang"] and not row["explained"]):
            yield (f"  {row['verdict']}: {row['family']} {row['operator']}.{row['site']} ({row['what']}) "
                   f"{row['codes']} {row['seconds']} s")


def reasons(rows):
    groups = collections.defaultdict(collections.Counter)
    for row in rows:
        if row["verdict"] == "equivalent":
            groups[row["reason"]][row["operator"]] += 1
    return [f"- {', '.join(f'{op} ({n})' for op, n in sorted(ops.items(), key=lambda one: order_of(one[0])))}: {reason}."
            for reason, ops in sorted(groups.items(), key=lambda one: order_of(min(one[1], key=order_of)))]


def write_docs(path, rows, titles, command):
    text = path.read_text()
    begin, end = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    seconds = sum(row["seconds"] for row in rows)
    made = ["", f"`{command}`, {datetime.date.today()}, {seconds:.0f} s of processor time (without the probes).", "",
            table(rows, titles), "",
            summary(rows), "", "Proven equivalent:", "", *reasons(rows), ""]
    if lines := list(misses(rows)):
        made += ["Not detected:", "", *(f"- {line.strip()}" for line in lines), ""]
    path.write_text(text[:begin] + "\n".join(made) + text[end:])
