"""Writes tests/data/lora/: a small network of Linear layers, an adapter of PEFT's for it, inputs, outputs, and the losses of
50 steps of AdamW on the adapter, by PEFT."""
import json, os, shutil, sys
import torch
from peft import LoraConfig, get_peft_model, PeftModel
from safetensors.torch import save_file

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lora")


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 12), torch.nn.Tanh(),
        torch.nn.Sequential(torch.nn.Linear(12, 12, bias=False), torch.nn.ReLU()), torch.nn.Linear(12, 4))


def main():
    os.makedirs(FOLDER, exist_ok=True)
    base = network()
    save_file(base.state_dict(), os.path.join(FOLDER, "base.safetensors"))
    torch.manual_seed(5)
    model = get_peft_model(network(), LoraConfig(r=8, lora_alpha=16, target_modules=["0", "2.0", "3"], rank_pattern={"^0": 3},
                                                 alpha_pattern={"2.0": 5}))
    for name, p in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.1)
    model.save_pretrained(FOLDER)
    os.remove(os.path.join(FOLDER, "README.md"))
    x, y = torch.randn(32, 6), torch.randint(0, 4, (32,))
    tensors = {"x": x, "y": y, "out": model(x).detach().clone()}
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for _ in range(50):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    tensors["merged"] = model.merge_and_unload()[3].weight.detach().clone()
    save_file(tensors, os.path.join(FOLDER, "values.safetensors"))


if __name__ == "__main__":
    main()
