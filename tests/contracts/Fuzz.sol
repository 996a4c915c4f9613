// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IExaminer} from "./IExaminer.sol";
import {IReferee} from "./IReferee.sol";
import {IRegistry, jobKeyOn} from "./IRegistry.sol";
import {ISeeds} from "./ISeeds.sol";
import {Coin, Harness, HarnessReferee, Player} from "./Harness.sol";

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
/// the game promises. Each world is one job, from its opening until all money is paid out; every
/// other one is played for a token.
/// @dev Player 0 is the client; 1 an honest solver, who is online; 2 an honest verifier, who is
/// online; 6 a keeper, honest in some worlds; the others do anything. What the honest do follows
/// each random move, and no time that passes at once is longer than a third of a period.
contract Fuzz {
    uint256 internal constant PLAYERS = 7;
    uint256 internal constant CLIENT = 0;
    uint256 internal constant SOLVER = 1;
    uint256 internal constant VERIFIER = 2;
    uint256 internal constant KEEPER = 6;
    uint256 internal constant FORTUNE = 2 ** 60;
    uint256 internal constant PERIOD = 90; // of all terms, at least
    uint256 internal constant KINDS = 33;
    uint256 internal constant ROUNDS = 14; // of a draw, at most

    struct Committed {
        IRegistry.Segment segment;
        bytes32 hash;
        bytes32[] states;
        uint256 before; // the commit before it, plus one; zero: none
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
        uint256 first;
        uint256 round;
        uint256 drawn;
        uint256 rights;
        uint256 unseen;
        uint256 legStart;
        bool vouched;
        uint256 over; // the block that closed the last round, and behind it its time; 0: none
    }

    /// @dev What a move found.
    struct Before {
        Harness.Progress job;
        Draw draw; // of the segment that the move shows
        bytes32 hash; // ... its hash
        HarnessReferee.Trial trial; // of the claim that the move is about
        uint256 held; // there
        uint256 burned;
        uint256 owed; // to the solver,
        uint256 owedClient; // and to the client
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

    Harness[2] internal registries; // of the coin, and of the token
    HarnessReferee[2] internal referees;
    Harness public registry; // of this world
    HarnessReferee public referee;
    Coin internal coin;
    bool internal byToken;
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
        coin = new Coin();
        Oracle oracle = new Oracle();
        for (uint256 i = 0; i < 2; i++) {
            referees[i] = new HarnessReferee(oracle, i == 0 ? address(0) : address(coin));
            registries[i] = Harness(address(referees[i].REGISTRY()));
        }
        for (uint256 i = 0; i < PLAYERS; i++) {
            players[i] = new Player();
            numberOf[address(players[i])] = i + 1;
            players[i].spend(
                address(coin),
                0,
                abi.encodeCall(coin.approve, (address(registries[1]), type(uint256).max))
            );
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
        world = seed * worlds; // no run sees the one before it, and worlds differ by their number
        for (uint256 i = 0; i < worlds; i++) {
            this.begin();
            for (uint256 j = 0; j < count; j++) this.step();
            this.end();
        }
        bytes4[28] memory selectors = _selectors();
        counts = new uint256[](selectors.length);
        for (uint256 i = 0; i < counts.length; i++) counts[i] = done[selectors[i]];
        played = calls;
    }

    function _selectors() internal pure returns (bytes4[28] memory) {
        return [
            IRegistry.open.selector,
            IRegistry.close.selector,
            IRegistry.resume.selector,
            IRegistry.stop.selector,
            IRegistry.refuse.selector,
            IRegistry.accept.selector,
            IRegistry.commit.selector,
            IRegistry.enlist.selector,
            IRegistry.depart.selector,
            IRegistry.draw.selector,
            IRegistry.seal.selector,
            IRegistry.reveal.selector,
            IRegistry.unseen.selector,
            IRegistry.settle.selector,
            IRegistry.release.selector,
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
        byToken = world % 2 == 1;
        registry = registries[byToken ? 1 : 0];
        referee = referees[byToken ? 1 : 0];
        for (uint256 i = 0; i < 128; i++) last[i] = 0;
        _pass(1);
        for (uint256 i = 0; i < PLAYERS; i++) _fill(i);
        for (uint256 i = 0; i < 7; i++) header[i] = _next();
        _drawTerms();
        uint256 count = (terms.steps + terms.segmentSteps - 1) / terms.segmentSteps;
        uint256 covered = 3 + count * terms.coveragePpm * 3 / 2_000_000;
        if (covered > count) covered = count;
        uint256 escrow = count * terms.reward + 3 * terms.seats * terms.fee * covered;
        job = jobKeyOn(address(registry), address(players[CLIENT]), terms.jobId, terms.salt);
        _askTooMuch(escrow);
        if (!_do(CLIENT, escrow, abi.encodeCall(registry.open, (terms, "")))) {
            _broken("a job is opened", 0, 0);
        }
        start = FORTUNE;
        // Where nobody is honest draws end without a verdict.
        if (terms.verifiers != 0) _enlist(VERIFIER, 4);
        else if (world % 3 != 0) _enlist(VERIFIER, 1 + _below(3));
        for (uint256 i = 3; i < 6 && _isAsleep(); i++) _enlist(i, 6);
        _check();
    }

    /// @dev A query fee by which a panel would be paid for a void, or a lie too dear to be proven.
    function _askTooMuch(uint256 escrow) internal {
        IRegistry.Terms memory greedy = terms;
        greedy.queryFee =
            1 + (world % 2 == 0 ? greedy.reward / 16 : greedy.stake / 128);
        if (_do(CLIENT, escrow, abi.encodeCall(registry.open, (greedy, "")))) {
            _broken("a query fee is small", greedy.queryFee, 0);
        }
    }

    function _drawTerms() internal {
        IRegistry.Terms memory drawn;
        bytes32 firstState = (header[5] << 192) | (header[6] >> 64);
        uint256 seats = _below(4);
        uint256 fee = (seats == 0 ? _below(3) : 1 + _below(2)) * 10;
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
        drawn.steps = 1 + _below(24);
        drawn.segmentSteps = 1 + _below(4);
        if (_isLong()) (drawn.steps, drawn.segmentSteps) = (70 + _below(50), 1);
        drawn.reward = reward;
        drawn.fee = fee;
        drawn.stake = 1000 + _below(5) * 1000 + _below(1000);
        drawn.bond = 100 + _below(100);
        drawn.queryFee = reward < 32 ? 0 : _below(3);
        drawn.seats = seats;
        drawn.coveragePpm = seats == 0 || _isLong() ? 0 : _below(3) * 500_000;
        drawn.panelLeast = seats + _below(2);
        drawn.solvers = 0;
        drawn.verifiers = 0;
        if (world % 4 != 0) drawn.keeper = address(players[KEEPER]);
        drawn.segmentPeriod = PERIOD + _below(500);
        drawn.sealPeriod = PERIOD + _below(100);
        drawn.revealPeriod = PERIOD + _below(100);
        drawn.claimPeriod = PERIOD + _below(100);
        // The honest take a third of a period for each move.
        drawn.clock = 12 * PERIOD + _below(100);
        drawn.deadline = time + 2000 + _below(10_000);
        if (_below(4) == 0) {
            // A list of one: the honest verifier.
            drawn.verifiers = keccak256(abi.encode(address(players[VERIFIER])));
        }
        terms = drawn;
    }

    /// @dev Many short segments, few of them covered.
    function _isLong() internal view returns (bool) {
        return world % 8 == 6;
    }

    /// @dev Nobody claims but from a seat, and nobody refuses or stops: in other worlds most legs
    /// wait for claims.
    function _isQuiet() internal view returns (bool) {
        return world % 5 == 2;
    }

    /// @dev A large panel, which hardly ever says anything: draws have many rounds.
    function _isAsleep() internal view returns (bool) {
        return world % 9 == 3 && terms.verifiers == 0;
    }

    /// @dev Its keeper vouches for all that is covered.
    function _isKept() internal view returns (bool) {
        return terms.keeper != address(0) && world % 4 == 3;
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
        uint256 round = t.sealPeriod + t.revealPeriod;
        uint256 bound = (time > t.deadline ? time : t.deadline) + t.segmentPeriod;
        bound += (ROUNDS + 1) * (round + PERIOD) + 5 * t.claimPeriod;
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
        Harness.Progress memory found = registry.jobs(job);
        for (uint256 i = 0; i < commits.length; i++) {
            IRegistry.Segment memory segment = commits[i].segment;
            if (segment.generation != found.generation || segment.index < found.finalized) continue;
            _do(3, 0, abi.encodeCall(registry.draw, (job, segment, "")));
            _do(3, 0, abi.encodeCall(registry.settle, (job, segment, "")));
        }
        _do(3, 0, abi.encodeCall(registry.release, (job)));
        _do(3, 0, abi.encodeCall(registry.close, (job)));
        found = registry.jobs(job);
        if (found.phase != IRegistry.Phase.Closed || !over) return false;
        for (uint256 g = 0; g <= found.generation; g++) {
            _judge(3, 0, abi.encodeCall(referee.pay, (job, g)));
            (uint256 pot,,,,) = referee.docketOf(job, g);
            if (pot != 0) over = false;
            for (uint256 i = 0;; i++) {
                (address owner, bool gone) = registry.entries(job, g, i);
                if (owner == address(0)) break;
                if (gone) continue;
                bytes memory data = abi.encodeCall(registry.depart, (job, g, i));
                if (!_do(numberOf[owner] - 1, 0, data)) over = false;
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
        uint256 has = _moneyOf(address(registry));
        if (has != sum) _broken("owed, held, burned are what was paid in", has, sum);
        if (_moneyOf(address(referee)) != 0) _broken("the referee holds nothing", 0, 0);
        uint256 wealth = _moneyOf(address(players[VERIFIER])) + locked
            + registry.owed(address(players[VERIFIER]))
            + registry.bondsOf(job, address(players[VERIFIER]));
        if (wealth < start) _broken("an honest verifier loses nothing", wealth, start);
    }

    function _moneyOf(address account) internal view returns (uint256) {
        return byToken ? coin.balanceOf(account) : account.balance;
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
        Harness.Progress memory found = registry.jobs(job);
        for (uint256 i = 0; i < commits.length; i++) {
            IRegistry.Segment storage segment = commits[i].segment;
            if (segment.generation != found.generation || segment.index < found.finalized) continue;
            _attend(i);
            if (_isKept()) _vouch(i);
        }
    }

    /// @dev What makes a job go on, often enough that the rarer moves find something.
    function liven() external {
        if (_below(3) != 0) return;
        for (uint256 i = seals.length > 3 ? seals.length - 3 : 0; i < seals.length; i++) {
            if (_below(2) == 0) _claim(i);
        }
        Harness.Progress memory found = registry.jobs(job);
        if (found.phase == IRegistry.Phase.Open && _below(4) == 0) {
            if (found.barred) _resume();
            else _accept(_below(2) == 0 ? SOLVER : 3 + _below(3));
        }
        if (found.phase != IRegistry.Phase.Running || world % 5 == 0) return;
        if (_below(2) == 0) _commit();
        for (uint256 i = 0; _isLong() && i < 8; i++) _commit();
        if (commits.length == 0) return;
        uint256 next = found.drawn < found.committed ? last[found.drawn] - 1 : _recent();
        IRegistry.Segment memory segment = commits[next].segment;
        _do(3, 0, abi.encodeCall(registry.draw, (job, segment, "")));
        if (_below(4) == 0) _challenge(3 + _below(3), _recent());
        if (_below(4) == 0) _sealClaim(_recent());
        if (_below(2) == 0) _settle(3, _recent(), "");
        if (_below(2) == 0) _settleFirst();
        if (_below(2) == 0) _drawOver();
    }

    /// @dev Rounds that settle closed.
    function _drawOver() internal {
        Harness.Progress memory found = registry.jobs(job);
        for (uint256 index = 0; index < found.drawn; index++) {
            Committed storage commit = commits[last[index] - 1];
            if (_drawOf(commit.hash).over == 0) continue;
            _do(3, 0, abi.encodeCall(registry.draw, (job, commit.segment, "")));
        }
    }

    /// @dev The oldest leg.
    function _settleFirst() internal {
        Harness.Progress memory found = registry.jobs(job);
        for (uint256 index = found.finalized; index < found.drawn; index++) {
            uint256 number = last[index] - 1;
            if (!_drawOf(commits[number].hash).covered) continue;
            _settle(3, number, "");
            return;
        }
    }

    /// @dev The seats of the last round: of the honest verifier always, of the others often.
    function _attend(uint256 number) internal {
        Committed storage commit = commits[number];
        Draw memory tally = _drawOf(commit.hash);
        uint256 began = tally.start;
        if (!tally.covered || terms.seats == 0) return;
        if (time > began + terms.sealPeriod + terms.revealPeriod) return;
        for (uint256 place = tally.from; place < tally.to; place++) {
            address owner = _ownerAt(commit, place);
            uint256 player = numberOf[owner] - 1;
            if (player != VERIFIER && _below(_isAsleep() ? 60 : 4) != 0) continue;
            if (time <= began + terms.sealPeriod) {
                Sealed memory what = Sealed(IRegistry.Verdict.Right, commit.lie, true);
                if (commit.isLie) what.verdict = IRegistry.Verdict.False;
                if (player != VERIFIER && _below(3) == 0) {
                    _unseen(player, number, place);
                    continue;
                }
                if (player != VERIFIER && _below(2) == 0 && !_isQuiet()) {
                    what = Sealed(
                        IRegistry.Verdict(1 + _below(2)),
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
        if (kind == 9) return _depart();
        if (kind == 10) return _do(player, 0, abi.encodeCall(registry.release, (job)));
        if (kind == 11) return _do(player, 0, abi.encodeCall(registry.close, (job)));
        if (kind == 12) return _settle(player, _recent(), "");
        if (kind < 15) return _ofClient();
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
        if (kind < 20) return _settle(player, number, "");
        if (kind == 20) return _vouch(number);
        if (kind == 21) return _depart();
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
        if (_isQuiet() || (_isLong() && _below(8) != 0)) return false;
        uint256 what = _below(16);
        uint256 who = terms.keeper != address(0) && !_isKept() && _below(2) == 0 ? KEEPER : CLIENT;
        if (what == 0) return _do(CLIENT, 0, abi.encodeCall(registry.close, (job)));
        if (what < 3) return _do(CLIENT, 0, abi.encodeCall(registry.stop, (job)));
        if (what < 8) return _do(who, 0, abi.encodeCall(registry.refuse, (job)));
        if (what == 8) return _do(3, 0, abi.encodeCall(registry.stop, (job)));
        if (what == 9) return _do(4, 0, abi.encodeCall(registry.refuse, (job)));
        return _resume();
    }

    ////////////////////////////////////////////////////////////////
    //                           Moves                            //
    ////////////////////////////////////////////////////////////////

    function _accept(uint256 player) internal returns (bool) {
        bytes32[] memory path;
        return _do(
            player, terms.stake, abi.encodeCall(registry.accept, (job, path, "here"))
        );
    }

    function _resume() internal returns (bool) {
        Harness.Progress memory found = registry.jobs(job);
        uint256 missing = found.missingEscrow + found.missingPool;
        return _do(CLIENT, missing, abi.encodeCall(registry.resume, (job)));
    }

    /// @dev A player's word, as a contract gives it.
    function _vouch(uint256 number) internal returns (bool) {
        bytes32 hash = commits[number].hash;
        Draw memory draw = _drawOf(hash);
        if (!draw.covered || draw.vouched) return false;
        bytes32 domain = keccak256(
            abi.encode(
                keccak256(
                    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
                ),
                keccak256("Lockstep"),
                keccak256("3"),
                block.chainid,
                address(registry)
            )
        );
        bytes32 message =
            keccak256(abi.encode(keccak256("Vouch(bytes32 job,bytes32 segment)"), job, hash));
        bytes32 signed = keccak256(abi.encodePacked(hex"1901", domain, message));
        bool isTrue = _isKept() || _below(4) != 0;
        if (!isTrue) signed ^= bytes32(uint256(1));
        if (!_settle(3, number, abi.encodePacked(signed))) return false;
        if (!isTrue) _broken("a keeper's own word", number, 0);
        if (!_drawOf(hash).vouched && !_isOver(hash)) _broken("a vouch is noted", number, 0);
        return true;
    }

    function _isOver(bytes32 hash) internal view returns (bool) {
        Harness.Progress memory found = registry.jobs(job);
        for (uint256 i = found.finalized; i < found.committed; i++) {
            if (registry.segments(job, i) == hash) return false;
        }
        return true;
    }

    function _settle(uint256 player, uint256 number, bytes memory vouch) internal returns (bool) {
        if (number >= commits.length) return false;
        bytes memory data = abi.encodeCall(registry.settle, (job, commits[number].segment, vouch));
        return _do(player, 0, data);
    }

    function _commit() internal returns (bool) {
        Harness.Progress memory found = registry.jobs(job);
        uint256 index = found.committed;
        if (found.phase != IRegistry.Phase.Running || index == found.segments) return false;
        bool isHonest = found.solver == address(players[SOLVER]);
        uint256 steps = terms.segmentSteps;
        uint256 rest = terms.steps - index * steps;
        if (rest < steps) steps = rest;
        bool diverged = _below(_isLong() ? 400 : 20) == 0;
        if (diverged && steps > 0) steps = 1 + _below(steps);
        bytes32[] memory states = new bytes32[](steps);
        uint256 lie = steps;
        for (uint256 i = 0; i < steps; i++) {
            bool isLie = !isHonest && _below(_isLong() ? 400 : 4) == 0;
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
        uint256 way = byToken ? 0 : _below(6);
        if (way > 1) return _do(player, count * terms.bond, data);
        uint256 before = registry.owed(address(players[player]));
        uint256 had = _moneyOf(address(players[player]));
        if (!_do(player, way == 0 ? 0 : count * terms.bond - 1, data)) return false;
        uint256 after_ = registry.owed(address(players[player]));
        uint256 has = _moneyOf(address(players[player]));
        if (way == 1) _broken("a part of a bond", before, after_);
        if (before != after_ && had != has) _broken("a bond from one of both", before, had);
        _equal("a bond out of what is owed", before + had - after_ - has, count * terms.bond);
        return true;
    }

    function _depart() internal returns (bool) {
        uint256 generation = _below(registry.jobs(job).generation + 1);
        uint256 count = 0;
        address owner;
        while (true) {
            (owner,) = registry.entries(job, generation, count);
            if (owner == address(0)) break;
            count++;
        }
        if (count == 0) return false;
        uint256 entry = _below(count);
        (owner,) = registry.entries(job, generation, entry);
        uint256 player = numberOf[owner] - 1;
        return _do(player, 0, abi.encodeCall(registry.depart, (job, generation, entry)));
    }

    function _withdraw(uint256 player) internal returns (bool) {
        return _do(
            player, 0, abi.encodeCall(registry.withdraw, (address(players[player])))
        );
    }

    function _verdict(uint256 number, bool seals_) internal returns (bool) {
        Committed storage commit = commits[number];
        Draw memory tally = _drawOf(commit.hash);
        if (!tally.covered || terms.seats == 0) return false;
        uint256 place = tally.from + _below(tally.to - tally.from);
        address owner = _ownerAt(commit, place);
        if (owner == address(players[VERIFIER])) return false;
        uint256 player = numberOf[owner] - 1;
        if (seals_) {
            if (_below(4) == 0) return _unseen(player, number, place);
            IRegistry.Verdict verdict = IRegistry.Verdict(1 + _below(2));
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

    function _unseen(uint256 player, uint256 number, uint256 place) internal returns (bool) {
        Committed storage commit = commits[number];
        bytes memory data =
            abi.encodeCall(registry.unseen, (job, commit.segment.index, commit.hash, place));
        return _do(player, 0, data);
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
        Draw memory tally = _drawOf(commit.hash);
        if (!tally.covered || terms.seats == 0) return false;
        // A right that is made up, where there is one; or any.
        bool any = _below(4) == 0;
        uint256 place = any ? _below(8) : 0;
        for (; place < tally.to; place++) {
            if ((tally.places >> (4 * place)) & 15 != 2) continue;
            if (any || !verdicts[commit.hash][place].isTrue) break;
        }
        address owner = _ownerAt(commit, place);
        bytes16 leaves = _leaves(owner, commit.hash, verdicts[commit.hash][place].isTrue);
        uint256 index = any ? _below(9) : 3;
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
        if (!stands || commit.segment.index < last_) {
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
        if (_isQuiet()) return false;
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
        if (!pays && !byToken && bond != terms.bond) {
            _broken("bonds of outsiders rise", outsiders, 0);
        }
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
        found.round = uint8(tally >> 56);
        found.from = uint8(tally >> 64);
        found.to = uint8(tally >> 72);
        found.covered = found.to != 0;
        found.first = uint8(tally >> 80);
        found.drawn = uint8(tally >> 88);
        found.rights = uint8(tally >> 96);
        found.unseen = uint8(tally >> 104);
        found.vouched = uint8(tally >> 112) != 0;
        found.seed = bytes32(uint256(uint64(tally >> 120)));
        found.legStart = uint24(tally >> 184);
        found.places = places;
        found.over = uint104(registry.laterOf(hash, found.round + 1));
    }

    /// @dev The seed of a place's round.
    function _seedAt(bytes32 hash, uint256 place) internal view returns (bytes32 seed) {
        Draw memory draw = _drawOf(hash);
        seed = draw.seed;
        for (uint256 round = 1; round <= draw.round && place >= draw.first; round++) {
            uint256 word = registry.laterOf(hash, round);
            if (place >= uint8(word >> 168)) seed = bytes32(uint256(uint64(word >> 104)));
        }
    }

    function _ownerAt(Committed storage commit, uint256 place)
        internal
        view
        returns (address owner)
    {
        IRegistry.Segment storage segment = commit.segment;
        uint256 entry =
            uint256(keccak256(abi.encode(_seedAt(commit.hash, place), place))) % segment.panel;
        (owner,) = registry.entries(job, segment.generation, entry);
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
        uint256 has = _moneyOf(account);
        if (byToken) {
            if (has < FORTUNE) return coin.mint(account, FORTUNE - has);
            bytes memory data = abi.encodeCall(coin.transfer, (address(this), has - FORTUNE));
            players[player].spend(address(coin), 0, data);
        } else if (has < FORTUNE) {
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
        (ok,) = players[player].spend(target, byToken ? 0 : value, data);
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
        found.owedClient = registry.owed(address(players[CLIENT]));
        bytes4 move = bytes4(data);
        if (
            move == IRegistry.seal.selector || move == IRegistry.reveal.selector
                || move == IRegistry.unseen.selector
        ) {
            found.hash = bytes32(_word(data, 2));
            found.draw = _drawOf(found.hash);
        } else if (
            move == IRegistry.draw.selector || move == IRegistry.settle.selector
                || move == IReferee.challenge.selector
        ) {
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

    function _checkMove(bytes4 move, bytes memory data, Before memory before) internal view {
        Harness.Progress memory job_ = before.job;
        uint256 sealEnd = before.draw.start + terms.sealPeriod;
        uint256 burned = 0;
        if (move == IRegistry.accept.selector) {
            _within("accepted in time", time, 0, terms.deadline);
            if (terms.seats != 0 && terms.verifiers == 0) {
                _within("others could enlist first", time, job_.openedAt + terms.sealPeriod, time);
            }
            if (job_.entries < terms.panelLeast) _broken("a panel is there", job_.entries, 0);
            if (job_.barred) _broken("a barred job waits for its client", 0, 0);
        } else if (move == IRegistry.commit.selector) {
            _within("committed in time", time, 0, job_.due);
            _equal("no commit under a refusal", job_.refusedUntil, 0);
            if (job_.committed - job_.finalized >= 64) _broken("few are open", job_.committed, 0);
        } else if (move == IRegistry.enlist.selector) {
            if (job_.barred) _broken("a barred job waits for its client", 0, 1);
        } else if (move == IRegistry.draw.selector) {
            _checkDraw(data, before);
        } else if (move == IRegistry.seal.selector || move == IRegistry.unseen.selector) {
            _within("said in time", time, 0, sealEnd);
        } else if (move == IRegistry.reveal.selector) {
            _within("revealed in time", time, sealEnd, sealEnd + terms.revealPeriod);
        } else if (move == IRegistry.depart.selector) {
            if (_word(data, 1) == job_.generation && job_.phase == IRegistry.Phase.Running) {
                _broken("a verdict has its bond", _word(data, 2), 0);
            }
        } else if (move == IRegistry.settle.selector) {
            burned = _checkSettled(data, before);
        } else if (move == IRegistry.release.selector) {
            burned = _checkReleased(job_);
        } else if (move == IRegistry.stop.selector) {
            uint256 left = job_.segments - job_.committed - 1;
            _equal("what is left goes back", _clientGot(before), left * terms.reward);
            if (left == 0 || job_.ended) _broken("a last segment is stopped", left, 0);
        } else if (move == IRegistry.close.selector) {
            uint256 left = (job_.segments - job_.finalized) * terms.reward;
            _equal(
                "the rest is the client's",
                _clientGot(before),
                left - job_.missingEscrow + job_.pool
            );
            if (job_.phase != IRegistry.Phase.Open) _broken("a solver is not sent away", 0, 0);
        } else if (move == IRegistry.resume.selector) {
            _equal("the pool is whole", registry.jobs(job).pool, job_.pool + job_.missingPool);
        } else if (move == IRegistry.refuse.selector) {
            _equal("once a tenure", job_.refusedUntil, 0);
        }
        _equal("what is burned", registry.burned() - before.burned, burned);
    }

    function _clientGot(Before memory before) internal view returns (uint256) {
        return registry.owed(address(players[CLIENT])) - before.owedClient;
    }

    function _checkReleased(Harness.Progress memory job_) internal view returns (uint256 burned) {
        _equal("all is drawn", job_.drawn, job_.committed);
        _equal("a leg ends first", job_.legStart, job_.finalized);
        _equal("claims end first", job_.openClaims, 0);
        if (job_.refusedUntil != 0) {
            _within("a refusal that held nothing", time, job_.refusedUntil, time);
            _equal("a refusal holds all", job_.committed, job_.finalized);
            return 0;
        }
        _within("released after its time", time, job_.due, time);
        return time > terms.deadline ? 0 : terms.stake / 8;
    }

    function _claimTime() internal view returns (uint256) {
        return terms.sealPeriod + terms.revealPeriod + terms.claimPeriod;
    }

    /// @dev The last moment before the outcome.
    function _waitEnd(Draw memory draw) internal view returns (uint256) {
        uint256 waits = draw.unseen < 3 ? draw.unseen + 1 : 4;
        if (draw.rights + draw.unseen == 0) waits = 4;
        if (draw.vouched || terms.seats == 0) waits = 1;
        return draw.start + terms.sealPeriod + terms.revealPeriod + waits * terms.claimPeriod;
    }

    function _wantedRights(bool isLast) internal view returns (uint256) {
        return isLast && terms.seats != 0 && terms.seats < 3 ? 3 : terms.seats;
    }

    /// @dev The first unseen counts as silence, where more than one right is wanted.
    function _enough(Draw memory draw, bool isLast) internal view returns (uint256 enough) {
        enough = _wantedRights(isLast);
        if (draw.vouched || draw.unseen == 0) return enough;
        return enough + draw.unseen - (enough > 1 ? 1 : 0);
    }

    /// @dev What a settle did: a leg is final, all is void, a round is over, or a vouch alone.
    function _checkSettled(bytes memory data, Before memory before)
        internal
        view
        returns (uint256 burned)
    {
        Harness.Progress memory now_ = registry.jobs(job);
        Draw memory draw = _drawOf(before.hash);
        bool isLast = _word(data, 9) != 0 || _word(data, 1) + 1 == before.job.segments;
        if (now_.finalized != before.job.finalized) {
            _checkFinal(data, before, draw, isLast);
        } else if (now_.generation != before.job.generation) {
            return _checkVoid(before, draw, isLast);
        } else if (draw.over != before.draw.over) {
            _within(
                "after its round",
                time,
                before.draw.start + terms.sealPeriod + terms.revealPeriod,
                time
            );
            uint256 enough = _enough(draw, isLast);
            if (draw.rights >= enough) _broken("no round where all is told", draw.rights, enough);
            _equal("a round is closed once", before.draw.over, 0);
            _equal("the seed of this block", draw.over, height | (time << 64));
            _equal("nobody sits before the draw", draw.drawn, before.draw.drawn);
            if (draw.to == 64) _broken("places are left", draw.to, draw.drawn);
            if (draw.drawn >= _word(data, 8)) _broken("somebody is left", draw.drawn, 0);
            if (now_.refusedUntil != 0 && !draw.vouched) _broken("a refusal ends draws", 0, 0);
        } else if (draw.vouched == before.draw.vouched) {
            _broken("a settle that does nothing", 0, 0);
        }
        if (now_.pool != before.job.pool && now_.finalized == before.job.finalized) {
            _broken("the pool pays rights alone", now_.pool, before.job.pool);
        }
    }

    function _checkFinal(bytes memory data, Before memory before, Draw memory draw, bool isLast)
        internal
        view
    {
        Harness.Progress memory job_ = before.job;
        Harness.Progress memory now_ = registry.jobs(job);
        _within("final after its claims", time, _waitEnd(draw), time);
        _equal("final without a claim", job_.openClaims, 0);
        _equal("a leg follows a leg", draw.legStart, job_.finalized);
        uint256 unseen = draw.vouched ? 0 : draw.unseen;
        bool enough = draw.rights >= _enough(draw, isLast)
            || (draw.rights > 0 && draw.rights >= 2 * unseen)
            || (draw.rights == 0 && unseen == 0);
        if (!enough) _broken("final by its rights", draw.rights, unseen);
        if (job_.refusedUntil != 0 && !draw.vouched) {
            if (_waitEnd(draw) + _claimTime() >= job_.refusedUntil) {
                _broken("a refusal holds what was not over", _waitEnd(draw), job_.refusedUntil);
            }
        }
        uint256 pay = (_word(data, 1) + 1 - job_.finalized) * terms.reward;
        uint256 fees = _feesOf(job_.pool, draw);
        if (isLast) {
            pay += terms.stake;
            uint256 left = (job_.segments - now_.finalized) * terms.reward;
            _equal("the rest is the client's", _clientGot(before), left + job_.pool - fees);
            if (now_.phase != IRegistry.Phase.Closed) _broken("the last one closes", 0, 0);
        } else {
            _equal("rights are paid", now_.pool, job_.pool - fees);
        }
        // A solver may sit on its panel under its name, too, but is not drawn.
        _equal("what a solver earns", registry.owed(job_.solver) - before.owed, pay);
    }

    /// @dev Of all rights: those of later rounds get an eighth less.
    function _feesOf(uint256 pool, Draw memory draw) internal view returns (uint256 sum) {
        if (draw.rights == 0) return 0;
        uint256 fee = pool / draw.rights < terms.fee ? pool / draw.rights : terms.fee;
        for (uint256 place = 0; place < draw.to; place++) {
            if ((draw.places >> (4 * place)) & 15 != 2) continue;
            sum += place < draw.first ? fee : fee - fee / 8;
        }
    }

    function _checkVoid(Before memory before, Draw memory draw, bool isLast)
        internal
        view
        returns (uint256 burned)
    {
        Harness.Progress memory job_ = before.job;
        Harness.Progress memory now_ = registry.jobs(job);
        uint256 unseen = draw.vouched ? 0 : draw.unseen;
        _equal("void without a claim", job_.openClaims, 0);
        if (!draw.covered) {
            _within("a tail is void after its refusal", time, job_.refusedUntil, time);
            _equal("a tail is void after its legs", job_.legStart, job_.finalized);
        } else {
            _equal("a leg follows a leg", draw.legStart, job_.finalized);
            bool held = job_.refusedUntil != 0 && !draw.vouched
                && _waitEnd(draw) + _claimTime() >= job_.refusedUntil;
            if (_isKept() && !held) _broken("nothing that is vouched is void", draw.rights, unseen);
            if (held) {
                _within("claims may be opened first", time, job_.refusedUntil, time);
            } else {
                _within("void after its claims", time, _waitEnd(draw), time);
                if (unseen == 0 || draw.rights >= 2 * unseen) {
                    _broken("denied", draw.rights, unseen);
                }
                if (draw.rights >= _enough(draw, isLast)) _broken("denied", unseen, 0);
            }
        }
        uint256 count = job_.committed - job_.finalized + 1;
        uint256 price = count * terms.reward;
        uint256 stake = terms.stake < price ? terms.stake : price;
        uint256 escrow = (job_.segments - job_.finalized) * terms.reward;
        if (escrow > stake) escrow = stake;
        uint256 pool =
            stake - escrow + count * terms.seats * terms.fee * terms.coveragePpm / 1_000_000;
        if (pool > job_.pool) pool = job_.pool;
        _equal("the escrow burns", now_.missingEscrow, escrow);
        _equal("the pool burns", now_.missingPool, pool);
        _equal("the pool is less", now_.pool, job_.pool - pool);
        if (!now_.barred || now_.phase != IRegistry.Phase.Open) _broken("a void bars", 0, 0);
        burned = stake + escrow + pool;
        if (!isLast) burned -= _gasOf(stake, draw);
    }

    function _gasOf(uint256 stake, Draw memory draw) internal view returns (uint256) {
        uint256 seats = 0;
        for (uint256 place = 0; place < draw.to; place++) {
            if ((draw.places >> (4 * place)) & 15 == 3) seats++;
        }
        if (seats == 0) return 0;
        uint256 each = terms.queryFee / 4;
        return seats * (each < stake / seats ? each : stake / seats);
    }

    /// @dev Nobody chooses a seed by waiting, and a leg has at most sixteen segments.
    function _seedOf(uint256 at, bytes32 hash) internal view returns (uint256 seed, bool late) {
        uint256 source = at + 1;
        late = height > source + 256;
        if (late) source += (height - source - 1) / 256 * 256;
        seed = uint64(uint256(keccak256(abi.encode(keccak256(abi.encode(source)), hash))));
    }

    /// @dev Another round, behind one that settle closed.
    function _checkAgain(bytes memory data, Before memory before, Draw memory draw) internal view {
        Draw memory was = before.draw;
        bool isLast = _word(data, 9) != 0 || _word(data, 1) + 1 == before.job.segments;
        uint256 enough = _enough(was, isLast);
        if (was.over == 0) _broken("a round that nobody closed", was.round, 0);
        if (_word(data, 1) < before.job.finalized) _broken("a round of what is final", 0, 0);
        if (was.rights >= enough) _broken("no round where all is told", was.rights, enough);
        if (before.job.refusedUntil != 0 && !was.vouched) _broken("a refusal ends draws", 0, 0);
        _equal("the next round", draw.round, was.round + 1);
        _equal("nothing is closed", draw.over, 0);
        _equal("its time begins", draw.start, time);
        (uint256 seed,) = _seedOf(uint64(was.over), before.hash);
        _equal("the seed of its end", uint256(_seedAt(before.hash, was.to)), seed);
        uint256 least = enough - was.rights;
        if (draw.round >= 4 && least < was.drawn) least = was.drawn < 9 ? was.drawn : 9;
        if (draw.drawn - was.drawn < least && draw.to != 64) {
            _broken("as many as are missing", draw.drawn - was.drawn, least);
        }
    }

    function _checkDraw(bytes memory data, Before memory before) internal view {
        Harness.Progress memory job_ = before.job;
        Draw memory draw = _drawOf(before.hash);
        uint256 index = _word(data, 1);
        if (index < job_.drawn) {
            _checkAgain(data, before, draw);
            return;
        }
        _equal("drawn in order", index, job_.drawn);
        if (terms.seats == 0) {
            if (!draw.covered || draw.start != _word(data, 5)) _broken("no seats", index, 0);
            return;
        }
        (uint256 seed, bool late) = _seedOf(_word(data, 6), before.hash);
        bool wanted = late || _word(data, 9) != 0 || index + 1 == job_.segments
            || index - job_.legStart == 15 || _word(data, 5) + terms.segmentPeriod > terms.deadline
            || seed % 1_000_000 < terms.coveragePpm;
        if (draw.covered != wanted) _broken("covered by its seed", seed, height);
        if (!wanted) return;
        _equal("the seed of its height", uint256(draw.seed), seed);
        _equal("a leg begins behind the last", draw.legStart, job_.legStart);
        _equal("the next leg", registry.jobs(job).legStart, index + 1);
        uint256 seats = _wantedRights(_word(data, 9) != 0 || index + 1 == job_.segments);
        if (draw.drawn < seats && draw.to != 64) {
            _broken("as many seats as rights", draw.drawn, seats);
        }
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
        } else if (move == IReferee.claim.selector) {
            uint256 until = before.job.refusedUntil;
            if (until != 0) _within("no claim after a refusal", time, 0, until);
            _equal("nothing is burned", burned, 0);
        } else if (move == IReferee.challenge.selector) {
            uint256 place = _word(data, 10);
            Draw memory draw = _drawOf(before.hash);
            if (verdicts[before.hash][place].isTrue) _broken("a true right stands", 0, 0);
            if ((draw.places >> (4 * place)) & 15 != 4) _broken("it is closed", place, 0);
            _equal("it is a right no more", draw.rights + 1, before.draw.rights);
            _equal("it denies", draw.unseen, before.draw.unseen + 1);
        } else {
            _equal("nothing is burned", burned, 0);
        }
    }
}
