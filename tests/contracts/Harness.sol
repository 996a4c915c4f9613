// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {HeaderSeeds} from "./HeaderSeeds.sol";
import {IExaminer} from "./IExaminer.sol";
import {ISeeds} from "./ISeeds.sol";
import {Referee} from "./Referee.sol";
import {Registry} from "./Registry.sol";

/// @title HarnessSeeds
/// @notice The seeds of a development chain as deployed, but for the clock, which is its registry's,
/// and for what a header says.
contract HarnessSeeds is HeaderSeeds(1) {
    Harness internal clock;

    function follow(Harness newClock) external {
        clock = newClock;
    }

    function _now() internal view override returns (uint256) {
        return clock.time();
    }

    function _height() internal view override returns (uint256) {
        return clock.height();
    }

    function _hashOfBlock(uint256 place) internal pure override returns (bytes32) {
        return keccak256(abi.encode(place));
    }

    function _randomIn(uint256 place, bytes calldata) internal pure override returns (bytes32) {
        return keccak256(abi.encode(place));
    }
}

/// @title Harness
/// @notice The registry with a clock that a test sets. Everything else is the contract as deployed.
contract Harness is Registry {
    uint256 public time;
    uint256 public height;

    constructor(address referee, ISeeds seeds, address token) Registry(referee, seeds, token) {
        HarnessSeeds(address(seeds)).follow(this);
    }

    function setClock(uint256 newTime, uint256 newHeight) external {
        time = newTime;
        height = newHeight;
    }

    function _now() internal view override returns (uint256) {
        return time;
    }

    function _height() internal view override returns (uint256) {
        return height;
    }

    /// @notice The tally of a segment as it is kept, and the places of its draw, four bits each.
    function drawOf(bytes32 hash) external view returns (uint256 tally, uint256 places) {
        Tally storage kept = _tallies[hash];
        assembly {
            tally := sload(kept.slot)
        }
        places = _placesOf(hash, kept);
    }

    /// @notice A round behind the first as it is kept.
    function laterOf(bytes32 hash, uint256 round) external view returns (uint256 word) {
        LaterRound storage kept = _laterRounds[hash][round];
        assembly {
            word := sload(kept.slot)
        }
    }

    /// @notice All that a job keeps here; the referee keeps account of claims and pots.
    function heldOf(bytes32 key) external view returns (uint256 sum) {
        Job storage job = _jobs[key];
        sum = job.pool;
        if (job.phase == Phase.Running) sum += job.stake;
        if (job.phase == Phase.Open || job.phase == Phase.Running) {
            sum += (uint256(job.segments) - job.finalized) * job.reward - job.missingEscrow;
        }
        sum += bondsOf(key, address(0));
    }

    /// @notice The bonds of all generations.
    /// @param owner Zero: of all.
    function bondsOf(bytes32 key, address owner) public view returns (uint256 sum) {
        Job storage job = _jobs[key];
        for (uint256 generation = 0; generation <= job.generation; generation++) {
            mapping(uint256 => Entry) storage panel = entries[key][generation];
            for (uint256 i = 0;; i++) {
                Entry storage entry = panel[i];
                address holder = entry.owner;
                if (holder == address(0)) break;
                if (!entry.gone && (owner == address(0) || holder == owner)) sum += job.bond;
            }
        }
    }
}

/// @title HarnessReferee
/// @notice The referee as deployed, but for the clock, which is its registry's.
contract HarnessReferee is Referee {
    constructor(IExaminer examiner, address token) Referee(examiner, new HarnessSeeds(), token) {}

    function _found(ISeeds seeds, address token) internal override returns (Registry) {
        return new Harness(address(this), seeds, token);
    }

    function _now() internal view override returns (uint256) {
        return Harness(address(REGISTRY)).time();
    }

    function _height() internal view override returns (uint256) {
        return Harness(address(REGISTRY)).height();
    }

    /// @return held Bonds and an unanswered query's fee.
    /// @return own The part of the bonds that is this owner's.
    function heldOf(bytes32 key, address owner)
        external
        view
        returns (uint256 held, uint256 own, uint256 generation)
    {
        Dispute storage dispute = _disputes[key];
        if (dispute.phase == ClaimPhase.None || dispute.phase == ClaimPhase.Closed) {
            return (0, 0, 0);
        }
        for (uint256 i = dispute.first; dispute.claimants[i].owner != address(0); i++) {
            held += dispute.claimants[i].bond;
            if (dispute.claimants[i].owner == owner) own += dispute.claimants[i].bond;
        }
        if (dispute.phase == ClaimPhase.Tried && dispute.turn == Turn.Accused) {
            held += dispute.queryFee;
        }
        generation = dispute.generation;
    }

    function docketOf(bytes32 job, uint256 generation)
        external
        view
        returns (uint256 pot, uint256 open, uint256 active, uint256 outsiders, bool convicted)
    {
        Docket storage docket = _dockets[job][generation];
        return (docket.pot, docket.open, docket.active, docket.outsiders, docket.convicted);
    }
}

