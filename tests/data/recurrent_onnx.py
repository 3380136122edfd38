"""recurrent_onnx.py - writes recurrent_onnx.txt: the node tests of LSTM, GRU and RNN of the package onnx.

Run it with a Python that has onnx. A line is the name, the kind (0 RNN, 1 LSTM, 2 GRU), T, N, inputs, H, directions, 1 if
the direction is reverse, 1 if the batch is first, which results follow (1: Y, 2: Y_h, 4: Y_c), and the values: X, for each
direction W, R and the two biases with the gates in PyTorch's order, the results. Y has the shape (T, N, D, H). Left out:

    test_lstm_with_peepholes    peepholes

No node test has input_forget.
"""
import warnings
import numpy
import onnx
from onnx.backend.test.case import node

warnings.filterwarnings("ignore")
KINDS = {"RNN": (0, [0]), "LSTM": (1, [0, 2, 3, 1]), "GRU": (2, [1, 0, 2])}
LEFT_OUT = {"test_lstm_with_peepholes"}


def ordered(a, order, hidden):
    return a.reshape(len(order), hidden, -1)[order]


def show(case):
    nodes = case.model.graph.node
    if len(nodes) != 1 or nodes[0].op_type not in KINDS or case.name in LEFT_OUT:
        return
    n = nodes[0]
    kind, order = KINDS[n.op_type]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
    inputs, outputs = case.data_sets[0]
    given = dict(zip([name for name in n.input if name], inputs))
    hidden, first = attributes["hidden_size"], attributes.get("layout", 0)
    x, w, r = given["X"], given["W"], given["R"]
    b = given.get("B", numpy.zeros((len(w), 2 * len(order) * hidden)))
    steps, batch = x.shape[:2] if not first else x.shape[1::-1]
    values = [x]
    for d in range(len(w)):
        values += [ordered(part, order, hidden) for part in (w[d], r[d], *numpy.split(b[d], 2))]
    results = 0
    for name, value in zip([name for name in n.output if name], outputs):
        results |= {"Y": 1, "Y_h": 2, "Y_c": 4}[name]
        if name == "Y" and not first:
            value = value.transpose(0, 2, 1, 3)
        values.append(value)
    print(case.name, kind, steps, batch, x.shape[2], hidden, len(w), int(attributes.get("direction") == b"reverse"), first,
          results, *("%.9g" % v for a in values for v in numpy.ravel(a)))


for test in sorted(node.collect_testcases(None), key=lambda test: test.name):
    if test.model is not None:
        show(test)
