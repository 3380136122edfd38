"""peer.py - code shared by torch_peer.py and jax_peer.py: timing as in measure.c, resident memory, and answers in JSON."""
import ctypes
import json
import sys
import time

SAMPLES, SHORTEST, MOST_SAMPLES, MOST_CALLS = 25, 0.0005, 400, 1000000
CACHE, MEMORY = 1 << 16, 1 << 24


def resident(name):
    """Returns the value of a line of /proc/self/status in bytes, or -1 if there is none."""
    try:
        with open("/proc/self/status") as f:
            return next((int(line.split()[1]) * 1024 for line in f if line.startswith(name)), -1)
    except OSError:
        return -1


def reset_resident():
    """Returns free memory to the system, and resets VmHWM, the peak, to the current resident size."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except AttributeError:
        pass
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        pass


def quantile(ascending, q):
    return ascending[int(q * (len(ascending) - 1) + 0.5)]


class Live:
    """An item that is ready to run: step() does `units` units of work, wait() waits for the device, and agree(value) returns
    the value that rank 0 passed."""

    def __init__(self, step, units=1, parameters=0, wait=lambda: None, agree=lambda value: value, **notes):
        self.step, self.units, self.parameters, self.wait, self.notes = step, units, parameters, wait, notes
        self.agree = agree
        self.warm, self.before = False, -1

    def seconds_of(self, calls):
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(calls):
            self.step()
        self.wait()
        return (time.perf_counter() - start) / calls, (time.process_time() - cpu) / calls

    def measure(self, seconds):
        if not self.warm:
            self.seconds_of(1)
            reset_resident()  # excludes memory used for compiling
        self.warm = True
        end, once = time.perf_counter() + seconds, self.seconds_of(1)
        calls = int(self.agree(min(max(max(seconds / SAMPLES, SHORTEST) / max(once[0], 1e-9), 1), MOST_CALLS)))
        samples = []
        while len(samples) < MOST_SAMPLES and self.agree(time.perf_counter() < end):
            samples.append(self.seconds_of(calls))
        if not samples:
            calls, samples = 1, [once]
        return self.figures(sorted(s[0] for s in samples), sorted(s[1] for s in samples), calls)

    def figures(self, wall, cpu, calls):
        us = 1e6 / self.units
        most = resident("VmHWM:")
        found = dict(us=quantile(wall, 0.5) * us, low=quantile(wall, 0.25) * us, high=quantile(wall, 0.75) * us,
                     least=wall[0] * us, most=wall[-1] * us, cpu_us=quantile(cpu, 0.5) * us, samples=len(wall),
                     calls=calls, resident=most - self.before if self.before >= 0 and most >= 0 else -1, **self.notes)
        if self.parameters:
            found["parameters"] = self.parameters
        return found


def tell(**line):
    print(json.dumps(line), flush=True)


def words(e):
    lines = str(e).strip().splitlines() or [""]
    return f"{type(e).__name__}: {lines[0][:200]}"


def serve(make):
    """Answers lines "run NAME SECONDS" from stdin. make(name) returns an item, or raises an exception."""
    live, current = None, None
    for line in sys.stdin:
        try:
            verb, name, seconds = line.split()
            if verb != "run":
                raise ValueError(verb)
            seconds = float(seconds)
        except ValueError:
            tell(name="", failed="expected: run NAME SECONDS")
            continue
        try:
            if name != current:
                live, current = None, None
                reset_resident()
                before = resident("VmRSS:")
                live = make(name)
                if live.before < 0:
                    live.before = before
                current = name
            tell(name=name, **live.measure(seconds))
        except Exception as e:
            live, current = None, None
            tell(name=name, failed=words(e))


def sizes(kernels):
    """Returns two items for each kernel, with the number of elements for the cache and for memory."""
    return {f"{name}/{place}": (make, n) for name, make in kernels.items()
            for place, n in (("cache", CACHE), ("memory", MEMORY))}
