#!/usr/bin/env python3
# rooms.py - which room of the library calls which: no circle between rooms, none of more than four files within one, and
# none but those that exchange data calls group/.
# rooms.py LIBGRAD_A [--print]: what calls what is read from the symbols of the archive's objects, ROOM_FILE.c.o
import collections
import subprocess
import sys

MOST = 4
ROOMS = 'core tensor group graph ops inspect nn optim data io state record'.split()  # the archive has the kernels' objects, too
EXCHANGE = 'ops_collective nn_norm nn_sync_norm nn_buckets nn_data_parallel data_loader'.split()
GRAPH = collections.defaultdict  # what uses what: {user: {used: {symbols}}}


def read(archive):
    defined, wanted = {}, GRAPH(set)
    for line in subprocess.run(['nm', '-A', archive], capture_output=True, text=True, check=True).stdout.splitlines():
        place, rest = line.rsplit(':', 1)
        if not place.endswith('.c.o'):  # "archive:member:address type name"
            continue
        file, words = place.rsplit(':', 1)[1][:-4], rest.split()
        if file != 'open' and not ('_' in file and room_of(file) in ROOMS):
            continue
        if words[-2] == 'U':
            wanted[file].add(words[-1])
        elif words[-2] in 'TDRBVC':
            defined[words[-1]] = file
    uses = GRAPH(lambda: GRAPH(set))
    for file, names in wanted.items():
        for name in names:
            if defined.get(name, file) != file:
                uses[file][defined[name]].add(name)
    return uses


def circles(uses):
    """Strongly connected parts of two and more (Tarjan, 1972)."""
    number, low, stack, found = {}, {}, [], []

    def visit(v):
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in list(uses.get(v, ())):
            if w not in number:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], number[w])
        if low[v] == number[v]:
            part = stack[stack.index(v):]
            del stack[len(stack) - len(part):]
            if len(part) > 1:
                found.append(sorted(part))

    for v in list(uses):
        if v not in number:
            visit(v)
    return found


def room_of(file):
    return file.split('_')[0] if '_' in file else file


def main():
    uses, wrong = read(sys.argv[1]), 0
    rooms, example = GRAPH(set), {}
    for user, used in uses.items():
        for file, names in used.items():
            if room_of(user) != room_of(file):
                rooms[room_of(user)].add(room_of(file))
                example[room_of(user), room_of(file)] = '%s -> %s (%s)' % (user, file, sorted(names)[0])
    if '--print' in sys.argv:
        for room in sorted(rooms):
            print(room, '->', ' '.join(sorted(rooms[room])))
    for part in circles(rooms):
        wrong += 1
        print('a circle of rooms:', ' '.join(part))
        for a in part:
            for b in sorted(rooms[a]):
                if b in part:
                    print('   ', example[a, b])
    for user, used in uses.items():
        for file in [f for f in used if room_of(f) == 'group' and room_of(user) != 'group' and user not in EXCHANGE]:
            wrong += 1
            print('%s exchanges no data, but calls %s (%s)' % (user, file, sorted(used[file])[0]))
    within = {v: {w for w in used if room_of(w) == room_of(v)} for v, used in uses.items()}
    for part in circles(within):
        if len(part) > MOST or '--print' in sys.argv:
            wrong += len(part) > MOST
            print('a circle of %d files:' % len(part), ' '.join(part))
    if len(uses) < 100:
        wrong += 1
        print('only %d files were read' % len(uses))
    print('%d files in %d rooms, %d complaints' % (len(uses), len(rooms) + 1, wrong))
    return wrong > 0


sys.exit(main())
