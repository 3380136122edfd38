"""torch_peer.py - measures in PyTorch what lg-bench measures in libgrad, for tools/bench --vs torch.

torch_peer.py [--threads N] [--device D] [--best]: answers lines "run NAME SECONDS" from stdin with lines of JSON.
--best: uses the fused optimiser, and for images the faster of contiguous and channels_last; tools/bench sets environment
variables as well. If RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set, training steps use DistributedDataParallel over
gloo. Names, shapes, batches, losses and optimisers are those of workloads.c, encoder.c and kernels.c.
"""
import argparse
import contextlib
import math
import os
import time
import warnings

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

import peer

warnings.filterwarnings("ignore")
CHAIN, CLASSES = 1000, 10
RANK, PROCESSES = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


# ---- networks ----

def perceptron(act, *sizes):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [nn.Linear(i, o), act()]
    return nn.Sequential(*layers[:-1])


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, CLASSES))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, CLASSES))


def conv_norm(i, o, kernel, stride):
    return nn.Sequential(nn.Conv2d(i, o, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(o))


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.body = nn.Sequential(conv_norm(i, o, 3, stride), nn.ReLU(inplace=True), conv_norm(o, o, 3, 1))
        self.shortcut = conv_norm(i, o, 1, stride) if stride != 1 or i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x), inplace=True)


def resnet18():
    layers, i = [conv_norm(3, 64, 3, 1), nn.ReLU(inplace=True)], 64
    for stage in range(4):
        o = 64 << stage
        layers += [Block(i, o, 2 if stage else 1), Block(o, o, 1)]
        i = o
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


class Layer(nn.Module):
    """By hand, since nn.TransformerEncoderLayer is slower where it trains."""
    def __init__(self, dim, heads, causal):
        super().__init__()
        self.heads, self.causal, self.norm1, self.norm2 = heads, causal, nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, d))
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(Layer(256, 8, False) for _ in range(4)))
        self.norm, self.head = nn.LayerNorm(256), nn.Linear(256, CLASSES)

    def forward(self, x):
        return self.head(self.norm(self.layers(x)).mean(1))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50257, 768), nn.Parameter(0.02 * torch.randn(1024, 768))
        nn.init.normal_(self.tokens.weight, 0, 0.02)
        self.layers, self.norm = nn.Sequential(*(Layer(768, 12, True) for _ in range(12))), nn.LayerNorm(768)

    def forward(self, x):
        y = self.norm(self.layers(self.tokens(x) + self.positions[:x.shape[1]]))
        return F.linear(y.flatten(0, 1), self.tokens.weight)


# ---- training steps ----

def adam(o, net):
    return torch.optim.Adam(net.parameters(), lr=1e-3, **({"fused": True} if o.best else {}))


def sgd(o, net):
    return torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, **({"fused": True} if o.best else {}))


def agree(value):
    """Returns the value that rank 0 passed."""
    told = torch.tensor([float(value)], dtype=torch.float64)
    dist.broadcast(told, 0)
    return told.item()


def live(o, net, loss, opt, batch):
    """Returns an item that minimises loss(net)."""
    trained, more = net, {}
    if PROCESSES > 1:
        trained, more = nn.parallel.DistributedDataParallel(net), {"agree": agree}

    def step():
        with o.autocast():
            value = loss(trained)
        opt.zero_grad()
        value.backward()
        opt.step()
    return peer.Live(step, parameters=sum(p.numel() for p in net.parameters()), wait=o.wait, batch=batch,
                     processes=PROCESSES, **more)


def classify(network, shape, optimizer=adam):
    def make(o, layout=torch.contiguous_format):
        net, x, y = network(), torch.randn(shape), torch.randint(0, CLASSES, shape[:1])
        if layout == torch.channels_last:
            net, x = net.to(memory_format=layout), x.to(memory_format=layout)
        return live(o, net, lambda net: F.cross_entropy(net(x), y), optimizer(o, net), shape[0])
    make.images = len(shape) == 4
    return make


def op_chain(o):
    w = torch.ones((), requires_grad=True)

    def step():
        x = w
        for _ in range(CHAIN):
            x = x * w
        x.backward()
        w.grad = None
    return peer.Live(step, units=CHAIN, wait=o.wait)


