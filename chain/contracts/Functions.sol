// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";

/// @title Functions
/// @notice The functions of docs/ARITHMETIC.md beyond exp and log, on bit patterns: engine's
/// scalar.c and element.h, step by step.
library Functions {
    using Binary32 for uint256;

    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    // Coefficients of polynomials, that of the highest power last.
    uint256 private constant TANH = 0x00beaaaa99_3e088382_bd5c1c50_3ca908e2_bbbac7d6;
    uint256 private constant TAIL =
        0x3e7ead2a_3cb3b54b_bdd2227f_bc9fd9a9_3d8414be_bb4adc99_bd259ea8_3caec7bb;
    uint256 private constant ERF = 0x3e0375d4_bec0939f_3de71673_bcdbfb8d_3ba9f912_ba51a8af_38a3b8fe;
    uint256 private constant SIN = 0xbe2aaaa3_3c0883bb_b94ca939;
    uint256 private constant COS = 0x3d2aaaa5_bab6060d_37ccf076;
    uint256 private constant POW = 0x3f2aaaaa_3eccce06_3e91f021_3e774ff3;

    uint256 private constant GELU_W1 = 0xbfcc422a; // -0x1.988454p0
    uint256 private constant GELU_W3 = 0xbd922279; // -0x1.2444f2p-4
    uint256 private constant GELU_D3 = 0xbe5b33b6; // -0x1.b6676cp-3
    uint256 private constant GELU_FLAT = 0x41180000; // 9.5
    uint256 private constant SILU_FLAT = 0x42a00000; // 80
    uint256 private constant HALF = 0x3f000000;
    uint256 private constant MINUS_HALF = 0xbf000000;
    uint256 private constant MINUS_TWO = 0xc0000000;
    uint256 private constant TANH_SMALL = 0x3f200000; // 0.625
    uint256 private constant TAIL_MOST = 0x41800000; // 16
    uint256 private constant TAIL_K = 0x3ec00000; // 0.375
    uint256 private constant TAIL_C0 = 0x3e894f30;
    uint256 private constant TAIL_C1 = 0x3eb13516;
    uint256 private constant SQRT_2 = 0x3fb504f3;
    uint256 private constant ERF_MOST = 0x40800000; // 4
    uint256 private constant MINUS_DENSITY = 0xbecc422a; // -1 / sqrt(2 pi)
    uint256 private constant ANGLE_MOST = 0x48000000; // 2^17
    uint256 private constant TWO_OVER_PI = 0x3f22f983;
    uint256 private constant ROUNDER = 0x4b400000; // 1.5 * 2^23
    uint256 private constant LN2_HIGH = 0x3f317218;
    uint256 private constant LN2_LOW = 0xb102e308;
    uint256 private constant ALL_WHOLE = 0x4b000000; // from 2^23 on every number is an integer
    uint256 private constant ALL_EVEN = 0x4b800000; // from 2^24 on every number is even

    ////////////////////////////////////////////////////////////////
    //                         Elementary                         //
    ////////////////////////////////////////////////////////////////

    /// @notice -1, +0 or 1; NaN for a NaN.
    function sign(uint256 x) internal pure returns (uint256) {
        if (x.isNan()) return Binary32.NAN;
        if (x & Binary32.MAGNITUDE == 0) return 0;
        return Binary32.ONE | (x & Binary32.SIGN);
    }

    /// @notice The integer towards which x is rounded: down (-1), up (1), the nearest (0).
    function integer(uint256 x, int256 towards) internal pure returns (uint256 y) {
        uint256 a = x & Binary32.MAGNITUDE;
        if (a >= ALL_WHOLE) return x;
        uint256 signBit = x & Binary32.SIGN;
        if (towards == 0) {
            // Adding 2^23 rounds to an integer.
            y = a.add(ALL_WHOLE).sub(ALL_WHOLE);
        } else {
            y = _truncated(a);
            // Away from zero where the number lies on that side.
            if (y != a && (signBit == 0) == (towards > 0)) y = y.add(Binary32.ONE);
        }
        return y | signBit;
    }

    /// @dev 0 <= a < 2^24, without what stands behind the point.
    function _truncated(uint256 a) private pure returns (uint256) {
        if (a < Binary32.ONE) return 0;
        uint256 drop = 150 - (a >> 23);
        return drop > 23 ? a : (a >> drop) << drop;
    }

    function tanh(uint256 x) internal pure returns (uint256 y) {
        if (x.isNan()) return Binary32.NAN;
        uint256 a = x & Binary32.MAGNITUDE;
        if (a < TANH_SMALL) {
            uint256 s = a.mul(a);
            y = s.polynomial(TANH, 4).mul(s).fma(a, a);
        } else {
            y = Binary32.ONE.sub(Binary32.TWO.div(a.add(a).exp().add(Binary32.ONE)));
        }
        return y | (x & Binary32.SIGN);
    }

    function sigmoid(uint256 x) internal pure returns (uint256) {
        if (x.isNan()) return Binary32.NAN;
        uint256 e = (x | Binary32.SIGN).exp();
        bool above = Binary32.isLess(0, x);
        return (above ? Binary32.ONE : e).div(Binary32.ONE.add(e));
    }

    ////////////////////////////////////////////////////////////////
    //                   The normal distribution                  //
    ////////////////////////////////////////////////////////////////

    function erf(uint256 x) internal pure returns (uint256 y) {
        if (x.isNan()) return Binary32.NAN;
        uint256 a = x & Binary32.MAGNITUDE;
        if (a < Binary32.ONE) {
            y = a.fma(a.mul(a).polynomial(ERF, 6), a);
        } else {
            if (a > ERF_MOST) a = ERF_MOST;
            uint256 factor = MINUS_TWO.mul(_tailFactor(a.mul(SQRT_2)));
            y = factor.fma(_expOfProduct(a, a), Binary32.ONE);
        }
        return y | (x & Binary32.SIGN);
    }

    /// @dev y where x > 0, +0 where it is not, NaN where it is none.
    function relu(uint256 x, uint256 y) internal pure returns (uint256) {
        if (x.isNan()) return Binary32.NAN;
        return Binary32.isLess(0, x) ? y : 0;
    }

    function gelu(uint256 x) internal pure returns (uint256) {
        return x.div(Binary32.ONE.add(_geluExponent(x, x.mul(x)).exp()));
    }

    function geluGrad(uint256 x, uint256 dy) internal pure returns (uint256) {
        x = _clamp(x, GELU_FLAT);
        uint256 square = x.mul(x);
        uint256 e = _geluExponent(x, square).exp();
        uint256 s = Binary32.ONE.div(Binary32.ONE.add(e));
        uint256 slope = GELU_D3.fma(square, GELU_W1);
        uint256 m = x.mul(s).mul(e.mul(s));
        return m.negated().fma(slope, s).mul(dy);
    }

    function siluGrad(uint256 x, uint256 dy) internal pure returns (uint256) {
        x = _clamp(x, SILU_FLAT);
        uint256 e = x.negated().exp();
        uint256 s = Binary32.ONE.div(Binary32.ONE.add(e));
        return x.mul(s).fma(e.mul(s), s).mul(dy);
    }

    /// @dev x * (W1 + W3 * x^2).
    function _geluExponent(uint256 x, uint256 square) private pure returns (uint256) {
        return x.mul(GELU_W3.fma(square, GELU_W1));
    }

    /// @dev x, or the nearer of -limit and limit; NaN stays NaN.
    function _clamp(uint256 x, uint256 limit) private pure returns (uint256) {
        if (x.isLess(limit.negated())) return limit.negated();
        return limit.isLess(x) ? limit : x;
    }

    function geluErf(uint256 x) internal pure returns (uint256) {
        if (x.isNan()) return Binary32.NAN;
        uint256 a = _tailPlace(x);
        uint256 q = _expOfProduct(a, HALF.mul(a)).mul(a.mul(_tailFactor(a)));
        return Binary32.isLess(0, x) ? x.sub(q) : q.negated();
    }

    function geluErfSlope(uint256 x) internal pure returns (uint256) {
        if (x.isNan()) return Binary32.NAN;
        uint256 a = _tailPlace(x);
        uint256 q =
            _expOfProduct(a, HALF.mul(a)).mul(MINUS_DENSITY.fma(a, _tailFactor(a)));
        return Binary32.isLess(0, x) ? Binary32.ONE.sub(q) : q;
    }

    function _tailPlace(uint256 x) private pure returns (uint256 a) {
        a = x & Binary32.MAGNITUDE;
        if (a > TAIL_MOST) a = TAIL_MOST;
    }

    function _tailFactor(uint256 a) private pure returns (uint256 p) {
        uint256 t = Binary32.ONE.div(TAIL_K.fma(a, Binary32.ONE));
        uint256 u = t.sub(HALF);
        p = u.polynomial(TAIL, 7).fma(u, TAIL_C1).fma(u, TAIL_C0).mul(t);
    }

    /// @dev exp(-x*y) without the rounding of the product.
    function _expOfProduct(uint256 x, uint256 y) private pure returns (uint256) {
        uint256 h = x.mul(y).negated();
        return h.expOfSum(x.fma(y, h).negated());
    }

    ////////////////////////////////////////////////////////////////
    //                           Angles                           //
    ////////////////////////////////////////////////////////////////

    function sin(uint256 x) internal pure returns (uint256) {
        return x & Binary32.MAGNITUDE == 0 ? x : _sine(x, 0);
    }

    function cos(uint256 x) internal pure returns (uint256) {
        return _sine(x, 1);
    }

    /// @dev sin(x + quarters * pi/2)
    function _sine(uint256 x, uint256 quarters) private pure returns (uint256 y) {
        if (x & Binary32.MAGNITUDE > ANGLE_MOST) return Binary32.NAN;
        uint256 t = x.fma(TWO_OVER_PI, ROUNDER);
        unchecked {
            quarters += t - ROUNDER;
        }
        uint256 n = t.sub(ROUNDER);
        x = n.fma(0xbfc90fdb, x);
        x = n.fma(0x333bbd2e, x);
        x = n.fma(0x26f72ced, x);
        uint256 s = x.mul(x);
        if (quarters & 1 == 0) {
            y = s.polynomial(SIN, 2).mul(s).fma(x, x);
        } else {
            y = s.polynomial(COS, 2).fma(s.mul(s), MINUS_HALF.fma(s, Binary32.ONE));
        }
        if (quarters & 2 != 0) y = y.negated();
    }

    ////////////////////////////////////////////////////////////////
    //                           Powers                           //
    ////////////////////////////////////////////////////////////////

    function pow(uint256 x, uint256 y) internal pure returns (uint256 power) {
        uint256 b = y & Binary32.MAGNITUDE;
        if (b == 0 || x == Binary32.ONE) return Binary32.ONE;
        if (x.isNan() || y.isNan()) return Binary32.NAN;
        uint256 a = x & Binary32.MAGNITUDE;
        uint256 parity = _parity(b);
        if (a == 0 || a == Binary32.INFINITE) {
            power = (a == 0) == (y == b) ? 0 : Binary32.INFINITE;
        } else if (x != a && parity == 0) {
            return Binary32.NAN;
        } else if (b == Binary32.INFINITE) {
            if (a == Binary32.ONE) power = Binary32.ONE;
            else power = (a > Binary32.ONE) == (y == b) ? Binary32.INFINITE : 0;
        } else {
            power = _positivePower(a, y);
        }
        if (x != a && parity == 2) power = power.negated();
    }

    /// @dev Is b >= 0 an odd integer (2), an even one (1), or none (0)?
    function _parity(uint256 b) private pure returns (uint256) {
        if (b >= ALL_EVEN) return 1;
        if (_truncated(b) != b) return 0;
        if (b < Binary32.ONE) return 1;
        uint256 m = (b & Binary32.FRACTION) | Binary32.IMPLICIT;
        return (m >> (150 - (b >> 23))) & 1 == 1 ? 2 : 1;
    }

    function _positivePower(uint256 a, uint256 y) private pure returns (uint256) {
        (uint256 high, uint256 low) = _logOf(a);
        uint256 x = y.mul(high);
        return x.expOfSum(y.fma(low, y.fma(high, x.negated())));
    }

    /// @dev log(a) as a number and its rest, 0 < a < inf.
    function _logOf(uint256 a) private pure returns (uint256 high, uint256 low) {
        int256 k = 0;
        if (a < Binary32.IMPLICIT) {
            a = a.mul(0x4b000000); // 2^23
            k = -23;
        }
        int256 e = (int256(a) - 0x3f2aaaab) >> 23;
        uint256 s;
        (s, low) = _ratioOf(uint256(int256(a) - e * 2 ** 23));
        uint256 q = s.mul(s);
        low = q.mul(s).fma(q.polynomial(POW, 3), low.add(low));
        s = s.add(s);

        uint256 n = Binary32.fromInteger(k + e, 0);
        uint256 whole = n.mul(LN2_HIGH);
        high = whole.add(s);
        low = whole.sub(high).add(s).add(low);
        low = n.fma(LN2_LOW, n.fma(LN2_HIGH, whole.negated())).add(low);
        s = high.add(low);
        low = high.sub(s).add(low);
        high = s;
    }

    /// @dev (m-1) / (m+1) and its rest.
    function _ratioOf(uint256 m) private pure returns (uint256 s, uint256 rest) {
        uint256 f = m.sub(Binary32.ONE);
        uint256 d = m.add(Binary32.ONE);
        s = f.div(d);
        rest = s.negated().fma(d, f);
        rest = s.negated().fma(m.sub(d.sub(Binary32.ONE)), rest).div(d);
    }
}
