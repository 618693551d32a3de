"""Reads a timeline of a cooperative kernel with 3 stages, 8 k steps and one tile, and checks what its spans must be like
to each other."""
import collections
import json
import sys

events = json.load(open(sys.argv[1]))
assert all(event["ph"] in "MX" for event in events)
names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["CTA (0, 0, 0)"]
assert names[0, 0] == "warp 0, producer" and names[0, 4] == "warp 4, consumer", names
spans = collections.defaultdict(list)
tracks = collections.defaultdict(list)
for event in events:
    if event["ph"] == "X":
        assert not event["args"].get("unfinished"), event
        spans[event["name"]].append(event)
        tracks[event["pid"], event["tid"]].append(event)
        assert (event["pid"], event["tid"]) in names


def end(event):
    return event["ts"] + event["dur"]


for track in tracks.values():  # spans of a track follow each other
    for before, after in zip(track, track[1:]):
        assert end(before) <= after["ts"], (before, after)

# Each of the 8 k steps is one copy of A and one of B, in turn to stages 0, 1, 2.
for operand in "sA", "sB":
    assert [len(spans[f"copy to {operand}[{stage}]"]) for stage in range(3)] == [3, 3, 2]
# A consumer goes on with stage 0 when both copies to it have completed.
waits = [e for e in spans["wait full[0]"] if e["tid"] == 4]
assert waits
first = waits[0]
for operand in "sA", "sB":
    assert spans[f"copy to {operand}[0]"][0]["ts"] <= first["ts"] and end(spans[f"copy to {operand}[0]"][0]) <= end(first)
# The second copy to stage 0 is issued after the wgmma on the first.
products = [e for e in spans["wgmma sA[0], sB[0]"]]
assert len([e for e in products if names[0, e["tid"]].startswith("wgmma of warps 4 to 7")]) == 3
assert end(products[0]) <= spans["copy to sA[0]"][1]["ts"]
if "k_step" in first["args"]:  # with a check
    assert first["args"]["k_step"] == 0
    assert [e["args"]["k_step"] for e in spans["copy to sB[1]"]] == [1, 4, 7]
assert spans["copy from sD"]