def rl_mlp(o):
    net, x = perceptron(nn.Tanh, 4, 64, 64, 2), torch.randn(32, 4)
    y, advantage = torch.randint(0, 2, (32,)), torch.randn(32)
    return live(o, net, lambda net: (F.cross_entropy(net(x), y, reduction="none") * advantage).mean(), adam(o, net), 32)


def pinn(o):
    net, x = perceptron(nn.Tanh, 1, 64, 64, 64, 1), torch.rand(256, 1, requires_grad=True)
    target = (-math.pi ** 2 * torch.sin(math.pi * x)).detach()

    def derivative(u):
        return torch.autograd.grad(u.sum(), x, create_graph=True)[0]

    def loss(net):
        x.grad = None
        return F.mse_loss(derivative(derivative(net(x))), target)
    return live(o, net, loss, adam(o, net), 256)


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer, self.head = layer(128, 256), nn.Linear(256, CLASSES)

    def forward(self, x):
        return self.head(self.layer(x)[0][-1])


def recurrent(layer):
    def make(o):
        net, x, y = Recurrent(layer), torch.randn(100, 32, 128), torch.randint(0, CLASSES, (32,))
        return live(o, net, lambda net: F.cross_entropy(net(x), y), adam(o, net), 32)
    return make


def attention(o):
    q, k, v = (torch.randn(1, 8, 1024, 64, requires_grad=True) for _ in range(3))
    g = torch.randn(1, 8, 1024, 64)

    def step():
        with o.autocast():
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y.backward(g.to(y.dtype))
        q.grad = k.grad = v.grad = None
    return peer.Live(step, wait=o.wait)


def gpt(batch, length):
    def make(o):
        net, x, y = GPT(), torch.randint(0, 50257, (batch, length)), torch.randint(0, 50257, (batch * length,))
        return live(o, net, lambda net: F.cross_entropy(net(x), y), adam(o, net), batch)
    return make


WORKLOADS = {
    "op-chain": op_chain, "rl-mlp": rl_mlp, "pinn": pinn,
    "mlp-small": classify(lambda: perceptron(nn.ReLU, 784, 128, CLASSES), (64, 784)),
    "mlp-wide": classify(lambda: perceptron(nn.ReLU, 784, 512, 512, CLASSES), (128, 784)),
    "lenet": classify(lenet, (64, 1, 28, 28)), "lenet-1": classify(lenet, (1, 1, 28, 28)), "cnn": classify(cnn, (64, 1, 28, 28)),
    "resnet18": classify(resnet18, (32, 3, 32, 32), sgd),
    "encoder": classify(Encoder, (8, 128, 256)), "encoder-1": classify(Encoder, (1, 128, 256)),
    "attention": attention, "gpt-1x1024": gpt(1, 1024), "gpt-4x64": gpt(4, 64),
    "lstm": recurrent(nn.LSTM), "gru": recurrent(nn.GRU),
}


# ---- kernels ----

