"""opcodes.py - the instructions of PTX that libgrad's kernels use, with their meaning in C++ (functions: ptx.h)."""
import functools
import re

# In a row: an opcode with classes of types (CLASSES) and optional parts in brackets; its meaning. Operands after the first, d, are
# a, b, c, e and have the opcode's last type unless one follows a colon. T is the C++ type of the first class, which is d's type
# unless a row begins with "d:"; W is twice as wide; R, M and K
# are the marks of these classes.
TABLE = '''
[value: d becomes the meaning]
mov.X                           a
cvta[.to].(global|local).u64    a
cvta.to.shared.u64              a - (u64)shared_low
cvta.shared.u64                 a + (u64)shared_low
selp.X                          c:pred ? a : b
not.pred                        !a
not.B                           ~a
and.P                           a & b
or.P                            a | b
xor.P                           a ^ b
shl.B                           shift_left(a, b:u32)
shr.X                           shift_right(a, b:u32)
bfi.B                           insert(a, b, c:u32, e:u32)
bfe.(u|s)(32|64)                extract(a, b:u32, c:u32)
prmt.b32                        permute(a, b, c)
popc.B                          d:u32 __builtin_popcountll(a)
clz.B                           d:u32 leading_zeros(a)
brev.B                          reversed(a)
add.I                           a + b
sub.I                           a - b
mul.lo.I                        a * b
mul.hi.I                        high(a, b)
mul.wide.I                      d:W (W)a * (W)b
mad.lo.I                        a * b + c
mad.hi.I                        high(a, b) + c
mad.wide.I                      d:W (W)a * (W)b + c:W
div.I                           divide(a, b)
rem.I                           remainder(a, b)
neg.I                           0 - a
abs.I                           a < 0 ? 0 - a : a
min.I                           a < b ? a : b
max.I                           a > b ? a : b
add.cc.u32                      sum(a, b, 0, carry)
addc.cc.u32                     sum(a, b, carry, carry)
addc.u32                        sum(a, b, carry, ignored)
sub.cc.u32                      difference(a, b, 0, carry)
subc.cc.u32                     difference(a, b, carry, carry)
subc.u32                        difference(a, b, carry, ignored)
mad.lo.cc.u32                   sum(a * b, c, 0, carry)
madc.lo.cc.u32                  sum(a * b, c, carry, carry)
mad.hi.cc.u32                   sum(high(a, b), c, 0, carry)
madc.hi.cc.u32                  sum(high(a, b), c, carry, carry)
madc.hi.u32                     sum(high(a, b), c, carry, ignored)
add[.rn].F                      a + b
sub[.rn].F                      a - b
mul[.rn].F                      a * b
fma.rn.F                        fused(a, b, c)
add.R.F                         fused_towards(R, a, (T)1, b)
sub.R.F                         fused_towards(R, a, (T)1, -b)
mul.R.F                         fused_towards(R, a, b, -(T)0)
fma.R.F                         fused_towards(R, a, b, c)
div.(rn|approx|full).F          a / b
rcp.rn.F                        1 / a
rcp.approx.f32                  1 / a
rcp.approx.f64                  coarse(1 / a)
sqrt.(rn|approx).F              std::sqrt(a)
rsqrt.approx.f32                1 / std::sqrt(a)
rsqrt.approx.f64                coarse(1 / std::sqrt(a))
ex2.approx.f32                  std::exp2((f64)a)
lg2.approx.f32                  std::log2((f64)a)
sin.approx.f32                  std::sin((f64)a)
cos.approx.f32                  std::cos((f64)a)
tanh.approx.f32                 std::tanh((f64)a)
neg.F                           -a
abs.F                           std::abs(a)
copysign.F                      std::copysign(b, a)
min.F                           least(a, b)
max.F                           most(a, b)
cvt.Y.Y                         a
cvt.rn.F.Y                      a
cvt.f64.f32                     a
cvt.rn.f32.f64                  a
cvt.M.F.F                       whole<M>(a)
cvt.M.Y.F                       to_whole<T, M>(a)
cvt.sat.f32.f32                 saturated(a)
cvt.rn.f16.f32                  to_half(a)
cvt.f32.f16                     of_half(a)
cvt.rn.bf16.f32                 to_bf16(a)
cvt.f32.bf16                    of_bf16(a)
shfl.sync.K.b32                 shuffle<K>(a, b, c, e, inside)
vote.sync.ballot.b32            cudasim::ballot(b, a:pred)
vote.sync.any.pred              cudasim::ballot(b:u32, a) != 0
vote.sync.all.pred              cudasim::ballot(b:u32, a) == b:u32

[compare: d becomes whether the meaning holds]
setp.eq.X                       a == b
setp.ne.I                       a != b
setp.ne.B                       a != b
setp.ne.F                       a < b || a > b
setp.(lt|lo).X                  a < b
setp.(le|ls).X                  a <= b
setp.(gt|hi).X                  a > b
setp.(ge|hs).X                  a >= b
setp.equ.F                      !(a < b || a > b)
setp.neu.F                      !(a == b)
setp.ltu.F                      !(a >= b)
setp.leu.F                      !(a > b)
setp.gtu.F                      !(a <= b)
setp.geu.F                      !(a < b)
setp.num.F                      a == a && b == b
setp.nan.F                      !(a == a && b == b)

[load: the first operand is set from memory]
ld[.G][.nc][.V].X

[store: the last operand is stored]
st[.G][.V].X

[atomic: memory, which was `old`, becomes the meaning; d becomes `old`]
atom.G.add.X                    old + b
atom.G.min.X                    b < old ? b : old
atom.G.max.X                    b > old ? b : old
atom.G.and.B                    old & b
atom.G.or.B                     old | b
atom.G.exch.B                   b
atom.G.cas.B                    old == b ? c : old
red.G.add.X                     old + b
red.G.min.X                     b < old ? b : old
red.G.max.X                     b > old ? b : old
red.G.or.B                      old | b

[do: a statement]
ret                             return
exit                            return
trap                            cudasim::die("%s: trap", running)
bar.sync                        cudasim::barrier(__FILE__, __LINE__)
bar.warp.sync                   cudasim::warp_barrier(d)
membar
fence

[jump]
bra

[call]
call
'''
# Marks that change no result here: hints for caches, the order of memory, branches that all lanes take.
IGNORED = re.compile(r'\.(?:uni|volatile|relaxed|acquire|release|acq_rel|sc|gpu|sys|cta|weak|L1::no_allocate|L2::(?:64|128|256)B)(?![\w:])')
CLASSES = {'X': r'pred|b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64', 'P': 'pred|b16|b32|b64', 'B': 'b16|b32|b64',
           'I': 'u16|u32|u64|s16|s32|s64', 'Y': 'u8|u16|u32|u64|s8|s16|s32|s64', 'F': 'f32|f64', 'R': 'rz|rm|rp',
           'M': 'rni|rzi|rmi|rpi', 'K': 'up|down|bfly|idx', 'V': 'v2|v4', 'G': 'global|shared|local|param|const'}
