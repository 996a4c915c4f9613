// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IExaminer} from "./IExaminer.sol";
import {IReferee} from "./IReferee.sol";
import {IRegistry, jobKeyOn} from "./IRegistry.sol";
import {ISeeds} from "./ISeeds.sol";
import {Harness, HarnessReferee, Player} from "./Harness.sol";

/// @title Oracle
/// @notice An examiner that knows the truth: a state whose last bit is set does not follow.
contract Oracle is IExaminer {
    function examine(Context calldata context, bytes calldata evidence)
        external
        pure
        returns (Answer)
    {
        if (evidence.length == 0) revert BadTrace();
        return uint256(context.postState) & 1 == 1 ? Answer.Upheld : Answer.NotGuilty;
    }

    function query(Context calldata, bytes calldata asked) external pure returns (bytes memory) {
        if (asked.length == 0) revert BadQuery();
        return asked;
    }

    function compare(bytes calldata asked, bytes calldata replied) external pure returns (bytes32) {
        if (keccak256(asked) != keccak256(replied)) revert BadReply();
        return 0;
    }

    function drawnLeaf(Right calldata verdict, uint256 index, bytes calldata)
        external
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(verdict.owner, verdict.seed, verdict.segment, index));
    }
}

/// @title Fuzz
/// @notice Plays random moves against the contracts as deployed, and checks after each of them what
/// the game promises. Each world is one job, from its opening until all money is paid out.
/// @dev Player 0 is the client; 1 an honest solver, who is online; 2 an honest verifier, who is
/// online; the others do anything. What the honest do follows each random move, and no time that
/// passes at once is longer than a third of a period.
contract Fuzz {
    uint256 internal constant PLAYERS = 6;
    uint256 internal constant CLIENT = 0;
    uint256 internal constant SOLVER = 1;
    uint256 internal constant VERIFIER = 2;
    uint256 internal constant FORTUNE = 2 ** 60;
    uint256 internal constant PERIOD = 90; // of all terms, at least
    uint256 internal constant KINDS = 33;

    struct Committed {
        IRegistry.Segment segment;
        bytes32 hash;
        bytes32[] states;
        uint256 before; // the commit before it, plus one; zero: none
        bool isAsked;
        bool isLie;
        uint256 lie; // the first step that is false
    }

    struct Draw {
        uint256 start;
        uint256 from;
        uint256 to;
        bool covered;
        bytes32 seed;
        uint256 places;
        int256 score;
        uint256 rights;
        bool asleep;
    }

    /// @dev What a move found.
    struct Before {
        Harness.Progress job;
        Draw draw; // of the segment that the move shows
        bytes32 hash; // ... its hash
        HarnessReferee.Trial trial; // of the claim that the move is about
        uint256 held; // there
        uint256 burned;
        uint256 owed; // to the solver
    }

    struct Dispute {
        bytes32 key;
        uint256 commit; // its number
        uint256 step;
    }

    struct Sealed {
        IRegistry.Verdict verdict;
        uint256 step;
        bool isTrue; // the leaves of a right
    }

    struct Seal {
        uint256 player;
        uint256 commit;
        uint256 step;
        uint256 height;
    }

    error Broken(uint256 world, uint256 move, string what, uint256 a, uint256 b);

    Harness public registry;
    HarnessReferee public referee;
    Player[PLAYERS] public players;
    mapping(address => uint256) internal numberOf;

    uint256 internal world;
    uint256 internal moves;
    uint256 internal random;
    uint256 internal time;
    uint256 internal height;
    uint256 internal salt;
    bytes32 internal job;
    IRegistry.Terms internal terms;
    bytes32[7] internal header;
    uint256 internal start; // money of the honest verifier
    Committed[] internal commits;
    mapping(uint256 index => uint256) internal last; // the newest commit, plus one
    mapping(bytes32 hash => mapping(uint256 place => Sealed)) internal verdicts;
    Dispute[] internal disputes;
    mapping(bytes32 key => bool) internal known;
    Seal[] internal seals;
    uint256 internal calls; // of this run
    mapping(bytes4 => uint256) internal done;

    constructor() payable {
        referee = new HarnessReferee(new Oracle());
        registry = Harness(address(referee.REGISTRY()));
        for (uint256 i = 0; i < PLAYERS; i++) {
            players[i] = new Player();
            numberOf[address(players[i])] = i + 1;
        }
        time = 1_000_000;
        height = 1000;
    }

    receive() external payable {}

    /// @return played Moves that were tried.
    /// @return counts How many of each kind were done, in the order of _selectors().
    function run(uint256 seed, uint256 worlds, uint256 count)
        external
        returns (uint256 played, uint256[] memory counts)
    {
        random = uint256(keccak256(abi.encode(seed)));
        for (uint256 i = 0; i < worlds; i++) {
            this.begin();
            for (uint256 j = 0; j < count; j++) this.step();
            this.end();
        }
        bytes4[32] memory selectors = _selectors();
        counts = new uint256[](selectors.length);
        for (uint256 i = 0; i < counts.length; i++) counts[i] = done[selectors[i]];
        played = calls;
    }

    function _selectors() internal pure returns (bytes4[32] memory) {
        return [
            IRegistry.open.selector,
            IRegistry.cancel.selector,
            IRegistry.rewind.selector,
            IRegistry.acknowledge.selector,
            IRegistry.askPanel.selector,
            IRegistry.accept.selector,
            IRegistry.stepBack.selector,
            IRegistry.commit.selector,
            IRegistry.enlist.selector,
            IRegistry.leave.selector,
            IRegistry.draw.selector,
            IRegistry.seal.selector,
            IRegistry.reveal.selector,
            IRegistry.renew.selector,
            IRegistry.finalize.selector,
            IRegistry.forfeit.selector,
            IRegistry.release.selector,
            IRegistry.expire.selector,
            IRegistry.deliver.selector,
            IRegistry.withdraw.selector,
            IReferee.sealClaim.selector,
            IReferee.claim.selector,
            IReferee.alarm.selector,
            IReferee.answer.selector,
            IReferee.query.selector,
            IReferee.reply.selector,
            IReferee.convict.selector,
            IReferee.timeout.selector,
            IReferee.lapse.selector,
            IReferee.pay.selector,
            IReferee.challenge.selector,
            ISeeds.fix.selector
        ];
    }

    ////////////////////////////////////////////////////////////////
    //                          A world                           //
    ////////////////////////////////////////////////////////////////

    function begin() external {
        world++;
        moves = 0;
        delete commits;
        delete disputes;
        delete seals;
        for (uint256 i = 0; i < 8; i++) last[i] = 0;
        _pass(1);
        for (uint256 i = 0; i < PLAYERS; i++) _fill(i);
        for (uint256 i = 0; i < 7; i++) header[i] = _next();
        _drawTerms();
        uint256 count = (terms.steps + terms.segmentSteps - 1) / terms.segmentSteps;
        uint256 covered = 3 + count * terms.coveragePpm * 3 / 2_000_000;
        if (covered > count) covered = count;
        uint256 escrow = count * terms.rewardTo + 2 * terms.seats * terms.fee * covered;
        job = jobKeyOn(address(registry), address(players[CLIENT]), terms.jobId, terms.salt);
        if (!_do(CLIENT, escrow, abi.encodeCall(registry.open, (terms, "")))) {
            _broken("a job is opened", 0, 0);
        }
        start = FORTUNE;
        // Where nobody is honest panels fall asleep.
        if (terms.verifiers != 0) _enlist(VERIFIER, 4);
        else if (world % 3 != 0) _enlist(VERIFIER, 1 + _below(3));
        _check();
    }

    function _drawTerms() internal {
        IRegistry.Terms memory drawn;
        bytes32 firstState = (header[5] << 192) | (header[6] >> 64);
        uint256 seats = _below(4);
        uint256 fee = _below(3) * 10;
        uint256 reward = 1 + _below(1000);
        drawn.jobId = sha256(
            abi.encodePacked(
                bytes32("lockstep.job.v1"),
                uint64(216),
                abi.encodePacked(header[0], header[1], header[2], header[3], header[4], header[5]),
                bytes24(header[6])
            )
        );
        drawn.programRoot = _next();
        drawn.dataRoot = _next();
        drawn.firstStateRoot = firstState;
        drawn.salt = ++salt;
        drawn.steps = 1 + _below(12);
        drawn.segmentSteps = 1 + _below(4);
        drawn.rewardFrom = reward;
        drawn.rewardTo = reward + _below(2) * 100;
        drawn.riseTime = 1 + _below(1000);
        drawn.fee = fee;
        drawn.stake = 1000 + _below(1000);
        drawn.bond = 100 + _below(100);
        drawn.queryFee = _below(3);
        drawn.seats = seats;
        drawn.coveragePpm = seats == 0 ? 0 : _below(3) * 500_000;
        drawn.panelLeast = seats + _below(2);
        drawn.solvers = 0;
        drawn.verifiers = 0;
        drawn.heldPpm = _below(3) * 250_000;
        drawn.segmentPeriod = PERIOD + _below(500);
        drawn.sealPeriod = PERIOD + _below(100);
        drawn.revealPeriod = PERIOD + _below(100);
        drawn.claimPeriod = PERIOD + _below(100);
        // The honest take a third of a period for each move.
        drawn.clock = 12 * PERIOD + _below(100);
        drawn.deliveryPeriod = PERIOD + _below(1000);
        drawn.deadline = time + 2000 + _below(10_000);
        if (_below(4) == 0) {
            // A list of one: the honest verifier.
            drawn.verifiers = keccak256(abi.encode(address(players[VERIFIER])));
        }
        terms = drawn;
    }

    function step() external {
        moves++;
        uint256 kind = _below(2) == 0 ? _below(5) : _below(KINDS); // time must pass
        _play(kind);
        this.liven();
        this.behave();
        _check();
    }

    /// @dev Nobody does more than what anybody may: everything ends within a bound.
    function end() external {
        IRegistry.Terms memory t = terms;
        uint256 round = t.sealPeriod + t.revealPeriod + t.claimPeriod;
        uint256 bound = (time > t.deadline ? time : t.deadline) + t.segmentPeriod;
        bound += (commits.length + 1) * 8 * round + t.deliveryPeriod;
        bound += (disputes.length + 1) * 20 * 2 * t.clock;
        while (!this.sweep()) {
            moves++;
            _pass(PERIOD / 3);
            this.behave();
            if (time > bound) _broken("everything ends", time, bound);
            _check();
        }
        if (registry.heldOf(job) != 0) _broken("nothing is left", registry.heldOf(job), 0);
        _check();
    }

    /// @return over All money is owed or burned.
    function sweep() external returns (bool over) {
        over = true;
        for (uint256 i = 0; i < disputes.length; i++) {
            bytes32 key = disputes[i].key;
            if (uint256(referee.claims(key).phase) % 4 == 0) continue;
            over = false;
            _judge(3, 0, abi.encodeCall(referee.timeout, (key)));
            _judge(3, 0, abi.encodeCall(referee.lapse, (key)));
        }
        for (uint256 i = 0; i < commits.length; i++) {
            IRegistry.Segment memory segment = commits[i].segment;
            _do(3, 0, abi.encodeCall(registry.draw, (job, segment, "")));
            _do(3, 0, abi.encodeCall(registry.renew, (job, segment)));
            _do(3, 0, abi.encodeCall(registry.finalize, (job, segment)));
            _do(3, 0, abi.encodeCall(registry.forfeit, (job, segment)));
        }
        _do(3, 0, abi.encodeCall(registry.expire, (job)));
        _do(3, 0, abi.encodeCall(registry.deliver, (job)));
        Harness.Progress memory found = registry.jobs(job);
        if (found.phase != IRegistry.Phase.Closed || !over) return false;
        for (uint256 g = 0; g <= found.generation; g++) {
            _judge(3, 0, abi.encodeCall(referee.pay, (job, g)));
            (uint256 pot,,,,) = referee.docketOf(job, g);
            if (pot != 0) over = false;
        }
        if (found.held != 0) return false;
        for (uint256 i = 0; i < found.entries; i++) {
            (address owner,,, bool gone,,) = registry.entries(job, i);
            if (!gone && !_do(numberOf[owner] - 1, 0, abi.encodeCall(registry.leave, (job, i)))) {
                over = false;
            }
        }
    }

    ////////////////////////////////////////////////////////////////
    //                          Promises                          //
    ////////////////////////////////////////////////////////////////

    function _check() internal view {
        uint256 sum = registry.burned() + registry.heldOf(job);
        for (uint256 i = 0; i < PLAYERS; i++) sum += registry.owed(address(players[i]));
        Harness.Progress memory found = registry.jobs(job);
        uint256 live = 0;
        uint256 locked = 0;
        for (uint256 i = 0; i < disputes.length; i++) {
            (uint256 held, uint256 own, uint256 generation) =
                referee.heldOf(disputes[i].key, address(players[VERIFIER]));
            sum += held;
            locked += own;
            if (held != 0 && generation == found.generation) live++;
        }
        if (live != found.openClaims) _broken("claims are counted", live, found.openClaims);
        for (uint256 g = 0; g <= found.generation; g++) {
            (uint256 pot,, uint256 active, uint256 outsiders, bool convicted) =
                referee.docketOf(job, g);
            sum += pot;
            if (active > 4 || outsiders > 16) _broken("few at once", active, outsiders);
            if (convicted && honest[job][g]) _broken("an honest solver is not convicted", g, 0);
        }
        if (address(registry).balance != sum) {
            _broken("owed, held, burned are what was paid in", address(registry).balance, sum);
        }
        if (address(referee).balance != 0) _broken("the referee holds nothing", 0, 0);
        uint256 wealth = address(players[VERIFIER]).balance + locked
            + registry.owed(address(players[VERIFIER]))
            + registry.bondsOf(job, address(players[VERIFIER]));
        if (wealth < start) _broken("an honest verifier loses nothing", wealth, start);
    }

    mapping(bytes32 job => mapping(uint256 generation => bool)) internal honest;

    function _broken(string memory what, uint256 a, uint256 b) internal view {
        revert Broken(world, moves, what, a, b);
    }

    ////////////////////////////////////////////////////////////////
    //                         The honest                         //
    ////////////////////////////////////////////////////////////////

    function behave() external {
        for (uint256 i = 0; i < disputes.length; i++) {
            Dispute memory dispute = disputes[i];
            HarnessReferee.Trial memory trial = referee.claims(dispute.key);
            if (trial.phase == IReferee.ClaimPhase.Called) {
                if (trial.solver == address(players[SOLVER])) _answer(SOLVER, dispute.key);
            } else if (trial.phase == IReferee.ClaimPhase.Tried) {
                if (trial.turn == IReferee.Turn.Accused) {
                    if (trial.solver == address(players[SOLVER])) _reply(SOLVER, dispute.key);
                } else if (trial.lead == address(players[VERIFIER])) {
                    if (!_convict(VERIFIER, dispute)) _broken("a true claim is upheld", i, 0);
                }
            }
        }
        for (uint256 i = 0; i < commits.length; i++) _attend(i);
    }

    /// @dev What makes a job go on, often enough that the rarer moves find something.
    function liven() external {
        if (_below(3) != 0) return;
        for (uint256 i = seals.length > 3 ? seals.length - 3 : 0; i < seals.length; i++) {
            if (_below(2) == 0) _claim(i);
        }
        IRegistry.Phase phase = registry.jobs(job).phase;
        if (phase == IRegistry.Phase.Open && _below(4) == 0) {
            _accept(_below(2) == 0 ? SOLVER : 3 + _below(3));
        }
        if (phase != IRegistry.Phase.Running || world % 5 == 0) return;
        if (_below(2) == 0) _commit();
        if (commits.length == 0) return;
        IRegistry.Segment memory segment = commits[_recent()].segment;
        _do(3, 0, abi.encodeCall(registry.draw, (job, segment, "")));
        if (_below(4) == 0) _challenge(3 + _below(3), _recent());
        if (_below(4) == 0) _sealClaim(_recent());
        if (_below(2) == 0) _do(3, 0, abi.encodeCall(registry.renew, (job, segment)));
        if (_below(2) == 0) _do(3, 0, abi.encodeCall(registry.finalize, (job, segment)));
        if (_below(2) == 0) _do(3, 0, abi.encodeCall(registry.forfeit, (job, segment)));
    }

    /// @dev The seats of the last round: of the honest verifier always, of the others often.
    function _attend(uint256 number) internal {
        Committed storage commit = commits[number];
        Draw memory tally = _drawOf(commit.hash);
        uint256 began = tally.start;
        if (!tally.covered || time > began + terms.sealPeriod + terms.revealPeriod) return;
        for (uint256 place = tally.from; place < tally.to; place++) {
            address owner = _ownerAt(commit.hash, commit.segment.panel, place);
            uint256 player = numberOf[owner] - 1;
            if (player != VERIFIER && _below(8) != 0) continue;
            if (time <= began + terms.sealPeriod) {
                Sealed memory what = Sealed(IRegistry.Verdict.Right, commit.lie, true);
                if (commit.isLie) what.verdict = IRegistry.Verdict.False;
                if (player != VERIFIER && _below(2) == 0) {
                    what = Sealed(
                        IRegistry.Verdict(1 + _below(3)),
                        _below(commit.states.length),
                        _below(2) == 0
                    );
                }
                _seal(player, number, place, what);
            } else if (verdicts[commit.hash][place].verdict == IRegistry.Verdict.False) {
                _alarm(player, number, place);
            } else {
                _reveal(player, number, place);
            }
        }
    }

    ////////////////////////////////////////////////////////////////
    //                        Random moves                        //
    ////////////////////////////////////////////////////////////////

    function _play(uint256 kind) internal returns (bool) {
        uint256 player = 3 + _below(3);
        if (kind < 5) {
            if (_below(100) == 0) height += 300;
            _pass(_below(PERIOD / 3));
            return true;
        }
        if (kind == 5) return _accept(_below(2) == 0 ? SOLVER : player);
        if (kind < 8) return _commit();
        if (kind == 8) return _enlist(player, 1 + _below(3));
        if (kind == 9) return _leave();
        if (kind == 10) return _do(player, 0, abi.encodeCall(registry.release, (job)));
        if (kind == 11) return _do(player, 0, abi.encodeCall(registry.expire, (job)));
        if (kind == 12) return _do(player, 0, abi.encodeCall(registry.deliver, (job)));
        if (kind == 13) return _ofClient();
        if (kind == 14) return _stepBack();
        if (kind == 15) return _withdraw(_below(PLAYERS));
        if (kind == 16) {
            return _judge(player, 0, abi.encodeCall(referee.pay, (job, _below(3))));
        }
        if (kind < 26) {
            if (commits.length == 0) return false;
            return _ofSegment(kind, player, _recent());
        }
        if (disputes.length == 0) return false;
        return _ofDispute(kind, disputes[_below(disputes.length)]);
    }

    function _ofSegment(uint256 kind, uint256 player, uint256 number) internal returns (bool) {
        IRegistry.Segment memory segment = commits[number].segment;
        if (kind == 17 && _below(8) == 0) return _fix(player, segment);
        if (kind == 17) return _do(player, 0, abi.encodeCall(registry.draw, (job, segment, "")));
        if (kind == 18) return _do(player, 0, abi.encodeCall(registry.renew, (job, segment)));
        if (kind == 19) return _do(player, 0, abi.encodeCall(registry.finalize, (job, segment)));
        if (kind == 20) return _do(player, 0, abi.encodeCall(registry.forfeit, (job, segment)));
        if (kind == 21) return _leave();
        if (kind < 24) return _verdict(number, kind == 22);
        if (kind == 24) return _challenge(player, number);
        return _sealClaim(number);
    }

    function _ofDispute(uint256 kind, Dispute memory dispute) internal returns (bool) {
        HarnessReferee.Trial memory trial = referee.claims(dispute.key);
        uint256 solver = numberOf[trial.solver] - 1;
        if (kind == 26) return _answer(solver, dispute.key);
        if (kind == 27) return _reply(solver, dispute.key);
        if (kind == 28) return _judge(4, 0, abi.encodeCall(referee.timeout, (dispute.key)));
        if (kind == 29) return _judge(4, 0, abi.encodeCall(referee.lapse, (dispute.key)));
        if (trial.lead == address(0) || trial.lead == address(players[VERIFIER])) return false;
        uint256 lead = numberOf[trial.lead] - 1;
        if (kind == 30) return _convict(lead, dispute);
        return _judge(
            lead,
            terms.queryFee,
            abi.encodeCall(referee.query, (dispute.key, _subject(dispute), "what"))
        );
    }

    function _ofClient() internal returns (bool) {
        uint256 what = _below(8);
        Harness.Progress memory found = registry.jobs(job);
        if (what == 0 && _below(4) == 0) {
            return _do(CLIENT, 0, abi.encodeCall(registry.cancel, (job)));
        }
        if (what == 1) return _do(CLIENT, 0, abi.encodeCall(registry.acknowledge, (job)));
        if (what < 5 && found.finalized > 0) {
            uint256 index = _below(found.finalized);
            uint256 count = found.finalized - index;
            uint256 covered = 3 + count * terms.coveragePpm * 3 / 2_000_000;
            if (covered > count) covered = count;
            return _do(
                CLIENT,
                count * terms.rewardTo + 2 * terms.seats * terms.fee * covered,
                abi.encodeCall(registry.rewind, (job, index))
            );
        }
        if (found.finalized == 0) return false;
        IRegistry.Segment memory segment = commits[last[found.finalized - 1] - 1].segment;
        if (
            !_do(
                CLIENT,
                2 * terms.seats * terms.fee,
                abi.encodeCall(registry.askPanel, (job, segment))
            )
        ) return false;
        segment.time = time;
        segment.height = height;
        segment.panel = found.entries;
        Committed storage commit = commits.push();
        commit.segment = segment;
        commit.hash = keccak256(abi.encode(job, segment));
        commit.states = commits[last[found.finalized - 1] - 1].states;
        commit.lie = commit.states.length;
        commit.isAsked = true;
        return true;
    }

    ////////////////////////////////////////////////////////////////
    //                           Moves                            //
    ////////////////////////////////////////////////////////////////

    function _accept(uint256 player) internal returns (bool) {
        bytes32[] memory path;
        return _do(
            player, terms.stake, abi.encodeCall(registry.accept, (job, 0, path, "here"))
        );
    }

    function _stepBack() internal returns (bool) {
        address solver = registry.jobs(job).solver;
        if (solver == address(0)) return false;
        return _do(numberOf[solver] - 1, 0, abi.encodeCall(registry.stepBack, (job)));
    }

    function _commit() internal returns (bool) {
        Harness.Progress memory found = registry.jobs(job);
        uint256 index = found.committed;
        if (found.solver == address(0) || index == found.segments) return false;
        bool isHonest = found.solver == address(players[SOLVER]);
        uint256 steps = terms.segmentSteps;
        uint256 rest = terms.steps - index * steps;
        if (rest < steps) steps = rest;
        bool diverged = _below(20) == 0;
        if (diverged && steps > 0) steps = 1 + _below(steps);
        bytes32[] memory states = new bytes32[](steps);
        uint256 lie = steps;
        for (uint256 i = 0; i < steps; i++) {
            bool isLie = !isHonest && _below(4) == 0;
            states[i] = bytes32(uint256(_next()) & ~uint256(1) | (isLie ? 1 : 0));
            if (isLie && lie == steps) lie = i;
        }
        uint256 solver = numberOf[found.solver] - 1;
        if (!_do(solver, 0, abi.encodeCall(registry.commit, (job, index, states, diverged)))) {
            return false;
        }
        honest[job][found.generation] = isHonest;
        Committed storage commit = commits.push();
        commit.segment = IRegistry.Segment({
            index: index,
            generation: found.generation,
            root: _root(states, index * terms.segmentSteps),
            steps: steps,
            time: time,
            height: height,
            solver: found.solver,
            panel: found.entries,
            diverged: diverged
        });
        commit.hash = keccak256(abi.encode(job, commit.segment));
        if (registry.segments(job, index) != commit.hash) _broken("a segment's hash", index, 0);
        commit.states = states;
        commit.before = index == 0 ? 0 : last[index - 1];
        commit.isLie = lie < steps;
        commit.lie = lie;
        last[index] = commits.length;
        return true;
    }

    function _enlist(uint256 player, uint256 count) internal returns (bool) {
        bytes32[] memory path;
        bytes memory data = abi.encodeCall(registry.enlist, (job, count, path, "there"));
        // By value; or from what is owed, which must then fall by as much; or a part of each.
        uint256 way = _below(6);
        if (way > 1) return _do(player, count * terms.bond, data);
        uint256 before = registry.owed(address(players[player]));
        if (!_do(player, way == 0 ? 0 : count * terms.bond - 1, data)) return false;
        uint256 after_ = registry.owed(address(players[player]));
        if (way == 1) _broken("a part of a bond", before, after_);
        _equal("a bond out of what is owed", before - after_, count * terms.bond);
        return true;
    }

    function _leave() internal returns (bool) {
        uint256 count = registry.jobs(job).entries;
        if (count == 0) return false;
        uint256 entry = _below(count);
        (address owner,,,,,) = registry.entries(job, entry);
        return _do(numberOf[owner] - 1, 0, abi.encodeCall(registry.leave, (job, entry)));
    }

    function _withdraw(uint256 player) internal returns (bool) {
        return _do(
            player, 0, abi.encodeCall(registry.withdraw, (address(players[player])))
        );
    }

    function _verdict(uint256 number, bool seals_) internal returns (bool) {
        Committed storage commit = commits[number];
        Draw memory tally = _drawOf(commit.hash);
        if (!tally.covered || tally.from == tally.to) return false;
        uint256 place = tally.from + _below(tally.to - tally.from);
        address owner = _ownerAt(commit.hash, commit.segment.panel, place);
        if (owner == address(players[VERIFIER])) return false;
        uint256 player = numberOf[owner] - 1;
        if (seals_) {
            IRegistry.Verdict verdict = IRegistry.Verdict(1 + _below(3));
            return _seal(
                player,
                number,
                place,
                Sealed(verdict, _below(commit.states.length), _below(2) == 0)
            );
        }
        if (verdicts[commit.hash][place].verdict == IRegistry.Verdict.False) {
            return _alarm(player, number, place);
        }
        return _reveal(player, number, place);
    }

    function _leaves(address owner, bytes32 hash, bool isTrue)
        internal
        view
        returns (bytes16 leaves)
    {
        for (uint256 i = 0; i < 8; i++) {
            bytes32 tag = keccak256(abi.encode(owner, _drawOf(hash).seed, hash, i));
            leaves |= bytes16(bytes2(tag)) >> (16 * i);
        }
        if (!isTrue) leaves ^= bytes16(bytes2(0x0100)) >> (16 * 3); // the fourth is another
    }

    function _seal(uint256 player, uint256 number, uint256 place, Sealed memory what)
        internal
        returns (bool)
    {
        Committed storage commit = commits[number];
        address owner = address(players[player]);
        bool isRight = what.verdict == IRegistry.Verdict.Right;
        bytes16 leaves = isRight ? _leaves(owner, commit.hash, what.isTrue) : bytes16(0);
        bytes32 value = keccak256(
            abi.encode(
                owner,
                commit.hash,
                what.verdict,
                what.verdict == IRegistry.Verdict.False ? what.step : 0,
                leaves,
                bytes32(place)
            )
        );
        if (
            !_do(
                player,
                0,
                abi.encodeCall(
                    registry.seal, (job, commit.segment.index, commit.hash, place, value)
                )
            )
        ) return false;
        verdicts[commit.hash][place] = what;
        return true;
    }

    function _reveal(uint256 player, uint256 number, uint256 place) internal returns (bool) {
        Committed storage commit = commits[number];
        Sealed memory what = verdicts[commit.hash][place];
        return _do(
            player,
            0,
            abi.encodeCall(
                registry.reveal,
                (
                    job,
                    commit.segment.index,
                    commit.hash,
                    place,
                    what.verdict,
                    what.verdict == IRegistry.Verdict.Right
                        ? _leaves(address(players[player]), commit.hash, what.isTrue)
                        : bytes16(0),
                    bytes32(place)
                )
            )
        );
    }

    function _alarm(uint256 player, uint256 number, uint256 place) internal returns (bool) {
        Committed storage commit = commits[number];
        uint256 position = verdicts[commit.hash][place].step;
        bytes32 key = _keyOf(number, position);
        if (
            !_judge(
                player,
                0,
                abi.encodeCall(referee.alarm, (job, _case(number, position), place, bytes32(place)))
            )
        ) return false;
        _know(key, number, position);
        return true;
    }

    function _challenge(uint256 player, uint256 number) internal returns (bool) {
        Committed storage commit = commits[number];
        uint256 place = _below(8);
        Draw memory tally = _drawOf(commit.hash);
        if (tally.start == 0 || !tally.covered) return false;
        address owner = _ownerAt(commit.hash, commit.segment.panel, place);
        bytes16 leaves = _leaves(owner, commit.hash, verdicts[commit.hash][place].isTrue);
        uint256 index = _below(2) == 0 ? 3 : _below(9);
        bytes32 subject = keccak256(abi.encode(bytes32("challenge"), commit.hash, place, index));
        address sender = address(players[player]);
        bytes32 value = keccak256(abi.encode(sender, subject, bytes32(moves)));
        bool isSealed = _judge(player, 0, abi.encodeCall(referee.sealClaim, (value)));
        if (_below(4) != 0) _pass(1);
        else isSealed = false;
        uint256 last_ = registry.jobs(job).finalized;
        bool stands = registry.segments(job, commit.segment.index) == commit.hash;
        bytes memory data = abi.encodeCall(
            referee.challenge,
            (job, commit.segment, place, leaves, bytes32(place), index, "leaf", bytes32(moves))
        );
        if (!_judge(player, 0, data)) return false;
        if (!isSealed) _broken("a challenge was sealed before", number, 0);
        if (!stands || (commit.segment.index < last_ && !commit.isAsked)) {
            _broken("a challenge before the end", number, last_);
        }
        return true;
    }

    /// @dev Of that commit, which is no week old, or of one that never was.
    function _fix(uint256 player, IRegistry.Segment memory segment) internal returns (bool) {
        uint256 moment = _below(2) == 0 ? segment.time : segment.time - 8 days;
        bytes memory data = abi.encodeCall(ISeeds.fix, (segment.height, moment));
        if (!_move(address(registry.SEEDS()), player, 0, data)) return false;
        if (time <= moment + 7 days) _broken("a seed is fixed after a week", time, moment);
        return true;
    }

    /// @dev The honest verifier claims the truth only.
    function _sealClaim(uint256 number) internal returns (bool) {
        Committed storage commit = commits[number];
        uint256 player = 2 + _below(4);
        uint256 position = _below(commit.states.length);
        if (commit.isLie && _below(2) == 0) position = commit.lie;
        if (player == VERIFIER) {
            if (!commit.isLie) return false;
            position = commit.lie;
        }
        seals.push(Seal(player, number, position, height));
        bytes32 value = keccak256(
            abi.encode(
                address(players[player]), _subjectOf(number, position), bytes32(seals.length)
            )
        );
        return _judge(player, 0, abi.encodeCall(referee.sealClaim, (value)));
    }

    function _claim(uint256 which) internal returns (bool) {
        Seal memory sealed_ = seals[which];
        (,,, uint256 outsiders,) = referee.docketOf(job, registry.jobs(job).generation);
        bytes32 key = _keyOf(sealed_.commit, sealed_.step);
        uint256 bond = terms.bond * (4 + outsiders) / 4;
        // Somebody may try to pay less, or to claim again with a seal that is old.
        bool pays = sealed_.player == VERIFIER || _below(8) != 0;
        if (
            !_judge(
                sealed_.player,
                pays ? bond : terms.bond,
                abi.encodeCall(
                    referee.claim,
                    (job, _case(sealed_.commit, sealed_.step), bytes32(which + 1))
                )
            )
        ) return false;
        if (!pays && bond != terms.bond) _broken("bonds of outsiders rise", outsiders, 0);
        if (height <= sealed_.height || height > sealed_.height + 32) {
            _broken("a seal lives 32 blocks", height, sealed_.height);
        }
        _know(key, sealed_.commit, sealed_.step);
        return true;
    }

    function _know(bytes32 key, uint256 position, uint256 step_) internal {
        if (known[key]) return;
        known[key] = true;
        disputes.push(Dispute(key, position, step_));
    }

    function _answer(uint256 player, bytes32 key) internal returns (bool) {
        return _judge(player, 0, abi.encodeCall(referee.answer, (key, bytes32(uint256(7)))));
    }

    function _reply(uint256 player, bytes32 key) internal returns (bool) {
        return _judge(player, 0, abi.encodeCall(referee.reply, (key, "what", "what")));
    }

    function _convict(uint256 player, Dispute memory dispute) internal returns (bool) {
        return _judge(
            player, 0, abi.encodeCall(referee.convict, (dispute.key, _subject(dispute), "proof"))
        );
    }

    ////////////////////////////////////////////////////////////////
    //                       What is shown                        //
    ////////////////////////////////////////////////////////////////

    function _states(uint256 number, uint256 position)
        internal
        view
        returns (bytes32 preState, bytes32 postState)
    {
        Committed storage commit = commits[number];
        postState = commit.states[position];
        if (position > 0) {
            preState = commit.states[position - 1];
        } else if (commit.before == 0) {
            preState = terms.firstStateRoot;
        } else {
            bytes32[] storage states = commits[commit.before - 1].states;
            preState = states[states.length - 1];
        }
    }

    function _subjectOf(uint256 number, uint256 position) internal view returns (bytes32) {
        (bytes32 preState, bytes32 postState) = _states(number, position);
        return keccak256(abi.encode(commits[number].hash, position, preState, postState));
    }

    function _keyOf(uint256 number, uint256 position) internal view returns (bytes32) {
        bytes32 subject = _subjectOf(number, position);
        return keccak256(abi.encode(subject, referee.rounds(subject)));
    }

    function _subject(Dispute memory dispute)
        internal
        view
        returns (IReferee.Subject memory shown)
    {
        shown.client = address(players[CLIENT]);
        shown.salt = terms.salt;
        shown.header = header;
        shown.step = dispute.step;
        (shown.preState, shown.postState) = _states(dispute.commit, dispute.step);
    }

    function _case(uint256 number, uint256 position)
        internal
        view
        returns (IReferee.Case memory shown)
    {
        Committed storage commit = commits[number];
        shown.client = address(players[CLIENT]);
        shown.salt = terms.salt;
        shown.header = header;
        shown.segment = commit.segment;
        shown.step = position;
        (shown.preState, shown.postState) = _states(number, position);
        shown.postPath = _path(commit.states, position);
        if (position > 0) {
            shown.prePath = _path(commit.states, position - 1);
        } else if (commit.before != 0) {
            Committed storage before = commits[commit.before - 1];
            shown.previous = before.segment;
            shown.prePath = _path(before.states, before.states.length - 1);
        }
    }

    /// @dev The tree over states; of at most four of them.
    function _root(bytes32[] memory states, uint256 first) internal pure returns (bytes32) {
        uint256 count = states.length;
        bytes32[] memory nodes = new bytes32[](count);
        for (uint256 i = 0; i < count; i++) nodes[i] = _leaf(states[i]);
        uint256 width = count;
        while (width > 1) width = _fold(nodes, width);
        return sha256(
            abi.encodePacked(
                bytes32("lockstep.segment.v1"), nodes[0], uint64(first), uint64(count)
            )
        );
    }

    function _leaf(bytes32 state) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(uint8(0), state));
    }

    function _fold(bytes32[] memory nodes, uint256 width) internal pure returns (uint256) {
        for (uint256 i = 0; i + 1 < width; i += 2) {
            nodes[i / 2] = sha256(abi.encodePacked(uint8(1), nodes[i], nodes[i + 1]));
        }
        if (width % 2 == 1) nodes[width / 2] = nodes[width - 1];
        return (width + 1) / 2;
    }

    function _path(bytes32[] storage states, uint256 position)
        internal
        view
        returns (bytes32[] memory)
    {
        uint256 count = states.length;
        bytes32[] memory nodes = new bytes32[](count);
        bytes32[] memory path = new bytes32[](8);
        uint256 size = 0;
        for (uint256 i = 0; i < count; i++) nodes[i] = _leaf(states[i]);
        uint256 width = count;
        while (width > 1) {
            if (position ^ 1 < width) path[size++] = nodes[position ^ 1];
            width = _fold(nodes, width);
            position /= 2;
        }
        assembly ("memory-safe") {
            mstore(path, size)
        }
        return path;
    }

    /// @dev In the order of RegistryState.Tally.
    function _drawOf(bytes32 hash) internal view returns (Draw memory found) {
        (uint256 tally, uint256 places) = registry.drawOf(hash);
        found.start = uint40(tally);
        found.from = uint8(tally >> 64);
        found.to = uint8(tally >> 72);
        found.covered = uint8(tally >> 112) != 0;
        found.seed = bytes32(uint256(uint64(tally >> 136)));
        found.places = places;
        found.rights = uint8(tally >> 88);
        found.score = int256(found.rights) - int256(uint256(uint8(tally >> 96)));
        found.asleep = uint8(tally >> 128) != 0;
    }

    function _ownerAt(bytes32 hash, uint256 panel, uint256 place) internal view returns (address) {
        uint256 entry = uint256(keccak256(abi.encode(_drawOf(hash).seed, place))) % panel;
        (address owner,,,,,) = registry.entries(job, entry);
        return owner;
    }

    ////////////////////////////////////////////////////////////////
    //                           Tools                            //
    ////////////////////////////////////////////////////////////////

    function _recent() internal returns (uint256) {
        uint256 count = commits.length;
        return count < 4 ? _below(count) : count - 1 - _below(4);
    }

    function _next() internal returns (bytes32) {
        random = uint256(keccak256(abi.encode(random)));
        return bytes32(random);
    }

    function _below(uint256 most) internal returns (uint256) {
        return most == 0 ? 0 : uint256(_next()) % most;
    }

    function _pass(uint256 seconds_) internal {
        time += seconds_;
        height += 1 + seconds_ / 12;
        registry.setClock(time, height);
    }

    function _fill(uint256 player) internal {
        _withdraw(player);
        address account = address(players[player]);
        uint256 has = account.balance;
        if (has < FORTUNE) {
            (bool paid,) = account.call{value: FORTUNE - has}("");
            assert(paid);
        } else {
            players[player].spend(address(this), has - FORTUNE, "");
        }
    }

    function _do(uint256 player, uint256 value, bytes memory data) internal returns (bool) {
        return _move(address(registry), player, value, data);
    }

    function _judge(uint256 player, uint256 value, bytes memory data) internal returns (bool) {
        return _move(address(referee), player, value, data);
    }

    function _move(address target, uint256 player, uint256 value, bytes memory data)
        internal
        returns (bool ok)
    {
        Before memory before = _look(target, data);
        (ok,) = players[player].spend(target, value, data);
        calls++;
        if (!ok) return false;
        done[bytes4(data)]++;
        if (target == address(registry)) _checkMove(bytes4(data), data, before);
        else _checkTrial(bytes4(data), data, before);
    }

    ////////////////////////////////////////////////////////////////
    //                 What a move that was made had               //
    ////////////////////////////////////////////////////////////////

    /// @dev The word of an argument.
    function _word(bytes memory data, uint256 which) internal pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := mload(add(data, add(36, mul(32, which))))
        }
    }

    function _look(address target, bytes memory data) internal view returns (Before memory found) {
        found.job = registry.jobs(job);
        found.burned = registry.burned();
        found.owed = registry.owed(found.job.solver);
        bytes4 move = bytes4(data);
        if (move == IRegistry.seal.selector || move == IRegistry.reveal.selector) {
            found.hash = bytes32(_word(data, 2));
            found.draw = _drawOf(found.hash);
        } else if (target == address(registry) && data.length >= 4 + 10 * 32) {
            bytes32 hash;
            assembly ("memory-safe") {
                hash := keccak256(add(data, 36), 320) // the job, and the segment's nine words
            }
            found.hash = hash;
            found.draw = _drawOf(hash);
        } else if (target == address(referee)) {
            bytes32 key = bytes32(_word(data, 0));
            found.trial = referee.claims(key);
            (found.held,,) = referee.heldOf(key, address(0));
        }
    }

    function _within(string memory what, uint256 time_, uint256 after_, uint256 until) internal view {
        if (time_ <= after_ || time_ > until) _broken(what, after_, until);
    }

    function _equal(string memory what, uint256 a, uint256 b) internal view {
        if (a != b) _broken(what, a, b);
    }

    function _claimEnd(bytes memory data, Draw memory draw) internal view returns (uint256) {
        uint256 began = terms.seats == 0 ? _word(data, 5) : draw.start;
        return began + terms.sealPeriod + terms.revealPeriod + terms.claimPeriod;
    }

    function _checkMove(bytes4 move, bytes memory data, Before memory before) internal view {
        Harness.Progress memory job_ = before.job;
        uint256 sealEnd = before.draw.start + terms.sealPeriod;
        uint256 burned = 0;
        if (move == IRegistry.accept.selector) {
            uint256 passed = time - job_.openedAt;
            uint256 rise = passed < terms.riseTime ? passed : terms.riseTime;
            _equal(
                "the price of now",
                registry.jobs(job).reward,
                terms.rewardFrom + (terms.rewardTo - terms.rewardFrom) * rise / terms.riseTime
            );
            _within("accepted in time by a panel", time, 0, terms.deadline);
            if (job_.active < terms.panelLeast) _broken("a panel is there", job_.active, 0);
        } else if (move == IRegistry.commit.selector) {
            _within("committed in time", time, 0, job_.due);
        } else if (move == IRegistry.draw.selector) {
            _checkDraw(data, before.hash);
        } else if (move == IRegistry.seal.selector) {
            _within("sealed in time", time, 0, sealEnd);
        } else if (move == IRegistry.reveal.selector) {
            _within("revealed in time", time, sealEnd, sealEnd + terms.revealPeriod);
        } else if (move == IRegistry.renew.selector) {
            _within("renewed after its round", time, sealEnd + terms.revealPeriod, time);
        } else if (move == IRegistry.leave.selector) {
            _checkLeft(_word(data, 1));
        } else if (move == IRegistry.finalize.selector) {
            _checkFinal(data, before);
        } else if (move == IRegistry.forfeit.selector) {
            _within("void after its claims", time, _claimEnd(data, before.draw), time);
            Draw memory draw = _drawOf(before.hash);
            if (draw.score <= -10) burned = terms.stake / 8;
            else if (!draw.asleep || draw.score > 0) _broken("denied by half", draw.rights, 0);
        } else if (move == IRegistry.release.selector) {
            _within("released after its time", time, job_.due, terms.deadline);
            burned = terms.stake / 8;
        } else if (move == IRegistry.stepBack.selector) {
            burned = terms.stake / 64;
        } else if (move == IRegistry.expire.selector) {
            _within("expired after the deadline", time, terms.deadline, time);
            _equal("what was committed ends first", job_.committed, job_.finalized);
        }
        _equal("what is burned", registry.burned() - before.burned, burned);
    }

    /// @dev Nobody chooses a seed by waiting.
    function _checkDraw(bytes memory data, bytes32 hash) internal view {
        uint256 source = _word(data, 6) + 1;
        bool late = height > source + 256;
        if (late) source += (height - source - 1) / 256 * 256;
        uint256 seed = uint64(
            uint256(keccak256(abi.encode(keccak256(abi.encode(source)), hash)))
        );
        bool wanted = late || registry.jobs(job).phase == IRegistry.Phase.Closed
            || _word(data, 9) != 0 || _word(data, 1) + 1 == registry.jobs(job).segments
            || seed % 1_000_000 < terms.coveragePpm;
        Draw memory draw = _drawOf(hash);
        if (draw.covered != wanted) _broken("covered by its seed", seed, source);
        if (wanted) _equal("the seed of its height", uint256(draw.seed), seed);
    }

    /// @dev A bond that was paid stands behind no verdict.
    function _checkLeft(uint256 number) internal view {
        (,,, bool gone,,) = registry.entries(job, number);
        if (!gone) return;
        Harness.Progress memory found = registry.jobs(job);
        for (uint256 i = 0; i < commits.length; i++) {
            IRegistry.Segment memory segment = commits[i].segment;
            Draw memory draw = _drawOf(commits[i].hash);
            bool open = found.phase == IRegistry.Phase.Closed
                ? commits[i].isAsked && found.held != 0
                : segment.index >= found.finalized;
            bool stands = open && segment.index < found.committed
                && registry.segments(job, segment.index) == commits[i].hash;
            if (!stands) continue;
            for (uint256 place = 0; place < draw.to; place++) {
                uint256 phase = (draw.places >> (4 * place)) & 15;
                uint256 entry =
                    uint256(keccak256(abi.encode(draw.seed, place))) % segment.panel;
                if (entry == number && phase >= 1 && phase <= 3) { // not yet closed
                    _broken("a verdict has its bond", number, place);
                }
            }
        }
    }

    function _checkFinal(bytes memory data, Before memory before) internal view {
        _within("final after its claims", time, _claimEnd(data, before.draw), time);
        for (uint256 i = 0; i < disputes.length; i++) {
            if (commits[disputes[i].commit].hash != before.hash) continue;
            uint256 phase = uint256(referee.claims(disputes[i].key).phase);
            if (phase != 0 && phase != 4) _broken("final without a claim", i, phase);
        }
        Draw memory draw = _drawOf(before.hash);
        if (draw.covered && draw.score < int256(terms.seats)) {
            bool enough = draw.asleep
                && (draw.score > 0 || (draw.score > -10 && terms.verifiers != 0));
            if (!enough) _broken("final by its score", draw.rights, terms.seats);
        }
        uint256 pay = before.job.reward - before.job.reward * terms.heldPpm / 1_000_000;
        if (registry.jobs(job).phase == IRegistry.Phase.Closed) pay += terms.stake;
        _equal("what a solver earns", registry.owed(before.job.solver) - before.owed, pay);
    }

    function _checkTrial(bytes4 move, bytes memory data, Before memory before) internal view {
        HarnessReferee.Trial memory trial = before.trial;
        bool accused = trial.turn == IReferee.Turn.Accused;
        uint256 left = accused ? trial.solverLeft : trial.leadLeft;
        uint256 burned = registry.burned() - before.burned;
        if (move == IReferee.pay.selector) {
            _equal("a quarter twice", burned, terms.stake - 2 * (terms.stake / 4));
        } else if (move == IReferee.timeout.selector) {
            _within("a clock has run out", time, trial.since + left, time);
            if (accused) return _equal("silence convicts", burned, 0);
            (uint256 held,,) = referee.heldOf(bytes32(_word(data, 0)), address(0));
            // After a conviction, whole.
            if (trial.generation == registry.jobs(job).generation) {
                (uint256 rest,) = trial.claimants == 1 ? (0, 0) : (held, 0);
                _equal("half of a bond", burned, (before.held - rest) / 2);
            }
        } else if (move == IReferee.answer.selector || move == IReferee.reply.selector) {
            _within("moved in time", time, 0, trial.since + left);
            HarnessReferee.Trial memory now_ = referee.claims(bytes32(_word(data, 0)));
            _equal("a clock goes on", now_.solverLeft, trial.since + left - time);
        } else if (move == IReferee.challenge.selector) {
            bytes32 hash;
            assembly ("memory-safe") {
                hash := keccak256(add(data, 36), 320)
            }
            if (verdicts[hash][_word(data, 10)].isTrue) _broken("a true right stands", 0, 0);
        } else {
            _equal("nothing is burned", burned, 0);
        }
    }
}
