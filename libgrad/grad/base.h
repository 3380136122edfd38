/* base.h - the macros behind shapes, lists and options.
 *
 * A call of the library has positional arguments, which are required, and options, which have names:
 *
 *     lg_conv2d(x, w, b, .stride = 2, .padding = 1)
 *
 * Behind it is a function of the same name that ends in _with (or in _list, where the arguments are a list) and takes
 * the options by pointer. Programs call that one only where they have the options in a struct already. Arguments that
 * are missing, misplaced or of a wrong type do not compile, or draw a warning that compilers give without being asked.
 */
#ifndef LG_BASE_H
#define LG_BASE_H

#include <stdio.h>
#include "grad/types.h"

#if defined(__GNUC__)
#define LG_API __attribute__((visibility("default")))
#define LG_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define LG_NEW __attribute__((warn_unused_result)) /* a call whose result nobody takes has no effect */
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

typedef struct lg_ctx lg_ctx;
typedef struct lg_tensor lg_tensor;
typedef struct lg_module lg_module;
typedef struct lg_optimizer lg_optimizer;
typedef struct lg_scheduler lg_scheduler;
typedef struct lg_dataset lg_dataset;
typedef struct lg_loader lg_loader;
typedef struct lg_ema lg_ema;

/* ---- arguments of macros ---- */

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
/* All but the first, the first two, ..., followed by a comma: for use in braces. */
#define LG_TAIL1(...) LG_TAIL1_(__VA_ARGS__, )
#define LG_TAIL1_(a, ...) __VA_ARGS__
#define LG_TAIL2(...) LG_APPLY(LG_TAIL1_, LG_TAIL1(__VA_ARGS__))
#define LG_TAIL3(...) LG_APPLY(LG_TAIL1_, LG_TAIL2(__VA_ARGS__))
#define LG_TAIL4(...) LG_APPLY(LG_TAIL1_, LG_TAIL3(__VA_ARGS__))
#define LG_TAIL5(...) LG_APPLY(LG_TAIL1_, LG_TAIL4(__VA_ARGS__))
#define LG_APPLY(f, ...) f(__VA_ARGS__)
/* A name that no other line has. */
#define LG_LOCAL(name) LG_LOCAL_(name, __LINE__)
#define LG_LOCAL_(name, line) LG_LOCAL__(name, line)
#define LG_LOCAL__(name, line) name##line
/* LG_CALL2(f, type, takes, a, b, .option = value) is f(a, b, options). A positional argument that is missing becomes
 * `takes`, a name that is not declared and says which arguments the call takes. */
#define LG_CALL0(f, type, ...) f(LG_OPTIONS(type, __VA_ARGS__))
#define LG_CALL1(f, type, takes, ...) f((LG_ARG1(__VA_ARGS__)), LG_OPTIONS(type, LG_TAIL1(__VA_ARGS__)))
#define LG_CALL2(f, type, takes, ...)                                                                                  \
        f((LG_ARG1(__VA_ARGS__)), (LG_ARG2(__VA_ARGS__, takes)), LG_OPTIONS(type, LG_TAIL2(__VA_ARGS__)))
#define LG_CALL3(f, type, takes, ...)                                                                                  \
        f((LG_ARG1(__VA_ARGS__)), (LG_ARG2(__VA_ARGS__, takes)), (LG_ARG3(__VA_ARGS__, takes, takes)),                 \
          LG_OPTIONS(type, LG_TAIL3(__VA_ARGS__)))
#define LG_CALL4(f, type, takes, ...)                                                                                  \
        f((LG_ARG1(__VA_ARGS__)), (LG_ARG2(__VA_ARGS__, takes)), (LG_ARG3(__VA_ARGS__, takes, takes)),                 \
          (LG_ARG4(__VA_ARGS__, takes, takes, takes)), LG_OPTIONS(type, LG_TAIL4(__VA_ARGS__)))
