// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Evidence} from "./Evidence.sol";
import {IRules} from "./IRules.sol";
import {Kinds} from "./Kinds.sol";
import {Philox} from "./Philox.sol";

/// @title RulesMoves
/// @notice The rules that begin a step, choose, draw and move elements, and those of windows over
/// pictures: engine's rules_index.c and rules_image.c, docs/ARITHMETIC.md "Data".
/// @dev Moves copy bits. Sums run in one stated order; their first term is taken as it is.
contract RulesMoves is IRules, Kinds {
    using Evidence for Evidence.Exhibit;
    using Evidence for Evidence.Operand;

    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    uint256 internal constant BATCH_LENGTH = BATCH_SAMPLES_LENGTH; // of tokens too
    uint256 internal constant BATCH_STREAM = BATCH_SAMPLES_STREAM;
    uint256 internal constant BATCH_SEED = BATCH_SAMPLES_SEED_LOW; // two halves, the lower one first
    uint256 internal constant BATCH_SCALE = BATCH_SAMPLES_SCALE_BITS;
    uint256 internal constant DROPOUT_SCALE = DROPOUT_SCALE_BITS;
    uint256 internal constant DROPOUT_SEED = DROPOUT_SEED_LOW;
    uint256 internal constant SPLIT_WIDTHS = SPLIT_WIDTH;
    uint256 internal constant BATCH_ROUNDS = 8;
    uint256 internal constant BATCH_WALKS_MAX = 64;
    uint256 internal constant KERNEL_MAX = 64;
    uint256 internal constant MOVE_AXES = 5; // dims, then strides, then the offset

    ////////////////////////////////////////////////////////////////
    //                           Types                            //
    ////////////////////////////////////////////////////////////////

    /// @notice One direction of windows over pictures: engine/ops/image.h.
    struct Axis {
        uint256 size;
        uint256 kernel;
        uint256 stride;
        uint256 before;
        uint256 dilation;
        uint256 out;
    }

    /// @notice The geometry of windows over pictures (batch, height, width, channels).
    struct Image {
        uint256 channels;
        Axis y;
        Axis x;
    }

    /// @notice Where an element lies.
    struct Place {
        uint256 batch;
        uint256 y;
        uint256 x;
        uint256 channel;
    }

    /// @notice A sum in the order in which terms come; of no terms it is +0.
    struct Sum {
        uint256 total;
        bool begun;
    }

    ////////////////////////////////////////////////////////////////
    //                           Rules                            //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRules
    function element(bytes calldata evidence) external pure returns (uint256 bits) {
        return _element(Evidence.parse(evidence));
    }

    function _element(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 operation = shown.operation;
        if (operation < OP_DROPOUT) {
            return _begin(shown, operation);
        }
        if (operation == OP_DROPOUT) {
            return _dropout(shown);
        }
        if (operation < OP_IM2COL) {
            return _move(shown, operation);
        }
        if (operation == OP_IM2COL) {
            return _im2col(shown);
        }
        if (operation == OP_COL2IM) {
            return _col2im(shown);
        }
        if (operation == OP_MAX_POOL) {
            return _maxPool(shown);
        }
        if (operation == OP_MEAN_POOL) {
            return _meanPool(shown);
        }
        if (operation == OP_MAX_POOL_GRAD || operation == OP_MEAN_POOL_GRAD) {
            return _poolGrad(shown, operation == OP_MAX_POOL_GRAD);
        }
        if (operation == OP_MOVE) {
            return _moved(shown);
        }
        if (operation == OP_PLACE) {
            return _placed(shown);
        }
        if (operation == OP_CAST) {
            uint256 from = shown.operands[0].elementType;
            uint256 bits = shown.operands[0].widened(shown.element);
            if (from == Evidence.F16 || from == Evidence.BF16) return bits;
            return from == Evidence.F32
                ? _narrowed(bits, shown.operands[1].elementType)
                : _widened(bits, from);
        }
        if (operation == OP_BATCH_ROWS) {
            return _batchRow(shown);
        }
        if (operation == OP_UNIFORM) {
            return _uniform(shown);
        }
        revert Evidence.BadDescriptor();
    }

    ////////////////////////////////////////////////////////////////
    //                            Types                           //
    ////////////////////////////////////////////////////////////////

    /// @dev An integer of another type as binary32.
    function _widened(uint256 bits, uint256 from) private pure returns (uint256) {
        int256 number = int256(bits);
        if (from == Evidence.I16 || from == Evidence.I32) {
            number = int32(uint32(bits));
        }
        return Binary32.fromInteger(number, 0);
    }

    /// @dev A binary32 as another type.
    function _narrowed(uint256 bits, uint256 to) private pure returns (uint256) {
        bool nan = Binary32.isNan(bits);
        if (to == Evidence.BF16) {
            return nan ? 0x7fc0 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
        }
        uint256 a = bits & Binary32.MAGNITUDE;
        if (to == Evidence.F16) {
            if (nan) return 0x7e00;
            uint256 sign = (bits >> 16) & 0x8000;
            if (a >= 0x477ff000) return sign | 0x7c00;
            if (a < 0x38800000) {
                return sign | (Binary32.add(a, 0x3f000000) - 0x3f000000);
            }
            return sign | ((a + 0xfff + ((a >> 13) & 1) - (112 << 23)) >> 13);
        }
        bool natural = to == Evidence.U32;
        if (!natural && to != Evidence.I32) {
            revert Evidence.BadDescriptor();
        }
        if (nan || a < Binary32.ONE || (natural && bits != a)) return 0;
        if (natural) {
            if (a >= 0x4f800000) return 0xffffffff; // from 2^32 on
        } else if (a >= 0x4f000000) {
            return bits == a ? 0x7fffffff : 0x80000000; // from 2^31 on
        }
        uint256 m = (a & Binary32.FRACTION) | Binary32.IMPLICIT;
        uint256 field = a >> 23;
        m = field >= 150 ? m << (field - 150) : m >> (150 - field);
        return bits == a ? m : (2 ** 32 - m);
    }

    ////////////////////////////////////////////////////////////////
    //                       Moves and places                     //
    ////////////////////////////////////////////////////////////////

    /// @dev x at the offset and the sums of index * stride.
    function _moved(Evidence.Exhibit memory shown) private pure returns (uint256) {
        int256 place = shown.attribute(MOVE_OFFSET);
        uint256 index = shown.element;
        for (uint256 axis = MOVE_AXES; axis > 0; axis--) {
            uint256 length = shown.size(axis - 1);
            place += int256(index % length) * shown.attribute(MOVE_AXES + axis - 1);
            index /= length;
        }
        if (place < 0) {
            revert Evidence.BadDescriptor();
        }
        return shown.operands[0].get(uint256(place));
    }

    function _placed(Evidence.Exhibit memory shown) private pure returns (uint256) {
        (bool found, uint256 place) = _placedElement(shown);
        if (found) {
            return shown.operands[0].get(place);
        }
        Evidence.Operand memory base = shown.operands[1];
        return base.get(base.elements == 1 ? 0 : shown.element);
    }

    /// @dev The element of x that lies at the output's element, if there is one.
    function _placedElement(Evidence.Exhibit memory shown)
        private
        pure
        returns (bool found, uint256 place)
    {
        int256[MOVE_AXES] memory strides;
        uint256[MOVE_AXES] memory inner; // elements of x under each axis
        int256 left = int256(shown.element) - shown.attribute(MOVE_OFFSET);
        uint256 count = 1;
        for (uint256 i = MOVE_AXES; i > 0; i--) {
            uint256 length = shown.size(i - 1);
            int256 stride = shown.attribute(MOVE_AXES + i - 1);
            strides[i - 1] = length > 1 ? stride : int256(0);
            inner[i - 1] = count;
            count *= length;
            if (stride < 0) left += int256(length - 1) * -stride;
        }
        if (left < 0) {
            return (false, 0);
        }
        // From the widest stride to the least.
        while (true) {
            uint256 axis = _widest(strides);
            int256 stride = strides[axis];
            if (stride == 0) {
                return (left == 0, place);
            }
            strides[axis] = 0;
            uint256 length = shown.size(axis);
            uint256 index = uint256(left) / _magnitude(stride);
            if (index >= length) {
                return (false, 0);
            }
            left -= int256(index * _magnitude(stride));
            place += (stride < 0 ? length - 1 - index : index) * inner[axis];
        }
    }

    function _widest(int256[MOVE_AXES] memory strides) private pure returns (uint256 widest) {
        for (uint256 axis = 1; axis < MOVE_AXES; axis++) {
            if (_magnitude(strides[axis]) > _magnitude(strides[widest])) {
                widest = axis;
            }
        }
    }

    function _magnitude(int256 value) private pure returns (uint256) {
        return uint256(value < 0 ? -value : value);
    }

    ////////////////////////////////////////////////////////////////
    //                     Where a step begins                    //
    ////////////////////////////////////////////////////////////////

    function _begin(Evidence.Exhibit memory shown, uint256 operation)
        private
        pure
        returns (uint256)
    {
        if (operation == OP_STEP_NEXT) {
            unchecked {
                return uint32(shown.operands[0].get(0) + 1);
            }
        }
        if (operation == OP_FILL) {
            return shown.pattern(0);
        }
        if (operation == OP_SCHEDULE) {
            return _schedule(shown);
        }
        if (operation == OP_BATCH_TOKENS) {
            return _token(shown);
        }
        if (operation == OP_BATCH_SAMPLES) {
            return _sample(shown);
        }
        revert Evidence.BadDescriptor();
    }

    function _schedule(Evidence.Exhibit memory shown) private pure returns (uint256) {
        uint256 columns = shown.size(0);
        uint256 rows = shown.operands[0].elements / columns;
        uint256 row = shown.operands[1].get(0);
        if (row >= rows) {
            row = rows - 1;
        }
        return shown.operands[0].get(row * columns + shown.natural(1));
    }

    /// @dev An integer below count, drawn for one row of the batch.
    function _draw(
        Evidence.Exhibit memory shown,
        uint256 row,
        Evidence.Operand memory step,
        uint256 count
    ) private pure returns (uint256) {
        uint256 words = Philox.draw(
            row, shown.pattern(BATCH_STREAM), step.get(0), _seed(shown, BATCH_SEED)
        );
        return Philox.below(words, count);
    }

    function _seed(Evidence.Exhibit memory shown, uint256 low) private pure returns (uint256) {
        return shown.pattern(low + 1) << 32 | shown.pattern(low);
    }

    /// @dev Output 0 is the token, output 1 the one that follows it.
    function _token(Evidence.Exhibit memory shown) private pure returns (uint256) {
        uint256 length = shown.size(BATCH_LENGTH);
        Evidence.Operand memory data = shown.operands[0];
        uint256 start =
            _draw(shown, shown.element / length, shown.operands[1], data.elements - length);
        return data.get(start + shown.element % length + shown.output);
    }

    /// @dev Output 0 is an element of a sample, output 1 a label.
    function _sample(Evidence.Exhibit memory shown) private pure returns (uint256) {
        uint256 width = shown.size(BATCH_LENGTH);
        Evidence.Operand memory samples = shown.operands[0];
        Evidence.Operand memory step = shown.operands[2];
        uint256 count = samples.elements / width;
        if (shown.output == 1) {
            return shown.operands[1].get(_draw(shown, shown.element, step, count));
        }
        uint256 sample = _draw(shown, shown.element / width, step, count);
        uint256 value = samples.get(sample * width + shown.element % width);
        if (samples.elementType != Evidence.F32) {
            value = Binary32.fromInteger(int256(value), 0);
        }
        return Binary32.mul(value, shown.pattern(BATCH_SCALE));
    }

    ////////////////////////////////////////////////////////////////
    //                       Rows of batches                      //
    ////////////////////////////////////////////////////////////////

    /// @dev Element t of a row is element t + AHEAD of the data's row, if there is one.
    function _batchRow(Evidence.Exhibit memory shown) private pure returns (uint256) {
        uint256 length = shown.size(BATCH_ROWS_LENGTH);
        uint256 together = shown.size(BATCH_ROWS_UNIT);
        Evidence.Operand memory data = shown.operands[0];
        uint256 row = shown.element / length;
        uint256 place = shown.element % length + shown.natural(BATCH_ROWS_AHEAD);
        uint256 unit = shown.operands[1].get(0) * (shown.size(BATCH_ROWS_COUNT) / together)
            + row / together;
        uint256 units = data.elements / length / together;
        if (shown.natural(BATCH_ROWS_ORDER) != 0) {
            unit = _unit(
                unit, units, shown.pattern(BATCH_ROWS_STREAM), _seed(shown, BATCH_ROWS_SEED_LOW)
            );
        }
        if (unit >= units || place == length) {
            return shown.pattern(BATCH_ROWS_PAST);
        }
        return data.widened((together * unit + row % together) * length + place);
    }

    /// @dev The unit at a position: a walk of a Feistel network over a * b places, until it comes to
    /// one that is a unit. engine/ops/batch_rows.h has the same.
    function _unit(uint256 position, uint256 units, uint256 stream, uint256 seed)
        private
        pure
        returns (uint256)
    {
        uint256 epoch = uint32(position / units);
        uint256 a = _side(units);
        uint256 b = (units + a - 1) / a;
        uint256 place = position % units;
        for (uint256 walk = 0; walk < BATCH_WALKS_MAX; walk++) {
            uint256 left = place % a;
            uint256 right = place / a;
            for (uint256 round = 0; round < BATCH_ROUNDS; round++) {
                uint256 side = round % 2 == 0 ? a : b;
                uint256 words = Philox.draw(right | round << 32, stream, epoch, seed);
                (left, right) = (right, (left + Philox.below(words, side)) % side);
            }
            place = right * a + left;
            if (place < units) {
                return place;
            }
        }
        return position % units;
    }

    /// @dev The least integer whose square is at least `units`, which is at most 2^31.
    function _side(uint256 units) private pure returns (uint256) {
        uint256 below = 0; // the largest one whose square is below it
        for (uint256 bit = 1 << 15; bit > 0; bit >>= 1) {
            if ((below + bit) * (below + bit) < units) {
                below += bit;
            }
        }
        return below + 1;
    }

    function _uniform(Evidence.Exhibit memory shown) private pure returns (uint256) {
        uint256 index = shown.element;
        uint256 words = Philox.draw(
            index >> 2,
            shown.pattern(UNIFORM_STREAM),
            shown.operands[0].get(0),
            _seed(shown, UNIFORM_SEED_LOW)
        );
        return words >> 32 * (index & 3) & type(uint32).max;
    }

    ////////////////////////////////////////////////////////////////
    //                          Moves                             //
    ////////////////////////////////////////////////////////////////

    function _dropout(Evidence.Exhibit memory shown) private pure returns (uint256) {
        uint256 index = shown.element;
        uint256 words = Philox.draw(
            index >> 2,
            shown.pattern(DROPOUT_STREAM),
            shown.operands[1].get(0),
            _seed(shown, DROPOUT_SEED)
        );
        if (words >> 32 * (index & 3) & type(uint32).max < shown.natural(0)) {
            return 0;
        }
        return Binary32.mul(shown.operands[0].get(index), shown.pattern(DROPOUT_SCALE));
    }

    function _move(Evidence.Exhibit memory shown, uint256 operation)
        private
        pure
        returns (uint256)
    {
        uint256 index = shown.element;
        if (operation == OP_GATHER) {
            uint256 width = shown.size(1);
            uint256 row = shown.operands[1].get(index / width);
            if (row >= shown.natural(0)) {
                return Evidence.NAN_BITS;
            }
            return shown.operands[0].widened(row * width + index % width);
        }
        if (operation == OP_SPLIT) {
            uint256 width = shown.size(SPLIT_WIDTHS + shown.output);
            uint256 start =
                index / width * _widths(shown, shown.outputs) + _widths(shown, shown.output);
            return shown.operands[0].get(start + index % width);
        }
        if (operation == OP_CONCAT) {
            return _concat(shown, index);
        }
        if (operation == OP_EXPAND) {
            return shown.operands[0].get(index / shown.size(EXPAND_DIV) % shown.size(EXPAND_MOD));
        }
        revert Evidence.BadDescriptor();
    }

    function _concat(Evidence.Exhibit memory shown, uint256 index) private pure returns (uint256) {
        uint256 whole = _widths(shown, shown.inputs);
        uint256 row = index / whole;
        uint256 column = index % whole;
        uint256 number = 0;
        uint256 width = shown.size(SPLIT_WIDTHS);
        while (column >= width) {
            column -= width;
            number++;
            width = shown.size(SPLIT_WIDTHS + number);
        }
        return shown.operands[number].get(row * width + column);
    }

    /// @dev The sum of the widths of the first `count` parts.
    function _widths(Evidence.Exhibit memory shown, uint256 count)
        private
        pure
        returns (uint256 width)
    {
        for (uint256 i = 0; i < count; i++) {
            width += shown.size(SPLIT_WIDTHS + i);
        }
    }

    ////////////////////////////////////////////////////////////////
    //                          Windows                           //
    ////////////////////////////////////////////////////////////////

    function _im2col(Evidence.Exhibit memory shown) private pure returns (uint256) {
        Image memory image = _image(shown);
        uint256 columns = image.y.kernel * image.x.kernel * image.channels;
        Place memory place =
            _place(shown.element % columns, image.y.kernel, image.x.kernel, image.channels);
        Place memory window = _place(shown.element / columns, image.y.out, image.x.out, 1);
        (bool rowThere, uint256 y) = _position(image.y, window.y, place.y);
        (bool columnThere, uint256 x) = _position(image.x, window.x, place.x);
        if (!rowThere || !columnThere) {
            return 0;
        }
        place.batch = window.batch;
        return shown.operands[0].get(_inPicture(image, place, y, x));
    }

    function _col2im(Evidence.Exhibit memory shown) private pure returns (uint256) {
        Image memory image = _image(shown);
        Place memory place = _place(shown.element, image.y.size, image.x.size, image.channels);
        Evidence.Operand memory columns = shown.operands[0];
        Sum memory sum;
        for (uint256 ky = 0; ky < image.y.kernel; ky++) {
            (bool rowThere, uint256 oy) = _windowWith(image.y, place.y, ky);
            for (uint256 kx = 0; kx < image.x.kernel && rowThere; kx++) {
                (bool there, uint256 ox) = _windowWith(image.x, place.x, kx);
                if (there) {
                    uint256 row = (place.batch * image.y.out + oy) * image.x.out + ox;
                    uint256 spot = (row * image.y.kernel + ky) * image.x.kernel + kx;
                    _add(sum, columns.get(spot * image.channels + place.channel));
                }
            }
        }
        return Binary32.stored(sum.total);
    }

    /// @dev Output 0 is the maximum of a window, output 1 its place there.
    function _maxPool(Evidence.Exhibit memory shown) private pure returns (uint256) {
        Image memory image = _image(shown);
        Place memory place = _place(shown.element, image.y.out, image.x.out, image.channels);
        Evidence.Operand memory operand = shown.operands[0];
        uint256 best = 0;
        uint256 holder = type(uint256).max;
        for (uint256 ky = 0; ky < image.y.kernel; ky++) {
            (bool rowThere, uint256 y) = _position(image.y, place.y, ky);
            for (uint256 kx = 0; kx < image.x.kernel && rowThere; kx++) {
                (bool there, uint256 x) = _position(image.x, place.x, kx);
                if (!there) {
                    continue;
                }
                uint256 value = operand.get(_inPicture(image, place, y, x));
                if (
                    holder == type(uint256).max || Binary32.isLess(best, value)
                        || (Binary32.isNan(value) && !Binary32.isNan(best))
                ) {
                    best = value;
                    holder = ky * image.x.kernel + kx;
                }
            }
        }
        return shown.output == 1 ? holder & type(uint32).max : Binary32.stored(best);
    }

    function _meanPool(Evidence.Exhibit memory shown) private pure returns (uint256) {
        Image memory image = _image(shown);
        Place memory place = _place(shown.element, image.y.out, image.x.out, image.channels);
        Evidence.Operand memory operand = shown.operands[0];
        Sum memory sum;
        for (uint256 ky = 0; ky < image.y.kernel; ky++) {
            (bool rowThere, uint256 y) = _position(image.y, place.y, ky);
            for (uint256 kx = 0; kx < image.x.kernel && rowThere; kx++) {
                (bool there, uint256 x) = _position(image.x, place.x, kx);
                if (there) {
                    _add(sum, operand.get(_inPicture(image, place, y, x)));
                }
            }
        }
        return _share(shown, image, sum.total, place.y, place.x);
    }

    /// @dev For each window in which the place lies, in ascending order: its dy if the place was its
    /// maximum; or the place's share of its dy.
    function _poolGrad(Evidence.Exhibit memory shown, bool ofMaximum)
        private
        pure
        returns (uint256)
    {
        Image memory image = _image(shown);
        Place memory place = _place(shown.element, image.y.size, image.x.size, image.channels);
        Sum memory sum;
        for (uint256 ky = image.y.kernel; ky > 0; ky--) {
            (bool rowThere, uint256 oy) = _windowWith(image.y, place.y, ky - 1);
            for (uint256 kx = image.x.kernel; kx > 0 && rowThere; kx--) {
                (bool there, uint256 ox) = _windowWith(image.x, place.x, kx - 1);
                if (!there) {
                    continue;
                }
                uint256 window = ((place.batch * image.y.out + oy) * image.x.out + ox)
                    * image.channels + place.channel;
                if (!ofMaximum) {
                    _add(sum, _share(shown, image, shown.operands[0].get(window), oy, ox));
                } else if (
                    shown.operands[0].get(window) == (ky - 1) * image.x.kernel + kx - 1
                ) {
                    _add(sum, shown.operands[1].get(window));
                }
            }
        }
        return Binary32.stored(sum.total);
    }

    /// @dev What a window's sum, or its dy, comes to for one place.
    function _share(
        Evidence.Exhibit memory shown,
        Image memory image,
        uint256 total,
        uint256 oy,
        uint256 ox
    ) private pure returns (uint256) {
        uint256 count = image.y.kernel * image.x.kernel;
        if (shown.natural(MEAN_POOL_COUNTS_PADDING) == 0) {
            count = _placesThere(image.y, oy) * _placesThere(image.x, ox);
        }
        return Binary32.div(total, Binary32.fromInteger(int256(count), 0));
    }

    function _placesThere(Axis memory axis, uint256 window) private pure returns (uint256 count) {
        for (uint256 k = 0; k < axis.kernel; k++) {
            (bool there,) = _position(axis, window, k);
            if (there) {
                count++;
            }
        }
    }

    function _image(Evidence.Exhibit memory shown) private pure returns (Image memory image) {
        image.channels = shown.size(3);
        image.y = _axis(shown, 0);
        image.x = _axis(shown, 1);
    }

    /// @dev 0 for rows, 1 for columns.
    function _axis(Evidence.Exhibit memory shown, uint256 horizontal)
        private
        pure
        returns (Axis memory axis)
    {
        axis.size = shown.size(1 + horizontal);
        axis.kernel = shown.size(4 + horizontal);
        axis.stride = shown.size(6 + horizontal);
        axis.before = shown.natural(8 + horizontal);
        axis.dilation = shown.size(12 + horizontal);
        // More than the checks of a tape let pass; bounds the loops.
        if (axis.kernel > KERNEL_MAX) {
            revert Evidence.BadDescriptor();
        }
        uint256 padded = axis.size + axis.before + shown.natural(10 + horizontal);
        axis.out = (padded - (axis.kernel - 1) * axis.dilation - 1) / axis.stride + 1;
    }

    function _place(uint256 index, uint256 height, uint256 width, uint256 channels)
        private
        pure
        returns (Place memory place)
    {
        place.channel = index % channels;
        index /= channels;
        place.x = index % width;
        index /= width;
        place.y = index % height;
        place.batch = index / height;
    }

    /// @dev The element (y, x) of a picture, of the place's batch and channel.
    function _inPicture(Image memory image, Place memory place, uint256 y, uint256 x)
        private
        pure
        returns (uint256)
    {
        return ((place.batch * image.y.size + y) * image.x.size + x) * image.channels
            + place.channel;
    }

    /// @dev Where place k of a window lies, if it is in the picture.
    function _position(Axis memory axis, uint256 window, uint256 k)
        private
        pure
        returns (bool there, uint256 position)
    {
        position = window * axis.stride + k * axis.dilation;
        if (position < axis.before) {
            return (false, 0);
        }
        position -= axis.before;
        there = position < axis.size;
    }

    /// @dev The window whose place k is the position, if there is one.
    function _windowWith(Axis memory axis, uint256 position, uint256 k)
        private
        pure
        returns (bool there, uint256 window)
    {
        uint256 start = position + axis.before;
        uint256 offset = k * axis.dilation;
        if (start < offset || (start - offset) % axis.stride != 0) {
            return (false, 0);
        }
        window = (start - offset) / axis.stride;
        there = window < axis.out;
    }

    function _add(Sum memory sum, uint256 term) private pure {
        sum.total = sum.begun ? Binary32.add(sum.total, term) : term;
        sum.begun = true;
    }
}
