"""jax_peer.py - measures in JAX what lg-bench measures in libgrad, for tools/bench --vs jax.

jax_peer.py [--threads N]: answers lines "run NAME SECONDS" from stdin with lines of JSON. A training step is one jitted
function of the parameters, the optimiser's state and the batch, which donates the buffers that it updates. Images have
channels last. There is no op-chain, because a jitted chain is a single kernel.
"""
import argparse
import math
import os
import sys

import peer

p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
p.add_argument("--threads", type=int, default=0)
o = p.parse_args()
if o.threads:  # XLA starts a thread for each available core
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:o.threads])
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax, nn, random  # noqa: E402

CLASSES = 10


class Keys:
    """A source of random numbers that splits its key for each call."""

    def __init__(self):
        self.key = random.PRNGKey(1)

    def uniform(self, shape, bound=1.0):
        self.key, key = random.split(self.key)
        return random.uniform(key, shape, minval=-bound, maxval=bound)

    def normal(self, shape):
        self.key, key = random.split(self.key)
        return random.normal(key, shape)

    def labels(self, n, below):
        self.key, key = random.split(self.key)
        return random.randint(key, (n,), 0, below)


# ---- layers: parameters are lists and dictionaries of arrays ----

def dense(k, i, o):
    return {"w": k.uniform((i, o), i ** -0.5), "b": k.uniform((o,), i ** -0.5)}


def conv(k, i, o, kernel, bias=True):
    bound = (i * kernel * kernel) ** -0.5
    weight = {"w": k.uniform((kernel, kernel, i, o), bound)}
    return {**weight, "b": k.uniform((o,), bound)} if bias else weight


def norm(n):
    return {"w": jnp.ones(n), "b": jnp.zeros(n)}


def linear(q, x):
    return x @ q["w"] + q["b"]