#define LG_CALL5(f, type, takes, ...)                                                                                  \
        f((LG_ARG1(__VA_ARGS__)), (LG_ARG2(__VA_ARGS__, takes)), (LG_ARG3(__VA_ARGS__, takes, takes)),                 \
          (LG_ARG4(__VA_ARGS__, takes, takes, takes)), (LG_ARG5(__VA_ARGS__, takes, takes, takes, takes)),             \
          LG_OPTIONS(type, LG_TAIL5(__VA_ARGS__)))

/* ---- options ----
 *
 * Every struct of options begins with its size, by which a library and a program of different versions understand each
 * other, and with a member that no initialiser fits, so that an option without its name does not compile. A member that
 * is not given is zero and has the default that its comment states.
 */

#ifdef __cplusplus
#include <type_traits>
/* A number that no initialiser makes by itself. */
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
#define LG_OPTIONS_HEAD lg_by_name<size_t> size_ = lg_by_name<size_t>(sizeof(*this));
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
__extension__ typedef struct lg_nothing {
        char nothing[0]; /* takes no room and no initialiser */
} lg_nothing;
#define LG_OPTIONS_HEAD                                                                                                \
        lg_nothing write_the_call_with_its_options_;                                                                   \
        size_t size_;                                                                                                  \
        lg_nothing an_option_needs_its_name_;
#define LG_COUNT_HEAD(count)                                                                                           \
        lg_nothing write_LG_SHAPE_or_LG_DIMS_;                                                                         \
        int count;
#define LG_DEVICE_HEAD                                                                                                 \
        lg_nothing write_LG_DEVICE_;                                                                                   \
        lg_device_type type;
#define LG_FIELDS_HEAD                                                                                                 \
        lg_nothing write_LG_FIELDS_;                                                                                   \
        int count;
#define LG_FIELD_HEAD lg_nothing write_LG_FIELD_;
/* Nor does a value without a name behind one with a name fit. */
#define LG_DEFAULT                                                                                                     \
        ;                                                                                                              \
        lg_nothing LG_LOCAL(only_by_name_)
#define LG_OPTIONS(type, ...) (&(type){.size_ = sizeof(type), __VA_ARGS__})
#endif

/* Where zero is a valid value but not the default, .eps = LG_ZERO and .patience = LG_ZERO_INT are zero. Each is far out
 * of the range of the other, so that a mix-up draws a warning or, with gcc and LG_ZERO_INT, an error as the call runs.
 */
#define LG_ZERO (-0x1p1000)
#define LG_ZERO_INT (-INT64_MAX)
/* As many as fit the machine: .workers = LG_AUTO. */
#define LG_AUTO (-0x7fffffff)
/* Positive infinity, without <math.h>. */
#define LG_INFINITY (__builtin_inf())

/* ---- values ---- */

/* A device is a small value: LG_DEVICE(LG_DEVICE_CUDA, 1), or lg_parse_device(c, "cuda:1"). LG_NO_DEVICE is "not
 * given". */
typedef struct lg_device {
        LG_DEVICE_HEAD
        int index;
} lg_device;

/* A shape: ndim sizes, ndim <= LG_MAX_DIMS. LG_SHAPE(2, 3); LG_SHAPE_0D is the shape of a single number. */
typedef struct lg_shape {
        LG_COUNT_HEAD(ndim)
        int64_t size[LG_MAX_DIMS];
} lg_shape;

/* A set of dimensions; negative ones count from the end. LG_DIMS(0, -1); LG_ALL_DIMS, which is also the default. */
typedef struct lg_dims {
        LG_COUNT_HEAD(count)
        int dim[LG_MAX_DIMS];
} lg_dims;

/* Height and width where they differ: .strides = LG_PAIR(2, 1). */
typedef struct lg_pair {
        LG_COUNT_HEAD(given) /* 1; 0: the pair is not given */
        int64_t h, w;
} lg_pair;

/* Whole numbers; the array belongs to the caller. LG_INTS(30, 80) lasts as long as the call (in C, as the block). */
typedef struct lg_ints {
        int64_t count;
        const int64_t *items;
} lg_ints;

