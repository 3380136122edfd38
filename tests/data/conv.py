"""conv.py - writes conv.txt: convolutions and their gradients by x, by w and by b as PyTorch computes them in f64.

Run with a Python that has torch: python3 tests/data/conv.py > tests/data/conv.txt. The line of a gradient by w is that of
the function of w with x fixed. What is varied has phase 0.
"""
import torch.nn.functional as F
from golden import show, tensor

X = tensor(2, 2, 4, 3)
W = tensor(3, 2, 3, 3, phase=0.5)
B = tensor(3, phase=0.7)
show("plain", lambda x: F.conv2d(x, W, B), X)
show("plain_w", lambda w: F.conv2d(X, w, B), tensor(*W.shape))
show("plain_b", lambda b: F.conv2d(X, W, b), tensor(*B.shape))
show("padded", lambda x: F.conv2d(x, W, B, padding=1), X)
show("padded_w", lambda w: F.conv2d(X, w, B, padding=1), tensor(*W.shape))
show("strided", lambda x: F.conv2d(x, W, B, stride=2, padding=2), X)
show("strided_w", lambda w: F.conv2d(X, w, B, stride=2, padding=2), tensor(*W.shape))
show("pairs", lambda x: F.conv2d(x, W, None, stride=(1, 2), padding=(2, 1), dilation=(2, 1)), X)
show("pairs_w", lambda w: F.conv2d(X, w, None, stride=(1, 2), padding=(2, 1), dilation=(2, 1)), tensor(*W.shape))
show("one_by_one", lambda x: F.conv2d(x, W[:, :, :1, :1], B), X)
show("unbatched", lambda x: F.conv2d(x, W, B, padding=(1, 0)), X[0])

G = tensor(1, 4, 3, 4, phase=0.2)
V = tensor(2, 2, 3, 2, phase=0.3)
U = tensor(4, 1, 2, 2, phase=0.4)
show("groups", lambda x: F.conv2d(x, V, None, padding=1, groups=2), tensor(*G.shape))
show("groups_w", lambda w: F.conv2d(G, w, None, padding=1, groups=2), tensor(*V.shape))
show("depthwise", lambda x: F.conv2d(x, U, None, dilation=2, padding=1, groups=4), tensor(*G.shape))
show("depthwise_w", lambda w: F.conv2d(G, w, None, dilation=2, padding=1, groups=4), tensor(*U.shape))

T = tensor(3, 2, 2, 3, phase=0.5)
H = tensor(1, 3, 2, 3, phase=0.2)
show("transposed", lambda x: F.conv_transpose2d(x, T, tensor(2, phase=0.1)), tensor(*H.shape))
show("transposed_w", lambda w: F.conv_transpose2d(H, w, None, stride=2), tensor(*T.shape))
show("transposed_b", lambda b: F.conv_transpose2d(H, T, b, stride=2), tensor(2))
P = tensor(4, 1, 3, 2, phase=0.5)
show("transposed_pairs", lambda x: F.conv_transpose2d(x, P, None, stride=(2, 1), padding=(1, 0), output_padding=(1, 0),
                                                      dilation=(1, 2), groups=2), tensor(*G.shape))
D = tensor(2, 1, 2, 2, phase=0.5)
show("transposed_dilated", lambda x: F.conv_transpose2d(x, D, None, dilation=3, output_padding=2), tensor(2, 2, 2))

S = tensor(2, 3, 5)
show("signal", lambda x: F.conv1d(x, tensor(3, 3, 3, phase=0.5), B, stride=2, padding=1), S)
show("signal_w", lambda w: F.conv1d(S, w, B, dilation=2), tensor(3, 3, 3))
show("signal_groups", lambda x: F.conv1d(x, tensor(3, 1, 2, phase=0.5), None, groups=3), S[0])
Q = tensor(3, 2, 4, phase=0.5)
show("signal_transposed", lambda x: F.conv_transpose1d(x, Q, tensor(2, phase=0.1), stride=3, padding=1,
                                                       output_padding=1), S)

X3 = tensor(2, 2, 4, 3, 5)
W3 = tensor(3, 2, 3, 2, 3, phase=0.5)
show("volume", lambda x: F.conv3d(x, W3, B, padding=1), X3)
show("volume_w", lambda w: F.conv3d(X3, w, B, padding=1), tensor(*W3.shape))
show("volume_b", lambda b: F.conv3d(X3, W3, b), tensor(*B.shape))
show("volume_strided", lambda x: F.conv3d(x, W3, None, stride=2, padding=2), X3)
show("volume_strided_w", lambda w: F.conv3d(X3, w, None, stride=2, padding=2), tensor(*W3.shape))
show("volume_triples", lambda x: F.conv3d(x, W3, B, stride=(3, 1, 2), padding=(3, 1, 0), dilation=(2, 1, 1)), X3)
show("volume_triples_w", lambda w: F.conv3d(X3, w, B, stride=(3, 1, 2), padding=(3, 1, 0), dilation=(2, 1, 1)), tensor(*W3.shape))
show("volume_points", lambda x: F.conv3d(x, W3[:, :, :1, :1, :1], B), X3)
show("volume_alone", lambda x: F.conv3d(x, W3, B, padding=(1, 0, 2)), X3[0])
W4 = tensor(4, 2, 2, 2, 1, phase=0.3)
G3 = tensor(1, 4, 3, 3, 2, phase=0.2)
show("volume_groups", lambda x: F.conv3d(x, W4, None, padding=1, groups=2), tensor(*G3.shape))
show("volume_groups_w", lambda w: F.conv3d(G3, w, None, padding=1, groups=2), tensor(*W4.shape))
show("volume_transposed", lambda x: F.conv_transpose3d(x, W3, tensor(2, phase=0.1), stride=2, padding=1, output_padding=1),
     tensor(1, 3, 2, 2, 2))
show("volume_transposed_w", lambda w: F.conv_transpose3d(tensor(1, 3, 2, 3, 2, phase=0.2), w, None, stride=(2, 1, 3)),
     tensor(*W3.shape))
show("volume_transposed_b", lambda b: F.conv_transpose3d(tensor(1, 3, 2, 3, 2, phase=0.2), W3, b), tensor(2))
show("volume_transposed_groups", lambda x: F.conv_transpose3d(x, tensor(4, 1, 3, 2, 2, phase=0.5), None, stride=(3, 2, 1),
     padding=(1, 0, 1), output_padding=(2, 1, 0), dilation=(1, 2, 1), groups=2), tensor(*G3.shape))
