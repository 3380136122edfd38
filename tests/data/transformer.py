"""transformer.py - writes transformer.txt: attention modules and transformers as PyTorch computes them in f64. See golden.py.

Parameter number k of a module, of any shape, is 0.3 tensor(shape, phase=k). Rows named ..._by_params are functions of x,
where 0.3 x are all parameters, joined in their order. PyTorch's masks say which keys are hidden; those of the tests say which are seen.
"""
import torch
import torch.nn as nn
from golden import show, tensor

torch.set_default_dtype(torch.float64)
LAST = torch.tensor([[True, True, True], [True, True, False]])  # keys seen in each of two samples
LAST4 = torch.tensor([[True, True, True, True], [True, False, True, False]])
MASK = torch.tensor([[True, False, True, True], [False, True, True, False], [True, True, True, True]])


def filled(m):
    with torch.no_grad():
        for k, p in enumerate(m.parameters()):
            p.copy_(0.3 * tensor(*p.shape, phase=k))
    return m


def by_params(name, m, *args, **more):
    names = [n for n, _ in m.named_parameters()]
    sizes = [p.shape for p in m.parameters()]

    def f(x):
        parts = (0.3 * x).split([s.numel() for s in sizes])
        y = torch.func.functional_call(m, {n: p.reshape(s) for n, p, s in zip(names, parts, sizes)}, args, more)
        return y[0] if isinstance(y, tuple) else y
    show(name, f, tensor(sum(s.numel() for s in sizes)))


def attention(**o):
    return filled(nn.MultiheadAttention(4, 2, **o))


def hidden(t):
    return t.logical_not()


X = tensor(2, 3, 4, phase=1)
Y = tensor(2, 4, 4, phase=2)
first = attention(batch_first=True)
show("self", lambda x: first(x, x, x)[0], tensor(2, 3, 4))
show("self_weights", lambda x: first(x, x, x)[1], tensor(2, 3, 4))
show("self_weights_of_heads", lambda x: first(x, x, x, average_attn_weights=False)[1], tensor(2, 3, 4))
show("self_time_first", lambda x: attention()(x, x, x)[0], tensor(3, 2, 4))
show("self_unbatched", lambda x: attention()(x, x, x)[0], tensor(3, 4))
show("self_unbatched_weights", lambda x: attention()(x, x, x)[1], tensor(3, 4))
show("self_no_bias", lambda x: attention(bias=False)(x, x, x)[0], tensor(3, 2, 4))
show("self_causal", lambda x: first(x, x, x, attn_mask=torch.ones(3, 3, dtype=bool).triu(1))[0], tensor(2, 3, 4))
show("self_keys", lambda x: first(x, x, x, key_padding_mask=hidden(LAST))[0], tensor(2, 3, 4))
show("cross", lambda x: first(x, Y, Y)[0], tensor(2, 3, 4))
show("cross_memory", lambda y: first(X, y, y)[0], tensor(2, 4, 4))
show("cross_mask", lambda x: first(x, Y, Y, attn_mask=hidden(MASK))[0], tensor(2, 3, 4))
show("cross_masks", lambda x: first(x, Y, Y, attn_mask=hidden(MASK), key_padding_mask=hidden(LAST4))[0], tensor(2, 3, 4))
show("cross_mask_of_heads", lambda x: first(x, Y, Y, attn_mask=tensor(4, 3, 4, phase=3))[0], tensor(2, 3, 4))
show("cross_mask_of_heads_keys", lambda x: first(x, Y, Y, attn_mask=torch.stack([hidden(MASK.roll(i, 1)) for i in range(4)]), key_padding_mask=hidden(LAST4))[0],
     tensor(2, 3, 4))
show("cross_added", lambda x: first(x, Y, Y, attn_mask=tensor(3, 4, phase=3))[0], tensor(2, 3, 4))
show("cross_added_keys", lambda x: first(x, Y, Y, attn_mask=tensor(3, 4, phase=3), key_padding_mask=torch.zeros(2, 4).masked_fill(hidden(LAST4), -torch.inf))[0],
     tensor(2, 3, 4))
