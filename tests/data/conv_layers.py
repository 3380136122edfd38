"""conv_layers.py - writes conv_layers.txt: layers of convolution, pooling, padding and normalisation as PyTorch computes them in
f64, for tests/test_conv_layers.c. Parameter i of a layer is a tensor of phase 0.5 + i. See golden.py.
"""
import torch
from torch import nn
from golden import show, tensor


def of(layer):
    layer = layer.double()
    for i, p in enumerate(layer.parameters()):
        p.data = tensor(*p.shape, phase=0.5 + i)
    return layer


def evaluated(layer):
    """The layer in evaluation mode, after two batches in training mode."""
    def run(x):
        m = of(layer)
        with torch.no_grad():
            m(x * 0.5 + 1), m(x)
        return m.eval()(x)
    return run


S, I, V = tensor(2, 4, 6), tensor(2, 4, 5, 4), tensor(2, 4, 3, 4, 3)
show("conv1d_circular", of(nn.Conv1d(4, 2, 3, stride=2, padding=2, padding_mode="circular")), S)
show("conv2d_reflect", of(nn.Conv2d(4, 2, (3, 2), padding=(2, 1), groups=2, padding_mode="reflect")), I)
show("conv2d_replicate", of(nn.Conv2d(4, 3, 2, stride=(1, 2), padding=3, padding_mode="replicate")), I[0])
show("conv3d", of(nn.Conv3d(4, 2, 2, stride=(1, 2, 1), padding=1, bias=False)), V)
show("conv3d_circular", of(nn.Conv3d(4, 2, (2, 3, 2), padding=(2, 1, 0), padding_mode="circular")), V)
show("conv_transpose1d", of(nn.ConvTranspose1d(4, 2, 3, stride=2, padding=1, output_padding=1, groups=2)), S)
show("conv_transpose3d", of(nn.ConvTranspose3d(4, 3, (2, 1, 2), stride=2, output_padding=(1, 0, 1))), V[:1])
show("max_pool1d", nn.MaxPool1d(3, 2, 1), S)
show("max_pool3d", nn.MaxPool3d((2, 2, 1), ceil_mode=True), V)
show("avg_pool1d", nn.AvgPool1d(3, 1, 1, count_include_pad=False), S)
show("avg_pool3d", nn.AvgPool3d(2, 1, divisor_override=3), V)
show("adaptive_avg_pool1d", nn.AdaptiveAvgPool1d(4), S)
show("adaptive_avg_pool3d", nn.AdaptiveAvgPool3d((2, 3, 1)), V)
show("adaptive_max_pool1d", nn.AdaptiveMaxPool1d(4), S)
show("adaptive_max_pool2d", nn.AdaptiveMaxPool2d((2, 3)), I)
show("adaptive_max_pool3d", nn.AdaptiveMaxPool3d(2), V)
show("batch_norm3d", of(nn.BatchNorm3d(4)), V)
show("batch_norm3d_evaluated", evaluated(nn.BatchNorm3d(4, momentum=0.3)), V)
show("instance_norm1d", of(nn.InstanceNorm1d(4)), S)
show("instance_norm2d", of(nn.InstanceNorm2d(4, affine=True, eps=1e-3)), I)
show("instance_norm3d", of(nn.InstanceNorm3d(4, affine=True)), V[0])
show("instance_norm2d_evaluated", evaluated(nn.InstanceNorm2d(4, affine=True, track_running_stats=True)), I)
show("instance_norm3d_evaluated", evaluated(nn.InstanceNorm3d(4, momentum=0.3, track_running_stats=True)), V)
show("reflection1d", nn.ReflectionPad1d((3, 1)), S)
show("reflection2d", nn.ReflectionPad2d((1, 2, 3, 0)), I)
show("reflection3d", nn.ReflectionPad3d((1, 2, 3, 0, 2, 1)), V)
show("replication1d", nn.ReplicationPad1d(2), S[0])
show("replication2d", nn.ReplicationPad2d((1, 2, 3, 0)), I)
show("replication3d", nn.ReplicationPad3d((1, 0, 0, 2, 4, 1)), V)
show("circular1d", nn.CircularPad1d((6, 2)), S)
show("circular2d", nn.CircularPad2d((1, 2, 5, 0)), I)
show("circular3d", nn.CircularPad3d((1, 2, 3, 0, 3, 1)), V)
show("zero2d", nn.ZeroPad2d((1, -1, 2, 0)), I)
show("constant3d", nn.ConstantPad3d((1, 0, 0, 1, 2, -1), 2.5), V)
