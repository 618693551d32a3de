#!/usr/bin/env python3
"""Fails while a diagnostic of the tables (include/gemmc/Support/Diags/*.def) is produced by no test.

  test/diag_coverage.py [--build DIR]

The unit tests and the lit tests of a build append the names of all diagnostics that they produced to
DIR/diagnostics.txt (test/RecordDiags.cpp); run them all first. WAIVED lists rows that no test can produce here, each
with the reason; a waived row that is produced, or does not exist, is an error too."""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\s*GEMMC_DIAG\((\w+),", re.MULTILINE)

WAIVED = {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", metavar="DIR")
    record = parser.parse_args().build / "diagnostics.txt"
    if not record.exists():
        print(f"{record} is missing: run the unit tests and the lit tests first")
        return 2
    produced = set(record.read_text().split())
    tables = {path.name: ROW.findall(path.read_text())
              for path in sorted((ROOT / "include/gemmc/Support/Diags").glob("*.def"))}
    known = {name for names in tables.values() for name in names}
    problems = [f"{table}: {name} is produced by no test"
                for table, names in tables.items() for name in names if name not in produced and name not in WAIVED]
    problems += [f"WAIVED: {name} is produced by a test" for name in WAIVED if name in produced]
    problems += [f"WAIVED: {name} does not exist" for name in WAIVED if name not in known]
    for problem in problems:
        print(problem)
    print(f"{len(known & produced)} of {len(known)} diagnostics are produced by tests, {len(WAIVED)} waived")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
