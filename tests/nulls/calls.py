#!/usr/bin/env python3
"""calls.py - calls of every public function with arguments that are NULL, lists without an array or negative counts, as C.

calls.py COMPILER ARGUMENT...: reads the declarations of grad.h and writes the calls for nulls.c, which includes them and says
what must come of each. A parameter of a type that is in no table below is an error, so that no function escapes.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
import declarations  # noqa: E402

# Objects, which belong to a context, and lists of them; `g` is the `given` of nulls.c.
OBJECTS = {
    'lg_ctx *': 'g->c', 'lg_tensor *': 'g->x', 'lg_module *': 'g->net', 'lg_optimizer *': 'g->opt', 'lg_scheduler *': 'g->schedule',
    'lg_ema *': 'g->ema', 'lg_scaler *': 'g->scaler', 'lg_recorder *': 'g->recorder', 'lg_dataset *': 'g->data', 'lg_loader *': 'g->loader', 'lg_collate *': 'g->collate',
    'lg_transform *': 'g->transform', 'lg_checkpoint *': 'g->checkpoint', 'lg_weights *': 'g->weights', 'lg_csv *': 'g->csv', 'lg_board *': 'board_of(g)',
    'lg_group *': 'g->group', 'lg_kv_cache *': 'g->cache', 'lg_profiler *': 'g->profiler', 'lg_tokenizer *': 'g->tokenizer', 'lg_list': 'LG_LIST(g->x)', 'lg_tensor *const *': '(lg_tensor *[]){g->x, LG_END}',
    'lg_dataset *const *': '(lg_dataset *[]){g->data, LG_END}', 'lg_transform *const *': '(lg_transform *[]){g->transform, LG_END}',
    'lg_module *const *': '(lg_module *[]){g->part, LG_END}', 'lg_scheduler *const *': '(lg_scheduler *[]){g->schedule, LG_END}',
}
# Pointers without a context, other lists, and functions.
OTHERS = {
    'struct DLManagedTensor *': 'NULL', 'lg_rng *': 'g->sample.rng', 'lg_sample *': '&g->sample', 'FILE *': 'g->file', 'lg_trace_record *': 'NULL',
    'const char *': '"x"', 'char *': 'g->memory', 'void *': 'g->memory', 'double *': 'g->memory', 'int64_t *': 'g->memory', 'lg_tensor **': 'g->memory',
    'lg_dataset **': 'g->memory', 'char **': 'g->memory', 'lg_device *': 'g->memory', 'lg_memory_stats_t *': 'g->memory',
    'lg_device_info_t *': 'g->memory', 'lg_outputs *': 'g->memory', 'lg_weight *': 'g->memory', 'lg_batch *': 'g->memory',
    'lg_message_fn *': 'on_message', 'lg_hook_fn *': 'on_hook', 'lg_tensor_fn *': 'on_parameter', 'lg_lambda_fn *': 'on_lambda',
    'lg_trace_fn *': 'on_trace', 'lg_sample_fn *': 'on_sample', 'lg_collate_fn *': 'on_collate', 'lg_transform_fn *': 'on_transform',
    'lg_function *': 'on_check', 'lg_closure_fn *': 'on_closure', 'lg_text_stream *': 'g->memory', 'lg_names': 'LG_NAMES("x")', 'lg_ints': 'LG_INTS(1)', 'lg_numbers': 'LG_NUMBERS(1)',
}
VALUES = {
    'lg_dist': 'lg_dist_normal(g->x, g->x)',
    'lg_shape': 'LG_SHAPE(2, 3)', 'lg_dims': 'LG_DIMS(0)', 'lg_device': 'lg_cpu()', 'lg_scope': 'g->scope',
    'lg_fields': 'LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE(1)))', 'lg_random_state': '(lg_random_state){0}', 'lg_dtype': 'LG_F32',
    'lg_device_type': 'LG_DEVICE_CPU', 'lg_reduce_op': 'LG_REDUCE_OP_SUM', 'lg_scatter_reduction': 'LG_SCATTER_AMAX', 'lg_interpolation': 'LG_QUANTILE_LOWER', 'lg_fft_norm': 'LG_FFT_ORTHO', 'lg_state_kind': 'LG_STATE_MODULE', 'lg_error_code': 'LG_ERR_STATE',
    'double': '1', 'int': '1', 'int64_t': '1', 'size_t': '64', 'uint64_t': '1', 'bool': 'true',
}
# What one parameter, or all of a name, are given in place of that.
SPECIAL = {
    'lg_tensor *condition': 'g->mask', 'lg_tensor *index': 'g->index', 'lg_tensor *permutation': 'g->index', 'lg_ctc_with.target': 'g->index',
    'lg_interpolate_with.x': 'lg_unsqueeze(g->x, 0)', 'lg_masked_scatter.mask': 'g->mask',
    **{f'lg_bitwise_{name}.{operand}': 'g->index' for name in ('and', 'or', 'xor', 'left_shift', 'right_shift') for operand in 'ab'},
   
    'lg_ctc_with.input_lengths': 'g->index', 'lg_ctc_with.target_lengths': 'g->index', 'lg_layer_norm_with.w': 'g->row', 'lg_layer_norm_with.b': 'g->row', 'lg_write_png.t': 'g->picture',
    'lg_read.bytes': '24', 'lg_write.bytes': '24', 'lg_weights_metadata.i': '0', 'lg_weights_at_with.i': '0', 'lg_grad_with.outputs': 'LG_LIST(lg_sum(lg_forward(g->net, g->x)))',
    'lg_grad_with.inputs': 'lg_parameters(g->net)', 'lg_forward_params_list.params': 'lg_parameters(g->net)',
    'lg_run_attention_with.m': 'g->attention', 'lg_run_encoder_with.m': 'g->encoder', 'lg_run_decoder_with.m': 'g->decoder',
    'lg_run_transformer_with.m': 'g->transformer', 'lg_tokenizer_decode_with.ids': 'g->index', 'lg_tokenizer_next.id': '0', 'lg_kv_cache_new_with.m': 'g->attention',
    'lg_loader_open_with.data': 'g->data', 'lg_system_free.p': 'NULL', 'lg_child.index': '0', 'lg_board_open_with.folder': '"nulls.board"', 'lg_trace_print.user': 'g->file',
}
# Lists that say more than they have; LG_ERR_ARGUMENT as NULL is.
LISTS = {'lg_list': 'LG_LIST', 'lg_names': 'LG_NAMES', 'lg_ints': 'LG_INTS', 'lg_numbers': 'LG_NUMBERS'}
# Values that no function may fall over.
EXTREMES = {
    'int': ['-1', 'INT_MIN', 'INT_MAX'], 'int64_t': ['-1', 'INT64_MIN', 'INT64_MAX'], 'double': ['-1', 'NAN', 'INFINITY', '1e300'],
    'lg_shape': ['(lg_shape){.ndim = -1}', '(lg_shape){.ndim = 99}', 'LG_SHAPE(-1)'],
    'lg_dims': ['(lg_dims){.count = -1}', '(lg_dims){.count = 99}', 'LG_DIMS(INT_MIN)'],
    'lg_device': ['LG_DEVICE((lg_device_type)99, 0)', 'LG_DEVICE(LG_DEVICE_CPU, -1)'],
    'lg_dtype': ['(lg_dtype)-1', '(lg_dtype)99'], 'lg_state_kind': ['(lg_state_kind)99'],
    'lg_fields': ['(lg_fields){.count = -1}', '(lg_fields){.count = 99}', 'LG_FIELDS(LG_FIELD(NULL, LG_F32, LG_SHAPE(1)))'],
}
OPTIONS = {}  # types of structs of options: their members
# What the header says may be NULL, beside options and `user`.
OPTIONAL = {
    'lg_qr_with.ret_q', 'lg_qr_with.ret_r', 'lg_eigh_with.ret_values', 'lg_eigh_with.ret_vectors', 'lg_svd_with.ret_u', 'lg_svd_with.ret_s',
    'lg_svd_with.ret_vt', 'lg_vjp_with.v', 'lg_linear.b', 'lg_bilinear.b', 'lg_conv2d_with.b', 'lg_conv1d_with.b', 'lg_conv3d_with.b', 'lg_conv_transpose3d_with.b', 'lg_conv_transpose2d_with.b', 'lg_conv_transpose1d_with.b',
    'lg_layer_norm_with.w', 'lg_layer_norm_with.b', 'lg_group_norm_with.w', 'lg_group_norm_with.b', 'lg_instance_norm_with.w',
    'lg_instance_norm_with.b', 'lg_rms_norm_with.w', 'lg_on_message.fn', 'lg_set_trace_with.fn', 'lg_system_free.p', 'lg_memory_stats_with.ret',
    'lg_try_all_cuda.ret', 'lg_set_error.format', 'lg_nn_sequential_list.children', 'lg_nn_module_list_list.children',
    'lg_nn_parameter_list_list.tensors',
    'lg_transforms_list.parts', 'lg_names_free.names', 'lg_has_child.path',
}
# Lists in which NULL stands for something.
ENTRIES = {'lg_grad_options.grads', 'lg_module_print_options.inputs'}
# What does not return a zero without a context.
NOT_ZERO = {
    'lg_open_with', 'lg_error', 'lg_error_code_of', 'lg_system_alloc', 'lg_memory_stats_with', 'lg_try_cuda', 'lg_try_all_cuda', 'lg_size_of', 'lg_item',
    'lg_print', 'lg_param_group_lr', 'lg_lr', 'lg_clip_grad_norm_with', 'lg_scaler_scale_of', 'lg_group_size', 'lg_group_transport',
    'lg_tokenizer_id', 'lg_tokenizer_bos', 'lg_tokenizer_eos',
}


def plain(kind):
    return re.sub(r'^const (?!char \*$)', '', kind)


def value(function, kind, name):
    if kind in OPTIONS or kind == 'function *':
        return 'NULL'
    for table, key in ((SPECIAL, f'{function}.{name}'), (SPECIAL, kind + name), (OBJECTS, kind), (OTHERS, kind), (VALUES, kind)):
        if key in table:
            return table[key]
    sys.exit(f'calls.py: {function}() takes {name}, which is {kind}: give that type a value in one of the tables')


def null(kind):
    return f'(({kind}){{0}})' if kind in LISTS else 'NULL'


def in_options(kind, values):
    """Structs of options of which one member has one of the values of its type."""
    return [f'LG_OPTIONS({kind[:-2]}, .{name} = {v})' for member, name in OPTIONS[kind] for v in values(member)
            if '(NULL)' not in v or f'{kind[:-2]}.{name}' not in ENTRIES]


def wrong_lists(kind):
    make = LISTS.get(kind)
    return [f'{make}_OF(1, NULL)', f'{make}_OF(-1, NULL)'] + [f'{make}(NULL)'] * (make in ('LG_LIST', 'LG_NAMES')) if make else []


def wrong(function, kind, name):
    if f'{function}.{name}' in OPTIONAL or kind == 'function *' or name == 'user':
        return []
    return in_options(kind, wrong_lists) if kind in OPTIONS else wrong_lists(kind) + ['NULL'] * kind.endswith('*')


def extremes(kind):
    return in_options(kind, lambda member: EXTREMES.get(member, [])) if kind in OPTIONS else EXTREMES.get(kind, [])


def calls(function, parameters):
    """(what must come of it, arguments) of each call."""
    usual = [value(function, *p) for p in parameters]
    objects = [i for i, (kind, _) in enumerate(parameters) if kind in OBJECTS]
    none = 'ANYTHING' if function in NOT_ZERO else 'NOTHING'
    if any(kind.endswith('*') or kind in LISTS for kind, _ in parameters):
        yield none, [null(kind) if kind in OBJECTS or (kind in OTHERS and not kind.endswith('_fn *')) else u
                     for (kind, _), u in zip(parameters, usual)]
    for i, (kind, name) in enumerate(parameters):
        reached = i > 0 and any(k != i for k in objects)
        for w in wrong(function, kind, name):
            yield 'ARGUMENT' if reached else none, usual[:i] + [w] + usual[i + 1:]
        for w in extremes(kind):
            yield 'ANYTHING', usual[:i] + [w] + usual[i + 1:]


def main():
    text = declarations.preprocessed(sys.argv[1:])
    OPTIONS.update({f'{name} *': [(plain(kind), member) for kind, member in members]
                    for name, members in declarations.options(text).items()})
    functions = [(result, name, [(plain(kind), called) for kind, called in parameters])
                 for result, name, parameters in declarations.functions(text)]
    table = []
    for result, name, parameters in functions:
        kind = '.kind' if result == 'lg_dist' else '' # what is zero of a distribution that failed
        all_calls = [f'{expected}, {"int" if kind else result}, {name}({", ".join(arguments)}){kind}'
                     for expected, arguments in calls(name, parameters)]
        lines = [f'        CALL{"_VOID" if ", void, " in call else ""}({n}, {call.replace(", void,", ",", 1)})' for n, call in enumerate(all_calls)]
        if lines:
            print(f'BEGIN({name})\n' + '\n'.join(lines) + '\nEND')
            table.append(f'        {{call_{name}, {len(lines)}}},')
    print('static const struct function functions[] = {\n' + '\n'.join(table) + '\n};')


main()