C_TYPE = {'pred': 'bool', 'f16': 'u16', 'bf16': 'u16', 'f32': 'f32', 'f64': 'f64'}
for bits in (8, 16, 32, 64):
    C_TYPE.update({f'b{bits}': f'u{bits}', f'u{bits}': f'u{bits}', f's{bits}': f's{bits}'})
SIZE = {t: 1 if t == 'pred' else int(re.sub(r'\D', '', t)) // 8 for t in C_TYPE}


class Unknown(Exception):
    pass


def rows():
    """Returns (form, regular expression, meaning) of each row."""
    form, out = '', []
    for line in TABLE.splitlines():
        if line.startswith('['):
            form = re.match(r'\[(\w+)', line).group(1)
        elif line:
            pattern, _, meaning = line.partition(' ')
            pattern = re.sub(r'\[(.*?)\]', r'(?:\1)?', pattern.replace('.', r'\.'))
            pattern = re.sub(r'\b[A-Z]\b', lambda m: f'({CLASSES[m.group()]})', pattern)
            out.append((form, re.compile(pattern), meaning.strip()))
    return out


ROWS = rows()


class Opcode:
    """An opcode's form, meaning, types (of d, `to`, and of the other operands, `of`), and its space and count for memory."""

    def __init__(self, text):
        plain = IGNORED.sub('', text)
        self.flush = '.ftz' in plain # operands and results that are subnormal are 0
        plain = plain.replace('.ftz', '')
        for self.form, pattern, meaning in ROWS:
            found = pattern.fullmatch(plain)
            if found:
                break
        else:
            raise Unknown(f'unknown opcode {text}')
        types = [x for x in plain.split('.') if x in C_TYPE]
        self.to, self.of = (types[0], types[-1]) if types else ('b32', 'b32')
        self.space = next((x for x in plain.split('.')[1:] if x in CLASSES['G'].split('|')), 'generic')
        self.count = next((int(x[1:]) for x in plain.split('.') if x in ('v2', 'v4')), 1)
        values = {'T': C_TYPE[self.to], 'W': self.to[0] + str(16 * SIZE[self.to])}
        values.update({name: f'{name}_{mark}' for name in 'RMK' for mark in plain.split('.')[1:] if mark in CLASSES[name].split('|')})
        meaning = re.sub(r'\b[TWRMK]\b', lambda m: values[m.group()], meaning)
        given = re.match(r'd:(\w+) ', meaning)
        if given:
            self.to, meaning = given.group(1), meaning[given.end():]
        self.parts = re.split(r'(\b[abcde]\b(?::\w+)?(?![(:]))', meaning) # text and operands in turn


@functools.lru_cache(None)
def opcode(text):
    return Opcode(text)