def convolve(q, x, padding, stride=1):
    y = lax.conv_general_dilated(x, q["w"], (stride, stride), [(padding, padding)] * 2,
                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + q["b"] if "b" in q else y


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def layer_norm(q, x):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * q["w"] + q["b"]


def batch_norm(q, x):
    """Batch norm in training, without running statistics, whose cost is negligible."""
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * lax.rsqrt(var + 1e-5) * q["w"] + q["b"]


def cross_entropy(scores, y):
    return -jnp.take_along_axis(nn.log_softmax(scores), y[:, None], 1)[:, 0]


# ---- networks: (parameters, forward) ----

def perceptron(k, act, *sizes):
    def forward(q, x):
        for layer in q[:-1]:
            x = act(linear(layer, x))
        return linear(q[-1], x)
    return [dense(k, i, o) for i, o in zip(sizes, sizes[1:])], forward


def lenet(k):
    q = [conv(k, 1, 6, 5), conv(k, 6, 16, 5), dense(k, 400, 120), dense(k, 120, 84), dense(k, 84, CLASSES)]

    def forward(q, x):
        x = max_pool(nn.relu(convolve(q[0], x, 2)))
        x = max_pool(nn.relu(convolve(q[1], x, 0))).reshape(x.shape[0], -1)
        return linear(q[4], nn.relu(linear(q[3], nn.relu(linear(q[2], x)))))
    return q, forward


def cnn(k):
    q = [conv(k, 1, 32, 3), conv(k, 32, 64, 3), dense(k, 9216, 128), dense(k, 128, CLASSES)]

    def forward(q, x):
        x = nn.relu(convolve(q[1], nn.relu(convolve(q[0], x, 0)), 0))
        return linear(q[3], nn.relu(linear(q[2], max_pool(x).reshape(x.shape[0], -1))))
    return q, forward


def block(k, i, o):
    """Returns the parameters of two convolutions and, if the shape changes, of a 1x1 convolution for the shortcut."""
    q = {"c1": conv(k, i, o, 3, False), "n1": norm(o), "c2": conv(k, o, o, 3, False), "n2": norm(o)}
    return {**q, "c3": conv(k, i, o, 1, False), "n3": norm(o)} if i != o else q


def apply_block(q, x):
    stride = 2 if "c3" in q else 1
    y = nn.relu(batch_norm(q["n1"], convolve(q["c1"], x, 1, stride)))
    y = batch_norm(q["n2"], convolve(q["c2"], y, 1))
    return nn.relu(y + (batch_norm(q["n3"], convolve(q["c3"], x, 0, stride)) if "c3" in q else x))


def resnet18(k):
    sizes = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    q = {"stem": conv(k, 3, 64, 3, False), "norm": norm(64), "head": dense(k, 512, CLASSES),
         "blocks": [block(k, i, o) for i, o in zip(sizes, sizes[1:])]}

    def forward(q, x):
        x = nn.relu(batch_norm(q["norm"], convolve(q["stem"], x, 1)))
        for b in q["blocks"]:
            x = apply_block(b, x)
        return linear(q["head"], x.mean((1, 2)))
    return q, forward


def apply_layer(q, x, heads=8):
    n, t, d = x.shape
    qkv = linear(q["qkv"], layer_norm(q["n1"], x)).reshape(n, t, 3, heads, d // heads).transpose(2, 0, 3, 1, 4)
    weights = nn.softmax(qkv[0] @ qkv[1].swapaxes(-1, -2) / math.sqrt(d // heads))
    x = x + linear(q["out"], (weights @ qkv[2]).swapaxes(1, 2).reshape(n, t, d))
    return x + linear(q["down"], nn.gelu(linear(q["up"], layer_norm(q["n2"], x)), approximate=False))


def encoder(k, dim=256):
    layers = [{"n1": norm(dim), "qkv": dense(k, dim, 3 * dim), "out": dense(k, dim, dim), "n2": norm(dim),
               "up": dense(k, dim, 4 * dim), "down": dense(k, 4 * dim, dim)} for _ in range(4)]

    def forward(q, x):
        for layer in q["layers"]:
            x = apply_layer(layer, x)
        return linear(q["head"], layer_norm(q["norm"], x).mean(1))
    return {"layers": layers, "norm": norm(dim), "head": dense(k, dim, CLASSES)}, forward


# ---- training steps ----

def adam(q, g, m, v, t):
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    rate, root = 1e-3 / (1 - 0.9 ** t), jnp.sqrt(1 - 0.999 ** t)
    return jax.tree.map(lambda q, m, v: q - rate * m / (jnp.sqrt(v) / root + 1e-8), q, m, v), m, v


def sgd(q, g, m, v, t):
    m = jax.tree.map(lambda m, g: 0.9 * m + g, m, g)
    return jax.tree.map(lambda q, m: q - 0.01 * m, q, m), m, v


def live(q, loss, *batch, update=adam):
    """Returns an item that minimises loss(parameters, *batch). The second state v is () for sgd, which has only one."""
    def step(q, m, v, t, *batch):
        value, g = jax.value_and_grad(loss)(q, *batch)
        return (*update(q, g, m, v, t + 1), t + 1), value
    step = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    zeros = jax.tree.map(jnp.zeros_like, q)
    state = [(q, zeros, jax.tree.map(jnp.zeros_like, q) if update is adam else (), jnp.zeros(()))]
    last = [None]

    def run():
        state[0], last[0] = step(*state[0], *batch)
    return peer.Live(run, parameters=sum(a.size for a in jax.tree.leaves(q)), wait=lambda: jax.block_until_ready(last[0]))


def classify(network, shape, update=adam):
    def make():
        k = Keys()
        q, forward = network(k)
        x, y = k.normal(shape), k.labels(shape[0], CLASSES)
        return live(q, lambda q, x, y: cross_entropy(forward(q, x), y).mean(), x, y, update=update)
    return make


def rl_mlp():
    k = Keys()
    q, forward = perceptron(k, jnp.tanh, 4, 64, 64, 2)
    return live(q, lambda q, x, y, a: (cross_entropy(forward(q, x), y) * a).mean(), k.normal((32, 4)), k.labels(32, 2),
                k.normal((32,)))


def pinn():
    k = Keys()
    q, forward = perceptron(k, jnp.tanh, 1, 64, 64, 64, 1)
    x = (k.uniform((256,)) + 1) / 2

    def loss(q, x):
        second = jax.vmap(jax.grad(jax.grad(lambda x: forward(q, x[None])[0])))(x)
        return ((second + math.pi ** 2 * jnp.sin(math.pi * x)) ** 2).mean()
    return live(q, loss, x)


WORKLOADS = {
    "rl-mlp": rl_mlp, "pinn": pinn,
    "mlp-small": classify(lambda k: perceptron(k, nn.relu, 784, 128, CLASSES), (64, 784)),
    "mlp-wide": classify(lambda k: perceptron(k, nn.relu, 784, 512, 512, CLASSES), (128, 784)),
    "lenet": classify(lenet, (64, 28, 28, 1)), "lenet-1": classify(lenet, (1, 28, 28, 1)), "cnn": classify(cnn, (64, 28, 28, 1)),
    "resnet18": classify(resnet18, (32, 32, 32, 3), sgd),
    "encoder": classify(encoder, (8, 128, 256)), "encoder-1": classify(encoder, (1, 128, 256)),
}


# ---- kernels ----

def rows(n):
    return n // 1024, 1024


def square(n):
    return math.isqrt(n), math.isqrt(n)


def images(n):
    return n // (64 * 16 * 16), 16, 16, 64


def called(op, *arguments):
    op, last = jax.jit(op), [None]

    def run():
        last[0] = op(*arguments)
    return peer.Live(run, wait=lambda: jax.block_until_ready(last[0]))


def inputs(shape):
    k = Keys()
    return k.uniform(shape), k.labels(shape[0], 1024)


def forward(op, shape):
    def make(n):
        x, y = inputs(shape(n))
        return called(op, x, norm(x.shape[-1]), y, random.PRNGKey(2))
    return make


def adam_kernel(n):
    w, g = Keys().uniform((n,)), Keys().uniform((n,))
    step = jax.jit(adam, donate_argnums=(0, 2, 3))
    state = [(w, jnp.zeros(n), jnp.zeros(n))]

    def run():
        q, m, v = state[0]
        state[0] = step(q, g, m, v, 1.0)
    return peer.Live(run, wait=lambda: jax.block_until_ready(state[0]))


KERNELS = {
    "gelu": forward(lambda x, q, y, k: nn.gelu(x, approximate=False), rows),
    "softmax": forward(lambda x, q, y, k: nn.softmax(x), rows),
    "layer_norm": forward(lambda x, q, y, k: layer_norm(q, x), rows),
    "batch_norm": forward(lambda x, q, y, k: batch_norm(q, x), images),
    "dropout": forward(lambda x, q, y, k: jnp.where(random.bernoulli(k, 0.5, x.shape), 2 * x, 0), rows),
    "cross-entropy": forward(lambda x, q, y, k: cross_entropy(x, y).mean(), rows),
    "max-pool": forward(lambda x, q, y, k: max_pool(x), images),
    "sum": forward(lambda x, q, y, k: x.sum(), rows),
    "transpose-copy": forward(lambda x, q, y, k: x.T, square), "adam": adam_kernel,
}
ITEMS = {**{name: (make, None) for name, make in WORKLOADS.items()}, **peer.sizes(KERNELS)}


def make(name):
    if name not in ITEMS:
        raise ValueError("there is no such item")
    function, n = ITEMS[name]
    return function() if n is None else function(n)


peer.tell(peer="jax", version=jax.__version__, threads=len(os.sched_getaffinity(0)), device="cpu", items=list(ITEMS))
peer.serve(make)
sys.exit(0)
