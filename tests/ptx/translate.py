"""translate.py - PTX as C++ for ptx.h and launch.cpp: a function for each kernel, statement by statement.

Registers become variables and labels stay labels. A statement or an opcode that is not known is an error that names it and its line.
"""
import re
import sys
from contract import contracted
from opcodes import C_TYPE, SIZE, Unknown, opcode

SPECIAL = {f'%{a}.{d}': f'cudasim::here->{f}.{d}' for a, f in
           (('tid', 'thread'), ('ctaid', 'block'), ('ntid', 'block_size'), ('nctaid', 'grid_size')) for d in 'xyz'}
SPECIAL['%laneid'] = 'cudasim::lane()'
TOKEN = re.compile(r'\s*(?:([{}])|([$\w]+):(?!:)|((?:\.\w+\s+)*\.(?:entry|func)\b[^;{]*)(;)?|(\.(?:version|target|address_size|file|loc)\b[^\n]*)'
                   r'|([^;{}]+(?:\{[^{}]*\}[^;{}]*)*);)')
HEAD = re.compile(r'(?:\.\w+ )*\.(entry|func) ?(?:\((.*?)\) ?)?([$\w]+) ?(?:\((.*?)\))? ?(.*)')
MEMORY = re.compile(r'(?:\.(?:visible|extern|weak) )*\.(param|shared|local|global|const)(?: \.ptr(?: \.\w+)?)?(?: \.align (\d+))? \.(\w+)'
                    r' ([%$\w]+)(?:\[(\d*)\])?(?: ?= ?\{?(.*?)\}?)?')


def statements(text):
    """Returns (kind, text, line) of each: kind is {, }, label, head (of a function), declaration (of one) or do."""
    text = re.split(r'^\s*\.section\b', re.sub(r'//[^\n]*', '', text), maxsplit=1, flags=re.M)[0].rstrip()
    at, line, out = 0, 1, []
    while at < len(text):
        m = TOKEN.match(text, at)
        if not m:
            raise Unknown(f'line {line}: {text[at:at + 60].strip()!r}')
        brace, label, head, declared, directive, other = m.groups()
        first = line + text.count('\n', at, m.start(m.lastindex if not declared else 3))
        what = brace or label or head or directive or other
        kind = brace or ('label' if label else 'declaration' if declared else 'head' if head else 'do')
        out.append((kind, ' '.join(what.split()), first))
        line += text.count('\n', at, m.end())
        at = m.end()
    return out


def split(s):
    """Returns the operands of s: what is between commas outside of brackets."""
    return [x.strip() for x in re.findall(r'(?:[^,{(\[]|\{[^}]*\}|\([^)]*\)|\[[^\]]*\])+', s) if x.strip()]


class Memory:
    """A declaration of .param, .shared, .local, .global or .const."""

    def __init__(self, s):
        m = MEMORY.fullmatch(s)
        if not m:
            raise Unknown(s)
        self.space, align, self.type, self.name, count, self.values = m.groups()
        self.bytes = SIZE[self.type] * int(count or 1)
        self.align = int(align or SIZE[self.type])

    def variable(self):
        return 'M_' + re.sub(r'\W', '_', self.name)


