/* lora.h - adapters of Linear modules, which lora.c makes, lora_save.c writes and lora_load.c reads. Private to these
 * three. */
#ifndef LG_NN_LORA_H
#define LG_NN_LORA_H

#include "nn.h"

/* Options of a module with an adapter: its config. */
typedef struct lg__lora {
        int64_t rank;
        double alpha, dropout;
        bool use_rslora;
        bool is_new; /* added by a call that may still fail */
} lg__lora;

/* Returns the options of m's adapter; NULL: m has none. */
lg__lora *lg__lora_of(const lg_module *m);
/* Returns the next Linear module after `at` in a walk through root, with or without adapter; at NULL: the first. */
lg_module *lg__lora_next(lg_module *root, lg_module *at);
/* Returns m's path in root, in text; "" if m is root. */
const char *lg__lora_path(const lg_module *root, const lg_module *m, char text[LG__PATH]);
/* Returns weight A (which = 0) or B (1) of m's adapter. */
lg_tensor *lg__lora_weight(const lg_module *m, int which);
/* Returns whether m can be given an adapter; if not, sets an error. */
bool lg__lora_fits(const lg_module *root, lg_module *m, const char *op);
/* Gives m an adapter. Returns false with an error. */
bool lg__lora_add(lg_module *m, const lg__lora *options, const char *op);
/* Ends a call that has added adapters: if `ok`, they stay, and all other parameters of root are frozen; if not, they
 * are removed. Returns ok. */
bool lg__lora_end(lg_module *root, bool ok);
/* Returns the end of a message, "; Linear modules are "0.fc", ...", in text. */
const char *lg__lora_names(lg_module *root, char text[256]);

/* ---- names in PEFT's files: lora_save.c ---- */

#define LG__LORA_PATH 4096 /* bytes of the longest path of a file */
/* Names of tensors are LG__LORA_FIRST, a path with a dot after it unless empty, and one of the endings, for A and B. */
#define LG__LORA_FIRST "base_model.model."
extern const char *const lg__lora_endings[2];
/* Writes folder/name to path. Returns false with an error if the folder is NULL or the path too long. */
bool lg__lora_join(lg_ctx *c, const char *op, const char *folder, const char *name, char path[LG__LORA_PATH]);

#endif
