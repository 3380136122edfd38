/* base.h - options by name, and the small values that calls take: shapes, dimensions, pairs, lists, devices.
 *
 * A call has positional arguments, which are required, and options, which are given by name in any number:
 *
 *     lg_conv2d(x, w, b, .stride = 2, .padding = 1)
 *
 * The call is a macro. The function behind it has the same name with _with at its end and takes a pointer to the struct
 * of options; NULL means all defaults. Programs call it only if they have the options in a variable:
 *
 *     lg_conv2d_options o = *LG_OPTIONS(lg_conv2d_options, .stride = 2);
 *     lg_tensor *y = lg_conv2d_with(x, w, b, &o);
 *
 * Macros that take any number of objects, such as lg_nn_sequential(), have a function with _list that takes an array
 * ending with LG_END. Macros whose result is a struct that grows have a function with _with that takes its size.
 *
 * A call whose arguments are missing, misplaced or of a wrong type does not compile, or draws a warning without any -W
 * flag. An option that only a newer libgrad knows is LG_ERR_ARGUMENT when the program runs with an older library.
 */
#ifndef LG_BASE_H
#define LG_BASE_H

#include <stdio.h>
#include "grad/types.h"

/* The compiler's messages name the call in the program, and leave out the macros below that it expands to. */

#if defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus) && !defined(LG_SHOW_MACROS)
#pragma GCC system_header
#endif

/* Makes errors, from here on, of what is only a warning in C before gcc 14 and clang 16 and would crash when the
 * program runs: another object or a number in the place of an object, and a call of an undeclared function. The macro
 * LG_PERMISSIVE, defined before the header, leaves them as the compiler has them. */
#if defined(__GNUC__) && !defined(__cplusplus) && !defined(LG_PERMISSIVE)
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wint-conversion"
#pragma GCC diagnostic error "-Wimplicit-function-declaration"
#endif

/* ---- attributes of declarations ----
 *
 * LG_API marks a function that the library exports. LG_PRINTF lets the compiler check a format and its arguments.
 * LG_NEW draws a warning if the result of the call is not used. LG_BEGIN and LG_END_C enclose declarations.
 */

#if defined(__GNUC__)
#define LG_API __attribute__((visibility("default")))
#define LG_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define LG_NEW __attribute__((warn_unused_result))
#else
#define LG_API
#define LG_PRINTF(f, a)
#define LG_NEW
#endif

#ifdef __cplusplus
#define LG_BEGIN extern "C" {
#define LG_END_C }
#else
#define LG_BEGIN
#define LG_END_C
#endif

/* ---- objects ----
 *
 * Programs hold these objects by pointer. Each belongs to the context that it was created in.
 */

typedef struct lg_ctx lg_ctx;             /* the first error, scopes, memory, devices, random state; context.h */
typedef struct lg_tensor lg_tensor;       /* an array of up to LG_MAX_DIMS dimensions, on a device; tensor.h */
typedef struct lg_module lg_module;       /* a part of a network, with parameters and a forward; nn.h, layers.h */
typedef struct lg_optimizer lg_optimizer; /* updates parameters by their gradients; optim.h */
typedef struct lg_scheduler lg_scheduler; /* changes the learning rate of an optimiser; schedule.h */
typedef struct lg_scaler lg_scaler;       /* scales losses, for training in f16; scaler.h */
typedef struct lg_dataset lg_dataset;     /* samples with one or more fields, such as an image and its label; data.h */
typedef struct lg_loader lg_loader;       /* gives the samples of a data set in batches; data.h */
typedef struct lg_tokenizer lg_tokenizer; /* texts to the ids of tokens, and back; tokenizer.h */
typedef struct lg_kv_cache lg_kv_cache;   /* keys and values of past positions; attention.h */
typedef struct lg_ema lg_ema;             /* an exponential moving average of parameters; schedule.h */

/* ---- arguments of macros ----
 *
 * The macros of the library take their arguments apart with these. Programs do not need them.
 */

/* The first argument, the second, ...; if it is missing, nothing. */
#define LG_ARG1(...) LG_ARG1_(__VA_ARGS__, )
#define LG_ARG1_(a, ...) a
#define LG_ARG2(...) LG_ARG2_(__VA_ARGS__, )
#define LG_ARG2_(a, b, ...) b
#define LG_ARG3(...) LG_ARG3_(__VA_ARGS__, )
#define LG_ARG3_(a, b, c, ...) c
#define LG_ARG4(...) LG_ARG4_(__VA_ARGS__, )
#define LG_ARG4_(a, b, c, d, ...) d
#define LG_ARG5(...) LG_ARG5_(__VA_ARGS__, )
#define LG_ARG5_(a, b, c, d, e, ...) e

