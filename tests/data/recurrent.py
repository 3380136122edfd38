"""recurrent.py - writes recurrent.txt: recurrent networks as PyTorch computes them in f64. See golden.py.

The input of a line is 0.4 times golden.py's tensor(): x, the states h0 and c0, then the parameters in PyTorch's order. The
result is y, then h and c after the last step. tests/test_recurrent.c makes the same networks.
"""
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from golden import show, tensor

STEPS, BATCH, INPUTS, HIDDEN, LENGTHS = 4, 3, 3, 4, (2, 4, 1)


def make(kind, cell, projection, **options):
    options["dtype"] = torch.float64
    if kind in ("tanh", "relu"):
        options["nonlinearity"] = kind
        return (torch.nn.RNNCell if cell else torch.nn.RNN)(INPUTS, HIDDEN, **options)
    if projection:
        options["proj_size"] = projection
    of = {"lstm": (torch.nn.LSTM, torch.nn.LSTMCell), "gru": (torch.nn.GRU, torch.nn.GRUCell)}
    return of[kind][cell](INPUTS, HIDDEN, **options)


def network(name, kind, cell=False, layers=1, projection=0, lengths=False, alone=False, states=True, **options):
    """alone: without a batch."""
    if not cell:
        options["num_layers"] = layers
    m = make(kind, cell, projection, **options)
    first = options.get("batch_first", False)
    rows = layers * (2 if options.get("bidirectional") else 1)
    sizes = [] if cell else [STEPS]
    shape = sizes + [INPUTS] if alone else (
        [BATCH, STEPS, INPUTS] if first else sizes + [BATCH, INPUTS])
    of_state = ([] if cell else [rows]) + ([] if alone else [BATCH])
    shapes = [shape]
    if states:
        shapes.append(of_state + [projection or HIDDEN])
        if kind == "lstm":
            shapes.append(of_state + [HIDDEN])
    shapes += [p.shape for p in m.parameters()]
    total = sum(torch.Size(s).numel() for s in shapes)

    def run(flat):
        parts, at = [], 0
        for s in shapes:
            n = torch.Size(s).numel()
            parts.append(0.4 * flat[at:at + n].reshape(s))
            at += n
        count = 0 if not states else 2 if kind == "lstm" else 1
        x, given, values = parts[0], parts[1:1 + count], parts[1 + count:]
        parameters = {n: v for (n, _), v in zip(m.named_parameters(), values)}
        hx = None if not states else tuple(given) if kind == "lstm" else given[0]
        if lengths:
            x = pack_padded_sequence(x, torch.tensor(LENGTHS), first, enforce_sorted=False)
        out = torch.func.functional_call(m, parameters, (x, hx))
        if cell:
            out = out if kind == "lstm" else (out,)
            return torch.cat([v.reshape(-1) for v in (out[0], *out)])
        y, last = out
        if lengths:
            y = pad_packed_sequence(y, first, total_length=STEPS)[0]
        last = last if kind == "lstm" else (last,)
        return torch.cat([v.reshape(-1) for v in (y, *last)])

    show(name, run, tensor(total))


network("lstm", "lstm")
network("lstm_layers", "lstm", layers=2, bidirectional=True)
network("lstm_first", "lstm", batch_first=True, states=False)
network("lstm_projected", "lstm", layers=2, projection=2, bidirectional=True)
network("lstm_plain", "lstm", bias=False, alone=True)
network("lstm_lengths", "lstm", layers=2, bidirectional=True, lengths=True)
network("lstm_first_lengths", "lstm", batch_first=True, lengths=True, projection=3)
network("gru", "gru")
network("gru_layers", "gru", layers=2, bidirectional=True)
network("gru_first", "gru", batch_first=True, states=False, bias=False)
network("gru_lengths", "gru", bidirectional=True, lengths=True)
network("tanh", "tanh", bidirectional=True)
network("tanh_lengths", "tanh", layers=2, lengths=True)
network("relu", "relu", layers=2)
network("relu_lengths", "relu", bidirectional=True, lengths=True)
network("lstm_cell", "lstm", cell=True)
network("gru_cell", "gru", cell=True)
network("tanh_cell", "tanh", cell=True, alone=True)
network("relu_cell", "relu", cell=True, bias=False, states=False)