show("cross_masks_weights", lambda x: first(x, Y, Y, attn_mask=hidden(MASK), key_padding_mask=hidden(LAST4))[1], tensor(2, 3, 4))
show("three", lambda x: first(x, Y, tensor(2, 4, 4, phase=5))[0], tensor(2, 3, 4))
kv, zero = attention(add_bias_kv=True, batch_first=True), attention(add_zero_attn=True, batch_first=True)
both = attention(add_bias_kv=True, add_zero_attn=True, batch_first=True)
show("bias_kv", lambda x: kv(x, x, x)[0], tensor(2, 3, 4))
show("zero_attn", lambda x: zero(x, x, x)[0], tensor(2, 3, 4))
show("bias_zero", lambda x: both(x, x, x)[0], tensor(2, 3, 4))
show("bias_zero_causal", lambda x: both(x, x, x, attn_mask=torch.ones(3, 3, dtype=bool).triu(1))[0], tensor(2, 3, 4))
show("bias_zero_masks", lambda x: both(x, Y, Y, attn_mask=hidden(MASK), key_padding_mask=hidden(LAST4))[0], tensor(2, 3, 4))
show("bias_zero_added", lambda x: both(x, Y, Y, attn_mask=tensor(3, 4, phase=3))[0], tensor(2, 3, 4))
show("bias_zero_weights", lambda x: both(x, Y, Y, attn_mask=hidden(MASK), key_padding_mask=hidden(LAST4))[1], tensor(2, 3, 4))
by_params("bias_zero_by_params", both, X, Y, Y)
sized = attention(kdim=3, vdim=5, batch_first=True)
show("sized", lambda x: sized(x, tensor(2, 4, 3, phase=2), tensor(2, 4, 5, phase=3))[0], tensor(2, 3, 4))
show("sized_keys", lambda k: sized(X, k, tensor(2, 4, 5, phase=3))[0], tensor(2, 4, 3))
by_params("self_by_params", first, X, X, X)
by_params("cross_by_params", first, X, Y, Y)
by_params("sized_by_params", sized, X, tensor(2, 4, 3, phase=2), tensor(2, 4, 5, phase=3))


def layer(kind, **o):
    return filled(kind(4, 2, 6, 0.0, layer_norm_eps=0.01, batch_first=True, **o))


def stack(kind, inner, count, norm):
    return filled(kind(inner(4, 2, 6, 0.0, batch_first=True), count, norm))


ENCODER, DECODER = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
CAUSAL = torch.ones(3, 3, dtype=bool).triu(1)
post, pre = layer(ENCODER), layer(ENCODER, norm_first=True, activation="gelu")
show("encoder_layer", post, tensor(2, 3, 4))
show("encoder_layer_pre", pre, tensor(2, 3, 4))
show("encoder_layer_no_bias", layer(ENCODER, bias=False), tensor(2, 3, 4))
show("encoder_layer_masks", lambda x: post(x, src_mask=CAUSAL, src_key_padding_mask=hidden(LAST)), tensor(2, 3, 4))
show("encoder_layer_time_first", filled(nn.TransformerEncoderLayer(4, 2, 6, 0.0)), tensor(3, 2, 4))
show("encoder_layer_unbatched", pre, tensor(3, 4))
post2, pre2 = layer(DECODER), layer(DECODER, norm_first=True, activation="gelu")
show("decoder_layer", lambda x: post2(x, Y), tensor(2, 3, 4))
show("decoder_layer_pre", lambda x: pre2(x, Y), tensor(2, 3, 4))
show("decoder_layer_memory", lambda y: post2(X, y), tensor(2, 4, 4))
show("decoder_layer_masks", lambda x: post2(x, Y, tgt_mask=CAUSAL, tgt_key_padding_mask=hidden(LAST), memory_mask=hidden(MASK),
                                            memory_key_padding_mask=hidden(LAST4)), tensor(2, 3, 4))
encoder = stack(nn.TransformerEncoder, ENCODER, 2, nn.LayerNorm(4))
decoder = stack(nn.TransformerDecoder, DECODER, 2, None)
show("encoder", lambda x: encoder(x, mask=CAUSAL, src_key_padding_mask=hidden(LAST)), tensor(2, 3, 4))
show("decoder", lambda x: decoder(x, Y, tgt_mask=CAUSAL, memory_key_padding_mask=hidden(LAST4)), tensor(2, 3, 4))
transformer = filled(nn.Transformer(4, 2, 1, 2, 6, 0.0, norm_first=True, batch_first=True))
show("transformer", lambda x: transformer(x, Y, src_key_padding_mask=hidden(LAST), memory_key_padding_mask=hidden(LAST),
                                          tgt_is_causal=True, tgt_mask=torch.ones(4, 4, dtype=bool).triu(1)), tensor(2, 3, 4))
show("transformer_target", lambda y: transformer(X, y), tensor(2, 4, 4))
by_params("encoder_layer_by_params", post, X)
by_params("encoder_layer_pre_by_params", pre, X)
by_params("decoder_layer_by_params", post2, X, Y)
by_params("encoder_by_params", encoder, X)
by_params("transformer_by_params", transformer, X, Y)
