"""sweep.py COMPILER ARGUMENT... - calls of every public function that takes a tensor, generated from its declaration.

For each tensor that a function takes, positional, in a list or in its options, a call in which that one was
freed and all others are good. The result is C for test_freed.c, which says what the names in VALUES are. A parameter of
a type that is not in VALUES is an error, so that each new function is covered or the build fails.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import declarations  # noqa: E402

# Arguments by type, or by function and name where the type's would not do.
VALUES = {
    'lg_ctx *': 'w->c', 'lg_module *': 'w->module', 'lg_group *': 'w->group', 'lg_optimizer *': 'w->optimizer',
    'lg_dataset *': 'w->dataset', 'lg_scaler *': 'w->scaler', 'lg_recorder *': 'w->recorder', 'lg_kv_cache *': 'w->cache', 'lg_board *': 'w->board', 'lg_tokenizer *': 'w->tokenizer', 'lg_outputs *': '&w->outputs', 'FILE *': 'w->nowhere',
    'void *': 'w->memory',
    'const void *': 'w->memory', 'lg_tensor **': 'w->room', 'lg_hook_fn *': 'hook', 'lg_function *': 'check',
    'const char *': '"name"', 'bool': 'true', 'int': '0', 'int64_t': '1', 'size_t': 'sizeof w->memory', 'double': '0.5',
    'lg_shape': 'LG_SHAPE(4)', 'lg_dims': 'LG_DIMS(0)', 'lg_dtype': 'LG_F64', 'lg_device': 'lg_cpu()',
    'lg_reduce_op': 'LG_REDUCE_OP_MEAN', 'lg_ints': 'LG_INTS(1, 1)', 'lg_numbers': 'LG_NUMBERS(0.5)',
    'lg_fft_norm': 'LG_FFT_ORTHO', 'lg_interpolation': 'LG_QUANTILE_LOWER', 'lg_scatter_reduction': 'LG_SCATTER_AMAX', 'lg_names': 'LG_NAMES("name")',
    'lg_dist': 'lg_dist_normal(w->good, w->good)',
}
TENSORS = {'lg_tensor *': '{}', 'const lg_tensor *': '{}', 'lg_list': 'LG_LIST({})',
           'lg_tensor *const *': '(lg_tensor *[]){{{}, LG_END}}'}
FORWARD = 'LG_OPTIONS(lg_custom_options, .forward = forward, .backward = forward)'
SPECIAL = {('lg_lu_solve_with', 'permutation'): 'w->index', ('lg_custom_with', 'options'): FORWARD, ('lg_nll_with', 'target'): 'w->index', **{('lg_ctc_with', name): 'w->index' for name in ('target', 'input_lengths', 'target_lengths')},
           ('lg_multi_margin_with', 'target'): 'w->index', ('lg_multilabel_margin_with', 'target'): 'w->index', ('lg_embedding_bag_with', 'index'): 'w->index',
           **{(f'lg_max_unpool{d}d_with', 'indices'): 'w->index' for d in (1, 2, 3)},
           ('lg_index_put_with', 'indices'): 'LG_LIST(w->index)',
           ('lg_run_rnn_with', 'm'): 'w->rnn',
           ('lg_run_attention_with', 'm'): 'w->attention', ('lg_run_encoder_with', 'm'): 'w->encoder',
           ('lg_run_decoder_with', 'm'): 'w->decoder', ('lg_run_transformer_with', 'm'): 'w->transformer',
           ('lg_dataset_tensors_with', 'x'): 'w->host',
           ('lg_forward_params_list', 'params'): 'lg_parameters(w->module)',
           ('lg_forward_all_list', 'size'): 'sizeof w->outputs', ('lg_group_norm_with', 'groups'): '1',
           ('lg_write_npz', 'path'): '"/nowhere/x"', ('lg_write_npy', 'path'): '"/nowhere/x"',
           ('lg_write_png', 'path'): '"/nowhere/x"'}
# They say that t was freed by what they return or print, and set no error.
QUIET = set('''lg_free lg_shape_of lg_ndim_of lg_size_of lg_stride_of lg_numel lg_dtype_of lg_device_of lg_ctx_of
    lg_is_contiguous lg_requires_grad lg_is_leaf lg_grad_of lg_print lg_module_print_with'''.split())


def argument(function, kind, name, tensor, given):
    if kind.endswith('_options *'):
        return given or SPECIAL.get((function, name), 'NULL')
    if (function, name) in SPECIAL and tensor == 'w->good':
        return SPECIAL[function, name]
    if kind in TENSORS:
        return TENSORS[kind].format(tensor)
    if kind not in VALUES:
        sys.exit(f'sweep.py: {function}: there is no value for "{kind}", the type of {name}')
    return VALUES[kind]


def cases(functions, options):
    """Each tensor of each function: (result, function, name of the tensor, arguments)."""
    for result, function, parameters in functions:
        takers = [i for i, (kind, _) in enumerate(parameters) if kind in TENSORS]
        inside = [(kind, name) for k, _ in parameters for kind, name in options.get(k[6:-2], []) if kind in TENSORS]
        for taker in takers + inside:
            given = f'LG_OPTIONS({parameters[-1][0][6:-2]}, .{taker[1]} = {TENSORS[taker[0]].format("w->freed")})' \
                if taker in inside else None
            arguments = [argument(function, kind, name, 'w->freed' if i == taker else 'w->good', given)
                         for i, (kind, name) in enumerate(parameters)]
            yield result, function, parameters[taker][1] if taker in takers else '.' + taker[1], ', '.join(arguments)


def freed(functions, options):
    found = list(cases(functions, options))
    unknown = QUIET - {function for _, function, _, _ in found}
    if unknown:
        sys.exit(f'sweep.py: no function takes a tensor and is called {", ".join(unknown)}')
    for i, (result, function, _, arguments) in enumerate(found):
        call = f'{function}({arguments})'
        if result == 'void':
            call = f'{call}; return true'
        elif result in ('double', 'lg_shape', 'lg_device'):
            call = f'const {result} got = {call}; (void)got; return true'
        elif result == 'lg_dist':
            call = f'return !{call}.kind'
        else:
            call = f'return !{call}'
        print(f'static bool call_{i}(world *w) {{ {call}; }}')
    print('static const struct { const char *function, *argument; bool (*call)(world *w); bool quiet; } calls[] = {')
    for i, (_, function, name, _) in enumerate(found):
        print(f'        {{"{function}", "{name}", call_{i}, {"true" if function in QUIET else "false"}}},')
    print('};')


header = declarations.preprocessed(sys.argv[1:])
freed(declarations.functions(header), declarations.options(header))
