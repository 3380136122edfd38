/* test_recorder_refusals.c - calls with numbers or work of the host that recorded steps cannot repeat: each is an error
 * with its name, in the first run. */
#include "files.h"

AROUND_TESTS(make_folder, remove_folder);

static lg_kv_cache *cache;
static lg_board *board;
static lg_dataset *rows_of_data;

#define STEP(name, ...)                                                                                                \
        static lg_tensor *name(lg_ctx *c, lg_list in, void *user)                                                      \
        {                                                                                                              \
                lg_module *m = user;                                                                                   \
                (void)c, (void)m;                                                                                      \
                __VA_ARGS__ return in.items[0];                                                                        \
        }
STEP(permutes, drop(lg_permutation(c, 2));)
STEP(attends, lg_tensor *x = in.items[0];
     lg_no_grad(c) drop(lg_run_attention(lg_child(m, 0), x, x, x, .cache = cache));)
STEP(resets, lg_kv_cache_reset(cache);)
STEP(selects, lg_kv_cache_select(cache, lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64));)
STEP(logs, lg_board_scalar(board, "loss", 1, 1);)
STEP(logs_text, lg_board_text(board, "loss", "text", 1);)
STEP(reads_npy, drop(lg_read_npy(c, folder));)
STEP(reads_png, drop(lg_read_png(c, folder));)
STEP(reads_idx, drop(lg_read_idx(c, folder));)
STEP(gets, lg_batch b; lg_dataset_get(rows_of_data, 0, &b);)
STEP(copies_state, lg_copy_state(lg_child(m, 1), lg_child(m, 2));)
STEP(appends, lg_module_append(m, lg_child(m, 0));)
STEP(replaces, lg_module_replace(m, "0", lg_child(m, 1));)
STEP(merges, lg_lora_merge(lg_child(m, 2));)
STEP(unparametrizes, lg_remove_parametrizations(lg_child(m, 1), "weight");)
STEP(exports, lg_onnx_save(lg_child(m, 1), folder, LG_LIST(in.items[0]));)
STEP(adds, lg_add_scalar_(in.items[0], 1);)
STEP(adds_to_view, lg_mul_scalar_(lg_select(in.items[0], 0, 1), 3);)
STEP(sets_state, lg_set_random_state(c, lg_random_state_of(c));)

static lg_module *objects_of(lg_ctx *c)
{
        lg_module *m = lg_nn_module_list(c, lg_nn_multihead_attention(c, 8, 2, .batch_first = true),
                                         lg_nn_linear(c, 8, 8), lg_nn_linear(c, 8, 8));
        lg_weight_norm(lg_child(m, 1), "weight");
        lg_lora(m, "2", 2);
        cache = lg_kv_cache_new(m, 2, 10);
        board = lg_board_open(c, folder);
        rows_of_data = lg_dataset_list(c, LG_LIST(lg_zeros(c, LG_SHAPE(4, 2), .device = lg_cpu())));
        assert_ok(c);
        return m;
}

TEST_CASE(refused)
{
        static const struct {
                lg_function *step;
                const char *text;
        } rows[] = {
                {permutes, "lg_permutation: is called in"},
                {attends, "lg_run_attention with a cache: is called in"},
                {resets, "lg_kv_cache_reset: is called in"},
                {selects, "lg_kv_cache_select: is called in"},
                {logs, "lg_board_scalar: is called in"},
                {logs_text, "lg_board_text: is called in"},
                {reads_npy, "lg_read_npy: is called in"},
                {reads_png, "lg_read_png: is called in"},
                {reads_idx, "lg_read_idx: is called in"},
                {gets, "lg_dataset_get: is called in"},
                {copies_state, "lg_copy_state: is called in"},
                {appends, "lg_module_append: is called in"},
                {replaces, "lg_module_replace: is called in"},
                {merges, "lg_lora_merge: is called in"},
                {unparametrizes, "lg_remove_parametrizations: is called in"},
                {exports, "lg_onnx_save: is called in"},
                {adds, "the function changes an input in place"},
                {adds_to_view, "the function changes an input in place"},
                {sets_state, "lg_seed: is called in"},
        };
        lg_ctx *c = open_ctx();
        lg_module *m = objects_of(c);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                lg_recorder *r = lg_recorder_new(c, rows[i].step, .user = m);
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 1, 8));
                if (lg_recorder_run(r, x))
                        fail_msg("no error: %s", rows[i].text);
                assert_error(c, LG_ERR_STATE, rows[i].text);
        }
        lg_close(c);
}