/// @title Coin
/// @notice A token of tests. It returns nothing, as some do; and it can be told to misbehave.
contract Coin {
    mapping(address owner => uint256) public balanceOf;
    mapping(address owner => mapping(address spender => uint256)) public allowance;
    bool public paused;
    bool public denies; // returns false, and moves nothing
    uint256 public tax; // of each transfer, kept back
    bytes public callback; // what it does first, to its caller

    function mint(address owner, uint256 amount) external {
        balanceOf[owner] += amount;
    }

    function behave(bool isPaused, bool isDenied, uint256 newTax, bytes calldata newCallback)
        external
    {
        (paused, denies, tax, callback) = (isPaused, isDenied, newTax, newCallback);
    }

    function approve(address spender, uint256 amount) external {
        allowance[msg.sender][spender] = amount;
    }

    function transfer(address to, uint256 amount) external {
        _move(msg.sender, to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) external {
        allowance[from][msg.sender] -= amount;
        _move(from, to, amount);
    }

    function _move(address from, address to, uint256 amount) internal {
        require(!paused);
        if (denies) {
            assembly {
                mstore(0, 0)
                return(0, 32)
            }
        }
        bytes memory data = callback;
        if (data.length != 0) {
            delete callback;
            (bool done,) = from.call(data);
            require(done);
        }
        balanceOf[from] -= amount;
        balanceOf[to] += amount - tax;
    }
}

/// @title Player
/// @notice An account of the game that does what the driver says. A keeper by ERC-1271, it signs what
/// begins with the hash.
contract Player {
    receive() external payable {}

    function isValidSignature(bytes32 hash, bytes calldata signature)
        external
        pure
        returns (bytes4)
    {
        return bytes32(signature) == hash ? this.isValidSignature.selector : bytes4(0);
    }

    function act(address target, bytes calldata data)
        external
        payable
        returns (bool done, bytes memory result)
    {
        return target.call{value: msg.value}(data);
    }

    /// @notice The same, with money of its own.
    function spend(address target, uint256 value, bytes calldata data)
        external
        returns (bool done, bytes memory result)
    {
        return target.call{value: value}(data);
    }
}

/// @title Driver
/// @notice Plays a whole history in one transaction: thousands of them then take minutes.
contract Driver {
    uint256 internal constant PLAYERS = 6;
    uint256 internal constant HEADER = 8 + 8 + 1 + 16 + 3;
    // In the byte of the player:
    uint256 internal constant TO_REFEREE = 128;
    uint256 internal constant TO_SEEDS = 64;

    Player[PLAYERS] public players;
    Harness public registry;
    address public referee;

    event Outcome(bool done, bytes result);
    event Balance(uint256 registry, uint256[PLAYERS] owed);

    constructor() payable {
        for (uint256 i = 0; i < PLAYERS; i++) {
            players[i] = new Player();
        }
    }

    receive() external payable {}

    function use(Harness newRegistry, address newReferee) external {
        registry = newRegistry;
        referee = newReferee;
    }

    /// @param script Moves: time (8 bytes), height (8), player (1), value (16), size (3), calldata.
    function play(bytes calldata script) external payable {
        Harness target = registry;
        uint256 place = 0;
        while (place < script.length) {
            place = _move(target, script, place);
        }
        uint256[PLAYERS] memory owed;
        for (uint256 i = 0; i < PLAYERS; i++) {
            owed[i] = target.owed(address(players[i]));
        }
        emit Balance(address(target).balance, owed);
    }

    function _move(Harness target, bytes calldata script, uint256 place) internal returns (uint256) {
        target.setClock(
            uint64(bytes8(script[place:place + 8])), uint64(bytes8(script[place + 8:place + 16]))
        );
        uint256 player = uint8(script[place + 16]);
        uint256 value = uint128(bytes16(script[place + 17:place + 33]));
        uint256 size = uint24(bytes3(script[place + 33:place + HEADER]));
        bytes calldata data = script[place + HEADER:place + HEADER + size];
        address called = player >= TO_REFEREE
            ? referee
            : player >= TO_SEEDS ? address(target.SEEDS()) : address(target);
        (bool done, bytes memory result) =
            players[player % TO_SEEDS].act{value: value}(called, data);
        emit Outcome(done, done ? bytes("") : result);
        return place + HEADER + size;
    }
}

/// @title Thief
/// @notice Withdraws, and tries to withdraw again while it is being paid.
contract Thief {
    Registry internal immutable TARGET;
    uint256 public attempts;
    bool public stole;

    constructor(Registry target) {
        TARGET = target;
    }

    receive() external payable {
        attempts++;
        try TARGET.withdraw(address(this)) {
            stole = true;
        } catch {}
    }

    function act(bytes calldata data) external payable {
        (bool done, bytes memory reason) = address(TARGET).call{value: msg.value}(data);
        if (!done) {
            assembly {
                revert(add(reason, 32), mload(reason))
            }
        }
    }
}

/// @title Miser
/// @notice Takes no money.
contract Miser {}
