/* order.h - comparisons for qsort(). */
#ifndef BASE_ORDER_H
#define BASE_ORDER_H

/* Doubles, the smallest first; none is NaN. */
static inline int order_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return (a > b) - (a < b);
}

#endif /* BASE_ORDER_H */
