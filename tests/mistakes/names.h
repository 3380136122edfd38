/* names.h - what the lines of mistakes.txt speak of. */
#include <grad.h>

extern void *volatile sink; /* takes results */
extern lg_ctx *c;
extern lg_tensor *x, *w, *b, *y, *t, *mask, *out[2];
extern lg_module *net, *layer;
extern lg_optimizer *opt;
extern lg_scheduler *warmup, *cosine;
extern lg_dataset *data;
extern lg_loader *loader;
extern lg_ema *ema;
extern lg_kv_cache *cache;
extern lg_tokenizer *tokenizer;
extern lg_board *board;
extern lg_scaler *scaler;
extern lg_recorder *recorder;
extern lg_group *group;
extern lg_csv *csv;
extern lg_transform *crop, *flip;
extern lg_device gpu;
extern lg_check_report report;
extern lg_outputs outputs;
extern int64_t n;
extern float f[6];
extern void *memory;

lg_tensor *forward(lg_module *m, lg_list inputs, void *user);
bool forward_all(lg_module *m, lg_list inputs, lg_outputs *ret, void *user);
bool cube(lg_custom_call *call);
bool cube_backward(lg_custom_call *call);
lg_tensor *squares(lg_ctx *ctx, lg_list inputs, void *user);
lg_tensor *hook(lg_tensor *grad, void *user);
double rate(int64_t step, void *user);
lg_tensor *loss(lg_ctx *ctx, void *user);
void visit(const char *path, lg_tensor *tensor, bool is_buffer, void *user);
bool get(lg_sample *sample, void *user);
bool invert(const lg_transform_call *call, void *user);
