/* run_models.c - runs ONNX files on inputs from .npy files: run_models FOLDER...
 *
 * A folder has model.onnx and in_0.npy, in_1.npy, ... The results are written there as out_0.npy, ..., bf16 as
 * f32. For each folder a
 * line "ok FOLDER" or "FOLDER: message" is printed; --device cuda:0 and so on selects the device. */
#include <grad.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static lg_device device;

static bool run(lg_ctx *c, const char *folder)
{
        lg_tensor *in[17] = {NULL};
        lg_outputs out;
        char path[4096];
        int n = 0;
        snprintf(path, sizeof path, "%s/model.onnx", folder);
        lg_module *m = lg_onnx_load(c, path, .device = device);
        if (!m)
                return false;
        lg_train(m, false);
        for (; n < 16; n++) {
                snprintf(path, sizeof path, "%s/in_%d.npy", folder, n);
                if (access(path, F_OK))
                        break;
                in[n] = lg_read_npy(c, path);
                if (device.type && in[n])
                        in[n] = lg_to(in[n], device);
        }
        in[n] = LG_END;
        bool good = !lg_error_code_of(c) && lg_forward_all_list(m, &out, sizeof out, in);
        for (int i = 0; good && i < out.count; i++) {
                lg_tensor *y = out.items[i];
                snprintf(path, sizeof path, "%s/out_%d.npy", folder, i);
                good = lg_write_npy(lg_dtype_of(y) == LG_BF16 ? lg_cast(y, LG_F32) : y, path);
        }
        lg_module_free(m);
        return good;
}

int main(int argc, char **argv)
{
        lg_ctx *c = lg_open();
        int failed = 0;
        lg_set_conv_allow_tf32(c, false); /* expected values are those of f32 */
        for (int i = 1; i < argc; i++) {
                if (!strcmp(argv[i], "--device") && i + 1 < argc) {
                        device = lg_parse_device(c, argv[++i]);
                        continue;
                }
                lg_scope scope = lg_scope_begin(c);
                if (run(c, argv[i]))
                        printf("ok %s\n", argv[i]);
                else {
                        printf("%s: %s\n", argv[i], lg_error(c));
                        failed++;
                }
                lg_clear_error(c);
                lg_scope_end(c, scope);
        }
        printf("%lld tensors\n", (long long)lg_live_tensors(c));
        lg_close(c);
        return failed != 0;
}
