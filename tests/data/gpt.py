"""gpt.py - writes gpt2/ and llama/: small random models of transformers, with what they compute, for tests/test_gpt.c.

    pip install torch transformers safetensors
    python3 tests/data/gpt.py     # in the folder of the sources

golden.safetensors has "tokens" (N, T + 1), the logits of all but the last, the loss of all but the first, and the
gradients, (out, in) for linear layers. llama/ has its weights in four files; names in gpt2/ lack "transformer.".
"""
import os

import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

folder = os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(1)
torch.set_default_dtype(torch.float64)


def write(name, net, **more):
    path = os.path.join(folder, name)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.where(torch.tensor(p.dim() == 1), p + 0.1 * torch.randn(p.shape), 0.3 * torch.randn(p.shape)).float())
    net.float().save_pretrained(path, **more)
    net.double().eval()
    tokens = torch.randint(0, net.config.vocab_size, (2, 8))
    logits = net(tokens[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    golden = {"tokens": tokens, "logits": logits.detach().float(), "loss": loss.detach()}
    for key, p in net.named_parameters():
        turned = name == "gpt2" and key.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))
        golden["grad." + key] = (p.grad.T if turned else p.grad).float().contiguous()
    save_file(golden, os.path.join(path, "golden.safetensors"))
    os.remove(os.path.join(path, "generation_config.json"))
    return path


path = write("gpt2", GPT2LMHeadModel(GPT2Config(vocab_size=21, n_positions=16, n_embd=12, n_layer=2, n_head=3)))
weights = {key.removeprefix("transformer."): t for key, t in load_file(path + "/model.safetensors").items()}
weights["h.0.attn.bias"] = torch.ones(1, 1, 2, 2).tril()  # the mask that older versions wrote
save_file(weights, path + "/model.safetensors", {"format": "pt"})
write("llama", LlamaForCausalLM(LlamaConfig(
    vocab_size=19, hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2,
    head_dim=4, max_position_embeddings=32, rope_parameters=dict(
        rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=16))), max_shard_size="4KB")
