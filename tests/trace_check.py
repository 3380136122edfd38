#!/usr/bin/env python3
"""Checks traces in Chrome's JSON format, and that one agrees with the tables that lg_profiler_print() printed.

usage: trace_check.py TRACE [TABLES]     checks a file; prints what is wrong and exits with 1
       trace_check.py --broken TRACE TABLES   breaks copies of a good trace; each must be found out
"""
import copy
import json
import sys
from collections import defaultdict


def ns(us):
    return round(us * 1000)


def number(e, key):
    return isinstance(e.get(key), (int, float)) and not isinstance(e.get(key), bool)


def row_of(e):
    """The row of the table by op to which an event belongs."""
    return {'module': 'forward', 'region': 'other'}.get(e.get('cat'), e['name'])


def nested(events):
    """Yields (event, its own ns, whether it is inside one of its row) of a thread; raises ValueError if two overlap."""
    open_ = []

    def end(e):
        return ns(e['ts']) + ns(e['dur'])

    for e in sorted(events, key=lambda e: (ns(e['ts']), -ns(e['dur']))):
        while open_ and end(open_[-1][0]) <= ns(e['ts']):
            yield tuple(open_.pop())
        if open_:
            if end(e) > end(open_[-1][0]):
                raise ValueError(f"{e['name']} at {e['ts']} ends after {open_[-1][0]['name']} at {open_[-1][0]['ts']}")
            open_[-1][1] -= ns(e['dur'])
        open_.append([e, ns(e['dur']), any(row_of(o[0]) == row_of(e) for o in open_)])
    yield from map(tuple, reversed(open_))


def sums_of(events):
    """Own and device's ns, and number of calls, by the names of the table of ops. Raises ValueError."""
    threads = defaultdict(list)
    for e in events:
        if e['ph'] == 'X':
            threads[e['pid'], e['tid']].append(e)
    own, device, calls = defaultdict(int), defaultdict(int), defaultdict(int)
    for list_ in threads.values():
        for e, self_, inside in nested(list_):
            if e.get('cat') == 'device':
                device[e['name']] += ns(e['dur'])
            elif e.get('cat') != 'region':
                own[row_of(e)] += self_
                calls[row_of(e)] += not inside
    return own, device, calls


def tables_of(text):
    """The first line's ms, and the rows of the table by op: name to a dict of the columns."""
    lines = text.splitlines()
    wall = float(lines[0].split(', ')[1].split()[0])
    heads = ['self %', 'calls', 'self ms', 'total ms', 'average us', 'device ms', 'GFLOP/s', 'GB/s', 'alloc MB', 'kept MB', 'peak MB']
    at = next(i for i, line in enumerate(lines) if line.startswith('by op'))
    heads = [h for h in heads if h in lines[at]]
    rows = {}
    for line in lines[at + 1:]:
        if not line.strip():
            break
        name, *columns = line.rsplit(None, len(heads))
        rows[name.strip()] = dict(zip(heads, columns))
    return wall, rows


def wrong_table(text, sums):
    own, device, calls = sums
    wall, rows = tables_of(text)
    total = rows.pop('all')
    other = float(rows.pop('other')['self ms'])
    if abs(float(total['self ms']) - wall) > 0.0011:
        yield f"the rows sum to {total['self ms']} ms, not {wall}"
    if abs(sum(float(r['self ms']) for r in rows.values()) + other - wall) > 0.0006 * (len(rows) + 2):
        yield 'the rows do not sum to the time'
    if other < 0:
        yield 'other is negative'
    for name in sorted(set(own) | set(rows)):
        if name not in own or name not in rows:
            yield f"{name} is not in the {'trace' if name in rows else 'table'}"
            continue
        if abs(own[name] * 1e-6 - float(rows[name]['self ms'])) > 0.0006:
            yield f"{name}: {own[name] * 1e-6} ms in the trace, {rows[name]['self ms']} in the table"
        if calls[name] != int(rows[name]['calls']):
            yield f"{name}: {calls[name]} calls in the trace, {rows[name]['calls']} in the table"
        if 'device ms' in rows[name] and abs(device[name] * 1e-6 - float(rows[name]['device ms'])) > 0.0011:
            yield f"{name}: the device works {device[name] * 1e-6} ms in the trace, {rows[name]['device ms']} in the table"


def wrong(trace, tables=None):
    """What is wrong, as a list of texts."""
    events = trace['traceEvents'] if isinstance(trace, dict) else trace
    found = []
    for e in events:
        if not (isinstance(e.get('ph'), str) and number(e, 'ts') and 'pid' in e and 'tid' in e):
            found.append(f'ph, ts, pid or tid is missing: {e}')
        elif e['ph'] == 'X' and not (number(e, 'dur') and e['dur'] >= 0 and 'name' in e):
            found.append(f'no duration or name: {e}')
    if found:
        return found
    arrows = {'s': {}, 'f': {}}
    for e in events:
        if e['ph'] in arrows:
            key = e.get('cat'), e.get('id')
            if key in arrows[e['ph']]:
                found.append(f"two {e['ph']} of {key}")
            arrows[e['ph']][key] = e['ts']
        elif e['ph'] == 'C' and any(v < 0 for v in e['args'].values()):
            found.append(f'a counter below 0: {e}')
    found += [f'{key} has no f' for key in arrows['s'] if key not in arrows['f']]
    found += [f'{key} has no s' for key in arrows['f'] if key not in arrows['s']]
    found += [f'{key} ends before it begins' for key, ts in arrows['s'].items() if arrows['f'].get(key, ts) < ts]
    try:
        sums = sums_of(events)
    except ValueError as e:
        return found + [str(e)]
    return found + (list(wrong_table(tables, sums)) if tables is not None else [])


def broken(trace, tables):
    """Yields (what was broken, trace, tables)."""
    def first(t, ph, n=0):
        return [e for e in t['traceEvents'] if e['ph'] == ph][n]

    for key in ('ph', 'ts', 'pid', 'tid'):
        t = copy.deepcopy(trace)
        del first(t, 'X')[key]
        yield f'without {key}', t, tables
    t = copy.deepcopy(trace)
    inner = next(e for e in t['traceEvents'] if e['ph'] == 'X' and e['cat'] == 'derivative')
    inner['dur'] += 1e6
    yield 'an inner event longer than its outer one', t, tables
    t = copy.deepcopy(trace)
    t['traceEvents'].remove(first(t, 'f'))
    yield 'an arrow without its end', t, tables
    t = copy.deepcopy(trace)
    first(t, 'f')['ts'] = 0
    yield 'an arrow backwards', t, tables
    t = copy.deepcopy(trace)
    first(t, 'C', -1)['args']['bytes'] = -1
    yield 'a counter below 0', t, tables
    t = copy.deepcopy(trace)
    t['traceEvents'] = [e for e in t['traceEvents'] if e.get('cat') != 'derivative' or e['ph'] != 'X']
    yield 'no derivatives', t, tables
    wall = tables.split(', ')[1].split()[0]
    yield 'another time', trace, tables.replace(wall, '%.3f' % (float(wall) + 1), 1)


def main(args):
    breaks = args[:1] == ['--broken']
    args = args[breaks:]
    with open(args[0], encoding='utf-8') as f:
        trace = json.load(f)
    tables = None
    if len(args) > 1:
        with open(args[1], encoding='utf-8') as f:
            tables = f.read()
    found = wrong(trace, tables)
    if breaks:
        found += [f'not found: {what}' for what, t, text in broken(trace, tables) if not wrong(t, text)]
    for line in found[:20]:
        print(line)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
