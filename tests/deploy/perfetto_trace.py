"""What is in a recorded trace: read by Perfetto's own trace_processor where it can be had, else by the format's rules.

The package `perfetto` of PyPI has no trace_processor: it fetches one when first used, unless TRACE_PROCESSOR names an
executable. The rules below are those of the Chrome trace format as Perfetto imports it: processes and threads are named
by metadata events, complete events ("X") are slices of their thread.
"""

import json
import os
import typing


class Slice(typing.NamedTuple):
    name: str
    process: str
    thread: str
    start: float  # microseconds
    end: float


QUERY = """
select slice.name as name, process.name as process, thread.name as thread, ts / 1e3 as start, (ts + dur) / 1e3 as end
from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)
"""


def slices(path):
    """The slices of all threads."""
    if executable := os.environ.get("TRACE_PROCESSOR"):
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

        with TraceProcessor(trace=str(path), config=TraceProcessorConfig(bin_path=executable)) as processor:
            return [Slice(r.name, r.process, r.thread, r.start, r.end) for r in processor.query(QUERY)]
    return by_the_rules(json.loads(path.read_text()))


def by_the_rules(trace):
    assert set(trace) <= {"traceEvents", "displayTimeUnit", "otherData"}
    processes, threads, opened, found = {}, {}, {}, []
    for event in trace["traceEvents"]:
        place = event["pid"], event.get("tid")
        if event["ph"] == "M":
            if event["name"] == "process_name":
                processes[event["pid"]] = event["args"]["name"]
            if event["name"] == "thread_name":
                threads[place] = event["args"]["name"]
        elif event["ph"] == "X":
            assert event["dur"] >= 0 and event["ts"] >= 0, event
            found.append((event["name"], place, event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] == "C":
            assert event["pid"] in processes and all(isinstance(value, int | float) for value in event["args"].values())
        else:  # asynchronous: told apart by category and id, each begun once and ended once
            key = event["pid"], event["cat"], event["id"]
            assert event["ph"] in "be", event
            if event["ph"] == "b":
                assert key not in opened, event
                opened[key] = event["ts"]
            else:
                assert opened.pop(key) <= event["ts"], event
    assert not opened
    return [Slice(name, processes[at[0]], threads[at], start, end) for name, at, start, end in found]