class Function:
    def __init__(self, names):
        self.names = names  # of memory: its address in C++
        self.registers = {} # name without its number: type
        self.used = {}      # variables to define: type
        self.shared = 0     # bytes
        self.code = []

    def register(self, name):
        family = name if name in self.registers else re.sub(r'\d+$', '', name)
        if family not in self.registers:
            raise Unknown(f'no register {name}')
        variable = 'R' + name.lstrip('%')
        if family != name or name.startswith('%') and name not in self.registers:
            self.used[variable] = self.registers[family]
        return variable, self.registers[family]

    def value(self, s, t):
        """Returns operand s as a value of type t."""
        c = C_TYPE[t]
        if s in SPECIAL:
            return f'({c}){SPECIAL[s]}'
        if s[0] in '-!' and not s[1:].isdigit():
            return s[0] + self.value(s[1:], t)
        if m := re.fullmatch(r'0[fFdD](\w+)', s):
            bits, size = m.group(1), len(m.group(1)) // 2
            return f'__builtin_bit_cast({c}, (u{8 * size})0x{bits}ull)' if size == SIZE[t] else '#error size'
        if re.fullmatch(r'-?(0[xX][0-9A-Fa-f]+|\d+)U?', s):
            x = int(s.rstrip('U'), 0)
            return f'({c}){x}' if c[0] in 'fb' else f'({c})0x{x & (1 << 8 * SIZE[t]) - 1:x}ull'
        if s in self.names:
            return f'({c})({self.names[s]})'
        if s.startswith('{'): # a pack: the first element is lowest
            parts = split(s[1:-1])
            bits = 8 * SIZE[t] // len(parts)
            packed = ' | '.join(f'(u{8 * SIZE[t]}){self.value(p, f"b{bits}")} << {bits * i}' for i, p in enumerate(parts))
            return f'__builtin_bit_cast({c}, (u{8 * SIZE[t]})({packed}))'
        variable, own = self.register(s)
        if C_TYPE[own] == c:
            return variable
        if c[0] in 'fb' or C_TYPE[own][0] in 'fb':
            return f'__builtin_bit_cast({c}, {variable})'
        return f'({c}){variable}'

    def set(self, s, t, value):
        """Returns the statement that sets operand s to a value of type t; a wider register is extended by t's sign."""
        c = C_TYPE[t]
        if s == '_':
            return f'(void)({value});'
        if s.startswith('{'):
            parts = split(s[1:-1])
            bits, word = 8 * SIZE[t] // len(parts), f'u{8 * SIZE[t]}'
            return f'{{ const {word} w_ = __builtin_bit_cast({word}, ({c})({value})); ' + ' '.join(
                self.set(p, f'b{bits}', f'w_ >> {bits * i}') for i, p in enumerate(parts)) + ' }'
        variable, own = self.register(s)
        if C_TYPE[own] != c and 'f' in (c[0], C_TYPE[own][0]):
            return f'{variable} = __builtin_bit_cast({C_TYPE[own]}, ({c})({value}));'
        return f'{variable} = ({c})({value});'

    def address(self, s):
        m = re.fullmatch(r'\[([^\]+]+?)(?: ?\+ ?(-?\d+))?\]', s)
        if not m:
            raise Unknown(f'address {s}')
        return f'{self.value(m.group(1).strip(), "u64")} + (u64){m.group(2) or 0}'

    def meaning(self, o, operands):
        """Returns the meaning of opcode o, of operands d, a, b, c, e."""
        out = ''
        for i, part in enumerate(o.parts):
            if i % 2 == 0:
                out += part
                continue
            name, _, t = part.partition(':')
            t = t or o.of
            x = self.value(operands['dabce'.index(name)], t)
            out += f'flush({x})' if o.flush and t in ('f32', 'f64') else x
        return f'flush(({C_TYPE[o.to]})({out}))' if o.flush and o.form == 'value' else out

    def statement(self, s):
        guard, s = re.fullmatch(r'(@!?%\w+ )?(.*)', s).groups()
        name, _, rest = s.partition(' ')
        o, operands = opcode(name), split(rest)
        body = getattr(self, 'form_' + o.form)(o, operands)
        return f'if ({self.value(guard[1:].strip(), "pred")}) {{ {body} }}' if guard else body

    def form_value(self, o, operands):
        d, _, inside = operands[0].partition('|')
        return self.set(d, o.to, self.meaning(o, operands)) + (self.set(inside, 'pred', 'inside') if inside else '')

    def form_compare(self, o, operands):
        return self.set(operands[0], 'pred', self.meaning(o, operands))

    def form_load(self, o, operands):
        t, to = C_TYPE[o.of], split(operands[0][1:-1]) if o.count > 1 else operands[:1]
        return f'{{ const char *p_ = AT_{o.space}({SIZE[o.of] * o.count}, {self.address(operands[1])}); ' + ' '.join(
            self.set(r, o.of, f'*(const {t} *)(p_ + {i * SIZE[o.of]})') for i, r in enumerate(to)) + ' }'

    def form_store(self, o, operands):
        t, values = C_TYPE[o.of], split(operands[1][1:-1]) if o.count > 1 else operands[1:]
        return f'{{ char *p_ = AT_{o.space}({SIZE[o.of] * o.count}, {self.address(operands[0])}); ' + ' '.join(
            f'*({t} *)(p_ + {i * SIZE[o.of]}) = {self.value(r, o.of)};' for i, r in enumerate(values)) + ' }'

    def form_atomic(self, o, operands):
        if len(operands) == 2 or operands[0].startswith('['):
            operands = ['_'] + operands
        t = C_TYPE[o.of]
        return (f'{{ {t} *p_ = ({t} *)AT_{o.space}({SIZE[o.of]}, {self.address(operands[1])}); const {t} old = *p_; '
                f'*p_ = ({t})({self.meaning(o, [operands[0], operands[1]] + operands[2:])}); {self.set(operands[0], o.of, "old")} }}')

    def form_do(self, o, operands):
        return self.meaning(o, operands) + ';'

    def form_jump(self, o, operands):
        return f'goto {operands[0]};'

    def form_call(self, o, operands):
        back = split(operands[0][1:-1]) if operands[0].startswith('(') else []
        name, *args = operands[1 if back else 0:]
        args = split(args[0][1:-1]) if args else []
        return f'F{name}({", ".join("(char *)" + self.names[x] for x in back + args)});'

    def declare(self, s, outer):
        """Takes a declaration in the function: of registers or of memory; outer: not in a block of its own."""
        if s.startswith('.reg'):
            _, t, names = s.split(' ', 2)
            for r in split(names):
                self.registers[re.sub(r'<\d+>', '', r)] = t[1:]
                if '<' not in r:
                    self.code.insert(0 if outer else len(self.code), f'{C_TYPE[t[1:]]} R{r.lstrip("%")};')
        elif not s.startswith('.pragma'):
            m = Memory(s)
            if m.space == 'shared':
                self.share(m)
            else:
                self.names[m.name] = f'(u64){m.variable()}'
                self.code.insert(0 if outer else len(self.code), f'alignas(16) char {m.variable()}[{m.bytes}];')

    def share(self, m):
        at = (self.shared + m.align - 1) // m.align * m.align
        self.names[m.name] = str(at)
        self.shared = at + m.bytes


