/* skip_end.h - after ops.def: undoes skip_pointwise.h or an includer's own rows. */
#undef UNARY
#undef BINARY
#undef TERNARY
#undef COMPARE
#undef COMPARE_SCALAR
#undef TEST
