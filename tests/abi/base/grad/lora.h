/* lora.h - fine-tuning by low-rank adapters (LoRA: Hu et al., 2021), with the files of Hugging Face's PEFT.
 *
 * A Linear module with an adapter computes x W^T + b + scale (x A^T) B^T. Its weight and bias keep their names and are
 * frozen; it has two children more, "lora_A" with the weight A (rank, in) and "lora_B" with the weight B (out, rank):
 *
 *     lg_load(net, "base.safetensors");
 *     lg_lora(net, "*.c_attn", 8, .alpha = 16);
 *     lg_optimizer *opt = lg_adamw(c, lg_parameters(net), 1e-4);
 *     ...
 *     lg_lora_save(net, "adapter");
 *
 * An optimiser and lg_data_parallel() come afterwards. A checkpoint of the base can still be loaded, by lg_load() with
 * .partial. The functions fail with LG_ERR_STATE while one of the modules is running.
 */
#ifndef LG_LORA_H
#define LG_LORA_H

#include "grad/nn.h"

LG_BEGIN

typedef struct lg_lora_options {
        LG_OPTIONS_HEAD
        double alpha LG_DEFAULT;    /* the scale is alpha / rank; default 8 */
        double dropout LG_DEFAULT;  /* probability of dropout before A in training mode, in [0, 1); default 0 */
        bool use_rslora LG_DEFAULT; /* the scale is alpha / sqrt(rank) (Kalajdzievski, 2023); default false */
} lg_lora_options;
/* Adds an adapter to each Linear module in net whose path matches a shell pattern, as that of lg_parameters_matching(),
 * and freezes all parameters of net other than those of adapters. A is uniform in +-1/sqrt(in) (Kaiming's with
 * a = sqrt(5)), B zero, so that results do not change at first. Both are f32, also next to a 16-bit weight, or f64 next
 * to f64. Returns the number of modules that have a new adapter, or 0 with an error, which leaves net as it was:
 * LG_ERR_ARGUMENT if no Linear module matches, LG_ERR_STATE if one has an adapter or its weight has parametrizations.
 * The projections within a multihead attention are parameters, not Linear modules, except for out_proj.
 * Example: lg_lora(net, "*.c_attn", 8, .alpha = 16, .dropout = 0.05) */
#define lg_lora(...) LG_CALL3(lg_lora_with, lg_lora_options, lg_lora_takes_m_pattern_rank, V, V, I, __VA_ARGS__)
LG_API int64_t lg_lora_with(lg_module *m, const char *pattern, int64_t rank, const lg_lora_options *options);

/* Adds scale B A to the weight of each module with an adapter, which then is a plain Linear module again. Parameters
 * stay frozen: lg_freeze(m, false). Fails with LG_ERR_ARGUMENT if no module in m has an adapter. After an error, some
 * modules may be merged; results of m are the same as before.
 * Example: lg_lora_merge(net) */
LG_API bool lg_lora_merge(lg_module *m);

typedef struct lg_lora_save_options {
        LG_OPTIONS_HEAD
        const char *prefix LG_DEFAULT;     /* is put before each path, such as "transformer."; default: nothing */
        const char *base_model LG_DEFAULT; /* name or path of the base model, for the file; default: none */
        bool fan_in_fan_out LG_DEFAULT; /* the base model in PyTorch has weights (in, out), as GPT-2; default false */
} lg_lora_save_options;
/* Writes the adapters to a folder, which is made if it is missing, as PEFT does: adapter_model.safetensors has
 * "base_model.model.PATH.lora_A.weight" and "...lora_B.weight", adapter_config.json the options. Each of the two files
 * is replaced only when it is whole. Fails with LG_ERR_ARGUMENT if no module in m has an adapter, or if adapters differ
 * in .dropout or .use_rslora, of which the files have one; ranks and alphas may differ.
 * Example: lg_lora_save(net, "adapter", .prefix = "transformer.", .fan_in_fan_out = true) */
#define lg_lora_save(...)                                                                                              \
        LG_CALL2(lg_lora_save_with, lg_lora_save_options, lg_lora_save_takes_m_folder, V, V, __VA_ARGS__)
LG_API bool lg_lora_save_with(lg_module *m, const char *folder, const lg_lora_save_options *options);

typedef struct lg_lora_load_options {
        LG_OPTIONS_HEAD
        const char *prefix LG_DEFAULT; /* is removed from each path in the file; default: nothing */
} lg_lora_load_options;
/* Reads a folder of PEFT's. Linear modules that the file has adapters for get one, as by lg_lora(), or, if they have
 * one, its values, alpha, dropout and scale; ranks must be equal then. Parameters of m other than those of adapters are
 * frozen. Everything is read and checked before m changes. Fails with LG_ERR_IO, with LG_ERR_FORMAT if a file is
 * damaged, with LG_ERR_ARGUMENT if m lacks one of the modules or has an adapter that the file lacks, with LG_ERR_SHAPE,
 * and with LG_ERR_STATE if the file needs what libgrad lacks: another kind of adapter than LORA, DoRA, trained biases,
 * modules_to_save, adapters of embeddings or convolutions, initialisations that change the base model.
 * Example: lg_lora_load(net, "adapter", .prefix = "transformer.") */
#define lg_lora_load(...)                                                                                              \
        LG_CALL2(lg_lora_load_with, lg_lora_load_options, lg_lora_load_takes_m_folder, V, V, __VA_ARGS__)
LG_API bool lg_lora_load_with(lg_module *m, const char *folder, const lg_lora_load_options *options);

LG_END_C
#endif
