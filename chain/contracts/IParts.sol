// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRules} from "./IRules.sol";

/// @title IParts
/// @notice Rules that fold a long axis and can show its parts: the sums of contract and of the kinds
/// named after it over K elements, the peaks of quantize over a piece, its exponents over the
/// peaks of a row (engine/rules/rule.h).
/// @dev The parts are always the same ones: 1,024 elements of a sum or peaks of a row, 2 elements
/// of a piece; twice as many, and so on, where there would be more than 2,048 parts. A part that is
/// longer than those has parts of its own, by the same rule.
interface IParts is IRules {
    /// @notice The value of one part.
    struct Part {
        uint256 fold; // 1 a sum, 2 a maximum: enum rule_fold
        uint256 count; // of all parts
        bool settled; // no part can change the element: it is bits
        uint256 bits;
        bool unfit; // an exponent of the part does not go with that of the sum
        int256 exponent; // of the sum, the same in every part; evidence of a part gives it
        int256 value; // 64 bits
    }

    /// @notice What evidence is about: the axis of an element, or a part of it.
    struct Axis {
        uint256 fold; // 0: the element has no axis
        uint256 count; // of the parts that were replied; of evidence that shows no part 0
        uint256 from; // where the part begins
        uint256 length; // its elements
        uint256 parts; // of its own
    }

    /// @param evidence Of kind ELEMENT, or of kind PART.
    function axisOf(bytes calldata evidence) external view returns (Axis memory);

    /// @notice The part that evidence of kind PART shows.
    function part(bytes calldata evidence) external view returns (Part memory);

    /// @notice What these values come to, and the element that it makes of a whole axis.
    /// @param replied Exponent (4), values (8 each): docs/FORMATS.md, section 10.6.
    function join(uint256 fold, bytes calldata replied)
        external
        view
        returns (uint256 bits, int256 value);
}
