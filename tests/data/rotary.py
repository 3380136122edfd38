"""rotary.py - writes rotary.txt: the node tests of ONNX's RotaryEmbedding.

Run with a Python that has onnx: python3 tests/data/rotary.py > tests/data/rotary.txt
"""
from nodes import Nodes

nodes = Nodes()
nodes.add_onnx('RotaryEmbedding')
nodes.write()