/* Numbers; the array belongs to the caller. LG_NUMBERS(0.5, 0.25) lasts as long as LG_INTS does. */
typedef struct lg_numbers {
        int64_t count;
        const double *items;
} lg_numbers;

/* Tensors; the array belongs to the caller, or to what the function's comment names. LG_LIST(a, b) lasts as long as
 * LG_INTS does. */
typedef struct lg_list {
        int64_t count;
        lg_tensor *const *items;
} lg_list;

/* Texts; the array belongs to the caller, or to what the function's comment names. LG_NAMES("a", "b") lasts as long as
 * LG_INTS does. */
typedef struct lg_names {
        int64_t count;
        const char *const *items;
} lg_names;

#define LG_NO_DEVICE LG_DEVICE(LG_DEVICE_NONE, 0)

LG_BEGIN
extern LG_API char lg_end_mark[1];
LG_END_C
/* Ends the array that a _list function takes. */
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

/* A list of an array: LG_LIST_OF(n, tensors), LG_INTS_OF(n, sizes), LG_NUMBERS_OF(n, means), LG_NAMES_OF(n, texts). It
 * lasts as long as the array. */
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
/* Lists as parameters: LG_LIST and LG_INTS become nothing else, and so no lg_list that would outlive its array. */
struct lg_list_in {
        int64_t count;
        lg_tensor *const *items;
        constexpr lg_list_in(lg_list l = {}) : count(l.count), items(l.items)
        {
        }
        constexpr lg_list_in(int64_t n, lg_tensor *const *t) : count(n), items(t)
        {
        }
};
struct lg_ints_in {
        int64_t count;
        const int64_t *items;
        constexpr lg_ints_in(lg_ints l = {}) : count(l.count), items(l.items)
        {
        }
        constexpr lg_ints_in(int64_t n, const int64_t *i) : count(n), items(i)
        {
        }
};
struct lg_numbers_in {
        int64_t count;
        const double *items;
        constexpr lg_numbers_in(lg_numbers l = {}) : count(l.count), items(l.items)
        {
        }
        constexpr lg_numbers_in(int64_t n, const double *i) : count(n), items(i)
        {
        }
};
struct lg_names_in {
        int64_t count;
        const char *const *items;
        constexpr lg_names_in(lg_names l = {}) : count(l.count), items(l.items)
        {
        }
        constexpr lg_names_in(int64_t n, const char *const *i) : count(n), items(i)
        {
        }
};
/* What becomes a whole number by itself and loses no fraction: enumerators and the ndim of a shape, too. */
template <class N>
constexpr bool lg_is_whole = std::is_convertible<N, int64_t>::value && !std::is_floating_point<N>::value;
template <class T, class In, int n> struct lg_array_of {
        T items[n];
        operator In() const
        {
                return In(n, items);
        }
};
template <class... T> constexpr lg_array_of<lg_tensor *, lg_list_in, (int)sizeof...(T)> lg_make_list(T... t)
{
        static_assert(sizeof...(T) > 0, "LG_LIST() is empty");
        return {{t...}};
}
template <class... T> constexpr lg_array_of<const char *, lg_names_in, (int)sizeof...(T)> lg_make_names(T... t)
{
        static_assert(sizeof...(T) > 0, "LG_NAMES() is empty");
        return {{t...}};
}
template <class... N> constexpr lg_array_of<int64_t, lg_ints_in, (int)sizeof...(N)> lg_make_ints(N... n)
{
        static_assert(sizeof...(N) > 0, "LG_INTS() is empty");
        static_assert((lg_is_whole<N> && ...), "LG_INTS takes whole numbers");
        return {{(int64_t)n...}};
}
template <class... N> constexpr lg_array_of<double, lg_numbers_in, (int)sizeof...(N)> lg_make_numbers(N... n)
{
        static_assert(sizeof...(N) > 0, "LG_NUMBERS() is empty");
        static_assert((std::is_arithmetic<N>::value && ...), "LG_NUMBERS takes numbers");
        return {{(double)n...}};
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
#define LG_DEVICE(type, index) (lg_device{lg_by_name<lg_device_type>(type), (index)})
#define LG_SHAPE(...) lg_make_shape(__VA_ARGS__)
#define LG_SHAPE_0D (lg_shape{})
#define LG_DIMS(...) lg_make_dims(__VA_ARGS__)
#define LG_ALL_DIMS (lg_dims{})
#define LG_PAIR(h, w) lg_make_pair((h), (w))
#define LG_INTS(...) lg_make_ints(__VA_ARGS__)
#define LG_NUMBERS(...) lg_make_numbers(__VA_ARGS__)
#define LG_LIST(...) lg_make_list(__VA_ARGS__)
#define LG_NAMES(...) lg_make_names(__VA_ARGS__)
#define LG_ARRAY(type, ...) (std::initializer_list<type *>{__VA_ARGS__ static_cast<type *>(LG_END)}.begin())
#else
typedef lg_list lg_list_in;
typedef lg_ints lg_ints_in;
typedef lg_numbers lg_numbers_in;
typedef lg_names lg_names_in;
#define LG_COUNT(type, ...) ((int)(sizeof((type[]){__VA_ARGS__}) / sizeof(type)))
/* How many there are, refusing an empty list; what is no whole number, as ~ does; and LG_SHAPE((2, 3)), where LG_ONE
 * would be called with two. */
#define LG_WHOLE(type, ...) (LG_COUNT(type, ~+__VA_ARGS__) + 0 * (int)LG_WHOLE_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0))
#define LG_WHOLE_(a, b, c, d, e, f, g, h, ...)                                                                         \
        (sizeof(~+(a) | ~+(b) | ~+(c) | ~+(d) | ~+(e) | ~+(f) | ~+(g) | ~+(h)) + sizeof LG_TEXT(LG_ONE a))
#define LG_ONE(a) a
/* The same of numbers, fractions too, which 0.0 is added to. */
#define LG_REAL(...) (LG_COUNT(double, 0.0 + __VA_ARGS__) + 0 * (int)LG_REAL_(__VA_ARGS__, 0))
#define LG_REAL_(a, ...) (sizeof(0.0 + (a)) + sizeof LG_TEXT(LG_ONE a))
#define LG_TEXT(...) LG_TEXT_(__VA_ARGS__)
#define LG_TEXT_(...) #__VA_ARGS__
#define LG_DEVICE(type_, index_) ((lg_device){.type = (type_), .index = (index_)})
#define LG_SHAPE(...) ((lg_shape){.ndim = LG_WHOLE(int64_t, __VA_ARGS__), .size = {__VA_ARGS__}})
#define LG_SHAPE_0D ((lg_shape){.ndim = 0})
#define LG_DIMS(...) ((lg_dims){.count = LG_WHOLE(int, __VA_ARGS__), .dim = {__VA_ARGS__}})
#define LG_ALL_DIMS ((lg_dims){.count = 0})
#define LG_PAIR(h_, w_) ((lg_pair){.given = LG_COUNT(int64_t, ~+(h_), ~+(w_)) - 1, .h = (h_), .w = (w_)})
#define LG_INTS(...) ((lg_ints){LG_WHOLE(int64_t, __VA_ARGS__), (const int64_t[]){__VA_ARGS__}})
#define LG_NUMBERS(...) ((lg_numbers){LG_REAL(__VA_ARGS__), (const double[]){__VA_ARGS__}})
#define LG_LIST(...)                                                                                                   \
        ((lg_list){LG_COUNT(lg_tensor *, 0 ? (lg_tensor *)0 : __VA_ARGS__), (lg_tensor *const[]){__VA_ARGS__}})
#define LG_NAMES(...)                                                                                                  \
        ((lg_names){LG_COUNT(const char *, 0 ? (const char *)0 : __VA_ARGS__), (const char *const[]){__VA_ARGS__}})
#define LG_ARRAY(type, ...) ((type *const[]){__VA_ARGS__ LG_END})
#endif

#endif
