// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Evidence} from "./Evidence.sol";
import {IntegerRows} from "./IntegerRows.sol";
import {IParts} from "./IParts.sol";
import {IRules} from "./IRules.sol";
import {Kinds} from "./Kinds.sol";

/// @title RulesContraction
/// @notice The rules of quantize, contract, contract-ones, contract-onehot, contract-chosen and
/// contract-chosen-rows: engine's rules_contraction.c, docs/ARITHMETIC.md "Exact contraction".
/// @dev Integers only. Elements may be anything, since a liar wrote them: a shift of 64 or more
/// makes a term 0, sums are modulo 2^64. Sizes come from the descriptor alone.
contract RulesContraction is IParts, Kinds {
    using Evidence for Evidence.Exhibit;
    using Evidence for Evidence.Operand;

    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    uint256 internal constant VIEW_STRIDES = QUANTIZE_SB0; // behind the six dims, in both views
    int256 internal constant SHIFT_MAX = 126;
    uint256 internal constant INFINITE = 0x7f800000;
    uint256 internal constant MAGNITUDE = 0x7fffffff;

    // How much of an axis is a part, and how many parts there may be: engine/rules/rule.h.
    uint256 internal constant FOLD_SUM = 1;
    uint256 internal constant FOLD_MAXIMUM = 2;
    uint256 internal constant PART_OF_SUM = 1024;
    uint256 internal constant PART_OF_PIECE = 2;
    uint256 internal constant PART_OF_EXPONENTS = 1024;
    uint256 internal constant PARTS_MAX = 2048;

    uint256 internal constant PIECE = 128;
    int256 internal constant EXPONENT_ZERO = -149;
    int256 internal constant EXPONENT_POISON = 129;

    ////////////////////////////////////////////////////////////////
    //                           Types                            //
    ////////////////////////////////////////////////////////////////

    /// @notice What engine/ops/contraction.h calls the shape of a contraction.
    struct Shape {
        uint256 bits;
        uint256 k;
        uint256 block;
        uint256 piece;
        uint256 blocks;
        uint256 pieces;
    }

    /// @notice A row of an operand: where its integers begin, and what the exponents of a range of
    /// it say.
    struct Row {
        Evidence.Operand q;
        uint256 first; // the row's first integer
        uint256 exponents; // offset of the exponent of the range's first block
        int256 lowest;
        bool poison;
    }

    /// @notice What is looked at of an axis. A part has the exponent that was replied for its sum.
    struct Range {
        uint256 from;
        uint256 to;
        bool isPart;
        int256 exponent;
    }

    /// @notice A sum under way: blocks are shifted by their exponents less `base`.
    struct Sum {
        uint256 value; // modulo 2^256
        int256 base;
        int256 most; // windows of its rows: no shift of a block that is right is more
        bool unfit;
    }

    ////////////////////////////////////////////////////////////////
    //                           Rules                            //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRules
    function element(bytes calldata evidence) external pure returns (uint256 bits) {
        Evidence.Exhibit memory shown = Evidence.parse(evidence);
        if (shown.operation == OP_QUANTIZE && shown.output == 2) return _integer(shown);
        if (shown.operation == OP_EQUILIBRATE) return _equilibrium(shown);
        Part memory whole = _fold(shown, Range(0, _whole(shown), false, 0));
        return whole.settled ? whole.bits : _joined(whole.fold, whole.exponent, whole.value);
    }

    /// @inheritdoc IParts
    function axisOf(bytes calldata evidence) external pure returns (Axis memory) {
        return _axis(Evidence.parse(evidence));
    }

    /// @inheritdoc IParts
    function part(bytes calldata evidence) external pure returns (Part memory found) {
        Evidence.Exhibit memory shown = Evidence.parse(evidence);
        Axis memory axis = _axis(shown);
        if (axis.count == 0) shown.badTarget();
        found = _fold(shown, Range(axis.from, axis.from + axis.length, true, _replied(shown)));
        found.count = axis.count;
    }

    /// @dev The axis of the element, or the part of it that evidence of kind PART names.
    function _axis(Evidence.Exhibit memory shown) private pure returns (Axis memory axis) {
        bool isPart = shown.head.kind == Evidence.PART;
        if (!_hasAxis(shown)) {
            if (isPart) shown.badTarget();
            return axis;
        }
        axis.fold = shown.operation == OP_QUANTIZE ? FOLD_MAXIMUM : FOLD_SUM;
        axis.length = _whole(shown);
        if (isPart) _descend(axis, shown);
        (, axis.parts) = _parts(shown, axis.length);
    }

    /// @dev From the range that was replied about into one of its parts.
    function _descend(Axis memory axis, Evidence.Exhibit memory shown) private pure {
        if (shown.rangeSize != 0) {
            uint256 whole = axis.length;
            uint256 offset = shown.range;
            assembly {
                let word := calldataload(offset)
                mstore(add(axis, 64), shr(192, word)) // from
                mstore(add(axis, 96), and(shr(128, word), 0xffffffffffffffff)) // length
            }
            if (axis.length == 0 || axis.from + axis.length > whole) shown.badTarget();
        }
        uint256 size;
        (size, axis.count) = _parts(shown, axis.length);
        if (shown.part >= axis.count) shown.badTarget();
        axis.from += shown.part * size;
        axis.length -= shown.part * size;
        if (axis.length > size) axis.length = size;
    }

    function _hasAxis(Evidence.Exhibit memory shown) private pure returns (bool) {
        return shown.operation != OP_EQUILIBRATE
            && (shown.operation != OP_QUANTIZE || shown.output != 2);
    }

    /// @dev The exponent in the reply: its first four bytes. An empty one proves nothing later.
    function _replied(Evidence.Exhibit memory shown) private pure returns (int256 exponent) {
        uint256 offset = shown.replied;
        if (shown.repliedSize < 4) return 0;
        assembly {
            exponent := sar(224, calldataload(offset))
        }
    }

    /// @inheritdoc IParts
    function join(uint256 fold, bytes calldata replied)
        external
        pure
        returns (uint256 bits, int256 value)
    {
        int256 exponent = int32(uint32(bytes4(replied)));
        value = fold == FOLD_SUM ? int256(0) : type(int256).min;
        unchecked {
            uint256 offset;
            uint256 end;
            assembly {
                offset := add(replied.offset, 4)
                end := add(replied.offset, replied.length)
            }
            for (; offset < end; offset += 8) {
                int256 next;
                assembly {
                    next := sar(192, calldataload(offset))
                }
                if (fold == FOLD_SUM) {
                    value += next;
                } else if (next > value) {
                    value = next;
                }
            }
        }
        if (fold == FOLD_SUM) value = int64(value);
        bits = _joined(fold, exponent, value);
    }

    /// @dev The elements of the accused element's axis.
    function _whole(Evidence.Exhibit memory shown) private pure returns (uint256) {
        if (shown.operation == OP_QUANTIZE) {
            Shape memory shape = _quantizeShape(shown);
            uint256 start = shown.element % shape.pieces * shape.piece;
            if (shown.output == 1) return shape.pieces;
            return shape.k - start < shape.piece ? shape.k - start : shape.piece;
        }
        if (shown.operation == OP_CONTRACT) return _shape(shown, CONTRACT_K).k;
        if (shown.operation == OP_CONTRACT_ONES) return _shape(shown, ONES_K).k;
        if (shown.operation == OP_CONTRACT_ONEHOT) return _shape(shown, ONEHOT_K).k;
        if (shown.operation == OP_CONTRACT_CHOSEN) return _shape(shown, CHOSEN_K).k;
        if (shown.operation == OP_CONTRACT_CHOSEN_ROWS) return _shape(shown, CHOSEN_SUM_K).k;
        revert Evidence.BadDescriptor();
    }

    /// @return size Elements of a part; the last may have fewer.
    /// @return count Of parts.
    function _parts(Evidence.Exhibit memory shown, uint256 length)
        private
        pure
        returns (uint256 size, uint256 count)
    {
        size = shown.operation != OP_QUANTIZE
            ? PART_OF_SUM
            : shown.output == 0 ? PART_OF_PIECE : PART_OF_EXPONENTS;
        while (length > size * PARTS_MAX) {
            size *= 2;
        }
        count = (length + size - 1) / size;
    }

    function _fold(Evidence.Exhibit memory shown, Range memory range)
        private
        pure
        returns (Part memory found)
    {
        found.fold = FOLD_SUM;
        if (shown.operation == OP_CONTRACT) {
            _contract(found, shown, range);
        } else if (shown.operation == OP_CONTRACT_ONES) {
            _ones(found, shown, range);
        } else if (shown.operation == OP_CONTRACT_ONEHOT) {
            _onehot(found, shown, range);
        } else if (shown.operation == OP_CONTRACT_CHOSEN) {
            _chosen(found, shown, range);
        } else if (shown.operation == OP_CONTRACT_CHOSEN_ROWS) {
            _chosenRows(found, shown, range);
        } else {
            found.fold = FOLD_MAXIMUM;
            if (shown.output == 0) {
                _peak(found, shown, range);
            } else {
                _exponent(found, shown, range);
            }
        }
    }

    /// @dev A sum is one modulo 2^64; a peak is stored in 16 bits.
    function _joined(uint256 fold, int256 exponent, int256 value) private pure returns (uint256) {
        return fold == FOLD_SUM
            ? Binary32.fromInteger(int64(value), exponent)
            : _bits(int16(value));
    }

    ////////////////////////////////////////////////////////////////
    //                          Quantize                          //
    ////////////////////////////////////////////////////////////////

    function _peak(Part memory found, Evidence.Exhibit memory shown, Range memory range)
        private
        pure
    {
        Shape memory shape = _quantizeShape(shown);
        uint256 row = shown.element / shape.pieces;
        uint256 start = shown.element % shape.pieces * shape.piece;
        Evidence.Operand memory x = shown.operands[0];
        uint256[12] memory view_ = _view(shown);
        uint256 base = _rowPlace(view_, row);
        int256 peak = EXPONENT_ZERO;
        uint256 k = start + range.from;
        uint256 end = start + range.to;
        uint256 inner = view_[5];
        uint256 innerStride = view_[11];
        uint256 outer = view_[4];
        uint256 outerStride = view_[10];
        uint256 shift = _shifts(shown, view_, row, k, end - k);
        for (; k < end; k++) {
            uint256 place = base + k % inner * innerStride + k / inner % outer * outerStride;
            uint256 bits = x.widened(place);
            if (shift != 0) {
                bits = _shiftedBy(bits, _short(shift, 0));
                shift += 2;
            }
            int256 exponent = _exponentOf(bits);
            if (exponent > peak) {
                peak = exponent;
            }
        }
        found.value = peak;
    }

    /// @dev A peak counts as it is in the block, and less by the window elsewhere.
    function _exponent(Part memory found, Evidence.Exhibit memory shown, Range memory range)
        private
        pure
    {
        Shape memory shape = _quantizeShape(shown);
        uint256 row = shown.element / shape.blocks;
        uint256 span = (shape.block + shape.piece - 1) / shape.piece;
        uint256 first = shown.element % shape.blocks * span;
        uint256 to = range.to;
        uint256 offset = _shorts(
            shown.operands[shown.inputs], row * shape.pieces + range.from, to - range.from
        );
        int256 window = int256(_window(shape));
        int256 most = type(int32).min;
        unchecked {
            for (uint256 p = range.from; p < to; p++) {
                int256 peak = _short(offset, 0);
                offset += 2;
                if (p < first || p >= first + span) {
                    peak -= window;
                }
                if (peak > most) {
                    most = peak;
                }
            }
        }
        found.value = most;
    }

    function _integer(Evidence.Exhibit memory shown) private pure returns (uint256 bits) {
        Shape memory shape = _quantizeShape(shown);
        uint256 row = shown.element / shape.k;
        uint256 k = shown.element % shape.k;
        uint256 exponentAt = row * shape.blocks + k / shape.block;
        int256 exponent = _short(_shorts(shown.operands[shown.inputs + 1], exponentAt, 1), 0);
        uint256[12] memory view_ = _view(shown);
        uint256 x = shown.operands[0].widened(_rowPlace(view_, row) + _axisPlace(view_, k));
        uint256 shift = _shifts(shown, view_, row, k, 1);
        if (shift != 0) {
            x = _shiftedBy(x, _short(shift, 0));
        }
        if (exponent == EXPONENT_POISON) {
            return 0;
        }
        // An infinity or NaN here means that the exponent is a lie; it counts as a number.
        int256 scale = int256(shape.bits) - 1 - exponent;
        return _bits(Binary32.toInteger(x, scale, (1 << (shape.bits - 1)) - 1));
    }

    /// @dev Where the shifts of elements k.. of a row stand; 0: there are none.
    function _shifts(
        Evidence.Exhibit memory shown,
        uint256[12] memory view_,
        uint256 row,
        uint256 k,
        uint256 count
    ) private pure returns (uint256) {
        if (shown.inputs == 1) return 0;
        uint256 batch = row / (view_[2] * view_[3]);
        return _shorts(shown.operands[1], batch * view_[4] * view_[5] + k, count);
    }

    /// @dev x * 2^-c, of which no more than 126 places count; a finite x stays finite.
    function _shiftedBy(uint256 x, int256 c) private pure returns (uint256 shifted) {
        if (c > SHIFT_MAX) c = SHIFT_MAX;
        if (c < -SHIFT_MAX) c = -SHIFT_MAX;
        shifted = Binary32.mul(x, uint256(127 - c) << 23);
        if (shifted & MAGNITUDE == INFINITE && x & MAGNITUDE < INFINITE) shifted--;
    }

    ////////////////////////////////////////////////////////////////
    //                        Equilibrate                         //
    ////////////////////////////////////////////////////////////////

    /// @dev Half of how far apart the tops of two rows are, rounded down; or the top of the row.
    function _equilibrium(Evidence.Exhibit memory shown) private pure returns (uint256) {
        int256 c = _top(shown.operands[0], shown.element, shown.size(1));
        if (shown.inputs == 2) {
            c = (c - _top(shown.operands[1], shown.element, shown.size(2))) >> 1;
        }
        return _bits(int16(shown.output == 0 ? c : -c));
    }

    function _top(Evidence.Operand memory exponents, uint256 row, uint256 width)
        private
        pure
        returns (int256 top)
    {
        uint256 offset = _shorts(exponents, row * width, width);
        top = type(int16).min;
        unchecked {
            for (uint256 i = 0; i < width; i++) {
                int256 exponent = _short(offset, 0);
                offset += 2;
                if (exponent > top) top = exponent;
            }
        }
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

    function _contract(Part memory found, Evidence.Exhibit memory shown, Range memory range)
        private
        pure
    {
        Shape memory shape = _shape(shown, CONTRACT_K);
        uint256[12] memory view_ = _view(shown);
        (uint256 batch, uint256 m, uint256 n) = _placeOf(view_, shown.element);
        uint256 causal = shown.natural(CONTRACT_CAUSAL);
        if (causal > 0 && n > m % causal) {
            found.settled = true; // and a zero
            return;
        }
        uint256 number = batch * view_[2] * view_[3] + m;
        Row memory a = _row(shown.operands[0], shown.operands[1], shape, number, range);
        number = batch * view_[4] * view_[5] + n;
        Row memory b = _row(shown.operands[2], shown.operands[3], shape, number, range);
        _product(found, shape, a, b, range);
    }

    /// @dev Row of A by the row that an expert has for the column; NaN where the index is none.
    function _chosen(Part memory found, Evidence.Exhibit memory shown, Range memory range)
        private
        pure
    {
        Shape memory shape = _shape(shown, CHOSEN_K);
        uint256 width = shown.natural(CHOSEN_WIDTH);
        uint256 number = shown.element / width;
        if (shown.operands[2].elementType != Evidence.U32) revert Evidence.BadDescriptor();
        uint256 expert = shown.operands[2].get(number);
        if (expert >= shown.natural(CHOSEN_EXPERTS)) {
            _settle(found, true);
            return;
        }
        Row memory a = _row(shown.operands[0], shown.operands[1], shape, number, range);
        number = expert * width + shown.element % width;
        Row memory b = _row(shown.operands[3], shown.operands[4], shape, number, range);
        _product(found, shape, a, b, range);
    }

    function _product(
        Part memory found,
        Shape memory shape,
        Row memory a,
        Row memory b,
        Range memory range
    ) private pure {
        bool poison = a.poison || b.poison;
        if (!poison || range.isPart) {
            Sum memory sum = _sum(shape, range, a.lowest + b.lowest, 2);
            _products(sum, shape, a, b, range);
            _setSum(found, sum, shape, 2);
        }
        _settle(found, poison);
    }

    /// @dev The products of the places whose index is the element's expert.
    function _chosenRows(Part memory found, Evidence.Exhibit memory shown, Range memory range)
        private
        pure
    {
        Shape memory shape = _shape(shown, CHOSEN_SUM_K);
        uint256 columns = shown.natural(CHOSEN_SUM_N);
        uint256 rows = shown.natural(CHOSEN_SUM_M);
        uint256 number = shown.element / columns;
        Row memory a = _row(shown.operands[1], shown.operands[2], shape, number % rows, range);
        Row memory b =
            _row(shown.operands[3], shown.operands[4], shape, shown.element % columns, range);
        bool poison = a.poison || b.poison;
        if (!poison || range.isPart) {
            Sum memory sum = _sum(shape, range, a.lowest + b.lowest, 2);
            _matches(sum, shown, shape, a, b, range, number / rows);
            _setSum(found, sum, shape, 2);
        }
        _settle(found, poison);
    }

    function _ones(Part memory found, Evidence.Exhibit memory shown, Range memory range)
        private
        pure
    {
        Shape memory shape = _shape(shown, ONES_K);
        Row memory row = _row(shown.operands[0], shown.operands[1], shape, shown.element, range);
        if (!row.poison || range.isPart) {
            Sum memory sum = _sum(shape, range, row.lowest, 1);
            _units(sum, shape, row, range);
            _setSum(found, sum, shape, 1);
        }
        _settle(found, row.poison);
    }

    function _onehot(Part memory found, Evidence.Exhibit memory shown, Range memory range)
        private
        pure
    {
        Shape memory shape = _shape(shown, ONEHOT_K);
        uint256 width = shown.natural(ONEHOT_WIDTH);
        uint256 number = shown.element % width;
        Row memory row = _row(shown.operands[1], shown.operands[2], shape, number, range);
        if (!row.poison || range.isPart) {
            Sum memory sum = _sum(shape, range, row.lowest, 1);
            _matches(sum, shown, shape, row, row, range, shown.element / width);
            _setSum(found, sum, shape, 1);
        }
        _settle(found, row.poison);
    }

    /// @dev A sum over so many rows. A part's exponent is given; of the whole it is the lowest.
    function _sum(Shape memory shape, Range memory range, int256 lowest, uint256 rows)
        private
        pure
        returns (Sum memory sum)
    {
        int256 unit = int256(rows * (shape.bits - 1));
        sum.base = range.isPart ? range.exponent + unit : lowest;
        sum.most = int256(rows * _window(shape));
    }

    /// @dev What poisons makes the element a NaN, for any sum.
    function _settle(Part memory found, bool poison) private pure {
        if (poison) {
            found.settled = true;
            found.bits = Evidence.NAN_BITS;
        }
    }

    /// @dev A sum modulo 2^64, as a number with a sign.
    function _setSum(Part memory found, Sum memory sum, Shape memory shape, uint256 rows)
        private
        pure
    {
        found.value = int64(uint64(sum.value));
        found.unfit = sum.unfit;
        found.exponent = sum.base - int256(rows * (shape.bits - 1));
    }

    /// @dev Adds the terms of a block, shifted; by less than 0 or more than 63 they are 0.
    function _add(Sum memory sum, int256 terms, int256 exponent) private pure {
        unchecked {
            int256 shift = exponent - sum.base;
            if (shift < 0 || shift > sum.most) {
                sum.unfit = true;
            }
            if (shift >= 0 && shift < 64) {
                sum.value += uint256(terms) << uint256(shift);
            }
        }
    }

    function _units(Sum memory sum, Shape memory shape, Row memory row, Range memory range)
        private
        pure
    {
        uint256 to = range.to;
        uint256 offset = row.q.span(row.first + range.from, to - range.from);
        uint256 exponents = row.exponents;
        unchecked {
            for (uint256 k = range.from; k < to;) {
                uint256 count = _run(shape, k, to);
                int256 terms = shape.bits == 22
                    ? IntegerRows.sum32(offset, count)
                    : IntegerRows.sum16(offset, count);
                _add(sum, terms, _short(exponents, 0));
                exponents += 2;
                offset += count << row.q.shift;
                k += count;
            }
        }
    }

    /// @dev The sum at the places k of the range whose index is the word: of the row's integers, or
    /// of their products with those of the other row where it is another operand.
    function _matches(
        Sum memory sum,
        Evidence.Exhibit memory shown,
        Shape memory shape,
        Row memory row,
        Row memory other,
        Range memory range,
        uint256 word
    ) private pure {
        Evidence.Operand memory index = shown.operands[0];
        if (index.elementType != Evidence.U32 || word > type(uint32).max) {
            revert Evidence.BadDescriptor();
        }
        bool pair = shown.operation == OP_CONTRACT_CHOSEN_ROWS;
        uint256 to = range.to;
        uint256 offset = index.span(range.from, to - range.from);
        uint256 slot;
        unchecked {
            for (uint256 k = range.from; k < to; slot++) {
                uint256 count = _run(shape, k, to);
                int256 exponent = _short(row.exponents, slot);
                if (pair) {
                    exponent += _short(other.exponents, slot);
                    _add(sum, _productsOf(row, other, word, offset, k, count), exponent);
                } else {
                    _add(sum, _integersOf(row, word, offset, k, count), exponent);
                }
                offset += count << 2;
                k += count;
            }
        }
    }

    /// @dev Eight words at an offset, zero in the lanes of those that are the word; and whether
    /// there may be one.
    function _compared(uint256 offset, uint256 pattern)
        private
        pure
        returns (uint256 differences, bool some)
    {
        unchecked {
            uint256 zeros;
            assembly {
                differences := xor(calldataload(offset), pattern)
                // No lane is zero where this is 0; seldom the other way round.
                let ones := 0x100000001000000010000000100000001000000010000000100000001
                zeros := and(and(sub(differences, ones), not(differences)), shl(31, ones))
            }
            some = zeros != 0;
        }
    }

    /// @dev Eight times the word, as calldata has it.
    function _pattern(uint256 word) private pure returns (uint256) {
        return Evidence.swap32(
            word * 0x0000000100000001000000010000000100000001000000010000000100000001
        );
    }

    /// @dev The sum within a block: `count` words at `offset`, the first of them at place k.
    function _integersOf(Row memory row, uint256 word, uint256 offset, uint256 k, uint256 count)
        private
        pure
        returns (int256 terms)
    {
        uint256 pattern = _pattern(word);
        unchecked {
            for (uint256 end = k + count; k < end; k += 8) {
                (uint256 differences, bool some) = _compared(offset, pattern);
                offset += 32;
                for (uint256 i = 0; some && i < 8 && k + i < end; i++) {
                    if (differences << 32 * i >> 224 == 0) {
                        terms += int32(uint32(row.q.get(row.first + k + i)));
                    }
                }
            }
        }
    }

    /// @dev The same of products.
    function _productsOf(
        Row memory a,
        Row memory b,
        uint256 word,
        uint256 offset,
        uint256 k,
        uint256 count
    ) private pure returns (int256 terms) {
        uint256 pattern = _pattern(word);
        unchecked {
            for (uint256 end = k + count; k < end; k += 8) {
                (uint256 differences, bool some) = _compared(offset, pattern);
                offset += 32;
                for (uint256 i = 0; some && i < 8 && k + i < end; i++) {
                    if (differences << 32 * i >> 224 == 0) {
                        terms += int256(int32(uint32(a.q.get(a.first + k + i))))
                            * int32(uint32(b.q.get(b.first + k + i)));
                    }
                }
            }
        }
    }

    function _products(
        Sum memory sum,
        Shape memory shape,
        Row memory a,
        Row memory b,
        Range memory range
    ) private pure {
        uint256 to = range.to;
        uint256 offsetA = a.q.span(a.first + range.from, to - range.from);
        uint256 offsetB = b.q.span(b.first + range.from, to - range.from);
        uint256 shift = a.q.shift;
        uint256 slot;
        unchecked {
            for (uint256 k = range.from; k < to; slot++) {
                uint256 count = _run(shape, k, to);
                int256 terms = shift == 2
                    ? IntegerRows.dot32(offsetA, offsetB, count)
                    : IntegerRows.dot16(offsetA, offsetB, count);
                _add(sum, terms, _short(a.exponents, slot) + _short(b.exponents, slot));
                offsetA += count << shift;
                offsetB += count << shift;
                k += count;
            }
        }
    }

    /// @dev How many elements from k on belong to one block and lie before `to`.
    function _run(Shape memory shape, uint256 k, uint256 to) private pure returns (uint256) {
        unchecked {
            uint256 end = (k / shape.block + 1) * shape.block;
            return (end < to ? end : to) - k;
        }
    }

    /// @dev Opens a row: the exponents of the range's blocks are shown.
    function _row(
        Evidence.Operand memory q,
        Evidence.Operand memory exponents,
        Shape memory shape,
        uint256 number,
        Range memory range
    ) private pure returns (Row memory row) {
        if (q.elementType != (shape.bits == 22 ? Evidence.I32 : Evidence.I16)) {
            revert Evidence.BadDescriptor();
        }
        row.q = q;
        row.first = number * shape.k;
        uint256 block_ = range.from / shape.block;
        uint256 count = (range.to - 1) / shape.block - block_ + 1;
        uint256 offset = _shorts(exponents, number * shape.blocks + block_, count);
        row.exponents = offset;
        int256 lowest = type(int16).max;
        unchecked {
            for (uint256 end = offset + 2 * count; offset < end; offset += 2) {
                int256 exponent = _short(offset, 0);
                if (exponent < lowest) {
                    lowest = exponent;
                }
                if (exponent == EXPONENT_POISON) {
                    row.poison = true;
                }
            }
        }
        row.lowest = lowest;
    }

    ////////////////////////////////////////////////////////////////
    //                          Geometry                          //
    ////////////////////////////////////////////////////////////////

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
