"""made.py COMPILER ARGUMENT... - for calls_made.c: a call of each op, of operands that bytes choose by their types.

Every function of grad.h that returns a tensor is here if its parameters have types of DRAWN, and else in OTHERS; what is in
neither is an error. Of options, each member is given or not, by the bits of a byte.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
import declarations  # noqa: E402

DRAWN = {'lg_ctx *': 'm->now->ctx', 'lg_module *': 'module(m)', 'lg_kv_cache *': 'NULL', 'lg_tensor *': 'tensor(m)', 'const lg_tensor *': 'tensor(m)', 'double': 'number(m)', 'int': 'dim(m)',
         'int64_t': 'size(m)', 'bool': 'flag(m)', 'lg_shape': 'shape(m)', 'lg_dims': 'dims(m)', 'lg_dtype': 'dtype(m)',
         'lg_device': 'device(m)', 'lg_pair': 'pair(m)', 'lg_triple': 'triple(m)', 'lg_reduction': '(lg_reduction)(byte(m) % 5)', 'lg_pad_mode': '(lg_pad_mode)(byte(m) % 5)', 'lg_bag_mode': '(lg_bag_mode)(byte(m) % 4)', 'lg_list': 'list(m, room)', 'lg_tensor **': '&ret',
         'lg_ints': 'ints(m, numbers)', 'lg_dist': 'distribution(m)',
         'lg_numbers': 'shares(m, room_of_shares)', 'lg_fft_norm': '(lg_fft_norm)(byte(m) % 4)', 'lg_interpolation': '(lg_interpolation)(byte(m) % 6)',
         'lg_scatter_reduction': '(lg_scatter_reduction)(byte(m) % 6)'}
# By hand, in the file named or nowhere: they take memory, files, functions or objects, or return what is there already.
OTHERS = {
    'calls_ops.c': 'lg_interpolate_with lg_grid_sample_with lg_einsum',
    'calls_make.c': 'lg_from_with lg_borrow_with lg_keep lg_escape',
    'calls_graph.c': 'lg_custom_with lg_grad_with lg_vjp_with lg_jvp_with lg_jacobian_with lg_hessian_with lg_hvp_with lg_grad_per_sample_with lg_recorder_run_list lg_set_requires_grad lg_grad_of lg_detach',
    'calls_nn.c': 'lg_forward_list lg_forward_params_list lg_recompute_list lg_parameter lg_buffer lg_module_add_parameter lg_module_append_parameter lg_module_add_buffer',
    'calls_train.c': 'lg_scaler_scale',
    'calls_group.c': 'lg_all_reduce_with lg_all_gather lg_reduce_scatter_with lg_broadcast lg_send lg_receive',
    'calls_dlpack.c': 'lg_from_dlpack',
    'other fuzzers': 'lg_read_npy lg_read_npz lg_read_png_with lg_read_idx lg_csv_numbers_with lg_csv_integers_with lg_csv_categories_with lg_tokenizer_encode_with '
                     'lg_weights_read',
}
# Functions whose operands fit together so seldom that they have calls by hand, too.
SELDOM = set('''lg_conv2d_with lg_conv1d_with lg_conv_transpose2d_with lg_conv_transpose1d_with lg_conv3d_with
    lg_conv_transpose3d_with lg_rotary_with lg_ctc_with
    lg_bincount_with lg_put_with lg_index lg_index_put_with lg_run_attention_with lg_run_encoder_with lg_run_decoder_with lg_run_transformer_with lg_run_rnn_with
    lg_max_unpool1d_with lg_max_unpool2d_with lg_max_unpool3d_with lg_fractional_max_pool3d_with lg_fold_with
    lg_cholesky_with lg_istft_with lg_lu_solve_with lg_baddbmm_with lg_bilinear lg_index_copy lg_affine_grid_with'''.split())


def options(name, members):
    """A function that draws options; *ret is what a member of type lg_tensor ** points to, where that is given."""
    lines = [f'        if (given >> {i} & 1)\n                o.{member} = {"ret" if kind == "lg_tensor **" else DRAWN[kind]};'
             for i, (kind, member) in enumerate(members)]
    kinds = [kind for kind, _ in members]
    room = '        static double room_of_shares[4];\n' if 'lg_numbers' in kinds else ''
    room += '        static int64_t numbers[8];\n' if 'lg_ints' in kinds else ''
    return f'static {name} draw_{name}(vm *m, lg_tensor **ret)\n{{\n{room}        {name} o = {{.size_ = sizeof o}};\n' \
        f'        const unsigned given = byte(m){" | byte(m) << 8" if len(members) > 8 else ""};\n        (void)ret;\n' \
        + '\n'.join(lines) + '\n        return o;\n}\n'


def call(name, parameters, members):
    """The call: operands are drawn in order; a result needs tensors of one context, and sets .indices."""
    lines, arguments, tensors = [], [], []
    kinds = [kind for kind, _ in parameters]
    if 'lg_list' in kinds:
        lines.append('lg_tensor *room[4] = {NULL};')
    if 'lg_numbers' in kinds:
        lines.append('double room_of_shares[4];')
    if 'lg_ints' in kinds:
        lines.append('int64_t numbers[8];')
    for i, (kind, called) in enumerate(parameters):
        if kind.endswith('_options *'):
            lines.append(f'{kind[6:-2]} o = draw_{kind[6:-2]}(m, &ret);')
            arguments.append('HAND(m, o)')
            continue
        bare = kind.replace('const ', '')
        lines.append(f'{bare}{"" if bare.endswith("*") else " "}p{i} = {"maybe(m)" if called in ("b", "bias") else DRAWN[kind]};')
        arguments.append(f'p{i}')
        tensors += [f'p{i}'] if bare == 'lg_tensor *' and called not in ('b', 'bias') else []
    asks = any(kind == 'lg_tensor **' for kind, _ in members)
    if members or 'lg_tensor **' in kinds:
        lines.insert(0, 'lg_tensor *ret = NULL;')
    lines.append(f'lg_tensor *y = {name}({", ".join(arguments)});')
    if len(tensors) == 2:
        lines.append(f'FUZZ_CHECK(!y || m->odd || lg_ctx_of({tensors[0]}) == lg_ctx_of({tensors[1]}), "a result of two contexts");')
    lines.append('give(m, y);')
    if asks:
        lines += ['FUZZ_CHECK(!ret || y || m->odd, "indices without a value");', 'give_read(m, ret);']
    lines.append('return y != NULL;')
    return f'static bool made_{name}(vm *m)\n{{\n' + ''.join(f'        {line}\n' for line in lines) + '}\n'


def main():
    text = declarations.preprocessed(sys.argv[1:])
    all_options, others, used, names = declarations.options(text), ' '.join(OTHERS.values()).split(), [], []
    functions = [(name, parameters) for result, name, parameters in declarations.functions(text) if result == 'lg_tensor *']
    unknown = set(others) - {name for name, _ in functions}
    calls = []
    for name, parameters in functions:
        if name in others:
            continue
        taken = [kind[6:-2] for kind, _ in parameters if kind.endswith('_options *')]
        members = all_options[taken[0]] if taken else []
        wrong = [kind for kind, _ in parameters + members if kind not in DRAWN and kind != 'lg_tensor **' and kind[6:-2] not in all_options]
        if wrong:
            sys.exit(f'made.py: {name}() takes {wrong[0]}: give the type a value in DRAWN, or the function a call by hand and a place in OTHERS')
        used += [t for t in taken if t not in used]
        calls.append(call(name, parameters, members))
        names.append(name)
    if unknown:
        sys.exit(f'made.py: no function that returns a tensor is called {", ".join(sorted(unknown))}')
    print('\n'.join([options(name, all_options[name]) for name in used] + calls))
    print('static const struct {\n        bool (*call)(vm *m);\n        const char *name;\n        bool seldom;\n} made[] = {')
    for name in names:
        print(f'        {{made_{name}, "{name}", {"true" if name in SELDOM else "false"}}},')
    print('};')


main()
