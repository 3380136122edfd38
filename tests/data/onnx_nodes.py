#!/usr/bin/env python3
"""onnx_nodes.py - writes onnx_nodes.gz: node tests of the package onnx, models with inputs and the results that they must have.

A test is a line "NAME INPUTS RESULTS", then the model and the arrays, as .npy files, each after a line with its bytes. Left out are tests of dtypes that .npy files lack, of
random results, of operators that libgrad lacks (by name in LACKS) and of more than 4,000 bytes."""
import gzip, pathlib, sys, warnings
import numpy as np

warnings.simplefilter('ignore')
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'onnx'))
from nodes import is_random, plain, tests
import io, onnx

LACKS = set('''ConvInteger DFT DequantizeLinear Det DynamicQuantizeLinear If ImageDecoder Loop MatMulInteger QLinearConv QLinearMatMul QuantizeLinear STFT Scan'''.split())


def main():
    out = gzip.GzipFile(pathlib.Path(__file__).parent / 'onnx_nodes.gz', 'wb', 9, mtime=0)
    count = 0

    def put(data):
        out.write(b'%d\n' % len(data) + data)

    def put_array(a):
        data = io.BytesIO()
        np.save(data, np.ascontiguousarray(a) if np.ndim(a) else a)
        put(data.getvalue())

    for t, model, (inputs, outputs) in tests('*'):
        ops = {n.op_type for n in model.graph.node}
        arrays = [np.asarray(a) for a in inputs + outputs]
        size = model.ByteSize() + sum(a.nbytes for a in arrays)
        if ops & LACKS or is_random(t) or any(a.dtype.name in ('bfloat16', 'object') for a in arrays) or size > 4000:
            continue
        if t.name in ('test_lstm_with_peepholes', 'test_attention_4d_causal_fp16_expanded'):
            continue
        model.ClearField('metadata_props')
        model.graph.ClearField('doc_string')
        out.write(f'{t.name} {len(inputs)} {len(outputs)}\n'.encode())
        put(model.SerializeToString())
        for a in arrays:
            put_array(a)
        count += 1
    out.close()
    print(count, 'tests')


main()