def rows(n):
    return torch.rand(n // 1024, 1024) * 2 - 1


def square(n):
    return torch.rand(math.isqrt(n), math.isqrt(n)) * 2 - 1


def images(n):
    return torch.rand(n // (64 * 16 * 16), 64, 16, 16) * 2 - 1


def affine(size):
    return torch.ones(size, requires_grad=True), torch.zeros(size, requires_grad=True)


def forward(op, inputs):
    """Times op(x, w, b, y) without recording."""
    def make(o, n, layout=torch.contiguous_format):
        x = inputs(n)
        if layout == torch.channels_last:
            x = x.contiguous(memory_format=layout)
        (w, b), y = affine(x.shape[1]), torch.randint(0, 1024, x.shape[:1])

        def step():
            with torch.no_grad():
                op(x, w, b, y)
        return peer.Live(step, wait=o.wait)
    make.images = inputs is images
    return make


def gradient(op, inputs, all_of=False):
    """Times the gradient of op(x, w, b, y) with respect to x, or if all_of to x, w and b."""
    def make(o, n, layout=torch.contiguous_format):
        x = inputs(n)
        x = x.contiguous(memory_format=layout) if layout == torch.channels_last else x
        x.requires_grad_()
        (w, b), y = affine(x.shape[1]), torch.randint(0, 1024, x.shape[:1])
        result = op(x, w, b, y)
        g = torch.ones_like(result)
        return peer.Live(lambda: torch.autograd.grad(result, (x, w, b) if all_of else x, g, retain_graph=True),
                         wait=o.wait)
    make.images = inputs is images
    return make


def adam_kernel(o, n):
    w = torch.rand(n, requires_grad=True)
    w.grad = 2 * w.detach()
    return peer.Live(torch.optim.Adam([w], lr=1e-3, **({"fused": True} if o.best else {})).step, wait=o.wait)


OPS = {
    "gelu": (lambda x, w, b, y: F.gelu(x), rows), "softmax": (lambda x, w, b, y: F.softmax(x, -1), rows),
    "layer_norm": (lambda x, w, b, y: F.layer_norm(x, w.shape, w, b), rows, True),
    "batch_norm": (lambda x, w, b, y: F.batch_norm(x, None, None, w, b, training=True), images, True),
    "dropout": (lambda x, w, b, y: F.dropout(x, 0.5), rows),
    "cross-entropy": (lambda x, w, b, y: F.cross_entropy(x, y), rows),
    "max-pool": (lambda x, w, b, y: F.max_pool2d(x, 2), images),
}
KERNELS = {"adam": adam_kernel, "sum": forward(lambda x, w, b, y: x.sum(), rows),
           "transpose-copy": forward(lambda x, w, b, y: x.t().contiguous(), square)}
for name, (op, inputs, *more) in OPS.items():
    KERNELS[name], KERNELS[name + "-grad"] = forward(op, inputs), gradient(op, inputs, *more)
ITEMS = {**{name: (make, None) for name, make in WORKLOADS.items()}, **peer.sizes(KERNELS)}


# ---- answers ----

def best_layout(build):
    """Returns the memory layout of images in which a call is faster, after measuring each for half a second."""
    took = {}
    for layout in torch.contiguous_format, torch.channels_last:
        item = build(layout)
        item.seconds_of(1)
        end, best = time.perf_counter() + 0.5, math.inf
        while time.perf_counter() < end:
            best = min(best, item.seconds_of(1)[0])
        took[layout] = best
        del item
    return min(took, key=took.get)


def make(o, name):
    if name not in ITEMS:
        raise ValueError("there is no such item")
    function, n = ITEMS[name]
    arguments = () if n is None else (n,)
    torch.manual_seed(1 + RANK)
    if not (o.best and getattr(function, "images", False)):
        return function(o, *arguments)
    layout = best_layout(lambda layout: function(o, *arguments, layout=layout))
    peer.reset_resident()
    before = peer.resident("VmRSS:")
    item = function(o, *arguments, layout=layout)
    item.before = before
    item.notes["layout"] = "channels_last" if layout == torch.channels_last else "NCHW"
    return item


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--device", default="cpu")
    p.add_argument("--best", action="store_true")
    p.add_argument("--amp", choices=["f32", "bf16", "f16"], default="f32")
    o = p.parse_args()
    if o.threads:
        torch.set_num_threads(o.threads)
    o.wait = torch.cuda.synchronize if o.device.startswith("cuda") else lambda: None
    torch.set_default_device(o.device)
    dtype = {"f32": None, "bf16": torch.bfloat16, "f16": torch.float16}[o.amp]
    o.autocast = (lambda: torch.autocast(o.device.split(":")[0], dtype)) if dtype else contextlib.nullcontext
    if PROCESSES > 1:
        dist.init_process_group("gloo")
    rl_mlp(o).seconds_of(1)  # loads the parts that PyTorch loads at first use
    peer.tell(peer="torch", version=torch.__version__, best=o.best, threads=torch.get_num_threads(), device=o.device,
              cpu=torch.backends.cpu.get_cpu_capability(), items=list(ITEMS))
    peer.serve(lambda name: make(o, name))
    if PROCESSES > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