class Module:
    def __init__(self, name, text, contract):
        self.name, self.contract = name, contract
        self.files = dict(re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', text, re.M))
        self.names, self.shared, self.kernels = {}, [], []
        self.out = ['#include "ptx.h"', 'namespace ptx', '{']

    def outside(self, s):
        """Takes a statement outside of functions."""
        if re.match(r'\.(version|target|address_size|file|loc)\b', s):
            return
        m = Memory(s)
        if m.space == 'shared':
            self.shared.append(m)
            return
        t = C_TYPE[m.type]
        self.names[m.name] = f'(u64){m.variable()}'
        self.out.append(f'alignas({max(m.align, 8)}) static {t} {m.variable()}[{m.bytes // SIZE[m.type]}] = {{{m.values or ""}}};')

    def head(self, s):
        """Returns whether a function is a kernel, its name, C++ parameters, Memory of results, of parameters, and its other marks."""
        kind, back, name, given, marks = HEAD.fullmatch(s).groups()
        back, given = ([Memory(p) for p in split(x or '')] for x in (back, given))
        signature = ', '.join([f'char *B{i}' for i in range(len(back))] + [f'char *P{i}' for i in range(len(given))])
        return kind == 'entry', name, signature, back, given, marks

    def function(self, s, body):
        entry, name, signature, back, given, marks = self.head(s)
        f = Function(dict(self.names))
        for i, p in enumerate(given):
            f.names[p.name] = f'(u64)P[{i}]' if entry else f'(u64)P{i}'
        f.names.update({p.name: f'(u64)B{i}' for i, p in enumerate(back)})
        text = {w for _, s, _ in body for w in re.findall(r'[$\w]+', s)} if self.shared else ()
        for m in self.shared:
            if m.name in text:
                if not entry:
                    raise Unknown(f'{name}: a function that names shared memory')
                f.share(m)
        scopes = []
        for kind, s, line in contracted(body) if self.contract else body:
            if kind == '{':
                scopes.append((dict(f.registers), dict(f.names)))
                f.code.append('{')
            elif kind == '}':
                f.registers, f.names = scopes.pop()
                f.code.append('}')
            elif kind == 'label':
                f.code.append(f'{s}:;')
            elif s.startswith('.loc '):
                _, file, at, *_ = s.split()
                f.code.append(f'#line {at} "{self.files[file]}"')
            elif s.startswith('.'):
                f.declare(s, not scopes)
            elif s:
                try:
                    f.code.append(f.statement(s))
                except (Unknown, KeyError, IndexError) as e:
                    raise Unknown(f'line {line}: {s}: {e}')
        by_type = {}
        for variable, t in f.used.items():
            by_type.setdefault(C_TYPE[t], []).append(variable)
        start = [f'{t} {", ".join(v)};' for t, v in sorted(by_type.items())] + ['u32 carry, ignored; bool inside; (void)carry, (void)ignored, (void)inside;']
        if entry:
            most = re.search(r'\.(?:maxntid|reqntid) (\d+)(?:, ?(\d+))?(?:, ?(\d+))?', marks)
            threads = 1
            for n in most.groups() if most else (1024,):
                threads *= int(n or 1)
            k = len(self.kernels)
            self.kernels.append(f'{{"{self.name}", "{name}", K{k}, S{k}, {len(given)}, {threads}, {f.shared}}},')
            self.out.append(f'static const size_t S{k}[] = {{{", ".join(str(p.bytes) for p in given) or 0}}};')
            self.out.append(f'static void K{k}(char *const *P)\n{{\n(void)P;')
        else:
            self.out.append(f'static void F{name}({signature})\n{{')
        self.out += start + f.code + ['}']

    def translate(self, todo):
        i = 0
        while i < len(todo):
            kind, s, line = todo[i]
            i += 1
            if kind == 'declaration':
                _, name, signature, *_ = self.head(s)
                self.out.append(f'static void F{name}({signature});')
            elif kind == 'do':
                self.outside(s)
            elif kind == 'head' and todo[i][0] == '{':
                last, depth = i + 1, 1
                while depth:
                    depth += (todo[last][0] == '{') - (todo[last][0] == '}')
                    last += 1
                self.function(s, todo[i + 1:last - 1])
                i = last
            else:
                raise Unknown(f'line {line}: {kind} {s} outside of functions')
        self.out += ['static const kernel all[] = {'] + self.kernels + ['{}};', '}',
                     f'extern "C" void **ptx_open_{self.name}(void *) {{ return (void **)ptx::all; }}']
        return '\n'.join(self.out) + '\n'


def translate(name, file, contract):
    """Returns the C++ of a PTX file."""
    with open(file) as f:
        text = f.read()
    try:
        return Module(name, text, contract).translate(statements(text))
    except Unknown as e:
        sys.exit(f'{file}: {e}')
