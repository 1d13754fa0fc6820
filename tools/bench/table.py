"""The rows of the table: what was measured, what it was once, and what it is to be."""

from typing import NamedTuple

from bench.bare import Bare
from bench.burst import Bursts
from bench.crowd import Crowd


class Row(NamedTuple):
    """One measure."""

    measure: str
    before: str
    """In the operator of 2026-11-30."""
    goal: str
    measured: str
    is_met: bool


class Run(NamedTuple):
    """All that one run of the bench has measured."""

    crowds: list[Crowd]
    bare: Bare
    single_bare: Bare
    others: float
    """MiB."""
    import_seconds: float
    """CPU."""
    bursts: Bursts | None
    kueue_requests: float | None


MOST_REQUESTS, MOST_KUEUE_REQUESTS = 6.0, 7.0
LEAST_THROUGHPUT, MOST_CPU, MOST_LATENCY = 0.85, 1.5, 1.3
MOST_MEMORY, MOST_PEAK, MOST_OTHERS = 200.0, 256.0, 10.0
MOST_READY, MOST_READY_CPU, MOST_IDLE_CPU, MOST_IMPORT = 20.0, 15.0, 0.01, 0.7


def rows(run: Run) -> list[Row]:
    """Return the table."""
    least, most = run.crowds[0], run.crowds[-1]
    bare_cpu, crowd = run.bare.cpu / run.bare.starts, f"{most.residents:,} settled Starts"
    cpu, last_cpu = least.cpu / bare_cpu, most.cpu / bare_cpu
    latency = most.latency / run.single_bare.median
    asked = {request for request in most.idle.requests if " watch " not in request}
    return [
        *_of_bursts(run.bursts),
        *_of_kueue(run.kueue_requests),
        Row(
            f"operator CPU a Start against the bare client's, with {least.residents:,} and with {crowd}",
            "3 to 4.5 times, growing",
            f"at most {MOST_CPU}",
            f"{cpu:.2f} and {last_cpu:.2f} ({1000 * most.cpu:.1f} ms and {1000 * bare_cpu:.1f} ms)",
            max(cpu, last_cpu) <= MOST_CPU,
        ),
        Row(
            f"latency of one Start against the bare client's, with {crowd}",
            "-",
            f"at most {MOST_LATENCY}",
            f"{latency:.2f} ({1000 * most.latency:.0f} ms and {1000 * run.single_bare.median:.0f} ms)",
            latency <= MOST_LATENCY,
        ),
        Row(
            f"resident memory with {crowd}; at the peak of a restart",
            "about 1 GiB",
            f"at most {MOST_MEMORY:.0f} MiB; {MOST_PEAK:.0f} MiB",
            f"{most.memory:.0f} MiB; {most.peak:.0f} MiB",
            most.memory <= MOST_MEMORY and most.peak <= MOST_PEAK,
        ),
        Row(
            f"restart with {crowd}: until ready; its CPU; writes",
            "never",
            f"{MOST_READY:.0f} s; {MOST_READY_CPU:.0f} s; none",
            f"{most.ready:.1f} s; {most.ready_cpu:.1f} s; {most.writes or 'none'}",
            most.ready <= MOST_READY and most.ready_cpu <= MOST_READY_CPU and not most.writes,
        ),
        Row(
            f"idle with {crowd}: requests but watches; CPU",
            "-",
            "none; none worth naming",
            f"{', '.join(sorted(asked)) or 'none'}; {100 * most.idle.cpu:.1f} %",
            not asked and most.idle.cpu <= MOST_IDLE_CPU,
        ),
        Row(
            "5,000 Workloads, JobSets and runtimes of others",
            "-",
            f"at most {MOST_OTHERS:.0f} MiB",
            f"{run.others:.1f} MiB",
            run.others <= MOST_OTHERS,
        ),
        Row(
            "import and start of the command, CPU",
            "1.8 s",
            f"under {MOST_IMPORT} s",
            f"{run.import_seconds:.2f} s",
            run.import_seconds < MOST_IMPORT,
        ),
    ]


def _of_bursts(bursts: Bursts | None) -> list[Row]:
    if bursts is None:
        return []
    burst, floor = bursts.operator, bursts.floor
    rate, floor_rate = burst.starts / burst.seconds, floor.starts / floor.seconds
    single = bursts.single / bursts.single_floor.median
    return [
        Row(
            "API requests a settled Start, Events aside",
            "6.3",
            f"at most {MOST_REQUESTS:.0f}",
            f"{burst.requests:.2f}",
            round(burst.requests, 2) <= MOST_REQUESTS,
        ),
        Row(
            f"throughput of a burst of {burst.starts:,} against the bare client's",
            "0.33 (of five requests)",
            f"at least {LEAST_THROUGHPUT}",
            f"{rate / floor_rate:.2f} ({rate:.1f} and {floor_rate:.1f} Starts a second)",
            rate / floor_rate >= LEAST_THROUGHPUT,
        ),
        Row(
            "its CPU a Start against the bare client's",
            "3 to 4.5 times",
            f"at most {MOST_CPU}",
            f"{(burst.cpu / burst.starts) / (floor.cpu / floor.starts):.2f}",
            burst.cpu / burst.starts <= MOST_CPU * floor.cpu / floor.starts,
        ),
        Row(
            "latency of one Start against the bare client's, on the real control plane",
            "-",
            f"at most {MOST_LATENCY}",
            f"{single:.2f} ({1000 * bursts.single:.0f} ms)",
            single <= MOST_LATENCY,
        ),
        Row("for comparison: `kubectl apply` in a loop", "-", "-", f"{bursts.kubectl:.1f} jobs a second", is_met=True),
        Row(
            "for comparison: the Kubeflow SDK's `train()` in a loop",
            "-",
            "-",
            f"{bursts.sdk:.1f} jobs a second",
            is_met=True,
        ),
    ]


def _of_kueue(requests: float | None) -> list[Row]:
    if requests is None:
        return []
    goal = f"at most {MOST_KUEUE_REQUESTS:.0f}"
    met = round(requests, 2) <= MOST_KUEUE_REQUESTS
    return [Row("API requests a Start of a burst of 100 through Kueue", "-", goal, f"{requests:.2f}", met)]


def as_markdown(table: list[Row]) -> str:
    """Return the table as a page holds it."""
    lines = ["| measure | before | goal | measured | |", "|---|---|---|---|---|"]
    lines += [
        f"| {one.measure} | {one.before} | {one.goal} | {one.measured} | {'✓' if one.is_met else '✗'} |"
        for one in table
    ]
    return "\n".join(lines)


def growth(crowds: list[Crowd]) -> str:
    """Return how everything grows with the number of settled Starts."""
    lines = [
        "| settled Starts | CPU a Start | latency | resident | peak | ready after | its CPU | requests a Start |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.residents:,} | {1000 * one.cpu:.1f} ms | {1000 * one.latency:.0f} ms | {one.memory:.0f} MiB "
        f"| {one.peak:.0f} MiB | {one.ready:.1f} s | {one.ready_cpu:.1f} s | {one.requests:.2f} |"
        for one in crowds
    ]
    return "\n".join(lines)
