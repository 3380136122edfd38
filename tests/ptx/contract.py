"""contract.py - products and sums of PTX joined to fma, wherever ptxas may do so."""
import re

PRODUCT_OR_SUM = re.compile(r'(mul|add|sub)(\.f(?:32|64)) (%\w+), ([^,]+), ([^,]+)')
REGISTER = re.compile(r'%[a-z]+\d+')
ENDS = re.compile(r'@|bra|ret|exit|bar|call') # of what is joined: a basic block


def negated(operand):
    return operand[1:] if operand.startswith('-') else '-' + operand


def contracted(body):
    """Returns the statements (kind, text, line) of a function with mul d, a, b; add e, d, c as fma e, a, b, c, if d is used once."""
    uses = {}
    for kind, text, line in body:
        for r in REGISTER.findall(text) if kind == 'do' and not text.startswith('.') else []:
            uses[r] = uses.get(r, 0) + 1
    products, out = {}, [] # product's register: (place in out, a, b)
    for kind, text, line in body:
        if kind != 'do' or ENDS.match(text):
            products = {}
        found = PRODUCT_OR_SUM.fullmatch(text) if kind == 'do' else None
        if found and found.group(1) != 'mul':
            text = joined(found, products, out) or text
        changed = re.match(r'(?!st|@)[a-z][\w.]* (\{[^}]*\}|%\w+)', text) if kind == 'do' else None
        for r in REGISTER.findall(changed.group(1)) if changed else []: # a factor that changes is one no more
            products = {d: p for d, p in products.items() if r not in (d, p[1], p[2])}
        if found and found.group(1) == 'mul' and uses.get(found.group(3)) == 2 and found.group(3) not in found.group(4, 5):
            products[found.group(3)] = (len(out), found.group(4), found.group(5))
        out.append((kind, text, line))
    return out


def joined(found, products, out):
    """Returns the fma that a sum becomes, and removes the product, or returns None."""
    what, t, d, a, b = found.groups()
    for product, other, first in ((a, b, True), (b, a, False)):
        if product in products and product != other:
            place, p, q = products.pop(product)
            if what == 'sub' and first:
                other = negated(other)
            elif what == 'sub':
                p = negated(p)
            out[place] = ('do', '', out[place][2])
            return f'fma.rn{t} {d}, {p}, {q}, {other}'
    return None
