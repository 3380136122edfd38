"""attention.py - writes attention.txt: the node tests of ONNX's Attention, and PyTorch's scaled_dot_product_attention.

Run with a Python that has onnx and torch: python3 tests/data/attention.py > tests/data/attention.txt

Left out is qk_matmul_output, which 18 of ONNX's 93 tests have as a further output: lg_attention() does not keep scores. Their
result Y is here. So are present_key and present_value not, which are the joined past and present.
"""
import numpy as np
import torch
import torch.nn.functional as F
import golden
from nodes import Nodes


class Attention(Nodes):
    def wanted(self, tensors):
        return {role: x for role, x in tensors.items() if role not in ('present_key', 'present_value', 'qk_matmul_output')}


def tensor(*shape, phase=0.0):
    return golden.tensor(*shape, phase=phase).round(decimals=2)


def torch_case(name, q, k, v, mask=None, **options):
    """The result for the weights 1, 2, 3, ... / count, and gradients of q, k, v and a float mask."""
    given = {'Q': q, 'K': k, 'V': v}
    if mask is not None:
        given['attn_mask'] = mask
    leaves = {role: x.clone().requires_grad_(x.dtype == torch.float64) for role, x in given.items()}
    y = F.scaled_dot_product_attention(leaves['Q'], leaves['K'], leaves['V'], attn_mask=leaves.get('attn_mask'), **options)
    g = torch.arange(1, y.numel() + 1, dtype=torch.float64).reshape(y.shape) / y.numel()
    y.backward(g)
    tensors = {role: x.detach().numpy() for role, x in given.items()}
    tensors['Y'] = y.detach().numpy()
    tensors.update({'d' + role: x.grad.numpy() for role, x in leaves.items() if x.grad is not None})
    nodes.add('torch_' + name, {k: v for k, v in options.items() if k != 'enable_gqa'}, tensors)


nodes = Attention()
nodes.add_onnx('Attention')
Q, K, V = tensor(2, 2, 3, 4), tensor(2, 2, 5, 4, phase=0.4), tensor(2, 2, 5, 3, phase=0.9)
SEEN = torch.from_numpy(np.arange(15).reshape(3, 5) * 7 % 3 != 1)
ADDED = tensor(2, 1, 3, 5, phase=1.7)
torch_case('plain', Q, K, V)
torch_case('causal', Q, K, V, is_causal=True)
torch_case('causal_square', K, tensor(2, 2, 5, 4, phase=2.1), V, is_causal=True)
torch_case('causal_more_queries', K, Q, V[:, :, :3], is_causal=True)
torch_case('bool_mask', Q, K, V, SEEN)
torch_case('bool_mask_of_heads', Q, K, V, torch.stack([SEEN, SEEN.flip(0)])[None])
torch_case('float_mask', Q, K, V, ADDED)
torch_case('float_mask_hides', Q, K, V, ADDED.masked_fill(~SEEN, -torch.inf))
torch_case('scale', Q, K, V, scale=0.3)
torch_case('gqa', tensor(2, 4, 3, 4), K, V, enable_gqa=True)
torch_case('gqa_causal', tensor(2, 6, 5, 4), K, V, enable_gqa=True, is_causal=True)
torch_case('gqa_float_mask', tensor(2, 4, 3, 4), K, V, ADDED, enable_gqa=True, scale=0.7)
torch_case('one_key', Q, K[:, :, :1], V[:, :, :1])
torch_case('three_dimensions', Q[0], K[0], V[0])
nodes.write()