/* All arguments after the first, the first two, ..., followed by a comma, for use in braces. */
#define LG_TAIL1(...) LG_TAIL1_(__VA_ARGS__, )
#define LG_TAIL1_(a, ...) __VA_ARGS__
#define LG_TAIL2(...) LG_APPLY(LG_TAIL1_, LG_TAIL1(__VA_ARGS__))
#define LG_TAIL3(...) LG_APPLY(LG_TAIL1_, LG_TAIL2(__VA_ARGS__))
#define LG_TAIL4(...) LG_APPLY(LG_TAIL1_, LG_TAIL3(__VA_ARGS__))
#define LG_TAIL5(...) LG_APPLY(LG_TAIL1_, LG_TAIL4(__VA_ARGS__))
#define LG_APPLY(f, ...) f(__VA_ARGS__)

/* A name that is unique to its line. */
#define LG_LOCAL(name) LG_LOCAL_(name, __LINE__)
#define LG_LOCAL_(name, line) LG_LOCAL__(name, line)
#define LG_LOCAL__(name, line) name##line

/* LG_CALL2(f, type, takes, V, I, a, b, .option = value) is f(a, b, options). A missing positional argument becomes
 * `takes`, an undeclared name that spells out which arguments the call takes. V or I says what each argument is: any
 * value; a whole number, and neither 0.5 nor (3, 5). */
