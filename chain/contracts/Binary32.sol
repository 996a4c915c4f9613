// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Binary32
/// @notice IEEE 754 binary32 as docs/ARITHMETIC.md wants it, on bit patterns held in words: each
/// operation rounds once, to nearest, ties to even; subnormals and both zeros are kept; every NaN
/// that comes out is 0x7fc00000. No exceptions, no flags.
/// @dev Exact by construction: operands are unpacked into integers, the integer result is exact or
/// carries a sticky lowest bit far below the rounding point, and is rounded once.
///
/// Every operation has a short way for ordinary numbers and a general one, _round, for all others.
/// A number counts in units of 2^-149, the least subnormal: bits x stand for x & FRACTION if the
/// exponent field is 0, else for ((x & FRACTION) | IMPLICIT) * 2^(field - 1).
///
/// Callers hand in patterns below 2^32. Assembly only where the language would add a check or a
/// jump to each operation: division by what cannot be 0, comparisons that count, logarithms.
library Binary32 {
    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    uint256 internal constant SIGN = 0x80000000;
    uint256 internal constant MAGNITUDE = 0x7fffffff;
    uint256 internal constant FRACTION = 0x7fffff;
    uint256 internal constant IMPLICIT = 0x800000; // also: one step of the exponent field
    uint256 internal constant INFINITE = 0x7f800000; // also: the mask of the exponent field
    uint256 internal constant NAN = 0x7fc00000;
    uint256 internal constant ONE = 0x3f800000;
    uint256 internal constant TWO = 0x40000000;
    uint256 internal constant MINUS_ZERO = SIGN;
    uint256 internal constant MINUS_INFINITE = 0xff800000;

    // Coefficients of polynomials, that of the highest power last.
    uint256 private constant EXP_COEFFICIENTS =
        0x3f800000_3f800000_3efffffd_3e2aaa49_3d2aad13_3c091cc0_3ab4a64e;
    uint256 private constant LOG_COEFFICIENTS =
        0xbeffffeb_3eaaaa7e_be800a27_3e4ce9cc_be281c72_3e0f5565_be1d861b_3e0f8ddc;

    ////////////////////////////////////////////////////////////////
    //                         Arithmetic                         //
    ////////////////////////////////////////////////////////////////

    function add(uint256 a, uint256 b) internal pure returns (uint256 c) {
        unchecked {
            if (a & MAGNITUDE < b & MAGNITUDE) (a, b) = (b, a);
            uint256 top = a & INFINITE;
            uint256 gap = b & INFINITE;
            // One jump for both: b is zero or subnormal, a is infinite or NaN.
            if (gap * (top ^ INFINITE) == 0) return _addRare(a, b);
            gap = 32 - ((top - gap) >> 23);

            // A shift by a wrapped number gives 0: no b that far below a leaves a trace in the sum.
            c = ((a & FRACTION) | IMPLICIT) << 32;
            if ((a ^ b) & SIGN == 0) {
                c += ((b & FRACTION) | IMPLICIT) << gap; // 2^55 <= c < 2^57
                gap = c >> 56;
                c <<= 1 - gap;
                c = ((c + 0xffffffff + ((c >> 33) & 1)) >> 33) + (gap << 23)
                    + (a & MINUS_INFINITE) - IMPLICIT;
                if (c & INFINITE == INFINITE) c &= MINUS_INFINITE;
            } else {
                c -= ((b & FRACTION) | IMPLICIT) << gap; // c < 2^56
                if (c < 1 << 55) return _addCancelled(a & SIGN, c, top >> 23);
                c = ((c + 0x7fffffff + ((c >> 32) & 1)) >> 32) + (a & MINUS_INFINITE) - IMPLICIT;
            }
        }
    }

    function sub(uint256 a, uint256 b) internal pure returns (uint256) {
        return add(a, b ^ SIGN);
    }

    function mul(uint256 a, uint256 b) internal pure returns (uint256 c) {
        unchecked {
            // 0 where an exponent field is 0 or 255.
            if (((a & INFINITE) % INFINITE) * ((b & INFINITE) % INFINITE) == 0) {
                return _mulRare(a, b);
            }
            uint256 product = ((a & FRACTION) | IMPLICIT) * ((b & FRACTION) | IMPLICIT);
            // 2^46 <= product < 2^48
            uint256 carry = product >> 47;
            product <<= 1 - carry;
            product = (product + 0x7fffff + ((product >> 24) & 1)) >> 24;
            c = (a & INFINITE) + (b & INFINITE) + (carry << 23) + product - (128 << 23);
            if (c - IMPLICIT >= INFINITE - IMPLICIT) return _mulRare(a, b);
            c |= (a ^ b) & SIGN;
        }
    }

    function div(uint256 a, uint256 b) internal pure returns (uint256 c) {
        unchecked {
            // 0 where an exponent field is 0 or 255.
            if (((a & INFINITE) % INFINITE) * ((b & INFINITE) % INFINITE) == 0) {
                return _divRare(a, b);
            }
            uint256 quotient =
                _floorDiv(((a & FRACTION) | IMPLICIT) << 25, (b & FRACTION) | IMPLICIT);
            // 2^24 < quotient < 2^26. A tie would need a divisor with 25 bits: half up is enough.
            uint256 carry = quotient >> 25;
            quotient = (quotient + 1 + carry) >> (1 + carry);
            c = (a & INFINITE) - (b & INFINITE) + ((carry + 125) << 23) + quotient;
            if (c - IMPLICIT >= INFINITE - IMPLICIT) return _divRare(a, b);
            c |= (a ^ b) & SIGN;
        }
    }

    function sqrt(uint256 a) internal pure returns (uint256 c) {
        unchecked {
            if (a - IMPLICIT >= INFINITE - IMPLICIT) return _sqrtRare(a);
            uint256 field = a >> 23;
            c = _root(((a & FRACTION) | IMPLICIT) << (26 - (field & 1)));
            // A tie would need a square of an odd number of 25 bits: half up is enough.
            c = ((c + 1) >> 1) + (((field >> 1) + (field & 1) + 62) << 23);
        }
    }

    /// @return d a * b + c, rounded once.
    function fma(uint256 a, uint256 b, uint256 c) internal pure returns (uint256 d) {
        unchecked {
            uint256 top = a & INFINITE;
            uint256 gap = b & INFINITE;
            uint256 addend = c & INFINITE;
            // 0 where an exponent field is 0 or 255.
            if ((top % INFINITE) * (gap % INFINITE) * (addend % INFINITE) == 0) {
                return _fmaRare(a, b, c);
            }

            // 2^110 <= sum < 2^112, and so stands the addend if it has the product's exponent.
            top += gap - (127 << 23);
            gap = top - addend;
            addend = ((c & FRACTION) | IMPLICIT) << 87;
            uint256 sum = (((a & FRACTION) | IMPLICIT) * ((b & FRACTION) | IMPLICIT)) << 64;
            if (gap < 1 << 255) {
                gap >>= 23;
                addend = (addend >> gap) | _isAbove(gap, 87); // sticky
            } else {
                // Of a product too small to change c there may be nothing left.
                sum >>= (0 - gap) >> 23;
                top -= gap;
            }
            d = (a ^ b) & SIGN;
            if ((d ^ c) & SIGN == 0) {
                sum += addend;
            } else {
                if (sum < addend) {
                    (sum, addend) = (addend, sum);
                    d ^= SIGN;
                }
                sum -= addend;
            }
            // sum < 2^113, and seldom much less than 2^110: its length beyond 108 bits.
            gap = _length(sum >> 108);
            if (gap == 0) return _round(d, sum, (int256(top) >> 23) - 88);
            sum <<= 5 - gap;
            sum = ((sum + (1 << 88) - 1 + ((sum >> 89) & 1)) >> 89) + (gap << 23) + top - (4 << 23);
            if (sum - IMPLICIT >= INFINITE - IMPLICIT) return _fmaRare(a, b, c);
            d |= sum;
        }
    }

    ////////////////////////////////////////////////////////////////
    //                         Comparison                         //
    ////////////////////////////////////////////////////////////////

    function isNan(uint256 a) internal pure returns (bool) {
        return a & MAGNITUDE > INFINITE;
    }

    /// @notice Is a < b? False with a NaN; -0 is not below +0.
    function isLess(uint256 a, uint256 b) internal pure returns (bool) {
        return !isNan(a) && !isNan(b) && _order(a) < _order(b);
    }

    /// @notice Is a == b? False with a NaN; -0 is +0.
    function isEqual(uint256 a, uint256 b) internal pure returns (bool) {
        return !isNan(a) && !isNan(b) && _order(a) == _order(b);
    }

    /// @notice The running maximum of docs/ARITHMETIC.md: NaN once there was one, else the larger.
    /// Of two zeros the first stays: withoutMinusZero() takes its sign away in the end.
    function maximum(uint256 soFar, uint256 a) internal pure returns (uint256) {
        if (isNan(soFar) || isNan(a)) return NAN;
        return _order(a) > _order(soFar) ? a : soFar;
    }

    /// @notice -0 as +0, and any other number as it is.
    function withoutMinusZero(uint256 a) internal pure returns (uint256) {
        return a == MINUS_ZERO ? 0 : a;
    }

    /// @notice As it is stored: any NaN becomes the one NaN.
    function stored(uint256 a) internal pure returns (uint256) {
        return isNan(a) ? NAN : a;
    }

    function negated(uint256 a) internal pure returns (uint256) {
        return a ^ SIGN;
    }

    ////////////////////////////////////////////////////////////////
    //                          Integers                          //
    ////////////////////////////////////////////////////////////////

    /// @notice scale(S, n) of docs/ARITHMETIC.md: S rounded to 24 bits, times 2^n. |S| < 2^127.
    function fromInteger(int256 integer, int256 n) internal pure returns (uint256) {
        unchecked {
            if (integer == 0) return 0;
            uint256 sign = integer < 0 ? SIGN : 0;
            uint256 m = uint256(integer < 0 ? -integer : integer);
            if (m >> 24 != 0) {
                uint256 drop = _log2(m) - 23;
                m = (m + (1 << (drop - 1)) - 1 + ((m >> drop) & 1)) >> drop;
                n += int256(drop);
            }
            return _round(sign, m, n + 149);
        }
    }

    /// @notice RNE(a * 2^n), or plus or minus `limit` where that is nearer to zero; limit < 2^24.
    /// @dev Infinities and NaNs are read as if the format went on, as "Inputs that no quantize
    /// operation gives" wants it.
    function toInteger(uint256 a, int256 n, uint256 limit) internal pure returns (int256 integer) {
        unchecked {
            (uint256 m, int256 e) = _unpack(a);
            n += e - 149;
            if (m != 0 && n >= -25) {
                if (n >= 24) {
                    m = limit;
                } else if (n >= 0) {
                    m <<= uint256(n);
                } else {
                    uint256 drop = uint256(-n);
                    m = (m + (1 << (drop - 1)) - 1 + ((m >> drop) & 1)) >> drop;
                }
                if (m > limit) m = limit;
                integer = a & SIGN == 0 ? int256(m) : -int256(m);
            }
        }
    }

    ////////////////////////////////////////////////////////////////
    //                   Transcendental functions                 //
    ////////////////////////////////////////////////////////////////

    function exp(uint256 x) internal pure returns (uint256 p) {
        return expOfSum(x, 0);
    }

    /// @notice exp(x + low), |low| far below 1; low is not read where x has no ordinary result.
    function expOfSum(uint256 x, uint256 low) internal pure returns (uint256 p) {
        unchecked {
            if (isNan(x)) return NAN;
            if (x < SIGN) {
                if (x > 0x42b20000) (x, low) = (0x42b20000, 0); // 89
            } else if (x > 0xc2d00000) {
                (x, low) = (0xc2d00000, 0); // -104
            }
            uint256 t = fma(x, 0x3fb8aa3b, 0x4b400000);
            int256 k = int256(t) - 0x4b400000;
            uint256 n = sub(t, 0x4b400000);
            x = fma(n, 0xbf317218, x);
            x = fma(n, 0x3102e308, x);
            if (low != 0) x = add(x, low);
            p = polynomial(x, EXP_COEFFICIENTS, 6);
            // p is near 1, so it is normal: p * 2^k
            t = p + uint256(k << 23);
            if (t - IMPLICIT < INFINITE - IMPLICIT) return t;
            return _round(0, (p & FRACTION) | IMPLICIT, int256(p >> 23) - 1 + k);
        }
    }

    function log(uint256 x) internal pure returns (uint256 p) {
        unchecked {
            if (x & MAGNITUDE == 0) return MINUS_INFINITE;
            if (x > INFINITE) return NAN; // NaN, or below zero
            if (x == INFINITE) return x;
            int256 k = 0;
            if (x < IMPLICIT) {
                x = mul(x, 0x4b000000); // 2^23
                k = -23;
            }
            int256 e = (int256(x) - 0x3f2aaaab) >> 23;
            uint256 f = sub(uint256(int256(x) - (e << 23)), ONE);
            k += e;
            p = polynomial(f, LOG_COEFFICIENTS, 7);
            p = fma(p, mul(f, f), f);
            return fma(fromInteger(k, 0), 0x3f317218, p);
        }
    }

    /// @notice Horner's scheme, one fma for each degree; the highest coefficient stands last.
    function polynomial(uint256 x, uint256 coefficients, uint256 degree)
        internal
        pure
        returns (uint256 p)
    {
        unchecked {
            p = coefficients & 0xffffffff;
            for (; degree != 0; degree--) {
                coefficients >>= 32;
                p = fma(p, x, coefficients & 0xffffffff);
            }
        }
    }

    ////////////////////////////////////////////////////////////////
    //                      The general case                      //
    ////////////////////////////////////////////////////////////////

    /// @dev The number m * 2^e units of 2^-149, rounded; 0 < m < 2^128.
    function _round(uint256 sign, uint256 m, int256 e) private pure returns (uint256) {
        unchecked {
            if (m == 0) return 0; // exact cancellation
            int256 drop = int256(_log2(m)) - 23;
            if (drop + e < 0) drop = -e; // subnormal: the last place is one unit
            e += drop;
            if (drop <= 0) {
                m <<= uint256(-drop);
            } else if (drop > 129) {
                m = 0;
            } else {
                m = (m + (1 << uint256(drop - 1)) - 1 + ((m >> uint256(drop)) & 1))
                    >> uint256(drop);
            }
            m += uint256(e) << 23;
            return sign | (m < INFINITE ? m : INFINITE);
        }
    }

    /// @dev A finite number as m * 2^e units of 2^-149.
    function _unpack(uint256 a) private pure returns (uint256 m, int256 e) {
        unchecked {
            m = a & FRACTION;
            uint256 field = (a >> 23) & 0xff;
            if (field != 0) {
                m |= IMPLICIT;
                e = int256(field) - 1;
            }
        }
    }

    /// @dev |a| >= |b|, with b zero or subnormal, or a infinite or NaN.
    function _addRare(uint256 a, uint256 b) private pure returns (uint256) {
        unchecked {
            if (isNan(a)) return NAN;
            if (a & MAGNITUDE == INFINITE) return a ^ b == SIGN ? NAN : a;
            if (b & MAGNITUDE == 0) return a & MAGNITUDE == 0 ? a & b : a;
            (uint256 m, int256 e) = _unpack(a);
            if (e > 25) return a;
            m <<= uint256(e);
            m = (a ^ b) & SIGN == 0 ? m + (b & FRACTION) : m - (b & FRACTION);
            return _round(a & SIGN, m, 0);
        }
    }

    /// @dev sum < 2^55, where 2^55 has the exponent field `top`.
    function _addCancelled(uint256 sign, uint256 sum, uint256 top) private pure returns (uint256) {
        unchecked {
            if (sum == 0) return 0;
            uint256 shift = sum >> 54 != 0 ? 1 : 55 - _log2(sum);
            if (top <= shift) return _round(sign, sum, int256(top) - 33);
            sum <<= shift;
            sum = (sum + 0x7fffffff + ((sum >> 32) & 1)) >> 32;
            return sign | (sum + ((top - shift - 1) << 23));
        }
    }

    function _mulRare(uint256 a, uint256 b) private pure returns (uint256) {
        unchecked {
            uint256 sign = (a ^ b) & SIGN;
            a &= MAGNITUDE;
            b &= MAGNITUDE;
            if (a >= INFINITE || b >= INFINITE) {
                return a > INFINITE || b > INFINITE || a == 0 || b == 0 ? NAN : sign | INFINITE;
            }
            if (a == 0 || b == 0) return sign;
            (uint256 m, int256 e) = _unpack(a);
            (uint256 n, int256 f) = _unpack(b);
            return _round(sign, m * n, e + f - 149);
        }
    }

    function _divRare(uint256 a, uint256 b) private pure returns (uint256) {
        unchecked {
            uint256 sign = (a ^ b) & SIGN;
            a &= MAGNITUDE;
            b &= MAGNITUDE;
            if (a > INFINITE || b > INFINITE) return NAN;
            if (a == b && (a == 0 || a == INFINITE)) return NAN;
            if (a == INFINITE || b == 0) return sign | INFINITE;
            if (b == INFINITE || a == 0) return sign;
            (uint256 m, int256 e) = _unpack(a);
            (uint256 n, int256 f) = _unpack(b);
            m <<= 64;
            uint256 quotient = m / n;
            if (quotient * n != m) quotient |= 1;
            return _round(sign, quotient, e - f + 85);
        }
    }

    function _sqrtRare(uint256 a) private pure returns (uint256) {
        unchecked {
            if (a & MAGNITUDE == 0 || a == INFINITE) return a;
            if (a > INFINITE) return NAN; // NaN, or below zero
            // Subnormal: the root of a * 2^64, which is normal, is 2^32 times as large.
            uint256 shift = 23 - _log2(a);
            a = (a << shift) + ((64 - shift) << 23);
            return sqrt(a) - (32 << 23);
        }
    }

    function _fmaRare(uint256 a, uint256 b, uint256 c) private pure returns (uint256) {
        unchecked {
            uint256 sign = (a ^ b) & SIGN;
            a &= MAGNITUDE;
            b &= MAGNITUDE;
            if (isNan(c) || a > INFINITE || b > INFINITE) return NAN;
            if (a == INFINITE || b == INFINITE) {
                return a == 0 || b == 0 || c == (INFINITE | (sign ^ SIGN)) ? NAN : sign | INFINITE;
            }
            if (c & MAGNITUDE == INFINITE) return c;
            if (a == 0 || b == 0) return c & MAGNITUDE == 0 ? c & sign : c;
            return _fmaFinite(sign, a, b, c);
        }
    }

    function _fmaFinite(uint256 sign, uint256 a, uint256 b, uint256 c)
        private
        pure
        returns (uint256)
    {
        unchecked {
            (uint256 m, int256 e) = _unpack(a);
            (uint256 n, int256 f) = _unpack(b);
            m *= n;
            e += f - 149;
            (n, f) = _unpack(c);
            if (n == 0) return _round(sign, m, e);
            // Beyond 64 places the smaller one only tells on which side of the larger the sum is.
            if (e > f + 64) {
                (m, n, e) = (m << 64, 1, e - 64);
            } else if (e >= f) {
                (m, e) = (m << uint256(e - f), f);
            } else if (f > e + 64) {
                (m, n, e) = (1, n << 64, f - 64);
            } else {
                n <<= uint256(f - e);
            }
            if ((sign ^ c) & SIGN == 0) return _round(sign, m + n, e);
            if (m < n) return _round(sign ^ SIGN, n - m, e);
            return _round(sign, m - n, e);
        }
    }

    ////////////////////////////////////////////////////////////////
    //                           Helpers                          //
    ////////////////////////////////////////////////////////////////

    /// @dev The number of bits of t; 0 also where t > 31.
    function _length(uint256 t) private pure returns (uint256 length) {
        assembly {
            length := byte(t, 0x0001020203030303040404040404040405050505050505050505050505050505)
        }
    }

    /// @dev 1 if a > b, else 0.
    function _isAbove(uint256 a, uint256 b) private pure returns (uint256 above) {
        assembly {
            above := gt(a, b)
        }
    }

    /// @dev Orders numbers other than NaN; both zeros are 0.
    function _order(uint256 a) private pure returns (int256) {
        unchecked {
            return a < SIGN ? int256(a) : -int256(a & MAGNITUDE);
        }
    }

    /// @dev The place of the highest bit; 0 < m < 2^128.
    function _log2(uint256 m) private pure returns (uint256 place) {
        assembly {
            place := shl(6, lt(0xffffffffffffffff, m))
            place := or(place, shl(5, lt(0xffffffff, shr(place, m))))
            place := or(place, shl(4, lt(0xffff, shr(place, m))))
            place := or(place, shl(3, lt(0xff, shr(place, m))))
            place := or(place, shl(2, lt(0xf, shr(place, m))))
            place := or(
                place,
                byte(
                    shr(place, m),
                    0x0000010102020202030303030303030300000000000000000000000000000000
                )
            )
        }
    }

    /// @dev The square root rounded down; 2^48 <= m < 2^50.
    function _root(uint256 m) private pure returns (uint256 root) {
        unchecked {
            // Within 3 in 100; each step of Newton's squares the error, and rounds up once at most.
            root = ((m * 22500) >> 40) + 11520235;
            root = (root + _floorDiv(m, root)) >> 1;
            root = (root + _floorDiv(m, root)) >> 1;
            root = (root + _floorDiv(m, root)) >> 1;
            if (root * root > m) root--;
        }
    }

    function _floorDiv(uint256 a, uint256 b) private pure returns (uint256 quotient) {
        assembly {
            quotient := div(a, b)
        }
    }
}
