// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Evidence} from "./Evidence.sol";
import {FloatRules} from "./FloatRules.sol";
import {Vectors} from "./Vectors.sol";

/// @title RulesRows
/// @notice The rules of operations along rows: sums, norms, softmax, cross-entropy: engine's
/// rules_rows.c.
/// @dev Rows, chunks and what a causal row sees follow from the descriptor alone.
contract RulesRows is FloatRules {
    using Binary32 for uint256;
    using Evidence for Evidence.Exhibit;
    using Evidence for Evidence.Operand;
    using Vectors for Vectors.Vector;

    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    uint256 internal constant ROWS = ROW_SUM_ROWS; // of every kind here
    uint256 internal constant COLUMNS = ROW_SUM_COLUMNS;
    uint256 internal constant REDUCE_MIN = 1;

    uint256 internal constant CHUNK = 1024; // elements of a part
    uint256 internal constant TARGET_IGNORED = type(uint32).max;

    ////////////////////////////////////////////////////////////////
    //                           Rules                            //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc FloatRules
    function _rule(Evidence.Exhibit memory shown) internal pure override returns (uint256) {
        uint256 operation = shown.operation;
        if (operation == OP_LAYER_NORM) return _layerNorm(shown);
        if (operation == OP_LAYER_NORM_GRAD) return _layerNormGrad(shown);
        if (operation == OP_RMS_NORM) return _rmsNorm(shown);
        if (operation == OP_RMS_NORM_GRAD) return _rmsNormGrad(shown);
        if (operation == OP_SOFTMAX) return _softmax(shown);
        if (operation == OP_SOFTMAX_GRAD) return _softmaxGrad(shown);
        if (operation == OP_CROSS_ENTROPY) return _crossEntropy(shown);
        if (operation == OP_CROSS_ENTROPY_GRAD && shown.output == 0) {
            return _crossEntropyGrad(shown);
        }
        if (operation == OP_REDUCE) return _reduce(shown);
        if (operation == OP_GATHER_ELEMENTS && shown.output == 0) {
            uint256 column = _input(shown, 1, shown.element);
            if (column >= _columns(shown)) return Binary32.NAN;
            return _input(shown, 0, shown.element * _columns(shown) + column);
        }
        if (operation == OP_GATHER_ELEMENTS_GRAD && shown.output == 0) {
            (uint256 row, uint256 column) = _place(shown);
            return _input(shown, 0, row) == column ? _input(shown, 1, row) : 0;
        }
        if (operation == OP_ROW_SUM) {
            if (shown.output == 0) return _chunk(shown, 0).sum();
            if (shown.output == 1) return _sumOfParts(shown, 0);
        }
        revert Evidence.BadDescriptor();
    }

    ////////////////////////////////////////////////////////////////
    //                      Rows and chunks                       //
    ////////////////////////////////////////////////////////////////

    function _columns(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        return shown.size(COLUMNS);
    }

    function _chunks(uint256 columns) internal pure returns (uint256) {
        return (columns + CHUNK - 1) / CHUNK;
    }

    /// @dev What part number `element` of an output folds: the first element, and how many.
    /// The columns begin .. end-1 of the row take part.
    function _span(uint256 element, uint256 columns, uint256 begin, uint256 end)
        internal
        pure
        returns (uint256 first, uint256 count)
    {
        uint256 chunks = _chunks(columns);
        uint256 from = element % chunks * CHUNK;
        if (end > from + CHUNK) end = from + CHUNK;
        if (from < begin) from = begin;
        first = element / chunks * columns + from;
        if (from < end) count = end - from;
    }

    /// @dev The accused part's elements of an input that has rows.
    function _chunk(Evidence.Exhibit memory shown, uint256 input)
        internal
        pure
        returns (Vectors.Vector memory)
    {
        uint256 columns = _columns(shown);
        (uint256 first, uint256 count) = _span(shown.element, columns, 0, columns);
        return Vectors.load(shown.operands[input], first, count);
    }

    /// @dev The same of an input with one element for each column.
    function _chunkOfRow(Evidence.Exhibit memory shown, uint256 input)
        internal
        pure
        returns (Vectors.Vector memory)
    {
        uint256 columns = _columns(shown);
        (uint256 first, uint256 count) = _span(shown.element, columns, 0, columns);
        return Vectors.load(shown.operands[input], first % columns, count);
    }

    /// @dev The row of the accused part.
    function _rowOfPart(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        return shown.element / _chunks(_columns(shown));
    }

    /// @dev The row of the accused element, and its column.
    function _place(Evidence.Exhibit memory shown)
        internal
        pure
        returns (uint256 row, uint256 column)
    {
        uint256 columns = _columns(shown);
        return (shown.element / columns, shown.element % columns);
    }

    /// @dev The parts first .. end-1 of the accused row.
    function _parts(Evidence.Exhibit memory shown, uint256 output, uint256 first, uint256 end)
        internal
        pure
        returns (Vectors.Vector memory)
    {
        uint256 start = shown.element * _chunks(_columns(shown)) + first;
        return Vectors.load(shown.operands[shown.inputs + output], start, end - first);
    }

    function _sumOfParts(Evidence.Exhibit memory shown, uint256 output)
        internal
        pure
        returns (uint256)
    {
        return _parts(shown, output, 0, _chunks(_columns(shown))).sum();
    }

    function _meanOfParts(Evidence.Exhibit memory shown, uint256 output)
        internal
        pure
        returns (uint256)
    {
        uint256 columns = _columns(shown);
        uint256 total = _sumOfParts(shown, output);
        return total.div(Binary32.fromInteger(int256(columns), 0));
    }

    function _maximumOfParts(Evidence.Exhibit memory shown, uint256 output)
        internal
        pure
        returns (uint256)
    {
        return _parts(shown, output, 0, _chunks(_columns(shown))).largest();
    }

    ////////////////////////////////////////////////////////////////
    //                           Norms                            //
    ////////////////////////////////////////////////////////////////

    /// @dev Inputs x, gain, bias; outputs sum_part, mean, square_part, rstd, y.
    function _layerNorm(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        if (shown.output == 0) return _chunk(shown, 0).sum();
        if (shown.output == 1) return _meanOfParts(shown, 0);
        if (shown.output == 2) {
            Vectors.Vector memory x = _chunk(shown, 0);
            x.subtract(_output(shown, 1, _rowOfPart(shown)));
            return x.sumOfProducts(x);
        }
        if (shown.output == 3) return _reciprocalDeviation(shown, 2);
        if (shown.output != 4) revert Evidence.BadDescriptor();
        (uint256 row, uint256 column) = _place(shown);
        uint256 d = _input(shown, 0, shown.element).sub(_output(shown, 1, row));
        uint256 xhat = d.mul(_output(shown, 3, row));
        return xhat.fma(_input(shown, 1, column), _input(shown, 2, column));
    }

    function _reciprocalDeviation(Evidence.Exhibit memory shown, uint256 output)
        internal
        pure
        returns (uint256)
    {
        uint256 variance = _meanOfParts(shown, output);
        return Binary32.ONE.div(variance.add(shown.pattern(NORM_EPSILON_BITS)).sqrt());
    }

    /// @dev Inputs dy, x, gain, mean, rstd; outputs part_g, part_gx, mean_g, mean_gx, dx, product.
    function _layerNormGrad(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        if (shown.output < 2) {
            Vectors.Vector memory g = _chunk(shown, 0);
            g.multiplyEach(_chunkOfRow(shown, 2));
            if (shown.output == 0) return g.sum();
            uint256 rowOfPart = _rowOfPart(shown);
            Vectors.Vector memory xhats = _chunk(shown, 1);
            xhats.subtract(_input(shown, 3, rowOfPart));
            xhats.multiply(_input(shown, 4, rowOfPart));
            return g.sumOfProducts(xhats);
        }
        if (shown.output < 4) return _meanOfParts(shown, shown.output - 2);
        (uint256 row, uint256 column) = _place(shown);
        uint256 rstd = _input(shown, 4, row);
        uint256 xhat = _input(shown, 1, shown.element).sub(_input(shown, 3, row)).mul(rstd);
        uint256 dy = _input(shown, 0, shown.element);
        if (shown.output == 5) return dy.mul(xhat);
        if (shown.output != 4) revert Evidence.BadDescriptor();
        uint256 centred = dy.mul(_input(shown, 2, column)).sub(_output(shown, 2, row));
        return rstd.mul(xhat.negated().fma(_output(shown, 3, row), centred));
    }

    /// @dev Inputs x, gain; outputs square_part, rstd, y.
    function _rmsNorm(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        if (shown.output == 0) {
            Vectors.Vector memory x = _chunk(shown, 0);
            return x.sumOfProducts(x);
        }
        if (shown.output == 1) return _reciprocalDeviation(shown, 0);
        if (shown.output != 2) revert Evidence.BadDescriptor();
        (uint256 row, uint256 column) = _place(shown);
        uint256 xhat = _input(shown, 0, shown.element).mul(_output(shown, 1, row));
        return xhat.mul(_input(shown, 1, column));
    }

    /// @dev Inputs dy, x, gain, rstd; outputs part_gx, mean_gx, dx, product.
    function _rmsNormGrad(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        if (shown.output == 0) {
            Vectors.Vector memory gs = _chunk(shown, 0);
            gs.multiplyEach(_chunkOfRow(shown, 2));
            Vectors.Vector memory xhats = _chunk(shown, 1);
            xhats.multiply(_input(shown, 3, _rowOfPart(shown)));
            return gs.sumOfProducts(xhats);
        }
        if (shown.output == 1) return _meanOfParts(shown, 0);
        (uint256 row, uint256 column) = _place(shown);
        uint256 rstd = _input(shown, 3, row);
        uint256 xhat = _input(shown, 1, shown.element).mul(rstd);
        uint256 dy = _input(shown, 0, shown.element);
        if (shown.output == 3) return dy.mul(xhat);
        if (shown.output != 2) revert Evidence.BadDescriptor();
        uint256 g = dy.mul(_input(shown, 2, column));
        return rstd.mul(xhat.negated().fma(_output(shown, 1, row), g));
    }

    ////////////////////////////////////////////////////////////////
    //                          Softmax                           //
    ////////////////////////////////////////////////////////////////

    /// @dev The columns that a row sees, from .. end-1: at least one.
    function _seen(Evidence.Exhibit memory shown, uint256 row)
        internal
        pure
        returns (uint256 from, uint256 end)
    {
        uint256 columns = _columns(shown);
        uint256 causal = shown.natural(SOFTMAX_CAUSAL);
        uint256 slot = shown.operation == OP_SOFTMAX ? 1 : 2;
        if (causal == 0 || row % causal >= columns) return (0, columns);
        end = row % causal + 1;
        if (shown.inputs > slot) {
            uint256 sharers = shown.size(ROWS) / shown.operands[slot].elements;
            if (sharers == 0) revert Evidence.BadDescriptor();
            uint256 reach =
                _input(shown, slot, row / (causal * sharers) * causal + row % causal);
            from = reach < end ? end - 1 - reach : 0;
        }
    }

    /// @dev The accused part's first element that is seen, and how many are.
    function _seenSpan(Evidence.Exhibit memory shown)
        internal
        pure
        returns (uint256 first, uint256 count)
    {
        (uint256 from, uint256 end) = _seen(shown, _rowOfPart(shown));
        return _span(shown.element, _columns(shown), from, end);
    }

    function _sees(Evidence.Exhibit memory shown, uint256 row, uint256 column)
        internal
        pure
        returns (bool)
    {
        (uint256 from, uint256 end) = _seen(shown, row);
        return from <= column && column < end;
    }

    /// @dev The parts of the accused row that have a column that is seen.
    function _sumOfSeenParts(Evidence.Exhibit memory shown, uint256 output)
        internal
        pure
        returns (uint256)
    {
        (uint256 from, uint256 end) = _seen(shown, shown.element);
        return _parts(shown, output, from / CHUNK, _chunks(end)).sum();
    }

    /// @dev Input x; outputs max_part, max, exps, sum_part, sum, p.
    function _softmax(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 output = shown.output;
        if (output == 1) return _maximumOfParts(shown, 0);
        if (output == 4) return _sumOfSeenParts(shown, 3);
        if (output == 0 || output == 3) {
            (uint256 first, uint256 count) = _seenSpan(shown);
            if (count == 0) return output == 0 ? Binary32.MINUS_INFINITE : 0;
            if (output == 3) {
                return Vectors.load(shown.operands[shown.inputs + 2], first, count).sum();
            }
            Vectors.Vector memory x = Vectors.load(shown.operands[0], first, count);
            x.multiply(shown.pattern(SOFTMAX_SCALE_BITS));
            return x.largest();
        }
        (uint256 row, uint256 column) = _place(shown);
        if (output != 2 && output != 5) revert Evidence.BadDescriptor();
        if (!_sees(shown, row, column)) return 0;
        if (output == 5) {
            uint256 inverse = Binary32.ONE.div(_output(shown, 4, row));
            return _output(shown, 2, shown.element).mul(inverse);
        }
        uint256 v = _input(shown, 0, shown.element).mul(shown.pattern(SOFTMAX_SCALE_BITS));
        return v.sub(_output(shown, 1, row)).exp();
    }

    /// @dev Inputs p, dp; outputs dot_part, dot, dx.
    function _softmaxGrad(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        if (shown.output == 1) return _sumOfSeenParts(shown, 0);
        if (shown.output == 0) {
            (uint256 first, uint256 count) = _seenSpan(shown);
            if (count == 0) return 0;
            return Vectors.load(shown.operands[0], first, count).sumOfProducts(
                Vectors.load(shown.operands[1], first, count)
            );
        }
        if (shown.output != 2) revert Evidence.BadDescriptor();
        (uint256 row, uint256 column) = _place(shown);
        if (!_sees(shown, row, column)) return 0;
        uint256 centred = _input(shown, 1, shown.element).sub(_output(shown, 1, row));
        uint256 dx = _input(shown, 0, shown.element).mul(centred);
        return dx.mul(shown.pattern(SOFTMAX_SCALE_BITS));
    }

    ////////////////////////////////////////////////////////////////
    //                       Cross-entropy                        //
    ////////////////////////////////////////////////////////////////

    /// @dev Inputs x, target; outputs max_part, max, exps, sum_part, sum, loss.
    function _crossEntropy(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 columns = _columns(shown);
        if (shown.output == 0) return _chunk(shown, 0).largest();
        if (shown.output == 1) return _maximumOfParts(shown, 0);
        if (shown.output == 2) {
            uint256 largest = _output(shown, 1, shown.element / columns);
            return _input(shown, 0, shown.element).sub(largest).exp();
        }
        if (shown.output == 3) {
            (uint256 first, uint256 count) = _span(shown.element, columns, 0, columns);
            return Vectors.load(shown.operands[shown.inputs + 2], first, count).sum();
        }
        if (shown.output == 4) return _sumOfParts(shown, 3);
        if (shown.output != 5) revert Evidence.BadDescriptor();
        uint256 target = _input(shown, 1, shown.element);
        if (target >= columns) return _withoutTarget(target);
        uint256 wanted = _input(shown, 0, shown.element * columns + target);
        wanted = wanted.sub(_output(shown, 1, shown.element));
        return _output(shown, 4, shown.element).log().sub(wanted);
    }

    /// @dev The loss of a row whose target is no column, and its gradient's elements.
    function _withoutTarget(uint256 target) internal pure returns (uint256) {
        return target == TARGET_IGNORED ? 0 : Binary32.NAN;
    }

    /// @dev Inputs x, target, max, sum, dloss; output dx.
    function _crossEntropyGrad(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        (uint256 row, uint256 column) = _place(shown);
        uint256 target = _input(shown, 1, row);
        if (target >= _columns(shown)) return _withoutTarget(target);
        uint256 p = _input(shown, 0, shown.element).sub(_input(shown, 2, row)).exp();
        p = p.mul(Binary32.ONE.div(_input(shown, 3, row)));
        if (column == target) p = p.sub(Binary32.ONE);
        return p.mul(_input(shown, 4, row));
    }

    ////////////////////////////////////////////////////////////////
    //                     Extremes of rows                       //
    ////////////////////////////////////////////////////////////////

    /// @dev Input x; outputs part, part_index, y, index.
    function _reduce(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 columns = _columns(shown);
        if (shown.output < 2) {
            (uint256 first, uint256 count) = _span(shown.element, columns, 0, columns);
            (uint256 value, uint256 place) = _extreme(shown, 0, first, count);
            return shown.output == 0 ? value : (first + place) % columns;
        }
        if (shown.output > 3) revert Evidence.BadDescriptor();
        uint256 chunks = _chunks(columns);
        (uint256 best, uint256 part) =
            _extreme(shown, shown.inputs, shown.element * chunks, chunks);
        return shown.output == 2 ? best : _output(shown, 1, shown.element * chunks + part);
    }

    /// @dev The first extreme of an operand's elements, or its first NaN, and its place there.
    function _extreme(Evidence.Exhibit memory shown, uint256 operand, uint256 first, uint256 count)
        internal
        pure
        returns (uint256 best, uint256 place)
    {
        bool least = shown.natural(REDUCE_FUNCTION) == REDUCE_MIN;
        Evidence.Operand memory values = shown.operands[operand];
        best = values.get(first);
        for (uint256 i = 1; i < count; i++) {
            uint256 value = values.get(first + i);
            bool beyond = least ? value.isLess(best) : best.isLess(value);
            if (beyond || (value.isNan() && !best.isNan())) {
                best = value;
                place = i;
            }
        }
    }
}