#define LG_AS_I(a, takes) (~~(0 + (a)) + 0 * (int)sizeof LG_TEXT(LG_ONE a))
#define LG_AS_V(a, takes) (a)
#define LG_ONE(a) a
#define LG_TEXT(...) LG_TEXT_(__VA_ARGS__)
#define LG_TEXT_(...) #__VA_ARGS__
#define LG_CALL0(f, type, ...) f(LG_OPTIONS(type, __VA_ARGS__))
#define LG_CALL1(f, type, takes, A, ...)                                                                               \
        f(LG_AS_##A(LG_ARG1(__VA_ARGS__), takes), LG_OPTIONS(type, LG_TAIL1(__VA_ARGS__)))
#define LG_CALL2(f, type, takes, A, B, ...)                                                                            \
        f(LG_AS_##A(LG_ARG1(__VA_ARGS__), takes), LG_AS_##B(LG_ARG2(__VA_ARGS__, takes), takes),                       \
          LG_OPTIONS(type, LG_TAIL2(__VA_ARGS__)))
#define LG_CALL3(f, type, takes, A, B, C, ...)                                                                         \
        f(LG_AS_##A(LG_ARG1(__VA_ARGS__), takes), LG_AS_##B(LG_ARG2(__VA_ARGS__, takes), takes),                       \
          LG_AS_##C(LG_ARG3(__VA_ARGS__, takes, takes), takes), LG_OPTIONS(type, LG_TAIL3(__VA_ARGS__)))
#define LG_CALL4(f, type, takes, A, B, C, D, ...)                                                                      \
        f(LG_AS_##A(LG_ARG1(__VA_ARGS__), takes), LG_AS_##B(LG_ARG2(__VA_ARGS__, takes), takes),                       \
          LG_AS_##C(LG_ARG3(__VA_ARGS__, takes, takes), takes),                                                        \
          LG_AS_##D(LG_ARG4(__VA_ARGS__, takes, takes, takes), takes), LG_OPTIONS(type, LG_TAIL4(__VA_ARGS__)))
#define LG_CALL5(f, type, takes, A, B, C, D, E, ...)                                                                   \
        f(LG_AS_##A(LG_ARG1(__VA_ARGS__), takes), LG_AS_##B(LG_ARG2(__VA_ARGS__, takes), takes),                       \
          LG_AS_##C(LG_ARG3(__VA_ARGS__, takes, takes), takes),                                                        \
          LG_AS_##D(LG_ARG4(__VA_ARGS__, takes, takes, takes), takes),                                                 \
          LG_AS_##E(LG_ARG5(__VA_ARGS__, takes, takes, takes, takes), takes), LG_OPTIONS(type, LG_TAIL5(__VA_ARGS__)))

/* ---- options ----
 *
 * Every struct of options begins with its size, by which libraries and programs of different versions agree, and with a
 * member that no initialiser fits, so that an option without its name does not compile. A member that is not given is
 * zero, which means its default. Where zero is another valid value, LG_ZERO or LG_ZERO_INT stands for it.
 */

#ifdef __cplusplus
#include <type_traits>
/* A number that is not initialised from a plain number. */
template <class T> struct lg_by_name {
        T n;
        lg_by_name() = default;
        explicit constexpr lg_by_name(T v) : n(v)
        {
        }
        constexpr operator const T &() const
        {
                return n;
        }
        constexpr operator T &()
        {
                return n;
        }
        constexpr lg_by_name &operator=(T v)
        {
                n = v;
                return *this;
        }
};
#define LG_OPTIONS_HEAD                                                                                                \
        lg_by_name<size_t> size_ = lg_by_name<size_t>(sizeof(*this));                                                  \
        lg_by_name<int> no_option_ = {};
#define LG_COUNT_HEAD(count) lg_by_name<int> count;
#define LG_DEVICE_HEAD lg_by_name<lg_device_type> type;
#define LG_FIELDS_HEAD lg_by_name<int> count;
#define LG_FIELD_HEAD
#define LG_DEFAULT = {}
template <class T> const T *lg_address(const T &options)
{
        return &options;
}
#define LG_OPTIONS(type, ...) (lg_address(type{__VA_ARGS__}))
#else
/* Types of members that take no room and no initialiser. A value without a name meets them, and the compiler's message
 * has their name. */
#define LG_NO_VALUE(says)                                                                                              \
        __extension__ typedef struct says##_ {                                                                         \
                struct says {                                                                                          \
                        char c;                                                                                        \
                } nothing[0];                                                                                          \
        } says##_
LG_NO_VALUE(lg_write_the_call_with_its_options);
LG_NO_VALUE(lg_an_option_needs_its_name);
LG_NO_VALUE(lg_write_LG_SHAPE_or_LG_DIMS);
LG_NO_VALUE(lg_write_LG_DEVICE);
LG_NO_VALUE(lg_write_LG_FIELD_or_LG_FIELDS);

/* The first members of structs of options and of values. gcc's message is an error in front of a number. */
#define LG_OPTIONS_HEAD                                                                                                \
        lg_write_the_call_with_its_options_ nothing_;                                                                  \
        size_t size_;                                                                                                  \
        lg_an_option_needs_its_name_ no_value_;                                                                        \
        int no_option_;
#define LG_COUNT_HEAD(count)                                                                                           \
        lg_write_LG_SHAPE_or_LG_DIMS_ no_value_;                                                                       \
        int count;
#define LG_DEVICE_HEAD                                                                                                 \
        lg_write_LG_DEVICE_ no_value_;                                                                                 \
        lg_device_type type;
#define LG_FIELDS_HEAD                                                                                                 \
        lg_write_LG_FIELD_or_LG_FIELDS_ no_value_;                                                                     \
        int count;
#define LG_FIELD_HEAD lg_write_LG_FIELD_or_LG_FIELDS_ no_value_;

/* Follows each option, so that a value without a name does not compile after an option with a name either. */
#define LG_DEFAULT                                                                                                     \
        ;                                                                                                              \
        lg_an_option_needs_its_name_ LG_LOCAL(no_value_)

/* A pointer to options, for a function that ends in _with; valid until the end of the block, in C++ of the statement.
 * Example: lg_zeros_with(c, LG_SHAPE(2, 3), LG_OPTIONS(lg_create_options, .dtype = LG_F32)) */
#define LG_OPTIONS(type, ...) (&(type){.size_ = sizeof(type), __VA_ARGS__})
#endif

/* The value zero, for a floating-point or an integer option whose default is another value: .eps = LG_ZERO, .patience =
 * LG_ZERO_INT. Each is far out of the range of the other, so mixing them up draws a warning, except for LG_ZERO_INT in
 * gcc's C; an option that has a range is then LG_ERR_ARGUMENT. */
#define LG_ZERO (-0x1p1000)
#define LG_ZERO_INT (-INT64_MAX)

/* A number that suits the machine: .workers = LG_AUTO. */
#define LG_AUTO (-0x7fffffff)

/* Positive infinity, without <math.h>. */
#define LG_INFINITY (__builtin_inf())

/* ---- values ----
 *
 * Devices, shapes, dimensions and pairs are structs passed by value. Lists point to an array, which belongs to the
 * caller unless a comment names another owner. Write them with the macros below: a plain {2, 3} does not compile.
 */

/* A device: LG_DEVICE(LG_DEVICE_CUDA, 1), lg_cpu(), or lg_parse_device(c, "cuda:1"). */
typedef struct lg_device {
        LG_DEVICE_HEAD
        int index; /* which device of the type, from 0 */
} lg_device;

/* A shape: LG_SHAPE(2, 3). */
typedef struct lg_shape {
        LG_COUNT_HEAD(ndim)        /* the number of dimensions, 0 to LG_MAX_DIMS */
        int64_t size[LG_MAX_DIMS]; /* of each dimension */
} lg_shape;

/* A set of dimensions of a tensor, 0 for the first; negative ones count from the end: LG_DIMS(0, -1). */
typedef struct lg_dims {
        LG_COUNT_HEAD(count)  /* 0: all dimensions */
        int dim[LG_MAX_DIMS]; /* the dimensions */
} lg_dims;

/* Two numbers for height and width where they differ: .strides = LG_PAIR(2, 1). */
typedef struct lg_pair {
        LG_COUNT_HEAD(given) /* 1; 0: the pair is not given */
        int64_t h, w;        /* height and width */
} lg_pair;

/* Three numbers for depth, height and width where they differ: .strides = LG_TRIPLE(1, 2, 2). */
typedef struct lg_triple {
        LG_COUNT_HEAD(given) /* 1; 0: the triple is not given */
        int64_t d, h, w;     /* depth, height and width */
} lg_triple;

/* A list of whole numbers: LG_INTS(30, 80), or LG_INTS_OF(n, array). */
typedef struct lg_ints {
        int64_t count;        /* the number of entries */
        const int64_t *items; /* the entries */
} lg_ints;

/* A list of numbers: LG_NUMBERS(0.5, 0.25), or LG_NUMBERS_OF(n, array). */
typedef struct lg_numbers {
        int64_t count;       /* the number of entries */
        const double *items; /* the entries */
} lg_numbers;

/* A list of tensors: LG_LIST(a, b), or LG_LIST_OF(n, array). */
typedef struct lg_list {
        int64_t count;           /* the number of entries */
        lg_tensor *const *items; /* the entries */
} lg_list;

/* A list of texts: LG_NAMES("a", "b"), or LG_NAMES_OF(n, array). */
typedef struct lg_names {
        int64_t count;            /* the number of entries */
        const char *const *items; /* the entries */
} lg_names;

/* Elements around the edge of a tensor; the examples show a row abcd padded by three. */
typedef enum lg_pad_mode {
        LG_PAD_CONSTANT = 0,  /* a number: 000|abcd|000 */
        LG_PAD_REFLECT = 1,   /* reflected at the first and the last element: dcb|abcd|cba; fewer than the elements */
        LG_PAD_REPLICATE = 2, /* the first and the last element: aaa|abcd|ddd */
        LG_PAD_CIRCULAR = 3,  /* the other end: bcd|abcd|abc; at most as many as the elements */
} lg_pad_mode;

/* No device. Functions that need one use the default device of the context or, where their comment says so, another. */
#define LG_NO_DEVICE LG_DEVICE(LG_DEVICE_NONE, 0)

LG_BEGIN
/* The object that LG_END points to. */
extern LG_API char lg_end_mark[1];
LG_END_C

/* The last entry of the array that a function ending in _list takes. */
#ifdef __cplusplus
struct lg_end {
        template <class T> operator T *() const
        {
                return reinterpret_cast<T *>(lg_end_mark);
        }
};
#define LG_END (lg_end{})
#else
#define LG_END ((void *)lg_end_mark)
#endif

/* A list of the first n entries of an array; valid as long as the array.
 * Example: lg_tensor *tensors[] = {x, y}, *both = lg_cat(LG_LIST_OF(2, tensors), 0); */
#ifdef __cplusplus
#define LG_LIST_OF(count, items) (lg_list{(count), (items)})
#define LG_INTS_OF(count, items) (lg_ints{(count), (items)})
#define LG_NUMBERS_OF(count, items) (lg_numbers{(count), (items)})
#define LG_NAMES_OF(count, items) (lg_names{(count), (items)})
#else
#define LG_LIST_OF(count_, items_) ((lg_list){.count = (count_), .items = (items_)})
#define LG_INTS_OF(count_, items_) ((lg_ints){.count = (count_), .items = (items_)})
#define LG_NUMBERS_OF(count_, items_) ((lg_numbers){.count = (count_), .items = (items_)})
#define LG_NAMES_OF(count_, items_) ((lg_names){.count = (count_), .items = (items_)})
#endif

#ifdef __cplusplus
#include <initializer_list>
/* Lists as parameters. LG_LIST() and LG_INTS() convert to these only, so no lg_list outlives its array. */
template <class List, class T> struct lg_list_parameter {
        typedef T entry;
        int64_t count;
        const T *items;
        constexpr lg_list_parameter(List list_ = {}) : count(list_.count), items(list_.items)
        {
        }
        constexpr lg_list_parameter(int64_t count_, const T *items_) : count(count_), items(items_)
        {
        }
};
typedef lg_list_parameter<lg_list, lg_tensor *> lg_list_in;
typedef lg_list_parameter<lg_ints, int64_t> lg_ints_in;
typedef lg_list_parameter<lg_numbers, double> lg_numbers_in;
typedef lg_list_parameter<lg_names, const char *> lg_names_in;
/* Whether N converts to a whole number implicitly and loses no fraction, as enumerators and the ndim of a shape do. */
template <class N>
constexpr bool lg_is_whole = std::is_convertible<N, int64_t>::value && !std::is_floating_point<N>::value;
template <class In, int n> struct lg_array_of {
        typename In::entry items[n];
        operator In() const
        {
                return In(n, items);
        }
};
template <class In, class... A> constexpr lg_array_of<In, (int)sizeof...(A)> lg_make(A... entries_)
{
        typedef typename In::entry T;
        static_assert(sizeof...(A) > 0, "LG_LIST(), LG_NAMES(), LG_INTS() or LG_NUMBERS() is empty");
        static_assert(!std::is_same<T, int64_t>::value || (lg_is_whole<A> && ...), "LG_INTS takes whole numbers");
        static_assert(!std::is_same<T, double>::value || (std::is_arithmetic<A>::value && ...),
                      "LG_NUMBERS takes numbers");
        /* Braces convert pointers implicitly only. */
        return {{static_cast<T>(typename std::conditional<std::is_pointer<T>::value, T, A>::type{entries_})...}};
}
template <class A, class... N> constexpr void lg_fill_sizes(int &count, A *to, N... n)
{
        static_assert(sizeof...(N) > 0, "an empty LG_SHAPE() or LG_DIMS(): write LG_SHAPE_0D or LG_ALL_DIMS");
        static_assert(sizeof...(N) <= LG_MAX_DIMS, "more than LG_MAX_DIMS dimensions");
        static_assert((lg_is_whole<N> && ...), "dimensions are whole numbers");
        ((void)(to[count++] = (A)n), ...);
}
template <class... N> constexpr lg_shape lg_make_shape(N... n)
{
        lg_shape s{};
        lg_fill_sizes(s.ndim.n, s.size, n...);
        return s;
}
template <class... N> constexpr lg_dims lg_make_dims(N... n)
{
        lg_dims s{};
        lg_fill_sizes(s.count.n, s.dim, n...);
        return s;
}
template <class H, class W> constexpr lg_pair lg_make_pair(H h, W w)
{
        static_assert(lg_is_whole<H> && lg_is_whole<W>, "LG_PAIR takes whole numbers");
        return {lg_by_name<int>(1), (int64_t)h, (int64_t)w};
}
template <class D, class H, class W> constexpr lg_triple lg_make_triple(D d, H h, W w)
{
        static_assert(lg_is_whole<D> && lg_is_whole<H> && lg_is_whole<W>, "LG_TRIPLE takes whole numbers");
        return {lg_by_name<int>(1), (int64_t)d, (int64_t)h, (int64_t)w};
}
#define LG_DEVICE(type, index) (lg_device{lg_by_name<lg_device_type>(type), (index)})
#define LG_SHAPE(...) lg_make_shape(__VA_ARGS__)
#define LG_SHAPE_0D (lg_shape{})
#define LG_DIMS(...) lg_make_dims(__VA_ARGS__)
#define LG_ALL_DIMS (lg_dims{})
#define LG_PAIR(h, w) lg_make_pair((h), (w))
#define LG_TRIPLE(d, h, w) lg_make_triple((d), (h), (w))
#define LG_INTS(...) lg_make<lg_ints_in>(__VA_ARGS__)
#define LG_NUMBERS(...) lg_make<lg_numbers_in>(__VA_ARGS__)
#define LG_LIST(...) lg_make<lg_list_in>(__VA_ARGS__)
#define LG_NAMES(...) lg_make<lg_names_in>(__VA_ARGS__)
#define LG_ARRAY(type, ...) (std::initializer_list<type *>{__VA_ARGS__ static_cast<type *>(LG_END)}.begin())
#else
/* Lists as parameters of functions. C++ has types of its own for them. */
typedef lg_list lg_list_in;
typedef lg_ints lg_ints_in;
typedef lg_numbers lg_numbers_in;
typedef lg_names lg_names_in;

/* The number of arguments. */
#define LG_COUNT(type, ...) ((int)(sizeof((type[]){__VA_ARGS__}) / sizeof(type)))

/* The number of arguments, at least one, which must be whole numbers, since ~ takes no others. LG_SHAPE((2, 3)) does
 * not compile, since LG_ONE would be called with two arguments. */
#define LG_WHOLE(type, ...) (LG_COUNT(type, ~+__VA_ARGS__) + 0 * (int)LG_WHOLE_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0))
#define LG_WHOLE_(a, b, c, d, e, f, g, h, ...)                                                                         \
        (sizeof(~+(a) | ~+(b) | ~+(c) | ~+(d) | ~+(e) | ~+(f) | ~+(g) | ~+(h)) + sizeof LG_TEXT(LG_ONE a))

/* The same for numbers with fractions, to which 0.0 is added. */
#define LG_REAL(...) (LG_COUNT(double, 0.0 + __VA_ARGS__) + 0 * (int)LG_REAL_(__VA_ARGS__, 0))
#define LG_REAL_(a, ...) (sizeof(0.0 + (a)) + sizeof LG_TEXT(LG_ONE a))

/* A device of a type: LG_DEVICE(LG_DEVICE_CUDA, 0) is cuda:0. */
#define LG_DEVICE(type_, index_) ((lg_device){.type = (type_), .index = (index_)})

/* A shape of 1 to LG_MAX_DIMS whole numbers: LG_SHAPE(2, 3). LG_SHAPE_0D has no dimensions and one element. */
#define LG_SHAPE(...) ((lg_shape){.ndim = LG_WHOLE(int64_t, __VA_ARGS__), .size = {__VA_ARGS__}})
#define LG_SHAPE_0D ((lg_shape){.ndim = 0})

/* One or more dimensions: LG_DIMS(0, -1) are the first and the last. LG_ALL_DIMS means all, as without .dims. */
#define LG_DIMS(...) ((lg_dims){.count = LG_WHOLE(int, __VA_ARGS__), .dim = {__VA_ARGS__}})
#define LG_ALL_DIMS ((lg_dims){.count = 0})

/* Height and width: LG_PAIR(2, 1). */
#define LG_PAIR(h_, w_) ((lg_pair){.given = LG_COUNT(int64_t, ~+(h_), ~+(w_)) - 1, .h = (h_), .w = (w_)})

/* Depth, height and width: LG_TRIPLE(1, 2, 2). */
#define LG_TRIPLE(d_, h_, w_)                                                                                          \
        ((lg_triple){.given = LG_COUNT(int64_t, ~+(d_), ~+(h_), ~+(w_)) - 2, .d = (d_), .h = (h_), .w = (w_)})

/* Lists of one or more whole numbers, numbers, tensors or texts; valid until the end of the block, in C++ until the end
 * of the call. */
#define LG_INTS(...) ((lg_ints){LG_WHOLE(int64_t, __VA_ARGS__), (const int64_t[]){__VA_ARGS__}})
#define LG_NUMBERS(...) ((lg_numbers){LG_REAL(__VA_ARGS__), (const double[]){__VA_ARGS__}})
#define LG_LIST(...)                                                                                                   \
        ((lg_list){LG_COUNT(lg_tensor *, 0 ? (lg_tensor *)0 : __VA_ARGS__), (lg_tensor *const[]){__VA_ARGS__}})
#define LG_NAMES(...)                                                                                                  \
        ((lg_names){LG_COUNT(const char *, 0 ? (const char *)0 : __VA_ARGS__), (const char *const[]){__VA_ARGS__}})

/* The arguments, each followed by a comma, and LG_END as an array. */
#define LG_ARRAY(type, ...) ((type *const[]){__VA_ARGS__ LG_END})
#endif

#endif
