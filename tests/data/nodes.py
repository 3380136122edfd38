"""nodes.py - what scripts share that write the node tests of ONNX's package for tests/nodes.h.

Most inputs are consecutive numbers of numpy.random.rand after seed 0, so these are written once, and each different tensor
is, too. The lines of a file:

    stream COUNT VALUE...
    tensor DTYPE NDIM SIZE... @PLACE          values of the stream from PLACE on, cast to DTYPE
    tensor DTYPE NDIM SIZE... VALUE...
    node NAME COUNT (ATTRIBUTE VALUE)... COUNT (ROLE TENSOR)...     TENSOR is the number of a tensor line, from 0

Run the scripts with a Python that has onnx and torch: python3 tests/data/attention.py > tests/data/attention.txt
"""
import sys

import numpy as np
import onnx
from onnx.backend.test.loader import load_node_model_tests

DTYPES = {'float32': 'f32', 'float64': 'f64', 'float16': 'f16', 'bfloat16': 'bf16', 'int64': 'i64', 'bool': 'bool'}
DIGITS = {'f32': 9, 'f64': 13, 'f16': 5, 'bf16': 4, 'i64': 17, 'bool': 1}
STREAM = 1 << 13


class Nodes:
    def __init__(self):
        self.rand = np.random.RandomState(0).rand(STREAM)
        self.used, self.lines, self.nodes, self.places = 0, [], [], {}

    def values(self, dtype, x, digits):
        """The place in the stream, or the values."""
        flat = x.reshape(-1)
        if dtype in ('f32', 'f16') and flat.size > 2:
            for place in np.flatnonzero(self.rand.astype(x.dtype) == flat[0]):
                part = self.rand[place:place + flat.size].astype(np.float32)
                if part.size == flat.size and (part.astype(x.dtype) == flat).all():
                    self.used = max(self.used, place + flat.size)
                    return f'@{place}'
        return ' '.join('%.*g' % (digits, float(v)) for v in flat)

    def tensor(self, role, x):
        x = np.asarray(x)
        dtype = DTYPES[x.dtype.name]
        digits = 6 if dtype == 'f32' and role in ('Y', 'output') else DIGITS[dtype]
        line = ' '.join([f'tensor {dtype} {x.ndim}', *map(str, x.shape), self.values(dtype, x, digits)])
        if line not in self.places:
            self.places[line] = len(self.lines)
            self.lines.append(line)
        return self.places[line]

    def add(self, name, attributes, tensors):
        words = [f'node {name} {len(attributes)}', *(f'{k} {float(v):.9g}' for k, v in attributes.items()), str(len(tensors)),
                 *(f'{role} {self.tensor(role, x)}' for role, x in tensors.items())]
        self.nodes.append(' '.join(words))

    def add_onnx(self, name):
        """Adds the node tests of the operator, without those of its expansion into others. Roles are inputs' and outputs' names."""
        for test in load_node_model_tests():
            node = test.model.graph.node[0]
            if node.op_type != name or len(test.model.graph.node) != 1 or 'expanded' in test.name:
                continue
            (inputs, outputs), = test.data_sets
            tensors = dict(zip([i for i in node.input if i], inputs))
            tensors.update(zip([o for o in node.output if o], outputs))
            self.add(test.name, {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}, self.wanted(tensors))

    def wanted(self, tensors):
        return tensors

    def write(self):
        print('stream', self.used, *('%.9g' % v for v in self.rand[:self.used].astype(np.float32)))
        print('\n'.join(self.lines + self.nodes))
        print(f'{len(self.nodes)} nodes, {len(self.lines)} tensors', file=sys.stderr)
