// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Evidence} from "./Evidence.sol";
import {IntegerRows} from "./IntegerRows.sol";
import {IRules} from "./IRules.sol";

/// @title RulesContraction
/// @notice The rules of quantize, contract, contract-ones and contract-onehot: engine's
/// rules_contraction.c, docs/ARITHMETIC.md "Exact contraction".
/// @dev Integers only. Elements may be anything, since a liar wrote them: a shift of 64 or more
/// makes a term 0, sums are modulo 2^64. Sizes come from the descriptor alone.
contract RulesContraction is IRules {
    using Evidence for Evidence.Exhibit;
    using Evidence for Evidence.Operand;

    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    // Kinds of operations and positions of their attributes: engine/op.h.
    uint256 internal constant OP_QUANTIZE = 24;
    uint256 internal constant OP_CONTRACT = 25;
    uint256 internal constant OP_CONTRACT_ONES = 26;
    uint256 internal constant OP_CONTRACT_ONEHOT = 27;

    uint256 internal constant VIEW_STRIDES = 6; // behind the six dims, in both views
    uint256 internal constant QUANTIZE_BITS = 12; // then the block
    uint256 internal constant CONTRACT_K = 12; // then bits and block, as in ones and one-hot
    uint256 internal constant CONTRACT_CAUSAL = 15;
    uint256 internal constant ONES_K = 1;
    uint256 internal constant ONEHOT_WIDTH = 1;
    uint256 internal constant ONEHOT_K = 2;

    uint256 internal constant PIECE = 128;
    int256 internal constant EXPONENT_ZERO = -149;
    int256 internal constant EXPONENT_POISON = 129;

    ////////////////////////////////////////////////////////////////
    //                           Types                            //
    ////////////////////////////////////////////////////////////////

    /// @notice What engine/contraction.h calls the shape of a contraction.
    struct Shape {
        uint256 bits;
        uint256 k;
        uint256 block;
        uint256 piece;
        uint256 blocks;
        uint256 pieces;
    }

    /// @notice A row of an operand: where its integers begin, its exponents, and what they say.
    struct Row {
        Evidence.Operand q;
        uint256 first; // the row's first integer
        uint256 exponents; // offset of the exponent of block 0
        int256 lowest;
        bool poison;
    }


    ////////////////////////////////////////////////////////////////
    //                           Rules                            //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRules
    function element(bytes calldata evidence) external pure returns (uint256 bits) {
        Evidence.Exhibit memory shown = Evidence.parse(evidence);
        bool done;
        if (shown.from != 0) {
            shown.badTarget();
        }
        (done, bits) = _part(shown, 0);
        if (!done) {
            shown.badTarget();
        }
    }

    /// @inheritdoc IRules
    function part(bytes calldata evidence, uint256 carry)
        external
        pure
        returns (bool done, uint256 result)
    {
        return _part(Evidence.parse(evidence), carry);
    }

    function _part(Evidence.Exhibit memory shown, uint256 carry)
        internal
        pure
        returns (bool done, uint256 result)
    {
        if (shown.operation == OP_CONTRACT) {
            return _contract(shown, carry);
        }
        if (shown.operation == OP_CONTRACT_ONES) {
            return _ones(shown, carry);
        }
        if (shown.operation == OP_CONTRACT_ONEHOT) {
            return _onehot(shown, carry);
        }
        if (shown.operation != OP_QUANTIZE || shown.output > 2) {
            revert Evidence.BadDescriptor();
        }
        if (shown.output == 0) {
            return _peak(shown, carry);
        }
        if (shown.from != 0 || shown.to != 0) {
            shown.badTarget();
        }
        return (true, shown.output == 1 ? _exponent(shown) : _integer(shown));
    }

    ////////////////////////////////////////////////////////////////
    //                          Quantize                          //
    ////////////////////////////////////////////////////////////////

    function _peak(Evidence.Exhibit memory shown, uint256 carry)
        private
        pure
        returns (bool done, uint256 result)
    {
        Shape memory shape = _quantizeShape(shown);
        uint256 row = shown.element / shape.pieces;
        uint256 start = shown.element % shape.pieces * shape.piece;
        uint256 count = shape.k - start < shape.piece ? shape.k - start : shape.piece;
        uint256 to = shown.from == 0 && shown.to == 0 ? count : shown.to;
        if (shown.from >= to || to > count) {
            shown.badTarget();
        }
        Evidence.Operand memory x = shown.operands[0];
        uint256[12] memory view_ = _view(shown);
        uint256 base = _rowPlace(view_, row);
        int256 peak = shown.from == 0 ? EXPONENT_ZERO : int256(int64(uint64(carry)));
        uint256 k = start + shown.from;
        uint256 end = start + to;
        uint256 inner = view_[5];
        uint256 innerStride = view_[11];
        uint256 outer = view_[4];
        uint256 outerStride = view_[10];
        for (; k < end; k++) {
            uint256 place = base + k % inner * innerStride + k / inner % outer * outerStride;
            int256 exponent = _exponentOf(x.get(place));
            if (exponent > peak) {
                peak = exponent;
            }
        }
        done = to == count;
        result = done ? _bits(peak) : uint64(int64(peak));
    }

    function _exponent(Evidence.Exhibit memory shown) private pure returns (uint256 bits) {
        Shape memory shape = _quantizeShape(shown);
        uint256 row = shown.element / shape.blocks;
        uint256 span = (shape.block + shape.piece - 1) / shape.piece;
        uint256 first = shown.element % shape.blocks * span;
        uint256 offset = _shorts(shown.operands[1], row * shape.pieces, shape.pieces);
        int256 top = type(int16).min;
        int256 own = type(int16).min;
        for (uint256 p = 0; p < shape.pieces; p++) {
            int256 peak = _short(offset, p);
            if (peak > top) {
                top = peak;
            }
            if (peak > own && p >= first && p < first + span) {
                own = peak;
            }
        }
        int256 least = top - int256(_window(shape));
        // Stored in 16 bits: only peaks that are lies do not fit.
        return _bits(int16(own > least ? own : least));
    }

    function _integer(Evidence.Exhibit memory shown) private pure returns (uint256 bits) {
        Shape memory shape = _quantizeShape(shown);
        uint256 row = shown.element / shape.k;
        uint256 k = shown.element % shape.k;
        uint256 exponentAt = row * shape.blocks + k / shape.block;
        int256 exponent = _short(_shorts(shown.operands[2], exponentAt, 1), 0);
        uint256[12] memory view_ = _view(shown);
        uint256 x = shown.operands[0].get(_rowPlace(view_, row) + _axisPlace(view_, k));
        if (exponent == EXPONENT_POISON) {
            return 0;
        }
        // An infinity or NaN here means that the exponent is a lie; it counts as a number.
        int256 scale = int256(shape.bits) - 1 - exponent;
        return _bits(Binary32.toInteger(x, scale, (1 << (shape.bits - 1)) - 1));
    }

    /// @dev E(x): the smallest e with |x| < 2^e.
    function _exponentOf(uint256 bits) private pure returns (int256 exponent) {
        uint256 magnitude = bits & 0x7fffffff;
        if (magnitude >= 0x7f800000) {
            return EXPONENT_POISON;
        }
        if (magnitude >= 0x00800000) {
            return int256(magnitude >> 23) - 126;
        }
        exponent = EXPONENT_ZERO;
        while (magnitude != 0) {
            magnitude >>= 1;
            exponent++;
        }
    }

    ////////////////////////////////////////////////////////////////
    //                        Contractions                        //
    ////////////////////////////////////////////////////////////////

    function _contract(Evidence.Exhibit memory shown, uint256 carry)
        private
        pure
        returns (bool done, uint256 result)
    {
        Shape memory shape = _shape(shown, CONTRACT_K);
        done = _checkPart(shown, shape);
        uint256[12] memory view_ = _view(shown);
        (uint256 batch, uint256 m, uint256 n) = _placeOf(view_, shown.element);
        uint256 causal = shown.natural(CONTRACT_CAUSAL);
        if (causal > 0 && n > m % causal) {
            return (done, 0);
        }
        Row memory a =
            _row(shown.operands[0], shown.operands[1], shape, batch * view_[2] * view_[3] + m);
        Row memory b =
            _row(shown.operands[2], shown.operands[3], shape, batch * view_[4] * view_[5] + n);
        if (a.poison || b.poison) {
            return (done, done ? Evidence.NAN_BITS : 0);
        }
        uint256 sum = shown.from == 0 ? 0 : carry;
        unchecked {
            sum += _products(shape, a, b, shown.from, shown.to);
        }
        return _result(done, sum, a.lowest + b.lowest - 2 * (int256(shape.bits) - 1));
    }

    function _ones(Evidence.Exhibit memory shown, uint256 carry)
        private
        pure
        returns (bool done, uint256 result)
    {
        Shape memory shape = _shape(shown, ONES_K);
        done = _checkPart(shown, shape);
        Row memory row = _row(shown.operands[0], shown.operands[1], shape, shown.element);
        if (row.poison) {
            return (done, done ? Evidence.NAN_BITS : 0);
        }
        uint256 sum = shown.from == 0 ? 0 : carry;
        uint256 offset = row.q.span(row.first + shown.from, shown.to - shown.from);
        unchecked {
            for (uint256 k = shown.from; k < shown.to;) {
                uint256 count = _run(shape, k, shown.to);
                int256 term = shape.bits == 22
                    ? IntegerRows.sum32(offset, count)
                    : IntegerRows.sum16(offset, count);
                sum += _shifted(term, _short(row.exponents, k / shape.block) - row.lowest);
                offset += count << row.q.shift;
                k += count;
            }
        }
        return _result(done, sum, row.lowest - (int256(shape.bits) - 1));
    }

    function _onehot(Evidence.Exhibit memory shown, uint256 carry)
        private
        pure
        returns (bool done, uint256 result)
    {
        Shape memory shape = _shape(shown, ONEHOT_K);
        done = _checkPart(shown, shape);
        uint256 width = shown.natural(ONEHOT_WIDTH);
        Row memory row =
            _row(shown.operands[1], shown.operands[2], shape, shown.element % width);
        if (row.poison) {
            return (done, done ? Evidence.NAN_BITS : 0);
        }
        uint256 sum = shown.from == 0 ? 0 : carry;
        unchecked {
            sum += _chosen(shown, shape, row, shown.element / width);
        }
        return _result(done, sum, row.lowest - (int256(shape.bits) - 1));
    }

    /// @dev The sum of the row's integers at the places k of this part whose index is the word.
    function _chosen(
        Evidence.Exhibit memory shown,
        Shape memory shape,
        Row memory row,
        uint256 word
    ) private pure returns (uint256 sum) {
        Evidence.Operand memory index = shown.operands[0];
        if (index.elementType != Evidence.U32 || word > type(uint32).max) {
            revert Evidence.BadDescriptor();
        }
        uint256 offset = index.span(shown.from, shown.to - shown.from);
        // Eight times the word, as calldata has it.
        uint256 pattern = Evidence.swap32(
            word * 0x0000000100000001000000010000000100000001000000010000000100000001
        );
        unchecked {
            for (uint256 k = shown.from; k < shown.to; k += 8) {
                uint256 zeros;
                assembly {
                    zeros := xor(calldataload(offset), pattern)
                    // No lane is zero where this is 0; seldom the other way round.
                    let ones := 0x100000001000000010000000100000001000000010000000100000001
                    zeros := and(and(sub(zeros, ones), not(zeros)), shl(31, ones))
                }
                offset += 32;
                if (zeros == 0) {
                    continue;
                }
                uint256 end = k + 8 < shown.to ? k + 8 : shown.to;
                for (uint256 i = k; i < end; i++) {
                    int256 shift = _short(row.exponents, i / shape.block) - row.lowest;
                    if (shift < 64 && index.get(i) == word) {
                        int256 q = int32(uint32(row.q.get(row.first + i)));
                        sum += uint256(q) << uint256(shift);
                    }
                }
            }
        }
    }

    function _products(
        Shape memory shape,
        Row memory a,
        Row memory b,
        uint256 from,
        uint256 to
    ) private pure returns (uint256 sum) {
        uint256 offsetA = a.q.span(a.first + from, to - from);
        uint256 offsetB = b.q.span(b.first + from, to - from);
        uint256 shift = a.q.shift;
        int256 lowest = a.lowest + b.lowest;
        unchecked {
            for (uint256 k = from; k < to;) {
                uint256 count = _run(shape, k, to);
                uint256 number = k / shape.block;
                int256 term = shift == 2
                    ? IntegerRows.dot32(offsetA, offsetB, count)
                    : IntegerRows.dot16(offsetA, offsetB, count);
                sum += _shifted(
                    term, _short(a.exponents, number) + _short(b.exponents, number) - lowest
                );
                offsetA += count << shift;
                offsetB += count << shift;
                k += count;
            }
        }
    }

    /// @dev How many elements from k on belong to one block and to this part.
    function _run(Shape memory shape, uint256 k, uint256 to) private pure returns (uint256) {
        unchecked {
            uint256 end = (k / shape.block + 1) * shape.block;
            return (end < to ? end : to) - k;
        }
    }

    /// @dev term * 2^shift modulo 2^256, or 0; shift is not negative.
    function _shifted(int256 term, int256 shift) private pure returns (uint256) {
        return shift < 64 ? uint256(term) << uint256(shift) : 0;
    }

    function _result(bool done, uint256 sum, int256 exponent)
        private
        pure
        returns (bool, uint256)
    {
        sum &= type(uint64).max;
        return (done, done ? Binary32.fromInteger(int64(uint64(sum)), exponent) : sum);
    }

    /// @dev Opens a row: all of its exponents are shown.
    function _row(
        Evidence.Operand memory q,
        Evidence.Operand memory exponents,
        Shape memory shape,
        uint256 number
    ) private pure returns (Row memory row) {
        if (q.elementType != (shape.bits == 22 ? Evidence.I32 : Evidence.I16)) {
            revert Evidence.BadDescriptor();
        }
        row.q = q;
        row.first = number * shape.k;
        row.exponents = _shorts(exponents, number * shape.blocks, shape.blocks);
        int256 lowest = type(int16).max;
        for (uint256 b = 0; b < shape.blocks; b++) {
            int256 exponent = _short(row.exponents, b);
            if (exponent < lowest) {
                lowest = exponent;
            }
            if (exponent == EXPONENT_POISON) {
                row.poison = true;
            }
        }
        row.lowest = lowest;
    }

    ////////////////////////////////////////////////////////////////
    //                          Geometry                          //
    ////////////////////////////////////////////////////////////////

    /// @dev Does this part end where the axis does? Parts are cut where pieces are.
    function _checkPart(Evidence.Exhibit memory shown, Shape memory shape)
        private
        pure
        returns (bool done)
    {
        done = shown.to == shape.k;
        if (
            shown.from >= shown.to || shown.to > shape.k || shown.from % shape.piece != 0
                || (!done && shown.to % shape.piece != 0)
        ) {
            shown.badTarget();
        }
    }

    function _quantizeShape(Evidence.Exhibit memory shown) private pure returns (Shape memory) {
        uint256 k = shown.size(4) * shown.size(5);
        return _shapeOf(k, shown.natural(QUANTIZE_BITS), shown.natural(QUANTIZE_BITS + 1));
    }

    /// @dev K, bits and block follow each other.
    function _shape(Evidence.Exhibit memory shown, uint256 first)
        private
        pure
        returns (Shape memory)
    {
        return _shapeOf(
            shown.size(first), shown.natural(first + 1), shown.natural(first + 2)
        );
    }

    function _shapeOf(uint256 k, uint256 bits, uint256 run)
        private
        pure
        returns (Shape memory shape)
    {
        bool known = bits == 14 || bits == 15 || bits == 16 || bits == 22;
        if (!known || k == 0 || k > Evidence.ELEMENTS_MAX || run > Evidence.ELEMENTS_MAX) {
            revert Evidence.BadDescriptor();
        }
        shape.bits = bits;
        shape.k = k;
        shape.block = run == 0 ? k : run;
        shape.piece = run == 0 || run > PIECE ? PIECE : run;
        shape.blocks = (k + shape.block - 1) / shape.block;
        shape.pieces = (k + shape.piece - 1) / shape.piece;
    }

    /// @dev W of docs/ARITHMETIC.md; no operation leaves no room for it.
    function _window(Shape memory shape) private pure returns (uint256) {
        uint256 log = 0;
        while (uint256(1) << log < shape.k) {
            log++;
        }
        return (62 - 2 * (shape.bits - 1) - log) / 2;
    }

    /// @dev Six dims, then six strides.
    function _view(Evidence.Exhibit memory shown) private pure returns (uint256[12] memory view_) {
        for (uint256 axis = 0; axis < 6; axis++) {
            view_[axis] = shown.size(axis);
            view_[axis + VIEW_STRIDES] = shown.natural(axis + VIEW_STRIDES);
        }
    }

    /// @dev Where a row of quantize's view begins.
    function _rowPlace(uint256[12] memory view_, uint256 row) private pure returns (uint256 place) {
        for (uint256 axis = 4; axis > 0; axis--) {
            place += row % view_[axis - 1] * view_[axis - 1 + VIEW_STRIDES];
            row /= view_[axis - 1];
        }
    }

    /// @dev How far element k of a row of quantize's view lies from the row's begin.
    function _axisPlace(uint256[12] memory view_, uint256 k) private pure returns (uint256) {
        return k % view_[5] * view_[11] + k / view_[5] % view_[4] * view_[10];
    }

    /// @dev The element stored at `index` of contract's output. Strides are a permutation of it, so
    /// the axes from the widest stride down give each index by division.
    function _placeOf(uint256[12] memory view_, uint256 index)
        private
        pure
        returns (uint256 batch, uint256 m, uint256 n)
    {
        uint256[6] memory places;
        uint256 done = 0;
        for (uint256 turn = 0; turn < 6; turn++) {
            uint256 widest = 6;
            for (uint256 axis = 0; axis < 6; axis++) {
                if (
                    done >> axis & 1 == 0 && view_[axis] > 1
                        && (widest == 6
                            || view_[axis + VIEW_STRIDES] > view_[widest + VIEW_STRIDES])
                ) {
                    widest = axis;
                }
            }
            if (widest == 6) {
                break;
            }
            done |= 1 << widest;
            places[widest] = index / view_[widest + VIEW_STRIDES];
            index %= view_[widest + VIEW_STRIDES];
        }
        batch = places[0] * view_[1] + places[1];
        m = places[2] * view_[3] + places[3];
        n = places[4] * view_[5] + places[5];
    }

    ////////////////////////////////////////////////////////////////
    //                           Values                           //
    ////////////////////////////////////////////////////////////////

    /// @dev A run of numbers of 16 bits in an operand: exponents or peaks.
    function _shorts(Evidence.Operand memory operand, uint256 first, uint256 count)
        private
        pure
        returns (uint256 offset)
    {
        if (operand.elementType != Evidence.I16) {
            revert Evidence.BadDescriptor();
        }
        return operand.span(first, count);
    }

    function _short(uint256 offset, uint256 slot) private pure returns (int256 value) {
        assembly {
            let word := calldataload(add(offset, shl(1, slot)))
            value := signextend(1, or(byte(0, word), shl(8, byte(1, word))))
        }
    }

    /// @dev A number as elements are: 32 bits in two's complement.
    function _bits(int256 value) private pure returns (uint256) {
        return uint32(int32(value));
    }
}
